import { describe, expect, test } from 'bun:test'
import { cpSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { nextPosition, parsePosition, positionName } from '../src/replication/log.ts'
import { startBucket } from './support/bucket.ts'
import { hostline } from './support/command.ts'
import { executable } from './support/executable.ts'
import { size, testAtLength } from './support/faults.ts'
import { fetchFile, upload } from './support/files.ts'
import { startNode } from './support/nodes.ts'
import type { ObjectStore } from './support/object-store.ts'
import { call, meet } from './support/process.ts'
import { find, replicas, say, saySurely } from './support/replicas.ts'
import { aWhile, waitFor, waitOut } from './support/wait.ts'

/** A request may take a third of the lease, at most 5 s: with the usual lease a busy machine repeats some. */
const byBucket = { environment: { REPLICA_ACK: 'bucket', REPLICA_LEASE: '60' } }
const day = 86_400_000
/** Longer than the timeout of a write. */
const outage = size(600_000, 5_500, 0)
const longest = 900_000

const count = (text: string, part: string) =>
  text.split('\n').filter((line) => line.includes(part)).length

/** Repeats `work` for so long, at least once. */
async function during(milliseconds: number, work: () => Promise<unknown>) {
  const end = performance.now() + milliseconds
  do {
    await work()
    await aWhile(50)
  } while (performance.now() < end)
}

/** The key of the next entry. */
function nextKey(store: ObjectStore) {
  const last = parsePosition(store.keys('log/').at(-1)?.slice('log/'.length) ?? '')
  if (!last) throw new Error('there is no log')
  return `log/${positionName(nextPosition(last, { kind: 'beat' }))}`
}

// Concurrent, because they wait for time to pass.
describe.concurrent('a bucket', () => {
  testAtLength(
    'that is away: the disk acknowledges, and the bucket has everything once it is back',
    async () => {
      await using place = await replicas()
      const service = await place.start('a')
      const people = await service.pair()
      const said: string[] = []
      await place.hasBegun()
      place.store.faults.away = true
      await during(outage, async () => {
        said.push(`message ${said.length}`)
        expect((await say(service, people, said.at(-1) ?? '')).status).toBe(201)
      })
      await waitFor(() => count(service.log(), 'the bucket stores nothing') === 1)
      place.store.faults.away = false
      await place.has(said)
      expect(count(service.log(), 'the bucket stores nothing')).toBe(1)
    },
    longest,
  )

  testAtLength(
    'that is away: writes waiting for it are refused, reads continue, and a retry duplicates nothing',
    async () => {
      await using place = await replicas()
      const service = await place.start('a', byBucket)
      const people = await service.pair()
      await saySurely(service, people, 'before')
      place.store.faults.away = true
      const answers = async () => {
        const sent = await say(service, people, 'meanwhile')
        const path = `/v1/chat/conversations/${people.conversationId}/messages`
        const read = await service.call('GET', path, { token: people.a.token })
        const ready = await service.call('GET', '/readyz')
        return [sent.status, sent.headers.get('retry-after'), read.status, ready.status]
      }
      await during(outage - 5_000, async () => {
        expect(await answers()).toEqual([503, '2', 200, 503])
      })
      place.store.faults.away = false
      const isBack = async () => Bun.deepEquals(await answers(), [201, null, 200, 200])
      await waitFor(isBack, 'the server to store writes')
      expect(await place.messages()).toEqual(['before', 'meanwhile'])
    },
    longest,
  )

  testAtLength(
    'that is away beyond the memory limit gets a snapshot, after which the log continues',
    async () => {
      await using place = await replicas()
      const service = await place.start('a')
      const people = await service.pair()
      await place.hasBegun()
      place.store.faults.away = true
      service.sqlite.run('CREATE TABLE filler (bytes BLOB)')
      for (let n = 0; n < 10; n++)
        service.sqlite.run('INSERT INTO filler VALUES (zeroblob(7000000))')
      await saySurely(service, people, 'one')
      place.store.faults.away = false
      await saySurely(service, people, 'two')
      await place.has(['one', 'two'])
      expect(place.store.keys('snapshots/').filter((key) => key.endsWith('manifest'))).toHaveLength(
        2,
      )
    },
  )

  testAtLength(
    'that takes the first snapshot slowly: the start waits for it and for its entry',
    async () => {
      await using place = await replicas()
      // The parts of a snapshot take longer than a write may wait, and the entry longer than a check for waiting ones.
      place.store.faults.beforePut = (key) => waitOut(key.startsWith('snapshots/') ? 2_700 : 500)
      const service = await place.start('a', byBucket)
      expect(service.log()).not.toContain('no link for the first admin')
      expect((await say(service, await service.pair(), 'one')).status).toBe(201)
    },
  )

  testAtLength(
    'that refuses the first snapshot once: a write that waits is acknowledged with the next one',
    async () => {
      await using place = await replicas()
      const { faults } = place.store
      let asked = 0
      // With 403, after which a snapshot begins again.
      faults.random = () => 0.9
      faults.beforePut = (key) => {
        if (key.startsWith('snapshots/')) faults.full = asked++ === 0
      }
      const service = await place.start('a', byBucket)
      // A refused piece, then the piece and the manifest.
      expect(asked).toBe(3)
      expect(service.log()).not.toContain('no link for the first admin')
    },
  )

  testAtLength(
    'that takes nothing of the first start of a pair: that ends and says so',
    async () => {
      await using place = await replicas()
      // By then the claim has got its response.
      place.store.faults.beforePut = (key) => {
        if (key.startsWith('snapshots/')) place.store.faults.errors = 1
      }
      const environment = { ...byBucket.environment, REPLICA_PAIR: 'true', REPLICA_LEASE: '1' }
      // In a process of its own, which a refused start ends with all that it began.
      const options = { dataDir: place.directory('a'), bucket: place.store.url, environment }
      await using node = await startNode(options)
      expect(await node.exited).toBe(1)
      await node.says('hostline: unavailable: the bucket stores nothing\n')
    },
  )

  testAtLength(
    'whose snapshots cannot be read: the server starts, and refuses writes until they can',
    async () => {
      await using place = await replicas()
      const first = await place.start('a', byBucket)
      await place.hasBegun()
      await first.stop()
      const manifest = place.store.keys('snapshots/').find((key) => key.endsWith('/manifest')) ?? ''
      const bytes = place.store.get(manifest) ?? Buffer.of()
      place.store.put(manifest, Buffer.from('{"format":2}'))
      const options = { dataDir: place.directory('a'), bucket: place.store.url, ...byBucket }
      await using node = await startNode(options)
      await node.says('listens on')
      expect(await call(node.base, 'GET', '/readyz')).toMatchObject({ status: 503 })
      expect(node.output()).toContain('no link for the first admin')
      place.store.put(manifest, bytes)
      await node.ready()
    },
    longest,
  )

  testAtLength(
    'that is full: the service continues and logs it once, and everything is stored when there is room',
    async () => {
      await using place = await replicas()
      const service = await place.start('a')
      const people = await service.pair()
      await place.hasBegun()
      place.store.faults.full = true
      expect((await say(service, people, 'one')).status).toBe(201)
      await waitFor(() => service.log().includes('QuotaExceeded'))
      place.store.faults.full = false
      await place.has(['one'])
      expect(count(service.log(), 'QuotaExceeded')).toBe(1)
    },
  )

  test('with another secret: the server reports it and serves, and a restore leaves nothing behind', async () => {
    await using place = await replicas()
    const bucket = place.store.urlOf('wrong')
    const service = await place.start('a', { bucket })
    expect((await say(service, await service.pair(), 'one')).status).toBe(201)
    expect(service.log()).toContain('403 SignatureDoesNotMatch')
    const { exitCode, err } = await place.restore('b', [], { bucket })
    expect([exitCode, count(err, ''), err]).toEqual([
      1,
      1,
      expect.stringContaining('403 SignatureDoesNotMatch'),
    ])
    expect(place.store.keys()).toEqual([])
  })

  testAtLength(
    'with a foreign object in the way: the server names it and continues without the log',
    async () => {
      await using place = await replicas()
      const service = await place.start('a')
      const people = await service.pair()
      await waitFor(() => place.store.keys('log/').length > 2)
      const key = nextKey(place.store)
      place.store.put(key, Buffer.from('a stranger'))
      expect((await say(service, people, 'one')).status).toBe(201)
      const line = `${key} in the bucket cannot be read: it was not written by hostline`
      await waitFor(() => service.log().includes(line))
      place.store.delete(key)
      await place.has(['one'])
      expect(count(service.log(), line)).toBe(1)
    },
  )

  test.each(['ignoresConditions', 'refusesConditions', 's3rver'] as const)(
    'without conditional writes is refused (%s)',
    async (kind) => {
      await using place = await replicas()
      await using s3rver = await startBucket()
      if (kind !== 's3rver') place.store.faults[kind] = true
      const url = kind === 's3rver' ? s3rver.url : place.store.url
      const environment = { REPLICA_S3_URL: url, PORT: '0' }
      expect(await hostline(['serve'], place.directory('a'), { environment })).toMatchObject({
        exitCode: 1,
        err: expect.stringMatching(/^hostline: the bucket does not support conditional writes .*$/),
      })
    },
  )

  test('contains an entry with a lost response once', async () => {
    await using place = await replicas()
    const service = await place.start('a', byBucket)
    const people = await service.pair()
    const { faults } = place.store
    faults.afterPut = (key) => {
      if (key.startsWith('log/')) Object.assign(faults, { away: true, afterPut: undefined })
    }
    place.store.resetCounts()
    const sent = say(service, people, 'one')
    await waitFor(() => faults.away)
    faults.away = false
    expect((await sent).status).toBe(201)
    expect(place.store.counts['PUT 412']).toBe(1)
    expect(await place.messages()).toEqual(['one'])
  })

  testAtLength(
    'keeps objects for a restore within the retention days, and deletes older ones with the next snapshot',
    async () => {
      await using place = await replicas()
      const { store } = place
      const service = await place.start('a', byBucket)
      const people = await service.pair()
      const [entry = ''] = store.keys('log/')
      const [piece = ''] = store.keys('snapshots/')
      await saySurely(service, people, 'one')
      // One an hour is kept.
      store.age(day / 12)
      const { exitCode } = await place.snapshot('a')
      expect([exitCode, store.get(entry), store.get(piece)]).toEqual([
        0,
        expect.anything(),
        expect.anything(),
      ])
      store.age(8 * day)
      await saySurely(service, people, 'two')
      expect(await place.snapshot('a')).toMatchObject({ exitCode: 0, err: '' })
      expect([store.get(entry), store.get(piece)]).toEqual([undefined, undefined])
      expect(await place.messages()).toEqual(['one', 'two'])
    },
  )

  // At `beforePut` the parts exist; at `afterPut` the outdated objects still do.
  testAtLength.each(['beforePut', 'afterPut'] as const)(
    'is complete after a kill at the end of a snapshot, and old objects are deleted later (%s)',
    async (hook) => {
      await using place = await replicas()
      const { store } = place
      const options = { dataDir: place.directory('a'), bucket: store.url, ...byBucket }
      cpSync((await executable()).emptyData, options.dataDir, { recursive: true })
      const node = await startNode(options)
      await node.ready()
      const { a, conversationId } = await meet(node.base)
      const said: string[] = []
      const send = async (base: string) => {
        const text = `message ${said.length}`
        const path = `/v1/chat/conversations/${conversationId}/messages`
        const body = { body: text, client_id: text }
        const { status } = await call(base, 'POST', path, { token: a.token, body })
        if (status === 201) said.push(text)
      }
      await send(node.base)
      const old = store.keys().filter((key) => /^log|^snap/.test(key))
      store.age(8 * day)
      store.faults[hook] = async (key) => {
        if (!key.endsWith('/manifest')) return
        store.faults[hook] = undefined
        await node.end('SIGKILL')
      }
      await place.snapshot('a')
      await node.exited
      // The last write may be stored without a response.
      expect((await place.messages()).slice(0, said.length)).toEqual(said)
      expect(store.keys()).toEqual(expect.arrayContaining(old))
      const half = store.keys('snapshots/')
      await using again = await startNode(options)
      await again.ready()
      await send(again.base)
      store.age(8 * day)
      // The second one makes the first one the oldest that is needed.
      store.age(day / 12)
      await place.snapshot('a')
      store.age(8 * day)
      await place.snapshot('a')
      expect([...old, ...half].filter((key) => store.get(key))).toEqual([])
      expect(await place.messages()).toEqual(said)
    },
  )

  testAtLength('contains the changes of a command beside the server', async () => {
    await using place = await replicas()
    await place.start('a')
    await place.hasBegun()
    const args = ['user', 'create', '--email', 'ada@example.com', '--role', 'admin']
    expect(await hostline(args, place.directory('a'))).toMatchObject({ exitCode: 0 })
    const users = (path: string) => find(path, 'SELECT email FROM users')
    await place.shows((path) => users(path).includes('ada@example.com'))
  })

  testAtLength(
    'stores a large transaction as several entries, and an incomplete one is ignored after a kill',
    async () => {
      await using place = await replicas()
      const { store } = place
      const bytes = size(40, 13) * 1_048_576
      const dataDir = place.directory('a')
      cpSync((await executable()).emptyData, dataDir, { recursive: true })
      const node = await startNode({ dataDir, bucket: store.url })
      await place.hasBegun()
      const [before, ready] = [store.keys('log/').length, Promise.withResolvers<void>()]
      store.faults.beforePut = async () => {
        if (store.keys('log/').length < before + 2) return
        store.faults.beforePut = undefined
        ready.resolve(void (await node.end('SIGKILL')))
      }
      find(dataDir, `CREATE TABLE filler AS SELECT randomblob(${bytes}) AS bytes`)
      await ready.promise
      const tables = "SELECT name FROM sqlite_schema WHERE name = 'filler'"
      expect(find((await place.restored()).path, tables)).toEqual([])
      await using again = await startNode({ dataDir, bucket: store.url })
      await again.ready()
      expect(await again.end('SIGTERM')).toBe(0)
      expect(find((await place.restored()).path, 'SELECT length(bytes) FROM filler')).toEqual([
        bytes,
      ])
    },
  )

  test('takes uploaded files at once, serves them on a new machine, and loses removed ones', async () => {
    await using place = await replicas()
    const service = await place.start('a')
    const ada = await service.register()
    const { body, status } = await upload(service, ada, 'a picture')
    expect([status, place.store.keys('files/')]).toEqual([201, [`files/${body.id}`]])
    expect(readdirSync(join(place.directory('a'), 'files'))).toEqual([])
    await service.stop()
    const { name } = await place.restored()
    const restored = await place.start(name)
    expect(await (await fetchFile(restored, body.file_url)).text()).toBe('a picture')
    Object.assign(ada, await restored.login(ada.email))
    await restored.call('DELETE', `/v1/files/${body.id}`, { token: ada.token })
    await waitFor(() => place.store.keys('files/').length === 0)
  })

  testAtLength('that is away takes no uploads, also in disk mode', async () => {
    await using place = await replicas()
    const service = await place.start('a')
    const ada = await service.register()
    place.store.faults.away = true
    const { status, headers } = await upload(service, ada, 'a picture')
    expect([status, headers.get('retry-after')]).toEqual([503, '5'])
  })

  test('gets the files of a time without it, which are served meanwhile; 0.1 left marks of removed ones', async () => {
    await using place = await replicas()
    const before = await place.start('a', { environment: { REPLICA_S3_URL: '' } })
    const ada = await before.register()
    const { body } = await upload(before, ada, 'a picture')
    await before.stop()
    const files = join(place.directory('a'), 'files')
    const [removed = '', restored = ''] = ['A', 'B'].map((letter) => letter.repeat(43))
    writeFileSync(join(files, restored), 'of nobody')
    for (const name of [removed, `${removed}.removed`, `${body.id}.removed`, 'x.removed']) {
      place.store.put(`files/${name}`, Buffer.of(1))
    }
    place.store.faults.beforePut = (key) => (key.startsWith('files/') ? waitOut(200) : undefined)
    const service = await place.start('a')
    expect(await (await fetchFile(service, body.file_url)).text()).toBe('a picture')
    const expected = [`files/${body.id}`, 'files/x.removed']
    await waitFor(() => Bun.deepEquals(place.store.keys('files/'), expected.toSorted()))
    expect(readdirSync(files)).toEqual([])
    expect(await (await fetchFile(service, body.file_url)).text()).toBe('a picture')
  })
})
