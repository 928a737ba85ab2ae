import { X } from 'lucide-preact'
import { useState } from 'preact/hooks'
import type { ManagedUser } from '../../../../client/src/contract.ts'
import { errorText } from '../../ui/errors.ts'
import { useResource } from '../../ui/resource.ts'
import { SearchField } from '../people/search-field.tsx'
import { request } from '../session.ts'
import { changeDraft, draft } from './draft.ts'

const maxPeople = 1_000

/** Finds people by name or address, and keeps who was picked. */
export function AddresseePicker({ problem }: { problem: string | undefined }) {
  const [q, setQ] = useState('')
  const { people } = draft.value
  const found = useResource(q === '' ? undefined : q, async (signal) => {
    const query = { q, disabled: false, per_page: 6 }
    return (await request('GET /v1/admin/users', { query, signal })).data
  })
  const add = ({ id, display_name: name }: ManagedUser) =>
    changeDraft({ people: [...people, { id, name }].slice(0, maxPeople) })

  return (
    <fieldset class="field picker">
      <legend class="label">People</legend>
      {people.length > 0 && (
        <ul class="row wrap" aria-label="Picked people">
          {people.map(({ id, name }) => (
            <li key={id} class="badge">
              <span class="truncate">{name}</span>
              <button
                type="button"
                class="button ghost icon"
                aria-label={`Leave out ${name}`}
                onClick={() => changeDraft({ people: people.filter((one) => one.id !== id) })}
              >
                <X />
              </button>
            </li>
          ))}
        </ul>
      )}
      <SearchField
        label="Search people to add"
        placeholder="Name, address or id"
        value={q}
        onSearch={setQ}
      />
      {q !== '' && <Found data={found.data} error={found.error} onAdd={add} />}
      {problem && <span class="problem">{problem}</span>}
    </fieldset>
  )
}

type FoundProps = {
  data: ManagedUser[] | undefined
  error: unknown
  onAdd: (person: ManagedUser) => void
}

function Found({ data, error, onAdd }: FoundProps) {
  const picked = new Set(draft.value.people.map(({ id }) => id))
  const others = data?.filter(({ id }) => !picked.has(id))
  return (
    <>
      <span class="small soft" role="status">
        {error !== undefined && errorText(error).text}
        {error === undefined && (others === undefined ? 'Searching…' : foundText(others.length))}
      </span>
      <ul class="picker-found">
        {others?.map((person) => (
          <li key={person.id}>
            <button type="button" class="button ghost" onClick={() => onAdd(person)}>
              <span class="truncate">{person.display_name}</span>
              <span class="truncate soft">{person.email}</span>
            </button>
          </li>
        ))}
      </ul>
    </>
  )
}

const foundText = (number: number) =>
  number === 0 ? 'Nobody else is found.' : 'Press a name to add it.'
