import { Database } from 'bun:sqlite'
import {
  createReadStream,
  existsSync,
  linkSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { join } from 'node:path'
import { filesDirectory } from '../files/storage.ts'
import { StartError } from '../lib/errors.ts'
import { intoOneFile, moveInto, removeDatabase, writePaced } from './backup.ts'
import { replaceDirectory, unpackFiles } from './file-backup.ts'
import {
  databaseFile,
  explainFailure,
  lockDirectory,
  lockFile,
  prepareDirectory,
  replicaCopyFile,
} from './open.ts'
import { giveToOwner, pieceBytes } from './pieces.ts'
import { unseal } from './seal.ts'
import { letOldShrink } from './shrinking.ts'

type Options = {
  isForced: boolean
  /** The new name of the replaced database, or copy of a standby, in the same directory. Its files are kept beside it. */
  asideName: string
  whenInPlace?: (() => void) | undefined
}

export type RestoreSource = {
  name: string
  /** Writes one whole database file, and the uploaded files into a new directory.
   *  @returns true if the source includes files, even when there were none */
  stage: (database: string, files: string) => Promise<boolean>
}

export async function restore(file: string, directory: string, options: Options) {
  if (!existsSync(file)) throw new StartError(`there is no ${file}`)
  const own = join(directory, databaseFile)
  if (existsSync(own) && realpathSync(own) === realpathSync(file)) {
    throw new StartError(`${file} is the database itself`)
  }
  const stageFile: RestoreSource['stage'] = async (staged, stagedFiles) => {
    await stage(file, staged)
    return unpackFiles(staged, stagedFiles)
  }
  return restoreFrom({ name: file, stage: stageFile }, directory, options)
}

/** Replaces the database of a data directory. The new one is complete and checked before anything is replaced.
 *  @returns the paths of the replaced database and files, if there were any
 *  @throws StartError with one line for the operator; the directory is then unchanged */
export async function restoreFrom(source: RestoreSource, directory: string, options: Options) {
  prepareDirectory(directory)
  const unlock = lockDirectory(directory, 0)
  if (!unlock) throw new StartError(`a hostline is running on ${directory}: stop it first`)
  const path = join(directory, databaseFile)
  const staged = `${path}.restoring`
  const files = join(directory, filesDirectory)
  const stagedFiles = `${files}.restoring`
  try {
    if (hasData(path) && !options.isForced) {
      throw new StartError(
        `there is a database in ${directory}: --force replaces it, and keeps it aside`,
      )
    }
    removeDatabase(staged)
    rmSync(stagedFiles, { recursive: true, force: true })
    const hasFiles = await source.stage(staged, stagedFiles)
    const aside = join(directory, options.asideName)
    const copy = join(directory, replicaCopyFile)
    // First, because the database names the files.
    const filesAside = hasFiles
      ? replaceDirectory(files, stagedFiles, `${aside.replace(/\.db$/, '')}-files`)
      : undefined
    let databaseAside: string | undefined
    try {
      databaseAside = keepFormer(path, copy, aside)
      moveInto(staged, path)
    } catch (error) {
      if (filesAside) replaceDirectory(files, filesAside, stagedFiles)
      throw error
    }
    // The copy would keep what the leader deletes from now on.
    rmSync(copy, { force: true })
    options.whenInPlace?.()
    const restored = hasFiles ? ['', ...readdirSync(files)] : []
    const fileNames = restored.map((name) => join(filesDirectory, name))
    giveToOwner(directory, [databaseFile, lockFile, ...fileNames])
    return [databaseAside, filesAside].filter((it) => it !== undefined)
  } catch (cause) {
    if (cause instanceof StartError) throw cause
    throw new StartError(`${source.name} cannot be restored: ${explainFailure(cause)}`, { cause })
  } finally {
    removeDatabase(staged)
    rmSync(stagedFiles, { recursive: true, force: true })
    unlock()
  }
}

/** Keeps the database, or else the copy of a standby, as `aside`. */
function keepFormer(path: string, copy: string, aside: string): string | undefined {
  if (hasData(path)) {
    keepAside(path, aside)
    return aside
  }
  // SQLite would apply a leftover wal to the new database.
  removeDatabase(path)
  if (!existsSync(copy)) return undefined
  linkSync(copy, aside)
  return aside
}

/** A first start on a full disk leaves an empty file. */
const hasData = (path: string) => existsSync(path) && statSync(path).size > 0

async function stage(file: string, staged: string) {
  for (const suffix of ['', '-wal']) {
    if (!existsSync(file + suffix)) continue
    const pieces = createReadStream(file + suffix, { highWaterMark: pieceBytes })
    await writePaced(staged + suffix, pieces)
  }
  await unseal(staged)
  intoOneFile(staged, file)
  using database = new Database(staged)
  letOldShrink(database, Number.POSITIVE_INFINITY)
}

/** Renames a database within its directory. Its wal is checkpointed into it first, because SQLite must never apply the
 *  old wal to a new database. A wal that cannot be checkpointed is kept beside it. */
export function keepAside(path: string, aside: string) {
  try {
    using old = new Database(path)
    old.run('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch {
    // A damaged database may be the reason for the restore.
  }
  linkSync(path, aside)
  if (existsSync(`${path}-wal`)) renameSync(`${path}-wal`, `${aside}-wal`)
  rmSync(`${path}-shm`, { force: true })
}
