import { Field } from '../../ui/field.tsx'
import { roleOf, roleTitles } from '../people/roles.ts'
import { AddresseePicker } from './addressee-picker.tsx'
import { changeDraft, draft } from './draft.ts'

const audiences = [
  ['all', 'Everybody'],
  ['role', 'A role'],
  ['users', 'Chosen people'],
] as const

export function AudienceFields({ problem }: { problem: string | undefined }) {
  const { audience, role } = draft.value
  return (
    <>
      <fieldset class="choices across">
        <legend>Audience</legend>
        {audiences.map(([value, title]) => (
          <label key={value} class="choice">
            <input
              type="radio"
              name="audience"
              value={value}
              checked={audience === value}
              onChange={() => changeDraft({ audience: value })}
            />
            {title}
          </label>
        ))}
      </fieldset>
      {audience === 'role' && (
        <Field label="Role">
          {(attributes) => (
            <select
              value={role}
              onChange={(event) => changeDraft({ role: roleOf(event.currentTarget.value) ?? role })}
              {...attributes}
            >
              {Object.entries(roleTitles).map(([value, title]) => (
                <option key={value} value={value}>
                  {title}
                </option>
              ))}
            </select>
          )}
        </Field>
      )}
      {audience === 'users' && <AddresseePicker problem={problem} />}
    </>
  )
}
