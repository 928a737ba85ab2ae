import { expect } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { decodeEntry, type Entry } from '../src/replication/log.ts'
import { gatherCrowd } from './support/crowd.ts'
import { temporaryDirectory } from './support/directory.ts'
import { size, testAtLength } from './support/faults.ts'
import { command, startNode } from './support/nodes.ts'
import { type ObjectStore, startObjectStore } from './support/object-store.ts'
import { aWhile, waitFor } from './support/wait.ts'

const usual = { latency: 0, errors: 0, slow: 0, conflicts: 0, hangs: 0 }
const failing = { latency: 5, errors: 0.05, slow: 0.05, conflicts: 0.05, hangs: 0 }
/** A request without a response is repeated after 15 seconds. */
const hanging = { ...failing, hangs: size(0.02, 0) }
const patience = size(120_000, 60_000)
const longest = size(1_800_000, 300_000)
const rounds = size(30, 2)

type Killing = { ack: 'disk' | 'bucket'; faults: typeof usual }
/** The position in time up to which the bucket has all commits, and when it was stored; ms since the epoch. */
type Shipped = { takenAt: number; storedAt: number }
/** The loss of a machine: the number of writes, the time that they span before its end, and the allowed maximum. */
type Loss = { writes: number; milliseconds: number; most: number }
/** Two attempts against a store with slow responses. */
const requestMilliseconds = 2 * 550 + 200

/** Kills a server repeatedly under load while its bucket fails; every second time, and the last, its directory is
 *  deleted as well.
 *  @returns the violations after the first kill that has any */
async function killUnderLoad({ ack, faults }: Killing) {
  await using store = await startObjectStore()
  using directory = temporaryDirectory()
  const dataDir = join(directory.path, 'data')
  const crowd = await gatherCrowd(dataDir)
  const environment = { REPLICA_ACK: ack }
  const losses: Loss[] = []

  /** @returns undefined when the server asks for another restore */
  async function start() {
    Object.assign(store.faults, usual)
    const server = await startNode({ dataDir, bucket: store.url, environment })
    const refuses = () => server.output().includes('repeat the restore')
    await waitFor(
      async () => refuses() || (await server.isReady()),
      () => `the server to serve: ${server.output()}`,
      patience,
    )
    return refuses() ? undefined : server
  }

  /** The bucket may store a request of the killed server after it was restored, and then the restore is repeated. */
  async function startOnAnotherMachine() {
    return await waitFor(
      async () => {
        const shipped = await replaceMachine(store, dataDir)
        const server = await start()
        return server && { server, shipped }
      },
      'a restore of the whole log',
      patience,
    )
  }

  async function startAgain() {
    const server = await start()
    if (!server) throw new Error('a server on its own data asked for a restore')
    return { server, shipped: undefined }
  }

  async function acceptLoss(base: string, killedAt: number, { takenAt, storedAt }: Shipped) {
    const acknowledgedAt = await crowd.acceptLoss(base, dataDir, takenAt)
    const milliseconds = killedAt - Math.min(killedAt, ...acknowledgedAt)
    // One object a second, plus the time to store the last one and the next one.
    const most = storedAt - takenAt + 1_000 + requestMilliseconds
    losses.push({ writes: acknowledgedAt.length, milliseconds, most })
  }

  let { server } = await startAgain()
  let complaints: string[] = []
  for (let round = 0; round < rounds && complaints.length === 0; round++) {
    await waitFor(() => hasSnapshot(store), 'the first snapshot', patience)
    Object.assign(store.faults, faults)
    const load = crowd.useEverything(server.base)
    const [enough, entries] = [crowd.acknowledged() + 30, store.keys('log/').length]
    const isEnough = () => crowd.acknowledged() > enough && store.keys('log/').length > entries + 1
    await waitFor(isEnough, 'the load', patience)
    await aWhile(size(1_000, 300))
    const killedAt = Date.now()
    await server.end('SIGKILL')
    await load.end()
    const isLost = (rounds - round) % 2 === 1
    const next = await (isLost ? startOnAnotherMachine() : startAgain())
    server = next.server
    if (ack === 'disk' && next.shipped) await acceptLoss(server.base, killedAt, next.shipped)
    complaints = await crowd.complaints(server.base, dataDir)
  }
  await server.end('SIGKILL')
  console.log(`${rounds} kills, ${ack}: ${crowd.acknowledged()} acknowledged writes are there`)
  return { complaints: complaints.slice(0, 20), losses }
}

const hasSnapshot = (store: ObjectStore) =>
  store.keys('snapshots/').some((key) => key.endsWith('/manifest'))

/** Restores the bucket into an empty directory. */
async function replaceMachine(store: ObjectStore, dataDir: string): Promise<Shipped> {
  rmSync(dataDir, { recursive: true })
  const restored = await waitFor(
    async () => {
      const { code, out } = await command(dataDir, store.url, ['restore', 's3'])
      return code === 0 ? out : undefined
    },
    'a restore',
    patience,
  )
  return shippedUpTo(store, /at (\S+)\n/.exec(restored)?.[1] ?? '')
}

/** The newest pages in the log up to the time of an entry. */
async function shippedUpTo(store: ObjectStore, time: string): Promise<Shipped> {
  const keys = store.keys('log/')
  const read = async (key: string) => (await decodeEntry(store.get(key) ?? Buffer.of())).entry
  const all = await Promise.all(keys.map(read))
  const entries: Entry[] = all.filter(({ at }) => at <= Date.parse(time))
  const isPart = (entry?: Entry) => entry?.kind === 'pages' && entry.partial
  let n = entries.findLastIndex((entry) => /pages|base/.test(entry.kind) && !isPart(entry))
  const storedAt = store.lastModified(keys[n] ?? '')
  while (isPart(entries[n - 1])) n--
  const entry = entries[n]
  if (entry?.kind !== 'base') return { takenAt: entry?.at ?? 0, storedAt }
  const manifest = store.get(`snapshots/${entry.snapshot}/manifest`)
  return { takenAt: JSON.parse(Buffer.from(manifest ?? '').toString()).at, storedAt }
}

testAtLength(
  'acknowledged by the bucket: kill -9 loses and duplicates nothing, even when the machine is lost',
  async () => {
    const { complaints } = await killUnderLoad({ ack: 'bucket', faults: hanging })
    expect(complaints).toEqual([])
  },
  longest,
)

testAtLength(
  'acknowledged by the disk: kill -9 loses nothing, and at most the last second when the machine is lost',
  async () => {
    const { complaints, losses } = await killUnderLoad({ ack: 'disk', faults: failing })
    expect(complaints).toEqual([])
    expect(losses).toHaveLength(Math.ceil(rounds / 2))
    for (const { writes, milliseconds, most } of losses) {
      console.log(`the machine took ${writes} writes of its last ${milliseconds} ms with it`)
      // A busy machine may be late.
      if (rounds === 30) expect(milliseconds).toBeLessThan(most)
    }
  },
  longest,
)
