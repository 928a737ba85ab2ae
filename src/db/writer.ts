import type { Database } from 'bun:sqlite'
import { AppError } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'

/** Runs `work` (synchronous, SQL only) inside the next commit. It may run twice, so it must not change captured state.
 *  The promise settles, in the order of the calls, after a sync of the wal that began after that commit; only a failed
 *  commit rejects at once.
 *  @throws what `work` throws; only its own changes are rolled back
 *  @throws unavailable (503) when the queue is full or the commit failed: nothing was written */
export type Write = <T>(work: () => T) => Promise<T>

/** Called inside the work of a `write`: runs `callback` once its commit is safe on the disk, in commit order, before
 *  the promise of that write resolves. Never called when the work is rolled back. */
export type AfterCommit = (callback: () => void) => void

/** Lets all reads until the end of this turn of the event loop, or until its commit, share one transaction. A read outside
 *  of one locks the wal for itself, which costs many times as much as a small read. */
export type ShareReads = () => void

export type WriterOptions = {
  sqlite: Database
  /** Makes every commit so far safe against a power cut. */
  sync: () => Promise<void>
  /** The number of functions in the commit and the ms it blocked the loop. An error is logged. */
  onCommit: (size: number, milliseconds: number) => void
  onCommitFailure?: () => void
  onSync?: (milliseconds: number) => void
  /** A sync failed: durability cannot be guaranteed any more, so the process must end. */
  onFatal: (error: unknown) => void
  log: Log
  maxPending?: number
  maxBatchMilliseconds?: number
}

type Task = {
  work: () => unknown
  callbacks: Array<() => void>
  outcome: { value: unknown } | { error: unknown } | undefined
  resolve(value: unknown): void
  reject(error: unknown): void
}

const maxBatch = 256
export const mostPending = 10_000
const retryAfterSeconds = 1

/** Group commit: the writes queued in one turn of the event loop form one transaction. The sync runs on another thread
 *  while the next batch is gathered and committed. */
export function createWriter(options: WriterOptions) {
  const { sqlite, sync, onCommit, onFatal, log, maxPending = mostPending } = options
  // Limits each turn of the loop, regardless of the length of the queue and of single writes.
  const { maxBatchMilliseconds = 5 } = options
  const beginReads = sqlite.prepare('BEGIN')
  const begin = sqlite.prepare('BEGIN IMMEDIATE')
  const commit = sqlite.prepare('COMMIT')
  const rollback = sqlite.prepare('ROLLBACK')
  const savepoint = sqlite.prepare('SAVEPOINT one')
  const release = sqlite.prepare('RELEASE one')
  const rollbackToSavepoint = sqlite.prepare('ROLLBACK TO one')

  const wal = sqlite.prepare<{ log: number }, []>('PRAGMA wal_checkpoint(NOOP)')
  const countFrames = () => wal.get()?.log ?? 0

  let queued: Task[] = []
  let unsynced: Task[] = []
  let pending = 0
  let healthy = true
  let flushScheduled = false
  let isSharing = false
  let isClosed = false
  let syncing = false
  let isHeld = false
  let running: Task | undefined
  const drained = Promise.withResolvers<void>()

  function write<T>(work: () => T): Promise<T> {
    if (isClosed) return Promise.reject(unavailable('the database is being closed'))
    if (pending >= maxPending) return Promise.reject(unavailable('too many writes are waiting'))
    pending++
    return new Promise<T>((resolve, reject) => {
      const resolveAny = resolve as Task['resolve'] // the queue holds tasks of any result type
      queued.push({ work, callbacks: [], outcome: undefined, resolve: resolveAny, reject })
      scheduleFlush()
    })
  }

  const afterCommit: AfterCommit = (callback) => {
    if (!running) throw new Error('afterCommit is called inside the work of a write')
    running.callbacks.push(callback)
  }

  const shareReads: ShareReads = () => {
    if (sqlite.inTransaction) return
    isSharing = true
    beginReads.run()
    setImmediate(endReads)
  }

  function endReads() {
    if (!isSharing) return
    isSharing = false
    commit.run()
  }

  function scheduleFlush() {
    if (flushScheduled) return
    flushScheduled = true
    setImmediate(flush)
  }

  function flush() {
    flushScheduled = false
    if (isHeld) return
    endReads()
    const startedAt = performance.now()
    const framesBefore = healthy ? 0 : countFrames()
    const most = queued.slice(0, maxBatch)
    let batch: Task[]
    try {
      batch = most.slice(0, commitBatch(most))
    } catch (error) {
      fail(most, error)
      return
    }
    queued = queued.slice(batch.length)
    noticeRecovery(framesBefore)
    unsynced.push(...batch)
    if (!syncing) void syncUntilClean()
    if (queued.length > 0) scheduleFlush()
    try {
      onCommit(batch.length, performance.now() - startedAt)
    } catch (error) {
      log.error('the observer of a commit failed', { error })
    }
  }

  // A commit that wrote no frame does not prove that the disk has room.
  function noticeRecovery(framesBefore: number) {
    if (healthy || countFrames() === framesBefore) return
    log.info('writing works again')
    healthy = true
  }

  /** @returns the number of tasks: at least one, and more as time allows */
  function commitBatch(tasks: Task[]): number {
    let count: number
    begin.run()
    try {
      count = runUntilTimeout(tasks, run)
    } catch (error) {
      if (isStorageFailure(error)) throw error
      rollback.run()
      begin.run()
      // A savepoint costs as much as a message, so only a batch in which a task has thrown uses them.
      count = runUntilTimeout(tasks, runAlone)
    }
    commit.run()
    return count
  }

  function runUntilTimeout(tasks: Task[], runOne: (task: Task) => void): number {
    const until = performance.now() + maxBatchMilliseconds
    let count = 0
    for (const task of tasks) {
      runOne(task)
      count++
      if (performance.now() > until) break
    }
    return count
  }

  function run(task: Task) {
    running = task
    task.callbacks = []
    try {
      const value = task.work()
      if (value instanceof Promise) throw new TypeError('write takes a synchronous function')
      task.outcome = { value }
    } finally {
      running = undefined
    }
  }

  function runAlone(task: Task) {
    savepoint.run()
    try {
      run(task)
    } catch (error) {
      if (isStorageFailure(error)) throw error
      rollbackToSavepoint.run()
      task.callbacks = []
      task.outcome = { error }
    }
    release.run()
  }

  function fail(batch: Task[], error: unknown) {
    queued = queued.slice(batch.length)
    if (sqlite.inTransaction) rollback.run()
    if (healthy) log.error('a commit failed and was rolled back', { error })
    healthy = false
    options.onCommitFailure?.()
    for (const task of batch) task.reject(unavailable('the commit failed', error))
    countSettled(batch.length)
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
      for (const task of covered) settle(task)
      countSettled(covered.length)
    }
    syncing = false
  }

  function settle({ callbacks, outcome, resolve, reject }: Task) {
    for (const callback of callbacks) {
      try {
        callback()
      } catch (error) {
        log.error('a callback after a commit failed', { error })
      }
    }
    if (outcome && 'value' in outcome) resolve(outcome.value)
    else reject(outcome?.error)
  }

  function countSettled(count: number) {
    pending -= count
    if (isClosed && pending === 0) drained.resolve()
  }

  /** Accepts no more writes; resolves when every accepted one has settled. */
  function close(): Promise<void> {
    isClosed = true
    countSettled(0)
    return drained.promise
  }

  /** Pauses commits until `resume`. Writes are queued without blocking the loop. */
  function hold() {
    isHeld = true
  }

  function resume() {
    isHeld = false
    if (queued.length > 0) scheduleFlush()
  }

  return { write, afterCommit, shareReads, isHealthy: () => healthy, hold, resume, close }
}

/** SQLite may have rolled back the transaction itself: then the whole batch is lost. */
export function isStorageFailure(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^SQLITE_(FULL|IOERR|NOMEM|CORRUPT|READONLY)/.test(code)
}

function unavailable(message: string, cause?: unknown) {
  return new AppError('unavailable', { retryAfterSeconds, cause: cause ?? message })
}
