import { LifeBuoy, Plus } from 'lucide-preact'
import type { TicketListItem } from '../../../client/src/client.ts'
import { useStore } from '../../../client/src/preact.ts'
import { openTickets } from '../../../client/src/state.ts'
import { texts } from '../kit/texts.tsx'
import { Time } from '../kit/time.tsx'
import { List } from './list.tsx'
import { linkTo } from './place.ts'
import { useMe } from './session.ts'

export function TicketList() {
  const { client, side } = useMe()
  const text = texts.demo.tickets
  const tickets = useStore(() => openTickets(client), [client])
  if (!tickets) return null
  return (
    <div class="scroll">
      <div class="stack tight begin">
        <a class="button primary" href={linkTo(side, 'tickets', 'new')}>
          <Plus />
          {text.create}
        </a>
      </div>
      <List
        label={texts.demo.tabs.tickets}
        list={tickets}
        icon={LifeBuoy}
        words={text}
        render={(ticket) => <TicketRow ticket={ticket} />}
      />
    </div>
  )
}

function TicketRow({ ticket }: { ticket: TicketListItem }) {
  const { side } = useMe()
  const { id, subject, status, priority, category, updated_at } = ticket
  return (
    <a href={linkTo(side, 'tickets', id)} class="row-link">
      <span class="entry-lines row-text">
        <span class="row between">
          <span class="row-title truncate">{subject}</span>
          <StatusBadge status={status} />
        </span>
        <span class="row between small soft">
          <span class="truncate">
            {texts.tickets.categories[category]} · {texts.tickets.priorities[priority]}
          </span>
          <Time at={updated_at} />
        </span>
      </span>
    </a>
  )
}

const tones = { open: 'warning', in_progress: '', resolved: 'good', closed: '' } as const

export function StatusBadge({ status }: { status: TicketListItem['status'] }) {
  return <span class={`badge ${tones[status]}`}>{texts.tickets.statuses[status]}</span>
}
