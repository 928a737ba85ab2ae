import { SearchX } from 'lucide-preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { navigate, withQuery } from '../../ui/router.ts'
import { useShortcut } from '../../ui/shortcuts.tsx'
import { Empty, Failure } from '../../ui/states.tsx'
import { VirtualList } from '../../ui/virtual-list.tsx'
import { useBulk } from './bulk.ts'
import { amountOf, ViewSelect } from './desk-views.tsx'
import { ListFilters } from './list-filters.tsx'
import type { Selection } from './selection.ts'
import { SelectionBar } from './selection-bar.tsx'
import type { TicketList } from './ticket-list.ts'
import { TicketRow } from './ticket-row.tsx'
import { filter, hasFilters } from './views.ts'

const rowRems = 5.25
const rowHeight = rowRems * Number.parseFloat(getComputedStyle(document.documentElement).fontSize)

type ListPaneProps = { list: TicketList; openId: string | undefined; selection: Selection }

export function ListPane({ list, openId, selection }: ListPaneProps) {
  const pane = useRef<HTMLElement>(null)
  const bulk = useBulk(list.replace)
  useListShortcuts(pane, { list, openId, selection })
  useLayoutEffect(() => {
    const index = list.items.findIndex(({ id }) => id === openId)
    if (index >= 0) bringIntoSight(pane.current?.querySelector('.virtual'), index * rowHeight)
  }, [openId, list.isLoaded])
  return (
    <section class="list-pane" aria-label="Tickets" ref={pane}>
      <ListHeader list={list} />
      <div class="list">
        <Rows list={list} openId={openId} selection={selection} />
      </div>
      {(selection.tickets.length > 0 || bulk.run) && (
        <SelectionBar selection={selection} bulk={bulk} />
      )}
    </section>
  )
}

/** The notice replaces the count, so that nothing below it moves. */
function ListHeader({ list }: { list: TicketList }) {
  const { view } = filter.value
  return (
    <header>
      <div class="row between title">
        <h2 class="truncate">{view.title}</h2>
        <ViewSelect />
        {!list.news && !hasFilters(filter.value) && (
          <span class="amount number">{amountOf(view.name)}</span>
        )}
        <p class="news number" role="status">
          {list.news && (
            <button type="button" onClick={list.reload}>
              {list.news} · Show
            </button>
          )}
        </p>
      </div>
      <ListFilters />
    </header>
  )
}

function Rows({ list, openId, selection }: ListPaneProps) {
  if (list.items.length === 0) return <NoRows list={list} />
  const mayLoad = list.hasMore && list.error === undefined
  return (
    <>
      <VirtualList
        label={filter.value.view.title}
        items={list.items}
        keyOf={({ id }) => id}
        rowHeight={rowHeight}
        {...(mayLoad && { onEnd: list.loadMore })}
        render={(ticket) => (
          <TicketRow
            ticket={ticket}
            isOpen={ticket.id === openId}
            isSelected={selection.has(ticket.id)}
            select={(isRange) => selection.toggle(ticket.id, isRange)}
          />
        )}
      />
      {list.error !== undefined && (
        <div class="more-failed">
          <Failure error={list.error} retry={list.retry} />
        </div>
      )}
    </>
  )
}

function NoRows({ list }: { list: TicketList }) {
  if (list.error !== undefined) return <Failure error={list.error} retry={list.reload} />
  if (!list.isLoaded) return <RowSkeletons />
  if (hasFilters(filter.value)) {
    return (
      <Empty icon={SearchX} title="Nothing found">
        <p>No ticket of this view fits the search and the filters.</p>
      </Empty>
    )
  }
  const { icon, empty } = filter.value.view
  return (
    <Empty icon={icon} title={empty[0]}>
      <p>{empty[1]}</p>
    </Empty>
  )
}

function RowSkeletons() {
  return (
    <div role="status">
      <span class="visually-hidden">Loading…</span>
      {Array.from({ length: 7 }, (_, row) => (
        <div class="ticket-row" key={row} style={{ height: `${rowHeight}px` }}>
          <span class="skeleton round" />
          <span class="lines">
            <span class="skeleton" style={{ width: `${62 - ((row * 13) % 30)}%` }} />
            <span class="skeleton" style={{ width: `${94 - ((row * 17) % 30)}%` }} />
            <span class="skeleton" style={{ width: '38%' }} />
          </span>
        </div>
      ))}
    </div>
  )
}

function useListShortcuts(
  pane: { current: HTMLElement | null },
  { list, openId, selection }: ListPaneProps,
) {
  function step(by: number) {
    const index = list.items.findIndex(({ id }) => id === openId)
    const next = list.items[index + by]
    if (openId === undefined) pane.current?.querySelector<HTMLElement>('.ticket-row a')?.focus()
    else if (next) navigate(withQuery({}, `/console/desk/${next.id}`))
  }
  useShortcut('j', 'Next ticket', () => step(1))
  useShortcut('k', 'Previous ticket', () => step(-1))
  useShortcut('x', 'Select the ticket', () => {
    const row = document.activeElement?.closest<HTMLElement>('[data-ticket]')
    const id = row?.dataset['ticket'] ?? openId
    if (id !== undefined) selection.toggle(id)
  })
  useShortcut('l', 'Show what is new in the list', list.reload)
}

function bringIntoSight(frame: HTMLElement | null | undefined, top: number) {
  if (!frame) return
  const bottom = top + rowHeight
  if (top < frame.scrollTop) frame.scrollTop = top
  else if (bottom > frame.scrollTop + frame.clientHeight) {
    frame.scrollTop = bottom - frame.clientHeight
  }
}
