import { Database } from 'bun:sqlite'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'

/** Takes the data directory for this process: an exclusive transaction on a small file beside the database, which the
 *  kernel lets go of when the process dies, however it dies.
 *  @returns how to let go, or undefined when another process still holds it after `waitMilliseconds` */
export function lockDirectory(
  directory: string,
  waitMilliseconds: number,
): (() => void) | undefined {
  const path = join(directory, 'hostline.lock')
  const lock = new Database(path, { create: true })
  chmodSync(path, 0o600)
  lock.run(`PRAGMA busy_timeout = ${waitMilliseconds}`)
  try {
    lock.run('PRAGMA journal_mode = MEMORY') // so that a kill leaves no journal file behind
    lock.run('BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    if ((error as { code?: string }).code === 'SQLITE_BUSY') return undefined
    throw error
  }
  return () => {
    lock.run('ROLLBACK')
    lock.close()
  }
}
