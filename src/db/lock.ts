import { Database } from 'bun:sqlite'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { StartError } from '../lib/start-error.ts'

/** Takes the data directory for this process: an exclusive transaction on a small file beside the database, which the
 *  kernel lets go of when the process dies, however it dies.
 *  @returns how to let go, or undefined when another process still holds it after `waitMilliseconds`
 *  @throws StartError when the file cannot be used */
export function lockDirectory(
  directory: string,
  waitMilliseconds: number,
): (() => void) | undefined {
  const path = join(directory, 'hostline.lock')
  let lock: Database | undefined
  try {
    lock = new Database(path, { create: true })
    chmodSync(path, 0o600)
    lock.run(`PRAGMA busy_timeout = ${waitMilliseconds}`)
    lock.run('PRAGMA journal_mode = MEMORY') // so that a kill leaves no journal file behind
    lock.run('BEGIN EXCLUSIVE')
  } catch (cause) {
    lock?.close()
    const { code, message } = cause as { code?: string; message: string }
    if (code === 'SQLITE_BUSY') return undefined
    throw new StartError(`cannot use ${path}: ${message}`, { cause })
  }
  const held = lock
  return () => {
    held.run('ROLLBACK')
    held.close()
  }
}
