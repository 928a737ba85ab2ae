import type { Database } from 'bun:sqlite'
import type { Log } from '../lib/log.ts'

export type CheckpointRequest = { type: 'checkpoint'; path: string } | { type: 'close' }
export type CheckpointReply =
  | { type: 'done'; walFrames: number; copiedFrames: number }
  | { type: 'failed'; code: string; message: string }
  | { type: 'closed' }

type CheckpointerOptions = {
  sqlite: Database
  path: string
  /** Where checkpoint-worker.ts is. */
  worker: URL
  log: Log
  /** The disk refused a sync: see the writer. */
  onFatal: (error: unknown) => void
  /** Lets commits wait, beside the loop, until `release`. */
  hold: () => void
  release: () => void
  /** Frames (pages of 4 KiB) between two checkpoints. */
  interval?: number
  /** Frames in the wal from which it is started again. */
  maxWalFrames?: number
}

// A disk that stands still does not stop the writer for longer: the wal grows until the next try.
const maxHoldMilliseconds = 1_000

/** Keeps the wal short. A Worker checkpoints as it grows. Once it is past its limit, commits are held while the Worker
 *  checkpoints the few frames that are left: SQLite then starts the wal again with the next commit. */
export function createCheckpointer(options: CheckpointerOptions) {
  const {
    sqlite,
    path,
    log,
    onFatal,
    hold,
    release,
    interval = 1_000,
    maxWalFrames = 4_096,
  } = options
  // Started with the first checkpoint: a thread costs time at the start, and memory.
  let worker: Worker | undefined
  const state = sqlite.prepare<{ log: number; checkpointed: number }, []>(
    'PRAGMA wal_checkpoint(NOOP)',
  )
  let framesBefore = 0
  let running = false
  let isHolding = false
  let holdTimer: Timer | undefined
  let isClosing = false
  let whenIdle: () => void = () => {}

  function startWorker() {
    const started = new Worker(options.worker.href)
    started.onmessage = ({ data }: MessageEvent<CheckpointReply>) => {
      running = false
      if (data.type === 'done') checkpointed(data)
      else endHold()
      if (data.type === 'failed') report(data)
      whenIdle()
    }
    started.onerror = ({ message }) => onFatal(new Error(`the checkpoint worker: ${message}`))
    return started
  }

  function checkpointed({ walFrames, copiedFrames }: { walFrames: number; copiedFrames: number }) {
    framesBefore = walFrames
    const wasHolding = isHolding
    endHold()
    // A reader that holds an older state is in the way: commits would wait for nothing.
    const isBlocked = copiedFrames < walFrames
    if (wasHolding || isBlocked || walFrames < maxWalFrames || isClosing) return
    isHolding = true
    hold()
    holdTimer = setTimeout(endHold, maxHoldMilliseconds)
    checkpoint()
  }

  function endHold() {
    if (!isHolding) return
    isHolding = false
    clearTimeout(holdTimer)
    release()
  }

  function report(error: { code: string }) {
    if (error.code === 'SQLITE_IOERR_FSYNC') onFatal(error)
    // Others pass (a full disk): the next checkpoint copies what this one did not.
    else log.warn('a checkpoint failed', { error })
  }

  function checkpoint() {
    running = true
    worker ??= startWorker()
    worker.postMessage({ type: 'checkpoint', path } satisfies CheckpointRequest)
  }

  return {
    /** Called after each commit. */
    committed() {
      if (running) return
      const frames = state.get()?.log ?? 0
      // SQLite has started the wal again.
      if (frames < framesBefore) framesBefore = 0
      if (frames - framesBefore >= interval) checkpoint()
    },
    /** Ends the Worker after the running checkpoint. */
    async close() {
      isClosing = true
      if (!worker) return
      if (running) await new Promise<void>((resolve) => (whenIdle = resolve))
      const closed = new Promise<void>((resolve) => (whenIdle = resolve))
      worker.postMessage({ type: 'close' } satisfies CheckpointRequest)
      await closed
      worker.terminate()
    },
  }
}
