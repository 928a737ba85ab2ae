import { Send } from 'lucide-preact'
import type { WebhookDelivery } from '../../../../client/src/contract.ts'
import { useAction } from '../../ui/action.ts'
import { count } from '../../ui/format.ts'
import type { List } from '../../ui/resource.ts'
import { Empty } from '../../ui/states.tsx'
import { Time } from '../../ui/time.tsx'
import { RowList } from '../row-list.tsx'
import { request } from '../session.ts'

type DeliveriesProps = { webhookId: string; list: List<WebhookDelivery> }

export function WebhookDeliveries({ webhookId, list }: DeliveriesProps) {
  const retry = useAction(async (id: string) => {
    const params = { id: webhookId, delivery_id: id }
    const route = 'POST /v1/admin/webhooks/{id}/deliveries/{delivery_id}/retry'
    const queued = await request(route, { params })
    list.update((items) => items.map((item) => (item.id === id ? queued : item)))
  })
  return (
    <section class="stack tight" aria-labelledby="deliveries">
      <div class="row between">
        <h2 id="deliveries">Deliveries</h2>
        <button type="button" class="button" onClick={list.reload}>
          Refresh
        </button>
      </div>
      <RowList
        label="Deliveries"
        list={list}
        empty={
          <Empty icon={Send} title="Nothing was delivered yet">
            <p>Deliveries and their responses appear here, except for tests.</p>
          </Empty>
        }
        render={(delivery) => <DeliveryRow delivery={delivery} retry={retry.run} />}
      />
    </section>
  )
}

const badges = {
  delivered: { tone: 'good', text: 'Delivered' },
  waiting: { tone: 'warning', text: 'Waiting' },
  failed: { tone: 'danger', text: 'Failed' },
} as const

type RowProps = { delivery: WebhookDelivery; retry: (id: string) => Promise<unknown> }

function DeliveryRow({ delivery, retry }: RowProps) {
  const { id, type, status, attempts, response_status: code, response } = delivery
  const { tone, text } = badges[status]
  const action = status === 'failed' ? 'Retry' : 'Deliver again'
  return (
    <>
      <div class="main">
        <h3 class="row wrap">
          {type} <span class={`badge ${tone}`}>{text}</span>
        </h3>
        <p class="soft small prose">
          {code === null ? 'No answer' : `Answer ${code}`}
          {response && `: ${response}`}
        </p>
        <p class="soft small">
          <Time at={delivery.attempted_at} />,{' '}
          {attempts === 1 ? '1 attempt' : `${count(attempts)} attempts`}
        </p>
      </div>
      {status !== 'waiting' && (
        <button
          type="button"
          class="button"
          aria-label={`${action}: ${type}`}
          onClick={() => retry(id)}
        >
          {action}
        </button>
      )}
    </>
  )
}
