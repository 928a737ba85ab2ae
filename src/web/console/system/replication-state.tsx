import type { System } from '../../../../client/src/contract.ts'
import { duration } from '../../ui/format.ts'
import { Time } from '../../ui/time.tsx'

type Replication = NonNullable<System['replication']>

/** An upload takes about a second, so a small lag is normal. */
const inStepSeconds = 5
const lateSeconds = 60

/** How far the replica in the bucket is behind. */
export function ReplicationState({ replication }: { replication: Replication }) {
  const { last_stored_at: storedAt, last_snapshot_at: snapshotAt, ack } = replication
  const { last_failed_at: failedAt, last_error: error, standby_allowed: mayTakeOver } = replication
  return (
    <section class="stack tight" aria-labelledby="replication">
      <h2 id="replication">Replication</h2>
      <ul class="entries">
        <li>
          <div class="main">
            <h3 class="row wrap">
              Bucket <StepBadge replication={replication} />
            </h3>
            <p class="soft small">
              {ack === 'bucket'
                ? 'Writes are acknowledged once the bucket has them'
                : 'Writes are acknowledged by the disk and reach the bucket within about a second'}
              {mayTakeOver ? '; a standby may take over.' : '.'}
            </p>
            {error && <p class="small prose">{error}</p>}
          </div>
          <p class="soft small">
            {storedAt ? (
              <>
                Last stored <Time at={storedAt} />
              </>
            ) : (
              'Nothing stored since the start'
            )}
            {snapshotAt && (
              <>
                , last snapshot <Time at={snapshotAt} />
              </>
            )}
            {failedAt && (
              <>
                , last failure <Time at={failedAt} />
              </>
            )}
          </p>
        </li>
      </ul>
    </section>
  )
}

function StepBadge({ replication }: { replication: Replication }) {
  const { lag_seconds: lag } = replication
  if (lag <= inStepSeconds) return <span class="badge good">In step</span>
  const tone = lag > lateSeconds ? 'danger' : ''
  return <span class={`badge ${tone}`}>Behind by {duration(lag)}</span>
}
