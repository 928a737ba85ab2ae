import type { AccessUpdate, ManagedUser } from '../../../../client/src/contract.ts'
import { useAction } from '../../ui/action.ts'
import { confirmAction, openDialog } from '../../ui/dialog.tsx'
import { toast } from '../../ui/toast.tsx'
import { request, user } from '../session.ts'
import { RoleForm } from './role-form.tsx'
import { type Role, roleTitles } from './roles.ts'

type PersonAccessProps = {
  person: ManagedUser
  isOnlyAdmin: boolean
  onChange: (person: ManagedUser) => void
}

export function PersonAccess({ person, isOnlyAdmin, onChange }: PersonAccessProps) {
  const { id, role, disabled, email_verified, totp, display_name: name } = person
  const { run, isBusy } = useAction((work: () => Promise<void>) => work())

  async function change(body: AccessUpdate, done: string) {
    onChange(await request('PATCH /v1/admin/users/{id}', { params: { id }, body }))
    toast(done)
  }

  async function changeRole() {
    const chosen = await openDialog<Role>((close) => <RoleForm person={person} close={close} />)
    if (chosen === undefined || chosen === role) return
    await change({ role: chosen }, `${name} is now: ${roleTitles[chosen]}.`)
  }

  async function verify() {
    if (!(await askToVerify(person))) return
    await change({ email_verified: true }, 'The address is verified.')
  }

  async function disable() {
    if (!(await askToDisable(person))) return
    await change({ disabled: true }, `${name} is disabled.`)
  }

  async function enable() {
    if (!(await askToEnable(person))) return
    await change({ disabled: false }, `${name} is enabled.`)
  }

  async function removeFactor() {
    if (!(await askToRemoveFactor(person))) return
    await request('DELETE /v1/admin/users/{id}/totp', { params: { id } })
    onChange({ ...person, totp: false })
    toast('The second factor is removed.')
  }

  return (
    <section class="stack tight" aria-label="Access">
      <h3>Access</h3>
      <OwnNotice person={person} isOnlyAdmin={isOnlyAdmin} />
      <div class="row wrap">
        <button
          type="button"
          class="button"
          disabled={isOnlyAdmin}
          aria-disabled={isBusy}
          onClick={() => run(changeRole)}
        >
          Change the role…
        </button>
        {!email_verified && (
          <button type="button" class="button" aria-disabled={isBusy} onClick={() => run(verify)}>
            Verify the address…
          </button>
        )}
        {totp && id !== user.value?.id && (
          <button
            type="button"
            class="button danger"
            aria-disabled={isBusy}
            onClick={() => run(removeFactor)}
          >
            Remove the second factor…
          </button>
        )}
        <button
          type="button"
          class={`button ${disabled ? '' : 'danger'}`}
          disabled={isOnlyAdmin}
          aria-disabled={isBusy}
          onClick={() => run(disabled ? enable : disable)}
        >
          {disabled ? 'Enable…' : 'Disable…'}
        </button>
      </div>
    </section>
  )
}

function OwnNotice({ person, isOnlyAdmin }: { person: ManagedUser; isOnlyAdmin: boolean }) {
  if (person.id !== user.value?.id) return null
  return (
    <p class="notice">
      {isOnlyAdmin
        ? 'This is you, and there is no other admin: you can be neither demoted nor disabled nor removed. Make somebody else an admin first.'
        : 'This is you: if you change your role, disable or remove yourself, you lose this console at once.'}
    </p>
  )
}

const askToVerify = ({ email }: ManagedUser) =>
  confirmAction({
    title: 'Verify the address?',
    text: `${email} counts as theirs from now on, without the link that was mailed. If nobody has verified it before, who registered with it may be a stranger: their password, sessions and profile go, and the owner sets a password by a link.`,
    action: 'Verify',
  })

const askToRemoveFactor = ({ display_name: name }: ManagedUser) =>
  confirmAction({
    title: `Remove the second factor of ${name}?`,
    text: 'They log in with the password alone, and are told by mail. Make sure that it is they who ask.',
    action: 'Remove the second factor',
    isDangerous: true,
  })

const askToDisable = ({ display_name: name }: ManagedUser) =>
  confirmAction({
    title: `Disable ${name}?`,
    text: 'They are logged out on every device and cannot log in until they are enabled again. What they wrote stays.',
    action: 'Disable',
    isDangerous: true,
  })

const askToEnable = ({ display_name: name }: ManagedUser) =>
  confirmAction({
    title: `Enable ${name}?`,
    text: 'They can log in again. Sessions of before stay ended.',
    action: 'Enable',
  })
