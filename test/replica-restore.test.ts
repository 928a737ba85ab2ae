import { afterAll, expect, test } from 'bun:test'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { zstdCompressSync } from 'bun'
import { bucket } from '../src/config-values.ts'
import { isoTime } from '../src/lib/clock.ts'
import { openBucket } from '../src/outside/bucket.ts'
import { openLog, positionName } from '../src/replication/log.ts'
import { trim } from '../src/replication/snapshots.ts'
import { hostline } from './support/command.ts'
import { startObjectStore } from './support/object-store.ts'
import { messagesIn, replicas, say, saySurely } from './support/replicas.ts'
import { waitFor, waitOut } from './support/wait.ts'

const byBucket = { environment: { REPLICA_ACK: 'bucket' } }

const place = await replicas()
afterAll(() => place[Symbol.asyncDispose]())
const begunAt = Date.now()
const first = await place.start('first', byBucket)
await first.registerAs('admin')
const people = await first.pair()
// Each is acknowledged by the bucket.
const afterOne = await sayAndWait('one')
const afterTwo = await sayAndWait('two')
await sayAndWait('three')
await first.stop()

const databaseIn = (name: string) => readFileSync(join(place.directory(name), 'hostline.db'))

async function sayAndWait(text: string) {
  expect((await say(first, people, text)).status).toBe(201)
  return isoTime(Date.now())
}

test('a restore returns to the state of any moment', async () => {
  expect(await place.messages()).toEqual(['one', 'two', 'three'])
  expect(await place.messages(['--at', afterOne])).toEqual(['one'])
  expect(await place.messages(['--at', afterTwo])).toEqual(['one', 'two'])
  expect(await place.messages(['--at', isoTime(Date.now())])).toEqual(['one', 'two', 'three'])
  const { out } = await place.restore('early', ['--list'])
  expect(out).toMatch(/^any moment from (\S+Z) to \S+Z\nsnapshot\t\S+Z\t\S+$/)
  const range = /^any moment from \S+Z to \S+Z/.exec(out)?.[0]
  for (const at of [isoTime(begunAt - 1_000), '2100-01-01T00:00:00Z']) {
    const refused = await place.restore('early', ['--at', at])
    expect([refused.exitCode, refused.err]).toEqual([1, `hostline: ${range} can be restored`])
  }
  const left = readdirSync(place.directory('early')).filter((name) =>
    name.startsWith('hostline.db'),
  )
  expect(left).toEqual([])
})

test('a restore replaces a database only with --force, and keeps the old one', async () => {
  await place.restore('forced', ['--at', afterOne])
  const one = databaseIn('forced')
  expect(await place.restore('forced')).toMatchObject({
    exitCode: 1,
    err: expect.stringContaining('--force replaces it, and keeps it aside'),
  })
  expect(databaseIn('forced').equals(one)).toBe(true)
  const { exitCode, out } = await place.restore('forced', ['--force'])
  const aside = /is kept as (\S+)/.exec(out)?.[1] ?? ''
  expect([exitCode, readFileSync(aside).equals(one)]).toEqual([0, true])
  expect(messagesIn(place.directory('forced'))).toEqual(['one', 'two', 'three'])
})

test('a restore replaces the copy of a standby, and keeps it, too', async () => {
  const directory = place.directory('standby')
  mkdirSync(directory)
  writeFileSync(join(directory, 'replica.db'), 'a copy')
  const { exitCode, out } = await place.restore('standby')
  const kept = readdirSync(directory).find((name) => name.startsWith('hostline-replaced-')) ?? ''
  expect([exitCode, out]).toEqual([0, expect.stringContaining(kept)])
  expect(readFileSync(join(directory, kept), 'utf8')).toBe('a copy')
  expect(readdirSync(directory)).not.toContain('replica.db')
})

test.each([['--at yesterday'], ['--at'], ['--at 2026-13-01T00:00:00Z'], ['--since x']])(
  'a restore with %p is wrong usage',
  async (given) => {
    expect(await place.restore('mistaken', given.split(' '))).toMatchObject({
      exitCode: 2,
      out: '',
    })
    expect(existsSync(place.directory('mistaken'))).toBe(false)
  },
)

test('a restore follows no symbolic link in the directory', async () => {
  const victim = place.directory('victim')
  writeFileSync(victim, 'as it was')
  mkdirSync(place.directory('linked'))
  symlinkSync(victim, join(place.directory('linked'), 'replica.json.new'))
  expect(await place.restore('linked')).toMatchObject({ exitCode: 0 })
  expect(readFileSync(victim, 'utf8')).toBe('as it was')
})

test('a command that begins the log follows no symbolic link either', async () => {
  const [victim, directory] = [place.directory('noted'), place.directory('linked')]
  writeFileSync(victim, 'as it was')
  symlinkSync(victim, join(directory, 'replica.position'))
  const environment = { REPLICA_S3_URL: place.store.url.replace('?', '-elsewhere?') }
  expect(await hostline(['replica', 'init'], directory, { environment })).toMatchObject({
    exitCode: 1,
    err: expect.stringContaining('ELOOP'),
  })
  expect(readFileSync(victim, 'utf8')).toBe('as it was')
})

test('a restore retries a failed request', async () => {
  place.store.faults.errors = 0.05
  for (let n = 0; n < 5; n++) expect(await place.messages()).toEqual(['one', 'two', 'three'])
  place.store.faults.errors = 0
})

test('of snapshots older than a day, one whole one an hour is kept, as are base snapshots and foreign objects', async () => {
  await using other = await startObjectStore()
  const opened = openBucket(bucket(other.url), 1_000)
  const foreign = ['snapshots/../elsewhere', 'snapshots/0/manifest', 'elsewhere']
  for (const key of foreign) other.put(key, Buffer.from('x'))
  const take = (position: number, hoursAgo: number, isBase = false) => {
    const name = `snapshots/${positionName({ epoch: 1, position })}-00000000`
    other.faults.clockOffset = -hoursAgo * 3_600_000
    const place = { epoch: 1, position }
    const manifest = { format: 1, place, isBase, at: 0, pageSize: 4_096, pages: 1, pieces: ['0'] }
    other.put(`${name}/000000`, Buffer.of())
    other.put(`${name}/manifest`, Buffer.from(JSON.stringify(manifest)))
    return `${name}/000000`
  }
  const hour = 200 + (Date.now() % 3_600_000) / 3_600_000
  const taken = [take(1, hour), take(2, hour - 0.2), take(3, 26), take(4, 26), take(5, 26, true)]
  const recent = [take(6, 1), take(7, 1)]
  const damaged = take(8, 26)
  other.put(damaged.replace(/000000$/, 'manifest'), Buffer.from('x'))
  other.faults.clockOffset = 0
  await trim({ bucket: opened, shared: openLog(opened) }, Date.now() - 7 * 24 * 3_600_000)
  const left = [taken[0], taken[2], taken[4], ...recent].map(String)
  expect(other.keys().filter((key) => key.endsWith('/000000'))).toEqual(left)
  expect(other.keys()).toEqual(expect.arrayContaining(foreign))
})

test('a first snapshot with heartbeats during its upload can be restored', async () => {
  await using slow = await replicas()
  const { store } = slow
  const kinds = () =>
    store
      .keys('log/')
      .map((key) => /"kind":"(\w+)/.exec(`${Buffer.from(store.get(key) ?? '')}`)?.[1])
  store.faults.beforePut = async (key) => {
    if (key.endsWith('/000000')) await waitFor(() => kinds().includes('beat'), 'a heartbeat')
  }
  await slow.start('a', { environment: { REPLICA_PAIR: 'true', REPLICA_LEASE: '1' } })
  await waitFor(() => kinds().includes('base'), 'the snapshot entry')
  expect(kinds().slice(0, 2)).toEqual(['begin', 'beat'])
  expect(await slow.restored()).toMatchObject({ exitCode: 0, err: '' })
})

test('a download may take longer than the timeout of a request without a response', async () => {
  const bytes = Buffer.alloc(100_000, 'x')
  await using server = createServer(async (_, answer) => {
    answer.setHeader('content-length', bytes.length).write(bytes.subarray(0, 50_000))
    await waitOut(1_500)
    answer.end(bytes.subarray(50_000))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const slow = bucket(`s3://KEY:SECRET@127.0.0.1:${port}/backups?tls=off`)
  expect(await openBucket(slow, 1_000).get('large')).toHaveLength(bytes.length)
})

test('a name with dot segments requests no object of another bucket', async () => {
  place.store.put('elsewhere', Buffer.from('secret'))
  const opened = openBucket(bucket(place.store.url), 1_000)
  for (const ask of [opened.get, opened.delete]) {
    await expect(ask('snapshots/../elsewhere')).rejects.toThrow('400')
  }
  expect(place.store.get('elsewhere')).toBeDefined()
  place.store.delete('elsewhere')
})

type Change = (bytes: Uint8Array) => Uint8Array
const foreign: Change = () => Buffer.from('x')
const flipped: Change = (bytes) =>
  Buffer.from(bytes).map((byte, n) => (n === bytes.length - 1 ? byte ^ 1 : byte))
const laterEntry: Change = (bytes) => {
  const text = Buffer.from(bytes).toString('latin1')
  return Buffer.from(text.replace('"format":1', '"format":2'), 'latin1')
}
const hashOf = (bytes: Uint8Array) => Bun.hash.xxHash64(bytes).toString(16)
/** An entry with these packed pages. */
function entryOf(body: Uint8Array): Uint8Array {
  const pages = { kind: 'pages', partial: false, databasePages: 1, numbers: [1] }
  const head = { format: 1, node: 'x', at: 0, pair: false, ...pages, hash: hashOf(body) }
  return Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), body])
}
const isEntry = (key: string) => key.startsWith('log/')
const isPiece = (key: string) => key.endsWith('/000000')
const isManifest = (key: string) => key.endsWith('/manifest')

test.each<[string, (key: string) => boolean, Change | undefined, string]>([
  ['a foreign entry', isEntry, foreign, 'KEY .*was not written by hostline'],
  ['a damaged entry', isEntry, flipped, 'KEY .*it is damaged'],
  ['an entry of a later version', isEntry, laterEntry, 'KEY .*it is from a later version'],
  ['a missing entry', isEntry, undefined, 'KEY is missing'],
  ['a damaged piece', isPiece, flipped, 'piece 0 of the snapshot .* is damaged'],
  ['a missing piece', isPiece, undefined, 'piece 0 of the snapshot .* is missing'],
  [
    'a manifest of a later version',
    isManifest,
    laterEntry,
    'the snapshot .* is from a later version',
  ],
  ['a foreign manifest', isManifest, foreign, 'KEY'],
])('%s is reported, and nothing is replaced', async (name, isOne, change, message) => {
  await place.restore(name, ['--at', afterOne])
  const one = databaseIn(name)
  // For the log, an entry in the middle.
  const key =
    place.store
      .keys()
      .filter(isOne)
      .at(isOne === isEntry ? -3 : 0) ?? ''
  const bytes = place.store.get(key) ?? Buffer.of()
  place.store.delete(key)
  if (change) place.store.put(key, change(bytes))
  const { exitCode, err } = await place.restore(name, ['--force'])
  place.store.put(key, bytes)
  const line = new RegExp(`^hostline: .*${message.replace('KEY', key)}.*$`)
  expect([exitCode, err]).toEqual([1, expect.stringMatching(line)])
  expect(databaseIn(name).equals(one)).toBe(true)
})

test.each([
  ['a piece', isPiece, (bytes: Uint8Array) => bytes],
  ['an entry', isEntry, entryOf],
])('%s that would unpack beyond its limit is damaged', async (name, isOne, change) => {
  const bomb = zstdCompressSync(Buffer.alloc(100 * 1_048_576), { level: 1 })
  const { store } = place
  const key =
    store
      .keys()
      .filter(isOne)
      .at(isOne === isEntry ? -3 : 0) ?? ''
  const manifestKey = store.keys().find(isManifest) ?? ''
  const [bytes, manifest] = [key, manifestKey].map((one) => store.get(one) ?? Buffer.of())
  const { pieces: _, ...rest } = JSON.parse(Buffer.from(manifest ?? '').toString())
  store.put(key, change(bomb))
  const pieces = [hashOf(bomb)]
  if (isOne === isPiece) store.put(manifestKey, Buffer.from(JSON.stringify({ ...rest, pieces })))
  const { exitCode, err } = await place.restore(`bomb of ${name}`)
  if (bytes) store.put(key, bytes)
  if (manifest) store.put(manifestKey, manifest)
  expect([exitCode, err]).toEqual([1, expect.stringMatching(/^hostline: .* damaged$/)])
})

test('a server continues from a restored past, and the log keeps the later entries', async () => {
  await place.restore('past', ['--at', afterOne])
  const service = await place.start('past', byBucket)
  await saySurely(service, people, 'another two')
  await service.stop()
  expect(await place.messages()).toEqual(['one', 'another two'])
  expect(await place.messages(['--at', afterTwo])).toEqual(['one', 'two'])
})

test('a server continues from a past that was restored twice', async () => {
  for (const at of [afterTwo, afterOne]) {
    await place.restore('twice', ['--force', '--at', at])
    await (await place.start('twice')).stop()
  }
  expect(await place.messages()).toEqual(['one'])
})
