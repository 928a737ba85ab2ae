import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { type Config, readConfig } from '../config.ts'
import { backUp, datedName, mustBeWhole } from '../db/backup.ts'
import { databaseFile, mustExist } from '../db/open.ts'
import { type RestoreSource, restore as restoreFile, restoreFrom } from '../db/restore.ts'
import { createDiskStorage } from '../files/disk.ts'
import { filesDirectory } from '../files/storage.ts'
import { parseTime } from '../lib/clock.ts'
import { StartError } from '../lib/errors.ts'
import { freeBytesAt } from '../lib/free-space.ts'
import { fingerprintOf } from '../replication/local-state.ts'
import { type LogPosition, positionName } from '../replication/log.ts'
import { restoreDatabase, restoreFiles } from '../replication/restore.ts'
import { withService } from './call.ts'
import { openConfiguredNode } from './replica.ts'
import { readOperand, type Terminal, wrongUsage } from './terminal.ts'

const keptByDefault = 7

/** `hostline backup`: copies the database into one file, with or without a running server. */
export async function backup(args: string[], terminal: Terminal): Promise<void> {
  const usage = 'backup needs a file, or a directory for dated ones'
  const { operand, values } = readOperand(args, usage, { keep: { type: 'string' } })
  const kept = readKept(values.keep)
  const config = readConfig(terminal.environment, terminal.isInteractive)
  const { dataDir, files } = config
  mustExist(dataDir)
  const isDirectory = existsSync(operand) && statSync(operand).isDirectory()
  if (values.keep !== undefined && !isDirectory) {
    throw wrongUsage('--keep is for a directory that exists')
  }
  const target = isDirectory ? join(operand, datedName('hostline')) : operand
  refuseDatabase(target, dataDir)
  mustHaveRoom(target, config)
  terminal.yieldToOthers()
  const local = files.bucket ? undefined : join(dataDir, filesDirectory)
  const missing = await backUp(dataDir, target, local)
  if (isDirectory) prune(operand, kept)
  await recordBackup(target, terminal)
  terminal.out(`${target}: ${Math.ceil(statSync(target).size / 1_024)} KiB, checked`)
  if (missing > 0) terminal.err(`hostline: ${missing} uploaded files are missing in ${dataDir}`)
}

function mustHaveRoom(target: string, { minFreeBytes }: Config) {
  const folder = dirname(target)
  if (minFreeBytes === 0 || !existsSync(folder)) return
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
  const isOwn =
    existsSync(target) && realpathSync(target) === realpathSync(join(dataDir, databaseFile))
  if (isOwn || existsSync(`${target}-wal`)) {
    throw new StartError(`${target} is a database in use: name another file`)
  }
  if (existsSync(target) && !isDatabase(target)) {
    throw new StartError(`${target} exists and is not a backup: name another file`)
  }
}

function isDatabase(path: string) {
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

const dated = /^hostline-[\dT-]+Z(-\w{8})?\.db(\.(?<pid>\d+)\.partial(-\w+)?)?$/

/** Removes all but the newest dated backups, and partial files of killed processes. */
function prune(directory: string, kept: number) {
  const names = readdirSync(directory).filter((name) => dated.test(name))
  const pidOf = (name: string) => dated.exec(name)?.groups?.['pid']
  const whole = names.filter((name) => pidOf(name) === undefined).sort()
  const left = names.filter((name) => {
    const pid = pidOf(name)
    return pid !== undefined && !isRunning(Number(pid))
  })
  for (const name of [...whole.slice(0, -kept), ...left]) rmSync(join(directory, name))
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** `hostline restore`: replaces the database by a backup or by the state in the bucket. */
export async function restore(args: string[], terminal: Terminal): Promise<void> {
  const usage = 'restore needs the file of a backup, or s3'
  const options = { force: { type: 'boolean' }, at: { type: 'string' } } as const
  const { operand, values } = readOperand(args, usage, options)
  const restoreOptions = {
    isForced: values.force === true,
    asideName: datedName('hostline-replaced'),
  }
  if (operand === 's3') return restoreFromBucket(readMoment(values.at), restoreOptions, terminal)
  if (values.at !== undefined) throw wrongUsage('--at is for restore s3')
  const { dataDir } = readConfig(terminal.environment, terminal.isInteractive)
  printReplaced(terminal, dataDir, operand, await restoreFile(operand, dataDir, restoreOptions))
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
  const { dataDir, files } = readConfig(terminal.environment, terminal.isInteractive)
  const node = openConfiguredNode(terminal)
  let restored: { place: LogPosition; restored: 'newest' | 'past' } | undefined
  const source: RestoreSource = {
    name: 'the bucket',
    async stage(database, directory) {
      const { place, isNewest } = await restoreDatabase(node, database, until)
      mustBeWhole(database, 'the bucket')
      restored = { place, restored: isNewest ? 'newest' : 'past' }
      if (files.bucket) return false
      mkdirSync(directory, { mode: 0o700 })
      const { missing, foreign } = await restoreFiles(node, database, createDiskStorage(directory))
      if (missing > 0) terminal.err(`hostline: the bucket lacks ${missing} uploaded files`)
      if (foreign > 0)
        terminal.err(`hostline: ${foreign} files have invalid names and were skipped`)
      return true
    },
    whenInPlace: (path) => node.state.set({ ...restored, stamp: fingerprintOf(path) }),
  }
  const kept = await restoreFrom(source, dataDir, restoreOptions)
  printReplaced(
    terminal,
    dataDir,
    `the state of the bucket at ${restored ? positionName(restored.place) : ''}`,
    kept,
  )
}
