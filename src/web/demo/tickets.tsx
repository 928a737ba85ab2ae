import { NewTicketForm } from './new-ticket.tsx'
import { TicketList } from './ticket-list.tsx'
import { TicketView } from './ticket-view.tsx'

/** @param id of a ticket, or `new` */
export function Tickets({ id }: { id: string | undefined }) {
  if (id === undefined) return <TicketList />
  return id === 'new' ? <NewTicketForm /> : <TicketView key={id} id={id} />
}
