import { ArrowLeft } from 'lucide-preact'
import type { NewTicket } from '../../../client/src/client.ts'
import { useAction } from '../ui/action.ts'
import { errorText, fieldProblems } from '../ui/errors.ts'
import { Field } from '../ui/field.tsx'
import { AttachButton, mostAttachments, UploadList, useUploads } from './attachments.tsx'
import { say } from './language.tsx'
import { useMe } from './me.ts'
import { go, linkTo } from './place.ts'

const categories = ['billing', 'technical', 'account', 'other'] as const
const priorities = ['low', 'normal', 'high', 'urgent'] as const

/** Asks the desk something. */
export function NewTicketForm() {
  const { client, side } = useMe()
  const { back, tickets: text } = say.value
  const uploads = useUploads(mostAttachments)
  const creation = useAction(async (form: HTMLFormElement) => {
    const given: unknown = Object.fromEntries(new FormData(form))
    const { id } = await client.tickets.create({
      ...(given as NewTicket), // the names of the inputs below
      attachments: uploads.files,
    })
    go(side, 'tickets', id)
  })
  const problems = fieldProblems(creation.error)
  const hasOtherProblem = creation.error !== undefined && Object.keys(problems).length === 0
  return (
    <form
      class="scroll form"
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
        {(tied) => <input name="subject" maxLength={200} required {...tied} />}
      </Field>
      <div class="pair">
        <Choice
          name="category"
          label={text.category}
          options={categories}
          words={text.categories}
        />
        <Choice
          name="priority"
          label={text.priority}
          options={priorities}
          words={text.priorities}
        />
      </div>
      <Field label={text.body} problem={problems['body']}>
        {(tied) => <textarea name="body" rows={5} maxLength={10_000} required {...tied} />}
      </Field>
      <UploadList uploads={uploads} />
      <p class="error" role="alert">
        {hasOtherProblem && errorText(creation.error).text}
      </p>
      <div class="row between">
        <AttachButton uploads={uploads} />
        <button
          type="submit"
          class="button primary"
          disabled={creation.isBusy || uploads.isUploading}
        >
          {text.send}
        </button>
      </div>
    </form>
  )
}

type ChoiceProps<Option extends string> = {
  name: string
  label: string
  options: readonly Option[]
  words: Record<Option, string>
}

function Choice<Option extends string>({ name, label, options, words }: ChoiceProps<Option>) {
  return (
    <Field label={label}>
      {(tied) => (
        <select name={name} {...tied}>
          {options.map((option) => (
            <option
              key={option}
              value={option}
              selected={option === 'normal' || option === 'other'}
            >
              {words[option]}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}
