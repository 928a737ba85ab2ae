import { describe, expect, test } from 'bun:test'
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isoTime } from '../src/lib/clock.ts'
import { decodeEntry, nextPosition, parsePosition, positionName } from '../src/replication/log.ts'
import { startBucket } from './support/bucket.ts'
import { hostline } from './support/command.ts'
import { executable } from './support/executable.ts'
import { size, testAtLength } from './support/faults.ts'
import { fetchFile, upload } from './support/files.ts'
import { startNode } from './support/nodes.ts'
import type { ObjectStore } from './support/object-store.ts'
import { call, meet } from './support/process.ts'
import { find, replicas, say } from './support/replicas.ts'
import { aWhile, waitFor } from './support/wait.ts'

const byBucket = { environment: { REPLICA_ACK: 'bucket' } }
const day = 86_400_000
/** Longer than the timeout of a write. */
const outage = size(600_000, 5_500, 0)
const longest = size(900_000, 60_000)
const patience = 60_000

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

/** The time of the last entry, by the clock of the store. */
async function newestTime(store: ObjectStore) {
  const bytes = store.get(store.keys('log/').at(-1) ?? '') ?? Buffer.of()
  return new Date((await decodeEntry(bytes)).entry.at).toISOString()
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

  test(
    'that is away: writes waiting for it are refused, reads continue, and a retry duplicates nothing',
    async () => {
      await using place = await replicas()
      const service = await place.start('a', byBucket)
      const people = await service.pair()
      expect((await say(service, people, 'before')).status).toBe(201)
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
      const isBack = async () => (await service.call('GET', '/readyz')).status === 200
      await waitFor(isBack, 'the server to be ready', patience)
      expect(await answers()).toEqual([201, null, 200, 200])
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
      await say(service, people, 'one')
      place.store.faults.away = false
      await say(service, people, 'two')
      await place.has(['one', 'two'])
      expect(place.store.keys('snapshots/').filter((key) => key.endsWith('manifest'))).toHaveLength(
        2,
      )
    },
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
      const line = `${key} is not an entry (it was not written by hostline): remove this object`
      await waitFor(() => service.log().includes(line))
      place.store.delete(key)
      await place.has(['one'])
      expect(count(service.log(), line)).toBe(1)
    },
  )

  test.each(['ignoresConditions', 'refusesConditions', 's3rver'] as const)(
    'without conditional writes is reported at start: usable for backup, not for a pair (%s)',
    async (kind) => {
      await using place = await replicas()
      await using s3rver = await startBucket()
      if (kind !== 's3rver') place.store.faults[kind] = true
      const options = kind === 's3rver' ? { bucket: s3rver.url } : {}
      const first = await place.start('a', options)
      expect(
        count(first.log(), 'the bucket does not support conditional writes (If-None-Match)'),
      ).toBe(1)
      const people = await first.pair()
      await say(first, people, 'one')
      await first.stop()
      const second = await place.start('a', options)
      await say(second, people, 'two')
      await second.stop()
      expect(await place.messages([], options)).toEqual(['one', 'two'])
      const environment = { ...place.environmentOf(options), REPLICA_PAIR: 'true', PORT: '0' }
      expect(await hostline(['serve'], place.directory('a'), { environment })).toMatchObject({
        exitCode: 1,
        err: expect.stringMatching(
          /^hostline: the bucket does not support conditional writes .*REPLICA_PAIR=false$/,
        ),
      })
    },
  )

  testAtLength.each([-1_200_000, 1_200_000])(
    'with a clock off by %p ms accepts entries, and its time is used',
    async (clockOffset) => {
      await using place = await replicas()
      Object.assign(place.store.faults, { clockOffset })
      const service = await place.start('a', byBucket)
      const people = await service.pair()
      await say(service, people, 'one')
      const between = await newestTime(place.store)
      await say(service, people, 'two')
      expect(await place.messages()).toEqual(['one', 'two'])
      expect(await place.messages(['--at', between])).toEqual(['one'])
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
      const options = { environment: { REPLICA_ACK: 'bucket', REPLICA_KEEP: '2' } }
      const service = await place.start('a', options)
      const people = await service.pair()
      const [entry = ''] = store.keys('log/')
      const [piece = ''] = store.keys('snapshots/')
      const times: string[] = []
      while (store.get(entry) || store.get(piece)) {
        await say(service, people, `day ${times.length}`)
        times.push(await newestTime(store))
        store.faults.clockOffset += day
        await say(service, people, `night ${times.length}`)
      }
      expect(times.length).toBeGreaterThan(2)
      expect(await place.messages(['--at', times[0] ?? ''])).toMatch(/no snapshot/)
      expect(await place.messages(['--at', times.at(-1) ?? ''])).toHaveLength(2 * times.length - 1)
      await service.stop()
      store.faults.clockOffset += 100 * day
      const left = store.keys('log/')
      const again = await place.start('a', options)
      let later = 0
      await waitFor(async () => {
        await say(again, people, `later ${++later}`)
        store.faults.clockOffset += day
        return !left.some((key) => store.get(key))
      }, 'the trimming')
      expect(await place.messages()).toHaveLength(2 * times.length + later)
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
      store.faults.clockOffset += 8 * day
      store.faults[hook] = async (key) => {
        if (!key.endsWith('/manifest')) return
        store.faults[hook] = undefined
        await node.end('SIGKILL')
      }
      while (store.faults[hook]) await send(node.base).catch(() => {})
      await node.exited
      // The last write may be stored without a response.
      expect((await place.messages()).slice(0, said.length)).toEqual(said)
      expect(store.keys()).toEqual(expect.arrayContaining(old))
      const half = store.keys('snapshots/')
      await using again = await startNode(options)
      await again.ready()
      await waitFor(async () => {
        store.faults.clockOffset += 8 * day
        await send(again.base)
        return ![...old, ...half].some((key) => store.get(key))
      })
      expect(await place.messages()).toEqual(said)
    },
  )

  testAtLength(
    'contains the changes of a command beside the server within three seconds',
    async () => {
      await using place = await replicas()
      await place.start('a')
      await place.hasBegun()
      const args = ['user', 'create', '--email', 'ada@example.com', '--role', 'admin']
      expect(await hostline(args, place.directory('a'))).toMatchObject({ exitCode: 0 })
      const users = (path: string) => find(path, 'SELECT email FROM users')
      await place.shows((path) => users(path).includes('ada@example.com'), 3_000)
    },
  )

  test('stores a large transaction as several entries, and an incomplete one is ignored after a kill', async () => {
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
    expect(find((await place.restored()).path, 'SELECT length(bytes) FROM filler')).toEqual([bytes])
  })

  test('contains uploaded files, and a new machine serves them at once', async () => {
    await using place = await replicas()
    const service = await place.start('a', byBucket)
    const { body, status } = await upload(service, await service.register(), 'a picture')
    expect([status, place.store.keys('files/')]).toEqual([201, [`files/${body.id}`]])
    const { name, path } = await place.restored()
    expect(readFileSync(join(path, 'files', body.id), 'utf8')).toBe('a picture')
    rmSync(join(path, 'files'), { recursive: true })
    const restored = await place.start(name)
    expect(await (await fetchFile(restored, body.file_url)).text()).toBe('a picture')
  })

  testAtLength('gets uploaded files also in disk mode, and after an outage', async () => {
    await using place = await replicas()
    const service = await place.start('a')
    const ada = await service.register()
    const first = await upload(service, ada, 'one')
    await waitFor(() => place.store.get(`files/${first.body.id}`))
    place.store.faults.away = true
    const second = await upload(service, ada, 'two')
    expect(second.status).toBe(201)
    place.store.faults.away = false
    await service.stop()
    await place.start('a')
    await waitFor(() => place.store.get(`files/${second.body.id}`))
  })

  test('that is away keeps no removed file on the disk', async () => {
    await using place = await replicas()
    const service = await place.start('a')
    const ada = await service.register()
    const { body } = await upload(service, ada, 'a picture')
    await waitFor(() => place.store.get(`files/${body.id}`))
    place.store.faults.away = true
    await service.call('DELETE', `/v1/files/${body.id}`, { token: ada.token })
    const bytes = join(place.directory('a'), 'files', body.id)
    await waitFor(() => !existsSync(bytes), 'the file to go from the disk')
    expect(place.store.get(`files/${body.id}.removed`)).toBeUndefined()
  })

  testAtLength('keeps a removed file for a restore to an earlier time', async () => {
    await using place = await replicas()
    const service = await place.start('a', byBucket)
    const ada = await service.register()
    const { body: file } = await upload(service, ada, 'a picture')
    const before = isoTime(Date.now())
    await service.call('DELETE', `/v1/files/${file.id}`, { token: ada.token })
    await waitFor(() => place.store.get(`files/${file.id}.removed`))
    const now = await place.restored()
    expect(existsSync(join(now.path, 'files', file.id))).toBe(false)
    const then = await place.restored(['--at', before])
    expect(readFileSync(join(then.path, 'files', file.id), 'utf8')).toBe('a picture')
    await service.stop()
    await place.start(then.name)
    await waitFor(() => !place.store.get(`files/${file.id}.removed`))
  })

  test('with names that are paths: the database and its neighbours stay, and the log says so', async () => {
    await using place = await replicas()
    const service = await place.start('a')
    const canary = join(place.directory('a'), '../canary.txt')
    writeFileSync(canary, 'alive')
    await service.stop()
    for (const name of ['../hostline.db', '../../canary.txt', '../hostline.lock', 'short']) {
      place.store.put(`files/${name}.removed`, Buffer.of())
    }
    const again = await place.start('a')
    await waitFor(() => again.log().includes('unknown objects under files/ in the bucket'))
    expect(again.log()).toContain('"foreign":4')
    expect(readdirSync(place.directory('a'))).toContain('hostline.db')
    expect(readFileSync(canary, 'utf8')).toBe('alive')
  })

  test('with a database that names a path as a file: a restore writes nothing there, and says so', async () => {
    await using place = await replicas()
    const service = await place.start('a', byBucket)
    const ada = await service.register()
    const { body } = await upload(service, ada, 'a picture')
    const other = await upload(service, ada, 'another')
    service.sqlite.run("UPDATE files SET id = '../escaped' WHERE id = ?", [other.body.id])
    await service.register()
    place.store.put('escaped', Buffer.from('from the bucket'))
    const { exitCode, err, path } = await place.restored()
    expect([exitCode, err]).toEqual([
      0,
      expect.stringMatching(/^hostline: 1 files have invalid names .*$/),
    ])
    expect(readdirSync(path)).not.toContain('escaped')
    expect(readdirSync(join(path, 'files'))).toEqual([body.id])
  })
})
