import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { clientScript } from '../scripts/build-client.ts'
import { createConsumer, expectError } from './support/consumers.ts'
import { temporaryDirectory } from './support/directory.ts'
import { testAtLength } from './support/faults.ts'
import { startService } from './support/service.ts'

const project = join(import.meta.dir, '..')
const manifest = (path: string) => Bun.file(join(project, path)).json()

const consumer = createConsumer()
await consumer.addClient()
afterAll(() => consumer[Symbol.dispose]())

const meeting = `
await ada.register({ email: 'ada@example.com', password: 'correct horse' })
const { id: bobId } = await bob.register({ email: 'bob@example.com', password: 'correct horse' })
await Promise.all([ada.connect(), bob.connect()])
await Promise.all(Array.from({ length: 11 }, () => ada.account.get())) // Node 20 warns of many listeners
const heard = new Promise((resolve) => bob.on('new_message', ({ message }) => resolve(message.body)))
const { id } = await ada.conversations.open(bobId)
await ada.send(id, { body: 'hello' })`

/** Two people talk; afterwards nothing may keep the process alive. */
const program = `
import { createClient } from 'hostline-client'
const baseUrl = process.argv[2]
const options = { baseUrl, WebSocket: globalThis.WebSocket ?? (await import('ws')).WebSocket }
const [ada, bob] = [createClient(options), createClient(options)]
${meeting}
const progress = []
const file = await ada.files.upload(new Blob(['x'.repeat(300_000)]), {
  name: 'a.txt', type: 'text/plain', onProgress: (sent, total) => progress.push([sent, total]),
})
console.log(await heard, file.file_size, progress.length > 1, progress.at(-1)[0] === progress.at(-1)[1])
ada.close()
bob.close()
`

describe('the package', () => {
  test('is one module of at most 9.5 KB compressed, without dependencies, with the service’s version', async () => {
    const own = await manifest('client/package.json')
    expect(Bun.gzipSync(clientScript(), { level: 9 }).length).toBeLessThan(9_728)
    expect([own.dependencies, own.version]).toEqual([
      undefined,
      (await manifest('package.json')).version,
    ])
    expect(clientScript()).not.toMatch(/\bimport\b/)
  })

  test('uses only syntax that three-year-old browsers support', async () => {
    consumer.write({ 'client.js': clientScript() })
    const [old, newest] = ['es2022', 'esnext'].map((target) =>
      consumer.tool('esbuild', 'client.js', `--target=${target}`),
    )
    expect((await old)?.output).toBe((await newest)?.output ?? '')
  })

  test('has each class once, so that the stores recognise the errors of the client', async () => {
    const names = ['client', 'state', 'react', 'preact', 'vue', 'svelte', 'webhook']
    const home = consumer.path('node_modules/hostline-client')
    const scripts = await Promise.all(names.map((name) => Bun.file(`${home}/${name}.js`).text()))
    const classes = scripts.flatMap((script) => script.match(/^class \w+/gm) ?? [])
    expect(classes).toContain('class ApiError')
    expect(classes).toEqual([...new Set(classes)])
  })

  test('has maps that name its sources the same wherever it was built', async () => {
    const home = consumer.path('node_modules/hostline-client')
    const maps = [...new Bun.Glob('*.map').scanSync(home)]
    expect(maps.length).toBeGreaterThan(5)
    for (const name of maps) {
      const { sources } = await Bun.file(`${home}/${name}`).json()
      const isSource = (path: string) => existsSync(join(project, 'client', path))
      expect(sources).toEqual(sources.filter(isSource))
    }
  })

  testAtLength('is built by its script, which prints the path of the archive', async () => {
    const script = join(project, 'scripts/build-client.ts')
    const { stdout, stderr } = Bun.spawnSync([process.execPath, script])
    expect(stderr.toString()).toBe('')
    expect(await Bun.file(stdout.toString().trim()).exists()).toBe(true)
  })

  testAtLength('has types that match the service’s descriptions', async () => {
    // Its generator takes a while to load.
    const { generateTypes } = await import('../scripts/client-types.ts')
    const path = join(project, 'client/src/schema.ts')
    expect(await Bun.file(path).text()).toBe(await generateTypes())
  })

  testAtLength(
    'is installed from the service, with a map of its sources, and is ready to be published',
    async () => {
      await using service = await startService({ listen: true })
      const url = `${service.base}/hostline-client.tgz`
      const { headers } = await service.call('GET', '/hostline-client.tgz')
      const tag = { 'if-none-match': headers.get('etag') ?? '' }
      const known = await service.call('GET', '/hostline-client.tgz', { headers: tag })
      expect([headers.get('content-type'), known.status]).toEqual(['application/gzip', 304])
      using directory = temporaryDirectory()
      const inside = (path: string) => join(directory.path, path)
      const run = async (...command: string[]) => {
        const child = Bun.spawn(command, { cwd: directory.path, stdout: 'pipe', stderr: 'pipe' })
        const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()])
        return { exitCode: await child.exited, output: out + err }
      }
      await Bun.write(inside('package.json'), '{"private": true}')
      const quiet = ['--no-audit', '--no-fund', '--loglevel=error']
      expect(await run('npm', 'install', ...quiet, url)).toMatchObject({ exitCode: 0 })
      const home = 'node_modules/hostline-client'
      const map = await Bun.file(inside(`${home}/client.js.map`)).json()
      expect(map.sources.length).toBeGreaterThan(10)
      expect(map.sourcesContent).not.toContain(null)
      const readme = await Bun.file(inside(`${home}/README.md`)).text()
      expect([...readme.matchAll(/\]\((?!https:)/g)]).toEqual([])
      await Bun.write(
        inside('main.mjs'),
        `import { createClient } from 'hostline-client'
      import 'hostline-client/state'
      const client = createClient({ baseUrl: process.argv[2] })
      console.log((await client.register({ email: 'a@b.example', password: 'correct horse' })).role)
      client.close()`,
      )
      const ran = await run('node', 'main.mjs', service.base)
      expect(ran).toEqual({ exitCode: 0, output: 'user\n' })
      // Without a login and without the registry of npm.
      const registry = ['--registry', `${service.base}/nothing/`]
      const published = await run(
        'npm',
        'publish',
        '--dry-run',
        '--loglevel=error',
        ...registry,
        `./${home}`,
      )
      expect(published).toMatchObject({
        exitCode: 0,
        output: expect.stringContaining(
          `+ hostline-client@${(await manifest('package.json')).version}`,
        ),
      })
    },
  )

  testAtLength('can be loaded by pages of other origins', async () => {
    await using service = await startService()
    const { status, headers } = await service.call('GET', '/client.js')
    expect([status, headers.get('access-control-allow-origin')]).toEqual([200, '*'])
    expect(headers.get('content-type')).toBe('text/javascript; charset=utf-8')
    const state = await service.call('GET', '/state.js')
    expect(state.body).toMatch(/^import\{[\w,\s]+\}from"\.\/client\.js";/)
    expect(state.headers.get('access-control-allow-origin')).toBe('*')
  })
})

describe('an external program', () => {
  test.each(['node', 'node22'] as const)('runs under %s, and ends by itself', async (node) => {
    await using service = await startService({ listen: true })
    consumer.write({ 'main.js': program })
    expect(await consumer[node]('main.js', service.base)).toEqual({
      exitCode: 0,
      output: 'hello 300000 true true\n',
    })
  })

  test('gets an error without a WebSocket', async () => {
    consumer.write({
      'none.js': `import { createClient } from 'hostline-client'
        delete globalThis.WebSocket
        await createClient({ baseUrl: 'http://localhost' }).connect().catch(({ message }) => console.log(message))`,
    })
    const { output } = await consumer.node('none.js')
    expect(output).toBe('no WebSocket here: give createClient one\n')
  })

  test('runs with the globals of React Native only', async () => {
    await using service = await startService({ listen: true })
    consumer.write({ 'main.js': app, 'native.js': reactNative })
    const options = ['--bundle', '--format=iife', '--outfile=app.js']
    expect(await consumer.tool('esbuild', 'main.js', ...options)).toMatchObject({ exitCode: 0 })
    const { output } = await consumer.node('native.js', service.base)
    expect(output).toBe('hello ada@example.com ada@example.com undefined\nClosedError\n')
  })

  testAtLength('runs when bundled by esbuild', async () => {
    await using service = await startService({ listen: true })
    consumer.write({ 'main.js': program })
    const options = ['--bundle', '--platform=node', '--format=esm', '--outfile=bundled.mjs']
    const bundled = await consumer.tool('esbuild', 'main.js', '--external:ws', ...options)
    expect(bundled).toMatchObject({ exitCode: 0 })
    expect((await consumer.node('bundled.mjs', service.base)).output).toBe(
      'hello 300000 true true\n',
    )
  })
})

/** A program in a realm with only the globals that React Native documents: no crypto, no EventTarget, no locks, no
 *  streams, signals without reasons, and an asynchronous storage. */
const reactNative = `
import { readFileSync } from 'node:fs'
import { createContext, runInContext } from 'node:vm'
import { WebSocket } from 'ws'

class Controller {
  own = new AbortController()
  signal = Object.defineProperty(this.own.signal, 'reason', { value: undefined })
  abort() { this.own.abort() }
}
const device = new Map()
const AsyncStorage = {
  getAllKeys: async () => [...device.keys()],
  getItem: async (key) => device.get(key) ?? null,
  setItem: async (key, value) => { device.set(key, value) },
  removeItem: async (key) => { device.delete(key) },
}
const given = { fetch, Headers, Request, Response, FormData, Blob, WebSocket, AbortController: Controller, AsyncStorage,
  setTimeout, clearTimeout, queueMicrotask, console, baseUrl: process.argv[2], navigator: { product: 'ReactNative' } }
const realm = createContext(given)
const source = readFileSync('app.js', 'utf8')
runInContext(source, realm)
`
const app = `
import { asyncStorage, createClient } from 'hostline-client'
const open = async () => createClient({ baseUrl, storage: await asyncStorage(AsyncStorage) })
const start = async () => {
  const ada = await open()
  const bob = createClient({ baseUrl })
  ${meeting}
  ada.close()
  const reopened = await open()
  console.log(await heard, reopened.restore().email, (await reopened.account.get()).email, typeof crypto)
  reopened.close()
  bob.close()
  console.log(await reopened.account.get().catch(({ name }) => name))
}
start()
`

const typed = `
import { openInbox, openThread } from 'hostline-client/state'
import * as preact from 'hostline-client/preact'
import * as react from 'hostline-client/react'
import * as svelte from 'hostline-client/svelte'
import {
  ApiError, createClient, type ConversationPage, type EventType, type Message, type Ticket, type UploadedFile,
} from 'hostline-client'
const client = createClient({ baseUrl: 'http://localhost:3000', WebSocket })
client.on('new_message', ({ message }) => console.log(message.body, message satisfies Message))
client.on('notification', ({ unread_count }) => unread_count satisfies number)
const ticket: Ticket = await client.tickets.create({ subject: 'Help', body: 'It is broken.' })
const { data } = await client.request('GET /v1/admin/users', { query: { q: 'ada' } })
console.log(data[0]?.email, ticket.status)
for await (const { participant } of client.conversations.each()) console.log(participant.id)
const files: UploadedFile[] = [await client.files.upload(new Blob(['x']), { name: 'x' })]
await client.tickets.reply(ticket.id, { body: 'See here.', attachments: files })
await client.tickets.reply(ticket.id, { body: 'And here.', attachments: files.map(({ file_url }) => ({ file_url })) })
const inbox = openInbox(client)
inbox.getSnapshot().items[0]?.participant.display_name satisfies string | undefined
const thread = react.useStore(() => openThread(client, 'id'), [])
void thread?.send({ body: thread.isTyping ? '' : thread.items.map(({ body }) => body).join() })
preact.useStore(() => openInbox(client), [])?.hasMore satisfies boolean | undefined
svelte.useStore(openThread, client, 'id').subscribe(({ items }) => items satisfies readonly Message[])
const events: EventType[] = ['user.created']
await client.request('POST /v1/admin/webhooks', { body: { url: 'https://example.com', events } })
const first = await client.request('GET /v1/chat/conversations', { query: { limit: 5 }, headers: undefined })
first.pagination.cursor satisfies string | null
const numbered: ConversationPage = await client.request('GET /v1/chat/conversations', { query: { page: 2 } })
numbered.pagination.total satisfies number
const held: Message[] = (await client.messages.list('id')).data
for (const message of held) {
  if (message.type === 'file') message.file_url satisfies string
  else message.file_url satisfies null
}
try {
  await client.login({ email: 'a', password: 'b' })
} catch (error) {
  if (error instanceof ApiError && error.reason === 'totp_required') console.log(error.details?.['code'])
}
await client.connect({ since: client.newestMessageId() })
client.close()
`
const mistakes = [
  `await client.tickets.create({ titel: 'Help', subject: 'a', body: 'b' })`,
  `client.on('new_mesage', () => {})`,
  `await client.request('GET /v1/nothing')`,
  `await client.request('POST /v1/reports', {})`,
  `void (await client.account.get()).emial`,
  `await client.conversations.list({ limit: 5 })`,
  `void inbox.getSnapshot().itmes`,
  `void thread?.itmes`,
  `svelte.useStore(openThread, client, 1)`,
  `void first.pagination.total`,
  `void numbered.pagination.cursor`,
  `await client.request('GET /v1/chat/conversations', { query: { limit: 5, pgae: 1 } })`,
]
const settings = (more: object) =>
  JSON.stringify({
    compilerOptions: {
      strict: true,
      noEmit: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: false,
      module: 'NodeNext',
      target: 'ES2022',
      ...more,
    },
    include: ['typed.ts'],
  })

describe('a strict project', () => {
  const write = (more: object, socket: string) =>
    consumer.write({
      'typed.ts': socket + typed + mistakes.map(expectError).join(''),
      'tsconfig.json': settings(more),
    })

  testAtLength('for browsers compiles with TypeScript 5, and misspelt names fail', async () => {
    write({ lib: ['ES2022', 'DOM'], types: [] }, '')
    expect(await consumer.tool('tsc', '--project', '.')).toEqual({ exitCode: 0, output: '' })
  })

  testAtLength('for Node compiles with it, too', async () => {
    write({ lib: ['ES2022'], types: ['node'] }, `import { WebSocket } from 'ws'`)
    expect(await consumer.check('--project', '.')).toEqual({ exitCode: 0, output: '' })
  })
})
