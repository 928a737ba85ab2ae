import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig } from '../config.ts'
import { isoTime, timeOrNull } from '../lib/clock.ts'
import { StartError } from '../lib/errors.ts'
import { positionName } from '../replication/log.ts'
import { type Head, type Node, openNode } from '../replication/node.ts'
import { handOverFile } from '../replication/replication.ts'
import { terminalLog } from './call.ts'
import { agoText, machineText, type ReplicaState, readReplicaState } from './replica-state.ts'
import { readListOptions, refuseArguments, type Terminal, wrongUsage } from './terminal.ts'

const requestTimeoutMilliseconds = 5_000
const pollMilliseconds = 250
const stopMilliseconds = 30_000

export async function replica([action, ...args]: string[], terminal: Terminal): Promise<void> {
  if (action === 'status') return status(args, terminal)
  refuseArguments(args)
  if (action === 'init') return init(openConfiguredNode(terminal), terminal)
  throw wrongUsage('replica status or init')
}

/** @throws StartError when replication is not configured */
export function openConfiguredNode(terminal: Terminal): Node {
  const config = readConfig(terminal.environment, terminal.isInteractive)
  if (!config.replica) throw new StartError('set REPLICA_S3_URL: there is no bucket')
  return openNode(config.dataDir, config.replica, terminalLog(terminal))
}

async function status(args: string[], terminal: Terminal) {
  const { isJson } = readListOptions(args)
  const node = openConfiguredNode(terminal)
  const state = await readReplicaState(node)
  if (isJson) return terminal.out(JSON.stringify(statusView(node, state), null, 2))
  for (const [name, value] of statusLines(node, state)) terminal.out(`${name}\t${value}`)
}

function statusView({ state: { node } }: Node, state: ReplicaState) {
  const { head, machine } = state
  const { isRunning, holds, place, behind } = machine
  return {
    node: holds === 'nothing' ? null : node,
    running: isRunning,
    leads: machine.isLeader,
    holds,
    place: place ? positionName(place) : null,
    entries_behind: behind ?? null,
    leader: state.leader ?? null,
    newest_entry: head ? positionName(head.place) : null,
    newest_entry_at: timeOrNull(head?.entry.at),
    standby_allowed: head?.entry.pair ?? null,
    restorable_from: timeOrNull(state.restorableFrom),
    restorable_to: timeOrNull(state.restorableFrom && head?.entry.at),
    snapshots: state.snapshots,
    last_snapshot_at: timeOrNull(state.lastSnapshotAt),
  }
}

function statusLines({ state: { node } }: Node, state: ReplicaState) {
  const { head, leader = 'nobody', restorableFrom, lastSnapshotAt } = state
  const withAge = (time: number) => `${isoTime(time)}, ${agoText(state.now - time)}`
  // A machine without data has no permanent name yet.
  const name = state.machine.holds === 'nothing' ? '' : `${node}: `
  const machine = ['this machine', name + machineText(state)]
  if (!head) return [machine, ['log', 'none: the bucket is empty']]
  const hasSnapshot = restorableFrom !== undefined && lastSnapshotAt !== undefined
  return [
    machine,
    ['leader', leader],
    ['newest entry', `${positionName(head.place)} of ${withAge(head.entry.at)}`],
    ['standby', head.entry.pair ? 'may take over' : 'may not take over (REPLICA_PAIR)'],
    ...(hasSnapshot
      ? [
          ['restorable', `from ${isoTime(restorableFrom)} to ${isoTime(head.entry.at)}`],
          ['last snapshot', `${withAge(lastSnapshotAt)}, of ${state.snapshots}`],
        ]
      : [['restorable', 'not yet: there is no snapshot']]),
  ]
}

async function init(node: Node, { out }: Terminal) {
  if (!node.hasDatabase()) {
    throw new StartError(`there is no database in ${node.dataDir}: start the server once`)
  }
  const head = await node.findHead()
  if (head) throw new StartError(`there is already a log, led by ${head.entry.node}`)
  if (!(await node.claim(undefined))) throw new StartError('another node has just begun the log')
  out(`the log begins with the database in ${node.dataDir} when its server starts`)
}

/** `hostline hand-over`: ends the leadership of this machine and waits for the next leader. */
export async function handOver(args: string[], terminal: Terminal): Promise<void> {
  refuseArguments(args)
  const node = openConfiguredNode(terminal)
  const head = await node.findHead()
  if (head?.entry.node !== node.state.node) throw new StartError('this node does not lead')
  if (!head.entry.pair) throw new StartError('no standby may take over: REPLICA_PAIR is false')
  const request = join(node.dataDir, handOverFile)
  rmSync(request, { force: true })
  writeFileSync(request, '', { flag: 'wx' })
  if (!(await until(requestTimeoutMilliseconds, async () => !existsSync(request)))) {
    rmSync(request, { force: true })
    throw new StartError(`no server on ${node.dataDir} has received the request`)
  }
  const isReleased = ({ entry }: Head) => entry.kind === 'release'
  const next = await until(stopMilliseconds + node.settings.leaseMilliseconds, async () => {
    const found = await node.findHead()
    return found && (isReleased(found) || found.entry.node === node.state.node) ? undefined : found
  })
  if (!next) throw new StartError('no standby has taken over: see hostline replica status')
  terminal.out(`${next.entry.node} leads since ${positionName(next.place)}`)
}

async function until<T>(milliseconds: number, poll: () => Promise<T>): Promise<T | undefined> {
  for (const end = performance.now() + milliseconds; performance.now() < end; ) {
    const found = await poll()
    if (found) return found
    await Bun.sleep(pollMilliseconds)
  }
  return undefined
}
