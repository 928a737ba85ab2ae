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

const longestPollMilliseconds = 1_000
const entriesBetween = 20
/** A read that takes this part of the lease had to wait for the bucket. */
const slowReadShare = 0.25

export type StandbyProgress = {
  place?: LogPosition
  newestAt?: number
  failures: number
  failure?: { at: number; reason: string } | undefined
}
type Outcome = Leadership | 'follow' | 'lost'

/** Follows the log with a copy of the database until this node leads. Tries again whatever the bucket answers.
 *  @param progress updated continuously
 *  @throws StartError for a database that is newer than this executable */
export async function followUntilLead(node: Node, progress: StandbyProgress): Promise<Leadership> {
  const { copyPath, databasePath, log } = node
  dropOwnDatabase(node)
  for (let isFirst = true; ; isFirst = false) {
    const follower = await openFrom(node, progress, isFirst)
    log.info('this standby follows the log', { place: positionName(follower.place()) })
    const lead = await follow(node, follower, progress).finally(follower.close)
    if (lead !== 'lost') {
      removeDatabase(databasePath)
      renameSync(copyPath, databasePath)
      log.info('this node leads', { place: positionName(lead.place) })
      return lead
    }
    log.warn('the log no longer continues from this copy: starting again from a snapshot')
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

/** Opens the copy, or builds it from a snapshot if the log no longer reaches back to it. Retries until it succeeds. */
async function openFrom(node: Node, progress: StandbyProgress, mayContinue: boolean) {
  const { identity, copyPath } = node
  let at = mayContinue && node.hasCopy() ? identity.get().place : undefined
  for (; ; await Bun.sleep(longestPollMilliseconds)) {
    if (!at) identity.set({ place: undefined })
    const opened = await openFollower(node, copyPath, { at }).catch((error: Error) => error)
    if (!(opened instanceof Error)) return opened
    noteFailure(node, progress, opened)
    // An unreachable bucket is no reason to drop the copy.
    if (!(opened instanceof BucketError)) at = undefined
  }
}

/** @throws StartError for a database that is newer than this executable */
function noteFailure({ log }: Node, progress: StandbyProgress, error: Error) {
  if (error instanceof StartError && !isOfBucket(error)) throw error
  if (!progress.failure) log.error('this standby cannot read the bucket', { error })
  progress.failures++
  progress.failure = { at: Date.now(), reason: error.message }
}

async function follow(node: Node, follower: Follower, progress: StandbyProgress) {
  const silence = { since: performance.now() }
  for (;;) {
    const outcome = await advance(node, follower, silence).catch((error: Error) => error)
    if (outcome instanceof Error) {
      noteFailure(node, progress, outcome)
    } else {
      progress.failure = undefined
      progress.place = follower.place()
      progress.newestAt = follower.last().entry.at
      if (outcome !== 'follow') return outcome
    }
    await Bun.sleep(Math.min(longestPollMilliseconds, follower.last().entry.lease / 10))
  }
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
  const { pair, lease } = head.entry
  const lead = await node.claim(head, { pair, lease }, 'file')
  if (!lead) return 'follow'
  if (await node.shared.findLast(lead.place)) return 'lost'
  await follower.advance()
  await follower.sync()
  return comparePositions(follower.place(), lead.place) === 0 ? lead : 'lost'
}
