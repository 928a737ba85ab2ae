import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isInUse } from '../db/open.ts'
import { copyFile } from '../replication/local-state.ts'
import type { LogPosition } from '../replication/log.ts'
import type { Head, Node } from '../replication/node.ts'
import { listSnapshots } from '../replication/snapshots.ts'

export type ReplicaState = Awaited<ReturnType<typeof readReplicaState>>

/** The state of the bucket and of this machine, read without the server.
 *  @throws StoreError · StartError (the last object of the log is not an entry) */
export async function readReplicaState(node: Node) {
  const head = await node.findHead()
  const snapshots = await listSnapshots(node.store)
  return {
    now: node.store.now(),
    head,
    /** The node that leads or led last; undefined after a release. */
    leader: head && head.entry.kind !== 'release' ? head.entry.node : undefined,
    snapshots: snapshots.length,
    // Object times have a resolution of one second.
    restorableFrom: snapshots[0] && snapshots[0].modifiedAt + 1_000,
    lastSnapshotAt: snapshots.at(-1)?.modifiedAt,
    machine: readMachine(node, head),
  }
}

type Machine = {
  isRunning: boolean
  isLeader: boolean
  holds: 'database' | 'copy' | 'nothing'
  /** The entry up to which the data is complete; undefined when unknown. */
  place: LogPosition | undefined
  isPast: boolean
  /** The number of missing log entries. */
  behind: number | undefined
}

function readMachine(node: Node, head: Head | undefined): Machine {
  const { state, dataDir } = node
  const hasCopy = existsSync(join(dataDir, copyFile))
  const holds = node.hasDatabase() ? 'database' : hasCopy ? 'copy' : 'nothing'
  const { place: known } = state.get()
  const isKnown =
    known !== undefined && (holds === 'copy' || node.fingerprintAt(known) !== undefined)
  const place = isKnown && holds !== 'nothing' ? known : undefined
  return {
    isRunning: isInUse(dataDir),
    isLeader: head?.entry.node === state.node && head.entry.kind !== 'release',
    holds,
    place,
    isPast: place !== undefined && state.get().restored === 'past',
    behind: place && head && head.place.position - place.position,
  }
}

/** @returns the role of this machine, in words */
export function machineText(state: ReplicaState): string {
  const { isRunning, isLeader, holds } = state.machine
  if (isRunning && isLeader) return 'leads'
  if (isRunning && holds === 'copy') return 'follows as a standby'
  if (isRunning) return 'runs, but does not lead'
  return holds === 'nothing' ? 'has neither a database nor a copy' : stoppedText(state)
}

function stoppedText({ machine, head, leader }: ReplicaState): string {
  const { isLeader, holds, place, isPast, behind = 0 } = machine
  const data = holds === 'copy' ? 'the copy of a standby' : 'its database'
  if (!head) return `${data} is not in the bucket yet`
  if (isPast)
    return 'stopped; its database was restored to a moment in the past, and its next start leads from there'
  if (place && behind === 0) return `stopped; ${data} is up to date with the log`
  if (place) return `stopped; ${data} lacks ${behind} entries`
  if (isLeader) return 'stopped; its database may be ahead of the log, and the next start ships it'
  return `its database may contain commits that were never shipped; ${leader ?? head.entry.node} has led since`
}

/** Whether the database here cannot continue, because another node has led since its last use. */
export function isLeftBehind({ machine, head }: ReplicaState): boolean {
  const { isRunning, isLeader, holds, place } = machine
  return head !== undefined && holds === 'database' && !isRunning && !isLeader && !place
}

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const

/** For example `3 s ago`. */
export const agoText = (milliseconds: number) => `${ageText(milliseconds)} ago`

export function ageText(milliseconds: number): string {
  const [unit, size] = units.find(([, one]) => milliseconds >= 2 * one) ?? ['s', 1_000]
  return `${Math.max(0, Math.floor(milliseconds / size))} ${unit}`
}
