import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { version } from '../package.json' with { type: 'json' }
import { migrations } from '../src/db/migrations.ts'
import { texts as translations } from '../src/lib/i18n.ts'
import { stopDeadlineMilliseconds } from '../src/listen.ts'
import { decodeEntry, parsePosition } from '../src/replication/log.ts'
import { makeCertificate } from './support/certificate.ts'
import { gatherCrowd } from './support/crowd.ts'
import { startCut } from './support/cut.ts'
import { executable } from './support/executable.ts'
import { size, testAtLength } from './support/faults.ts'
import { command, type ReplicaNode } from './support/nodes.ts'
import { startObjectStore } from './support/object-store.ts'
import {
  type Pair,
  type People,
  say,
  saySurely,
  sendContinuously,
  startPair,
  texts,
} from './support/pair.ts'
import { allMessages, call, meet, served } from './support/process.ts'
import { TestSocket } from './support/socket.ts'
import { tools } from './support/tools.ts'
import { aWhile, waitFor, waitOut } from './support/wait.ts'
import { startReceiver } from './support/webhook-receiver.ts'

const { openssl, promtool } = tools
const dayMilliseconds = 86_400_000

/** Faults of a bad day. */
const badDay = { latency: 5, errors: 0.05, hangs: 0.002, slow: 0.01 }
const goodDay = { latency: 0, errors: 0, hangs: 0, slow: 0 }

/** Kills the leader of a pair repeatedly under load, every second time with its directory.
 *  @returns the violations after the first take-over that has any, and the times until a write was acknowledged */
async function killLeaders(rounds: number, leaseSeconds: number) {
  await using pair = await startPair({ REPLICA_ACK: 'bucket', REPLICA_LEASE: `${leaseSeconds}` })
  const crowd = await gatherCrowd(pair.directory('a'))
  const names = ['a', 'b'] as const
  let leader = await pair.start('a')
  await leader.ready()
  const times: number[] = []
  const complaints: string[] = []
  for (let round = 0; round < rounds && complaints.length === 0; round++) {
    const [own = '', other = ''] = round % 2 === 0 ? names : [...names].reverse()
    const standby = await pair.start(other, { args: round % 4 < 2 ? ['standby'] : [] })
    await standby.says('follows the log')
    const load = crowd.useEverything(leader.base)
    Object.assign(pair.store.faults, badDay)
    const enough = crowd.acknowledged() + 30
    // On a bad day the leader may also lose its lease.
    const isOver = waitFor(() => crowd.acknowledged() > enough, 'acknowledgements', 60_000)
    await Promise.race([isOver, leader.exited])
    await aWhile(200)
    await leader.end('SIGKILL')
    if (round % 2 === 1) rmSync(pair.directory(own), { recursive: true })
    times.push(await untilAcknowledged(standby, crowd, round))
    await load.end()
    Object.assign(pair.store.faults, goodDay)
    await standby.ready()
    const found = await crowd.complaints(standby.base, standby.dataDir)
    // On a bad day a leader is cut off for moments of a short lease, and then serves nothing.
    complaints.push(...found.filter((complaint) => !/^GET .*: 503$/.test(complaint)))
    leader = standby
  }
  return { complaints, times, acknowledged: crowd.acknowledged() }
}

/** @returns how long that took, in milliseconds */
async function untilAcknowledged(
  { base, output }: ReplicaNode,
  { talks, people }: Awaited<ReturnType<typeof gatherCrowd>>,
  round: number,
) {
  const since = performance.now()
  const path = `/v1/chat/conversations/${talks[0]?.id}/messages`
  const body = { body: `first ${round}`, client_id: `first ${round}` }
  const first = { token: people[0]?.token ?? '', body }
  const isTaken = () => call(base, 'POST', path, first).then(({ status }) => status === 201)
  await waitFor(() => isTaken().catch(() => false), 'the first acknowledgement', 60_000).catch(
    ({ message }: Error) => {
      throw new Error(`${message}\n${linesOf(output()).slice(-20).join('\n')}`)
    },
  )
  return performance.now() - since
}

/** The log lines of a node, without failed requests. */
const linesOf = (output: string) =>
  output.split('\n').filter((line) => !line.includes('"message":"request"'))

const leases = [
  { lease: 1, rounds: size(30, 3) },
  { lease: 5, rounds: 10 },
  { lease: 10, rounds: 10 },
]

test.each(leases.slice(0, size(3, 1, 0)))(
  'the standby has every write that the killed leader acknowledged (a lease of $lease s)',
  async ({ lease, rounds }) => {
    const { complaints, times, acknowledged } = await killLeaders(rounds, lease)
    expect(complaints).toEqual([])
    const sorted = times.toSorted((a, b) => a - b).map(Math.round)
    console.log(
      `${rounds} take-overs with a lease of ${lease} s: ${acknowledged} were acknowledged; from the kill to the next acknowledgement ${sorted[rounds >> 1]} ms (median), ${sorted.at(-1)} ms (worst)`,
    )
  },
  1_800_000,
)

/** Resolves when the bucket has all commits of a leader. */
const isShipped = ({ base }: ReplicaNode) =>
  waitFor(async () => {
    const metrics = await fetch(`${base}/metrics`).then((answer) => answer.text())
    return metrics.includes('hostline_replica_lag_seconds 0\n')
  }, 'the bucket to have everything')

/** Stops a node while it ships the message "lost", which the bucket never gets. */
async function stopWhileShipping({ store: { faults } }: Pair, node: ReplicaNode, people: People) {
  const { promise: isSignalled, resolve } = Promise.withResolvers<void>()
  let isOver = false
  faults.beforePut = async (key, bytes) => {
    if (!key.startsWith('log/')) return
    const { pages } = await decodeEntry(bytes)
    if (!Buffer.from(pages).includes('lost')) return
    node.signal('SIGSTOP')
    faults.away = true
    faults.beforePut = undefined
    isOver = true
    resolve()
  }
  void waitFor(async () => (await say(node.base, people, 'lost')) !== 503 || isOver)
  await isSignalled
  await waitFor(() => isStopped(node))
  faults.away = false
}

/** The state as the kernel reports it. */
async function isStopped({ pid }: ReplicaNode) {
  const state = /^State:\s+(\w)/m.exec(await Bun.file(`/proc/${pid}/status`).text())?.[1]
  return state === 'T'
}

/** Sends messages without waiting for responses, and keeps the acknowledged ones. */
function sendWithoutWaiting(base: string, people: People) {
  const sent: string[] = []
  const acknowledged: string[] = []
  const timer = setInterval(() => {
    const text = `late ${sent.length}`
    sent.push(text)
    void say(base, people, text).then((status) => status === 201 && acknowledged.push(text))
  }, 20)
  return { sent, acknowledged, end: () => clearInterval(timer) }
}

const ended = (reason: string) =>
  new RegExp(`"message":"(?:${reason}): this node acknowledges no more writes and stops"`, 'g')
const entryIsRefused = String.raw`\S+ leads since \S+|the log continues at \S+`
/** The watch of the snapshots may wake before the entry is sent. */
const logIsReplaced = String.raw`another log is in the bucket: \S+ writes it`

describe('a leader that was stopped for longer than its lease', () => {
  test.each(['disk', 'bucket'].slice(0, size(2, 2, 0)))(
    'acknowledges nothing that came meanwhile, exits, and returns as a standby that reports dropped writes (%s)',
    async (ack) => {
      await using pair = await startPair({ REPLICA_ACK: ack })
      const a = await pair.leader('a')
      const b = await pair.standby('b')
      const people = await meet(a.base)
      await saySurely(a.base, people, 'shipped')
      await isShipped(a)
      const writing = sendWithoutWaiting(a.base, people)
      await stopWhileShipping(pair, a, people)
      const before = [...writing.sent]
      await b.ready()
      await saySurely(b.base, people, 'of the next leader')
      a.signal('SIGCONT')
      expect(await a.exited).toBe(1)
      writing.end()
      expect(a.output().match(ended(entryIsRefused))).toHaveLength(1)
      expect(before).toEqual(expect.arrayContaining(writing.acknowledged))

      const kept = await texts(b.base, people)
      if (ack === 'bucket') expect(kept).toEqual(expect.arrayContaining(writing.acknowledged))
      expect(kept).not.toContain('lost')
      const again = await pair.start('a')
      await again.says(databaseIsKept)
      expect(textsIn(lineOf(again, databaseIsKept).kept_as)).toContain('lost')
    },
  )
})

const databaseIsKept = 'the log may lack the last commits of this node: its database is kept'
const lineOf = (node: ReplicaNode, message: string) =>
  node
    .output()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))
    .find((line) => line.message === message)

function textsIn(database: string) {
  using sqlite = new Database(database, { readonly: true })
  return sqlite.query('SELECT body FROM messages').values().flat().map(String)
}

testAtLength('a standby that takes over has the settings of the leader', async () => {
  await using pair = await startPair({ REPLICA_ACK: 'bucket' })
  const a = await pair.leader('a')
  const b = await pair.standby('b')
  const set = ['settings', 'set', 'platform_name', 'Rooms']
  await waitFor(async () => (await command(a.dataDir, pair.store.url, set)).code === 0)
  await a.end('SIGKILL')
  await b.ready()
  const page = await served(() => call(b.base, 'GET', '/verify-email?lang=en'))
  expect(page.body).toContain('<title>Confirm your e-mail address · Rooms</title>')
})

testAtLength(
  'of two standbys exactly one leads, and the other one when the first dies',
  async () => {
    await using pair = await startPair({ REPLICA_ACK: 'bucket' })
    const a = await pair.leader('a')
    const [b, c] = await Promise.all([pair.standby('b'), pair.standby('c')])
    const people = await meet(a.base)
    await saySurely(a.base, people, 'to a')
    await a.end('SIGKILL')
    const ready = await waitFor(async () => {
      const both = await Promise.all([b.isReady(), c.isReady()])
      return both.includes(true) ? both : undefined
    }, 'one of them')
    expect(ready).toContain(false)
    const [first, second] = ready[0] ? [b, c] : [c, b]
    await saySurely(first.base, people, 'to the first')
    expect(await call(second.base, 'GET', '/healthz')).toMatchObject({ body: { role: 'standby' } })
    await first.end('SIGKILL')
    await second.ready()
    await saySurely(second.base, people, 'to the second')
    expect(await texts(second.base, people)).toEqual(['to a', 'to the first', 'to the second'])
  },
)

/** Restarts the killed leader when the standby is about to lead.
 *  @param whoIsFirst the node whose entry the bucket gets first */
async function raceForLead(pair: Pair, whoIsFirst: 'standby' | 'former leader') {
  const a = await pair.leader('a')
  const b = await pair.standby('b')
  const people = await meet(a.base)
  await saySurely(a.base, people, 'to a')
  await a.end('SIGKILL')
  const { promise: again, resolve } = Promise.withResolvers<ReplicaNode>()
  const { promise: bothReach, resolve: letGo } = Promise.withResolvers<void>()
  const reached = new Set<string>()
  const first = whoIsFirst === 'standby' ? 0 : 1
  let place: string | undefined
  // A request that times out is repeated.
  pair.store.faults.beforePut = async (key, body) => {
    const node = key.startsWith('log/') ? await leaderSince(body) : undefined
    if (node === undefined) return
    place ??= key
    if (key !== place) return
    reached.add(node)
    if (reached.size === 1) resolve(pair.start('a'))
    else letGo()
    await bothReach
    if (node !== [...reached][first]) await waitFor(() => pair.store.get(key), 'the first of them')
  }
  return { again: await again, b, people }
}

/** The node that leads from an entry on; the last heartbeat of the killed one may still be on its way. */
async function leaderSince(bytes: Uint8Array) {
  const { node, kind } = (await decodeEntry(bytes)).entry
  return kind === 'begin' ? node : undefined
}

describe('a former leader that restarts during the take-over', () => {
  testAtLength('follows when the standby is first', async () => {
    await using pair = await startPair({ REPLICA_ACK: 'bucket' })
    const { again, b, people } = await raceForLead(pair, 'standby')
    await b.ready()
    await again.says('follows the log')
    await saySurely(b.base, people, 'to b')
    expect(await again.isReady()).toBe(false)
    expect(await texts(b.base, people)).toEqual(['to a', 'to b'])
  })

  testAtLength('leads when it is first, and the standby follows', async () => {
    await using pair = await startPair({ REPLICA_ACK: 'bucket' })
    const { again, b, people } = await raceForLead(pair, 'former leader')
    await again.ready()
    await saySurely(again.base, people, 'to a again')
    expect(await b.isReady()).toBe(false)
    await again.end('SIGKILL')
    await b.ready()
    expect(await texts(b.base, people)).toEqual(['to a', 'to a again'])
  })
})

describe('in disk mode a leader without the bucket', () => {
  test.each(['away', 'silent'].slice(size(0, 0, 2)))(
    'acknowledges nothing after ¾ of a lease, serves nothing after a lease, and continues (the bucket is %s)',
    async (how) => {
      await using pair = await startPair()
      const { faults } = pair.store
      const a = await pair.leader('a')
      const b = await pair.standby('b')
      const people = await meet(a.base)
      if (how === 'away') faults.away = true
      else faults.hangs = 1
      await waitFor(async () => (await say(a.base, people, 'nobody knows')) === 503, '503')
      const path = `/v1/chat/conversations/${people.conversationId}/messages`
      const sending = { token: people.a.token, body: { body: 'refused' } }
      const refused = await call(a.base, 'POST', path, sending)
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '2'])
      expect(await a.isReady()).toBe(false)
      const read = async () => (await call(a.base, 'GET', path, people.a)).status
      await waitFor(async () => (await read()) === 503, 'the end of the lease')
      const metrics = async () => (await fetch(`${a.base}/metrics`)).text()
      expect(await metrics()).toContain('hostline_replica_leader 0\n')
      expect((await call(a.base, 'GET', '/healthz')).status).toBe(200)
      await b.says('this standby cannot read the bucket')
      await waitOut(2_000)
      faults.away = false
      faults.hangs = 0
      await a.ready()
      await saySurely(a.base, people, 'again')
      expect([await read(), (await metrics()).includes('hostline_replica_leader 1\n')]).toEqual([
        200,
        true,
      ])
      expect(await call(b.base, 'GET', '/healthz')).toMatchObject({ body: { role: 'standby' } })
      expect(b.output()).not.toContain('this node leads')
      expect(b.output().split('follows the log')).toHaveLength(2)
    },
  )
})

testAtLength(
  'a leader that alone is cut off serves nothing once another one leads, and no two report that they lead',
  async () => {
    await using pair = await startPair({ REPLICA_LEASE: '5' })
    using way = await startCut(Number(new URL(pair.store.url.replace('s3:', 'http:')).port))
    const url = pair.store.url.replace(/:\d+\//, `:${way.port}/`)
    const a = await pair.leader('a', { environment: { REPLICA_S3_URL: url } })
    const b = await pair.standby('b')
    const people = await meet(a.base)
    const path = `/v1/chat/conversations/${people.conversationId}/messages`
    const socket = await TestSocket.open(
      `${a.base.replace('http', 'ws')}/v1/chat/ws?token=${people.a.token}`,
    )
    await saySurely(a.base, people, 'shipped')
    await isShipped(a)
    const leads = ({ base }: ReplicaNode) =>
      fetch(`${base}/metrics`).then(
        async (answer) => (await answer.text()).includes('hostline_replica_leader 1\n'),
        () => false,
      )
    const counts: number[] = []
    const watching = setInterval(async () => {
      const both = await Promise.all([leads(a), leads(b)])
      counts.push(both.filter(Boolean).length)
    }, 20)
    way.cut()
    await socket.closed
    await b.ready()
    expect((await call(a.base, 'GET', path, people.a)).status).toBe(503)
    await saySurely(b.base, people, 'of the next leader')
    way.mend()
    expect(await a.exited).toBe(1)
    clearInterval(watching)
    expect(counts.length).toBeGreaterThan(10)
    expect(counts.filter((count) => count > 1)).toEqual([])
    const again = await pair.start('a')
    await again.says('follows the log')
    expect(await texts(b.base, people)).toEqual(['shipped', 'of the next leader'])
  },
)

/** Advances past the retention of the bucket, with a snapshot of the leader before and after. */
async function passRetention({ store }: Pair, leader: ReplicaNode, people: People) {
  const beginOfLead = store.keys('log/').at(-1) ?? ''
  for (const day of [1, 2]) {
    await saySurely(leader.base, people, `day ${day}`)
    const taken = await command(leader.dataDir, store.url, ['replica', 'snapshot'])
    expect(taken).toMatchObject({ code: 0, err: '' })
    store.age(8 * dayMilliseconds)
  }
  await command(leader.dataDir, store.url, ['replica', 'snapshot'])
  expect((store.keys('log/')[0] ?? '') > beginOfLead).toBe(true)
}

describe('a node that was suspended until the log was trimmed', () => {
  test.each(['is sent when it wakes', 'was on its way to the bucket'].slice(size(0, 0, 2)))(
    'exits as leader and acknowledges nothing, although its next position is free: the entry %s',
    async (when) => {
      await using pair = await startPair({ REPLICA_ACK: 'bucket' })
      const a = await pair.leader('a')
      const b = await pair.standby('b')
      const people = await meet(a.base)
      const { promise: isTrimmed, resolve: letGo } = Promise.withResolvers<void>()
      if (when === 'is sent when it wakes') await stopWhileShipping(pair, a, people)
      else await stopWhileOnItsWay(pair, a, isTrimmed)
      const writing = sendWithoutWaiting(a.base, people)
      await b.ready()
      await passRetention(pair, b, people)
      const ownPlaces = () => pair.store.keys('log/').filter((key) => key < 'log/00000002')
      expect(ownPlaces()).toEqual([])
      letGo()
      if (when !== 'is sent when it wakes') await waitFor(() => ownPlaces().length === 1)
      a.signal('SIGCONT')
      expect(await a.exited).toBe(1)
      expect(a.output().match(ended(`${entryIsRefused}|${logIsReplaced}`))).toHaveLength(1)
      writing.end()
      expect(writing.acknowledged).toEqual([])
      const all = await texts(b.base, people)
      const again = await pair.standby('a')
      expect(textsIn(lineOf(again, databaseIsKept).kept_as)).not.toEqual(all)
      await b.end('SIGTERM')
      await again.ready()
      expect(await texts(again.base, people)).toEqual(all)
    },
  )

  testAtLength('restarts from a snapshot as standby', async () => {
    await using pair = await startPair({ REPLICA_ACK: 'bucket' })
    const a = await pair.leader('a')
    const b = await pair.standby('b')
    const people = await meet(a.base)
    b.signal('SIGSTOP')
    await passRetention(pair, a, people)
    b.signal('SIGCONT')
    await b.says('the log no longer continues from this copy: starting again from a snapshot')
    await waitFor(() => b.output().split('this standby follows the log').length === 3)
    const all = await texts(a.base, people)
    await a.end('SIGKILL')
    await b.ready()
    expect(await texts(b.base, people)).toEqual(all)
  })
})

/** Stops a node while its next entry is in flight; the bucket gets it later. */
async function stopWhileOnItsWay(
  { store: { faults } }: Pair,
  node: ReplicaNode,
  later: Promise<void>,
) {
  await new Promise<void>((resolve) => {
    faults.beforePut = async (key) => {
      if (!key.startsWith('log/')) return
      faults.beforePut = undefined
      node.signal('SIGSTOP')
      resolve()
      await later
    }
  })
  await waitFor(() => isStopped(node))
}

// No take-over may happen by timeout here, however slow the machine is.
const patient = { REPLICA_LEASE: '30' }

describe('a standby behind a snapshot entry whose snapshot is lost', () => {
  test.each(['was stopped', 'was suspended'].slice(size(0, 0, 2)))(
    'starts again from a newer snapshot (it %s)',
    async (what) => {
      await using pair = await startPair({ REPLICA_ACK: 'bucket' })
      let a = await pair.leader('a')
      const people = await meet(a.base)
      let b = await pair.standby('b')
      if (what === 'was stopped') await b.end('SIGTERM')
      else b.signal('SIGSTOP')
      await a.end('SIGKILL')
      const run = (...args: string[]) => command(a.dataDir, pair.store.url, args)
      expect(await run('replica', 'init', '--force')).toMatchObject({ code: 0 })
      a = await pair.start('a')
      await a.ready()
      const lost = pair.store.keys('snapshots/').findLast((key) => key.endsWith('/000000'))
      pair.store.delete(lost ?? '')
      expect(await run('replica', 'snapshot')).toMatchObject({ code: 0 })
      await saySurely(a.base, people, 'to a')
      if (what === 'was stopped') b = await pair.standby('b')
      else b.signal('SIGCONT')
      await a.end('SIGKILL')
      await b.ready()
      expect(await texts(b.base, people)).toEqual(['to a'])
    },
  )
})

testAtLength('a new leader with nothing to ship accepts writes', async () => {
  await using pair = await startPair({ REPLICA_ACK: 'bucket', ...patient })
  cpSync((await executable()).emptyData, pair.directory('a'), { recursive: true })
  // Otherwise each start writes a token for the first admin.
  const admin = ['user', 'create', '--email', 'root@example.com', '--role', 'admin']
  await command(pair.directory('a'), pair.store.url, admin)
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const a = await pair.start('a')
    await a.ready()
    await isShipped(a)
    await a.end(signal)
  }
  const again = await pair.start('a')
  await again.ready()
  await isShipped(again)
})

testAtLength('a server stopped before its first snapshot is complete exits with it', async () => {
  // With a short lease requests have short timeouts, and a start without an answer goes on without the bucket.
  await using pair = await startPair({ REPLICA_PAIR: 'false', ...patient })
  pair.store.faults.latency = 50
  const a = await pair.leader('a')
  expect(await a.end('SIGTERM')).toBe(0)
  const manifests = pair.store.keys('snapshots/').filter((key) => key.endsWith('/manifest'))
  expect(manifests).toHaveLength(1)
})

describe.concurrent('a log is created by a command, or by the first server on a bucket', () => {
  const alone = { REPLICA_PAIR: 'false' }
  const noLog =
    /^hostline: there is no log in the bucket: start the leader first, or run hostline replica init where its database is .*\n$/
  const errors = (node: ReplicaNode) => node.output().replaceAll(/^\{.*\}\n/gm, '')

  testAtLength('never by a standby; two servers of a new pair begin it together', async () => {
    await using pair = await startPair(patient)
    const standby = await pair.start('c', { args: ['standby'] })
    expect(await standby.exited).toBe(1)
    expect(errors(standby)).toMatch(noLog)
    expect(pair.store.keys()).toEqual([])
    const nodes = await Promise.all([pair.start('a'), pair.start('b')])
    await waitFor(() => nodes.some((node) => node.output().includes('follows the log')))
    const isFollowing = nodes.map((node) => node.output().includes('follows the log'))
    expect(isFollowing.toSorted()).toEqual([false, true])
    await nodes[isFollowing.indexOf(false)]?.ready()
  })

  testAtLength.each(['true', 'false'])(
    'also by a first start that gets no response to its claim (a pair: %s)',
    async (isPair) => {
      await using pair = await startPair({ ...patient, REPLICA_PAIR: isPair })
      const { faults } = pair.store
      let claims = 0
      faults.afterPut = (key) => {
        if (!key.startsWith('log/')) return
        if (++claims === 2) faults.afterPut = undefined
        faults.away = true
        void waitOut(500).then(() => (faults.away = false))
      }
      const a = await pair.start('a')
      const end = await Promise.race([a.exited, a.ready().then(() => 'ready')])
      expect([end, claims]).toEqual(['ready', 2])
      await isShipped(a)
    },
  )

  testAtLength(
    'also by a first start whose first claim is lost, and the response to its second',
    async () => {
      await using pair = await startPair(patient)
      const { faults } = pair.store
      const leaveOnce = (hook: 'beforePut' | 'afterPut') => (key: string) => {
        if (!key.startsWith('log/')) return
        faults[hook] = undefined
        faults.away = true
        void waitOut(500).then(() => (faults.away = false))
      }
      faults.beforePut = leaveOnce('beforePut')
      faults.afterPut = leaveOnce('afterPut')
      const a = await pair.start('a')
      const end = await Promise.race([a.exited.then(a.output), a.ready().then(() => 'ready')])
      expect(end).toBe('ready')
    },
  )

  testAtLength(
    'also by a first start whose first claim is stored late, before its second',
    async () => {
      await using pair = await startPair(patient)
      const { faults } = pair.store
      const second = Promise.withResolvers<void>()
      let claims = 0
      faults.beforePut = async (key) => {
        if (!key.startsWith('log/')) return
        claims++
        if (claims === 1) return await second.promise
        faults.beforePut = undefined
        second.resolve()
        await waitFor(() => pair.store.get(key), 'the first claim')
      }
      const a = await pair.start('a')
      const end = await Promise.race([a.exited.then(a.output), a.ready().then(() => 'ready')])
      expect([end, claims]).toEqual(['ready', 2])
    },
  )

  testAtLength('a single server refuses a bucket with another database', async () => {
    await using pair = await startPair(patient)
    const first = await pair.leader('a', { environment: alone })
    await first.end('SIGTERM')
    const log = pair.store.keys()
    const standby = await pair.start('d', { args: ['standby'] })
    expect(await standby.exited).toBe(1)
    expect(errors(standby)).toMatch(
      /^hostline: the log allows no standby: run hostline replica init --pair true on \S+\n$/,
    )
    const empty = await pair.start('b', { environment: alone })
    expect(await empty.exited).toBe(1)
    expect(errors(empty)).toMatch(
      /^hostline: there is no database in .*, but there is one in the bucket: run hostline restore s3, or .*\n$/,
    )
    cpSync((await executable()).emptyData, pair.directory('c'), { recursive: true })
    const other = await pair.start('c', { environment: alone })
    expect(await other.exited).toBe(1)
    expect(errors(other)).toMatch(/^hostline: the bucket belongs to the database of \S+: run .*\n$/)
    expect(pair.store.keys()).toEqual(log)
  })

  testAtLength(
    'the command creates it once, and the log says who may take over and when',
    async () => {
      await using pair = await startPair(patient)
      const init = (...args: string[]) =>
        command(pair.directory('a'), pair.store.url, ['replica', 'init', ...args])
      cpSync((await executable()).emptyData, pair.directory('a'), { recursive: true })
      const { code, out } = await init('--pair', 'true', '--lease', '20')
      expect([code, out]).toEqual([
        0,
        expect.stringMatching(/^pair true, lease 20 s; the server leads/),
      ])
      expect(await init('--lease', '30')).toMatchObject({ code: 0, err: '' })
      expect((await init('--lease', '0')).code).toBe(2)
      cpSync((await executable()).emptyData, pair.directory('b'), { recursive: true })
      const other = await command(pair.directory('b'), pair.store.url, ['replica', 'init'])
      expect(other).toMatchObject({
        code: 1,
        err: expect.stringContaining('there is a log, led by'),
      })
      const a = await pair.start('a', { environment: alone })
      await a.ready()
      expect(a.output()).toContain('REPLICA_PAIR and REPLICA_LEASE differ from the log')
      const b = await pair.start('c', { environment: alone })
      await b.says('follows the log')
    },
  )
})

const deutsch = { 'accept-language': 'de' }
describe.concurrent('a standby', () => {
  test('answers that it is one, and refuses requests until it leads', async () => {
    await using pair = await startPair(patient)
    await pair.leader('a')
    const { base } = await pair.standby('b')
    expect(await call(base, 'GET', '/healthz')).toMatchObject({
      status: 200,
      body: { status: 'ok', version, role: 'standby' },
    })
    for (const [method, path] of [
      ['GET', '/readyz'],
      ['POST', '/v1/auth/login'],
      ['GET', '/v1/chat/ws?token=x'],
      ['GET', '/console'],
      ['GET', '/nowhere'],
    ] as const) {
      const refused = await call(base, method, path, { headers: deutsch })
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5'])
      expect(refused.headers.get('x-request-id')).toMatch(/^[0-9A-Z]{26}$/)
      const message = translations.de.errors.unavailable
      expect(refused.body).toEqual({ error: { code: 'internal_error', message, details: null } })
    }
    const nameless = await call(base, 'GET', '/healthz', { headers: { host: '[::' } })
    expect([nameless.status, Object.keys(nameless.body.error.details)]).toEqual([400, ['host']])
  })

  testAtLength('has metrics of its own, for this machine or with the token', async () => {
    await using pair = await startPair(patient)
    await pair.leader('a')
    const open = await pair.standby('b')
    const read = () => fetch(`${open.base}/metrics`).then((answer) => answer.text())
    await waitFor(async () => /^hostline_replica_position [1-9]/m.test(await read()))
    const metrics = await read()
    expect(metrics).toContain('hostline_replica_leader 0\n')
    expect(metrics).toMatch(/^hostline_replica_lag_seconds \d/m)
    if (promtool) {
      const input = new Blob([metrics])
      const checked = Bun.spawn([promtool, 'check', 'metrics'], { stdin: input, stderr: 'pipe' })
      expect([await checked.stderr.text(), await checked.exited]).toEqual(['', 0])
    }
    const forwarded = { headers: { 'x-forwarded-for': '203.0.113.1' } }
    expect((await call(open.base, 'GET', '/metrics', forwarded)).status).toBe(401)
    const closed = await pair.standby('c', { environment: { METRICS_TOKEN: 'secret' } })
    const ask = async (headers = {}) => {
      const { status, headers: given } = await fetch(`${closed.base}/metrics`, { headers })
      return [status, given.get('x-error-reason')]
    }
    expect(await ask()).toEqual([401, 'token_missing'])
    expect(await ask({ authorization: 'Bearer wrong' })).toEqual([401, 'token_invalid'])
    expect(await ask({ authorization: 'Bearer secret' })).toEqual([200, null])
  })

  testAtLength.skipIf(!openssl)('answers over TLS', async () => {
    await using pair = await startPair(patient)
    const { cert, key } = await makeCertificate(pair.directory('.'))
    await pair.leader('a')
    const b = await pair.standby('b', { environment: { TLS_CERT: cert, TLS_KEY: key } })
    const address = `${b.base.replace('http', 'https')}/healthz`
    const answer = await fetch(address, { tls: { rejectUnauthorized: false } })
    expect(await answer.json()).toMatchObject({ role: 'standby' })
  })

  testAtLength('ends on request', async () => {
    await using pair = await startPair(patient)
    await pair.leader('a')
    const b = await pair.standby('b')
    expect(await b.end('SIGTERM')).toBe(0)
  })
})

describe.concurrent('a handover of the lead', () => {
  const attemptsOfRequest = 4

  testAtLength('for an upgrade of both: continuous writes of clients are stored once', async () => {
    await using pair = await startPair({ REPLICA_ACK: 'bucket', ...patient })
    const a = await pair.leader('a')
    const b = await pair.standby('b')
    const people = await meet(a.base)
    const writing = sendContinuously([a.base, b.base], people)
    const enough = () => {
      const more = writing.acknowledged.length + 10
      return waitFor(() => writing.acknowledged.length > more, 'acknowledgements')
    }
    await enough()
    await b.end('SIGTERM')
    const next = await pair.standby('b')
    await enough()
    const handedOver = await command(a.dataDir, pair.store.url, ['hand-over'])
    expect(handedOver).toEqual({ code: 0, out: expect.stringContaining(' leads since '), err: '' })
    expect(await a.exited).toBe(0)
    const old = await pair.standby('a')
    await enough()
    await writing.end()
    const kept = await texts(next.base, people)
    expect(kept.toSorted()).toEqual(writing.acknowledged.toSorted())
    expect(old.output()).not.toContain(databaseIsKept)
  })

  testAtLength('without a standby fails after its timeout, and the node leads again', async () => {
    await using pair = await startPair({ REPLICA_LEASE: '3' })
    const a = await pair.leader('a')
    const people = await meet(a.base)
    await saySurely(a.base, people, 'before')
    const handingOver = command(a.dataDir, pair.store.url, ['hand-over'])
    expect(await a.exited).toBe(0)
    const again = await pair.start('a')
    await again.ready()
    expect(await texts(again.base, people)).toEqual(['before'])
    const err = 'hostline: no standby has taken over, and this server was started again\n'
    expect(await handingOver).toEqual({ code: 1, out: '', err })
  })

  testAtLength('is reported although the bucket fails while the lead changes', async () => {
    await using pair = await startPair(patient)
    const { faults, counts } = pair.store
    const a = await pair.leader('a')
    await pair.standby('b')
    faults.afterPut = async (key, bytes) => {
      if (!key.startsWith('log/')) return
      if ((await decodeEntry(bytes)).entry.kind === 'release') faults.errors = 1
    }
    const handingOver = command(a.dataDir, pair.store.url, ['hand-over'])
    const failedLists = () => (counts['LIST 500'] ?? 0) + (counts['LIST 503'] ?? 0)
    await waitFor(() => failedLists() >= attemptsOfRequest, 'the command to fail')
    faults.errors = 0
    const out = expect.stringContaining(' leads since ')
    expect(await handingOver).toEqual({ code: 0, out, err: '' })
  })

  testAtLength('is reported although the standby began as a clone of the leader', async () => {
    await using pair = await startPair(patient)
    const a = await pair.leader('a')
    const people = await meet(a.base)
    const isNoSocket = (path: string) => !path.endsWith('.sock')
    cpSync(a.dataDir, pair.directory('b'), { recursive: true, filter: isNoSocket })
    await saySurely(a.base, people, 'after the clone was made')
    await isShipped(a)
    await pair.standby('b')
    const out = expect.stringContaining(' leads since ')
    const handedOver = await command(a.dataDir, pair.store.url, ['hand-over'])
    expect(handedOver).toEqual({ code: 0, out, err: '' })
  })

  testAtLength('does not wait for slow downloads, uploads and webhooks', async () => {
    await using receiver = startReceiver()
    await using pair = await startPair({ WEBHOOK_PRIVATE: 'true', ...patient })
    const a = await pair.leader('a')
    const target = ['--url', receiver.url, '--events', 'user.created']
    await command(a.dataDir, pair.store.url, ['webhook', 'create', ...target])
    const answered = Promise.withResolvers<{ status: number }>()
    receiver.respond(answered.promise)
    const { a: ada } = await meet(a.base)
    const b = await pair.standby('b')
    const rest = Promise.withResolvers<void>()
    const upload = fetch(`${a.base}/v1/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ada.token}` },
      body: new ReadableStream({
        async start(controller) {
          controller.enqueue(new Uint8Array(100_000))
          await rest.promise
          controller.close()
        },
      }),
    }).then(
      ({ status }) => status,
      () => 0,
    )
    const used = async () =>
      (await call(a.base, 'GET', '/v1/files', { token: ada.token })).body.used
    await waitFor(async () => (await used()) > 0, 'the upload to begin')
    const handingOver = command(a.dataDir, pair.store.url, ['hand-over'])
    await a.says('handing over')
    await Promise.race([a.exited, waitOut(stopDeadlineMilliseconds / 2)])
    rest.resolve()
    answered.resolve({ status: 204 })
    expect([await upload, (await handingOver).code]).toEqual([0, 0])
    await b.ready()
    const ids = () => receiver.received.map(({ headers }) => headers['webhook-id'])
    await waitFor(() => ids().length > new Set(ids()).size, 'the delivery to be repeated')
  })

  testAtLength('is possible on the leader only', async () => {
    await using pair = await startPair(patient)
    await pair.leader('a')
    const { dataDir } = await pair.standby('b')
    const refused = await command(dataDir, pair.store.url, ['hand-over'])
    expect(refused).toEqual({ code: 1, out: '', err: 'hostline: this node does not lead\n' })
  })

  testAtLength('needs a running server', async () => {
    await using pair = await startPair(patient)
    const { dataDir, end } = await pair.leader('a')
    await end()
    const refused = await command(dataDir, pair.store.url, ['hand-over'])
    const err = `hostline: no server is running on ${dataDir}\n`
    expect(refused).toEqual({ code: 1, out: '', err })
  })
})

testAtLength(
  'a standby leads at once when its entry is stored, even without a response',
  async () => {
    await using pair = await startPair({ REPLICA_ACK: 'bucket', REPLICA_LEASE: '5' })
    const { faults } = pair.store
    const a = await pair.leader('a')
    const b = await pair.standby('b')
    await a.end('SIGKILL')
    faults.afterPut = (key) => {
      if (!key.startsWith('log/')) return
      faults.afterPut = undefined
      faults.away = true
      void waitOut(100).then(() => (faults.away = false))
    }
    await b.ready()
  },
)

testAtLength('a standby waits for the lease of the leader, not for its own', async () => {
  await using pair = await startPair({ REPLICA_LEASE: '1' })
  const a = await pair.leader('a', { environment: { REPLICA_LEASE: '3' } })
  const b = await pair.standby('b')
  await a.end('SIGKILL')
  await b.ready()
  const entries = pair.store
    .keys('log/')
    .map((key) => decodeEntry(pair.store.get(key) ?? Buffer.of()))
  const written = (await Promise.all(entries)).map(({ entry }) => entry)
  const next = written.findIndex(({ kind }, n) => n > 0 && kind === 'begin')
  const silence = (written[next]?.at ?? 0) - (written[next - 1]?.at ?? 0)
  expect(silence).toBeGreaterThanOrEqual(3_000)
})

testAtLength(
  'a standby with a database of its own waits a lease after a slow bucket has answered',
  async () => {
    await using pair = await startPair({ REPLICA_LEASE: '3' })
    const a = await pair.leader('a')
    await a.end('SIGKILL')
    const { faults, counts, resetCounts } = pair.store
    resetCounts()
    // Two lists and two reads take longer than the lease.
    faults.latency = 800
    let lists: number | undefined
    faults.beforePut = (key) => {
      if (!key.startsWith('log/')) return
      lists ??= counts['LIST 200']
      faults.latency = 0
    }
    const again = await pair.start('a', { args: ['standby'] })
    await again.ready()
    expect(lists).toBeGreaterThanOrEqual(4)
  },
)

/** A program that runs the sources with a clock that is ahead. */
function withClockAhead(folder: string, milliseconds: number): string {
  mkdirSync(folder)
  const [path, preload] = [join(folder, 'hostline'), join(folder, 'ahead.ts')]
  writeFileSync(
    preload,
    `const { now } = Date
const RealDate = Date
globalThis.Date = class extends RealDate {
  constructor(...given) { super(...(given.length === 0 ? [now() + ${milliseconds}] : given)) }
  static now() { return now() + ${milliseconds} }
}`,
  )
  const main = join(import.meta.dir, '../src/main.ts')
  writeFileSync(
    path,
    `#!/bin/sh\nexec "${process.execPath}" --preload "${preload}" "${main}" "$@"\n`,
  )
  chmodSync(path, 0o755)
  return path
}

testAtLength('a standby whose clock is ten minutes ahead takes over, and back', async () => {
  await using pair = await startPair({ REPLICA_ACK: 'bucket' })
  const path = withClockAhead(pair.directory('ahead'), 10 * 60_000)
  const a = await pair.leader('a')
  const b = await pair.standby('b', { path })
  const people = await meet(a.base)
  await saySurely(a.base, people, 'one')
  /** The access tokens of the other machine seem expired, or issued in the future. */
  const login = async (base: string) => {
    const { email } = people.a
    const body = { email, password: 'correct horse' }
    const { body: session } = await served(() => call(base, 'POST', '/v1/auth/login', { body }))
    people.a.token = session.access_token
  }
  await a.end('SIGKILL')
  await b.ready()
  await login(b.base)
  await saySurely(b.base, people, 'two')
  const [last] = await allMessages(b.base, people.conversationId, people.a.token)
  const again = await pair.standby('a')
  await b.end('SIGKILL')
  await again.ready()
  await login(again.base)
  await saySurely(again.base, people, 'three')
  expect(await texts(again.base, people)).toEqual(['one', 'two', 'three'])
  // The order of ids is that of sending, although the clock went back.
  const since = `/v1/chat/messages?since=${last?.id}`
  const missed = await served(() => call(again.base, 'GET', since, { token: people.a.token }))
  expect(missed.body.data).toMatchObject([{ body: 'three' }])
})

testAtLength(
  'a pair whose bucket is emptied under load loses nothing, and can take over again',
  async () => {
    await using pair = await startPair({ REPLICA_ACK: 'bucket', REPLICA_LEASE: '5' })
    const a = await pair.leader('a')
    const b = await pair.standby('b')
    const people = await meet(a.base)
    const writing = sendContinuously([a.base, b.base], people)
    const more = (count: number) => {
      const enough = writing.acknowledged.length + count
      return waitFor(() => writing.acknowledged.length > enough, 'acknowledgements', 90_000)
    }
    await more(10)
    for (const key of pair.store.keys()) pair.store.delete(key)
    await a.says('taking another one now')
    await more(10)
    await waitFor(
      () => b.output().split('follows the log').length > 2,
      'the standby to follow again',
    )
    await more(10)
    await a.end('SIGKILL')
    await b.ready()
    await more(10)
    await writing.end()
    expect((await texts(b.base, people)).toSorted()).toEqual(writing.acknowledged.toSorted())
  },
)

testAtLength(
  'a standby leads with its copy when both the bucket and the leader are lost',
  async () => {
    await using pair = await startPair({ REPLICA_ACK: 'bucket' })
    const a = await pair.leader('a')
    const b = await pair.standby('b')
    const people = await meet(a.base)
    await saySurely(a.base, people, 'kept')
    const written = parsePosition(pair.store.keys('log/').at(-1)?.slice('log/'.length) ?? '')
    await waitFor(async () => {
      const metrics = await fetch(`${b.base}/metrics`).then((answer) => answer.text())
      const [, position] = /^hostline_replica_position (\d+)$/m.exec(metrics) ?? []
      return Number(position) >= (written?.position ?? Number.NaN)
    }, 'the standby to have it')
    await a.end('SIGKILL')
    for (const key of pair.store.keys()) pair.store.delete(key)
    await b.ready()
    expect(await texts(b.base, people)).toEqual(['kept'])
    await saySurely(b.base, people, 'new')
    rmSync(a.dataDir, { recursive: true })
    const again = await pair.standby('a')
    await b.end('SIGKILL')
    await again.ready()
    expect(await texts(again.base, people)).toEqual(['kept', 'new'])
  },
)

testAtLength(
  'the copy of a leader that stopped becomes its database again, for another bucket or none',
  async () => {
    await using pair = await startPair()
    await using another = await startObjectStore()
    const elsewhere = { environment: { REPLICA_S3_URL: another.url } }
    const a = await pair.leader('a')
    const people = await meet(a.base)
    await saySurely(a.base, people, 'kept')
    expect(await a.end('SIGTERM')).toBe(0)
    const copy = join(a.dataDir, 'replica.db')
    for (const REPLICA_S3_URL of ['', another.url]) {
      const refused = await pair.start('a', { environment: { REPLICA_S3_URL } })
      expect([await refused.exited, refused.output()]).toEqual([
        1,
        expect.stringContaining(`hostline restore ${copy}`),
      ])
    }
    expect(await command(a.dataDir, another.url, ['restore', copy])).toMatchObject({ code: 0 })
    const again = await pair.start('a', elsewhere)
    await again.ready()
    expect(await texts(again.base, people)).toEqual(['kept'])
  },
)

testAtLength(
  'a node that does not know the version of the database does not touch the log',
  async () => {
    await using pair = await startPair()
    const a = await pair.leader('a')
    const b = await pair.standby('b')
    const sqlite = new Database(join(a.dataDir, 'hostline.db'))
    sqlite.run('PRAGMA user_version = 99')
    sqlite.close()
    await meet(a.base)
    await waitFor(() => versionOf(join(b.dataDir, 'replica.db')) === 99, 'the standby to have it')
    await a.end('SIGTERM')
    const log = pair.store.keys('log/')
    const line = (file: string) =>
      `hostline: the database ${file} has version 99, this hostline knows up to ${migrations.length}: use a newer executable\n`
    for (const node of [b, await pair.start('a')]) {
      expect(await node.exited).toBe(1)
      expect(node.output()).toEndWith(line(join(node.dataDir, 'replica.db')))
    }
    expect(pair.store.keys('log/')).toEqual(log)
  },
)

const versionOf = (path: string) => readFileSync(path).readUInt32BE(60)
