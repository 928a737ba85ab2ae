import type { ManagedUser, ReportDetail } from '../../../../client/src/contract.ts'
import { useAction } from '../../ui/action.ts'
import { confirmAction, openDialog } from '../../ui/dialog.tsx'
import { useShortcut } from '../../ui/shortcuts.tsx'
import { toast } from '../../ui/toast.tsx'
import { recountReports } from '../counts.ts'
import { request, user } from '../session.ts'
import type { ReportContext } from './report-details.tsx'
import { ResolveForm } from './resolve-form.tsx'

type ReportActionsProps = {
  found: ReportContext
  onChange: (changes: Partial<ReportContext>) => void
}

export function ReportActions({ found, onChange }: ReportActionsProps) {
  const { report, reported, removedAt } = found
  const { message_id } = report
  const { run, isBusy } = useAction((work: () => Promise<void>) => work())
  const isOpen = report.status === 'open'
  const canRemove = isOpen && message_id !== null && removedAt === undefined

  async function removeMessage(messageId: string) {
    if (!(await askToRemove(report))) return
    await request('DELETE /v1/admin/messages/{id}', { params: { id: messageId } })
    onChange({ removedAt: new Date().toISOString() })
    toast('The message is removed.')
  }

  async function disable(person: ManagedUser) {
    if (!(await askToDisable(person))) return
    const changed = await request('PATCH /v1/admin/users/{id}', {
      params: { id: person.id },
      body: { disabled: true },
    })
    onChange({ reported: changed })
    toast(`${person.display_name} is disabled.`)
  }

  async function resolve() {
    if (!isOpen) return
    const resolved = await openDialog<ReportDetail>((close) => (
      <ResolveForm report={report} close={close} />
    ))
    if (!resolved) return
    onChange({ report: resolved })
    recountReports()
    toast('The report is resolved.')
  }

  useShortcut('e', 'Resolve the report', resolve)
  const canDisable = reported !== null && !reported.disabled && reported.id !== user.value?.id
  if (!isOpen && !canDisable) return null
  return (
    <div class="report-actions row wrap">
      {isOpen && (
        <button type="button" class="button primary" onClick={resolve} title="Resolve (e)">
          Resolve…
        </button>
      )}
      {canRemove && (
        <button
          type="button"
          class="button danger"
          aria-disabled={isBusy}
          onClick={() => run(() => removeMessage(message_id))}
        >
          Remove the message…
        </button>
      )}
      {canDisable && (
        <button
          type="button"
          class="button danger"
          aria-disabled={isBusy}
          onClick={() => run(() => disable(reported))}
        >
          Disable the person…
        </button>
      )}
    </div>
  )
}

const askToRemove = ({ reported }: ReportDetail) =>
  confirmAction({
    title: 'Remove the message?',
    text: `It stays in its place, empty, for both people. Its text and its file are deleted for good. ${reported.display_name} is not told.`,
    action: 'Remove the message',
    isDangerous: true,
  })

const askToDisable = ({ display_name: name }: ManagedUser) =>
  confirmAction({
    title: `Disable ${name}?`,
    text: 'They are logged out on every device and cannot log in until they are enabled again. What they wrote stays.',
    action: 'Disable',
    isDangerous: true,
  })
