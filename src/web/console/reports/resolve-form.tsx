import { useState } from 'preact/hooks'
import type { ReportDetail } from '../../../../client/src/contract.ts'
import { errorText } from '../../ui/errors.ts'
import { Field } from '../../ui/field.tsx'
import { request } from '../session.ts'

type ResolveFormProps = { report: ReportDetail; close: (resolved?: ReportDetail) => void }

/** Resolves a report with a note. */
export function ResolveForm({ report, close }: ResolveFormProps) {
  const [problem, setProblem] = useState<string>()
  const [isBusy, setBusy] = useState(false)

  async function submit(event: SubmitEvent) {
    event.preventDefault()
    const note = String(new FormData(event.currentTarget as HTMLFormElement).get('note')).trim()
    setBusy(true)
    try {
      const body = { status: 'resolved', ...(note !== '' && { note }) } as const
      close(await request('PATCH /v1/admin/reports/{id}', { params: { id: report.id }, body }))
    } catch (error) {
      setProblem(errorText(error).text)
      setBusy(false)
    }
  }

  return (
    <form onSubmit={submit}>
      <h2>Resolve the report</h2>
      <p class="soft">
        {report.message_id !== null && 'The copies of messages that it keeps are deleted. '}
        The two people are not told.
      </p>
      <Field label="Note" hint="What was done, for other admins. Optional." problem={problem}>
        {(attributes) => (
          <textarea
            name="note"
            rows={4}
            maxLength={2_000}
            ref={(it) => it?.focus()}
            {...attributes}
          />
        )}
      </Field>
      <div class="actions">
        <button type="button" class="button" onClick={() => close()}>
          Cancel
        </button>
        <button type="submit" class="button primary" disabled={isBusy}>
          Resolve
        </button>
      </div>
    </form>
  )
}
