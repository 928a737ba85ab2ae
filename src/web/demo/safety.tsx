import { Ban, Flag } from 'lucide-preact'
import { useState } from 'preact/hooks'
import { ActionButton, IconButton, useAction } from '../kit/button.tsx'
import { confirmAction } from '../kit/dialog.tsx'
import { TextArea } from '../kit/field.tsx'
import { askForm } from '../kit/form.tsx'
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

export function ReportButton({ person: { id, display_name: name } }: { person: Person }) {
  const { client } = useMe()
  const text = texts.demo.safety
  async function ask() {
    const isSent = await askForm({
      title: fill(text.reportTitle, { name }),
      action: text.report,
      fields: (
        <>
          <ReasonSelect />
          <TextArea label={text.details} name="body" rows={2} maxLength={2_000} />
        </>
      ),
      async submit(given) {
        const reason = reasons.find((known) => known === given.get('reason')) ?? 'other'
        await client.report({ user_id: id, reason, body: String(given.get('body')) || null })
        return true
      },
    })
    if (isSent) toast(text.reported)
  }
  return <IconButton icon={Flag} label={text.report} onClick={ask} />
}

function ReasonSelect() {
  const [reason, setReason] = useState<(typeof reasons)[number]>('spam')
  return (
    <>
      <Select
        isField
        label={texts.fields.reason}
        value={reason}
        options={reasons.map((name) => [name, texts.reportReasons[name]])}
        choose={setReason}
      />
      <input type="hidden" name="reason" value={reason} />
    </>
  )
}
