import { UserRound } from 'lucide-preact'
import type { CursorPage, ManagedUser } from '../../../../client/src/contract.ts'
import { useList } from '../../ui/resource.ts'
import { query } from '../../ui/router.ts'
import { Empty } from '../../ui/states.tsx'
import { Panes, selectedId } from '../panes.tsx'
import { request } from '../session.ts'
import { PeopleFilters } from './people-filters.tsx'
import { PeopleList } from './people-list.tsx'
import { PersonDetails } from './person-details.tsx'
import { roleOf } from './roles.ts'
import './people.css'

export function PeoplePage() {
  const filters = filtersIn(query.value)
  const key = JSON.stringify(filters)
  const list = useList<ManagedUser>(key, async (cursor, signal) => {
    const part = { ...filters, limit: 100, ...(cursor !== undefined && { cursor }) }
    const response = await request('GET /v1/admin/users', { query: part, signal })
    return response as CursorPage<ManagedUser> // with `limit` the response has a cursor
  })
  const id = selectedId()

  const show = (changed: ManagedUser) =>
    list.update((people) => people.map((person) => (person.id === changed.id ? changed : person)))
  const drop = (gone: string) =>
    list.update((people) => people.filter((person) => person.id !== gone))
  return (
    <Panes
      area="people"
      title="People"
      list={
        <>
          <PeopleFilters />
          <PeopleList list={list} isFiltered={key !== '{}'} />
        </>
      }
      detail={
        id === undefined ? (
          <Empty icon={UserRound} title="Nobody chosen">
            <p>Choose somebody to see the profile and what can be done.</p>
          </Empty>
        ) : (
          <PersonDetails key={id} id={id} onChange={show} onRemove={drop} />
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
