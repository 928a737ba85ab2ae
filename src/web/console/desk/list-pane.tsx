import { ArrowDownUp, ListFilter, Reply, SearchX } from 'lucide-preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { DeskTicketListItem } from '../../../../client/src/client.ts'
import { Avatar } from '../../kit/avatar.tsx'
import { Button, IconButton } from '../../kit/button.tsx'
import { SearchField } from '../../kit/field.tsx'
import { count } from '../../kit/format.ts'
import { navigate, setQuery, withQuery } from '../../kit/router.ts'
import { Select } from '../../kit/select.tsx'
import { hasShortcuts, useShortcut } from '../../kit/shortcuts.tsx'
import { Empty } from '../../kit/states.tsx'
import { fill, texts } from '../../kit/texts.tsx'
import { Time } from '../../kit/time.tsx'
import { dataOf, type List, useList } from '../data.ts'
import { FilterSelect, PaneRows } from '../panes.tsx'
import { user } from '../session.ts'
import { hasDraft } from './draft.ts'
import { type Selection, SelectionBar } from './selection-bar.tsx'
import { assignable, listRoute, useTicketFrames, withPending } from './ticket.ts'
import {
  asksForAssignee,
  categories,
  categoryNames,
  defaultView,
  filter,
  hasFilters,
  hasOrder,
  isListed,
  type Priority,
  priorities,
  priorityNames,
  rememberOrder,
  type Status,
  statusNames,
  ticketQuery,
  views,
  viewTexts,
} from './views.ts'

const words = texts.console.desk

export type TicketList = List<DeskTicketListItem> & {
  /** Describes tickets that came or went since the list was loaded. */
  news: string | undefined
}

/** The tickets that match the URL. Rows change in place; additions and removals wait for `reload`, so that nothing
 *  moves under the pointer. */
export function useTicketList(): TicketList {
  const filterQuery = ticketQuery(filter.value)
  const me = user.value?.id ?? ''
  const key = JSON.stringify(filterQuery)
  const list = useList(listRoute, { query: filterQuery }, { limit: 100 })
  const [arrived, setArrived] = useState<ReadonlySet<string>>(new Set())
  useLayoutEffect(() => setArrived(new Set()), [key])
  // After a lost connection the list is read again: what came and went meanwhile is not new. At once, because the
  // response may lack what comes from then on.
  useLayoutEffect(() => {
    if (list.isLoading) setArrived(new Set())
  }, [list.isLoading])

  useTicketFrames((ticket) => {
    if (filterQuery.q || list.items.some(({ id }) => id === ticket.id)) return
    const next = new Set(arrived)
    if (isListed(ticket, filterQuery, me)) next.add(ticket.id)
    else next.delete(ticket.id)
    setArrived(next)
  })

  const items = list.items.map(withPending)
  const known = items.filter(({ id }) => arrived.has(id)).length
  const gone = items.filter((ticket) => !isListed(ticket, filterQuery, me)).length
  return {
    ...list,
    data: list.data && items,
    items,
    // Said in the header, where nothing moves.
    isStale: list.isStale && list.error !== undefined,
    reload() {
      setArrived(new Set())
      list.reload()
    },
    news: list.isStale ? words.changed : newsText(arrived.size - known, gone),
  }
}

function newsText(arrived: number, gone: number): string | undefined {
  const parts = [
    arrived > 0 && fill(words.new, { count: count(arrived) }),
    gone > 0 && fill(words.gone, { count: count(gone) }),
  ]
  return parts.filter(Boolean).join(', ') || undefined
}

const threeLinesRems = 5

type ListPaneProps = { list: TicketList; openId: string | undefined; selection: Selection }

export function ListPane({ list, openId, selection }: ListPaneProps) {
  const pane = useRef<HTMLElement>(null)
  useListShortcuts(pane, { list, openId, selection })
  const { view } = filter.value
  return (
    <section class="list-pane" aria-label={texts.fields.tickets} ref={pane}>
      <ListHeader list={list} selection={selection} />
      <PaneRows
        label={viewTexts[view.name].title}
        list={list}
        listKey={JSON.stringify(ticketQuery(filter.value))}
        rowRems={threeLinesRems}
        empty={<NoRows />}
        render={(ticket) => (
          <TicketRow
            ticket={ticket}
            isOpen={ticket.id === openId}
            isSelected={selection.has(ticket.id)}
            select={(isRange) => selection.toggle(ticket.id, isRange)}
          />
        )}
      />
      <SelectionBar selection={selection} />
    </section>
  )
}

/** The notice replaces the count, so that nothing below it moves. */
function ListHeader({ list, selection }: { list: TicketList; selection: Selection }) {
  const { view } = filter.value
  const amount = amountOf(view.name)
  return (
    <header class="stack tight">
      <div class="row between title">
        <h2 class="truncate grow">{viewTexts[view.name].title}</h2>
        <Select
          class="view-select"
          label={words.view}
          value={view.name}
          options={views.map(({ name }) => [
            name,
            [viewTexts[name].title, amountOf(name)].filter(Boolean).join(' · '),
          ])}
          choose={(name) => navigate(viewAddress(name))}
        />
        {!list.news && (
          <span class="amount number">{hasFilters(filter.value) ? foundText(list) : amount}</span>
        )}
        <p class="news number" role="status">
          {list.news && (
            <Button
              tone="ghost"
              onClick={() => {
                list.reload()
                focusList() // the button goes
              }}
            >
              {fill(words.show, { news: list.news })}
            </Button>
          )}
        </p>
        {list.items.length > 0 && selection.tickets.length === 0 && (
          <Button
            tone="ghost"
            class="select-all"
            title={words.selectAllHint}
            onClick={() => {
              selection.keepOnly(list.items.map(({ id }) => id))
              focusList() // the button goes
            }}
          >
            {words.selectAll}
          </Button>
        )}
      </div>
      <Filters />
    </header>
  )
}

const focusList = () => document.querySelector<HTMLElement>('.list-pane .virtual')?.focus()

/** Empty until the list is loaded. A plus means that there are more. */
const foundText = ({ data, hasMore }: TicketList) =>
  data ? count(data.length) + (hasMore ? '+' : '') : ''

export const viewAddress = (name: string) =>
  `/console/desk${name === defaultView ? '' : `?view=${name}`}`

/** Empty until it is loaded. */
function amountOf(name: (typeof views)[number]['name']): string {
  const amount = dataOf('GET /v1/admin/support/counts', {})?.[name]
  return amount === undefined ? '' : count(amount)
}

/** The views with their counts, in the sidebar. */
export function DeskViews() {
  return (
    <ul class="views" aria-label={words.viewNames}>
      {views.map(({ name, icon: Icon }) => (
        <li key={name}>
          <a
            href={viewAddress(name)}
            aria-current={name === filter.value.view.name ? 'true' : undefined}
          >
            <Icon />
            <span class="truncate">{viewTexts[name].title}</span>
            <span class="number amount">{amountOf(name)}</span>
          </a>
        </li>
      ))}
    </ul>
  )
}

const cleared = { q: undefined, priority: undefined, category: undefined, assignee: undefined }

function Filters() {
  const { q, priority, category, assignee } = filter.value
  const chosen = [priority, category, asksForAssignee(filter.value) && assignee].filter(Boolean)
  const [isOpen, setOpen] = useState(chosen.length > 0)
  const input = useRef<HTMLInputElement>(null)
  useShortcut('/', words.search, () => input.current?.focus())
  return (
    <div class="stack tight">
      <div class="row">
        <SearchField
          of={input}
          label={words.searchTickets}
          placeholder={words.search}
          value={q}
          search={(text) => setQuery({ q: text })}
        />
        <IconButton
          icon={ListFilter}
          class={chosen.length > 0 ? 'set' : ''}
          label={
            chosen.length > 0 ? fill(words.filtersSet, { count: chosen.length }) : words.filters
          }
          expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        />
        <OrderButton />
      </div>
      {isOpen && <FilterSelects />}
      {hasFilters(filter.value) && (
        <Button
          tone="ghost"
          class="clear"
          onClick={() => {
            setQuery(cleared)
            input.current?.focus()
          }}
        >
          {words.clearFilters}
        </Button>
      )}
    </div>
  )
}

function OrderButton() {
  const isTurned = filter.value.order === 'shortest_waiting'
  const isUsed = hasOrder(filter.value)
  return (
    <IconButton
      icon={ArrowDownUp}
      class={isTurned && isUsed ? 'set' : ''}
      label={words.newestFirst}
      pressed={isTurned}
      disabled={!isUsed}
      onClick={() => {
        const order = isTurned ? 'longest_waiting' : 'shortest_waiting'
        rememberOrder(order)
        setQuery({ order })
      }}
    />
  )
}

function FilterSelects() {
  const others = assignable(null).filter(([id]) => id !== user.value?.id)
  return (
    <div class="row wrap">
      <FilterSelect
        name="priority"
        label={texts.tickets.priority}
        options={priorities.map((value) => [value, priorityNames[value]])}
      />
      <FilterSelect
        name="category"
        label={texts.tickets.category}
        options={categories.map((value) => [value, categoryNames[value]])}
      />
      {asksForAssignee(filter.value) && (
        <FilterSelect
          name="assignee"
          label={words.assignee}
          options={[['me', words.me], ['none', words.nobody], ...others]}
        />
      )}
    </div>
  )
}

function NoRows() {
  if (hasFilters(filter.value)) {
    return <Empty icon={SearchX} title={words.nothingFound} text={words.nothingFoundText} />
  }
  const { icon, name } = filter.value.view
  const { empty, text } = viewTexts[name]
  return <Empty icon={icon} title={empty} text={text} />
}

function useListShortcuts(
  pane: { current: HTMLElement | null },
  { list, openId, selection }: ListPaneProps,
) {
  function step(by: number) {
    const index = list.items.findIndex(({ id }) => id === openId)
    const next = list.items[index + by]
    if (openId === undefined) pane.current?.querySelector<HTMLElement>('.item a')?.focus()
    else if (next) navigate(withQuery({}, `/console/desk/${next.id}`), 'replace')
  }
  useShortcut('j', words.keys.next, () => step(1))
  useShortcut('k', words.keys.previous, () => step(-1))
  useShortcut('x', words.keys.select, () => {
    const row = document.activeElement?.closest<HTMLElement>('[data-id]')
    const id = row?.dataset['id'] ?? openId
    if (id !== undefined) selection.toggle(id)
  })
  useShortcut('l', words.keys.news, list.reload)
}

type RowProps = {
  ticket: DeskTicketListItem
  isOpen: boolean
  isSelected: boolean
  select: (isRange: boolean) => void
}

/** A ticket that waits for an answer is darker than others. */
function TicketRow({ ticket, isOpen, isSelected, select }: RowProps) {
  const { id, subject, category, assignee, waiting_since, updated_at } = ticket
  const { display_name: owner, avatar_url } = ticket.user
  const isWaiting = waiting_since !== null
  const states = [isWaiting && 'waiting', isOpen && 'open', isSelected && 'selected']
  return (
    <div class={['item ticket-row', ...states].filter(Boolean).join(' ')} data-id={id}>
      <span class="pick">
        <Avatar name={owner} picture={avatar_url} />
        <input
          type="checkbox"
          tabIndex={hasShortcuts.value ? -1 : undefined} // `x` selects, too
          aria-label={fill(words.select, { subject })}
          checked={isSelected}
          onClick={(event) => select(event.shiftKey)}
        />
      </span>
      <a href={withQuery({}, `/console/desk/${id}`)} aria-current={isOpen ? 'true' : undefined}>
        <span class="row between">
          <strong class="truncate" dir="auto">
            {subject}
          </strong>
          <span class="when">
            {isWaiting && <span class="visually-hidden">{words.waitingSince} </span>}
            <Time at={waiting_since ?? updated_at} />
          </span>
        </span>
        <span class="row between">
          <span class="truncate">
            <bdi>{owner}</bdi> · {categoryNames[category]} · {assigneeText(assignee)}
          </span>
          <span class="row marks">
            {hasDraft(id) && <span class="badge">{words.draft}</span>}
            <PriorityMark priority={ticket.priority} />
            {showsStatus(ticket) && <StatusMark status={ticket.status} />}
          </span>
        </span>
        <LastMessage message={ticket.last_message} />
      </a>
    </div>
  )
}

/** The beginning of the message; an arrow marks one of the desk. */
function LastMessage({ message }: { message: DeskTicketListItem['last_message'] }) {
  const { body, is_admin } = message
  return (
    <span class="row last-message">
      {is_admin && <Reply />}
      <span class="visually-hidden">{is_admin ? words.fromDesk : words.fromOwner} </span>
      <span class="truncate" dir="auto">
        {body}
      </span>
    </span>
  )
}

function assigneeText(assignee: DeskTicketListItem['assignee']): string {
  if (!assignee) return words.unassigned
  return assignee.id === user.value?.id ? words.you : assignee.display_name
}

/** A view of a single status does not repeat it in each row; a waiting ticket is known to be open or in progress. */
function showsStatus({ status, waiting_since }: DeskTicketListItem): boolean {
  if (status === filter.value.view.query.status) return false
  return (status !== 'open' && status !== 'in_progress') || waiting_since === null
}

const statusTones: Record<Status, string> = {
  open: 'warning',
  in_progress: '',
  resolved: 'good',
  closed: '',
}

export function StatusMark({ status }: { status: Status }) {
  return <span class={`badge ${statusTones[status]}`}>{statusNames[status]}</span>
}

/** Normal priority has no mark. */
export function PriorityMark({ priority }: { priority: Priority }) {
  if (priority === 'normal') return null
  const tone = priority === 'urgent' ? 'danger' : priority === 'high' ? 'warning' : ''
  return <span class={`badge ${tone}`}>{priorityNames[priority]}</span>
}
