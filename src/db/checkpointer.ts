import type { Database } from 'bun:sqlite'
import type { Log } from '../lib/log.ts'

export type CheckpointRequest = { type: 'checkpoint'; path: string } | { type: 'close' }
export type CheckpointReply =
  | { type: 'done'; walFrames: number }
  | { type: 'failed'; code: string; message: string }
  | { type: 'closed' }

type CheckpointerOptions = {
  /** The loop's connection, which waits for nobody (`busy_timeout` 0). */
  sqlite: Database
  path: string
  /** Where checkpoint-worker.ts is. */
  worker: URL
  log: Log
  /** The disk refused a sync: see the writer. */
  onFatal: (error: unknown) => void
  /** Changed rows between two checkpoints. */
  interval?: number
  /** Frames (pages of 4 KiB) in the wal from which it is reset. */
  maxWalFrames?: number
}

// The loop copies no more than this by itself, when it resets the wal.
const fewFrames = 512
// A bound for a writer that is faster than the checkpoints.
const maxPasses = 8

/** Keeps the wal short. A Worker checkpoints as it grows. Once it is past its limit the Worker checkpoints again until
 *  few frames are left; then the loop's own connection copies those and resets the wal to the start of its file, which
 *  only the writer can do without waiting for itself. */
export function createCheckpointer(options: CheckpointerOptions) {
  const { sqlite, path, log, onFatal, interval = 2_000, maxWalFrames = 4_096 } = options
  // Started with the first checkpoint: a thread costs time at the start, and memory.
  let worker: Worker | undefined
  const changes = sqlite.prepare<{ n: number }, []>('SELECT total_changes() AS n')
  const countChanges = () => changes.get()?.n ?? 0
  let changesBefore = countChanges()
  let framesBefore = 0
  let passes = 0
  let running = false
  let isClosing = false
  let whenIdle: () => void = () => {}

  function startWorker() {
    const started = new Worker(options.worker.href)
    started.onmessage = ({ data }: MessageEvent<CheckpointReply>) => {
      running = false
      whenIdle()
      if (data.type === 'done') checkpointed(data.walFrames)
      if (data.type === 'failed') report(data, 'a checkpoint failed')
    }
    started.onerror = ({ message }) => onFatal(new Error(`the checkpoint worker: ${message}`))
    return started
  }

  function checkpointed(walFrames: number) {
    const added = walFrames - framesBefore
    framesBefore = walFrames
    if (walFrames < maxWalFrames || isClosing) return
    if (added > fewFrames && ++passes < maxPasses) {
      checkpoint()
      return
    }
    passes = 0
    framesBefore = 0
    resetWal()
  }

  function resetWal() {
    try {
      sqlite.run('PRAGMA wal_checkpoint(RESTART)')
    } catch (error) {
      report(error, 'the wal could not be reset')
    }
  }

  function report(error: unknown, message: string) {
    const { code } = error as { code?: string }
    if (code === 'SQLITE_IOERR_FSYNC') onFatal(error)
    // Others pass (a reader in the way, a full disk): the next checkpoint copies what this one did not.
    else log.warn(message, { error })
  }

  function checkpoint() {
    running = true
    worker ??= startWorker()
    worker.postMessage({ type: 'checkpoint', path } satisfies CheckpointRequest)
  }

  return {
    /** Called after each commit. */
    committed() {
      const now = countChanges()
      if (running || now - changesBefore < interval) return
      changesBefore = now
      checkpoint()
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
