import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { databaseFile, openForServer } from '../../src/db/open.ts'
import { temporaryDirectory } from './directory.ts'

let template: ReturnType<typeof temporaryDirectory> | undefined

/** A new folder with an empty database of this version. It is copied, because migrating takes longer than most tests. */
export function migratedDirectory() {
  template ??= makeTemplate()
  const directory = temporaryDirectory()
  copyFileSync(join(template.path, databaseFile), join(directory.path, databaseFile))
  return directory
}

function makeTemplate() {
  const directory = temporaryDirectory()
  openForServer(directory.path).close()
  process.on('exit', () => directory[Symbol.dispose]())
  return directory
}
