import type { PinnedPages } from '../db/pinned-pages.ts'
import { day, hour } from '../lib/clock.ts'
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

/** Takes the snapshots of the leader when they are due, sees to it that there is one, and removes what no restore needs.
 *  @param wakeUp called when one has become urgent */
export function createSnapshotKeeper(node: Node, appender: Appender, wakeUp: () => void) {
  const { bucket, shared, settings, log } = node
  let newest: TakenSnapshot | undefined
  let isRestorable = true
  /** The state of the log at the newest snapshot. */
  let since = { at: Date.now(), position: 0, bytes: 0 }
  let isRunning = false
  let isStopped = false
  let looks = 0
  let notBefore = 0
  let trimmedAt = 0
  let requests: PromiseWithResolvers<Taken>[] = []
  const watch = setInterval(() => void look(), watchMilliseconds)

  /** Another node, an operator or a rule of the store may have removed or replaced what the leader has written. */
  async function look() {
    // The bucket may be away.
    if (isRestorable) await (newest ? lookAt(newest) : find()).catch(() => {})
  }

  async function lookAt(known: TakenSnapshot) {
    const found = await mustBeThere(bucket, known.name).catch(unlessLost)
    const reason = found ? found.message : await damageOf(known)
    if (reason === undefined || newest !== known || (await appender.isReplaced())) return
    lose(reason)
  }

  /** Says whether the log after a snapshot has lost an entry. */
  async function damageOf({ manifest: { place } }: TakenSnapshot): Promise<string | undefined> {
    if (!(await appender.hasLast())) return 'the log is gone from the bucket'
    // A long log is listed in several requests.
    if (++looks % looksPerList !== 0) return undefined
    const missing = await shared.findMissing(place)
    return missing && `${missing} is missing in the bucket`
  }

  /** Finds the snapshot of earlier leaders. */
  async function find() {
    const found = await findUsable(node, await listSnapshots(bucket)).catch(unlessLost)
    if (newest) return
    if (found && 'manifest' in found) return keep({ ...found, bytes: 0 })
    if (await appender.isReplaced()) return
    if (!newest) lose(found?.message ?? 'there is no snapshot in the bucket')
  }

  function lose(reason: string) {
    log.error(`${reason}: taking another one now, until then nothing can be restored`)
    newest = undefined
    isRestorable = false
    wakeUp()
  }

  function keep(taken: TakenSnapshot) {
    const { at, place } = taken.manifest
    newest = taken
    isRestorable = true
    since = { at, position: place.position, bytes: appender.stats().bytes }
  }

  function answer({ name, manifest: { at } }: TakenSnapshot) {
    for (const { resolve } of requests) resolve({ name, at })
    requests = []
  }

  function postpone(error: unknown) {
    log.warn('no snapshot was taken, or old ones could not be removed', { error })
    const delay = isRestorable ? retryMilliseconds : urgentRetryMilliseconds
    notBefore = Date.now() + delay
    setTimeout(wakeUp, delay).unref()
    for (const { reject } of requests) reject(error)
    requests = []
  }

  const isFree = () => !isRunning && !isStopped
  const isUrgent = () => requests.length > 0 || (!isRestorable && Date.now() >= notBefore)

  /** Whether enough has been written since the newest snapshot. */
  function isEnough(): boolean {
    if (Date.now() < notBefore) return false
    const pieces = newest?.manifest.pieces.length ?? 0
    const objects = (appender.next()?.position ?? 0) - since.position
    const bytes = appender.stats().bytes - since.bytes
    return (
      objects >= Math.max(leastObjects, pieces * objectsPerPiece) ||
      bytes >= Math.max(leastBytes, newest?.bytes ?? 0) ||
      Date.now() - since.at >= day
    )
  }

  /** Pauses after each piece, so that a snapshot uses at most half of the time. */
  async function rest(milliseconds: number) {
    await Bun.sleep(Math.min(milliseconds, longestRestMilliseconds))
    if (isStopped) throw new Error('the server stops')
  }

  return {
    /** Finds the snapshot of earlier leaders, after any number of attempts. */
    async start(): Promise<void> {
      since.position = appender.next()?.position ?? 0
      const tryAgain = async (error: unknown): Promise<void> => {
        log.warn('the snapshots in the bucket cannot be read: trying again', { error })
        await Bun.sleep(urgentRetryMilliseconds)
        if (!isStopped) await find().catch(tryAgain)
      }
      await find().catch(tryAgain)
    },

    isDue: () => isFree() && (isUrgent() || isEnough()),
    isUrgent: () => isFree() && isUrgent(),

    /** Skips a due snapshot after a failure. */
    postpone,

    /** Uploads the state after the last entry, in the background; then removes old snapshots. */
    async take(pinned: PinnedPages): Promise<void> {
      const place = appender.last()
      if (!place) return pinned.release()
      isRunning = true
      const isRequested = requests.length > 0
      try {
        const taken = await uploadSnapshot(bucket, pinned, {
          place,
          isBase: false,
          afterPiece: rest,
        })
        keep(taken)
        if (isRequested || Date.now() - trimmedAt > hour) {
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
    },

    /** Uploads the state for a snapshot entry, which the leader writes next. Writes, or a stopping server, wait for it, so
     *  it does not pause. */
    takeForEntry: (pinned: PinnedPages, place: LogPosition) =>
      uploadSnapshot(bucket, pinned, { place, isBase: true }),

    /** The entry of a snapshot is in the log. */
    entered(taken: TakenSnapshot): void {
      keep(taken)
      answer(taken)
    },

    /** Takes a snapshot now. */
    request(): Promise<Taken> {
      const asked = Promise.withResolvers<Taken>()
      requests.push(asked)
      wakeUp()
      return asked.promise
    },

    /** Until the first snapshot there is nothing to restore. */
    expectFirst(): void {
      isRestorable = false
    },

    /** Ends a snapshot after the current piece, but not one for an entry, because the log lacks its content. */
    stop(): void {
      isStopped = true
      clearInterval(watch)
    },
    isRunning: () => isRunning,
    isRestorable: () => isRestorable,
    /** The time of the newest snapshot in ms since the epoch; undefined when none is known. */
    lastAt: () => newest?.manifest.at,
  }
}
