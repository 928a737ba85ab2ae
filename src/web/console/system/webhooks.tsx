import { Webhook as WebhookIcon } from 'lucide-preact'
import type { Webhook } from '../../../../client/src/contract.ts'
import { showOnce } from '../../kit/copy.tsx'
import { Boxes, TextField } from '../../kit/field.tsx'
import { type Attempt, askForm } from '../../kit/form.tsx'
import { plural } from '../../kit/format.ts'
import { ListPage } from '../../kit/list.tsx'
import { navigate } from '../../kit/router.ts'
import { Empty } from '../../kit/states.tsx'
import { texts } from '../../kit/texts.tsx'
import { Times } from '../../kit/time.tsx'
import { mutate, useList } from '../data.ts'

const words = texts.console.system.webhooks
type Content = Pick<Webhook, 'url' | 'events'> & { description: string }

const events = [
  'user.created',
  'user.updated',
  'user.deleted',
  'message.created',
  'message.deleted',
  'ticket.created',
  'ticket.replied',
  'ticket.updated',
  'report.created',
  'notification.created',
  'broadcast.completed',
] as const satisfies Webhook['events']

export const webhooksRoute = 'GET /v1/admin/webhooks'

export function Webhooks() {
  const list = useList(webhooksRoute, {})
  return (
    <ListPage
      text={words.about}
      action={words.add.button}
      add={addWebhook}
      label={texts.console.system.tabs.webhooks}
      list={list}
      empty={<Empty icon={WebhookIcon} {...words.none} />}
      render={(webhook) => <WebhookRow webhook={webhook} />}
    />
  )
}

function WebhookRow({ webhook }: { webhook: Webhook }) {
  const { id, url, description, events, failing_since } = webhook
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
          {events.length === 1 ? events[0] : plural(words.eventCount, events.length)}
          {failing_since && ' · '}
          <Times of={[[words.firstFailure, failing_since]]} />
        </p>
      </div>
      <WebhookBadge webhook={webhook} />
    </>
  )
}

export function WebhookBadge({ webhook: { enabled, failing_since } }: { webhook: Webhook }) {
  if (!enabled) return <span class="badge">{words.off}</span>
  if (!failing_since) return <span class="badge good">{words.on}</span>
  return <span class="badge danger">{texts.console.system.overview.failing}</span>
}

async function addWebhook() {
  const asked = { ...words.add, title: words.add.button }
  const refreshes: [typeof webhooksRoute] = [webhooksRoute]
  const made = await askForWebhook(asked, undefined, (body, attempt) =>
    mutate('POST /v1/admin/webhooks', { body, ...attempt }, { refreshes }),
  )
  if (!made) return
  const { secret, id } = made
  await showOnce({
    title: words.secretTitle,
    text: words.secretText,
    secret,
    name: texts.kit.theSecret,
  })
  navigate(`/console/system/webhooks/${id}`)
}

/** @returns undefined when the form was cancelled */
export const askForWebhook = <T,>(
  asked: { title: string; action: string },
  webhook: Webhook | undefined,
  submit: (content: Content, attempt: Attempt) => Promise<T>,
) =>
  askForm({
    ...asked,
    fields: (
      <>
        <TextField
          label={words.address}
          name="url"
          type="url"
          placeholder="https://"
          defaultValue={webhook?.url ?? ''}
          required
        />
        <TextField
          label={words.description}
          hint={words.descriptionHint}
          name="description"
          maxLength={200}
          defaultValue={webhook?.description ?? ''}
        />
        <Boxes
          label={words.events}
          name="events"
          chosen={webhook?.events ?? []}
          options={events.map((event) => [
            event,
            <>
              {words.meanings[event]} <code class="soft">{event}</code>
            </>,
          ])}
        />
      </>
    ),
    submit(given, attempt) {
      const chosen = given.getAll('events')
      const content = {
        url: String(given.get('url')).trim(),
        description: String(given.get('description')),
        events: events.filter((event) => chosen.includes(event)),
      }
      return submit(content, attempt)
    },
  })

/** As the form shows it. */
export const contentOf = (webhook: Webhook): Content => ({
  url: webhook.url,
  description: webhook.description ?? '',
  events: events.filter((event) => webhook.events.includes(event)),
})
