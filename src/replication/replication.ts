import type { Database } from 'bun:sqlite'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { mustBeServable } from '../db/migrations.ts'
import { takeDirectory } from '../db/open.ts'
import type { FileStorage } from '../files/storage.ts'
import { StartError } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import { createReplicatedFiles } from './files.ts'
import { createLeader, type Leadership } from './leader.ts'
import { fingerprintOf } from './local-state.ts'
import type { LogPosition } from './log.ts'
import { type Head, type Node, openNode, type Replicated } from './node.ts'
import { StoreError } from './object-store.ts'
import { followUntilLead, type StandbyProgress } from './standby.ts'

/** The state of a node, for the operator. */
export type ReplicaStats = {
  role: 'leader' | 'standby'
  place?: LogPosition | undefined
  /** The age of the oldest change that is not in the bucket; on a standby, of its newest entry. */
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
  /** A standby never leads at once, even if it led last. */
  isStandby: boolean
  /** Starts the server of a standby; the returned function stops it. */
  serveStandby: (stats: () => ReplicaStats) => () => Promise<void>
  onFenced: (error: Error) => void
}

const retryMilliseconds = 2_000
const handOverPollMilliseconds = 500
/** A file with this name requests the leader to release the lead. */
export const handOverFile = 'hand-over'

export type Replica = Awaited<ReturnType<typeof joinReplication>>

/** Joins the nodes that share a bucket. Resolves when this node leads, which may never happen on a standby.
 *  @throws StartError with one line for the operator */
export async function joinReplication(options: JoinOptions) {
  const { settings, log, isStandby } = options
  const { dataDir } = options.config
  // Lock before claiming the lead, because a second process would otherwise end the leadership of the first.
  const unlock = takeDirectory(dataDir)
  const node = openNode(dataDir, settings, log)
  try {
    if (node.hasDatabase()) mustBeServable(node.databasePath)
    const lead =
      settings.pair || isStandby ? await leadOfPair(node, options) : await leadAlone(node)
    return { ...createReplica(node, lead, options), unlock }
  } catch (error) {
    unlock()
    throw error
  }
}

/** @returns undefined when the bucket does not respond; then the server starts with its local database and ships later */
async function leadAlone(node: Node): Promise<Leadership | undefined> {
  try {
    return await claimAlone(node)
  } catch (error) {
    if (!(error instanceof StoreError && node.hasDatabase())) throw error
    node.log.error('the bucket does not respond: commits are shipped later', { error })
    return undefined
  }
}

async function claimAlone(node: Node): Promise<Leadership> {
  if (!(await node.store.probeConditionalWrites())) {
    node.log.warn(
      'the bucket does not support conditional writes (If-None-Match): it is a backup of this machine only, and no other machine may write to it',
    )
  }
  for (;;) {
    const head = await node.findHead()
    if (head) mustOwnLog(head, node)
    else node.log.info('the log in the bucket is new', { node: node.state.node })
    const lead = await node.claim(head)
    // A late entry of this node's previous run may have been stored first: the next attempt comes after it.
    if (lead) return lead
  }
}

function mustOwnLog({ entry }: Head, { state, dataDir, ...node }: Node) {
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

async function leadOfPair(node: Node, options: JoinOptions): Promise<Leadership> {
  const standby = createStandby(node, options)
  const work = async () => {
    await mustSupportConditions(node)
    return await claimOrFollow(node, options, standby)
  }
  try {
    return await untilReachable(node.log, work, standby.noteFailure)
  } finally {
    await standby.stop()
  }
}

type Standby = ReturnType<typeof createStandby>

/** The server of a standby. It starts when this node does not lead at once. */
function createStandby({ store }: Node, { serveStandby }: JoinOptions) {
  const progress: StandbyProgress = { failures: 0 }
  let stop: (() => Promise<void>) | undefined

  function stats(): ReplicaStats {
    const { newestAt, ...known } = progress
    const lagMilliseconds = newestAt === undefined ? 0 : Math.max(0, store.now() - newestAt)
    return { role: 'standby', objects: 0, bytes: 0, lagMilliseconds, ...known }
  }

  const serve = () => {
    stop ??= serveStandby(stats)
  }

  return {
    progress,
    serve,
    noteFailure({ message }: StoreError): void {
      progress.failures++
      progress.failure = { at: store.now(), reason: message }
      serve()
    },
    stop: async () => stop?.(),
  }
}

async function claimOrFollow(
  node: Node,
  options: JoinOptions,
  standby: Standby,
): Promise<Leadership> {
  const head = await node.findHead()
  if (!head) mayBegin(node, options)
  const { restored } = node.state.get()
  // Without a pair no standby may lead, so a restore implies that the old machine is gone.
  const isPast = restored === 'past' || (restored !== undefined && head?.entry.pair === false)
  const isWaiting = isPast || options.isStandby
  const isFollower = head && !isPast && !isLeader(head, node)
  if (isWaiting || isFollower) standby.serve()
  if (isFollower) return await followUntilLead(node, standby.progress)
  // The local database may contain unshipped commits. Wait one lease for another leader, and discard them only if one
  // appears.
  if (isWaiting) await Bun.sleep(head?.entry.lease ?? node.settings.leaseMilliseconds)
  const lead = await node.claim(head)
  if (lead) return lead
  if (isPast) throw new StartError('another node leads: stop it, and repeat the restore')
  return await claimOrFollow(node, options, standby)
}

async function mustSupportConditions({ store }: Node) {
  if (await store.probeConditionalWrites()) return
  throw new StartError(
    'the bucket does not support conditional writes (If-None-Match), so two nodes could lead at once: use another store, or REPLICA_PAIR=false',
  )
}

/** Whether this node led last and has not released the lead. */
const isLeader = ({ entry }: Head, { state, hasDatabase }: Node) =>
  entry.node === state.node && entry.kind !== 'release' && hasDatabase()

function mayBegin({ dataDir, hasDatabase }: Node, { isStandby }: JoinOptions) {
  if (hasDatabase() && !isStandby) return
  throw new StartError(
    `there is no log in the bucket: start the leader first, or run hostline replica init where its database is (not in ${dataDir})`,
  )
}

async function untilReachable<T>(
  log: Log,
  work: () => Promise<T>,
  onFailure: (error: StoreError) => void,
): Promise<T> {
  for (let isLogged = false; ; isLogged = true) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      onFailure(error)
      if (!isLogged) log.error('the bucket does not respond: trying again', { error })
      await Bun.sleep(retryMilliseconds)
    }
  }
}

/** The replication of a leader, which ships its commits. */
function createReplica(
  node: Node,
  lead: Leadership | undefined,
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
    const claim = async () => (isEnding ? undefined : await claimAlone(node))
    const later = await untilReachable(log, claim, leader.fail)
    if (later && !isEnding) leader.begin(later)
  }

  return {
    capture: leader.capture,
    sync: leader.sync,
    guard: leader.guard,
    serve: leader.serve,
    isWritable: leader.isWritable,
    stats: (): ReplicaStats => leader.stats(),
    /** Resolves when the operator requests a hand-over. */
    handOver,

    /** Files on the disk, each with a copy in the bucket. */
    filesOf(disk: FileStorage, directory: string, sqlite: Database): FileStorage {
      const { ack, keepMilliseconds } = settings
      const waitsForBucket = ack === 'bucket'
      const options = { store, disk, directory, sqlite, waitsForBucket, keepMilliseconds, log }
      const { stop, ...files } = createReplicatedFiles(options)
      stopFiles = stop
      return files
    },

    /** Starts shipping; the database must be open. */
    begin(): void {
      if (lead) leader.begin(lead)
      else beginLater().catch(options.onFenced)
    },

    /** Ships the remaining commits; must be called before the database is closed. */
    async drain(): Promise<void> {
      isEnding = true
      clearInterval(timer)
      stopFiles()
      isWhole = await leader.drain(isHandingOver)
      if (!isWhole) log.warn('the bucket lacks the last commits; the next start ships them')
    },

    /** Must be called after the database is closed. */
    close(): void {
      // Take the fingerprint first, so that a later commit by a command changes it.
      const fingerprint = fingerprintOf(databasePath)
      const place = leader.close()
      if (place && isWhole) state.set({ place, stamp: fingerprint })
    },
  }
}
