import { LifeBuoy, Plus } from 'lucide-preact'
import { useEffect } from 'preact/hooks'
import type { TicketListItem } from '../../../client/src/client.ts'
import { useList } from '../ui/resource.ts'
import { Empty, Failure, Loading } from '../ui/states.tsx'
import { Time } from '../ui/time.tsx'
import { say } from './language.tsx'
import { partsOf } from './lists.ts'
import { useMe } from './me.ts'
import { linkTo } from './place.ts'
import { listen } from './session.ts'

/** The tickets of this person, kept up to date by the channel. */
function useTickets() {
  const { client } = useMe()
  const list = useList<TicketListItem>('tickets', partsOf(client, 'GET /v1/support/tickets'))
  const { update, reload } = list
  useEffect(
    () =>
      listen(client, {
        status: ({ status }) => status === 'open' && reload(),
        ticket_updated: ({ ticket }) =>
          update((items) => [ticket, ...items.filter(({ id }) => id !== ticket.id)]),
      }),
    [client],
  )
  return list
}

export function TicketList() {
  const { side } = useMe()
  const text = say.value.tickets
  const { items, error, isLoading, hasMore, loadMore, reload } = useTickets()
  const isEmpty = items.length === 0
  return (
    <div class="scroll">
      <div class="begin">
        <a class="button primary" href={linkTo(side, 'tickets', 'new')}>
          <Plus />
          {text.create}
        </a>
      </div>
      {isEmpty && error !== undefined && <Failure error={error} retry={reload} />}
      {isEmpty && error === undefined && isLoading && <Loading />}
      {isEmpty && error === undefined && !isLoading && (
        <Empty icon={LifeBuoy} title={text.none}>
          <p>{text.noneText}</p>
        </Empty>
      )}
      <ul class="rows" aria-label={text.label}>
        {items.map((ticket) => (
          <TicketRow key={ticket.id} ticket={ticket} />
        ))}
      </ul>
      {hasMore && (
        <button type="button" class="button ghost more" onClick={loadMore}>
          {say.value.more}
        </button>
      )}
    </div>
  )
}

function TicketRow({ ticket }: { ticket: TicketListItem }) {
  const { side } = useMe()
  const text = say.value.tickets
  const { id, subject, status, priority, category, updated_at } = ticket
  return (
    <li>
      <a href={linkTo(side, 'tickets', id)} class="row-link">
        <span class="row-text">
          <span class="row between">
            <span class="row-title truncate">{subject}</span>
            <StatusBadge status={status} />
          </span>
          <span class="row between small soft">
            <span class="truncate">
              {text.categories[category]} · {text.priorities[priority]}
            </span>
            <Time at={updated_at} />
          </span>
        </span>
      </a>
    </li>
  )
}

const tones = { open: 'accent', in_progress: 'warning', resolved: 'good', closed: '' } as const

export function StatusBadge({ status }: { status: TicketListItem['status'] }) {
  return <span class={`badge ${tones[status]}`}>{say.value.tickets.statuses[status]}</span>
}
