import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import type { FileStorage } from '../files/storage.ts'
import { StartError } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import { createReplicatedFiles } from './files.ts'
import { createLeader, type Lead } from './leader.ts'
import { stampOf } from './local-state.ts'
import { type Place, placeName } from './log.ts'
import { type Head, type Node, openNode, type Replicated } from './node.ts'
import { StoreError } from './object-store.ts'
import { followUntilLead, type StandbyProgress } from './standby.ts'

/** How a node does, for whoever runs it. */
export type ReplicaStats = {
  role: 'leader' | 'standby'
  place?: Place | undefined
  /** How old the oldest change is that is not in the bucket; of a standby, its newest entry. */
  lagMilliseconds: number
  objects: number
  bytes: number
  failures: number
  storedAt?: number | undefined
  snapshotAt?: number | undefined
  failure?: { at: number; reason: string } | undefined
}

type JoinOptions = {
  config: Config
  settings: Replicated
  log: Log
  /** Never leads at once, also where it has led last. */
  isStandby: boolean
  /** Serves what a standby answers until the returned function is called. */
  serveStandby: (stats: () => ReplicaStats) => () => Promise<void>
  onFenced: (error: Error) => void
}

const retryMilliseconds = 2_000
const handOverPollMilliseconds = 500
/** A file with this name asks the leader to end its term. */
export const handOverFile = 'hand-over'

export type Replica = ReturnType<typeof createReplica>

/** Joins the nodes that share a bucket: resolves when this one leads, which a standby may never do.
 *  @throws StartError with one line for the operator */
export async function joinReplication(options: JoinOptions) {
  const node = openNode(options.config.dataDir, options.settings, options.log)
  const isOneOfPair = options.settings.pair || options.isStandby
  const lead = isOneOfPair ? await leadOfPair(node, options) : await leadAlone(node)
  return createReplica(node, lead, options)
}

/** @returns undefined when the bucket does not answer now: the database is there, and the rest can wait */
async function leadAlone(node: Node): Promise<Lead | undefined> {
  try {
    return await claimAlone(node)
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    if (!node.hasDatabase()) throw unreachable(error)
    node.log.error('the bucket does not answer: it gets what is committed later', { error })
    return undefined
  }
}

const unreachable = (cause: Error) =>
  new StartError(`the bucket of REPLICA_S3_URL cannot be used: ${cause.message}`, { cause })

async function claimAlone(node: Node): Promise<Lead> {
  const { state, store, log } = node
  if (!(await store.probeConditions())) {
    log.warn(
      'the bucket keeps no conditions (If-None-Match): it is a backup of this machine alone, and no second one may write to it',
    )
  }
  const head = await node.findHead()
  if (head) mustBeOwn(head, node)
  else log.info('the log in the bucket is new', { node: state.node })
  return node.claim(head)
}

function mustBeOwn({ entry }: Head, { state, dataDir, ...node }: Node) {
  if (!node.hasDatabase()) {
    throw new StartError(
      `there is no database in ${dataDir}, but there is one in the bucket: run hostline restore s3, or set another prefix in REPLICA_S3_URL`,
    )
  }
  if (entry.node === state.node || state.get().restored) return
  throw new StartError(
    `the bucket belongs to the database of ${entry.node}: run hostline restore s3 --force, or set another prefix in REPLICA_S3_URL`,
  )
}

async function leadOfPair(node: Node, options: JoinOptions): Promise<Lead> {
  const { log, state, store } = node
  const progress: StandbyProgress = { failures: 0 }
  const stop = options.serveStandby(() => standbyStats(node, progress))
  try {
    const head = await untilReachable(log, async () => {
      if (!(await store.probeConditions())) {
        throw new StartError(
          'the bucket keeps no conditions (If-None-Match), so two nodes could lead at once: use another store, or REPLICA_PAIR=false',
        )
      }
      return node.findHead()
    })
    if (!head) {
      if (options.isStandby || !node.hasDatabase()) throw noLog(node)
      return await node.claim(head)
    }
    const hasLed = head.entry.node === state.node && head.entry.kind !== 'release'
    const isLeader = hasLed && node.hasDatabase() && !options.isStandby
    if (state.get().restored === 'past') return await claimSilent(node, head)
    return isLeader ? await node.claim(head) : await followUntilLead(node, progress)
  } finally {
    await stop()
  }
}

const noLog = ({ dataDir }: Node) =>
  new StartError(
    `there is no log in the bucket: start the leader first, or run hostline replica init where its database is (not in ${dataDir})`,
  )

async function untilReachable<T>(log: Log, work: () => Promise<T>): Promise<T> {
  for (let isTold = false; ; isTold = true) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      if (!isTold) log.error('the bucket does not answer: trying again', { error })
      await Bun.sleep(retryMilliseconds)
    }
  }
}

/** What was restored to a moment in the past leads on, unless somebody else does. */
async function claimSilent(node: Node, head: Head): Promise<Lead> {
  await Bun.sleep(node.settings.leaseMilliseconds)
  const newest = await node.findHead()
  if (newest && placeName(newest.place) !== placeName(head.place)) {
    throw new StartError(
      `${newest.entry.node} leads: stop it before a restored past takes its place`,
    )
  }
  return node.claim(head)
}

function standbyStats({ store }: Node, progress: StandbyProgress): ReplicaStats {
  const { newestAt, ...known } = progress
  const lagMilliseconds = newestAt === undefined ? 0 : Math.max(0, store.now() - newestAt)
  return { role: 'standby', objects: 0, bytes: 0, lagMilliseconds, ...known }
}

/** What a server needs that ships what it commits. */
function createReplica(
  node: Node,
  lead: Lead | undefined,
  { settings, log, ...options }: JoinOptions,
) {
  const { store, shared, databasePath, state, dataDir } = node
  const leader = createLeader({
    store,
    shared,
    databasePath,
    node: state.node,
    settings,
    log,
    onFenced: options.onFenced,
  })
  const { promise: handOver, resolve: beginHandOver } = Promise.withResolvers<void>()
  const request = join(dataDir, handOverFile)
  rmSync(request, { force: true })
  let isHandingOver = false
  const timer = setInterval(() => {
    if (!existsSync(request)) return
    rmSync(request)
    isHandingOver = settings.pair
    if (isHandingOver) beginHandOver()
  }, handOverPollMilliseconds)
  let isEnding = false
  let stopFiles = () => {}
  let isWhole = false

  async function beginLater() {
    const later = await untilReachable(log, () => claimAlone(node))
    if (!isEnding) leader.begin(later)
  }

  return {
    capture: leader.capture,
    sync: leader.sync,
    guard: leader.guard,
    isWritable: leader.isWritable,
    stats: (): ReplicaStats => leader.stats(),
    /** Resolves when an operator wants another node to lead. */
    handOver,

    /** Files on the disk, each with a copy in the bucket. */
    filesOf(disk: FileStorage, directory: string): FileStorage {
      const { ack, keepMilliseconds } = settings
      const waitsForBucket = ack === 'bucket'
      const options = { store, disk, directory, waitsForBucket, keepMilliseconds, log }
      const { stop, ...files } = createReplicatedFiles(options)
      stopFiles = stop
      return files
    },

    /** The database is open: what is committed is shipped from now on. */
    begin(): void {
      if (lead) leader.begin(lead)
      else beginLater().catch(options.onFenced)
    },

    /** Ships what is left, before the database is closed. */
    async drain(): Promise<void> {
      isEnding = true
      clearInterval(timer)
      stopFiles()
      isWhole = await leader.drain(isHandingOver)
      if (!isWhole) log.warn('the bucket lacks what was committed last; the next start ships it')
    },

    /** The database is closed. */
    close(): void {
      const place = leader.close()
      if (place && isWhole) state.set({ place, stamp: stampOf(databasePath) })
    },
  }
}
