import { expect } from 'bun:test'
import { temporaryDirectory } from './support/directory.ts'
import { buildNext, nextVersion } from './support/executable.ts'
import { testAtLength } from './support/faults.ts'
import { command, type ReplicaNode } from './support/nodes.ts'
import { type Pair, sendContinuously, startPair, texts } from './support/pair.ts'
import { call, meet } from './support/process.ts'
import { waitFor } from './support/wait.ts'

// A pair whose keys or executables change while clients write.

/** A pair under continuous writes. */
async function busyPair(lease: number) {
  const pair = await startPair({ REPLICA_ACK: 'bucket', REPLICA_LEASE: `${lease}` })
  const a = await pair.leader('a')
  const b = await pair.standby('b')
  const people = await meet(a.base)
  const writing = sendContinuously([a.base, b.base], people)
  return {
    pair,
    a,
    b,
    async more() {
      const enough = writing.acknowledged.length + 10
      await waitFor(() => writing.acknowledged.length > enough, 'acknowledgements', 60_000)
    },
    /** Whether the leader has each acknowledged message once. */
    async isWhole(leader: ReplicaNode) {
      await writing.end()
      const kept = await texts(leader.base, people)
      expect(kept.toSorted()).toEqual(writing.acknowledged.toSorted())
    },
    [Symbol.asyncDispose]: () => pair[Symbol.asyncDispose](),
  }
}

/** More than ten seconds of counting on a machine of today. */
const longMigration = 90_000_000

const versionOf = async ({ base }: ReplicaNode) =>
  (await call(base, 'GET', '/healthz')).body.version.split('+')[0]

const handOver = ({ store }: Pair, { dataDir }: ReplicaNode) =>
  command(dataDir, store.url, ['hand-over'])

testAtLength(
  'a pair is upgraded from one executable to the next, and the older one cannot take over again',
  async () => {
    await using busy = await busyPair(30)
    const { pair, a, b, more } = busy
    using folder = temporaryDirectory()
    const path = await buildNext(folder.path)
    await more()
    await b.end('SIGTERM')
    const next = await pair.standby('b', { path })
    await more()
    expect(await handOver(pair, a)).toMatchObject({ code: 0, err: '' })
    await next.ready()
    await more()
    const older = await pair.standby('a')
    const check = () => command(a.dataDir, pair.store.url, ['check'])
    await waitFor(async () => /^FAILED copy of .* use a newer exec/m.test((await check()).out))
    await older.end('SIGTERM')
    const follower = await pair.standby('a', { path })
    expect([await versionOf(next), await versionOf(follower)]).toEqual([nextVersion, nextVersion])
    await busy.isWhole(next)
    expect(next.output()).toContain('migrating the database')
  },
  300_000,
)

testAtLength(
  'a migration that takes longer than the lease: the other machine leads, and nothing is lost or doubled',
  async () => {
    await using busy = await busyPair(2)
    const { pair, a, b, more } = busy
    using folder = temporaryDirectory()
    const path = await buildNext(folder.path, longMigration)
    await b.end('SIGTERM')
    const next = await pair.standby('b', { path })
    await more()
    // As systemd would, the machine starts the older executable again.
    const handingOver = handOver(pair, a)
    await a.exited
    const again = await pair.start('a')
    await handingOver
    expect(await next.exited).toBe(1)
    expect(next.output()).toMatch(/migrating the database[\s\S]* leads since /)
    await again.ready()
    await more()
    await busy.isWhole(again)
  },
  300_000,
)

testAtLength(
  'another key for the bucket: beside the old one, and after the old one was revoked',
  async () => {
    await using busy = await busyPair(10)
    const { pair, more } = busy
    const { faults, urlOf } = pair.store
    const withSecret = (secret: string) => ({ environment: { REPLICA_S3_URL: urlOf(secret) } })
    await more()
    faults.secrets = [...faults.secrets, 'second']
    await busy.b.end('SIGTERM')
    const b = await pair.standby('b', withSecret('second'))
    await busy.a.end('SIGTERM')
    const a = await pair.start('a', withSecret('second'))
    await a.ready()
    faults.secrets = ['second']
    await more()
    for (const { dataDir } of [a, b]) {
      const { out } = await command(dataDir, urlOf('second'), ['check'])
      expect(out).not.toMatch(/^FAILED/m)
    }
    faults.secrets = ['third']
    await waitFor(async () => !(await a.isReady()), 'the end of the lease', 30_000)
    await a.end('SIGTERM')
    await b.end('SIGTERM')
    const [again] = await Promise.all(
      ['a', 'b'].map((name) => pair.start(name, withSecret('third'))),
    )
    await again?.ready()
    await more()
    if (again) await busy.isWhole(again)
  },
  300_000,
)
