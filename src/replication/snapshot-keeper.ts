import { type PinnedPages, pinPages } from '../db/pinned-pages.ts'
import type { WalReader } from '../db/wal-reader.ts'
import { day, hour, timeLeft } from '../lib/clock.ts'
import type { Appender } from './appender.ts'
import type { LogPosition } from './log.ts'
import type { Node } from './node.ts'
import {
  findUsable,
  listSnapshots,
  mustBeThere,
  type TakenSnapshot,
  trim,
  unlessLost,
  uploadSnapshot,
} from './snapshots.ts'

type Taken = { name: string; at: number }

const retryMilliseconds = 60_000
const urgentRetryMilliseconds = 2_000
const watchMilliseconds = 30_000
const looksPerList = 10
/** Minimum number of log objects between two snapshots, which keeps restores short. The number grows with the snapshot,
 *  because its objects cost as much as those of the log. */
const leastObjects = 2_000
const objectsPerPiece = 10
const longestRestMilliseconds = 200
const leastBytes = 64 * 1_048_576
/** A pinned state lets the wal grow. */
const longestPinMilliseconds = 5_000

/** Takes the snapshots of the leader when they are due, sees to it that there is one, and removes what no restore needs.
 *  @param wakeUp called when one has become urgent */
export function createSnapshotKeeper(node: Node, appender: Appender, wakeUp: () => void) {
  const { bucket, shared, settings, log, databasePath, counts } = node
  /** Undefined until it is known whether the bucket has one of earlier leaders. */
  let newest: TakenSnapshot | undefined
  let isMissing = false
  /** The bytes in the log at the newest snapshot. */
  let bytesBefore = 0
  let isRunning = false
  let isStopped = false
  let looks = 0
  let notBefore = 0
  let trimmedAt = 0
  let request: PromiseWithResolvers<Taken> | undefined
  let timer: Timer | undefined

  /** Another node, an operator or a rule of the store may have removed or replaced what the leader has written. */
  async function watch() {
    if (isMissing) wakeUp()
    else await look().catch(noteUnreadable)
    if (!isStopped) timer = setTimeout(watch, newest ? watchMilliseconds : urgentRetryMilliseconds)
  }

  function noteUnreadable(error: unknown) {
    if (newest) return
    log.warn('the snapshots in the bucket cannot be read: trying again', { error })
  }

  async function look() {
    const known = newest
    const reason = await (known ? damageOf(known) : find())
    if (reason === undefined || newest !== known || (await appender.isReplaced())) return
    log.error(`${reason}: taking another one now, until then nothing can be restored`)
    newest = undefined
    isMissing = true
    wakeUp()
  }

  /** Says whether a snapshot is damaged, or the log after it has lost an entry. */
  async function damageOf({ name, manifest }: TakenSnapshot): Promise<string | undefined> {
    const damage = await mustBeThere(bucket, name).catch(unlessLost)
    if (damage) return damage.message
    if (!(await appender.hasLast())) return 'the log is gone from the bucket'
    // A long log is listed in several requests.
    if (++looks % looksPerList !== 0) return undefined
    const missing = await shared.findMissing(manifest.place)
    return missing && `${missing} is missing in the bucket`
  }

  /** Finds the snapshot of earlier leaders. Says why there is none. */
  async function find(): Promise<string | undefined> {
    const found = await findUsable(node, await listSnapshots(bucket)).catch(unlessLost)
    if (!found || !('manifest' in found)) {
      return found?.message ?? 'there is no snapshot in the bucket'
    }
    if (!newest) keep({ ...found, bytes: 0 })
    return undefined
  }

  function keep(taken: TakenSnapshot) {
    newest = taken
    isMissing = false
    bytesBefore = counts.bytes
  }

  function answer({ name, manifest: { at } }: TakenSnapshot) {
    request?.resolve({ name, at })
    request = undefined
  }

  function postpone(error: unknown) {
    log.warn('no snapshot was taken, or old ones could not be removed', { error })
    notBefore = performance.now() + (isMissing ? urgentRetryMilliseconds : retryMilliseconds)
    request?.reject(error)
    request = undefined
  }

  const isUrgent = () =>
    !isRunning &&
    !isStopped &&
    (request !== undefined || (isMissing && performance.now() >= notBefore))

  /** Whether enough has been written since the newest snapshot. */
  function isDue(): boolean {
    if (isUrgent()) return true
    if (isRunning || isStopped || !newest || performance.now() < notBefore) return false
    const { place, at, pieces } = newest.manifest
    return (
      appender.next().position - place.position >=
        Math.max(leastObjects, pieces.length * objectsPerPiece) ||
      counts.bytes - bytesBefore >= Math.max(leastBytes, newest.bytes) ||
      timeLeft(at, day, Date.now()) === 0
    )
  }

  /** Pauses after each piece, so that a snapshot uses at most half of the time. */
  async function rest(milliseconds: number) {
    await Bun.sleep(Math.min(milliseconds, longestRestMilliseconds))
    if (isStopped) throw new Error('the server stops')
  }

  /** Uploads the state after an entry, then removes old snapshots. */
  async function take(pinned: PinnedPages, place: LogPosition) {
    isRunning = true
    const isRequested = request !== undefined
    try {
      const taken = await uploadSnapshot(bucket, pinned, { place, isBase: false, afterPiece: rest })
      keep(taken)
      if (isRequested || timeLeft(trimmedAt, hour, Date.now()) === 0) {
        trimmedAt = Date.now()
        await trim(node, trimmedAt - settings.keepMilliseconds)
      }
      answer(taken)
      log.debug('a snapshot was stored in the bucket', { name: taken.name })
    } catch (error) {
      if (!isStopped) postpone(error)
    } finally {
      isRunning = false
    }
  }

  return {
    /** @param isFirst whether the leader takes one now, until when there is nothing to restore */
    start(isFirst: boolean): void {
      isMissing = isFirst
      void watch()
    },

    /** Whether one must be taken without waiting for an entry. */
    isUrgent,

    /** Pins the state for a due snapshot; a failure skips it.
     *  @returns uploads it in the background; called when the log has that state, in time */
    pinIfDue(wal: WalReader): () => void {
      if (!isDue()) return () => {}
      try {
        const pinned = pinPages(databasePath, wal)
        const release = setTimeout(pinned.release, longestPinMilliseconds).unref()
        return () => {
          clearTimeout(release)
          const place = appender.last()
          if (place && pinned.isHeld()) void take(pinned, place)
        }
      } catch (error) {
        postpone(error)
        return () => {}
      }
    },

    /** The log goes on from this snapshot. */
    entered(taken: TakenSnapshot): void {
      keep(taken)
      answer(taken)
    },

    /** Takes a snapshot now. */
    request(): Promise<Taken> {
      request ??= Promise.withResolvers()
      wakeUp()
      return request.promise
    },

    /** Ends a snapshot after the current piece. */
    stop(): void {
      isStopped = true
      clearTimeout(timer)
    },
    isRunning: () => isRunning,
    /** Whether the bucket is known to have a snapshot from which the log continues. */
    isThere: () => newest !== undefined,
    /** Whether it is known that there is none. */
    isMissing: () => isMissing,
    /** The time of the newest snapshot in ms since the epoch; undefined when none is known. */
    lastAt: () => newest?.manifest.at,
  }
}
