import { Database } from 'bun:sqlite'
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  mkdirSync,
  openSync,
  statSync,
} from 'node:fs'
import { join } from 'node:path'
import { max } from 'drizzle-orm'
import { type BunSQLiteDatabase, drizzle } from 'drizzle-orm/bun-sqlite'
import { StartError } from '../lib/errors.ts'
import { migrate, migrations } from './migrations.ts'
import {
  auditLog,
  broadcasts,
  conversations,
  messages,
  sessions,
  ticketMessages,
  tickets,
  users,
} from './schema.ts'

export type Orm = BunSQLiteDatabase & { $client: Database }
export type Connection = {
  path: string
  sqlite: Database
  orm: Orm
  /** Nobody else can open the database: the disk was full at the start, and there was no room for the index of the wal. */
  isExclusive: boolean
  /** Ends that, once there is room. The wal is then another file.
   *  @throws Error when there is not enough */
  share(): void
  /** Writes a page that changes nothing: shows whether the disk takes it. */
  touch(): void
  close(): void
}

export const databaseFile = 'hostline.db'
export const lockFile = 'hostline.lock'

// Pages that nobody read lately cost a system call each; SQLite's own 2 MB hold few.
const cacheKibibytes = 65_536
const maxWalBytes = 32 * 1_024 * 1_024
const busyTimeoutMilliseconds = 2_000
// A command beside us holds the directory for moments only.
const lockWaitMilliseconds = 1_000
const otherOwner = 'this user may not use it: run as its owner, or give it to this user (chown)'
const advice: Record<string, string> = {
  SQLITE_BUSY:
    'another process holds it: try again; a server that started on a full disk holds it until there is room',
  SQLITE_LOCKED: 'another process holds it, try again',
  SQLITE_CORRUPT: 'it is damaged: hostline restore puts a backup in its place',
  SQLITE_NOTADB:
    'it is no database: set DATA_DIR, or let hostline restore put a backup in its place',
  SQLITE_READONLY: otherOwner,
  SQLITE_CANTOPEN: otherOwner,
  EACCES: otherOwner,
  EPERM: otherOwner,
  ELOOP: 'it is a link: put the file itself there',
  ENOSPC: 'the disk is full',
  SQLITE_FULL: 'the disk is full',
}

/** Another process holds the data directory. */
export class DirectoryInUse extends StartError {}

/** Takes the data directory for the one process that writes in it, and makes it if there is none.
 *  @returns how to let go
 *  @throws StartError with one line for the operator */
export function takeDirectory(directory: string): () => void {
  prepareDirectory(directory)
  const unlock = lockDirectory(directory, lockWaitMilliseconds)
  if (!unlock) throw new DirectoryInUse(`another hostline is already running on ${directory}`)
  return unlock
}

type OpenOptions = {
  /** Lets go of the directory when this process has taken it already; called with the end of the connection. */
  unlock?: (() => void) | undefined
  /** Brings the database to this version, or refuses another one. */
  prepare?: typeof migrate
}

/** Opens the database for the one process that writes in it, and makes what is missing. Commits do not wait for the disk
 *  here; the writer syncs the wal.
 *  @throws StartError with one line for the operator */
export function openForServer(
  directory: string,
  { unlock = takeDirectory(directory), prepare = migrate }: OpenOptions = {},
): Connection {
  try {
    const connection = openWithOrWithoutRoom(directory)
    // What a long reader, such as a backup, has made of the wal is cut off when it starts again.
    connection.sqlite.run(`PRAGMA journal_size_limit = ${maxWalBytes}`)
    // What a statement would have to undo: else a file that each such statement opens.
    connection.sqlite.run('PRAGMA temp_store = MEMORY')
    connection.sqlite.run(`PRAGMA cache_size = -${cacheKibibytes}`)
    prepare(connection.sqlite, connection.path)
    // The loop must never sleep in here.
    connection.sqlite.run('PRAGMA busy_timeout = 0')
    return {
      ...connection,
      close() {
        try {
          // Explicitly: statements that are still prepared would put off what closing does by itself.
          connection.sqlite.run('PRAGMA wal_checkpoint(TRUNCATE)')
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

/** @throws StartError for a directory without a database, or of another user */
export function mustExist(directory: string): void {
  try {
    statSync(join(directory, databaseFile))
  } catch (cause) {
    const reason =
      (cause as { code?: string }).code === 'EACCES'
        ? `cannot look into ${directory}: ${otherOwner}`
        : `there is no database in ${directory}: start the server once, or set DATA_DIR`
    throw new StartError(reason, { cause })
  }
}

/** Opens the database file as it is, without a lock and without migrating: for looking at it. */
export function openToInspect(directory: string): Connection {
  return open(directory, 'FULL')
}

/** Makes a data directory.
 *  @throws StartError when it cannot be written to */
export function prepareDirectory(directory: string) {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    accessSync(directory, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (cause) {
    throw new StartError(
      `cannot write to the data directory ${directory}: ${explainFailure(cause)}`,
      {
        cause,
      },
    )
  }
}

function openWithOrWithoutRoom(directory: string): Connection {
  try {
    return open(directory, 'NORMAL')
  } catch (error) {
    const { code = '' } = (error as Error).cause as { code?: string }
    if (!/^SQLITE_(FULL|IOERR)/.test(code)) throw error
    return open(directory, 'NORMAL', { isExclusive: true })
  }
}

function open(
  directory: string,
  synchronous: 'NORMAL' | 'FULL',
  { isExclusive = false } = {},
): Connection {
  const path = join(directory, databaseFile)
  let sqlite: Database | undefined
  try {
    makeOwn(path)
    sqlite = new Database(path)
    return configure(sqlite, { path, synchronous, isExclusive })
  } catch (cause) {
    sqlite?.close()
    throw new StartError(`cannot use the database ${path}: ${explainFailure(cause)}`, { cause })
  }
}

/** Makes a file if there is none, and lets its owner alone use it. A link may be anybody's who can write to the directory:
 *  root would change a file of its own. */
function makeOwn(path: string): void {
  const { O_RDWR, O_CREAT, O_NOFOLLOW } = constants
  const file = openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600)
  try {
    fchmodSync(file, 0o600)
  } finally {
    closeSync(file)
  }
}

type Mode = { path: string; synchronous: 'NORMAL' | 'FULL'; isExclusive: boolean }

function configure(sqlite: Database, { path, synchronous, isExclusive }: Mode): Connection {
  sqlite.run(`PRAGMA busy_timeout = ${busyTimeoutMilliseconds}`)
  if (isExclusive) sqlite.run('PRAGMA locking_mode = EXCLUSIVE')
  sqlite.run('PRAGMA journal_mode = WAL')
  sqlite.run(`PRAGMA synchronous = ${synchronous}`)
  // The server has its checkpointer. One of a command would let the wal start again before the server has shipped it.
  sqlite.run('PRAGMA wal_autocheckpoint = 0')
  sqlite.run('PRAGMA foreign_keys = ON')
  // What is removed leaves nothing in pages that are free.
  sqlite.run('PRAGMA secure_delete = ON')
  return {
    path,
    sqlite,
    orm: drizzle(sqlite),
    isExclusive,
    share() {
      // The locking mode of a wal changes only while there is none.
      sqlite.run('PRAGMA journal_mode = DELETE')
      sqlite.run('PRAGMA locking_mode = NORMAL')
      sqlite.run('PRAGMA journal_mode = WAL')
      sqlite.query('SELECT 1 FROM sqlite_schema').get()
    },
    touch: () => sqlite.run(`PRAGMA user_version = ${migrations.length}`),
    close: () => sqlite.close(),
  }
}

/** Why a file cannot be used, and what to do about it. */
export function explainFailure(error: unknown): string {
  const { code, message } = error as { code?: string; message: string }
  if (code?.startsWith('SQLITE_IOERR')) return `${message}: the disk is full or failing`
  return advice[code ?? ''] ?? message
}

/** Takes the data directory for this process: an exclusive transaction on a small file beside the database, which the
 *  kernel lets go of when the process dies, however it dies.
 *  @returns how to let go, or undefined when another process still holds it after `waitMilliseconds`
 *  @throws StartError when the file cannot be used */
export function lockDirectory(
  directory: string,
  waitMilliseconds: number,
): (() => void) | undefined {
  const path = join(directory, lockFile)
  let lock: Database | undefined
  try {
    makeOwn(path)
    lock = new Database(path)
    lock.run(`PRAGMA busy_timeout = ${waitMilliseconds}`)
    lock.run('PRAGMA journal_mode = MEMORY') // so that a kill leaves no journal file behind
    lock.run('BEGIN EXCLUSIVE')
  } catch (cause) {
    lock?.close()
    if ((cause as { code?: string }).code === 'SQLITE_BUSY') return undefined
    throw new StartError(`cannot use ${path}: ${explainFailure(cause)}`, { cause })
  }
  const held = lock
  return () => {
    held.run('ROLLBACK')
    held.close()
  }
}

/** Whether a server or a standby has taken the data directory. */
export function isInUse(directory: string): boolean {
  const path = join(directory, lockFile)
  if (!existsSync(path)) return false
  const lock = new Database(path, { readonly: true })
  try {
    lock.query('SELECT 1 FROM sqlite_schema').get()
    return false
  } catch (error) {
    return (error as { code?: string }).code === 'SQLITE_BUSY'
  } finally {
    lock.close()
  }
}

/** The newest id that an earlier process made, as far as an index tells it; undefined in an empty database. */
export function findNewestId(orm: Orm): string | undefined {
  const tables = [
    auditLog,
    broadcasts,
    conversations,
    messages,
    sessions,
    ticketMessages,
    tickets,
    users,
  ]
  const newest = tables.flatMap((table) => {
    const found = orm
      .select({ id: max(table.id) })
      .from(table)
      .get()
    return found?.id ?? []
  })
  return newest.sort().at(-1)
}
