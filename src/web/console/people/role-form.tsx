import type { ManagedUser } from '../../../../client/src/contract.ts'
import { type Role, roleMeanings, roleOf, roleTitles } from './roles.ts'

type RoleFormProps = { person: ManagedUser; close: (role?: Role) => void }

export function RoleForm({ person, close }: RoleFormProps) {
  const { display_name, email_verified, role } = person
  // The service derives which of the two it is from the verified address.
  const user = email_verified ? 'verified_user' : 'user'

  function submit(event: SubmitEvent) {
    event.preventDefault()
    const chosen = new FormData(event.currentTarget as HTMLFormElement).get('role')
    close(roleOf(String(chosen)))
  }

  return (
    <form onSubmit={submit}>
      <h2>Change the role of {display_name}</h2>
      <fieldset class="choices">
        <legend class="visually-hidden">Role</legend>
        {(['guest', user, 'host', 'admin'] as const).map((choice) => (
          <label key={choice} class="choice">
            <input type="radio" name="role" value={choice} defaultChecked={choice === role} />
            <span class="entry-lines">
              <strong>{roleTitles[choice]}</strong>
              <span class="small soft">{roleMeanings[choice]}</span>
            </span>
          </label>
        ))}
      </fieldset>
      <div class="actions">
        <button type="button" class="button" onClick={() => close()}>
          Cancel
        </button>
        <button type="submit" class="button primary">
          Change the role
        </button>
      </div>
    </form>
  )
}
