import type { Config } from '../config.ts'
import { mustBeServable } from '../db/migrations.ts'
import { takeDirectory } from '../db/open.ts'
import { StartError } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import { createLeader } from './leader.ts'
import {
  type Agreed,
  comparePositions,
  isOfBucket,
  type LogPosition,
  unlessOfBucket,
} from './log.ts'
import {
  type Counts,
  type Head,
  type Leadership,
  type Node,
  openNode,
  type Settings,
} from './node.ts'
import { becomeCopy, followUntilLead, type StandbyProgress } from './standby.ts'

/** The state of a node, for the operator. */
export type ReplicaStats = Counts & {
  /** `leader` as long as no other node may lead. */
  role: 'leader' | 'standby'
  place?: LogPosition | undefined
  agreed?: Agreed | undefined
  /** The age of the oldest change that is not in the bucket; on a standby, of its newest entry. */
  lagMilliseconds: number
  snapshotAt?: number | undefined
  /** Whether the bucket has a snapshot from which the log continues, as far as this node knows. */
  isRestorable: boolean
  /** When the bucket was last restored for a try. */
  drilledAt?: number | undefined
  /** The reason why the last try failed. */
  drillFailure?: string | undefined
}

type JoinOptions = {
  config: Config
  settings: Settings
  log: Log
  /** A standby makes no log, and with a database of its own waits a lease for another leader. */
  isStandby: boolean
  /** Starts the server of a standby; the returned function stops it. */
  serveStandby: (stats: () => ReplicaStats) => () => Promise<void>
  onFenced: (error: Error) => void
}

const retryMilliseconds = 2_000

export type Replica = Awaited<ReturnType<typeof joinReplication>>

/** Joins the nodes that share a bucket. Resolves when this node leads, which may never happen on a standby. If the bucket
 *  cannot be read and no other node may lead, the server starts with its local database and ships later.
 *  @throws StartError with one line for the operator */
export async function joinReplication(options: JoinOptions) {
  const { settings, log, config, isStandby } = options
  // Lock before claiming the lead, because a second process would otherwise end the leadership of the first.
  const unlock = takeDirectory(config.dataDir)
  const node = openNode(config.dataDir, settings, log)
  const standby = createStandby(node, options)
  const mayStartAlone = () =>
    node.hasDatabase() && !isStandby && !(node.identity.get().pair ?? settings.pair)
  try {
    if (node.hasDatabase()) mustBeServable(node.databasePath)
    const lead = await untilReadable(
      node,
      () => claimOrFollow(node, isStandby, standby),
      () => {
        if (mayStartAlone()) return true
        standby.serve()
        return false
      },
    )
    return createReplica(node, lead, { ...options, unlock })
  } catch (error) {
    unlock()
    throw error
  } finally {
    await standby.stop()
  }
}

/** Repeats `work` while the bucket cannot be read.
 *  @param mayGoOn called after each failure; true ends the attempts */
async function untilReadable<T>(node: Node, work: () => Promise<T>, mayGoOn: () => boolean) {
  for (let isLogged = false; ; isLogged = true) {
    try {
      return await work()
    } catch (error) {
      if (!isOfBucket(error)) throw error
      if (!isLogged) node.log.error('the bucket cannot be read: trying again', { error })
      node.fail(error)
      if (mayGoOn()) return undefined
    }
    await Bun.sleep(retryMilliseconds)
  }
}

type Standby = ReturnType<typeof createStandby>

/** The server of a standby. It starts when this node does not lead at once. */
function createStandby({ counts }: Node, { serveStandby }: JoinOptions) {
  const progress: StandbyProgress = {}
  let stop: (() => Promise<void>) | undefined

  function stats(): ReplicaStats {
    const { place, newestAt = Date.now() } = progress
    const lagMilliseconds = Math.max(0, Date.now() - newestAt)
    return { role: 'standby', place, lagMilliseconds, isRestorable: true, ...counts }
  }

  return {
    progress,
    serve(): void {
      stop ??= serveStandby(stats)
    },
    stop: async () => stop?.(),
  }
}

/** Leads if this directory contains everything that the log does; else follows, if the log allows a standby.
 *  @throws StartError for a directory that must not go on · BucketError · LogError */
async function claimOrFollow(
  node: Node,
  isStandby: boolean,
  standby: Standby | undefined,
): Promise<Leadership> {
  await mustSupportConditions(node)
  for (;;) {
    const head = await node.findHead()
    const role = roleOf(node, head, isStandby)
    if (role instanceof StartError) throw role
    if (role === 'standby') return await follow(node, standby)
    const isWaiting = isStandby || node.identity.get().adopts !== undefined
    if (isWaiting && head && (await isOvertaken(node, head, standby))) continue
    const lead = await node.claim(head)
    if (lead) return lead
  }
}

/** @throws StartError when the bucket stores nothing, or does not support conditional writes */
export async function mustSupportConditions({ bucket }: Node): Promise<void> {
  if (await bucket.hasConditionalWrites()) return
  throw new StartError(
    'the bucket does not support conditional writes (If-None-Match), so two servers could write at once: use another store',
  )
}

async function follow(node: Node, standby: Standby | undefined): Promise<Leadership> {
  if (!standby)
    throw new StartError('another node leads: this one follows when it is started again')
  standby.serve()
  return await followUntilLead(node, standby.progress)
}

/** Waits for a lease whether another node leads. */
async function isOvertaken(node: Node, head: Head, standby?: Standby): Promise<boolean> {
  if (!head.entry.pair) return false
  standby?.serve()
  await Bun.sleep(head.entry.lease)
  const later = await node.findHead()
  return !later || comparePositions(later.place, head.place) !== 0
}

/** The role in which a server on this directory starts, or the reason why it must not. */
export function roleOf(node: Node, head: Head | undefined, isStandby = false) {
  if (!head) return roleWithoutLog(node, isStandby)
  const { identity } = node
  const isOwn = identity.hasWritten(head.place, head.entry)
  const { adopts } = identity.get()
  if (node.hasDatabase() && isOwn) return 'leader'
  if (node.hasDatabase() && adopts) return roleAfterRestore(adopts, head)
  // The first start of all may get no response to its claim.
  if (isOwn && !node.hasCopy() && isWithoutData(head)) return 'leader'
  // A machine that stopped in good order, or that could not finish its take-over, has a copy.
  if (isOwn ? node.hasCopy() : head.entry.pair) return 'standby'
  return new StartError(refusalOf(node, head, isStandby && !isOwn))
}

/** Whether the log has only entries that begin a lead: each raises the epoch. */
const isWithoutData = ({ place, entry }: Head) =>
  entry.kind === 'begin' && place.epoch === place.position

/** For a command that opens the directory itself.
 *  @throws StartError when the log has more than the database here: a change would be lost */
export async function mustBeNewest(node: Node): Promise<void> {
  const head = await node.findHead().catch(unlessOfBucket)
  const role = head && roleOf(node, head)
  if (role instanceof StartError) throw role
  if (role !== 'standby') return
  throw new StartError(`${head?.entry.node} leads: the database in ${node.dataDir} is behind it`)
}

/** An empty log is begun by a machine with the database, or by the first one of all. */
function roleWithoutLog(node: Node, isStandby: boolean) {
  if (node.hasDatabase() || !(isStandby || node.hasCopy())) return 'leader'
  // A leader that stopped in good order has a copy, too.
  const remedy = node.hasCopy()
    ? `; if both machines have only copies, hostline restore ${node.copyPath} makes the one here the database`
    : ''
  return new StartError(
    `there is no log in the bucket: start the leader first, or run hostline replica init where its database is (not in ${node.dataDir})${remedy}`,
  )
}

function roleAfterRestore(adopts: LogPosition, { place, entry }: Head) {
  if (comparePositions(adopts, place) === 0) return 'leader'
  return new StartError(
    `${entry.node} has written to the bucket since the restore: stop it, and repeat the restore`,
  )
}

function refusalOf(node: Node, { entry }: Head, isNewStandby: boolean): string {
  const { identity, dataDir } = node
  const remedy =
    'run hostline restore s3 --force to take the newest state from the bucket, or hostline replica init --force to replace that by the state here'
  if (isNewStandby) {
    return `the log allows no standby: run hostline replica init --pair true on ${entry.node}`
  }
  if (!node.hasDatabase()) {
    return `there is no database in ${dataDir}, but there is one in the bucket: run hostline restore s3, or set another prefix in REPLICA_S3_URL`
  }
  if (!identity.isOfThisMachine()) return `${dataDir} is from another machine: ${remedy}`
  if (entry.node === identity.node || (identity.get().starts ?? []).length > 0) {
    return `the database in ${dataDir} is behind the bucket, as an old copy of it or a clone would be: ${remedy}`
  }
  return `the bucket belongs to the database of ${entry.node}: ${remedy}, or set another prefix in REPLICA_S3_URL`
}

/** The replication of a leader, which ships its commits. */
function createReplica(
  node: Node,
  lead: Leadership | undefined,
  options: JoinOptions & { unlock: () => void },
) {
  const { identity, log } = node
  const leader = createLeader(node, options.onFenced)
  const { promise: handOver, resolve: beginHandOver } = Promise.withResolvers<void>()
  let isHandingOver = false
  let isEnding = false
  let drillFailure: string | undefined

  /** For a single server whose bucket could not be read at the start. */
  async function beginLater() {
    const claim = async () => (isEnding ? undefined : await claimOrFollow(node, false, undefined))
    const later = await untilReadable(node, claim, () => isEnding)
    if (later && !isEnding) leader.begin(later)
  }

  return {
    ...leader,
    stats: (): ReplicaStats => ({
      drilledAt: identity.get().drilledAt,
      drillFailure,
      ...leader.stats(),
    }),
    /** Resolves when the operator requests a hand-over. */
    handOver,
    requestHandOver(): void {
      isHandingOver = true
      beginHandOver()
    },
    lastDrillAt: () => identity.get().drilledAt,
    noteDrill(drilledAt: number, reason?: string): void {
      drillFailure = reason
      if (reason === undefined) identity.set({ drilledAt })
    },

    /** Starts shipping; the database must be open. */
    begin(): void {
      if (lead) leader.begin(lead)
      else beginLater().catch(options.onFenced)
    },

    /** Ships the remaining commits; must be called before the database is closed. */
    async drain(): Promise<void> {
      isEnding = true
      const isWhole = await leader.drain(isHandingOver ? 'release' : 'close')
      if (!isWhole) log.warn('the bucket lacks the last commits; the next start ships them')
    },
    /** Must be called after the database is closed. */
    close(): void {
      const place = leader.close()
      if (place) becomeCopy(node, place)
      options.unlock()
    },
  }
}
