import { Webhook as WebhookIcon } from 'lucide-preact'
import type { CursorPage, Webhook } from '../../../../client/src/contract.ts'
import { useList } from '../../ui/resource.ts'
import { navigate } from '../../ui/router.ts'
import { useShortcut } from '../../ui/shortcuts.tsx'
import { Empty } from '../../ui/states.tsx'
import { Time } from '../../ui/time.tsx'
import { pageQuery } from '../page-query.ts'
import { useRefresh } from '../refresh.ts'
import { RowList } from '../row-list.tsx'
import { request } from '../session.ts'
import { addWebhook } from './webhook-form.tsx'

export function Webhooks() {
  const list = useList(
    'webhooks',
    (cursor, signal) =>
      request('GET /v1/admin/webhooks', { query: pageQuery(cursor), signal }) as Promise<
        CursorPage<Webhook>
      >, // with `limit` the response has a cursor
  )
  useRefresh(list.reload)
  async function add() {
    const id = await addWebhook()
    if (id !== undefined) navigate(`/console/system/webhooks/${id}`)
  }
  useShortcut('n', 'Add a webhook', add)
  return (
    <>
      <div class="row between wrap">
        <p class="soft">Endpoints of other systems that receive events as signed requests.</p>
        <button type="button" class="button primary" onClick={add}>
          Add a webhook
        </button>
      </div>
      <RowList
        label="Webhooks"
        list={list}
        empty={
          <Empty icon={WebhookIcon} title="No webhooks">
            <p>Endpoints that hear of messages, tickets or people would be here.</p>
          </Empty>
        }
        render={(webhook) => <WebhookRow webhook={webhook} />}
      />
    </>
  )
}

function WebhookRow({ webhook }: { webhook: Webhook }) {
  const { id, url, description, events, failing_since: failingSince } = webhook
  return (
    <>
      <div class="main">
        <h2>
          <a class="address" href={`/console/system/webhooks/${id}`}>
            {url}
          </a>
        </h2>
        <p class="soft small prose">
          {description && `${description} · `}
          {events.length === 1 ? events[0] : `${events.length} events`}
          {failingSince && (
            <>
              {' '}
              · first failure <Time at={failingSince} />
            </>
          )}
        </p>
      </div>
      <WebhookBadge webhook={webhook} />
    </>
  )
}

export function WebhookBadge({ webhook }: { webhook: Webhook }) {
  const { enabled, failing_since: failingSince } = webhook
  if (!enabled) return <span class="badge">Off</span>
  if (!failingSince) return <span class="badge good">On</span>
  return <span class="badge danger">Failing</span>
}
