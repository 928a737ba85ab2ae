import { useEffect, useRef } from 'preact/hooks'
import type { DeskTicketListItem } from '../../../../client/src/client.ts'
import { client } from '../session.ts'

/** Calls `work` with each ticket that is created, changed or replied to. */
export function useTicketFrames(work: (ticket: DeskTicketListItem) => void): void {
  const latest = useRef(work)
  latest.current = work
  useEffect(() => {
    // Frames for the owner of a ticket have no `user` field; admins get one that has.
    const pass = ({ ticket }: { ticket: object }) =>
      'user' in ticket && latest.current(ticket as DeskTicketListItem)
    const ends = [client.on('ticket_created', pass), client.on('ticket_updated', pass)]
    return () => {
      for (const end of ends) end()
    }
  }, [])
}
