import type { NewAnnouncement } from '../../../../client/src/contract.ts'
import { ApiError } from '../../../../client/src/errors.ts'
import { uniqueId } from '../../../../client/src/platform.ts'
import { useAction } from '../../ui/action.ts'
import { confirmAction } from '../../ui/dialog.tsx'
import { errorText, fieldProblems } from '../../ui/errors.ts'
import { Field } from '../../ui/field.tsx'
import { count } from '../../ui/format.ts'
import { type Resource, useResource } from '../../ui/resource.ts'
import { navigate } from '../../ui/router.ts'
import { toast } from '../../ui/toast.tsx'
import { request } from '../session.ts'
import { audienceText } from './audience.ts'
import { AudienceFields } from './audience-fields.tsx'
import { DataFields } from './data-fields.tsx'
import { announcementOf, changeDraft, clearDraft, draft } from './draft.ts'
import { Preview } from './preview.tsx'
import { countRecipients } from './recipients.ts'

/** Writes a broadcast notification with a preview and the number of recipients, and sends it exactly once. */
export function AnnouncementForm() {
  const { run, isBusy, error } = useAction(send)
  const problems = fieldProblems(error)
  const { audience, role, people, title, body } = draft.value
  const recipients = useResource(JSON.stringify([audience, role, people.length]), (signal) =>
    countRecipients(draft.value, signal),
  )

  return (
    <form
      class="announcement"
      aria-label="New broadcast"
      onSubmit={(event) => {
        event.preventDefault()
        run()
      }}
    >
      <div class="stack">
        <AudienceFields problem={problems['user_ids']} />
        <Field label="Title" problem={problems['title']}>
          {(attributes) => (
            <input
              required
              maxLength={200}
              autocomplete="off"
              value={title}
              onInput={(event) => changeDraft({ title: event.currentTarget.value })}
              {...attributes}
            />
          )}
        </Field>
        <Field label="Text" problem={problems['body']}>
          {(attributes) => (
            <textarea
              required
              rows={6}
              maxLength={2_000}
              value={body}
              onInput={(event) => changeDraft({ body: event.currentTarget.value })}
              {...attributes}
            />
          )}
        </Field>
        <DataFields problems={problems} />
        <div class="row between wrap">
          <Recipients recipients={recipients} />
          <button
            type="submit"
            class="button primary"
            aria-disabled={isBusy}
            disabled={recipients.data === undefined || recipients.data === 0}
          >
            Send…
          </button>
        </div>
      </div>
      <Preview title={title} body={body} />
    </form>
  )
}

function Recipients({ recipients }: { recipients: Resource<number> }) {
  const { data, error, reload } = recipients
  if (error !== undefined && data === undefined) {
    return (
      <span class="row small" role="alert">
        <span class="error">{errorText(error).text}</span>
        <button type="button" class="button ghost" onClick={reload}>
          Count again
        </button>
      </span>
    )
  }
  return (
    <span class="small soft" role="status">
      {data === undefined ? 'Counting…' : peopleText(data)}
    </span>
  )
}

const peopleText = (number: number) =>
  number === 0 ? 'Reaches nobody' : `Reaches ${count(number)} ${number === 1 ? 'person' : 'people'}`

async function send() {
  const given = draft.value
  const number = await countRecipients(given)
  const who = number === 1 ? '1 person' : `${count(number)} people`
  const isSure = await confirmAction({
    title: `Send this to ${who}?`,
    text: `“${given.title.trim()}” goes to ${audienceText(given)} at once. It cannot be taken back.`,
    action: `Send to ${who}`,
  })
  if (!isSure) return
  const sent = await post(announcementOf(given))
  if (!sent) return
  clearDraft()
  navigate(`/console/announcements/${sent.broadcast_id}`)
}

/** @returns undefined when an earlier attempt with this key has succeeded, but the draft was changed since then */
async function post(body: NewAnnouncement) {
  try {
    return await request('POST /v1/admin/notifications', { body })
  } catch (error) {
    const isOther = error instanceof ApiError && error.reason === 'idempotency_mismatch'
    if (!isOther) throw error
    changeDraft({ clientId: uniqueId() })
    toast(
      'An earlier version of this was sent before: see below. Press Send to send this one, too.',
    )
    return undefined
  }
}
