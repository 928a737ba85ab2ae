import { Ban, Flag } from 'lucide-preact'
import { useAction } from '../ui/action.ts'
import { confirmAction, openDialog } from '../ui/dialog.tsx'
import { errorText } from '../ui/errors.ts'
import { Field } from '../ui/field.tsx'
import { fill, uiTexts } from '../ui/texts.ts'
import { toast } from '../ui/toast.tsx'
import { texts } from './language.tsx'
import { type Me, useMe } from './me.ts'

type Person = { id: string; display_name: string }

export function BlockButton({ person }: { person: Person }) {
  const { blocks } = useMe()
  const text = texts.value.safety
  const { display_name: name, id } = person
  const isBlocked = blocks.ids.value.has(id)
  const block = useAction(blocks.add)
  const unblock = useAction(blocks.remove)
  async function press() {
    if (isBlocked) return void unblock.run(id)
    const title = fill(text.blockTitle, { name })
    const question = { title, text: text.blockText, action: text.block, isDangerous: true }
    if (await confirmAction(question)) await block.run(id)
  }
  const label = isBlocked ? text.unblock : text.block
  return (
    <button
      type="button"
      class="button ghost icon"
      aria-label={label}
      title={label}
      disabled={block.isBusy || unblock.isBusy}
      onClick={press}
    >
      <Ban />
    </button>
  )
}

/** Replaces the composer. */
export function BlockedNotice({ person }: { person: Person }) {
  const { blocks } = useMe()
  const text = texts.value.safety
  const unblock = useAction(blocks.remove)
  return (
    <div class="notice blocked">
      <p>{fill(text.blocked, { name: person.display_name })}</p>
      <button type="button" class="button" onClick={() => unblock.run(person.id)}>
        {text.unblock}
      </button>
    </div>
  )
}

const reasons = ['spam', 'harassment', 'fraud', 'sexual', 'other'] as const
type Reason = (typeof reasons)[number]

export function ReportButton({ person }: { person: Person }) {
  const { client } = useMe()
  const text = texts.value.safety
  return (
    <button
      type="button"
      class="button ghost icon"
      aria-label={text.report}
      title={text.report}
      onClick={async () => {
        const isSent = await openDialog<true>((close) => (
          <ReportForm client={client} person={person} close={close} />
        ))
        if (isSent) toast(texts.value.safety.reported)
      }}
    >
      <Flag />
    </button>
  )
}

type ReportFormProps = Pick<Me, 'client'> & { person: Person; close: (isSent?: true) => void }

function ReportForm({ client, person, close }: ReportFormProps) {
  const text = texts.value.safety
  const report = useAction(async (form: HTMLFormElement) => {
    const given = new FormData(form)
    await client.report({
      user_id: person.id,
      reason: given.get('reason') as Reason, // one of the options below
      body: String(given.get('body')) || null,
    })
    close(true)
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        void report.run(event.currentTarget)
      }}
    >
      <h2>{fill(text.reportTitle, { name: person.display_name })}</h2>
      <Field label={text.reason}>
        {(attributes) => (
          <select name="reason" {...attributes}>
            {reasons.map((reason) => (
              <option key={reason} value={reason}>
                {text.reasons[reason]}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field label={text.details}>
        {(attributes) => <textarea name="body" maxLength={2_000} {...attributes} />}
      </Field>
      <p class="error" role="alert">
        {report.error !== undefined && errorText(report.error).text}
      </p>
      <div class="actions">
        <button type="button" class="button" onClick={() => close()}>
          {uiTexts.value.cancel}
        </button>
        <button type="submit" class="button primary" disabled={report.isBusy}>
          {text.report}
        </button>
      </div>
    </form>
  )
}
