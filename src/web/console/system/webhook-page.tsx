import { ChevronLeft } from 'lucide-preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type {
  Answer,
  CursorPage,
  Webhook,
  WebhookDelivery,
} from '../../../../client/src/contract.ts'
import { type List, type Resource, useList, useResource } from '../../ui/resource.ts'
import { Failure, Loading } from '../../ui/states.tsx'
import { pageQuery, pageSize } from '../page-query.ts'
import { useRefresh } from '../refresh.ts'
import { request } from '../session.ts'
import { WebhookActions } from './webhook-actions.tsx'
import { WebhookDeliveries } from './webhook-deliveries.tsx'
import { WebhookState } from './webhook-state.tsx'
import { WebhookBadge } from './webhooks.tsx'

type TestResult = Answer<'POST /v1/admin/webhooks/{id}/test'>

export function WebhookPage({ id }: { id: string }) {
  const params = { id }
  const webhook = useResource(id, (signal) =>
    request('GET /v1/admin/webhooks/{id}', { params, signal }),
  )
  const deliveries = useList(
    id,
    (cursor, signal) =>
      request('GET /v1/admin/webhooks/{id}/deliveries', {
        params,
        query: pageQuery(cursor),
        signal,
      }) as Promise<CursorPage<WebhookDelivery>>, // with `limit` the response has a cursor
  )
  function reload() {
    webhook.reload()
    if (deliveries.items.length <= pageSize) deliveries.reload()
  }
  useRefresh(reload, {
    seconds: 15,
    isPaused: () => document.querySelector('.entries:hover') !== null,
  })
  return (
    <>
      <a class="row small back" href="/console/system/webhooks">
        <ChevronLeft /> All webhooks
      </a>
      {webhook.data ? (
        <Shown webhook={webhook} data={webhook.data} deliveries={{ ...deliveries, reload }} />
      ) : (
        <div class="card">
          {webhook.error === undefined ? (
            <Loading />
          ) : (
            <Failure error={webhook.error} retry={reload} />
          )}
        </div>
      )}
    </>
  )
}

type ShownProps = {
  webhook: Resource<Webhook>
  data: Webhook
  deliveries: List<WebhookDelivery>
}

function Shown({ webhook, data, deliveries }: ShownProps) {
  const [result, setResult] = useState<TestResult>()
  const heading = useRef<HTMLHeadingElement>(null)
  // The link that led here is gone, so the heading takes the focus.
  useEffect(() => heading.current?.focus(), [])
  return (
    <>
      <section class="card stack" aria-labelledby="webhook">
        <div class="stack tight">
          <div class="row wrap between">
            <h2 id="webhook" class="address" tabIndex={-1} ref={heading}>
              {data.url}
            </h2>
            <WebhookBadge webhook={data} />
          </div>
          {data.description && <p class="soft prose">{data.description}</p>}
          <ul class="row wrap" aria-label="Events">
            {data.events.map((event) => (
              <li key={event} class="badge mono">
                {event}
              </li>
            ))}
          </ul>
        </div>
        <WebhookState webhook={data} />
        <WebhookActions
          webhook={data}
          show={(changed) => webhook.update(() => changed)}
          showResult={setResult}
        />
        {result && <Result result={result} />}
      </section>
      <WebhookDeliveries webhookId={data.id} list={deliveries} />
    </>
  )
}

function Result({ result }: { result: TestResult }) {
  const { status, response_status: code, response } = result
  const isDelivered = status === 'delivered'
  return (
    <div class={`notice ${isDelivered ? '' : 'danger'}`} role="status">
      <p class="prose">
        <strong>{isDelivered ? 'The test was delivered.' : 'The test was not delivered.'}</strong>{' '}
        {code === null ? 'There was no answer.' : `The answer was ${code}.`} {response}
      </p>
    </div>
  )
}
