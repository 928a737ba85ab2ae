import type { Database } from 'bun:sqlite'
import { closeSync, openSync, readSync } from 'node:fs'
import initial from '../../drizzle/0000_initial.sql' with { type: 'text' }
import safety from '../../drizzle/0001_safety.sql' with { type: 'text' }
import oneOwner from '../../drizzle/0002_one_owner.sql' with { type: 'text' }
import { StartError } from '../lib/errors.ts'

/** The SQL of every migration in the order of drizzle/meta/_journal.json, imported as text so that the executable
 *  contains it. The position is the version that `PRAGMA user_version` stores. */
export const migrations: readonly string[] = [initial, safety, oneOwner]

const applicationId = 0x484f5354 // "HOST": identifies our database files

/** Migrates an empty or older database to this version in one transaction. A failed step leaves the database unchanged,
 *  so that the older executable still opens it.
 *  @throws StartError for a newer database, a file of another program, or a step that fails */
export function migrate(sqlite: Database, path: string, steps: readonly string[] = migrations) {
  const version = knownVersion(sqlite, path, steps)
  if (version === steps.length) return
  // A step that rebuilds a table drops the old one; with foreign keys on, that would delete the rows that refer to it.
  sqlite.run('PRAGMA foreign_keys = OFF')
  try {
    sqlite.transaction(() => {
      for (const step of steps.slice(version)) sqlite.run(step)
      if (sqlite.query('PRAGMA foreign_key_check').get()) throw new Error('a foreign key is broken')
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
 *  @throws StartError for a newer database or a file of another program */
export function knownVersion(
  sqlite: Database,
  path: string,
  steps: readonly string[] = migrations,
): number {
  const version = versionOf(sqlite)
  const isOurs = pragma(sqlite, 'application_id') === applicationId
  if (!isOurs && (version > 0 || sqlite.query('SELECT 1 FROM sqlite_schema').get())) {
    throw new StartError(`the database ${path} belongs to another program: set DATA_DIR`)
  }
  mustBeKnown(version, path, steps)
  return version
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

export function versionOf(sqlite: Database) {
  return pragma(sqlite, 'user_version')
}

function pragma(sqlite: Database, name: 'user_version' | 'application_id') {
  const row = sqlite.query<Record<string, number>, []>(`PRAGMA ${name}`).get()
  return row?.[name] ?? 0
}
