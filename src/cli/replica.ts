import { Database } from 'bun:sqlite'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Static } from '@sinclair/typebox'
import { type Environment, readConfig } from '../config.ts'
import { isRunning, mustBeWhole } from '../db/backup.ts'
import { isInUse, openToInspect, prepareDirectory, takeDirectory } from '../db/open.ts'
import { isoTime, minute, timeOrNull } from '../lib/clock.ts'
import { StartError } from '../lib/errors.ts'
import { freeBytesAt } from '../lib/free-space.ts'
import { firstIdAt } from '../lib/ids.ts'
import type { SystemState } from '../modules/operator/model.ts'
import { findRange, restoreDatabase } from '../replication/follower.ts'
import { openIdentity } from '../replication/identity.ts'
import { type Agreed, unlessOfBucket } from '../replication/log.ts'
import { agreedOf, agreedText, type Head, type Node, openNode } from '../replication/node.ts'
import { mustSupportConditions } from '../replication/replication.ts'
import { findUsable, listSnapshots } from '../replication/snapshots.ts'
import { type Call, terminalLog, withService } from './call.ts'
import {
  explained,
  program,
  readJsonOption,
  readOptions,
  refuseArguments,
  type Terminal,
  withActions,
  wrongUsage,
} from './terminal.ts'

const pollMilliseconds = 250
const stopMilliseconds = 30_000
const verifyDirectory = /^replica-verify-(\d+)-/

export const replica = withActions('replica', { status, init, snapshot, verify })

/** @throws StartError when replication is not configured */
export function openConfiguredNode(terminal: Terminal): Node {
  const config = readConfig(terminal.environment, terminal.isInteractive)
  if (!config.replica) throw new StartError('set REPLICA_S3_URL: there is no bucket')
  return openNode(config.dataDir, config.replica, terminalLog(terminal))
}

/** @throws StartError where data would land below the current directory */
export function mustBeMeant(dataDir: string, { environment }: Terminal): void {
  if (environment['DATA_DIR'] || existsSync(dataDir)) return
  throw new StartError(`there is no ${dataDir}: set DATA_DIR, or give --env-file`)
}

async function status(args: string[], terminal: Terminal) {
  const isJson = readJsonOption(args)
  const node = openConfiguredNode(terminal)
  const head = await node.findHead()
  const range = await findRange(node, head)
  const entry = head?.entry
  const state = {
    node: node.identity.node,
    running: isInUse(node.dataDir),
    holds: node.hasDatabase() ? 'database' : node.hasCopy() ? 'copy' : 'nothing',
    leads: head !== undefined && isLeader(node, head),
    leader: entry && entry.kind !== 'release' ? entry.node : null,
    pair: entry?.pair ?? null,
    lease_seconds: entry ? entry.lease / 1_000 : null,
    newest_entry_at: timeOrNull(entry?.at),
    ...restorable(range),
    last_drill_at: timeOrNull(node.identity.get().drilledAt),
  }
  if (isJson) return terminal.out(JSON.stringify(state, null, 2))
  for (const [name, value] of Object.entries(state)) terminal.out(`${name}\t${value ?? '–'}`)
}

function restorable(range: Awaited<ReturnType<typeof findRange>>) {
  const { from, to, missing = null, snapshots = [] } = range ?? {}
  return {
    restorable_from: timeOrNull(from),
    restorable_to: timeOrNull(to),
    missing_entry: missing,
    snapshots: snapshots.length,
    last_snapshot_at: timeOrNull(snapshots.at(-1)?.modifiedAt),
  }
}

const isLeader = ({ identity }: Node, { place, entry }: Head) =>
  entry.kind !== 'release' && identity.hasWritten(place, entry)

async function init(args: string[], terminal: Terminal) {
  const values = readOptions(args, {
    pair: { type: 'string' },
    lease: { type: 'string' },
    force: { type: 'boolean' },
  })
  const node = openConfiguredNode(terminal)
  const head = await node.findHead()
  const agreed = readAgreed(values, head?.entry ?? agreedOf(node.settings))
  if (head && values.force !== true && isInUse(node.dataDir)) {
    await withService(terminal, (call) => ask(call, node, 'agreed', agreed))
    return terminal.out(agreedText(agreed))
  }
  if (!node.hasDatabase()) {
    throw new StartError(
      `there is no database in ${node.dataDir}: the first start of the server makes it, and the log`,
    )
  }
  const unlock = takeDirectory(node.dataDir)
  try {
    await claim(node, head, { agreed, isForced: values.force === true })
  } finally {
    unlock()
  }
  terminal.out(
    `${agreedText(agreed)}; the server leads with the database in ${node.dataDir} when it starts`,
  )
}

type Claim = { agreed: Agreed; isForced: boolean }

async function claim(node: Node, head: Head | undefined, { agreed, isForced }: Claim) {
  if (head && !isForced && !isLeader(node, head)) {
    throw new StartError(
      `there is a log, led by ${head.entry.node}: --force replaces it by the database here`,
    )
  }
  if (isForced) node.identity.adopt(undefined)
  if (await node.claim(head, { agreed })) return
  throw new StartError('another node has just written to the log: stop it first')
}

type Given = { pair?: string | undefined; lease?: string | undefined }

function readAgreed({ pair, lease }: Given, known: Agreed): Agreed {
  if (pair !== undefined && pair !== 'true' && pair !== 'false') {
    throw wrongUsage('--pair takes true or false')
  }
  if (lease !== undefined && !/^([1-9]|[1-9]\d|[12]\d\d|300)$/.test(lease)) {
    throw wrongUsage('--lease takes a number of seconds from 1 to 300')
  }
  return {
    pair: pair === undefined ? known.pair : pair === 'true',
    lease: lease === undefined ? known.lease : Number(lease) * 1_000,
  }
}

type SnapshotAnswer = { name: string; at: number } | { failure: string }

async function snapshot(args: string[], terminal: Terminal) {
  refuseArguments(args)
  const node = openConfiguredNode(terminal)
  mustRun(node)
  await withService(terminal, async (call) => {
    const taken = await ask<SnapshotAnswer>(call, node, 'snapshot')
    if ('failure' in taken) throw new StartError(taken.failure)
    terminal.out(`${taken.name}: the database of ${isoTime(taken.at)}`)
  })
}

const noServerOn = ({ dataDir }: Node) => `no server is running on ${dataDir}`

function mustRun(node: Node) {
  if (!isInUse(node.dataDir)) throw new StartError(noServerOn(node))
}

/** The server would wait for a bucket that refuses: the command asks the bucket first. A server may stop meanwhile: the
 *  service that a command opens in its place does not replicate. */
async function ask<Answer = void>(call: Call, node: Node, path: string, body?: object) {
  await mustSupportConditions(node)
  return await call<Answer>('POST', `/v1/operator/replica/${path}`, body).catch(
    explained({ not_found: noServerOn(node) }),
  )
}

async function verify(args: string[], terminal: Terminal) {
  const isJson = readJsonOption(args)
  const node = openConfiguredNode(terminal)
  mustBeMeant(node.dataDir, terminal)
  prepareDirectory(node.dataDir)
  for (const name of readdirSync(node.dataDir)) {
    const [, pid] = verifyDirectory.exec(name) ?? []
    // A killed command left it.
    if (pid !== undefined && !isRunning(Number(pid))) {
      rmSync(join(node.dataDir, name), { recursive: true, force: true })
    }
  }
  terminal.yieldToOthers()
  await mustHaveRoom(node, terminal)
  const directory = mkdtempSync(join(node.dataDir, `replica-verify-${process.pid}-`))
  try {
    const path = join(directory, 'hostline.db')
    const shippedUntil = isInUse(node.dataDir) ? await askShipped(node, terminal) : undefined
    const { at, entries } = await restoreDatabase(node, path)
    mustBeWhole(path, 'the bucket')
    if (shippedUntil !== undefined) mustHaveRowsOf(node, path, shippedUntil - minute)
    const proof = { restorable_to: isoTime(at), entries, rows: countRows(path) }
    if (isJson) return terminal.out(JSON.stringify(proof, null, 2))
    const rows = Object.entries(proof.rows).map(([table, count]) => `${count} ${table}`)
    terminal.out(
      `whole until ${proof.restorable_to}, with ${entries} entries after the snapshot: ${rows.join(', ')}`,
    )
  } catch (cause) {
    if (cause instanceof StartError) throw cause
    throw new StartError(`the bucket cannot be restored: ${(cause as Error).message}`, { cause })
  } finally {
    rmSync(directory, { recursive: true })
  }
}

const countedTables = ['users', 'messages', 'tickets', 'files']

/** The numbers of rows in a restored database. */
function countRows(path: string): Record<string, number> {
  using database = new Database(path)
  const count = (table: string) =>
    Number(database.query(`SELECT count(*) FROM ${table}`).values()[0]?.[0])
  return Object.fromEntries(countedTables.map((table) => [table, count(table)]))
}

/** @returns up to which time the bucket has every commit, in ms since the epoch; undefined on a standby */
async function askShipped(node: Node, terminal: Terminal): Promise<number | undefined> {
  const head = await node.findHead()
  if (!head || !isLeader(node, head)) return undefined
  let until: number | undefined
  await withService(terminal, async (call) => {
    const { replication } = await call<Static<typeof SystemState>>('GET', '/v1/admin/system')
    // Another command, which ships nothing, may hold the directory.
    if (replication) until = Date.now() - replication.lag_seconds * 1_000
  })
  return until
}

const comparedTables = ['users', 'messages', 'tickets']

/** Compares the rows before a time with those of the leader here, which may have removed some since.
 *  @throws StartError when the bucket lacks some */
function mustHaveRowsOf({ dataDir }: Node, path: string, before: number) {
  using own = openToInspect(dataDir)
  using restored = new Database(path)
  for (const table of comparedTables) {
    const query = `SELECT count(*) FROM ${table} WHERE id < ?`
    const [here = 0, there = 0] = [own.sqlite, restored].map((database) =>
      Number(database.query(query).values(firstIdAt(before))[0]?.[0]),
    )
    if (here <= there) continue
    throw new StartError(
      `the bucket lacks ${here - there} of the ${table} in ${dataDir}: hostline replica snapshot stores them`,
    )
  }
}

/** Runs `hostline replica verify` in a process of its own, which does not hold up this one.
 *  @throws Error with the reason */
export async function verifyBeside(dataDir: string, environment: Environment): Promise<void> {
  const child = Bun.spawn([...program(), 'replica', 'verify'], {
    env: { ...environment, DATA_DIR: dataDir },
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const reason = await child.stderr.text()
  if ((await child.exited) !== 0) throw new Error(reason.trim())
}

async function mustHaveRoom(node: Node, terminal: Terminal) {
  const { minFreeBytes } = readConfig(terminal.environment, terminal.isInteractive)
  const newest = await findUsable(node, await listSnapshots(node.bucket))
  const { pages, pageSize } = newest?.manifest ?? { pages: 0, pageSize: 0 }
  const missing = pages * pageSize + minFreeBytes - freeBytesAt(node.dataDir)
  if (missing <= 0) return
  throw new StartError(
    `a restore into ${node.dataDir} needs ${Math.ceil(missing / 1_000_000)} MB more on the disk`,
  )
}

/** `hostline hand-over`: ends the leadership of this machine and waits for the next leader. */
export async function handOver(args: string[], terminal: Terminal): Promise<void> {
  refuseArguments(args)
  const node = openConfiguredNode(terminal)
  const head = await node.findHead()
  if (!head || !isLeader(node, head)) throw new StartError('this node does not lead')
  if (!head.entry.pair) {
    throw new StartError('no standby may take over: hostline replica init --pair true allows it')
  }
  mustRun(node)
  await withService(terminal, (call) => ask(call, node, 'hand-over'))
  for (const end = Date.now() + stopMilliseconds + head.entry.lease; Date.now() < end; ) {
    // The bucket may fail for moments, and the lead is already released.
    const { entry } = (await node.findHead().catch(unlessOfBucket)) ?? head
    // A standby made of a clone has the same name. This server may have started again meanwhile.
    if (!openIdentity(node.dataDir).wrote(entry)) {
      return terminal.out(`${entry.node} leads since ${isoTime(entry.at)}`)
    }
    await Bun.sleep(pollMilliseconds)
  }
  const outcome = isInUse(node.dataDir)
    ? 'was started again'
    : 'has stopped: start it again, then it leads again'
  throw new StartError(`no standby has taken over, and this server ${outcome}`)
}
