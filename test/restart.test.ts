import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { stopServers } from '../src/listen.ts'
import { temporaryDirectory } from './support/directory.ts'
import { shim, size, testAtLength } from './support/faults.ts'
import { upload } from './support/files.ts'
import { startObjectStore } from './support/object-store.ts'
import { call, startServer } from './support/process.ts'
import { type Person, startService } from './support/service.ts'
import { TestSocket } from './support/socket.ts'
import { tools } from './support/tools.ts'
import { waitFor, waitOut } from './support/wait.ts'

const requests = size(500, 100)
const sockets = size(2_000, 200)
const socketsEach = 40

/** People who all talk with one host, in a data directory for successive servers. */
async function startTalks() {
  const directory = temporaryDirectory()
  const dataDir = join(directory.path, 'data')
  await using service = await startService()
  const host = await service.register('host')
  const talks: { person: Person; path: string }[] = []
  for (let n = 0; n < sockets / socketsEach; n++) {
    const person = await service.register()
    const id = await service.openConversation(host, person)
    talks.push({ person, path: `/v1/chat/conversations/${id}/messages` })
  }
  await service.stop()
  cpSync(service.directory, dataDir, { recursive: true })
  return {
    dataDir,
    host,
    talks,
    /** The host writes to everybody.
     *  @returns the ids of the messages, by recipient */
    async writeToAll(base: string, body: string) {
      const sent = talks.map(async ({ person, path }) => {
        const answer = await call(base, 'POST', path, { token: host.token, body: { body } })
        return [person.id, answer.body.id as string] as const
      })
      return new Map(await Promise.all(sent))
    },
    /** The maximum number of sockets for each person. */
    connectAll: (base: string, query: (person: Person) => string = () => '') =>
      Promise.all(
        Array.from({ length: sockets }, async (_, n) => {
          const { person } = talks[n % talks.length] ?? { person: host }
          const url = `${base.replace('http', 'ws')}/v1/chat/ws?token=${person.token}`
          return { person, socket: await TestSocket.open(url + query(person)) }
        }),
      ),
    [Symbol.dispose]: () => directory[Symbol.dispose](),
  }
}

test('a stop takes no new connection while it finishes a request', async () => {
  const { promise: body, resolve: answer } = Promise.withResolvers<string>()
  const server = Bun.serve({ port: 0, fetch: async () => new Response(await body) })
  const running = fetch(server.url)
  await waitFor(() => server.pendingRequests === 1)
  const stopped = stopServers([server], 60_000)
  const late = await fetch(server.url, { keepalive: false }).catch((error: Error) => error)
  answer('done')
  expect([late instanceof Error, await (await running).text()]).toEqual([true, 'done'])
  await stopped
})

// On a slow disk a request is accepted, and its message stored, before its response is sent.
const testWithShim = tools.gcc ? testAtLength : test.skip
testWithShim(
  'SIGTERM with requests and sockets open: each request is answered, each socket closed with 1001',
  async () => {
    using all = await startTalks()
    const { dataDir, host, talks } = all
    const environment = { LD_PRELOAD: shim(), POWER_CUT_SLOW: '2000' }
    await using server = await startServer({ dataDir, environment })
    const connected = await all.connectAll(server.base)
    let answered = 0
    const answers = Array.from({ length: requests }, async (_, n) => {
      const { path } = talks[n % talks.length] ?? { path: '' }
      const message = { token: host.token, body: { body: `message ${n}` } }
      const answer = await call(server.base, 'POST', path, message).catch(() => undefined)
      answered++
      return answer?.status ?? 'cut off'
    })
    using sqlite = new Database(join(dataDir, 'hostline.db'), { readonly: true })
    const stored = sqlite.query<{ n: number }, []>('SELECT count(*) AS n FROM messages')
    await waitFor(() => stored.get()?.n === requests, 'all messages')
    expect(answered).toBeLessThan(requests)
    const exitCode = await server.kill('SIGTERM')
    expect([exitCode, new Set(await Promise.all(answers))]).toEqual([0, new Set([201])])
    const codes = await Promise.all(connected.map(({ socket }) => socket.closed))
    expect(new Set(codes)).toEqual(new Set([1001]))
  },
)

testAtLength('a mail server that never answers does not hold up a stop', async () => {
  using folder = temporaryDirectory()
  let connections = 0
  using silent = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: { open: () => void connections++, data() {} },
  })
  const environment = { SMTP_URL: `smtp://127.0.0.1:${silent.port}` }
  await using server = await startServer({ dataDir: join(folder.path, 'data'), environment })
  for (const name of ['ada', 'bob', 'carl', 'dora']) {
    const body = { email: `${name}@example.com`, password: 'correct horse', display_name: name }
    const init = { method: 'POST', headers: { 'content-type': 'application/json' } }
    const post = (path: string, sent: object) =>
      fetch(`${server.base}/v1/auth/${path}`, { ...init, body: JSON.stringify(sent) })
    expect((await post('register', body)).status).toBe(201)
    expect((await post('password/forgot', { email: body.email })).status).toBe(204)
  }
  await waitFor(() => connections === 2)
  const late = waitOut(15_000).then(() => 'runs')
  expect(await Promise.race([server.kill('SIGTERM'), late])).toBe(0)
})

testAtLength(
  'a bucket that never answers does not hold up a stop, and removals go on',
  async () => {
    await using store = await startObjectStore()
    using folder = temporaryDirectory()
    const dataDir = join(folder.path, 'data')
    const environment = { FILES_S3_URL: store.url }
    const service = await startService({ dataDir, environment })
    const ada = await service.register()
    const { id } = (await upload(service, ada, 'x')).body
    await service.stop()
    store.faults.hangs = 1
    await using server = await startServer({ dataDir, environment })
    const asked = { method: 'DELETE', headers: { authorization: `Bearer ${ada.token}` } }
    expect((await fetch(`${server.base}/v1/files/${id}`, asked)).status).toBe(204)
    await waitOut(1_000)
    const late = waitOut(10_000).then(() => 'runs')
    expect(await Promise.race([server.kill('SIGTERM'), late])).toBe(0)
    await waitFor(() => server.output().includes('"stopped"'))
    store.faults.hangs = 0
    await using again = await startService({ dataDir, environment })
    await waitFor(() => again.sqlite.query('SELECT 1 FROM outbox').get() === null)
    expect(store.keys()).toEqual([])
  },
)

testAtLength(
  'after a restart all sockets return at once: each catches up, and others are served',
  async () => {
    using all = await startTalks()
    const { dataDir, host } = all
    const first = await startServer({ dataDir })
    const known = await all.writeToAll(first.base, 'known')
    const missed = [await all.writeToAll(first.base, 'missed')]
    await first.kill('SIGKILL')

    await using server = await startServer({ dataDir })
    missed.push(await all.writeToAll(server.base, 'missed, too'))
    const startedAt = performance.now()
    let isOver = false
    const others = (async () => {
      let slowest = 0
      while (!isOver) {
        const askedAt = performance.now()
        const { status } = await call(server.base, 'GET', '/v1/chat/conversations', host)
        expect(status).toBe(200)
        slowest = Math.max(slowest, performance.now() - askedAt)
      }
      return slowest
    })()
    const connected = await all.connectAll(server.base, ({ id }) => `&since=${known.get(id)}`)
    missed.push(await all.writeToAll(server.base, 'live'))
    const expected = (id: string) => missed.map((messages) => messages.get(id))
    const caughtUp = connected.map(({ socket }) =>
      waitFor(() => socket.frames.length >= missed.length, 'the missed messages', 20_000),
    )
    await Promise.all(caughtUp)
    const tookMilliseconds = performance.now() - startedAt
    isOver = true
    const slowest = await others
    console.log(
      `${sockets} sockets caught up in ${tookMilliseconds.toFixed(0)} ms; others waited ${slowest.toFixed(0)} ms at most`,
    )
    for (const { person, socket } of connected) {
      expect(socket.frames.map(({ message }) => message?.id)).toEqual(expected(person.id))
    }
  },
)
