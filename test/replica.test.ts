import { expect, test } from 'bun:test'
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryDirectory } from './support/directory.ts'
import { executable } from './support/executable.ts'
import { size, testAtLength } from './support/faults.ts'
import { command, startNode } from './support/nodes.ts'
import { startObjectStore } from './support/object-store.ts'
import { allMessages, call, meet, served } from './support/process.ts'
import { waitFor } from './support/wait.ts'

type People = Awaited<ReturnType<typeof meet>>

/** Sends so many messages, each acknowledged. */
async function say(base: string, { a, conversationId }: People, count: number) {
  const path = `/v1/chat/conversations/${conversationId}/messages`
  for (let n = 0; n < count; n++) {
    const message = { body: `message ${n}`, client_id: crypto.randomUUID() }
    const sent = await served(() => call(base, 'POST', path, { token: a.token, body: message }))
    expect(sent.status).toBe(201)
  }
}

/** Resolves when the bucket has everything. */
const isInStep = (base: string) =>
  waitFor(async () => {
    const metrics = await fetch(`${base}/metrics`).then((answer) => answer.text())
    return metrics.includes('hostline_replica_lag_seconds 0\n')
  }, 'the bucket to have everything')

async function bucketAndFolder() {
  const [store, folder] = [await startObjectStore(), temporaryDirectory()]
  const directory = (name: string) => join(folder.path, name)
  return {
    store,
    directory,
    /** A data directory with an empty database. */
    async prepared(name: string) {
      cpSync((await executable()).emptyData, directory(name), { recursive: true })
      return directory(name)
    },
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]()
      folder[Symbol.dispose]()
    },
  }
}

test.concurrent('writes acknowledged with the bucket survive the machine', async () => {
  await using place = await bucketAndFolder()
  const bucket = place.store.url
  const environment = { REPLICA_ACK: 'bucket' }
  const first = await startNode({ dataDir: await place.prepared('a'), bucket, environment })
  await first.ready()
  const people = await meet(first.base)
  await say(first.base, people, 5)
  await first.end('SIGKILL')
  const restored = await command(place.directory('b'), bucket, ['restore', 's3'])
  expect(restored).toEqual({
    code: 0,
    out: expect.stringContaining('is now the state of the bucket'),
    err: '',
  })
  await using second = await startNode({ dataDir: place.directory('b'), bucket, environment })
  await second.ready()
  expect(await allMessages(second.base, people.conversationId, people.a.token)).toHaveLength(5)
})

testAtLength.concurrent('a stopped server has shipped everything', async () => {
  await using place = await bucketAndFolder()
  const bucket = place.store.url
  const first = await startNode({ dataDir: await place.prepared('a'), bucket })
  await first.ready()
  const people = await meet(first.base)
  await say(first.base, people, 5)
  expect(await first.end('SIGTERM')).toBe(0)
  await command(place.directory('b'), bucket, ['restore', 's3'])
  await using second = await startNode({ dataDir: place.directory('b'), bucket })
  await second.ready()
  expect(await allMessages(second.base, people.conversationId, people.a.token)).toHaveLength(5)
})

test.concurrent.each(['bucket', 'disk'].slice(0, size(2, 2, 1)))(
  'a standby takes over, the former leader returns, and the lead is handed over (%s)',
  async (ack) => {
    await using place = await bucketAndFolder()
    const bucket = place.store.url
    const environment = { REPLICA_ACK: ack, REPLICA_PAIR: 'true', REPLICA_LEASE: '4' }
    const a = await startNode({ dataDir: await place.prepared('a'), bucket, environment })
    await a.ready()
    const dataDir = place.directory('b')
    await using b = await startNode({ dataDir, bucket, environment, args: ['standby'] })
    await b.says('follows the log')
    const people = await meet(a.base)
    await say(a.base, people, 5)
    await a.end(ack === 'disk' ? 'SIGTERM' : 'SIGKILL')
    await b.ready()
    await say(b.base, people, 5)
    await using again = await startNode({ ...a, bucket, environment })
    await again.says('follows the log')
    expect(await command(dataDir, bucket, ['hand-over'])).toMatchObject({ code: 0 })
    expect(await b.exited).toBe(0)
    await again.ready()
    expect(await allMessages(again.base, people.conversationId, people.a.token)).toHaveLength(10)
  },
)

testAtLength.concurrent.each(['SIGTERM', 'SIGKILL'] as const)(
  'a server continues shipping after %s and commands meanwhile, without a new snapshot',
  async (signal) => {
    await using place = await bucketAndFolder()
    const options = { dataDir: await place.prepared('a'), bucket: place.store.url }
    const first = await startNode(options)
    await first.ready()
    const people = await meet(first.base)
    await waitFor(() => place.store.keys('log/').length > 2, 'the first pages')
    await say(first.base, people, 5)
    await first.end(signal)
    const list = await command(options.dataDir, options.bucket, ['user', 'list'])
    expect(list.code).toBe(0)
    await command(options.dataDir, options.bucket, ['check'])
    await using second = await startNode(options)
    await second.ready()
    await say(second.base, people, 5)
    await second.end('SIGTERM')
    expect(place.store.keys('snapshots/').filter((key) => key.endsWith('manifest'))).toHaveLength(1)
    await command(place.directory('b'), options.bucket, ['restore', 's3'])
    await using third = await startNode({ ...options, dataDir: place.directory('b') })
    await third.ready()
    expect(await allMessages(third.base, people.conversationId, people.a.token)).toHaveLength(10)
  },
)

testAtLength.concurrent('a restarted server with nothing to ship has no lag', async () => {
  await using place = await bucketAndFolder()
  const dataDir = await place.prepared('a')
  const admin = ['--email', 'root@example.com', '--role', 'admin']
  await command(dataDir, place.store.url, ['user', 'create', ...admin])
  const options = { dataDir, bucket: place.store.url, environment: { REPLICA_ACK: 'bucket' } }
  const first = await startNode(options)
  await first.ready()
  await first.end('SIGTERM')

  await using second = await startNode(options)
  await second.ready()

  await isInStep(second.base)
})

testAtLength.concurrent(
  'a second server on the same directory does not end the term of the first',
  async () => {
    await using place = await bucketAndFolder()
    const options = { dataDir: await place.prepared('a'), bucket: place.store.url }
    await using first = await startNode(options)
    await first.ready()
    await isInStep(first.base)
    const before = place.store.keys('log/')
    await using second = await startNode(options)
    expect(await second.exited).toBe(1)
    expect(second.output()).toContain('another hostline is already running')
    const added = place.store.keys('log/').filter((key) => !before.includes(key))
    const [term = ''] = before.at(-1)?.split('-') ?? []
    expect(added.filter((key) => !key.startsWith(`${term}-`))).toEqual([])
    await say(first.base, await meet(first.base), 1)
  },
)

testAtLength.concurrent(
  'a server that started without the bucket serves, and ends on request',
  async () => {
    await using place = await bucketAndFolder()
    place.store.faults.away = true
    const dataDir = await place.prepared('a')
    await using server = await startNode({ dataDir, bucket: place.store.url })
    await server.ready()
    await say(server.base, await meet(server.base), 1)
    expect(await server.end('SIGTERM')).toBe(0)
  },
)

testAtLength.concurrent('a restore ignores the WAL of a deleted database', async () => {
  await using place = await bucketAndFolder()
  const options = { dataDir: await place.prepared('a'), bucket: place.store.url }
  const first = await startNode(options)
  await first.ready()
  const people = await meet(first.base)
  await say(first.base, people, 3)
  await first.end('SIGTERM')
  const second = await startNode({ ...options, environment: { REPLICA_S3_URL: '' } })
  await second.ready()
  await say(second.base, people, 2)
  await second.end('SIGKILL')
  rmSync(join(options.dataDir, 'hostline.db'))
  expect(await command(options.dataDir, options.bucket, ['restore', 's3'])).toMatchObject({
    code: 0,
  })
  await using third = await startNode(options)
  await third.ready()
  expect(await allMessages(third.base, people.conversationId, people.a.token)).toHaveLength(3)
})
