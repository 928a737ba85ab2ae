import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { type Config, readConfig } from '../config.ts'
import { backUp, datedName, isRunning, mustBeWhole } from '../db/backup.ts'
import { databaseFile, explainFailure, mustExist } from '../db/open.ts'
import { type RestoreSource, restore as restoreFile, restoreFrom } from '../db/restore.ts'
import { filesDirectory } from '../files/storage.ts'
import { isoTime, parseTime } from '../lib/clock.ts'
import { StartError } from '../lib/errors.ts'
import { freeBytesAt } from '../lib/free-space.ts'
import { type Bucket, type OpenBucket, openBucket } from '../outside/bucket.ts'
import { findRange, restoreDatabase } from '../replication/follower.ts'
import { isOfBucket } from '../replication/log.ts'
import { withService } from './call.ts'
import { mustBeMeant, openConfiguredNode } from './replica.ts'
import { readOperand, type Terminal, wrongUsage } from './terminal.ts'

const keptByDefault = 7

export async function backup(args: string[], terminal: Terminal): Promise<void> {
  const usage = 'backup needs a file, or a directory for dated ones'
  const options = { keep: { type: 'string' }, fetch: { type: 'string' } } as const
  const { operand, values } = readOperand(args, usage, options)
  const kept = readKept(values.keep)
  const config = readConfig(terminal.environment, terminal.isInteractive)
  if (values.fetch !== undefined) {
    if (values.keep !== undefined) throw wrongUsage('--fetch makes no backup and takes no --keep')
    return terminal.out(await fetchBackup(values.fetch, operand, config.backupBucket))
  }
  const { dataDir, files } = config
  const isDirectory = isDirectoryAt(operand)
  mustExist(dataDir)
  if (values.keep !== undefined && !isDirectory) {
    throw wrongUsage('--keep is for a directory that exists')
  }
  const target = isDirectory ? join(operand, datedName('hostline')) : operand
  refuseDatabase(target, dataDir)
  mustHaveRoom(target, config)
  terminal.yieldToOthers()
  const local = files.bucket ? undefined : join(dataDir, filesDirectory)
  removeLeft(target, terminal)
  const missing = await backUp(dataDir, target, local)
  if (isDirectory) remove(operand, superseded(readdirSync(operand), target, kept), terminal)
  await recordBackup(target, terminal)
  terminal.out(`${target}: ${Math.ceil(statSync(target).size / 1_024)} KiB, checked`)
  if (isDirectory && config.backupBucket) await copyToBucket(target, kept, config.backupBucket)
  if (missing > 0) terminal.err(`hostline: ${missing} uploaded files are missing in ${dataDir}`)
}

const isDirectoryAt = (path: string) => existsSync(path) && statSync(path).isDirectory()

function mustHaveRoom(target: string, { minFreeBytes }: Config) {
  const folder = dirname(target)
  if (!existsSync(folder)) return
  const free = freeBytesAt(folder)
  if (free >= minFreeBytes) return
  const left = `only ${Math.floor(free / 1_000_000)} MB are free there, less than MIN_FREE_MB`
  throw new StartError(`no backup was made in ${target}: ${left}`)
}

function readKept(text: string | undefined): number {
  if (text === undefined) return keptByDefault
  if (/^[1-9]\d{0,3}$/.test(text)) return Number(text)
  throw wrongUsage('--keep takes a number from 1 to 9999')
}

/** A backup must not replace a database in use, recognisable by its wal. */
function refuseDatabase(target: string, dataDir: string) {
  const isThere = existsSync(target)
  const isOwn = isThere && realpathSync(target) === realpathSync(join(dataDir, databaseFile))
  if (isOwn || existsSync(`${target}-wal`)) {
    throw new StartError(`${target} is a database in use: name another file`)
  }
  if (isThere && !isDatabase(target)) {
    throw new StartError(`${target} exists and is not a backup: name another file`)
  }
}

function isDatabase(path: string) {
  // A pipe would never be read to its end.
  if (!statSync(path).isFile()) return false
  const header = Buffer.alloc(16)
  const file = openSync(path, 'r')
  readSync(file, header)
  closeSync(file)
  return header.toString('latin1') === 'SQLite format 3\0'
}

// The backup counts even if its time cannot be stored, for example on a full disk or in an older database.
async function recordBackup(file: string, terminal: Terminal) {
  try {
    await withService(terminal, (call) => call('POST', '/v1/operator/backups', { file }))
  } catch (error) {
    terminal.err(`hostline: the backup was made but not recorded: ${(error as Error).message}`)
  }
}

async function copyToBucket(file: string, kept: number, bucket: Bucket) {
  const store = openBucket(bucket)
  await store.put(basename(file), Bun.file(file))
  for (const name of superseded(await namesIn(store), file, kept)) await store.delete(name)
}

async function namesIn({ list }: OpenBucket): Promise<string[]> {
  const pages = await Array.fromAsync(list('hostline-'))
  return pages.flat().flatMap(({ key }) => (dated.test(key) ? [key] : []))
}

const fetchedBytes = 8 * 1_024 * 1_024

async function fetchBackup(wanted: string, directory: string, bucket?: Bucket): Promise<string> {
  if (!isDirectoryAt(directory)) throw new StartError(`there is no directory ${directory}`)
  if (!bucket) throw new StartError('--fetch needs BACKUP_S3_URL')
  const store = openBucket(bucket)
  const names = await namesIn(store)
  const name = wanted === 'newest' ? names.at(-1) : names.find((known) => known === wanted)
  if (name === undefined) {
    throw new StartError(`the bucket has no such backup, but: ${names.join(', ') || 'none'}`)
  }
  const target = join(directory, name)
  if (existsSync(target)) throw new StartError(`${target} is there already`)
  const partial = `${target}.${process.pid}.partial`
  const cannotWrite = (cause: unknown) => {
    throw new StartError(`${target} cannot be written: ${explainFailure(cause)}`, { cause })
  }
  const file = await open(partial, 'wx', 0o600).catch(cannotWrite)
  try {
    for (let start = 0; ; start += fetchedBytes) {
      const piece = await store.get(name, { start, end: start + fetchedBytes })
      if (!piece) throw new StartError(`${name} is gone from the bucket`)
      await file.writeFile(piece).catch(cannotWrite)
      if (piece.length < fetchedBytes) break
    }
    renameSync(partial, target)
  } finally {
    await file.close()
    rmSync(partial, { force: true })
  }
  return `${target}: restore it with hostline restore ${target}`
}

const dated = /^hostline-[\dT-]+Z(-\w{8})?\.db$/
const partial = /^(?<target>.*)\.(?<pid>\d+)\.partial(-\w+)?$/

/** All but the newest dated backups. Those with a later date than the one just made are older: the clock was set back. */
function superseded(names: string[], made: string, kept: number): string[] {
  const sorted = names
    .filter((name) => dated.test(name))
    .sort()
    .reverse()
  const { later = [], others = [] } = Object.groupBy(sorted, (name) =>
    name > basename(made) ? 'later' : 'others',
  )
  return [...others, ...later].slice(kept)
}

/** Removes what killed backups of the same file, or of dated ones, have left. In a container each process may have the same
 *  id. */
function removeLeft(target: string, terminal: Terminal) {
  const [directory, own] = [dirname(target), basename(target)]
  if (!existsSync(directory)) return
  const isAlike = (name: string) => name === own || (dated.test(own) && dated.test(name))
  const names = readdirSync(directory).filter((name) => {
    const { target: of = '', pid } = partial.exec(name)?.groups ?? {}
    return isAlike(of) && (Number(pid) === process.pid || !isRunning(Number(pid)))
  })
  remove(directory, names, terminal)
}

/** A file that stays, such as another user's in a shared directory, does not end the backup. */
function remove(directory: string, names: string[], { err }: Terminal) {
  for (const name of names) {
    try {
      rmSync(join(directory, name), { force: true })
    } catch (error) {
      err(`hostline: an old backup cannot be removed: ${(error as Error).message}`)
    }
  }
}

export async function restore(args: string[], terminal: Terminal): Promise<void> {
  const usage = 'restore needs the file of a backup, or s3'
  const { operand, values } = readOperand(args, usage, {
    force: { type: 'boolean' },
    at: { type: 'string' },
    list: { type: 'boolean' },
  })
  mustHaveUse(operand, values)
  const isForced = values.force === true
  const restoreOptions = { isForced, asideName: datedName('hostline-replaced') }
  if (operand === 's3' && values.list) return listMoments(terminal)
  if (operand === 's3') return restoreFromBucket(readMoment(values.at), restoreOptions, terminal)
  const { dataDir, replica } = readConfig(terminal.environment, terminal.isInteractive)
  mustBeMeant(dataDir, terminal)
  const adopt = replica && (await adoptionOf(terminal))
  const kept = await restoreFile(operand, dataDir, { ...restoreOptions, whenInPlace: adopt })
  printReplaced(terminal, dataDir, operand, kept)
}

type RestoreOptions = { force?: boolean; at?: string; list?: boolean }

function mustHaveUse(operand: string, { force, at, list }: RestoreOptions) {
  if (operand !== 's3' && (at !== undefined || list)) {
    throw wrongUsage('--at and --list are for restore s3')
  }
  if (list && (at !== undefined || force)) {
    throw wrongUsage('--list restores nothing and takes no --at or --force')
  }
}

/** Without it, a node of a pair would follow and drop the database. A lost bucket must not prevent the restore. */
async function adoptionOf(terminal: Terminal): Promise<(() => void) | undefined> {
  const { identity, findHead } = openConfiguredNode(terminal)
  try {
    const head = await findHead()
    return () => identity.adopt(head?.place)
  } catch (error) {
    if (!isOfBucket(error)) throw error
    terminal.err(
      `hostline: ${error.message}: if the server refuses to start or follows, run hostline replica init --force first`,
    )
    return undefined
  }
}

function printReplaced({ out }: Terminal, dataDir: string, source: string, kept: string[]) {
  out(`${join(dataDir, databaseFile)} is now ${source}`)
  for (const path of kept) out(`the former content is kept as ${path}`)
}

function readMoment(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const time = parseTime(text)
  if (time === undefined) throw wrongUsage('--at needs a time such as 2026-11-22T10:00:00Z')
  return time
}

async function restoreFromBucket(
  until: number | undefined,
  restoreOptions: { isForced: boolean; asideName: string },
  terminal: Terminal,
) {
  const node = openConfiguredNode(terminal)
  mustBeMeant(node.dataDir, terminal)
  let restored: Awaited<ReturnType<typeof restoreDatabase>> | undefined
  const source: RestoreSource = {
    name: 'the bucket',
    async stage(database) {
      restored = await restoreDatabase(node, database, until)
      mustBeWhole(database, 'the bucket')
      return false
    },
  }
  const whenInPlace = () => node.identity.adopt(restored?.head.place)
  const kept = await restoreFrom(source, node.dataDir, { ...restoreOptions, whenInPlace })
  const moment = `the state of the bucket at ${restored ? isoTime(until ?? restored.at) : ''}`
  printReplaced(terminal, node.dataDir, moment, kept)
}

async function listMoments(terminal: Terminal) {
  const node = openConfiguredNode(terminal)
  const range = await findRange(node, await node.findHead())
  if (!range) throw new StartError('there is nothing to restore in the bucket')
  terminal.out(`any moment from ${isoTime(range.from)} to ${isoTime(range.to)}`)
  for (const { modifiedAt, name } of range.snapshots) {
    terminal.out(`snapshot\t${isoTime(modifiedAt)}\t${name}`)
  }
}
