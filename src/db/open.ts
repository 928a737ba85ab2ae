import {
  Database,
  type SQLQueryBindings,
  type Statement,
  constants as sqliteConstants,
} from 'bun:sqlite'
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  lstatSync,
  mkdirSync,
  openSync,
} from 'node:fs'
import { join } from 'node:path'
import { type BunSQLiteDatabase, drizzle } from 'drizzle-orm/bun-sqlite'
import { StartError } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import { createLru } from '../lib/lru.ts'
import { migrate, migrations } from './migrations.ts'
import { letOldShrink, letShrink } from './shrinking.ts'

export type Orm = BunSQLiteDatabase & { $client: Database }
export type Connection = ReturnType<typeof configure>

export const databaseFile = 'hostline.db'
export const lockFile = 'hostline.lock'
export const replicaStateFile = 'replica.json'
/** The copy of a standby. Its name differs, so that commands do not use it as a database. */
export const replicaCopyFile = 'replica.db'

// An uncached page costs a system call; SQLite's default cache (2 MB) is too small.
const cacheKibibytes = 8_192
const maxWalBytes = 32 * 1_024 * 1_024
const busyTimeoutMilliseconds = 2_000
const keptStatements = 200
// A command locks the directory briefly, on a slow machine for seconds.
const lockWaitMilliseconds = 5_000
const otherOwner = 'this user may not use it: run as its owner, or give it to this user (chown)'
const advice: Record<string, string> = {
  SQLITE_BUSY: 'another process holds it, try again',
  SQLITE_LOCKED: 'another process holds it, try again',
  SQLITE_CORRUPT: 'it is damaged: replace it by a backup with hostline restore',
  SQLITE_NOTADB:
    'it is not a database: set DATA_DIR, or replace it by a backup with hostline restore',
  SQLITE_READONLY: otherOwner,
  SQLITE_CANTOPEN: otherOwner,
  EACCES: otherOwner,
  EPERM: otherOwner,
  ELOOP: 'it is a link: put the file itself there',
  ENOSPC: 'the disk is full',
  SQLITE_FULL: 'the disk is full',
}

export class DirectoryInUse extends StartError {}

/** Locks the data directory for the one process that writes in it, and creates it if there is none.
 *  @returns the function that unlocks it
 *  @throws StartError with one line for the operator */
export function takeDirectory(directory: string): () => void {
  prepareDirectory(directory)
  const unlock = lockDirectory(directory, lockWaitMilliseconds)
  if (!unlock) throw new DirectoryInUse(`another hostline is already running on ${directory}`)
  return unlock
}

type OpenOptions = {
  /** Unlocks the directory if this process has locked it already; called when the connection closes. */
  unlock?: (() => void) | undefined
  prepare?: typeof migrate
  log?: Log
}

/** Opens the database for the one process that writes in it, and creates it if needed. Commits do not wait for the disk
 *  here; the writer syncs the wal.
 *  @throws StartError with one line for the operator */
export function openForServer(
  directory: string,
  { unlock = takeDirectory(directory), prepare = migrate, log }: OpenOptions = {},
): Connection {
  try {
    // A server that stopped meanwhile may have left the copy of a standby: an empty database in its place would lead.
    if (prepare !== migrate) mustExist(directory)
    else mustNotBeCopy(directory)
    const connection = open(directory, 'NORMAL')
    // A long reader, such as a backup, lets the wal grow. SQLite truncates it to this size at the next reset.
    connection.sqlite.run(`PRAGMA journal_size_limit = ${maxWalBytes}`)
    // Keep statement journals in memory; otherwise SQLite opens a temporary file for each.
    connection.sqlite.run('PRAGMA temp_store = MEMORY')
    connection.sqlite.run(`PRAGMA cache_size = -${cacheKibibytes}`)
    prepare(connection.sqlite, connection.path, { log })
    // A command does not rewrite the database.
    if (prepare === migrate) {
      rewriteOld(connection.sqlite, log)
      mustAcceptWrites(connection)
    }
    // Waiting for a lock would block the event loop.
    connection.sqlite.run('PRAGMA busy_timeout = 0')
    return {
      ...connection,
      close() {
        try {
          if (isReplicated(directory)) keepWal(connection)
          // Unfinalized statements delay the checkpoint that `close` would run, so run it explicitly.
          else connection.sqlite.run('PRAGMA wal_checkpoint(TRUNCATE)')
        } finally {
          connection.close()
          unlock()
        }
      },
    }
  } catch (error) {
    unlock()
    throw error
  }
}

/** @throws StartError where a server without replication would make an empty database beside the copy of a standby */
function mustNotBeCopy(directory: string): void {
  const copy = join(directory, replicaCopyFile)
  if (
    !existsSync(copy) ||
    lstatSync(join(directory, databaseFile), { throwIfNoEntry: false })?.size
  )
    return
  throw new StartError(
    `${directory} has only the copy of a standby: set REPLICA_S3_URL, or make the copy its database with hostline restore ${copy}`,
  )
}

/** @throws StartError for a directory without a database or one of another user */
export function mustExist(directory: string): void {
  let cause: unknown
  try {
    // A first start on a full disk leaves an empty file. Opening it would fill it with a header, as if it were a database.
    if (lstatSync(join(directory, databaseFile)).size > 0) return
  } catch (error) {
    cause = error
  }
  const reason =
    (Object(cause) as { code?: string }).code === 'EACCES'
      ? `cannot look into ${directory}: ${otherOwner}`
      : existsSync(join(directory, replicaCopyFile))
        ? `${directory} has the copy of a standby: run this on the leader, which hostline replica status names`
        : `there is no database in ${directory}: start the server once, or set DATA_DIR`
  throw new StartError(reason, { cause })
}

/** Opens the database file for inspection: no lock, no migration. */
export function openToInspect(directory: string): Connection {
  mustExist(directory)
  const connection = open(directory, 'FULL')
  return {
    ...connection,
    close() {
      // A running server keeps the wal itself; a reader would delay its checkpoints.
      if (isReplicated(directory) && !isInUse(directory)) keepWal(connection)
      // Bun keeps a connection with unfinalized statements until its end, when it locks and truncates the wal.
      connection.sqlite.close(true)
    },
  }
}

export function prepareDirectory(directory: string) {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    accessSync(directory, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (cause) {
    throw failure(`cannot write to the data directory ${directory}`, cause)
  }
}

// On a full disk the server starts all the same, and the next start tries again.
function rewriteOld(sqlite: Database, log: Log | undefined) {
  try {
    letOldShrink(sqlite)
  } catch (error) {
    log?.warn('the database could not be rewritten, so its file cannot shrink', { error })
  }
}

function mustAcceptWrites({ path, touch }: Connection) {
  try {
    touch()
  } catch (cause) {
    throw failure(`cannot write to the database ${path}`, cause)
  }
}

function open(directory: string, synchronous: 'NORMAL' | 'FULL'): Connection {
  const path = join(directory, databaseFile)
  let sqlite: Database | undefined
  try {
    closeSync(openPrivateFile(path))
    sqlite = new PlannedOnce(path)
    return configure(sqlite, path, synchronous)
  } catch (cause) {
    sqlite?.close()
    throw failure(`cannot use the database ${path}`, cause)
  }
}

const keptOpen: Database[] = []

/** Keeps the wal, from which the next start goes on shipping. Bun truncates it at its end unless another connection reads
 *  it. */
function keepWal({ path, sqlite }: Connection) {
  const reader = new Database(path)
  for (const one of [sqlite, reader]) {
    one.fileControl(sqliteConstants.SQLITE_FCNTL_PERSIST_WAL, 1)
    one.run('PRAGMA journal_size_limit = -1')
  }
  reader.run('BEGIN')
  reader.query('SELECT 1 FROM sqlite_schema').get()
  keptOpen.push(reader)
}

const isReplicated = (directory: string) => existsSync(join(directory, replicaStateFile))

/** Opens a file, which it creates if there is none, and restricts it to its owner. Refuses symbolic links: otherwise
 *  anybody who can write to the directory could make root change a file elsewhere. */
export function openPrivateFile(path: string): number {
  const { O_RDWR, O_CREAT, O_NOFOLLOW } = constants
  const file = openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600)
  fchmodSync(file, 0o600)
  return file
}

function configure(sqlite: Database, path: string, synchronous: 'NORMAL' | 'FULL') {
  sqlite.run(`PRAGMA busy_timeout = ${busyTimeoutMilliseconds}`)
  letShrink(sqlite)
  sqlite.run('PRAGMA journal_mode = WAL')
  sqlite.run(`PRAGMA synchronous = ${synchronous}`)
  // The server has its own checkpointer. A checkpoint by a command would let the wal be reset before the server has shipped
  // it.
  sqlite.run('PRAGMA wal_autocheckpoint = 0')
  sqlite.run('PRAGMA foreign_keys = ON')
  // Overwrite deleted content with zeros instead of leaving it in free pages.
  sqlite.run('PRAGMA secure_delete = ON')
  return {
    path,
    sqlite,
    orm: createOrm(sqlite),
    /** Writes a page without changing anything, to test whether the disk accepts writes. */
    touch: () => sqlite.run(`PRAGMA user_version = ${migrations.length}`),
    close: (): void => sqlite.close(),
    [Symbol.dispose]() {
      this.close()
    },
  }
}

/** Plans each statement once. SQLite would plan it again for each value of an equation or a LIMIT, in case another plan suits
 *  the value, which takes longer than most queries. A unary plus hides the value from the planner and changes nothing else.
 *  https://www.sqlite.org/c3ref/prepare.html */
class PlannedOnce extends Database {
  override prepare<Row, Args extends SQLQueryBindings | SQLQueryBindings[]>(
    text: string,
    ...rest: [args?: Args]
  ) {
    return super.prepare<Row, Args>(text.replaceAll(plannedValue, '+$&'), ...rest)
  }
}
const plannedValue = /(?<=(?<![<>])= |\b(IS|LIMIT) )\?/gi

/** The ORM prepares each query anew, which takes longer than most queries, so statements are kept by their text. They can be
 *  shared because none is read in steps. */
function createOrm(sqlite: Database): Orm {
  const statements = createLru<Statement>(keptStatements)
  const prepare = (text: string) => {
    const kept = statements.get(text)
    if (kept) return kept
    const statement = sqlite.prepare(text)
    statements.set(text, statement)
    return statement
  }
  const client = { prepare } as unknown as Database // what the ORM uses of it outside its own transactions
  return Object.assign(drizzle({ client }), { $client: sqlite })
}

const failure = (what: string, cause: unknown) =>
  new StartError(`${what}: ${explainFailure(cause)}`, { cause })

export function explainFailure(error: unknown): string {
  const { code, message } = error as { code?: string; message: string }
  if (code?.startsWith('SQLITE_IOERR')) return `${message}: the disk is full or failing`
  return advice[code ?? ''] ?? message
}

/** Locks the data directory: an exclusive transaction on a small file beside the database. The kernel releases it
 *  however the process dies.
 *  @returns the function that unlocks it, or undefined when another process still holds it after `waitMilliseconds`
 *  @throws StartError when the file cannot be used */
export function lockDirectory(directory: string, waitMilliseconds: number) {
  const path = join(directory, lockFile)
  let lock: Database | undefined
  try {
    closeSync(openPrivateFile(path))
    lock = new Database(path)
    lock.run(`PRAGMA busy_timeout = ${waitMilliseconds}`)
    lock.run('PRAGMA journal_mode = MEMORY') // a killed process leaves no journal file behind
    lock.run('BEGIN EXCLUSIVE')
  } catch (cause) {
    lock?.close()
    if ((cause as { code?: string }).code === 'SQLITE_BUSY') return undefined
    throw failure(`cannot use ${path}`, cause)
  }
  const held = lock
  return () => {
    held.run('ROLLBACK')
    held.close()
  }
}

export function isInUse(directory: string): boolean {
  const path = join(directory, lockFile)
  if (!existsSync(path)) return false
  using lock = new Database(path, { readonly: true })
  try {
    lock.query('SELECT 1 FROM sqlite_schema').get()
    return false
  } catch (error) {
    return (error as { code?: string }).code === 'SQLITE_BUSY'
  }
}

const idTables =
  'audit_log broadcasts conversations messages sessions ticket_messages tickets users'.split(' ')

/** The newest id of an earlier process, from tables with an index of their ids or times; undefined in an empty database. */
export function findNewestId({ $client: sqlite }: Orm): string | undefined {
  const each = idTables.map((table) => `SELECT max(id) AS id FROM ${table}`)
  each.push('SELECT id FROM (SELECT id, max(created_at) FROM notifications)')
  const newest = sqlite.query<{ id: string | null }, []>(
    `SELECT max(id) AS id FROM (${each.join(' UNION ALL ')})`,
  )
  return newest.get()?.id ?? undefined
}
