import type { Body, Webhook } from '../../../../client/src/contract.ts'
import { openDialog } from '../../ui/dialog.tsx'
import { Field } from '../../ui/field.tsx'
import { FormDialog } from '../form-dialog.tsx'
import { request } from '../session.ts'
import { showOnce } from '../show-once.tsx'

type NewWebhook = Body<'POST /v1/admin/webhooks'>
type Event = Webhook['events'][number]

const events: Record<Event, string> = {
  'user.created': 'Somebody joined',
  'user.updated': 'A profile, a role or an address changed',
  'user.deleted': 'An account was removed',
  'message.created': 'A message was sent',
  'message.deleted': 'A message was removed',
  'ticket.created': 'Somebody asks for help',
  'ticket.replied': 'A ticket got a reply',
  'ticket.updated': 'Status, priority or assignee of a ticket changed',
  'report.created': 'Somebody was reported',
  'notification.created': 'Somebody was notified',
  'broadcast.completed': 'A broadcast has reached everybody',
}

const signing = 'Deliveries are signed with it. It is shown this once: keep it with the receiver.'

/** Asks for the webhook's properties, creates it and shows its secret.
 *  @returns its id; undefined when the form was cancelled */
export async function addWebhook(): Promise<string | undefined> {
  const made = await openDialog<{ id: string; secret: string }>((close) => (
    <WebhookForm
      title="Add a webhook"
      action="Add the webhook"
      close={() => close()}
      submit={async (body) => close(await request('POST /v1/admin/webhooks', { body }))}
    />
  ))
  if (!made) return
  await showOnce({
    title: 'The secret of the webhook',
    text: signing,
    secret: made.secret,
    name: 'the secret',
  })
  return made.id
}

/** @returns the changed webhook; undefined when the form was cancelled */
export async function editWebhook(webhook: Webhook): Promise<Webhook | undefined> {
  const params = { id: webhook.id }
  return openDialog<Webhook>((close) => (
    <WebhookForm
      title="Edit the webhook"
      action="Save"
      webhook={webhook}
      close={() => close()}
      submit={async (body) => {
        close(await request('PATCH /v1/admin/webhooks/{id}', { params, body }))
      }}
    />
  ))
}

/** Rotates the secret and shows the new one. */
export async function renewSecret(id: string): Promise<void> {
  const { secret } = await request('POST /v1/admin/webhooks/{id}/secret', { params: { id } })
  const text = `${signing} For 24 hours the old one signs beside it.`
  await showOnce({ title: 'The new secret', text, secret, name: 'the secret' })
}

type FormProps = {
  title: string
  action: string
  webhook?: Webhook
  close: () => void
  submit: (body: NewWebhook & { description: string }) => Promise<unknown>
}

function WebhookForm({ title, action, webhook, close, submit }: FormProps) {
  const send = (given: FormData) =>
    submit({
      url: String(given.get('url')).trim(),
      description: String(given.get('description')),
      // The names of the checkboxes below; the service rejects an empty list.
      events: given.getAll('events') as NewWebhook['events'],
    })
  return (
    <FormDialog title={title} action={action} close={close} submit={send}>
      {(problems) => (
        <>
          <Field label="Address" problem={problems['url']}>
            {(attributes) => (
              <input
                name="url"
                type="url"
                placeholder="https://"
                defaultValue={webhook?.url}
                required
                {...attributes}
              />
            )}
          </Field>
          <Field
            label="Description"
            hint="What it is for; it may be empty."
            problem={problems['description']}
          >
            {(attributes) => (
              <input
                name="description"
                maxLength={200}
                defaultValue={webhook?.description ?? ''}
                {...attributes}
              />
            )}
          </Field>
          <EventBoxes chosen={webhook?.events ?? []} problem={problems['events']} />
        </>
      )}
    </FormDialog>
  )
}

function EventBoxes({ chosen, problem }: { chosen: Event[]; problem: string | undefined }) {
  return (
    <fieldset class="boxes">
      <legend>Events</legend>
      {problem && (
        <p class="error" role="alert">
          Choose at least one.
        </p>
      )}
      {Object.entries(events).map(([event, meaning]) => (
        <label key={event}>
          <input
            type="checkbox"
            name="events"
            value={event}
            defaultChecked={chosen.some((known) => known === event)}
          />
          <span>
            {meaning} <code class="soft">{event}</code>
          </span>
        </label>
      ))}
    </fieldset>
  )
}
