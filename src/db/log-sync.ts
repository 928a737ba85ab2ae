import { close, fdatasync, fstatSync, openSync } from 'node:fs'
import { promisify } from 'node:util'

/** The write-ahead log of a database as a file that can be synced beside the loop: `fdatasync` runs on the runtime's
 *  I/O threads. SQLite reuses one log file for as long as a connection is open, so one descriptor is enough. */
export function openLogSync(databasePath: string) {
  const descriptor = openSync(`${databasePath}-wal`, 'r+')
  return {
    /** Resolves when everything committed before the call is on the disk. */
    sync: () => promisify(fdatasync)(descriptor),
    /** In bytes. It shrinks only when the last connection closes. */
    size: () => fstatSync(descriptor).size,
    close: () => promisify(close)(descriptor),
  }
}
