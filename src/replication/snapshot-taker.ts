import type { Appender } from './appender.ts'
import type { LeaderOptions } from './leader.ts'
import type { LogPosition } from './log.ts'
import {
  listSnapshots,
  type PinnedState,
  readManifest,
  snapshotName,
  trimSnapshots,
  uploadState,
  writeManifest,
} from './snapshots.ts'
import type { WalReader } from './wal-reader.ts'

const dayMilliseconds = 86_400_000
const retryMilliseconds = 60_000
const trimMilliseconds = 3_600_000
/** Minimum number of log objects between two snapshots, which keeps restores short. The number grows with the snapshot,
 *  because its objects cost as much as those of the log. */
const leastObjects = 2_000
const objectsPerPiece = 10
const longestRestMilliseconds = 200
const leastBytes = 64 * 1_048_576

/** Takes the snapshots of the leader when they are due, and trims the log before the oldest kept one. */
export function createSnapshotTaker(
  { store, shared, settings, log }: LeaderOptions,
  appender: Appender,
) {
  let last = { at: store.now(), position: 0, pieces: 0, bytes: 0 }
  let takenAt: number | undefined
  let bytesAtLast = 0
  let isRunning = false
  let notBefore = 0
  let trimmedAt = 0
  let isStopped = false

  async function finish(name: string, { state, ...fields }: Unfinished) {
    const { content, bytes } = await state
    const manifest = { ...fields, ...content }
    await writeManifest(store, name, manifest)
    const { at, place, pieces } = manifest
    last = { at, position: place.position, pieces: pieces.length, bytes }
    takenAt = at
    bytesAtLast = appender.stats().bytes
  }

  function postpone(error: unknown) {
    log.warn('no snapshot was taken, or old ones could not be removed', { error })
    notBefore = store.now() + retryMilliseconds
  }

  /** Pauses after each piece, so that a snapshot uses at most half of the time. */
  async function rest(milliseconds: number) {
    await Bun.sleep(Math.min(milliseconds, longestRestMilliseconds))
    if (isStopped) throw new Error('the server stops')
  }

  async function trim() {
    if (store.now() - trimmedAt < trimMilliseconds) return
    trimmedAt = store.now()
    const since = store.now() - settings.keepMilliseconds
    const first = await trimSnapshots(store, shared, since)
    if (first) await shared.trim(first)
  }

  return {
    /** Reads the snapshots of earlier leaders. */
    async start(next: LogPosition): Promise<void> {
      last = { ...last, position: next.position }
      try {
        const newest = (await listSnapshots(store)).at(-1)
        if (!newest) return
        const { at, place, pieces } = await readManifest(store, newest.name)
        last = { at, position: place.position, pieces: pieces.length, bytes: 0 }
        takenAt = at
      } catch (error) {
        log.warn('the snapshots in the bucket cannot be read', { error })
      }
    },

    isDue(): boolean {
      if (isRunning || store.now() < notBefore) return false
      const objects = (appender.next()?.position ?? 0) - last.position
      const bytes = appender.stats().bytes - bytesAtLast
      return (
        objects >= Math.max(leastObjects, last.pieces * objectsPerPiece) ||
        bytes >= Math.max(leastBytes, last.bytes) ||
        store.now() - last.at >= dayMilliseconds
      )
    },

    /** Delays a due snapshot after a failure. */
    postpone,

    /** Uploads a snapshot of the state after the last entry, in the background; then removes old ones. */
    async take(wal: WalReader, pinned: PinnedState): Promise<void> {
      const place = appender.last()
      if (!place) return pinned.release()
      isRunning = true
      try {
        const name = snapshotName(place)
        const state = uploadState(pinned, { store, wal, name, afterPiece: rest })
        await finish(name, { state, place, at: store.now(), isBase: false })
        log.debug('a snapshot was stored in the bucket', { name })
        pinned.release()
        await trim()
      } catch (error) {
        if (!isStopped) postpone(error)
      } finally {
        pinned.release()
        isRunning = false
      }
    },

    /** Uploads the snapshot for a `base` entry, which the caller appends next.
     *  @param during runs until the upload ends
     *  @returns the name of the snapshot
     *  @throws StoreError */
    async takeForEntry(
      wal: WalReader,
      pinned: PinnedState,
      during: (upload: Promise<unknown>) => Promise<void>,
    ): Promise<string> {
      const name = snapshotName(nextOf(appender))
      const at = store.now()
      // Writes, or a stopping server, wait for this upload, so it does not pause.
      const state = uploadState(pinned, { store, wal, name, afterPiece: async () => {} })
      await during(state.finally(pinned.release))
      await finish(name, { state, place: nextOf(appender), at, isBase: true })
      return name
    },

    /** Ends a snapshot after the current piece, but not one for a `base` entry, because the log lacks its content. */
    stop(): void {
      isStopped = true
    },
    isRunning: () => isRunning,
    /** The time of the newest snapshot by the store's clock (ms since the epoch); undefined when none is known. */
    lastAt: () => takenAt,
  }
}

type Unfinished = {
  state: ReturnType<typeof uploadState>
  place: LogPosition
  at: number
  isBase: boolean
}

function nextOf(appender: Appender): LogPosition {
  const next = appender.next()
  if (!next) throw new Error('snapshot before start')
  return next
}
