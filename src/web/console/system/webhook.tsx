import { ChevronLeft, Send } from 'lucide-preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Answer, Webhook, WebhookDelivery } from '../../../../client/src/contract.ts'
import { ActionButton, Button } from '../../kit/button.tsx'
import { showOnce } from '../../kit/copy.tsx'
import { saveChanges } from '../../kit/form.tsx'
import { count, plural } from '../../kit/format.ts'
import { Loaded, RowList, Section } from '../../kit/list.tsx'
import { navigateFrom } from '../../kit/router.ts'
import { Empty } from '../../kit/states.tsx'
import { Filled, fill, texts } from '../../kit/texts.tsx'
import { Time } from '../../kit/time.tsx'
import { type List, mutate, patch, patchItem, useList, useQuery } from '../data.ts'
import { askForWebhook, contentOf, WebhookBadge, webhooksRoute } from './webhooks.tsx'

const words = texts.console.system.webhooks
const system = texts.console.system
const route = 'GET /v1/admin/webhooks/{id}'
const listAddress = '/console/system/webhooks'
const deliveriesRoute = 'GET /v1/admin/webhooks/{id}/deliveries'
const retryRoute = 'POST /v1/admin/webhooks/{id}/deliveries/{delivery_id}/retry'
type TestResult = Answer<'POST /v1/admin/webhooks/{id}/test'>

export function WebhookPage({ id }: { id: string }) {
  const params = { id }
  const polled = { every: 15, isHeld: () => document.querySelector('.entries:hover') !== null }
  const webhook = useQuery(route, { params }, polled)
  const deliveries = useList(deliveriesRoute, { params }, polled)
  function reload() {
    webhook.reload()
    deliveries.reload()
  }
  return (
    <>
      <a class="row small back" href={listAddress}>
        <ChevronLeft /> {words.all}
      </a>
      <Loaded from={webhook} loading={<div class="card" />}>
        {(data) => (
          <>
            <Shown webhook={data} />
            <Deliveries webhookId={id} list={deliveries} reload={reload} />
          </>
        )}
      </Loaded>
    </>
  )
}

const show = (changed: Webhook) => patch(route, { params: { id: changed.id } }, () => changed)

function Shown({ webhook }: { webhook: Webhook }) {
  const [result, setResult] = useState<TestResult>()
  const heading = useRef<HTMLHeadingElement>(null)
  // The link that led here is gone, so the heading takes the focus.
  useLayoutEffect(() => heading.current?.focus(), [])
  return (
    <section class="card stack" aria-labelledby="webhook">
      <div class="stack tight">
        <div class="row wrap between">
          <h2 id="webhook" class="address" tabIndex={-1} ref={heading}>
            {webhook.url}
          </h2>
          <WebhookBadge webhook={webhook} />
        </div>
        {webhook.description && <p class="soft prose">{webhook.description}</p>}
        <ul class="row wrap" aria-label={words.events}>
          {webhook.events.map((event) => (
            <li key={event} class="badge mono">
              {event}
            </li>
          ))}
        </ul>
      </div>
      <State webhook={webhook} />
      <Dropped webhook={webhook} />
      <Actions webhook={webhook} showResult={setResult} />
      {result && <Result result={result} />}
    </section>
  )
}

/** The service disables a webhook and writes the audit entry in one transaction; their times differ by less than
 *  this. */
const momentMilliseconds = 100

/** Since when deliveries fail, or who disabled the webhook and why. */
function State({ webhook }: { webhook: Webhook }) {
  const { enabled, disabled_at: disabledAt, failing_since: failingSince } = webhook
  if (!enabled && disabledAt) return <SwitchedOff id={webhook.id} at={disabledAt} />
  if (!failingSince) return null
  return (
    <p class="notice danger">
      <span>
        <Filled text={words.failingSince} values={{ time: <Time at={failingSince} /> }} />
      </span>
    </p>
  )
}

function Dropped({ webhook }: { webhook: Webhook }) {
  if (webhook.dropped_count === 0) return null
  return <p class="notice danger">{fill(words.dropped, { count: count(webhook.dropped_count) })}</p>
}

function SwitchedOff({ id, at }: { id: string; at: string }) {
  const query = { target_id: id, action: 'webhook_disabled', per_page: 1, to: later(at) }
  const log = useQuery('GET /v1/admin/audit-log', { query })
  const entry = log.data?.data[0]
  const isOfThis = entry && Date.parse(at) - Date.parse(entry.at) < momentMilliseconds
  const text = isOfThis ? words.switchedOffByService : words.switchedOffByAdmin
  return (
    <p class="notice warning" role="status">
      <span>
        <Filled
          text={log.data ? text : words.switchedOff}
          values={{ time: <Time at={at} />, reason: entry?.details?.['reason'] }}
        />
      </span>
    </p>
  )
}

const later = (at: string) => new Date(Date.parse(at) + momentMilliseconds).toISOString()

type ActionsProps = { webhook: Webhook; showResult: (result: TestResult | undefined) => void }

function Actions({ webhook, showResult }: ActionsProps) {
  const { id, enabled, url } = webhook
  const params = { id }
  const values = { host: new URL(url).host }
  async function edit() {
    const asked = { title: words.editTitle, action: texts.kit.save }
    const changed = await askForWebhook(asked, webhook, (given) =>
      saveChanges(given, contentOf(webhook), (body) =>
        mutate('PATCH /v1/admin/webhooks/{id}', { params, body }),
      ),
    )
    if (changed) show(changed)
  }
  return (
    <div class="row wrap">
      <ActionButton
        tone="primary"
        texts={{ button: words.test }}
        work={async () => {
          showResult(undefined)
          showResult(await mutate('POST /v1/admin/webhooks/{id}/test', { params }))
        }}
      />
      <Button onClick={edit}>{system.edit}</Button>
      <ActionButton
        texts={enabled ? words.switchOff : { button: words.switchOn }}
        values={values}
        work={async () => {
          const body = { enabled: !enabled }
          show(await mutate('PATCH /v1/admin/webhooks/{id}', { params, body }))
        }}
      />
      <ActionButton
        texts={words.renew}
        work={async () => {
          const { secret } = await mutate('POST /v1/admin/webhooks/{id}/secret', { params })
          const { renewedTitle: title, renewedText: text } = words
          await showOnce({ title, text, secret, name: texts.kit.theSecret })
        }}
      />
      <ActionButton
        tone="danger"
        texts={words.remove}
        values={values}
        work={async () => {
          const refreshes: [typeof webhooksRoute] = [webhooksRoute]
          await mutate('DELETE /v1/admin/webhooks/{id}', { params }, { refreshes })
          navigateFrom(`${listAddress}/${id}`, listAddress, 'replace')
        }}
      />
    </div>
  )
}

function Result({ result }: { result: TestResult }) {
  const { status, response_status: code, response } = result
  const isDelivered = status === 'delivered'
  return (
    <div class={`notice ${isDelivered ? '' : 'danger'}`} role="status">
      <p class="prose">
        <strong>{isDelivered ? words.testDelivered : words.testFailed}</strong>{' '}
        {answerText(code, response)}
      </p>
    </div>
  )
}

const answerText = (code: number | null, response: string | null) =>
  (code === null ? words.noAnswer : fill(words.answer, { code })) + (response && `: ${response}`)

type DeliveriesProps = { webhookId: string; list: List<WebhookDelivery>; reload: () => void }

function Deliveries({ webhookId, list, reload }: DeliveriesProps) {
  return (
    <Section
      title={system.overview.deliveries}
      level={2}
      end={<Button onClick={reload}>{words.refresh}</Button>}
    >
      <RowList
        label={system.overview.deliveries}
        list={list}
        empty={<Empty icon={Send} {...words.noDeliveries} />}
        render={(delivery) => <DeliveryRow webhookId={webhookId} delivery={delivery} />}
      />
    </Section>
  )
}

const tones = { delivered: 'good', waiting: 'warning', failed: 'danger' }

type RowProps = { webhookId: string; delivery: WebhookDelivery }

function DeliveryRow({ webhookId, delivery }: RowProps) {
  const { type, status, attempts, response_status: code, response, attempted_at } = delivery
  const action = status === 'failed' ? system.retry : words.again
  return (
    <>
      <div class="main">
        <h3 class="row wrap">
          {type} <span class={`badge ${tones[status]}`}>{words.statuses[status]}</span>
        </h3>
        <p class="soft small prose">{answerText(code, response)}</p>
        <p class="soft small">
          <Time at={attempted_at} />, {plural(system.attempts, attempts)}
        </p>
      </div>
      {status !== 'waiting' && (
        <ActionButton
          texts={{ button: action, label: words.ofType }}
          values={{ action, type }}
          work={async () => {
            const params = { id: webhookId, delivery_id: delivery.id }
            patchItem(deliveriesRoute, delivery.id, await mutate(retryRoute, { params }))
          }}
        />
      )}
    </>
  )
}
