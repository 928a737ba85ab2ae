import { ArrowLeft } from 'lucide-preact'
import { Button, useAction } from '../kit/button.tsx'
import { errorText, fieldProblems } from '../kit/errors.ts'
import { TextArea, TextField } from '../kit/field.tsx'
import { Select } from '../kit/select.tsx'
import { texts } from '../kit/texts.tsx'
import { AttachButton, Attached } from '../kit/uploads.tsx'
import { sendDraft, useDraft, useFiles } from './drafts.ts'
import { go, linkTo, placeOf } from './place.ts'
import { useMe } from './session.ts'

const categories = ['billing', 'technical', 'account', 'other'] as const
const priorities = ['low', 'normal', 'high', 'urgent'] as const

export function NewTicketForm() {
  const { client, side } = useMe()
  const { back, tickets: text } = texts.demo
  const uploads = useFiles()
  const draft = useDraft('tickets new')
  const { subject = '', body = '', ...chosen } = draft.value
  const category = categories.find((name) => name === chosen['category']) ?? 'other'
  const priority = priorities.find((name) => name === chosen['priority']) ?? 'normal'
  const creation = useAction(async () => {
    const ticket = { subject, body, category, priority, attachments: uploads.files }
    const { id } = await sendDraft(draft, ticket, client.tickets.create)
    if (placeOf(side).id === 'new') go(side, 'tickets', id)
  })
  const problems = fieldProblems(creation.error)
  const hasOtherProblem = creation.error !== undefined && Object.keys(problems).length === 0
  const change = (part: Record<string, string>) => {
    draft.value = { ...draft.value, ...part }
  }
  return (
    <form
      class="scroll form stack"
      onSubmit={(event) => {
        event.preventDefault()
        if (!uploads.isUploading) void creation.run()
      }}
    >
      <header class="row">
        <a class="button ghost icon" href={linkTo(side, 'tickets')} aria-label={back} title={back}>
          <ArrowLeft />
        </a>
        <h3>{text.create}</h3>
      </header>
      <TextField
        label={text.subject}
        problem={problems['subject']}
        maxLength={200}
        required
        value={subject}
        onInput={({ currentTarget }) => change({ subject: currentTarget.value })}
      />
      <div class="pair">
        <Choice
          label={texts.tickets.category}
          words={texts.tickets.categories}
          chosen={category}
          choose={(name) => change({ category: name })}
        />
        <Choice
          label={texts.tickets.priority}
          words={texts.tickets.priorities}
          chosen={priority}
          choose={(name) => change({ priority: name })}
        />
      </div>
      <TextArea
        label={text.body}
        problem={problems['body']}
        rows={5}
        maxLength={10_000}
        required
        value={body}
        onInput={({ currentTarget }) => change({ body: currentTarget.value })}
      />
      <Attached files={uploads.files} removeFile={uploads.removeFile} sending={uploads.sending} />
      <p class="error" role="alert">
        {hasOtherProblem && errorText(creation.error).text}
      </p>
      <div class="row between">
        <AttachButton label={texts.demo.attach} take={uploads.sending.take} />
        <Button submits tone="primary" disabled={creation.isBusy || uploads.isUploading}>
          {text.send}
        </Button>
      </div>
    </form>
  )
}

type ChoiceProps = {
  label: string
  words: Record<string, string>
  chosen: string
  choose: (name: string) => void
}

function Choice({ label, words, chosen, choose }: ChoiceProps) {
  return (
    <Select label={label} value={chosen} options={Object.entries(words)} choose={choose} isField />
  )
}
