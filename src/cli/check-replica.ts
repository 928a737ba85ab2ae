import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import type { Bucket } from '../files/s3.ts'
import { isoTime } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { copyFile } from '../replication/local-state.ts'
import { type Node, openNode, type Replicated } from '../replication/node.ts'
import type { Finding } from './check.ts'
import {
  ageText,
  agoText,
  isLeftBehind,
  machineText,
  type ReplicaState,
  readReplicaState,
} from './replica-state.ts'

const snapshotDueMilliseconds = 2 * 86_400_000

type Checked = {
  findings: Finding[]
  hasSnapshot: boolean
}

export async function checkReplica(config: Config, log: Log): Promise<Checked> {
  const { replica, dataDir, files } = config
  const subject = 'replication'
  if (!replica) return { findings: [{ subject, detail: 'off' }], hasSnapshot: false }
  try {
    const node = openNode(dataDir, replica, log)
    const bucket = await checkBucket(node, files.bucket)
    const state = await readReplicaState(node)
    return { findings: [bucket, ...checkState(state, replica)], hasSnapshot: hasSnapshot(state) }
  } catch (error) {
    return { findings: [{ subject, problem: (error as Error).message }], hasSnapshot: false }
  }
}

function hasSnapshot({ now, lastSnapshotAt = Number.NEGATIVE_INFINITY }: ReplicaState): boolean {
  return now - lastSnapshotAt <= snapshotDueMilliseconds
}

async function checkBucket({ store, settings }: Node, files: Bucket | undefined): Promise<Finding> {
  const { bucket, pair } = settings
  const subject = 'replication bucket'
  const detail = `${new URL(bucket.endpoint).host}/${bucket.name}`
  if (!(await store.probeConditionalWrites())) {
    const reason = `${detail} does not support conditional writes (If-None-Match)`
    if (pair) return { subject, problem: `${reason}: no standby can use it` }
    return {
      subject,
      warning: `${reason}: it is a backup of one machine, and no standby can use it`,
    }
  }
  const warning =
    files && isWithin(files, bucket)
      ? `${detail} contains the files of FILES_S3_URL under the same prefix: set different prefixes`
      : undefined
  return { subject, detail, warning }
}

const isWithin = (inner: Bucket, outer: Bucket) =>
  inner.endpoint === outer.endpoint &&
  inner.name === outer.name &&
  `${inner.prefix}/`.startsWith(`${outer.prefix}/`)

function checkState(state: ReplicaState, settings: Replicated): Finding[] {
  const { head, now } = state
  const subject = 'replication'
  if (!head) return [{ subject, warning: noLog(settings) }]
  const detail = `${state.leader ?? 'no node'} leads, newest entry ${agoText(now - head.entry.at)}`
  const machine = machineText(state)
  return [
    { subject, detail, warning: leaderWarning(state, settings) },
    {
      subject: 'replication of this machine',
      detail: machine,
      warning: isLeftBehind(state) ? machine : undefined,
    },
    checkSnapshot(state),
  ]
}

const noLog = ({ pair }: Replicated) =>
  `there is no log yet: ${pair ? 'hostline replica init, or the start of the server with the database,' : 'the next start of the server'} creates it`

function leaderWarning(
  { head, leader, now }: ReplicaState,
  { pair, leaseMilliseconds }: Replicated,
) {
  if (!head) return undefined
  if (head.entry.pair !== pair) {
    return `${head.entry.node} has REPLICA_PAIR=${head.entry.pair}: it must be the same on both machines`
  }
  if (!pair) return undefined
  const silence = now - head.entry.at
  if (leader === undefined) {
    return `no node leads: ${head.entry.node} released the lead ${agoText(silence)}`
  }
  if (silence <= leaseMilliseconds) return undefined
  return `the last entry of ${leader} is ${ageText(silence)} old, and no standby has taken over`
}

function checkSnapshot(state: ReplicaState): Finding {
  const subject = 'last snapshot'
  const { now, lastSnapshotAt: at } = state
  if (at === undefined) return { subject, warning: 'none: nothing can be restored yet' }
  const detail = `${isoTime(at)}, ${agoText(now - at)}`
  return { subject, detail, warning: hasSnapshot(state) ? undefined : detail }
}

/** Whether this machine holds a standby's copy instead of a database. */
export const isStandbyMachine = ({ replica, dataDir }: Config) =>
  replica?.pair === true && existsSync(join(dataDir, copyFile))
