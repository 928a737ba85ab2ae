import { LifeBuoy, Plus } from 'lucide-preact'
import type { Client, TicketListItem } from '../../../client/src/client.ts'
import { Empty } from '../ui/states.tsx'
import { Time } from '../ui/time.tsx'
import { texts } from './language.tsx'
import { ListEnd } from './list-end.tsx'
import { cursorPages, openList } from './lists.ts'
import { useMe } from './me.ts'
import { linkTo } from './place.ts'
import { listen } from './session.ts'
import { useStore } from './store.ts'

/** Newest first, kept up to date by the channel. */
function openTickets(client: Client) {
  const list = openList<TicketListItem>(cursorPages(client, 'GET /v1/support/tickets'), {
    isBefore: (a, b) => a.id > b.id,
    isNewer: (known, item) => known.updated_at > item.updated_at,
  })
  const close = listen(client, {
    status: ({ status }) => status === 'open' && void list.load(),
    ticket_updated: ({ ticket }) => list.put([ticket]),
  })
  void list.load()
  return { ...list, close }
}

export function TicketList() {
  const { client, side } = useMe()
  const text = texts.value.tickets
  const tickets = useStore(() => openTickets(client))
  const items = tickets.items.value
  return (
    <div class="scroll">
      <div class="begin">
        <a class="button primary" href={linkTo(side, 'tickets', 'new')}>
          <Plus />
          {text.create}
        </a>
      </div>
      {tickets.isLoaded.value && items.length === 0 && (
        <Empty icon={LifeBuoy} title={text.none}>
          <p>{text.noneText}</p>
        </Empty>
      )}
      <ul class="rows" aria-label={text.label}>
        {items.map((ticket) => (
          <TicketRow key={ticket.id} ticket={ticket} />
        ))}
      </ul>
      <ListEnd list={tickets} />
    </div>
  )
}

function TicketRow({ ticket }: { ticket: TicketListItem }) {
  const { side } = useMe()
  const text = texts.value.tickets
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
  return <span class={`badge ${tones[status]}`}>{texts.value.tickets.statuses[status]}</span>
}
