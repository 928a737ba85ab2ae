import { Database } from 'bun:sqlite'
import { closeSync, openSync, readSync } from 'node:fs'
import journal from '../../drizzle/meta/_journal.json' with { type: 'json' }
import { readMigrations } from '../../scripts/read-migrations.ts' with { type: 'macro' }
import { StartError } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'

/** The SQL of every migration, read when this module is loaded: at compile time for the executable. The position is the
 *  version that `PRAGMA user_version` stores. */
export const migrations: readonly string[] = await readMigrations()

const applicationId = 0x484f5354 // "HOST": identifies our database files

/** Migrates an empty or older database to this version in one transaction. A failed step leaves the database unchanged,
 *  so that the older executable still opens it.
 *  @throws StartError for a database that this executable cannot open, or a step that fails */
export function migrate(
  sqlite: Database,
  path: string,
  { steps = migrations, log }: { steps?: readonly string[]; log?: Log | undefined } = {},
) {
  const version = knownVersion(sqlite, path, steps)
  if (version === steps.length) return
  const pending = steps.slice(version)
  // A step that rebuilds a table drops the old one; with foreign keys on, that would delete the rows that refer to it. Others
  // keep them on: checking every key afterwards takes minutes in a database of gigabytes.
  const isRebuilt = pending.some((step) => step.includes('DROP TABLE'))
  if (isRebuilt) sqlite.run('PRAGMA foreign_keys = OFF')
  try {
    sqlite.transaction(() => {
      for (const [index, step] of pending.entries()) {
        const name = journal.entries[version + index]?.tag
        if (version > 0) log?.info('migrating the database', { version: version + index + 1, name })
        sqlite.run(step)
      }
      if (isRebuilt && sqlite.query('PRAGMA foreign_key_check').get())
        throw new Error('a foreign key is broken')
      sqlite.run(`PRAGMA application_id = ${applicationId}`)
      sqlite.run(`PRAGMA user_version = ${steps.length}`)
    })()
  } catch (cause) {
    const reason = (cause as Error).message
    throw new StartError(
      `the database ${path} cannot be migrated and stays at version ${version}: ${reason}`,
      { cause },
    )
  } finally {
    sqlite.run('PRAGMA foreign_keys = ON')
  }
}

/** @throws StartError for a database of another version or program */
export function mustBeCurrent(sqlite: Database, path: string): void {
  if (knownVersion(sqlite, path) === migrations.length) return
  throw new StartError(
    `the database ${path} is empty or older than this hostline: start the server once`,
  )
}

/** Returns the version of a database; 0 for an empty one.
 *  @throws StartError for a database of a newer, an unreleased or another program */
export function knownVersion(sqlite: Database, path: string, steps = migrations): number {
  const version = versionOf(sqlite)
  const isOurs = pragma(sqlite, 'application_id') === applicationId
  if (!isOurs && (version > 0 || sqlite.query('SELECT 1 FROM sqlite_schema').get())) {
    throw new StartError(`the database ${path} belongs to another program: set DATA_DIR`)
  }
  if (isUnreleased(sqlite, version, steps)) {
    throw new StartError(
      `the database ${path} (version ${version}) was made before the release 0.1.0: no released hostline opens it`,
    )
  }
  mustBeKnown(version, path, steps)
  return version
}

/** Before 0.1.0, migrations were rewritten and not appended, so the version alone does not identify a database. */
function isUnreleased(sqlite: Database, version: number, steps: readonly string[]): boolean {
  if (version === 0 || version === steps.length) return false
  const found = columnsOf(sqlite)
  if (version > steps.length) return steps === migrations && !found.has('blocks.user_id')
  using model = new Database(':memory:')
  for (const step of steps.slice(0, version)) model.run(step)
  return !columnsOf(model).isSubsetOf(found)
}

function columnsOf(sqlite: Database): Set<string> {
  const query = sqlite.query<{ name: string }, []>(
    `SELECT tables.name || '.' || columns.name AS name
     FROM sqlite_schema AS tables, pragma_table_xinfo(tables.name) AS columns
     WHERE tables.type = 'table'`,
  )
  return new Set(query.all().map(({ name }) => name))
}

function mustBeKnown(version: number, path: string, { length }: readonly string[]) {
  if (version <= length) return
  throw new StartError(
    `the database ${path} has version ${version}, this hostline knows up to ${length}: use a newer executable`,
  )
}

// https://www.sqlite.org/fileformat.html, 1.3
const versionOffset = 60

/** Like `knownVersion`, but reads only the file header, which needs no disk space. Ignores the wal.
 *  @throws StartError for a newer database */
export function mustBeServable(path: string): void {
  const header = Buffer.alloc(versionOffset + 4)
  const file = openSync(path, 'r')
  readSync(file, header)
  closeSync(file)
  mustBeKnown(header.readUInt32BE(versionOffset), path, migrations)
}

export const versionOf = (sqlite: Database): number => pragma(sqlite, 'user_version')

const pragma = (sqlite: Database, name: 'user_version' | 'application_id') =>
  Number(sqlite.query(`PRAGMA ${name}`).values()[0]?.[0])
