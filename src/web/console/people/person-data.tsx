import type { ManagedUser } from '../../../../client/src/contract.ts'
import { useAction } from '../../ui/action.ts'
import { confirmAction, openDialog } from '../../ui/dialog.tsx'
import { toast } from '../../ui/toast.tsx'
import { request } from '../session.ts'
import { RemovalForm } from './removal-form.tsx'

type PersonDataProps = { person: ManagedUser; isOnlyAdmin: boolean; onRemove: () => void }

export function PersonData({ person, isOnlyAdmin, onRemove }: PersonDataProps) {
  const { id, disabled, display_name: name } = person
  const { run, isBusy } = useAction((work: () => Promise<void>) => work())

  async function mailReset() {
    if (!(await askToMail(person))) return
    await request('POST /v1/admin/users/{id}/password-reset', { params: { id } })
    toast('The link is mailed.')
  }

  async function exportAll() {
    const everything = await request('GET /v1/admin/users/{id}/export', { params: { id } })
    download(`hostline-${id}.json`, everything)
    toast('The export is downloaded.')
  }

  async function remove() {
    const isSure = await openDialog<true>((close) => <RemovalForm person={person} close={close} />)
    if (!isSure) return
    await request('DELETE /v1/admin/users/{id}', { params: { id } })
    onRemove()
    toast(`${name} is removed.`)
  }

  return (
    <section class="stack tight" aria-label="Account and data">
      <h3>Account and data</h3>
      <div class="row wrap">
        <button
          type="button"
          class="button"
          disabled={disabled}
          aria-disabled={isBusy}
          title={disabled ? 'Disabled people get no mail.' : undefined}
          onClick={() => run(mailReset)}
        >
          Mail a password reset…
        </button>
        <button type="button" class="button" aria-disabled={isBusy} onClick={() => run(exportAll)}>
          Export everything
        </button>
        <button
          type="button"
          class="button danger"
          disabled={isOnlyAdmin}
          aria-disabled={isBusy}
          onClick={() => run(remove)}
        >
          Remove…
        </button>
      </div>
      <p class="soft small">An export is a JSON file with everything that is kept about {name}.</p>
    </section>
  )
}

const askToMail = ({ email }: ManagedUser) =>
  confirmAction({
    title: 'Mail a password reset?',
    text: `${email} gets a link for a new password. The old one works until then.`,
    action: 'Mail the link',
  })

function download(name: string, content: object) {
  const file = new Blob([JSON.stringify(content, null, 2)], { type: 'application/json' })
  const link = document.createElement('a')
  link.href = URL.createObjectURL(file)
  link.download = name
  link.click()
  URL.revokeObjectURL(link.href)
}
