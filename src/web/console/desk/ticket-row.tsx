import type { DeskTicketListItem } from '../../../../client/src/client.ts'
import { Avatar } from '../../ui/avatar.tsx'
import { withQuery } from '../../ui/router.ts'
import { Time } from '../../ui/time.tsx'
import { user } from '../session.ts'
import { PriorityMark, StatusMark } from './marks.tsx'
import { filter } from './views.ts'
import { categoryNames } from './words.ts'

type RowProps = {
  ticket: DeskTicketListItem
  isOpen: boolean
  isSelected: boolean
  select: (isRange: boolean) => void
}

export function TicketRow({ ticket, isOpen, isSelected, select }: RowProps) {
  const { id, subject, category, assignee, waiting_since, updated_at } = ticket
  const owner = ticket.user.display_name
  const isWaiting = waiting_since !== null
  const states = [isWaiting && 'waiting', isOpen && 'open', isSelected && 'selected']
  return (
    <div class={['ticket-row', ...states].filter(Boolean).join(' ')} data-ticket={id}>
      <span class="pick">
        <Avatar name={owner} />
        <input
          type="checkbox"
          tabIndex={-1}
          aria-label={`Select ${subject}`}
          checked={isSelected}
          onClick={(event) => select(event.shiftKey)}
        />
      </span>
      <a href={withQuery({}, `/console/desk/${id}`)} aria-current={isOpen ? 'true' : undefined}>
        <span class="row between">
          <span class="who truncate">{owner}</span>
          <span class="when">
            {isWaiting && <span class="visually-hidden">Waiting since </span>}
            <Time at={waiting_since ?? updated_at} />
          </span>
        </span>
        <span class="subject truncate" dir="auto">
          {subject}
        </span>
        <span class="row between">
          <span class="truncate">
            {categoryNames[category]} · {assigneeText(assignee)}
          </span>
          <span class="row marks">
            <PriorityMark priority={ticket.priority} />
            {showsStatus(ticket) && <StatusMark status={ticket.status} />}
          </span>
        </span>
      </a>
    </div>
  )
}

function assigneeText(assignee: DeskTicketListItem['assignee']): string {
  if (!assignee) return 'Unassigned'
  return assignee.id === user.value?.id ? 'You' : assignee.display_name
}

/** A view of a single status does not repeat it in each row; a waiting ticket is known to be open. */
function showsStatus({ status, waiting_since }: DeskTicketListItem): boolean {
  if (status === filter.value.view.query.status) return false
  return status !== 'open' || waiting_since === null
}
