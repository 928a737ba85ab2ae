import { statSync } from 'node:fs'
import type { Log } from '../lib/log.ts'
import { createCheckpointer } from './checkpointer.ts'
import type { Connection } from './client.ts'
import { openLogSync } from './log-sync.ts'
import { createWriter } from './writer.ts'

type StorageOptions = {
  connection: Connection
  /** Where checkpoint-worker.ts is. */
  worker: URL
  log: Log
  /** Told of commits and syncs; times in milliseconds. */
  counts: {
    committed: (size: number, milliseconds: number) => void
    commitFailed: () => void
    synced: (milliseconds: number) => void
  }
  onFatal: (error: unknown) => void
  /** In the place of `fdatasync` of the log; called with the real one. */
  sync?: ((real: () => Promise<void>) => Promise<void>) | undefined
  maxPending?: number | undefined
}

/** Durable writing on an open database: the writer, the sync of its log, and the checkpoints that keep it short. */
export function openStorage(options: StorageOptions) {
  const { connection, worker, log, counts, onFatal, sync, maxPending } = options
  const { sqlite, path } = connection
  const logFile = openLogSync(path)
  const checkpointer = createCheckpointer({ sqlite, path, worker, log, onFatal })
  const writer = createWriter({
    sqlite,
    sync: sync ? () => sync(logFile.sync) : logFile.sync,
    onCommit(size, milliseconds) {
      checkpointer.committed()
      counts.committed(size, milliseconds)
    },
    onCommitFailure: counts.commitFailed,
    onSync: counts.synced,
    onFatal,
    log,
    ...(maxPending !== undefined && { maxPending }),
  })

  return {
    write: writer.write,
    /** Asks the disk only after a failure: a commit that works is answer enough. */
    async isWritable() {
      if (writer.isHealthy()) return true
      await writer.write(() => connection.touch()).catch(() => undefined)
      return writer.isHealthy()
    },
    /** How large the files are. */
    stats: () => ({ databaseBytes: statSync(path).size, logBytes: logFile.size() }),
    async close() {
      await writer.close()
      await checkpointer.close()
      await logFile.close()
      try {
        connection.close()
      } catch (error) {
        // Nothing that was promised hangs on this last copy: the log is whole and is read at the next start.
        log.warn('the log could not be copied into the database', { error })
      }
    },
  }
}
