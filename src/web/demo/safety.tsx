import { Ban, Flag } from 'lucide-preact'
import { useState } from 'preact/hooks'
import { ActionButton, Button, IconButton, useAction } from '../kit/button.tsx'
import { confirmAction, openDialog } from '../kit/dialog.tsx'
import { Field } from '../kit/field.tsx'
import { useForm } from '../kit/form.tsx'
import { Select } from '../kit/select.tsx'
import { fill, texts } from '../kit/texts.tsx'
import { toast } from '../kit/toast.tsx'
import { type Me, useMe } from './session.ts'

type Person = { id: string; display_name: string }

export const isBlocked = ({ blocks }: Me['blocks'], { id }: Person) =>
  blocks.some(({ user }) => user.id === id)

export function BlockButton({ person }: { person: Person }) {
  const { blocks } = useMe()
  const { unblock, block, blockTitle, blockText: text } = texts.demo.safety
  const { display_name: name, id } = person
  const change = useAction(async () => {
    if (isBlocked(blocks, person)) return blocks.remove(id)
    const question = { title: fill(blockTitle, { name }), text, action: block, isDangerous: true }
    if (await confirmAction(question)) await blocks.add(id)
  })
  const label = isBlocked(blocks, person) ? unblock : block
  return <IconButton icon={Ban} label={label} isBusy={change.isBusy} onClick={change.run} />
}

/** Replaces the composer. */
export function BlockedNotice({ person: { id, display_name: name } }: { person: Person }) {
  const { blocks } = useMe()
  const text = texts.demo.safety
  return (
    <div class="notice blocked">
      <p>{fill(text.blocked, { name })}</p>
      <ActionButton texts={{ button: text.unblock }} work={() => blocks.remove(id)} />
    </div>
  )
}

const reasons = ['spam', 'harassment', 'fraud', 'sexual', 'other'] as const

export function ReportButton({ person }: { person: Person }) {
  const { client } = useMe()
  async function ask() {
    const isSent = await openDialog<true>((close) => (
      <ReportForm client={client} person={person} close={close} />
    ))
    if (isSent) toast(texts.demo.safety.reported)
  }
  return <IconButton icon={Flag} label={texts.demo.safety.report} onClick={ask} />
}

type ReportFormProps = Pick<Me, 'client'> & { person: Person; close: (isSent?: true) => void }

function ReportForm({ client, person, close }: ReportFormProps) {
  const text = texts.demo.safety
  const [reason, setReason] = useState<(typeof reasons)[number]>('spam')
  const { onSubmit, isBusy, problem } = useForm(async (given) => {
    await client.report({ user_id: person.id, reason, body: String(given.get('body')) || null })
    close(true)
  })
  return (
    <form class="stack" onSubmit={onSubmit}>
      <h2>{fill(text.reportTitle, { name: person.display_name })}</h2>
      <Select
        label={text.reason}
        value={reason}
        options={reasons.map((name) => [name, texts.reportReasons[name]])}
        choose={setReason}
        isField
      />
      <Field label={text.details}>
        {(attributes) => <textarea name="body" maxLength={2_000} {...attributes} />}
      </Field>
      <p class="error" role="alert">
        {problem}
      </p>
      <div class="actions">
        <Button onClick={() => close()}>{texts.kit.cancel}</Button>
        <Button submits tone="primary" isBusy={isBusy}>
          {text.report}
        </Button>
      </div>
    </form>
  )
}
