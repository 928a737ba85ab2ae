import { existsSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { datedName, removeDatabase } from '../db/backup.ts'
import { mustBeServable } from '../db/migrations.ts'
import { keepAside } from '../db/restore.ts'
import { StartError } from '../lib/errors.ts'
import { type Follower, openFollower } from './follower.ts'
import type { Leadership } from './leader.ts'
import { copyFile, fingerprintOf } from './local-state.ts'
import { type LogPosition, positionName } from './log.ts'
import { leadershipFrom, type Node, type TermStart } from './node.ts'
import { StoreError } from './object-store.ts'

const longestPollMilliseconds = 1_000
const retryMilliseconds = 1_000
const entriesBetween = 20
/** The maximum random part added to the lease, so that two standbys rarely claim the lead at once. If they do, the log
 *  decides. */
const leaseJitter = 0.2

export type StandbyProgress = {
  place?: LogPosition
  newestAt?: number
  failures: number
  failure?: { at: number; reason: string } | undefined
}

/** Follows the log with a copy of the database until this node leads.
 *  @param progress updated continuously
 *  @throws StartError for a database that is newer than this executable */
export async function followUntilLead(node: Node, progress: StandbyProgress): Promise<Leadership> {
  const { dataDir, log } = node
  const copy = join(dataDir, copyFile)
  for (let at = takeOwnDatabase(node, copy); ; at = undefined) {
    const follower = await openFrom(node, copy, at, progress)
    log.info('this standby follows the log', { place: positionName(follower.place()) })
    if (!follower.newest().pair) {
      log.warn('the leader has REPLICA_PAIR=false: set it to true there as well')
    }
    const start = await follow(node, follower, progress).finally(() => follower.close())
    if (start) return becomeLeader(node, copy, start)
    log.warn('the log no longer continues from this copy: starting again from a snapshot')
  }
}

/** Turns the local database into the copy if the log contains all its commits; otherwise keeps it under another name.
 *  @returns the place of the copy */
function takeOwnDatabase(node: Node, copy: string): LogPosition | undefined {
  const { state, databasePath, dataDir, log } = node
  const { place, stamp: fingerprint } = state.get()
  if (!node.hasDatabase()) {
    const isCopy =
      existsSync(copy) && (fingerprint === undefined || fingerprint === fingerprintOf(copy))
    return isCopy ? place : undefined
  }
  const hasWal = existsSync(`${databasePath}-wal`) && statSync(`${databasePath}-wal`).size > 0
  if (place && node.fingerprintAt(place) !== undefined && !hasWal) {
    renameSync(databasePath, copy)
    removeDatabase(databasePath)
    state.set({ place })
    return place
  }
  const dropped = join(dataDir, datedName('hostline-dropped'))
  keepAside(databasePath, dropped)
  removeDatabase(databasePath)
  state.set({})
  log.warn('the log may lack the last commits of this node: its database is kept', {
    kept_as: dropped,
  })
  return undefined
}

/** Opens the copy, or rebuilds it if the log no longer reaches back to it. Retries until it succeeds. */
async function openFrom(
  node: Node,
  path: string,
  at: LogPosition | undefined,
  progress: StandbyProgress,
) {
  const { store, shared, log, state } = node
  const options = { store, shared, path }
  for (let from = at; ; await Bun.sleep(retryMilliseconds)) {
    if (!from) state.set({})
    try {
      const follower = await openFollower(options, { at: from })
      await follower.catchUp().catch(async (error: unknown) => {
        await follower.close()
        throw error
      })
      return follower
    } catch (error) {
      if (progress.failures++ === 0) log.warn('this standby cannot start: trying again', { error })
      progress.failure = { at: store.now(), reason: (error as Error).message }
      // Rebuild the copy if the log no longer reaches it, but not because the bucket is unreachable.
      if (!(error instanceof StoreError)) from = undefined
    }
  }
}

/** @returns the start of this node's leadership; undefined when the log no longer continues from the copy */
async function follow(
  node: Node,
  follower: Follower,
  progress: StandbyProgress,
): Promise<TermStart | undefined> {
  const { leaseMilliseconds } = node.settings
  const pollMilliseconds = Math.min(longestPollMilliseconds, leaseMilliseconds / 10)
  // Use the lease of the leader, which acknowledges writes for that long.
  const silence = createSilence(() => follower.newest().lease ?? leaseMilliseconds)
  const noteSuccess = (outcome: Outcome) => {
    progress.failure = undefined
    progress.place = follower.place()
    progress.newestAt = follower.newest().at
    return outcome
  }
  for (;;) {
    const step = advance(node, follower, silence)
    const outcome = await step.then(noteSuccess, (error: Error): Outcome => {
      if (error instanceof StartError && !(error instanceof StoreError)) throw error
      if (silence.noteFailure()) node.log.error('this standby cannot read the bucket', { error })
      progress.failures++
      progress.failure = { at: node.store.now(), reason: error.message }
      return 'taken'
    })
    if (outcome !== 'taken') return outcome === 'lost' ? undefined : outcome
    await Bun.sleep(pollMilliseconds)
  }
}

async function advance(node: Node, follower: Follower, silence: Silence): Promise<Outcome> {
  silence.noteEntries(await follower.advance())
  await persist(node, follower)
  if (!mayLead(node, follower, silence)) return 'taken'
  mustBeServable(join(node.dataDir, copyFile))
  return await claimLead(node, follower)
}

type Silence = ReturnType<typeof createSilence>

/** Measures the silence of the leader, counting only time in which the bucket was reachable. */
function createSilence(lease: () => number) {
  const leaseFactor = 1 + Math.random() * leaseJitter
  let lastEntryAt = performance.now()
  let failingSince: number | undefined
  let isCutOff = false
  return {
    noteEntries(count: number): void {
      if (count > 0 || isCutOff) lastEntryAt = performance.now()
      failingSince = undefined
      isCutOff = false
    },
    /** @returns true once per outage, when it has lasted long enough to be logged */
    noteFailure(): boolean {
      const now = performance.now()
      failingSince ??= now
      const wasCutOff = isCutOff
      isCutOff = now - failingSince > lease() / 2
      return isCutOff && !wasCutOff
    },
    isTooLong: () => performance.now() - lastEntryAt > lease() * leaseFactor,
  }
}

/** After its own release, the former leader leads again only if no other node takes over. */
function mayLead({ state }: Node, follower: Follower, silence: Silence): boolean {
  const { kind, node, pair } = follower.newest()
  const isReleased = kind === 'release' && node !== state.node
  // The take-over failed after `begin`, or the response was lost: try again without waiting.
  const hasBegun = kind === 'begin' && node === state.node
  return pair && (isReleased || hasBegun || silence.isTooLong())
}

/** Stores the position of the copy regularly, so that a restart continues from there. */
async function persist({ state }: Node, follower: Follower) {
  const { epoch, position } = follower.place()
  const known = state.get().place
  if (known?.epoch === epoch && position < known.position + entriesBetween) return
  await follower.sync()
  state.set({ place: { epoch, position } })
}

/** The start of this node's leadership; `taken` if another node leads, `lost` if the copy cannot continue. */
type Outcome = TermStart | 'taken' | 'lost'

async function claimLead(node: Node, follower: Follower): Promise<Outcome> {
  const head = { place: follower.last(), entry: follower.newest() }
  // Trimming frees old positions, so a free one does not prove the end of the log.
  if (await hasEntriesAfter(node, head.place))
    return (await hasNextEntry(node, follower)) ? 'taken' : 'lost'
  const start = await node.begin(head)
  if (!start) return 'taken'
  if (await hasEntriesAfter(node, start.place)) return 'lost'
  await follower.advance()
  await follower.sync()
  return start
}

async function hasEntriesAfter({ shared }: Node, place: LogPosition): Promise<boolean> {
  for await (const places of shared.listAfter(place)) if (places.length > 0) return true
  return false
}

const hasNextEntry = async ({ shared }: Node, follower: Follower) =>
  (await shared.read(follower.next())) !== undefined

/** Turns the copy into the database. Its fingerprint is stored before the rename. */
function becomeLeader(
  { databasePath, state, log }: Node,
  copy: string,
  start: TermStart,
): Leadership {
  const fingerprint = fingerprintOf(copy)
  state.set({ place: start.place, stamp: fingerprint })
  removeDatabase(databasePath)
  renameSync(copy, databasePath)
  log.info('this node leads', { place: positionName(start.place) })
  return leadershipFrom(start, { fingerprint })
}
