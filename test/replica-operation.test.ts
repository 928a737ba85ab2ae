import { describe, expect, test } from 'bun:test'
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmdirSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { verifyBeside } from '../src/cli/replica.ts'
import { readConfig } from '../src/config.ts'
import { lockDirectory } from '../src/db/open.ts'
import { createLog } from '../src/lib/log.ts'
import { decodeEntry, encodeEntry, parsePosition } from '../src/replication/log.ts'
import { agreedOf, openNode } from '../src/replication/node.ts'
import { joinReplication } from '../src/replication/replication.ts'
import { createTestClock } from './support/clock.ts'
import { hostline } from './support/command.ts'
import { temporaryDirectory } from './support/directory.ts'
import { testAtLength } from './support/faults.ts'
import { startMailServer } from './support/mail.ts'
import { command, startNode } from './support/nodes.ts'
import { type ObjectStore, startObjectStore } from './support/object-store.ts'
import { replicatedTo, replicaWithStats } from './support/replica.ts'
import { replicas } from './support/replicas.ts'
import { startService, type TestService } from './support/service.ts'
import { waitFor, waitOut } from './support/wait.ts'

// The operator's view of the replication.

const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT/)

/** The bucket may take 20 seconds for an answer: on a busy machine, those of the usual lease are too few. */
const patient = { REPLICA_LEASE: '60' }

/** A service replicated to a bucket, and its state as admins see it. */
async function startReplicated(environment: Record<string, string> = {}) {
  const store = await startObjectStore()
  const service = await startService({
    listen: true,
    environment: { REPLICA_S3_URL: store.url, ...environment },
  })
  await waitFor(() => isInStep(service), 'the bucket to have everything')
  const { token } = await service.registerAs('admin')
  return {
    store,
    service,
    system: async () => (await service.call('GET', '/v1/admin/system', { token })).body,
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
    },
  }
}

type System = Awaited<ReturnType<Awaited<ReturnType<typeof startReplicated>>['system']>>
const codesOf = ({ warnings }: System) => warnings.map(({ code }: { code: string }) => code)

async function isInStep(service: TestService) {
  const { body } = await service.call('GET', '/metrics')
  return /^hostline_replica_lag_seconds 0$/m.test(body)
}

test.concurrent('admins see the lag of the bucket, and a snapshot there counts as a backup', async () => {
  await using place = await startReplicated(patient)
  await waitFor(() => isInStep(place.service), 'the bucket to have everything')
  const system = await place.system()
  // A claim whose response was late is repeated.
  const newest = parsePosition(place.store.keys('log/').at(-1)?.slice('log/'.length) ?? '')
  expect(system.replication).toEqual({
    role: 'leader',
    ack: 'disk',
    standby_allowed: false,
    epoch: newest?.epoch,
    position: expect.any(Number),
    lag_seconds: 0,
    last_stored_at: time,
    last_snapshot_at: time,
    failures: 0,
    last_failed_at: null,
    last_error: null,
  })
  expect(codesOf(system)).not.toContain('no_backup')
  expect(codesOf(system)).not.toContain('replica_no_snapshot')
})

testAtLength.concurrent(
  'the last failure is shown without secrets, also after recovery',
  async () => {
    await using place = await startReplicated()
    await waitFor(() => isInStep(place.service), 'the bucket to have everything')
    place.store.faults.errors = 1
    await place.service.register('ada')
    await waitFor(async () => (await place.system()).replication.failures > 0, 'a failure')
    place.store.faults.errors = 0
    await waitFor(() => isInStep(place.service), 'the bucket to have everything again')
    const { replication } = await place.system()
    expect(replication).toMatchObject({
      lag_seconds: 0,
      last_failed_at: time,
      last_error: expect.stringMatching(/^the bucket \S+: 50[03] \w+ \(PUT log\/\S+\)$/),
    })
  },
)

testAtLength.concurrent(
  'a machine that starts while the bucket is away is not in step',
  async () => {
    await using store = await startObjectStore()
    store.faults.away = true
    await using service = await startService({
      listen: true,
      environment: { REPLICA_S3_URL: store.url },
    })
    const { token } = await service.registerAs('admin')
    const replication = async () =>
      (await service.call('GET', '/v1/admin/system', { token })).body.replication
    await waitFor(async () => (await replication()).failures > 0, 'a failure')
    expect(await replication()).toMatchObject({ position: null, last_snapshot_at: null })
    await waitFor(async () => (await replication()).lag_seconds > 0, 'a second of lag')
    store.faults.away = false
    await waitFor(() => isInStep(service), 'the bucket to have everything')
  },
)

testAtLength.concurrent(
  'a failed snapshot is reported and skipped, and the log continues without it',
  async () => {
    await using place = await startReplicated({ REPLICA_PAIR: 'true', REPLICA_LEASE: '3' })
    const { store, service } = place
    const manifests = () =>
      store.keys('snapshots/').filter((key) => key.endsWith('/manifest')).length
    const database = join(service.directory, 'hostline.db')
    renameSync(database, `${database}.away`)
    mkdirSync(database)
    const environment = { REPLICA_S3_URL: store.url }
    const take = () => hostline(['replica', 'snapshot'], service.directory, { environment })
    expect(await take()).toMatchObject({ exitCode: 1 })
    expect(service.log()).toContain('no snapshot was taken')
    rmdirSync(database)
    renameSync(`${database}.away`, database)
    const entries = store.keys('log/').length
    await waitFor(() => store.keys('log/').length > entries, 'a heartbeat')
    expect(manifests()).toBe(1)
    expect(await take()).toMatchObject({ exitCode: 0 })
    expect(manifests()).toBe(2)
    const kinds = store
      .keys('log/')
      .map((key) => /"kind":"(\w+)"/.exec(Buffer.from(store.get(key) ?? '').toString())?.[1])
    expect(kinds.filter((kind) => kind === 'base')).toHaveLength(1)
  },
)

test.concurrent('a command for a server that stops meanwhile says that none is running', async () => {
  await using place = await replicas()
  await (await place.start('a')).stop()
  const unlock = lockDirectory(place.directory('a'), 0)
  // Leaves time to unlock between the first request and the last, after which the command opens the directory.
  place.store.faults.latency = 100
  place.store.resetCounts()
  const asked = place.snapshot('a')
  await waitFor(() => place.store.counts['LIST 200'], 'the command to read the log')
  unlock?.()
  const err = `hostline: no server is running on ${place.directory('a')}`
  expect(await asked).toEqual({ exitCode: 1, out: '', err })
})

test.concurrent.each([
  ['in step', {}, []],
  ['late', { lagMilliseconds: 61_000 }, ['replica_lag']],
  ['without anything to restore', { isRestorable: false }, ['replica_unrestorable']],
  ['without a snapshot', { snapshotAt: undefined }, ['no_backup', 'replica_no_snapshot']],
  [
    'with an old snapshot',
    { snapshotAt: Date.now() - 172_801_000 },
    ['no_backup', 'replica_no_snapshot'],
  ],
])('a replica that is %s', async (_, stats, expected) => {
  await using service = await startService({
    environment: replicatedTo,
    replica: replicaWithStats(stats),
  })
  const { token } = await service.registerAs('admin')
  const system = (await service.call('GET', '/v1/admin/system', { token })).body
  const others = ['no_smtp', 'public_url_http', 'no_admin_totp']
  expect(codesOf(system).filter((code: string) => !others.includes(code))).toEqual(expected)
})

test.concurrent('each week the bucket is restored for a try; a failure is reported until it succeeds', async () => {
  const clock = createTestClock()
  await using mails = await startMailServer()
  const noted: (string | undefined)[] = []
  const outcomes = [undefined, undefined, 'piece 0 is missing', undefined]
  let tries = 0
  const first = Promise.withResolvers<void>()
  const verify = async () => {
    const reason = outcomes[tries++]
    await first.promise
    if (reason) throw new Error(reason)
  }
  const noteDrill = (_: number, reason?: string) => {
    // A full disk once.
    if (noted.push(reason) === 2) throw new Error('no space left')
  }
  const replica = { ...replicaWithStats(), noteDrill }
  await using service = await startService({
    clock,
    environment: { ...replicatedTo, SMTP_URL: mails.url },
    replica,
    verifyReplica: verify,
  })
  await service.registerAs('admin', 'root')
  const day = 86_400_000
  clock.advance(2 * 3_600_000)
  clock.advance(3_600_000) // the first try lasts that long
  first.resolve()
  await waitFor(() => noted.length === 1)
  clock.advance(6 * day)
  expect(tries).toBe(1)
  clock.advance(2 * day)
  await waitFor(() => noted.length === 2)
  clock.advance(8 * day)
  await waitFor(() => noted.length === 3)
  clock.advance(2 * day)
  await waitFor(() => noted.length === 4)
  expect(noted).toEqual(outcomes)
  // A month ahead until now.
  clock.setBack(30 * day)
  clock.advance(8 * day)
  await waitFor(() => noted.length === 5)
  const mail = await waitFor(() =>
    mails.mails.find(({ raw }) => raw.includes('Subject: The bucket cannot be restored')),
  )
  expect(mail.to).toBe('root@example.com')
  expect(mail.text).toContain('piece 0 is missing')
})

testAtLength.concurrent(
  'the try itself runs in a process of its own, and says what is missing',
  async () => {
    await using place = await startReplicated()
    const { directory } = place.service
    const environment = { ...process.env, REPLICA_S3_URL: place.store.url }
    await verifyBeside(directory, environment)
    // It would take another snapshot.
    await place.service.stop()
    for (const key of place.store.keys('snapshots/')) place.store.delete(key)
    await expect(verifyBeside(directory, environment)).rejects.toThrow(
      'there is nothing to restore',
    )
  },
)

describe.concurrent('replica status', () => {
  test('shows the leader, the lag of the bucket, and the role of this machine', async () => {
    await using place = await startReplicated(patient)
    const { directory } = place.service
    const environment = { REPLICA_S3_URL: place.store.url, ...patient }
    const { out } = await hostline(['replica', 'status', '--json'], directory, { environment })
    const state = {
      node: expect.stringMatching(/^\S+-[0-9a-f]{6}$/),
      running: true,
      holds: 'database',
      leads: true,
      leader: expect.any(String),
      pair: false,
      lease_seconds: 60,
      newest_entry_at: time,
      restorable_from: time,
      restorable_to: time,
      missing_entry: null,
      snapshots: 1,
      last_snapshot_at: time,
      last_drill_at: null,
    }
    expect(JSON.parse(out)).toEqual(state)
    const plain = await hostline(['replica', 'status'], directory, { environment })
    expect(plain.out.split('\n').map((line) => line.split('\t')[0])).toEqual(Object.keys(state))
  })

  test('changes nothing on an empty machine', async () => {
    await using store = await startObjectStore()
    using folder = temporaryDirectory()
    const environment = { REPLICA_S3_URL: store.url }
    const dataDir = join(folder.path, 'data')
    const { out } = await hostline(['replica', 'status'], dataDir, { environment })
    expect(out).toMatch(/^holds\tnothing$.*^leader\t–$.*^restorable_from\t–$/ms)
    expect(readdirSync(folder.path)).toEqual([])
  })
})

describe.concurrent('check', () => {
  const linesOf = (out: string) =>
    out.split('\n').filter((line) => /^\S+ +(replication|last snapshot)/.test(line))

  test('tests the bucket and names the leader', async () => {
    await using place = await startReplicated(patient)
    const environment = { REPLICA_S3_URL: place.store.url, ...patient }
    const { exitCode, out } = await hostline(['check'], place.service.directory, { environment })
    expect([exitCode, linesOf(out)]).toEqual([
      0,
      [
        expect.stringMatching(/^ok {5}replication bucket: 127\.0\.0\.1:\d+\/backups$/),
        expect.stringMatching(/^ok {5}replication: \S+ wrote the newest entry at \S+Z$/),
        expect.stringMatching(/^ok {5}last snapshot: \S+Z$/),
      ],
    ])
    expect(out).toContain('ok     last backup: none, but the bucket has a snapshot\n')
  })

  test.each([
    [
      'a wrong secret',
      {},
      (store: ObjectStore) => ({ REPLICA_S3_URL: store.urlOf('wrong') }),
      /^FAILED replication: .*403 SignatureDoesNotMatch/m,
    ],
    [
      'a bucket without conditions',
      { ignoresConditions: true },
      () => ({}),
      /^FAILED replication bucket: \S+ does not support conditional writes/m,
    ],
    ['an empty bucket', {}, () => ({}), /^warn {3}replication: there is no log yet/m],
  ])('finds %s', async (_, faults, environmentOf, expected) => {
    await using store = await startObjectStore()
    using folder = temporaryDirectory()
    Object.assign(store.faults, faults)
    const environment = { REPLICA_S3_URL: store.url, ...patient, ...environmentOf(store) }
    const { out } = await hostline(['check'], folder.path, { environment })
    expect(out).toMatch(expected)
  })

  test('finds a clock that is behind that of the leader', async () => {
    await using store = await startObjectStore()
    using folder = temporaryDirectory()
    const environment = { REPLICA_S3_URL: store.url, ...patient }
    await beginElsewhere({ ...environment, REPLICA_PAIR: 'true' })
    const [key = ''] = store.keys('log/')
    const { entry } = await decodeEntry(store.get(key) ?? Buffer.of())
    store.put(key, await encodeEntry({ ...entry, at: Date.now() + 300_000 }))
    const { out } = await hostline(['check'], folder.path, { environment })
    expect(out).toMatch(/^warn {3}replication: .*Z, which is still to come: the clock of one/m)
  })

  testAtLength(
    'finds a silent leader, a difference to the log, and nothing to restore',
    async () => {
      await using store = await startObjectStore()
      using folder = temporaryDirectory()
      const environment = { REPLICA_S3_URL: store.url, REPLICA_LEASE: '60' }
      await beginElsewhere({ ...environment, REPLICA_PAIR: 'true' })
      const { exitCode, out } = await hostline(['check'], folder.path, { environment })
      expect(exitCode).toBe(1)
      expect(linesOf(out)).toContain('FAILED last snapshot: none: nothing can be restored')
      expect(out).toContain(
        'which says pair true, lease 60 s and counts: hostline replica init --pair',
      )
      await using another = await startObjectStore()
      const ofSilent = { REPLICA_S3_URL: another.url, REPLICA_LEASE: '1' }
      await beginElsewhere({ ...ofSilent, REPLICA_PAIR: 'true' })
      const run = () => hostline(['check'], folder.path, { environment: ofSilent })
      await waitFor(async () => /Z, and no standby has taken over$/m.test((await run()).out))
    },
  )
})

test.concurrent('a command says what a bucket that stores nothing answers', async () => {
  await using place = await replicas()
  await place.start('a')
  await place.hasBegun()
  const { faults } = place.store
  const refused = { exitCode: 1, err: expect.stringMatching(/^hostline: the bucket .*QuotaExc.*$/) }
  faults.beforePut = (key) => {
    if (key.startsWith('snapshots/')) faults.full = true
  }
  expect(await place.snapshot('a')).toMatchObject(refused)
  expect(faults.full).toBe(true)
  expect(await place.snapshot('a')).toMatchObject(refused)
  const environment = place.environmentOf({})
  const init = hostline(['replica', 'init', '--lease', '7'], place.directory('a'), { environment })
  expect(await init).toMatchObject(refused)
})

testAtLength(
  'a command that waits for the bucket does not hold up the end of the server',
  async () => {
    await using store = await startObjectStore()
    using folder = temporaryDirectory()
    await using node = await startNode({ dataDir: folder.path, bucket: store.url })
    await node.ready()
    const metrics = () => fetch(`${node.base}/metrics`).then((answer) => answer.text())
    await waitFor(async () => /^hostline_replica_lag_seconds 0$/m.test(await metrics()))
    store.faults.beforePut = (key) => {
      if (key.startsWith('log/')) store.faults.away = true
    }
    const waiting = command(folder.path, store.url, ['replica', 'init', '--pair', 'true'])
    await waitFor(() => store.faults.away)
    node.signal('SIGTERM')
    const grace = waitOut(40_000).then(() => 'runs')
    expect(await Promise.race([node.exited, grace])).toBe(0)
    expect((await waiting).err).toContain('the server has stopped before it answered')
  },
)

/** Creates the log on another machine. */
async function beginElsewhere(environment: Record<string, string>) {
  using folder = temporaryDirectory()
  const { replica } = readConfig({ DATA_DIR: folder.path, ...environment }, false)
  const log = createLog({ level: 'error', format: 'json', now: Date.now, write: () => {} })
  if (!replica) throw new Error('there is no bucket')
  // A short lease would shorten the timeout of its requests.
  const node = openNode(folder.path, { ...replica, leaseMilliseconds: 15_000 }, log)
  await node.claim(undefined, { agreed: agreedOf(replica) })
}

testAtLength.concurrent(
  'the pages changed by a command beside the server are shipped',
  async () => {
    await using place = await startReplicated()
    const { service, store } = place
    const create = ['user', 'create', '--email', 'bob@example.com', '--role', 'guest']
    await waitFor(() => isInStep(service), 'the bucket to have everything')
    const before = store.keys('log/').length
    expect(await command(service.directory, store.url, create)).toMatchObject({ code: 0 })
    const newest = () => Buffer.from(store.get(store.keys('log/').at(-1) ?? '') ?? '').toString()
    await waitFor(() => store.keys('log/').length > before, 'the entry of the command')
    expect(newest()).toContain('"kind":"pages"')
  },
)

test.concurrent('a WAL with a temporarily unreadable index is shipped as a snapshot', async () => {
  await using store = await startObjectStore()
  using folder = temporaryDirectory()
  const environment = { REPLICA_S3_URL: store.url, REPLICA_ACK: 'bucket', DATA_DIR: folder.path }
  const replica = await startLeader(environment)
  let isSpoilt = false
  const sync = (real: () => Promise<void>) => {
    if (isSpoilt) changeByte(join(folder.path, 'hostline.db-shm'), secondCopyOfIndex)
    isSpoilt = false
    return replica.sync(real)
  }
  const service = await startService({ environment, dataDir: folder.path, replica, sync })
  await waitFor(() => replica.stats().isRestorable, 'the first snapshot')
  await service.register()
  const manifests = () => store.keys('snapshots/').filter((key) => key.endsWith('manifest')).length
  expect(manifests()).toBe(1)
  isSpoilt = true
  await service.register()
  expect(manifests()).toBe(2)
  await service.stop()
})

// https://www.sqlite.org/walformat.html, 2.3
const secondCopyOfIndex = 48 + 8

function changeByte(path: string, at: number) {
  const [file, byte] = [openSync(path, 'r+'), Buffer.alloc(1)]
  readSync(file, byte, 0, 1, at)
  writeSync(file, Buffer.of((byte[0] ?? 0) ^ 1), 0, 1, at)
  closeSync(file)
}

/** Starts a node in this process and makes it lead. */
function startLeader(environment: Record<string, string>) {
  const config = readConfig(environment, false)
  const log = createLog({ level: 'error', format: 'json', now: Date.now, write: () => {} })
  if (!config.replica) throw new Error('there is no bucket')
  return joinReplication({
    config,
    settings: config.replica,
    log,
    isStandby: false,
    serveStandby: () => async () => {},
    onFenced(error) {
      throw error
    },
  })
}

testAtLength.concurrent(
  'a restored database leads while nobody else writes, and what is agreed changes with the running leader',
  async () => {
    await using first = await startReplicated()
    using folder = temporaryDirectory()
    const environment = { REPLICA_S3_URL: first.store.url, REPLICA_LEASE: '3' }
    const run = (...args: string[]) => hostline(args, folder.path, { environment })
    expect(await run('restore', 's3')).toMatchObject({ exitCode: 0, err: '' })
    await first.service.register('late')
    await waitFor(() => isInStep(first.service))
    expect(await run('serve')).toMatchObject({
      exitCode: 1,
      err: expect.stringMatching(/has written to the bucket since the restore: stop it/),
    })
    const onLeader = (...args: string[]) => hostline(args, first.service.directory, { environment })
    expect(await onLeader('replica', 'init', '--pair', 'true', '--lease', '2')).toMatchObject({
      exitCode: 0,
      out: 'pair true, lease 2 s',
    })
    expect(JSON.parse((await run('replica', 'status', '--json')).out)).toMatchObject({
      pair: true,
      lease_seconds: 2,
    })
    await first.service.stop()
    expect(await run('restore', 's3', '--force')).toMatchObject({ exitCode: 0, err: '' })
    await using second = await startService({
      listen: true,
      environment: { ...environment, DATA_DIR: folder.path },
    })
    expect((await second.call('GET', '/readyz')).status).toBe(200)
  },
)
