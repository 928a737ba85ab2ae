import type { Deliveries, System } from '../../../../client/src/contract.ts'
import { count } from '../../ui/format.ts'
import { Time } from '../../ui/time.tsx'

/** Delivery state of mails, pushes and webhooks. */
export function DeliveryStates({ system }: { system: System }) {
  return (
    <section class="stack tight" aria-labelledby="deliveries">
      <h2 id="deliveries">Deliveries</h2>
      <ul class="entries">
        <li>
          <DeliveryState name="Mail" state={system.mail} unset="Written to the log" />
        </li>
        <li>
          <DeliveryState name="Push to apps" state={system.push} unset="Not set up" />
        </li>
        <li>
          <WebhookState webhooks={system.webhooks} />
        </li>
      </ul>
    </section>
  )
}

type StateProps = { name: string; state: Deliveries; unset: string }

function DeliveryState({ name, state, unset }: StateProps) {
  const { last_sent_at: sentAt, last_failed_at: failedAt, last_error: error } = state
  return (
    <>
      <div class="main">
        <h3 class="row wrap">
          {name} <DeliveryBadge state={state} unset={unset} />
        </h3>
        {error && <p class="small prose">{error}</p>}
      </div>
      <p class="soft small">
        {sentAt ? (
          <>
            Last sent <Time at={sentAt} />
          </>
        ) : (
          'Nothing sent since the start'
        )}
        {failedAt && (
          <>
            , last failure <Time at={failedAt} />
          </>
        )}
      </p>
    </>
  )
}

function DeliveryBadge({ state, unset }: Omit<StateProps, 'name'>) {
  const { configured, last_sent_at: sentAt, last_failed_at: failedAt } = state
  if (failedAt && failedAt > (sentAt ?? '')) return <span class="badge danger">Failing</span>
  if (!configured) return <span class="badge">{unset}</span>
  return sentAt ? <span class="badge good">Works</span> : <span class="badge">Set up</span>
}

function WebhookState({ webhooks }: Pick<System, 'webhooks'>) {
  const { total, disabled, failing } = webhooks
  const counts = [
    total === 0 && 'None set up',
    disabled > 0 && `${count(disabled)} switched off`,
    failing > 0 && `${count(failing)} failing`,
  ].filter((text) => text !== false)
  const tone = failing + disabled > 0 ? 'danger' : total > 0 ? 'good' : ''
  return (
    <>
      <div class="main">
        <h3 class="row wrap">
          Webhooks <span class={`badge ${tone}`}>{counts.join(', ') || 'Work'}</span>
        </h3>
      </div>
      <p class="small">
        <a href="/console/system/webhooks">
          {total === 0 ? 'Add one' : `Show all ${count(total)}`}
        </a>
      </p>
    </>
  )
}
