import { afterAll, expect, spyOn, test } from 'bun:test'
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'bun'
import { type Clock, minute } from '../src/lib/clock.ts'
import { decodeEntry, encodeEntry } from '../src/replication/log.ts'
import { createSnapshotKeeper } from '../src/replication/snapshot-keeper.ts'
import { createTestClock } from './support/clock.ts'
import { hostline } from './support/command.ts'
import { testAtLength } from './support/faults.ts'
import { fetchFile } from './support/files.ts'
import { startNode } from './support/nodes.ts'
import { call } from './support/process.ts'
import { messagesIn, replicas, say, saySurely } from './support/replicas.ts'
import { waitFor } from './support/wait.ts'

// Directories that lack what the bucket has, and buckets that lack what a directory has.

const byBucket = { environment: { REPLICA_ACK: 'bucket' } }
const opened: Awaited<ReturnType<typeof replicas>>[] = []
afterAll(() => Promise.all(opened.map((place) => place[Symbol.asyncDispose]())))

async function begun(clock?: Clock) {
  const place = await replicas()
  opened.push(place)
  const service = await place.start('a', { ...byBucket, ...(clock && { clock }) })
  await service.registerAs('admin')
  const people = await service.pair()
  // Their outcomes are entries, too.
  const jobs = service.sqlite.query('SELECT 1 FROM outbox')
  await waitFor(() => jobs.get() === null, 'the mails of the registrations')
  const run = (name: string, ...args: string[]) =>
    hostline(args, place.directory(name), { environment: place.environmentOf(byBucket) })
  const copy = (from: string, to: string) =>
    cpSync(place.directory(from), place.directory(to), {
      recursive: true,
      filter: (path) => !path.endsWith('.sock'),
    })
  return { place, service, people, run, copy }
}

const isBehind =
  /^hostline: the database in \S+ is behind the bucket, as an old copy of it or a clone would be: run hostline restore s3 --force .* or hostline replica init --force .*$/

test.concurrent('a machine put back to an older state refuses to start, until one state is chosen', async () => {
  const { place, service, people, run, copy } = await begun()
  await saySurely(service, people, 'one')
  copy('a', 'of-running-machine')
  await saySurely(service, people, 'two')
  await service.stop()
  copy('a', 'of-stopped-machine')
  const again = await place.start('a', byBucket)
  await saySurely(again, people, 'three')
  await again.stop()
  const log = place.store.keys()
  for (const name of ['of-running-machine', 'of-stopped-machine']) {
    const { exitCode, err } = await run(name, 'serve')
    expect([exitCode, err]).toEqual([1, expect.stringMatching(isBehind)])
    const checked = await run(name, 'check')
    const finding = /^FAILED replication: the server will not start: the database in \S+ is behind/m
    expect([checked.exitCode, checked.out]).toEqual([1, expect.stringMatching(finding)])
    // Nothing would see what it changes.
    const command = await run(name, 'settings', 'set', 'platform_name', 'Rooms')
    expect([command.exitCode, command.err]).toEqual([1, expect.stringMatching(isBehind)])
  }
  expect(place.store.keys().filter((key) => !key.startsWith('probe/'))).toEqual(log)

  const older = 'of-running-machine'
  expect(await run(older, 'replica', 'init', '--force')).toMatchObject({ exitCode: 0, err: '' })
  const forced = await place.start(older, byBucket)
  await saySurely(forced, people, 'another two')
  await forced.stop()
  expect(await place.messages()).toEqual(['one', 'another two'])
  const { err } = await run('a', 'serve')
  expect(err).toMatch(isBehind)
  expect(await run('a', 'restore', 's3', '--force')).toMatchObject({ exitCode: 0, err: '' })
  expect(messagesIn(place.directory('a'))).toEqual(['one', 'another two'])
  await (await place.start('a', byBucket)).stop()
})

testAtLength.concurrent('of two equal directories the one that wrote last goes on', async () => {
  const { place, service, people, run, copy } = await begun()
  await saySurely(service, people, 'one')
  await service.stop()
  copy('a', 'clone')
  const clone = await place.start('clone', byBucket)
  await saySurely(clone, people, 'two')
  await clone.stop()
  const { exitCode, err } = await run('a', 'serve')
  expect([exitCode, err]).toEqual([1, expect.stringMatching(isBehind)])
  await (await place.start('clone', byBucket)).stop()
  expect(await place.messages()).toEqual(['one', 'two'])
})

test.concurrent('a directory on another machine refuses to start, until it is said to be the one', async () => {
  const { place, service, people, run } = await begun()
  await saySurely(service, people, 'one')
  await service.stop()
  const path = join(place.directory('a'), 'replica.json')
  const state = JSON.parse(readFileSync(path, 'utf8'))
  expect(state.machine).toMatch(/^[0-9a-f]{32}$/)
  writeFileSync(path, JSON.stringify({ ...state, machine: 'f'.repeat(32) }))
  const { exitCode, err } = await run('a', 'serve')
  expect([exitCode, err]).toEqual([1, expect.stringMatching(/ is from another machine: run /)])
  expect(await run('a', 'replica', 'init', '--force')).toMatchObject({ exitCode: 0 })
  await (await place.start('a', byBucket)).stop()
  expect(await place.messages()).toEqual(['one'])
})

testAtLength.concurrent(
  'a restart after the bucket was emptied makes it restorable before the first write',
  async () => {
    const { place, service, people, run } = await begun()
    await saySurely(service, people, 'one')
    const nothing = /^FAILED last snapshot: none: nothing can be restored$/m
    const { faults } = place.store
    // The leader may look for its snapshot at any time.
    faults.beforePut = (key) => {
      faults.full = key.startsWith('snapshots/')
    }
    for (const key of place.store.keys()) place.store.delete(key)
    await saySurely(service, people, 'two')
    const check = await run('a', 'check')
    expect([check.exitCode, check.out]).toEqual([1, expect.stringMatching(nothing)])
    await service.stop()
    Object.assign(faults, { beforePut: undefined, full: false })
    // The write is stored before the server has looked for snapshots.
    faults.latency = 200
    const again = await place.start('a', byBucket)
    // Until the snapshot is there writes get 503.
    await saySurely(again, people, 'three')
    faults.latency = 0
    expect(await place.messages()).toEqual(['one', 'two', 'three'])
    expect((await run('a', 'check')).out).not.toMatch(nothing)
  },
)

testAtLength.concurrent(
  'a leader ends when another one has begun a log of its own in the emptied bucket',
  async () => {
    const { place, service, people } = await begun()
    await saySurely(service, people, 'one')
    await service.stop()
    const options = { dataDir: place.directory('a'), bucket: place.store.url, ...byBucket }
    await using original = await startNode(options)
    await original.ready()
    process.kill(original.pid, 'SIGSTOP')
    for (const key of place.store.keys()) place.store.delete(key)
    const other = await place.start('b', byBucket)
    const others = await other.pair()
    process.kill(original.pid, 'SIGCONT')
    // An entry of its own, which follows nothing there, unless it has ended by then.
    const body = { email: 'late@example.com', password: 'correct horse' }
    await call(original.base, 'POST', '/v1/auth/register', { body }).catch(() => {})
    await saySurely(other, others, 'of the other')
    expect(await original.exited).toBe(1)
    expect(original.output()).toContain('another log is in the bucket')
    await saySurely(other, others, 'later')
  },
)

testAtLength.concurrent(
  'a snapshot that cannot be read is replaced, and an emptied bucket is a finding of check',
  async () => {
    const { place, service, people, run } = await begun()
    await saySurely(service, people, 'one')
    await service.stop()
    for (const key of place.store.keys('snapshots/').filter((name) => name.endsWith('manifest')))
      place.store.put(key, Buffer.from('a stranger'))
    const again = await place.start('a', byBucket)
    await saySurely(again, people, 'two')
    await waitFor(async () => Bun.deepEquals(await place.messages(), ['one', 'two']))
    await again.stop()
    for (const key of place.store.keys()) place.store.delete(key)
    const { exitCode, out } = await run('a', 'check')
    expect(exitCode).toBe(1)
    expect(out).toContain('FAILED replication: the log is gone from the bucket')
  },
)

testAtLength.concurrent(
  'a leader notices within a minute that the bucket was emptied',
  async () => {
    const { place, service, people } = await begun()
    await saySurely(service, people, 'one')
    const manifests = () => place.store.keys('snapshots/').filter((key) => key.endsWith('manifest'))
    place.store.faults.beforePut = (key) =>
      key.startsWith('snapshots/') ? new Promise((resolve) => (letGo = resolve)) : undefined
    let letGo: (() => void) | undefined
    for (const key of place.store.keys()) place.store.delete(key)
    const { token } = await service.registerAs('admin')
    const codes = async () => {
      const { body } = await service.call('GET', '/v1/admin/system', { token })
      return body.warnings.map(({ code }: { code: string }) => code)
    }
    await waitFor(
      async () => (await codes()).includes('replica_unrestorable'),
      'the warning',
      60_000,
    )
    expect(service.log()).toMatch(
      /the snapshot \S+ is gone from the bucket: taking another one now/,
    )
    expect((await service.call('GET', '/metrics')).body).toContain(
      'hostline_replica_restorable 0\n',
    )
    expect((await say(service, people, 'two')).status).toBe(503)
    place.store.faults.beforePut = undefined
    await waitFor(() => {
      letGo?.()
      return manifests().length === 1
    })
    await saySurely(service, people, 'two')
    expect(await place.messages()).toEqual(['one', 'two'])
    expect(await codes()).not.toContain('replica_unrestorable')
  },
)

test.concurrent('a lost snapshot whose replacement failed is tried again although the clock was set back', async () => {
  const node = { log: { warn() {} }, databasePath: '/nowhere' }
  const keeper = createSnapshotKeeper(node as never, {} as never, () => {})
  keeper.start(true)
  keeper.pinIfDue({} as never)
  expect(keeper.isUrgent()).toBe(false)
  await waitFor(() => {
    using _ = spyOn(Date, 'now').mockReturnValue(0)
    return keeper.isUrgent()
  }, 'the next try')
  keeper.stop()
})

testAtLength.concurrent(
  'a foreign object at the end of the log keeps no single server from starting',
  async () => {
    const { place, service, people, run } = await begun()
    await saySurely(service, people, 'one')
    await service.stop()
    const foreign = 'log/00000009-000000000001'
    place.store.put(foreign, Buffer.from('a stranger'))
    const again = await place.start('a')
    expect((await say(again, people, 'two')).status).toBe(201)
    expect(again.log()).toContain(
      `${foreign} in the bucket cannot be read: it was not written by hostline`,
    )
    expect((await run('a', 'check')).out).toContain(`FAILED replication: ${foreign} in the bucket`)
    place.store.delete(foreign)
    await place.has(['one', 'two'])
  },
)

testAtLength.concurrent(
  'a clone beside its running original never leads together with it',
  async () => {
    const { place, service, people, run, copy } = await begun()
    await saySurely(service, people, 'one')
    await service.stop()
    const options = { dataDir: place.directory('a'), bucket: place.store.url, ...byBucket }
    const original = await startNode(options)
    await original.ready()
    copy('a', 'clone')
    await using clone = await startNode({ ...options, dataDir: place.directory('clone') })
    await clone.ready()
    const path = `/v1/chat/conversations/${people.conversationId}/messages`
    const send = (base: string, body: string) =>
      call(base, 'POST', path, { token: people.a.token, body: { body } }).then(
        ({ status }) => status,
        () => 0,
      )
    expect(await send(clone.base, 'of the clone')).toBe(201)
    expect(await send(original.base, 'of the original')).not.toBe(201)
    expect(await original.exited).toBe(1)
    expect((await run('a', 'serve')).err).toMatch(isBehind)
    expect(await send(clone.base, 'later')).toBe(201)
    expect(await place.messages()).toEqual(['one', 'of the clone', 'later'])
  },
)

testAtLength.concurrent.each(['beforePut', 'afterPut'] as const)(
  'a server that was killed around its first entry goes on, with what it had acknowledged (%s)',
  async (hook) => {
    const { place, service, people } = await begun()
    await saySurely(service, people, 'one')
    await service.stop()
    const options = { dataDir: place.directory('a'), bucket: place.store.url, ...byBucket }
    for (let round = 0; round < 3; round++) {
      const { promise: killed, resolve } = Promise.withResolvers<void>()
      place.store.faults[hook] = async (key) => {
        if (!key.startsWith('log/')) return
        place.store.faults[hook] = undefined
        await node.end('SIGKILL')
        resolve()
      }
      const node = await startNode(options)
      await killed
    }
    await using last = await startNode(options)
    await last.ready()
    const path = `/v1/chat/conversations/${people.conversationId}/messages`
    const message = { token: people.a.token, body: { body: 'two' } }
    expect((await call(last.base, 'POST', path, message)).status).toBe(201)
    expect(await place.messages()).toEqual(['one', 'two'])
    const bases = place.store.keys('snapshots/').filter((key) => key.endsWith('manifest'))
    expect(bases).toHaveLength(1)
  },
)

testAtLength.concurrent('a missing log entry is named by the proof of a restore', async () => {
  const { place, service, people, run } = await begun()
  await saySurely(service, people, 'one')
  await saySurely(service, people, 'two')
  const [entry = ''] = place.store.keys('log/').slice(-2)
  const whole = await run('a', 'replica', 'verify', '--json')
  expect([whole.exitCode, JSON.parse(whole.out)]).toEqual([
    0,
    {
      restorable_to: expect.any(String),
      entries: expect.any(Number),
      rows: { users: 3, messages: 2, tickets: 0, files: 0 },
    },
  ])
  expect((await run('a', 'replica', 'verify')).out).toMatch(
    /^whole until \S+Z, with \d+ entries .*: 3 users, 2 messages/,
  )
  const { exitCode, err } = await hostline(['replica', 'verify'], place.directory('a'), {
    environment: { ...place.environmentOf(byBucket), MIN_FREE_MB: '1000000000' },
  })
  expect([exitCode, err]).toEqual([1, expect.stringMatching(/ needs \d+ MB more on the disk$/)])
  place.store.delete(entry)
  const broken = await run('a', 'replica', 'verify')
  expect([broken.exitCode, broken.err]).toEqual([
    1,
    expect.stringMatching(
      new RegExp(
        `^hostline: the bucket cannot be restored: ${entry} is missing in the bucket: --at \\S+Z restores what was before it$`,
      ),
    ),
  ])
  expect(JSON.parse((await run('a', 'replica', 'status', '--json')).out).missing_entry).toBe(entry)
  const checked = await run('a', 'check')
  expect([checked.exitCode, checked.out]).toEqual([
    1,
    expect.stringContaining(`FAILED last snapshot: ${entry} is missing: only`),
  ])
  const [, moment = ''] = /--at (\S+)/.exec(broken.err) ?? []
  expect(await place.messages(['--at', moment])).toEqual([])
  for (const key of place.store.keys('snapshots/').filter((one) => one.endsWith('/manifest'))) {
    place.store.put(key, Buffer.from('x'))
  }
  for (const command of [['verify'], ['status']]) {
    const damaged = await run('a', 'replica', ...command)
    expect([damaged.exitCode, damaged.err]).toEqual([
      1,
      expect.stringMatching(/^hostline: \S+manifest was not written by hostline$/),
    ])
  }
})

testAtLength.concurrent(
  'a commit that the bucket lacks is found by the proof of a restore',
  async () => {
    // The last minute is not compared.
    const { place, service, people, run } = await begun(createTestClock(Date.now() - 2 * minute))
    await saySurely(service, people, 'one')
    await saySurely(service, people, 'two')
    expect((await run('a', 'replica', 'verify')).exitCode).toBe(0)
    const last = place.store.keys('log/').at(-1) ?? ''
    const { entry } = await decodeEntry(place.store.get(last) ?? Buffer.from(''))
    const { format, node, start, pair, lease, at } = entry
    const empty = { format, node, start, pair, lease, at, kind: 'beat' } as const
    place.store.put(last, await encodeEntry(empty))
    const { exitCode, err } = await run('a', 'replica', 'verify')
    expect([exitCode, err]).toEqual([
      1,
      expect.stringMatching(
        /^hostline: the bucket lacks 1 of the messages in \S+: hostline replica snap/,
      ),
    ])
    expect((await run('a', 'replica', 'snapshot')).exitCode).toBe(0)
    expect((await run('a', 'replica', 'verify')).exitCode).toBe(0)
  },
)

testAtLength.concurrent(
  'a snapshot without a piece is replaced by an older one in a restore, and by a new one of the leader',
  async () => {
    const { place, service, people, run } = await begun()
    await saySurely(service, people, 'one')
    expect(await run('a', 'replica', 'snapshot')).toMatchObject({ exitCode: 0 })
    await saySurely(service, people, 'two')
    const newest = place.store.keys('snapshots/').at(-1)?.split('/')[1]
    const piece = `snapshots/${newest}/000000`
    const bytes = place.store.get(piece) ?? Buffer.of()
    for (const damage of [Buffer.from('x'), undefined]) {
      place.store.delete(piece)
      if (damage) place.store.put(piece, damage)
      expect(await place.messages()).toEqual(['one', 'two'])
    }
    expect(bytes.length).toBeGreaterThan(0)
    const found = () => service.log().includes(`piece 0 of the snapshot ${newest} is missing`)
    await waitFor(found, 'the leader to notice', 40_000)
    await waitFor(() => place.store.keys('snapshots/').some((key) => key > `snapshots/${newest}x`))
  },
)

testAtLength.concurrent(
  'commits are shipped while a lost snapshot is replaced, because an older one goes on with them',
  async () => {
    await using place = await replicas()
    const { store } = place
    const service = await place.start('a')
    await service.registerAs('admin')
    const people = await service.pair()
    await saySurely(service, people, 'one')
    expect(await place.snapshot('a')).toMatchObject({ exitCode: 0 })
    const { promise: isUploading, resolve: upload } = Promise.withResolvers<void>()
    store.faults.beforePut = (key) => {
      if (!key.startsWith('snapshots/')) return
      upload()
      return new Promise(() => {})
    }
    const manifests = store.keys('snapshots/').filter((key) => key.endsWith('manifest'))
    store.delete(manifests[1] ?? '')
    await isUploading
    await saySurely(service, people, 'two')
    await place.has(['one', 'two'])
    store.faults.beforePut = undefined
  },
)

testAtLength.concurrent(
  'a backup that was restored leads, whatever the log has; before the first start there is no log',
  async () => {
    const { place, service, people, run } = await begun()
    await saySurely(service, people, 'one')
    const backup = join(place.directory('a'), 'backup.db')
    expect(await run('a', 'backup', backup)).toMatchObject({ exitCode: 0 })
    await saySurely(service, people, 'two')
    await service.stop()
    expect(await run('a', 'restore', backup, '--force')).toMatchObject({ exitCode: 0, err: '' })
    const again = await place.start('a', byBucket)
    await saySurely(again, people, 'three')
    expect(await place.messages()).toEqual(['one', 'three'])

    // A lost bucket does not keep the backup from being restored.
    const environment = { REPLICA_S3_URL: 's3://KEY:SECRET@127.0.0.1:1/lost?tls=off' }
    const alone = await hostline(['restore', backup], place.directory('alone'), { environment })
    expect(alone).toMatchObject({
      exitCode: 0,
      err: expect.stringContaining('run hostline replica init --force first'),
    })
    expect(messagesIn(place.directory('alone'))).toEqual(['one'])

    mkdirSync(place.directory('empty'))
    const init = await run('empty', 'replica', 'init')
    expect([init.exitCode, init.err]).toEqual([
      1,
      expect.stringContaining('there is no database in'),
    ])
    expect(readdirSync(place.directory('empty'))).toEqual([])
  },
)

const fixture = join(import.meta.dir, 'fixtures/replica-0.1.json.gz')
type Written = Record<'objects' | 'directory' | 'files', Record<string, string>> & { file: string }

/** A bucket and its machine as 0.1 left them: two messages, and an uploaded and a removed file on the disk and in the
 *  bucket. */
async function leftBy01() {
  const place = await replicas()
  opened.push(place)
  const left: Written = JSON.parse(Buffer.from(gunzipSync(readFileSync(fixture))).toString())
  for (const [key, bytes] of Object.entries(left.objects)) {
    place.store.put(key, Buffer.from(bytes, 'base64'))
  }
  for (const [folder, entries] of [
    ['a', left.directory],
    ['a/files', left.files],
  ] as const) {
    mkdirSync(place.directory(folder), { recursive: true })
    for (const [name, bytes] of Object.entries(entries)) {
      writeFileSync(join(place.directory(folder), name), Buffer.from(bytes, 'base64'))
    }
  }
  return { place, file: left.file }
}

test.concurrent('the bucket and the directory of 0.1 go on, also on a new machine', async () => {
  const { place, file } = await leftBy01()
  const { exitCode, err, name, path } = await place.restored()
  expect([exitCode, err, messagesIn(path)]).toEqual([0, '', ['one', 'two']])
  const service = await place.start('a', byBucket)
  expect(await (await fetchFile(service, file)).text()).toBe('a picture')
  await waitFor(() => place.store.keys('files/').length === 1)
  expect(file).toContain(place.store.keys('files/')[0]?.slice('files/'.length) ?? '')
  await service.register('later')
  await service.stop()
  expect(await place.messages()).toEqual(['one', 'two'])
  const { err: refused } = await hostline(['serve'], place.directory(name), {
    environment: place.environmentOf(byBucket),
  })
  expect(refused).toMatch(/has written to the bucket since the restore/)
})
