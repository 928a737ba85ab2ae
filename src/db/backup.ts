import { Database } from 'bun:sqlite'
import { randomBytes } from 'node:crypto'
import { existsSync, fstatSync, renameSync, rmSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { StartError } from '../lib/errors.ts'
import { packFiles } from './file-backup.ts'
import { knownVersion } from './migrations.ts'
import { explainFailure, openToInspect } from './open.ts'
import { pieceBytes, syncPath, throttled } from './pieces.ts'
import { pinPages } from './pinned-pages.ts'
import { seal } from './seal.ts'
import { openWalReader } from './wal-reader.ts'

/** A file name that sorts by time. The random suffix keeps two of the same moment apart. */
export function datedName(prefix: string): string {
  const time = new Date().toISOString().replaceAll(/[:.]/g, '-')
  return `${prefix}-${time}-${randomBytes(4).toString('hex')}.db`
}

/** Copies a database into one checked file: its state at one moment, even while a server writes to it. With the
 *  directory of uploaded files it packs those as well, except files removed during the copy.
 *  @returns the number of files that the database still names but that are missing on the disk
 *  @throws StartError with one line for the operator; `target` is then unchanged */
export async function backUp(directory: string, target: string, filesDirectory?: string) {
  const staged = `${target}.${process.pid}.partial`
  try {
    await copyDatabase(directory, staged)
    intoOneFile(staged, target)
    const missing = filesDirectory === undefined ? [] : await packFiles(staged, filesDirectory)
    await seal(staged)
    moveInto(staged, target)
    return countNamed(directory, missing)
  } catch (cause) {
    throw new StartError(`no backup was made in ${target}: ${explainFailure(cause)}`, { cause })
  } finally {
    if (existsSync(staged)) removeDatabase(staged)
  }
}

function countNamed(directory: string, ids: string[]): number {
  if (ids.length === 0) return 0
  using connection = openToInspect(directory)
  const query = connection.sqlite.query('SELECT 1 FROM files WHERE id = ?')
  return ids.filter((id) => query.get(id) !== null).length
}

async function copyDatabase(directory: string, staged: string) {
  using source = openToInspect(directory)
  // The first read creates the index of the wal.
  source.sqlite.query('SELECT 1 FROM sqlite_schema').get()
  // Never closed: closing one descriptor drops all locks of this process on the file.
  const wal = openWalReader(source.path)
  const pinned = pinPages(source.path, wal)
  await writePaced(staged, pinned.pieces(pieceBytes / pinned.pageSize)).finally(pinned.release)
  // A leader that stops removes its wal, and then changes pages that this copy may not have read yet.
  const current = statSync(`${source.path}-wal`, { throwIfNoEntry: false })
  if (current?.ino !== fstatSync(wal.walFile).ino)
    throw new Error('the server stopped leading meanwhile: repeat it on the leader')
}

/** Writes a new file. Syncs each piece: one large sync would delay the syncs of the server. */
export async function writePaced(path: string, pieces: AsyncIterable<Uint8Array>) {
  await using output = await open(path, 'wx', 0o600)
  for await (const piece of throttled(pieces)) {
    await output.writeFile(piece)
    await output.datasync()
  }
}

/** @throws Error that describes the damage */
export function intoOneFile(path: string, name: string): void {
  mustBeWhole(path, name, (database) => database.run('PRAGMA journal_mode = DELETE'))
}

/** @throws Error that describes the damage */
export function mustBeWhole(path: string, name: string, prepare?: (database: Database) => void) {
  try {
    using database = new Database(path)
    if (knownVersion(database, name) === 0) throw new Error('it is empty')
    prepare?.(database)
    // SQLite reads a truncated last page as if it were padded with zeros.
    const pageBytes = Number(database.query('PRAGMA page_size').values()[0]?.[0])
    if (statSync(path).size % pageBytes !== 0) throw new Error('it is damaged: it is cut off')
    const problem = integrityProblem(database)
    if (problem !== undefined) throw new Error(`it is damaged: ${problem}`)
  } catch (cause) {
    const { code = '' } = cause as { code?: string }
    const known: Record<string, string> = {
      SQLITE_NOTADB: 'it is not a database',
      SQLITE_CORRUPT: 'it is damaged',
    }
    throw known[code] === undefined ? cause : new Error(known[code], { cause })
  }
}

export function integrityProblem(database: Database): string | undefined {
  const found = database.query('PRAGMA integrity_check(1)').values()[0]?.[0]
  if (found !== 'ok') return String(found).replace('*** in database main ***\n', '')
  const isTorn = database.query('PRAGMA foreign_key_check').get()
  return isTorn ? 'a row refers to a missing one' : undefined
}

/** Replaces a file atomically: a power cut leaves either the old one or the new one. */
export function moveInto(staged: string, target: string): void {
  syncPath(staged)
  renameSync(staged, target)
  syncPath(dirname(target))
}

export function removeDatabase(path: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(path + suffix, { force: true })
}

/** Whether the process that left a partial file still writes it. */
export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as { code?: string }).code === 'EPERM' // it belongs to another user
  }
}
