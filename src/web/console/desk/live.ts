import { useEffect, useRef } from 'preact/hooks'
import type { DeskTicketListItem } from '../../../../client/src/client.ts'
import { client } from '../session.ts'

/** Calls `work` with each ticket that somebody opens, changes or writes into. */
export function useTicketFrames(work: (ticket: DeskTicketListItem) => void): void {
  const latest = useRef(work)
  latest.current = work
  useEffect(() => {
    // The owner of a ticket is told of it in another form, which lacks the person.
    const pass = ({ ticket }: { ticket: object }) =>
      'user' in ticket && latest.current(ticket as DeskTicketListItem)
    const ends = [client.on('ticket_created', pass), client.on('ticket_updated', pass)]
    return () => {
      for (const end of ends) end()
    }
  }, [])
}
