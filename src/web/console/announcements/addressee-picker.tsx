import { X } from 'lucide-preact'
import { useRef, useState } from 'preact/hooks'
import type { ManagedUser } from '../../../../client/src/contract.ts'
import { errorText } from '../../ui/errors.ts'
import { useResource } from '../../ui/resource.ts'
import { SearchField } from '../people/search-field.tsx'
import { request } from '../session.ts'
import { type Addressee, changeDraft, draft } from './draft.ts'

const maxPeople = 1_000

export function AddresseePicker({ problem }: { problem: string | undefined }) {
  const [q, setQ] = useState('')
  const { people } = draft.value
  const found = useResource(q === '' ? undefined : q, async (signal) => {
    const query = { q, disabled: false, per_page: 6 }
    return (await request('GET /v1/admin/users', { query, signal })).data
  })
  const picked = new Set(people.map(({ id }) => id))
  const others = found.data?.filter(({ id }) => !picked.has(id))
  const frame = useRef<HTMLFieldSetElement>(null)

  function change(next: Addressee[]) {
    changeDraft({ people: next })
    // The pressed button disappears with its row.
    frame.current?.querySelector<HTMLElement>('[type=search]')?.focus()
  }
  const add = ({ id, display_name: name }: ManagedUser) =>
    change([...people, { id, name }].slice(0, maxPeople))

  // Enter picks the first result; it must not submit the form.
  function pickFirst(event: KeyboardEvent) {
    if (event.key !== 'Enter' || !(event.target as Element).matches('[type=search]')) return
    event.preventDefault()
    const [first] = others ?? []
    if (first) add(first)
  }

  return (
    <fieldset class="field picker" ref={frame} onKeyDown={pickFirst}>
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
                onClick={() => change(people.filter((one) => one.id !== id))}
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
      {q !== '' && <Found people={others} error={found.error} onAdd={add} />}
      {problem && <span class="problem">{problem}</span>}
    </fieldset>
  )
}

type FoundProps = {
  people: ManagedUser[] | undefined
  error: unknown
  onAdd: (person: ManagedUser) => void
}

function Found({ people, error, onAdd }: FoundProps) {
  return (
    <>
      <span class="small soft" role="status">
        {error !== undefined && errorText(error).text}
        {error === undefined && (people === undefined ? 'Searching…' : foundText(people.length))}
      </span>
      <ul class="picker-found">
        {people?.map((person) => (
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
  number === 0 ? 'Nobody else is found.' : 'Press a name to add it; Enter adds the first.'
