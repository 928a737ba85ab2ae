import { Database } from 'bun:sqlite'
import { constants, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { isFileKey } from '../files/storage.ts'
import { pieceBytes, syncPath, throttled } from './pieces.ts'
import { rewrite } from './shrinking.ts'
import { eachRow } from './statements.ts'

/** Uploaded files in a backup: stored in pieces, in two extra tables of the copied database. */

const tables = ['backup_files', 'backup_pieces']

type Stored = { id: string; size: number }
type Packed = Stored & { sha256: string }

/** Packs the files that a copied database names into that copy, pausing half of the time.
 *  @returns the ids of files that are missing or have another size; the copy no longer names them */
export async function packFiles(copy: string, directory: string): Promise<string[]> {
  using database = openErasing(copy)
  const missing: string[] = []
  if (!hasTable(database, 'files')) return []
  // The copy is not in use: after a failure it is discarded.
  database.run('PRAGMA journal_mode = OFF')
  database.run('PRAGMA foreign_keys = ON')
  database.run('CREATE TABLE backup_files (id TEXT PRIMARY KEY, size INTEGER, sha256 TEXT)')
  database.run(
    'CREATE TABLE backup_pieces (id TEXT, n INTEGER, bytes BLOB, PRIMARY KEY (id, n)) WITHOUT ROWID',
  )
  const stored = database.query<Stored, [string, number]>(
    'SELECT id, size FROM files WHERE stored_at IS NOT NULL AND id > ? ORDER BY id LIMIT ?',
  )
  const files = eachRow<Stored>((last, limit) => stored.all(last?.id ?? '', limit))
  for (const file of files) {
    if (!(await packOne(database, file, directory))) missing.push(file.id)
  }
  for (const id of missing) database.run('DELETE FROM files WHERE id = ?', [id])
  await verify(database)
  return missing
}

/** Overwrites deleted content, as the server does. */
function openErasing(path: string): Database {
  const database = new Database(path)
  database.run('PRAGMA secure_delete = ON')
  return database
}

function hasTable(database: Database, name: string): boolean {
  const query = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?"
  return database.query(query).get(name) !== null
}

async function packOne(database: Database, { id, size }: Stored, directory: string) {
  await using file = isFileKey(id) ? await openUnlinked(join(directory, id)) : undefined
  if (!file) return false
  const found = await file.stat()
  if (!found.isFile() || found.size !== size) return false
  const sha256 = await packPieces(database, id, file)
  database.run('INSERT INTO backup_files VALUES (?, ?, ?)', [id, size, sha256])
  return true
}

/** Neither follows a link, which could lead to a protected file when run as root, nor blocks on a pipe.
 *  @throws Error for a file that is there and cannot be opened: a backup without it would replace those that have it */
function openUnlinked(path: string) {
  return open(path, constants.O_NOFOLLOW | constants.O_NONBLOCK).catch((error: Error) => {
    if (notThere.has(String((error as { code?: unknown }).code))) return undefined
    throw new Error(error.message, { cause: error }) // names the file
  })
}

const notThere = new Set(['ENOENT', 'ELOOP', 'ENXIO'])

async function packPieces(database: Database, id: string, file: FileHandle) {
  const insert = database.query('INSERT INTO backup_pieces VALUES (?, ?, ?)')
  const hash = new Bun.CryptoHasher('sha256')
  let n = 0
  for await (const bytes of throttled(
    file.createReadStream({ autoClose: false, highWaterMark: pieceBytes }),
  )) {
    hash.update(bytes)
    insert.run(id, n++, bytes)
  }
  return hash.digest('hex')
}

async function verify(database: Database) {
  const files = database.query<Packed, []>('SELECT * FROM backup_files').iterate()
  for await (const file of throttled(files)) await readPieces(database, file, async () => {})
}

/** @throws Error when the size or the hash of the whole file does not match */
async function readPieces(
  database: Database,
  { id, size, sha256 }: Packed,
  take: (bytes: Uint8Array) => Promise<void>,
) {
  const pieces = database.query<{ bytes: Uint8Array }, [string]>(
    'SELECT bytes FROM backup_pieces WHERE id = ? ORDER BY n',
  )
  const hash = new Bun.CryptoHasher('sha256')
  let length = 0
  for (const { bytes } of pieces.iterate(id)) {
    hash.update(bytes)
    length += bytes.byteLength
    await take(bytes)
  }
  if (length !== size || hash.digest('hex') !== sha256) {
    throw new Error('it is damaged: a file in it is incomplete or changed')
  }
}

/** Extracts the files of a copied backup into a new directory and checks each one.
 *  @returns true for a backup, even one with no files; false for a plain database
 *  @throws Error when a file is damaged */
export async function unpackFiles(copy: string, directory: string): Promise<boolean> {
  using database = openErasing(copy)
  if (!hasTable(database, 'backup_files')) return false
  mkdirSync(directory, { mode: 0o700 })
  for (const file of database.query<Packed, []>('SELECT * FROM backup_files').all()) {
    await unpackOne(database, file, directory)
  }
  syncPath(directory)
  for (const table of tables) database.run(`DROP TABLE ${table}`)
  rewrite(database)
  return true
}

async function unpackOne(database: Database, file: Packed, directory: string) {
  if (!isFileKey(file.id)) throw new Error('it is damaged: a file in it has an invalid name')
  await using output = await open(join(directory, file.id), 'wx', 0o600)
  await readPieces(database, file, (bytes) => output.writeFile(bytes))
  await output.sync()
}

/** @returns the path under which the old one is kept, unless it is empty */
export function replaceDirectory(path: string, by: string, aside: string): string | undefined {
  const isKept = existsSync(path) && readdirSync(path).length > 0
  if (isKept) renameSync(path, aside)
  else rmSync(path, { recursive: true, force: true })
  renameSync(by, path)
  return isKept ? aside : undefined
}
