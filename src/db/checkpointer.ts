import type { Database } from 'bun:sqlite'
import type { Log } from '../lib/log.ts'

export type CheckpointRequest = { type: 'checkpoint'; path: string } | { type: 'close' }
export type CheckpointReply =
  | { type: 'done'; logFrames: number }
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
  /** Frames (pages of 4 KiB) in the log from which it is started anew. */
  maxLogFrames?: number
}

// The loop copies no more than this by itself, when it starts the log anew.
const fewFrames = 512
// Against a writer that is faster than the copying.
const mostPasses = 8

/** Keeps the write-ahead log short. A Worker copies it into the database as it grows; when the log is past its limit it
 *  copies again what came meanwhile until that is little, and the loop's own connection copies the rest and starts the
 *  log anew in the same file, which only the writer can do without waiting for itself. */
export function createCheckpointer(options: CheckpointerOptions) {
  const { sqlite, path, log, onFatal, interval = 2_000, maxLogFrames = 4_096 } = options
  const worker = new Worker(options.worker.href)
  const changes = sqlite.prepare<{ n: number }, []>('SELECT total_changes() AS n')
  const countChanges = () => changes.get()?.n ?? 0
  let changesBefore = countChanges()
  let framesBefore = 0
  let passes = 0
  let running = false
  let isClosing = false
  let whenIdle: () => void = () => {}

  worker.onmessage = ({ data }: MessageEvent<CheckpointReply>) => {
    running = false
    whenIdle()
    if (data.type === 'done') copied(data.logFrames)
    if (data.type === 'failed') report(data, 'a checkpoint failed')
  }

  function copied(logFrames: number) {
    const came = logFrames - framesBefore
    framesBefore = logFrames
    if (logFrames < maxLogFrames || isClosing) return
    if (came > fewFrames && ++passes < mostPasses) {
      post({ type: 'checkpoint', path })
      return
    }
    passes = 0
    framesBefore = 0
    restartLog()
  }

  worker.onerror = ({ message }) => onFatal(new Error(`the checkpoint worker: ${message}`))

  function restartLog() {
    try {
      sqlite.run('PRAGMA wal_checkpoint(RESTART)')
    } catch (error) {
      report(error, 'the log could not be started anew')
    }
  }

  function report(error: unknown, message: string) {
    const { code } = error as { code?: string }
    if (code === 'SQLITE_IOERR_FSYNC') onFatal(error)
    // Others are passing (a reader in the way, a full disk): the next checkpoint copies what this one did not.
    else log.warn(message, { error })
  }

  function post(request: CheckpointRequest) {
    running = true
    worker.postMessage(request)
  }

  return {
    /** Tells that something has been committed. */
    committed() {
      const now = countChanges()
      if (running || now - changesBefore < interval) return
      changesBefore = now
      post({ type: 'checkpoint', path })
    },
    /** Ends the Worker after the running checkpoint. */
    async close() {
      isClosing = true
      if (running) await new Promise<void>((resolve) => (whenIdle = resolve))
      const closed = new Promise<void>((resolve) => (whenIdle = resolve))
      post({ type: 'close' })
      await closed
      worker.terminate()
    },
  }
}
