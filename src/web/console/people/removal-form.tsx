import { useState } from 'preact/hooks'
import type { ManagedUser } from '../../../../client/src/contract.ts'
import { Field } from '../../ui/field.tsx'

type RemovalFormProps = { person: ManagedUser; close: (isSure?: true) => void }

/** Asks for the name before it removes the account. */
export function RemovalForm({ person, close }: RemovalFormProps) {
  const { display_name: name, email } = person
  const [typed, setTyped] = useState('')
  const isSame = typed.trim() === name

  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (isSame) close(true)
      }}
    >
      <h2>Remove {name}?</h2>
      <p class="soft">
        The account of {email} and everything in it are deleted for good. Messages stay with those
        who got them, shown as from a deleted user. This cannot be undone.
      </p>
      <Field label={`Type “${name}” to go on`}>
        {(attributes) => (
          <input
            autocomplete="off"
            spellcheck={false}
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
            ref={(input) => input?.focus()}
            {...attributes}
          />
        )}
      </Field>
      <div class="actions">
        <button type="button" class="button" onClick={() => close()}>
          Cancel
        </button>
        <button type="submit" class="button danger" disabled={!isSame}>
          Remove for good
        </button>
      </div>
    </form>
  )
}
