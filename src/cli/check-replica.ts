import type { Config } from '../config.ts'
import { mustBeServable } from '../db/migrations.ts'
import { isInUse } from '../db/open.ts'
import { day, isoTime } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { findRange } from '../replication/follower.ts'
import { type Head, type Node, openNode } from '../replication/node.ts'
import { differenceOf, refusalToStart } from '../replication/replication.ts'
import type { Finding } from './check.ts'

export const snapshotSubject = 'last snapshot'

export async function checkReplica({ replica, dataDir }: Config, log: Log): Promise<Finding[]> {
  const subject = 'replication'
  if (!replica) return [{ subject, detail: 'off' }]
  try {
    const node = openNode(dataDir, replica, log)
    const bucket = await checkBucket(node)
    const head = await node.findHead()
    if (!head) {
      const wasThere = node.identity.readNote() ?? node.identity.get().place
      const problem = 'the log is gone from the bucket: nothing can be restored'
      const warning = 'there is no log yet: the start of the server makes it'
      return [bucket, { subject, ...(wasThere ? { problem } : { warning }) }]
    }
    const copy = !node.hasDatabase() && node.hasCopy() ? [checkCopy(node)] : []
    return [bucket, checkLog(node, head), await checkSnapshot(node, head), ...copy]
  } catch (error) {
    return [{ subject, problem: (error as Error).message }]
  }
}

async function checkBucket({ bucket, settings }: Node): Promise<Finding> {
  const subject = 'replication bucket'
  const detail = `${new URL(settings.bucket.endpoint).host}/${settings.bucket.name}`
  if (await bucket.hasConditionalWrites()) return { subject, detail }
  return { subject, problem: `${detail} does not support conditional writes (If-None-Match)` }
}

function checkLog(own: Node, head: Head): Finding {
  const { settings } = own
  const { node, kind, pair, lease, at } = head.entry
  const refusal = isInUse(own.dataDir) ? undefined : refusalToStart(own, head)
  if (refusal !== undefined) {
    return { subject: 'replication', problem: `the server will not start: ${refusal}` }
  }
  const did = kind === 'release' ? 'released the lead' : 'wrote the newest entry'
  const detail = `${node} ${did} at ${isoTime(at)}`
  const isSilent = pair && Date.now() - at > 2 * lease
  const warning = isSilent
    ? `${detail}, and no standby has taken over`
    : differenceOf(settings, head.entry)
  return { subject: 'replication', detail, warning }
}

async function checkSnapshot(node: Node, head: Head): Promise<Finding> {
  const subject = snapshotSubject
  const range = await findRange(node, head)
  if (range?.missing !== undefined) {
    const problem = `${range.missing} is missing: only what was before it can be restored`
    return { subject, problem }
  }
  const at = range?.snapshots.at(-1)?.modifiedAt
  if (at === undefined) return { subject, problem: 'none: nothing can be restored' }
  const detail = isoTime(at)
  return { subject, detail, warning: Date.now() - at > 2 * day ? detail : undefined }
}

/** A standby that does not know the version of the database cannot take over. */
function checkCopy({ copyPath }: Node): Finding {
  const subject = 'copy of the standby'
  try {
    mustBeServable(copyPath)
    return { subject, detail: 'can take over' }
  } catch (error) {
    return { subject, problem: (error as Error).message }
  }
}
