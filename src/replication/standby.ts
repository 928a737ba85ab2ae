import { Database } from 'bun:sqlite'
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { datedName, removeDatabase } from '../db/backup.ts'
import { mustBeServable } from '../db/migrations.ts'
import { keepAside } from '../db/restore.ts'
import { StartError } from '../lib/errors.ts'
import { BucketError } from '../outside/bucket.ts'
import { type Follower, openFollower } from './follower.ts'
import { comparePositions, isOfBucket, type LogPosition, positionName } from './log.ts'
import type { Leadership, Node } from './node.ts'
import { LostSnapshot, unlessLost } from './snapshots.ts'

const longestPollMilliseconds = 1_000
const entriesBetween = 20
/** A read that takes this part of the lease had to wait for the bucket. */
const slowReadShare = 0.25

/** `newestAt` is the time of the newest entry. */
export type StandbyProgress = { place?: LogPosition; newestAt?: number }
type Outcome = Leadership | 'follow' | 'lost'

/** Follows the log with a copy of the database until this node leads. Tries again whatever the bucket answers.
 *  @param progress updated continuously
 *  @throws StartError for a database that is newer than this executable */
export async function followUntilLead(node: Node, progress: StandbyProgress): Promise<Leadership> {
  const { copyPath, databasePath, identity, log } = node
  const silence = { since: 0 }
  let follower: Follower | undefined
  let isFailing = false

  async function step(): Promise<Outcome> {
    follower ??= await openCopy(node, silence)
    const result = await advance(node, follower, silence).catch(unlessLost)
    const outcome = result instanceof LostSnapshot ? 'lost' : result
    isFailing = false
    progress.place = follower.place()
    progress.newestAt = follower.last().entry.at
    if (outcome === 'follow') return outcome
    await follower.close()
    follower = undefined
    return outcome
  }

  function noteFailure(error: Error) {
    if (error instanceof StartError && !isOfBucket(error)) throw error
    if (!isFailing) log.error('this standby cannot read the bucket', { error })
    isFailing = true
    node.fail(error)
    // An unreachable bucket is no reason to drop the copy.
    if (!follower && !(error instanceof BucketError)) identity.set({ place: undefined })
  }

  dropOwnDatabase(node)
  for (;;) {
    const outcome = await step().catch(noteFailure)
    if (typeof outcome === 'object') {
      removeDatabase(databasePath)
      renameSync(copyPath, databasePath)
      log.info('this node leads', { place: positionName(outcome.place) })
      return outcome
    }
    if (outcome === 'lost') {
      log.warn('the log no longer continues from this copy: starting again from a snapshot')
      identity.set({ place: undefined })
    }
    const lease = follower?.last().entry.lease ?? Number.POSITIVE_INFINITY
    await Bun.sleep(Math.min(longestPollMilliseconds, lease / 10))
  }
}

/** A former leader that did not end in good order may have commits that the log lacks. */
function dropOwnDatabase(node: Node): void {
  const { databasePath, dataDir, log, identity } = node
  if (!node.hasDatabase()) return
  const dropped = join(dataDir, datedName('hostline-dropped'))
  keepAside(databasePath, dropped)
  removeDatabase(databasePath)
  identity.set({ place: undefined })
  log.warn('the log may lack the last commits of this node: its database is kept', {
    kept_as: dropped,
  })
}

/** Turns the database of a leader that has shipped everything into the copy of a standby. */
export function becomeCopy({ databasePath, copyPath, identity }: Node, place: LogPosition): void {
  const database = new Database(databasePath)
  const result = database
    .query<{ log: number; checkpointed: number }, []>('PRAGMA wal_checkpoint(PASSIVE)')
    .get()
  database.close()
  // Another process may read an older state.
  if (result?.log !== result?.checkpointed) return
  identity.set({ place })
  renameSync(databasePath, copyPath)
  removeDatabase(databasePath)
}

/** Opens the copy, or builds it from a snapshot if its position is not known. */
async function openCopy(node: Node, silence: { since: number }): Promise<Follower> {
  const { identity, copyPath, log } = node
  const at = node.hasCopy() ? identity.get().place : undefined
  if (!at) identity.set({ place: undefined })
  const follower = await openFollower(node, copyPath, { at })
  silence.since = performance.now()
  log.info('this standby follows the log', { place: positionName(follower.place()) })
  return follower
}

async function advance(
  node: Node,
  follower: Follower,
  silence: { since: number },
): Promise<Outcome> {
  const startedAt = performance.now()
  // A log that cannot be read may have entries.
  let entries = 1
  try {
    entries = await follower.advance()
  } finally {
    const now = performance.now()
    // The leader may have found the bucket as slow: it has a whole lease to return.
    const isSlow = now - startedAt > follower.last().entry.lease * slowReadShare
    if (entries > 0 || isSlow) silence.since = now
  }
  await persist(node, follower)
  const isSilent = performance.now() - silence.since > follower.last().entry.lease
  if (!mayLead(node, follower, isSilent)) return 'follow'
  mustBeServable(node.copyPath)
  return await claimLead(node, follower)
}

/** After its own release, the former leader leads again only if no other node takes over. */
function mayLead({ identity }: Node, follower: Follower, isSilent: boolean): boolean {
  const { place, entry } = follower.last()
  const isReleased = entry.kind === 'release'
  // If the entry is its own, this node stopped in good order, its take-over failed after `begin`, or the response was lost.
  const isOwn = identity.hasWritten(place, entry)
  return (isOwn ? !isReleased : isReleased && entry.pair) || (entry.pair && isSilent)
}

/** Stores the position of the copy regularly, so that a restart continues from there. */
async function persist({ identity }: Node, follower: Follower) {
  const { epoch, position } = follower.place()
  const known = identity.get().place
  if (known?.epoch === epoch && position < known.position + entriesBetween) return
  await follower.sync()
  identity.set({ place: { epoch, position }, pair: follower.last().entry.pair })
}

async function claimLead(node: Node, follower: Follower): Promise<Outcome> {
  const head = follower.last()
  // Trimming frees old positions, so a free one does not prove the end of the log.
  const end = await node.shared.findLast(head.place)
  if (end) return (await follower.advance()) > 0 ? 'follow' : 'lost'
  const lead = await node.claim(head, { from: 'file' })
  if (!lead) return 'follow'
  if (await node.shared.findLast(lead.place)) return 'lost'
  await follower.advance()
  await follower.sync()
  return comparePositions(follower.place(), lead.place) === 0 ? lead : 'lost'
}
