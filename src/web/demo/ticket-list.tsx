import { LifeBuoy, Plus } from 'lucide-preact'
import type { TicketListItem } from '../../../client/src/client.ts'
import { useStore } from '../../../client/src/preact.ts'
import { openTickets } from '../../../client/src/state.ts'
import { Empty } from '../kit/states.tsx'
import { texts as all } from '../kit/texts.tsx'
import { Time } from '../kit/time.tsx'
import { texts } from './language.tsx'
import { ListEnd } from './list-end.tsx'
import { useMe } from './me.ts'
import { linkTo } from './place.ts'

export function TicketList() {
  const { client, side } = useMe()
  const text = texts.value.tickets
  const tickets = useStore(() => openTickets(client), [client])
  if (!tickets) return null
  const { items } = tickets
  return (
    <div class="scroll">
      <div class="begin">
        <a class="button primary" href={linkTo(side, 'tickets', 'new')}>
          <Plus />
          {text.create}
        </a>
      </div>
      {tickets.status === 'ready' && items.length === 0 && (
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
              {all.tickets.categories[category]} · {all.tickets.priorities[priority]}
            </span>
            <Time at={updated_at} />
          </span>
        </span>
      </a>
    </li>
  )
}

const tones = { open: 'warning', in_progress: '', resolved: 'good', closed: '' } as const

export function StatusBadge({ status }: { status: TicketListItem['status'] }) {
  return <span class={`badge ${tones[status]}`}>{all.tickets.statuses[status]}</span>
}
