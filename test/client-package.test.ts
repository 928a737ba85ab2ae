import { afterAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { clientScript } from '../scripts/build-client.ts'
import { generateTypes } from '../scripts/client-types.ts'
import { createConsumer, expectError } from './support/consumers.ts'
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
  test('is one module of at most 8 KB compressed, without dependencies, with the service’s version', async () => {
    const own = await manifest('client/package.json')
    expect(Bun.gzipSync(clientScript(), { level: 9 }).length).toBeLessThan(8_192)
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

  test('has types that match the service’s descriptions', async () => {
    const path = join(project, 'client/src/schema.ts')
    expect(await Bun.file(path).text()).toBe(await generateTypes())
  })

  test('can be loaded by pages of other origins', async () => {
    await using service = await startService()
    const { status, headers } = await service.call('GET', '/client.js')
    expect([status, headers.get('access-control-allow-origin')]).toEqual([200, '*'])
    expect(headers.get('content-type')).toBe('text/javascript; charset=utf-8')
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
import { ApiError, createClient, type Message, type Ticket } from 'hostline-client'
const client = createClient({ baseUrl: 'http://localhost:3000', WebSocket })
client.on('new_message', ({ message }) => console.log(message.body, message satisfies Message))
client.on('notification', ({ unread_count }) => unread_count satisfies number)
const ticket: Ticket = await client.tickets.create({ subject: 'Help', body: 'It is broken.' })
const { data } = await client.request('GET /v1/admin/users', { query: { q: 'ada' } })
console.log(data[0]?.email, ticket.status)
for await (const { participant } of client.conversations.each()) console.log(participant.id)
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

  test('for browsers compiles with TypeScript 5, and misspelt names fail', async () => {
    write({ lib: ['ES2022', 'DOM'], types: [] }, '')
    expect(await consumer.tool('tsc', '--project', '.')).toEqual({ exitCode: 0, output: '' })
  })

  testAtLength('for Node compiles with it, too', async () => {
    write({ lib: ['ES2022'], types: ['node'] }, `import { WebSocket } from 'ws'`)
    expect(await consumer.check('--project', '.')).toEqual({ exitCode: 0, output: '' })
  })
})
