import { SearchX, UsersRound } from 'lucide-preact'
import { useRef } from 'preact/hooks'
import type { ManagedUser } from '../../../../client/src/contract.ts'
import { Avatar } from '../../ui/avatar.tsx'
import type { List } from '../../ui/resource.ts'
import { navigate, withQuery } from '../../ui/router.ts'
import { Empty, Failure, Loading } from '../../ui/states.tsx'
import { VirtualList } from '../../ui/virtual-list.tsx'
import { selectedId } from '../panes.tsx'
import { PersonMarks } from './person-marks.tsx'

type PeopleListProps = { list: List<ManagedUser>; isFiltered: boolean }

/** People in the order of registration. While a new filter loads, the old result stays. */
export function PeopleList({ list, isFiltered }: PeopleListProps) {
  const { items, error, isLoading } = list
  const before = useRef(items)
  if (!isLoading) before.current = items
  const shown = items.length === 0 && isLoading ? before.current : items
  if (items.length === 0 && error !== undefined) {
    return <Failure error={error} retry={list.retry} />
  }
  if (shown.length === 0 && isLoading) return <Loading rows={8} />
  if (shown.length === 0) return <Nobody isFiltered={isFiltered} />
  return (
    <>
      <div class="pane-rows" aria-busy={isLoading}>
        <VirtualList
          label="People"
          items={shown}
          keyOf={({ id }) => id}
          rowHeight={60}
          render={(person) => <Row person={person} />}
          {...(error === undefined && { onEnd: list.loadMore })}
        />
      </div>
      {error !== undefined && <Failure error={error} retry={list.retry} />}
    </>
  )
}

function Nobody({ isFiltered }: { isFiltered: boolean }) {
  if (!isFiltered) {
    return (
      <Empty icon={UsersRound} title="Nobody is here yet">
        <p>Everybody who registers is listed here.</p>
      </Empty>
    )
  }
  return (
    <Empty icon={SearchX} title="Nobody found">
      <p>A search finds any part of a name or an address, and whole ids.</p>
      <button
        type="button"
        class="button"
        onClick={() =>
          navigate(
            withQuery({
              q: undefined,
              role: undefined,
              disabled: undefined,
              email_verified: undefined,
            }),
          )
        }
      >
        Show everybody
      </button>
    </Empty>
  )
}

function Row({ person }: { person: ManagedUser }) {
  const { id, display_name, email } = person
  return (
    <a
      class="entry"
      href={withQuery({}, `/console/people/${id}`)}
      data-id={id}
      aria-current={id === selectedId() ? 'true' : undefined}
    >
      <Avatar name={display_name} />
      <span class="entry-lines">
        <span class="row between">
          <strong class="truncate">{display_name}</strong>
          <PersonMarks person={person} />
        </span>
        <span class="truncate">{email}</span>
      </span>
    </a>
  )
}
