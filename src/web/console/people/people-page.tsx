import { SearchX, UserRound, UsersRound } from 'lucide-preact'
import { useRef } from 'preact/hooks'
import type { ManagedUser } from '../../../../client/src/contract.ts'
import { Button } from '../../kit/button.tsx'
import { SearchField } from '../../kit/field.tsx'
import { navigate, query, setQuery, withQuery } from '../../kit/router.ts'
import type { Options } from '../../kit/select.tsx'
import { useShortcut } from '../../kit/shortcuts.tsx'
import { Empty } from '../../kit/states.tsx'
import { texts } from '../../kit/texts.tsx'
import { type List, useList } from '../data.ts'
import { FilterSelect, ItemRow, PaneRows, Panes, selectedId } from '../panes.tsx'
import { PersonDetails, PersonMarks } from './person.tsx'
import { roleOf, roleOptions } from './roles.ts'

const words = texts.console.people

export function PeoplePage() {
  const filters = filtersIn(query.value)
  const list = useList('GET /v1/admin/users', { query: filters }, { limit: 100 })
  const id = selectedId()
  return (
    <Panes
      area="people"
      list={
        <>
          <Filters />
          <PeopleList list={list} filters={filters} />
        </>
      }
      detail={
        id === undefined ? (
          <Empty icon={UserRound} {...words.noneChosen} />
        ) : (
          <PersonDetails key={id} id={id} />
        )
      }
    />
  )
}

function filtersIn(params: URLSearchParams) {
  const q = params.get('q')?.trim()
  const role = roleOf(params.get('role'))
  const disabled = flagIn(params.get('disabled'))
  const isVerified = flagIn(params.get('email_verified'))
  return {
    ...(q && { q }),
    ...(role && { role }),
    ...(disabled !== undefined && { disabled }),
    ...(isVerified !== undefined && { email_verified: isVerified }),
  }
}

function flagIn(text: string | null): boolean | undefined {
  return text === 'true' || text === 'false' ? text === 'true' : undefined
}

/** Search by name or address, role and state, all kept in the URL. */
function Filters() {
  const input = useRef<HTMLInputElement>(null)
  useShortcut('/', words.search, () => input.current?.focus())
  const { enabled, disabled, verified, notVerified } = words
  return (
    <search class="pane-filters stack tight">
      <SearchField
        of={input}
        label={words.search}
        placeholder={words.searchHint}
        value={query.value.get('q') ?? ''}
        search={(text) => setQuery({ q: text })}
      />
      <div class="row wrap">
        <FilterSelect name="role" label={texts.fields.role} options={roleOptions} />
        <FilterSelect
          name="disabled"
          label={texts.fields.state}
          options={flags(disabled, enabled)}
        />
        <FilterSelect
          name="email_verified"
          label={words.address}
          options={flags(verified, notVerified)}
        />
      </div>
    </search>
  )
}

const flags = (yes: string, no: string): Options<string> => [
  ['true', yes],
  ['false', no],
]

const cleared = { q: undefined, role: undefined, disabled: undefined, email_verified: undefined }

/** People in the order of registration. While a new filter loads, the old result stays. */
function PeopleList({ list, filters }: { list: List<ManagedUser>; filters: object }) {
  const isFiltered = Object.keys(filters).length > 0
  return (
    <PaneRows
      label={texts.console.areas.people}
      list={list}
      listKey={JSON.stringify(filters)}
      render={(person) => <Row person={person} />}
      empty={
        isFiltered ? (
          <Empty icon={SearchX} {...words.nobodyFound}>
            <Button onClick={() => navigate(withQuery(cleared))}>{words.showEverybody}</Button>
          </Empty>
        ) : (
          <Empty icon={UsersRound} {...words.nobody} />
        )
      }
    />
  )
}

function Row({ person }: { person: ManagedUser }) {
  const { id, display_name, email, avatar_url } = person
  return (
    <ItemRow
      id={id}
      address={`/console/people/${id}`}
      name={display_name}
      picture={avatar_url}
      end={<PersonMarks person={person} />}
    >
      {email}
    </ItemRow>
  )
}
