import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { databaseFile, openForServer } from '../../src/db/open.ts'
import { temporaryDirectory } from './directory.ts'

let template: Buffer | undefined

/** A new folder with an empty database of this version. It is copied, because migrating takes longer than most tests. */
export function migratedDirectory() {
  template ??= makeTemplate()
  const directory = temporaryDirectory()
  writeFileSync(join(directory.path, databaseFile), template)
  return directory
}

function makeTemplate(): Buffer {
  using directory = temporaryDirectory()
  openForServer(directory.path).close()
  return readFileSync(join(directory.path, databaseFile))
}
