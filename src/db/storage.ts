import { close, fdatasync, fstatSync, openSync, statSync } from 'node:fs'
import { promisify } from 'node:util'
import { freeBytesAt } from '../lib/free-space.ts'
import { createCheckpointer } from './checkpointer.ts'
import type { Connection } from './open.ts'
import { createWriter, type WriterOptions } from './writer.ts'

type StorageOptions = Omit<WriterOptions, 'sqlite' | 'sync'> & {
  worker: URL
  /** Replaces `fdatasync` of the wal; receives the real one. */
  sync?: ((real: () => Promise<void>) => Promise<void>) | undefined
}

export type Storage = ReturnType<typeof openStorage>

export function openStorage(connection: Connection, options: StorageOptions) {
  const { log, sync, onCommit } = options
  const { sqlite, path } = connection
  const wal = openWal(path)
  const checkpointer = createCheckpointer({
    ...options,
    sqlite,
    path,
    hold: () => writer.hold(),
    release: () => writer.resume(),
  })
  const writer = createWriter({
    ...options,
    sqlite,
    sync: sync ? () => sync(wal.sync) : wal.sync,
    onCommit(size, milliseconds) {
      checkpointer.committed()
      onCommit(size, milliseconds)
    },
  })

  return {
    write: writer.write,
    afterCommit: writer.afterCommit,
    shareReads: writer.shareReads,
    /** Tests the disk only after a failure: a successful commit is proof enough. */
    async isWritable() {
      if (writer.isHealthy()) return true
      await writer.write(() => connection.touch()).catch(() => undefined)
      return writer.isHealthy()
    },
    stats: () => ({
      databaseBytes: statSync(path).size,
      walBytes: wal.size(),
      freeBytes: freeBytesAt(path),
    }),
    async close() {
      await writer.close()
      await checkpointer.close()
      await wal.close()
      try {
        connection.close()
      } catch (error) {
        // Durability does not depend on this last checkpoint: the wal is complete and is read at the next start.
        log.warn('the wal could not be copied into the database', { error })
      }
    },
  }
}

/** Opened as a file, so that `fdatasync` runs on the runtime's I/O threads. SQLite reuses one wal file as long as a
 *  connection is open, so one descriptor is enough. */
export function openWal(databasePath: string) {
  const descriptor = openSync(`${databasePath}-wal`, 'r+')
  const syncFile = promisify(fdatasync)
  return {
    /** Resolves when everything committed before the call is on the disk. */
    sync: () => syncFile(descriptor),
    /** In bytes. It shrinks only when the last connection closes. */
    size: () => fstatSync(descriptor).size,
    close: () => promisify(close)(descriptor),
  }
}
