import { ArrowLeft } from 'lucide-preact'
import type { NewTicket } from '../../../client/src/client.ts'
import { useAction } from '../ui/action.ts'
import { errorText, fieldProblems } from '../ui/errors.ts'
import { Field } from '../ui/field.tsx'
import { AttachButton, mostAttachments, UploadList, useUploads } from './attachments.tsx'
import { sendDraft, useDraft } from './drafts.ts'
import { texts } from './language.tsx'
import { useMe } from './me.ts'
import { go, linkTo, placeOf } from './place.ts'

const categories = ['billing', 'technical', 'account', 'other'] as const
const priorities = ['low', 'normal', 'high', 'urgent'] as const

export function NewTicketForm() {
  const { client, side } = useMe()
  const { back, tickets: text } = texts.value
  const uploads = useUploads(mostAttachments)
  const draft = useDraft('tickets new')
  const creation = useAction(async (form: HTMLFormElement) => {
    const given = fieldsOf(form) as unknown as NewTicket // the names of the inputs below
    const ticket = { ...given, attachments: uploads.files }
    const { id } = await sendDraft(draft, ticket, client.tickets.create)
    if (placeOf(side).id === 'new') go(side, 'tickets', id)
  })
  const isBusy = creation.isBusy
  const problems = fieldProblems(creation.error)
  const hasOtherProblem = creation.error !== undefined && Object.keys(problems).length === 0
  return (
    <form
      class="scroll form"
      onInput={({ currentTarget }) => {
        draft.value = fieldsOf(currentTarget)
      }}
      onSubmit={(event) => {
        event.preventDefault()
        if (!uploads.isUploading) void creation.run(event.currentTarget)
      }}
    >
      <header class="row">
        <a class="button ghost icon" href={linkTo(side, 'tickets')} aria-label={back} title={back}>
          <ArrowLeft />
        </a>
        <h3>{text.create}</h3>
      </header>
      <Field label={text.subject} problem={problems['subject']}>
        {(attributes) => (
          <input
            name="subject"
            maxLength={200}
            required
            value={draft.value['subject'] ?? ''}
            readOnly={isBusy}
            {...attributes}
          />
        )}
      </Field>
      <div class="pair">
        <Choice
          name="category"
          label={text.category}
          options={categories}
          words={text.categories}
          chosen={draft.value['category'] ?? 'other'}
          isBusy={isBusy}
        />
        <Choice
          name="priority"
          label={text.priority}
          options={priorities}
          words={text.priorities}
          chosen={draft.value['priority'] ?? 'normal'}
          isBusy={isBusy}
        />
      </div>
      <Field label={text.body} problem={problems['body']}>
        {(attributes) => (
          <textarea
            name="body"
            rows={5}
            maxLength={10_000}
            required
            value={draft.value['body'] ?? ''}
            readOnly={isBusy}
            {...attributes}
          />
        )}
      </Field>
      <UploadList uploads={uploads} />
      <p class="error" role="alert">
        {hasOtherProblem && errorText(creation.error).text}
      </p>
      <div class="row between">
        <AttachButton uploads={uploads} isBusy={isBusy} />
        <button type="submit" class="button primary" disabled={isBusy || uploads.isUploading}>
          {text.send}
        </button>
      </div>
    </form>
  )
}

const fieldsOf = (form: HTMLFormElement) =>
  Object.fromEntries(new FormData(form)) as Record<string, string> // the file input has no name

type ChoiceProps<Option extends string> = {
  name: string
  label: string
  options: readonly Option[]
  words: Record<Option, string>
  chosen: string
  isBusy: boolean
}

function Choice<Option extends string>(props: ChoiceProps<Option>) {
  const { name, label, options, words, chosen, isBusy } = props
  return (
    <Field label={label}>
      {(attributes) => (
        <select name={name} disabled={isBusy} {...attributes}>
          {options.map((option) => (
            <option key={option} value={option} selected={option === chosen}>
              {words[option]}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}
