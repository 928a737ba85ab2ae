import { existsSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { datedName, removeDatabase } from '../db/backup.ts'
import { mustBeServable } from '../db/migrations.ts'
import { keepAside } from '../db/restore.ts'
import { StartError } from '../lib/errors.ts'
import { type Follower, openFollower } from './follower.ts'
import type { Lead } from './leader.ts'
import { copyFile, stampOf } from './local-state.ts'
import { type Place, placeName } from './log.ts'
import { type Begun, leadFrom, type Node } from './node.ts'
import { StoreError } from './object-store.ts'

const longestPollMilliseconds = 1_000
const retryMilliseconds = 1_000
const entriesBetween = 20
/** Random share added to the lease, so that two standbys seldom reach for the lead at once. If they do, the log decides. */
const spread = 0.2

export type StandbyProgress = {
  place?: Place
  newestAt?: number
  failures: number
  failure?: { at: number; reason: string } | undefined
}

/** Follows the log with its own copy until this node leads.
 *  @param progress updated continuously
 *  @throws StartError for a database that is newer than this executable */
export async function followUntilLead(node: Node, progress: StandbyProgress): Promise<Lead> {
  const { dataDir, log } = node
  const copy = join(dataDir, copyFile)
  for (let at = takeOwnDatabase(node, copy); ; at = undefined) {
    const follower = await openFrom(node, copy, at, progress)
    log.info('this standby follows the log', { place: placeName(follower.place()) })
    if (!follower.newest().pair) {
      log.warn('the leader has REPLICA_PAIR=false: set it to true there as well')
    }
    const begun = await follow(node, follower, progress).finally(() => follower.close())
    if (begun) return becomeLeader(node, copy, begun)
    log.warn('the log has moved on without this standby: it starts again from a snapshot')
  }
}

/** Turns the local database into the copy if the log has all of it; otherwise keeps it under another name.
 *  @returns the place of the copy */
function takeOwnDatabase(node: Node, copy: string): Place | undefined {
  const { state, databasePath, dataDir, log } = node
  const { place, stamp } = state.get()
  if (!node.hasDatabase()) {
    const isCopy = existsSync(copy) && (stamp === undefined || stamp === stampOf(copy))
    return isCopy ? place : undefined
  }
  const hasWal = existsSync(`${databasePath}-wal`) && statSync(`${databasePath}-wal`).size > 0
  if (place && node.stampAt(place) !== undefined && !hasWal) {
    renameSync(databasePath, copy)
    removeDatabase(databasePath)
    state.set({ place })
    return place
  }
  const dropped = join(dataDir, datedName('hostline-dropped'))
  keepAside(databasePath, dropped)
  removeDatabase(databasePath)
  state.set({})
  log.warn('the log may lack what this node committed last: its database is kept', {
    kept_as: dropped,
  })
  return undefined
}

/** Opens the copy, or rebuilds it when the log no longer reaches back to it. Retries until it succeeds. */
async function openFrom(
  node: Node,
  path: string,
  at: Place | undefined,
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

/** @returns the place where this node starts to lead; undefined when the log no longer continues from the copy */
async function follow(
  node: Node,
  follower: Follower,
  progress: StandbyProgress,
): Promise<Begun | undefined> {
  const { leaseMilliseconds } = node.settings
  const pollMilliseconds = Math.min(longestPollMilliseconds, leaseMilliseconds / 10)
  // Use the leader's lease: the leader acknowledges writes for that long.
  const silence = createSilence(() => follower.newest().lease ?? leaseMilliseconds)
  const hear = (outcome: Outcome) => {
    progress.failure = undefined
    progress.place = follower.place()
    progress.newestAt = follower.newest().at
    return outcome
  }
  for (;;) {
    const step = advance(node, follower, silence)
    const outcome = await step.then(hear, (error: Error): Outcome => {
      if (error instanceof StartError && !(error instanceof StoreError)) throw error
      if (silence.failed()) node.log.error('this standby hears nothing', { error })
      progress.failures++
      progress.failure = { at: node.store.now(), reason: error.message }
      return 'taken'
    })
    if (outcome !== 'taken') return outcome === 'lost' ? undefined : outcome
    await Bun.sleep(pollMilliseconds)
  }
}

async function advance(node: Node, follower: Follower, silence: Silence): Promise<Outcome> {
  silence.heard(await follower.advance())
  await persist(node, follower)
  if (!mayLead(node, follower, silence)) return 'taken'
  mustBeServable(join(node.dataDir, copyFile))
  return await reachForLead(node, follower)
}

type Silence = ReturnType<typeof createSilence>

/** Measures the leader's silence, counting only time in which the bucket was reachable. */
function createSilence(lease: () => number) {
  const patience = 1 + Math.random() * spread
  let heardAt = performance.now()
  let failingSince: number | undefined
  let isDeaf = false
  return {
    heard(count: number): void {
      if (count > 0 || isDeaf) heardAt = performance.now()
      failingSince = undefined
      isDeaf = false
    },
    /** @returns true once per outage, when it has lasted long enough to be logged */
    failed(): boolean {
      const now = performance.now()
      failingSince ??= now
      const wasDeaf = isDeaf
      isDeaf = now - failingSince > lease() / 2
      return isDeaf && !wasDeaf
    },
    isTooLong: () => performance.now() - heardAt > lease() * patience,
  }
}

/** After its own release, the former leader leads again only if no other node wants to. */
function mayLead({ state }: Node, follower: Follower, silence: Silence): boolean {
  const { kind, node, pair } = follower.newest()
  const isReleased = kind === 'release' && node !== state.node
  // The take-over failed after `begin`, or only the response was lost: try again without waiting.
  const hasBegun = kind === 'begin' && node === state.node
  return pair && (isReleased || hasBegun || silence.isTooLong())
}

/** Stores the place of the copy now and then, so that a restart continues from there. */
async function persist({ state }: Node, follower: Follower) {
  const { epoch, position } = follower.place()
  const known = state.get().place
  if (known?.epoch === epoch && position < known.position + entriesBetween) return
  await follower.sync()
  state.set({ place: { epoch, position } })
}

/** The start of this node's term; `taken` if another node leads, `lost` if the copy cannot continue. */
type Outcome = Begun | 'taken' | 'lost'

async function reachForLead(node: Node, follower: Follower): Promise<Outcome> {
  const head = { place: follower.last(), entry: follower.newest() }
  // Trimming frees old places, so a free place alone does not prove the end of the log.
  if (await goesOnBehind(node, head.place))
    return (await isThere(node, follower)) ? 'taken' : 'lost'
  const begun = await node.begin(head)
  if (!begun) return 'taken'
  if (await goesOnBehind(node, begun.place)) return 'lost'
  await follower.advance()
  await follower.sync()
  return begun
}

async function goesOnBehind({ shared }: Node, place: Place): Promise<boolean> {
  for await (const places of shared.listAfter(place)) if (places.length > 0) return true
  return false
}

const isThere = async ({ shared }: Node, follower: Follower) =>
  (await shared.read(follower.next())) !== undefined

/** Renames the copy to the database. Its fingerprint is stored before the rename. */
function becomeLeader({ databasePath, state, log }: Node, copy: string, begun: Begun): Lead {
  const stamp = stampOf(copy)
  state.set({ place: begun.place, stamp })
  removeDatabase(databasePath)
  renameSync(copy, databasePath)
  log.info('this node leads', { place: placeName(begun.place) })
  return leadFrom(begun, { stamp })
}
