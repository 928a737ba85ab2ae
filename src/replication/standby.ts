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
/** Two standbys do not reach for the lead at the same moment; if they do, the log decides. */
const spread = 0.2

/** How far a standby is. */
export type StandbyProgress = {
  place?: Place
  newestAt?: number
  failures: number
  failure?: { at: number; reason: string } | undefined
}

/** Follows the log with a copy of its own, until this node leads.
 *  @param progress kept up to date
 *  @throws StartError for a database that is newer than this executable */
export async function followUntilLead(node: Node, progress: StandbyProgress): Promise<Lead> {
  const { dataDir, log } = node
  const copy = join(dataDir, copyFile)
  for (let at = takeOwnDatabase(node, copy); ; at = undefined) {
    const follower = await openFrom(node, copy, at, progress)
    log.info('this standby follows the log', { place: placeName(follower.place()) })
    if (!follower.newest().pair) {
      log.warn('the leader does not reckon with a standby: set REPLICA_PAIR=true there as well')
    }
    const begun = await follow(node, follower, progress).finally(() => follower.close())
    if (begun) return becomeLeader(node, copy, begun)
    log.warn('the log has moved on without this standby: it starts again from a snapshot')
  }
}

/** Makes what is in the data directory the copy, if the log has all of it; else keeps it aside.
 *  @returns where the copy is */
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

/** Opens the copy, or makes it anew where the log does not reach back so far. It tries until it works. */
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
      if (progress.failures++ === 0) log.warn('this standby cannot begin: trying again', { error })
      progress.failure = { at: store.now(), reason: (error as Error).message }
      // A copy that the log does not reach is made anew; one that cannot be read now is not.
      if (!(error instanceof StoreError)) from = undefined
    }
  }
}

/** @returns the place where this node begins to lead; undefined when the log does not go on from the copy any more */
async function follow(
  node: Node,
  follower: Follower,
  progress: StandbyProgress,
): Promise<Begun | undefined> {
  const { leaseMilliseconds } = node.settings
  const pollMilliseconds = Math.min(longestPollMilliseconds, leaseMilliseconds / 10)
  // That of the leader: it acknowledges for as long.
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

/** How long the leader has been silent, while it could be heard. */
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
    /** @returns whether nothing could be heard for so long that it must be told, once */
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

/** The former leader comes back after a release only when nobody else wants to lead. */
function mayLead({ state }: Node, follower: Follower, silence: Silence): boolean {
  const { kind, node, pair } = follower.newest()
  const isReleased = kind === 'release' && node !== state.node
  // What had to follow failed, or only the answer was lost: the next try waits for nobody.
  const hasBegun = kind === 'begin' && node === state.node
  return pair && (isReleased || hasBegun || silence.isTooLong())
}

/** Remembers now and then where the copy is: after a restart it goes on from there. */
async function persist({ state }: Node, follower: Follower) {
  const { epoch, position } = follower.place()
  const known = state.get().place
  if (known?.epoch === epoch && position < known.position + entriesBetween) return
  await follower.sync()
  state.set({ place: { epoch, position } })
}

/** Where this node leads from; `taken` while another one does, `lost` when the copy cannot go on. */
type Outcome = Begun | 'taken' | 'lost'

async function reachForLead(node: Node, follower: Follower): Promise<Outcome> {
  const head = { place: follower.last(), entry: follower.newest() }
  // What was trimmed leaves free places in the past.
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

/** Makes the copy the database. What it is, is remembered before it has that name. */
function becomeLeader({ databasePath, state, log }: Node, copy: string, begun: Begun): Lead {
  const stamp = stampOf(copy)
  state.set({ place: begun.place, stamp })
  removeDatabase(databasePath)
  renameSync(copy, databasePath)
  log.info('this node leads', { place: placeName(begun.place) })
  return leadFrom(begun, { stamp })
}
