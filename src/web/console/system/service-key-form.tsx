import type { Body, ServiceKey } from '../../../../client/src/contract.ts'
import { openDialog } from '../../ui/dialog.tsx'
import { Field } from '../../ui/field.tsx'
import { FormDialog } from '../form-dialog.tsx'
import { request } from '../session.ts'
import { showOnce } from '../show-once.tsx'

type NewServiceKey = Body<'POST /v1/admin/service-keys'>
type Scope = ServiceKey['scopes'][number]

const scopes: Record<Scope, { text: string; power?: string }> = {
  notifications: { text: 'Notifies people of calls, payments and payouts.' },
  follows: { text: 'Says who follows whom.' },
  calls: { text: 'Says who calls whom, and when a call ends.' },
  users: {
    text: 'Makes accounts, and changes names, roles and who is verified.',
    power: 'Powerful: it can make hosts and lock people out.',
  },
  sessions: {
    text: 'Logs people in without their password.',
    power: 'Most powerful: it can act as anybody but an admin.',
  },
}

export const isPowerful = (scope: Scope) => scopes[scope].power !== undefined

/** Asks for the key's properties, creates it and shows the secret.
 *  @returns false when the form was cancelled */
export async function addServiceKey(): Promise<boolean> {
  const made = await openDialog<{ name: string; key: string }>((close) => (
    <FormDialog
      title="Add a service key"
      action="Add the key"
      close={() => close()}
      submit={async (given) => {
        close(await request('POST /v1/admin/service-keys', { body: keyOf(given) }))
      }}
    >
      {(problems) => <KeyFields problems={problems} />}
    </FormDialog>
  ))
  if (!made) return false
  await showOnce({
    title: `The key “${made.name}”`,
    text: 'It is shown this once, and whoever has it may use it: keep it where secrets are kept.',
    secret: made.key,
    name: 'the key',
  })
  return true
}

function keyOf(given: FormData): NewServiceKey {
  const day = String(given.get('expires_at'))
  return {
    name: String(given.get('name')),
    // The names of the checkboxes below; the service rejects an empty list.
    scopes: given.getAll('scopes') as NewServiceKey['scopes'],
    ...(day && { expires_at: new Date(`${day}T23:59:59`).toISOString() }),
  }
}

function KeyFields({ problems }: { problems: Record<string, string> }) {
  return (
    <>
      <Field label="Name" hint="Who will use it." problem={problems['name']}>
        {(attributes) => <input name="name" maxLength={80} required {...attributes} />}
      </Field>
      <fieldset class="boxes">
        <legend>Scopes</legend>
        {problems['scopes'] && (
          <p class="error" role="alert">
            Choose at least one.
          </p>
        )}
        {Object.entries(scopes).map(([scope, { text, power }]) => (
          <label key={scope}>
            <input type="checkbox" name="scopes" value={scope} />
            <span>
              <code>{scope}</code> {text} {power && <strong class="power">{power}</strong>}
            </span>
          </label>
        ))}
      </fieldset>
      <Field
        label="Last day"
        hint="The key ends with this day; empty, it does not end."
        problem={problems['expires_at']}
      >
        {(attributes) => (
          <input
            name="expires_at"
            type="date"
            min={new Date().toISOString().slice(0, 10)}
            {...attributes}
          />
        )}
      </Field>
    </>
  )
}
