import type { Database } from 'bun:sqlite'
import { AppError } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'

/** Runs `work` (synchronous, SQL and nothing else) inside the next commit. The promise settles after a sync of the log
 *  that began after that commit, in the order of the calls; only a failed commit rejects at once.
 *  @throws what `work` throws; its own changes alone are rolled back
 *  @throws unavailable (503) when the queue is full or the commit failed: nothing was written. Design, "Writing". */
export type Write = <T>(work: () => T) => Promise<T>

export type Writer = {
  write: Write
  /** False from a failed commit until the next one that works. */
  isHealthy(): boolean
  /** Takes nothing more; resolves when everything accepted so far is settled. */
  close(): Promise<void>
}

export type WriterOptions = {
  sqlite: Database
  /** Makes every commit so far safe against a power cut. */
  sync: () => Promise<void>
  /** Called after each commit with the number of functions in it and how long it held the loop. */
  onCommit: (size: number, milliseconds: number) => void
  /** Called when a commit was given up. */
  onCommitFailure?: () => void
  /** Called after each sync with how long it took. */
  onSync?: (milliseconds: number) => void
  /** A sync failed: no promise can be kept any more and the process must end. */
  onFatal: (error: unknown) => void
  log: Log
  maxPending?: number
}

type Task = {
  work: () => unknown
  settle: () => void
  resolve(value: unknown): void
  reject(error: unknown): void
}

// One turn of the loop must stay short however much is queued.
const maxBatch = 256
const retryAfterSeconds = 1
const busyMilliseconds = 2_000
const busyPollMilliseconds = 5

/** Group commit: what one turn of the event loop queued is one transaction, each function in a savepoint of its own;
 *  the disk is waited for beside the loop, while the next batch is gathered and committed. */
export function createWriter(options: WriterOptions): Writer {
  const { sqlite, sync, onCommit, onFatal, log, maxPending = 10_000 } = options
  const begin = sqlite.prepare('BEGIN IMMEDIATE')
  const commit = sqlite.prepare('COMMIT')
  const rollback = sqlite.prepare('ROLLBACK')
  const savepoint = sqlite.prepare('SAVEPOINT one')
  const release = sqlite.prepare('RELEASE one')
  const undo = sqlite.prepare('ROLLBACK TO one')

  let queued: Task[] = []
  let unsynced: Task[] = []
  let pending = 0
  let healthy = true
  let flushScheduled = false
  let isClosed = false
  let busySince: number | undefined
  let syncing = false
  let whenDrained: Array<() => void> = []

  function write<T>(work: () => T): Promise<T> {
    if (isClosed) return Promise.reject(unavailable('the database is being closed'))
    if (pending >= maxPending) return Promise.reject(unavailable('too many writes are waiting'))
    pending++
    return new Promise<T>((resolve, reject) => {
      queued.push({ work, settle: nothing, resolve: resolve as Task['resolve'], reject })
      scheduleFlush()
    })
  }

  function scheduleFlush() {
    if (flushScheduled) return
    flushScheduled = true
    setImmediate(flush)
  }

  function flush() {
    flushScheduled = false
    const batch = queued.slice(0, maxBatch)
    queued = queued.slice(maxBatch)
    const startedAt = performance.now()
    try {
      commitBatch(batch)
    } catch (error) {
      if (isBusy(error) && !sqlite.inTransaction) waitForOthers(batch, error)
      else fail(batch, error)
      return
    }
    const milliseconds = performance.now() - startedAt
    busySince = undefined
    if (!healthy) log.info('writing works again')
    healthy = true
    unsynced.push(...batch)
    if (!syncing) void syncUntilClean()
    onCommit(batch.length, milliseconds)
    if (queued.length > 0) scheduleFlush()
  }

  // A command beside us is writing. The loop must not sleep until it is done: the batch tries again a little later.
  function waitForOthers(batch: Task[], error: unknown) {
    const now = performance.now()
    busySince ??= now
    if (now - busySince > busyMilliseconds) {
      busySince = undefined
      fail(batch, error)
      return
    }
    queued = [...batch, ...queued]
    flushScheduled = true
    setTimeout(flush, busyPollMilliseconds)
  }

  function commitBatch(batch: Task[]) {
    begin.run()
    for (const task of batch) runAlone(task)
    commit.run()
  }

  function runAlone(task: Task) {
    savepoint.run()
    try {
      const value = task.work()
      if (value instanceof Promise) throw new TypeError('db.write takes a synchronous function')
      task.settle = () => task.resolve(value)
    } catch (error) {
      // SQLite itself may have ended the transaction (disk full, I/O error): then the whole batch is lost.
      if (isStorageFailure(error) || !sqlite.inTransaction) throw error
      undo.run()
      task.settle = () => task.reject(error)
    }
    release.run()
  }

  function fail(batch: Task[], error: unknown) {
    if (sqlite.inTransaction) rollback.run()
    if (healthy) log.error('a commit failed, nothing of it was written', { error })
    healthy = false
    options.onCommitFailure?.()
    for (const task of batch) task.reject(unavailable('the commit failed', error))
    done(batch.length)
    if (queued.length > 0) scheduleFlush()
  }

  async function syncUntilClean() {
    syncing = true
    while (unsynced.length > 0) {
      const covered = unsynced
      unsynced = []
      const startedAt = performance.now()
      try {
        await sync()
      } catch (error) {
        for (const task of covered) task.reject(unavailable('the disk failed', error))
        onFatal(error)
        return
      }
      options.onSync?.(performance.now() - startedAt)
      for (const task of covered) task.settle()
      done(covered.length)
    }
    syncing = false
  }

  function done(count: number) {
    pending -= count
    if (pending > 0) return
    const resolvers = whenDrained
    whenDrained = []
    for (const resolve of resolvers) resolve()
  }

  function close() {
    isClosed = true
    return pending === 0
      ? Promise.resolve()
      : new Promise<void>((resolve) => whenDrained.push(resolve))
  }

  return { write, isHealthy: () => healthy, close }
}

function isStorageFailure(error: unknown) {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^SQLITE_(FULL|IOERR|NOMEM|CORRUPT|READONLY)/.test(code)
}

function isBusy(error: unknown) {
  return (error as { code?: unknown } | null)?.code === 'SQLITE_BUSY'
}

function unavailable(message: string, cause?: unknown) {
  return new AppError('unavailable', { retryAfterSeconds, cause: cause ?? message })
}

function nothing() {}
