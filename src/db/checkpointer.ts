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
  worker: URL
  log: Log
  onFatal: (error: unknown) => void
  /** Queues commits without blocking the loop, until `release`. */
  hold: () => void
  release: () => void
  /** Frames (pages of 4 KiB) between two checkpoints. */
  interval?: number
  /** Size of the wal, in frames, above which it is reset. */
  maxWalFrames?: number
}

// A disk that hangs stops the writer for no longer than this. The wal then grows until the next attempt.
const maxHoldMilliseconds = 1_000

/** Keeps the wal short. A Worker checkpoints as it grows. Above the limit, commits are held while the Worker checkpoints
 *  the last few frames; SQLite then resets the wal with the next commit. */
export function createCheckpointer(options: CheckpointerOptions) {
  const { sqlite, path, log, onFatal, hold, release } = options
  const { interval = 1_000, maxWalFrames = 4_096 } = options
  // Created with the first checkpoint: a thread costs startup time and memory.
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
    // A reader of an older state blocks the reset, so holding commits would achieve nothing.
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
    // Other errors (a full disk) are temporary: the next checkpoint copies the remaining frames.
    else log.warn('a checkpoint failed', { error })
  }

  function checkpoint() {
    running = true
    worker ??= startWorker()
    worker.postMessage({ type: 'checkpoint', path } satisfies CheckpointRequest)
  }

  return {
    /** Must be called after each commit. */
    committed() {
      if (running) return
      const frames = state.get()?.log ?? 0
      if (frames < framesBefore) framesBefore = 0
      if (frames - framesBefore >= interval) checkpoint()
    },
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
