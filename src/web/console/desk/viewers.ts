import { useEffect, useState } from 'preact/hooks'
import { client, status } from '../session.ts'

/** Tickets that are only passed are not announced: a held key would exceed the limit of frames. */
const dwellMilliseconds = 1_000
const announceMilliseconds = 20_000
const shownMilliseconds = 30_000

/** The ids of the other admins who have the ticket open. Tells them that this one has, while the page is visible. */
export function useViewers(ticketId: string): string[] {
  const [ids, setIds] = useState<string[]>([])
  const isOpen = status.value === 'open'
  useEffect(() => {
    if (!isOpen) return
    const leaving = new Map<string, ReturnType<typeof setTimeout>>()
    const announce = () => {
      if (!document.hidden) client.sendFrame({ type: 'viewing', ticket_id: ticketId })
    }
    function leave(id: string) {
      leaving.delete(id)
      setIds([...leaving.keys()])
    }
    const endListening = client.on('ticket_viewed', ({ ticket_id, user_id }) => {
      if (ticket_id !== ticketId) return
      const isNew = !leaving.has(user_id)
      clearTimeout(leaving.get(user_id))
      leaving.set(user_id, setTimeout(leave, shownMilliseconds, user_id))
      if (!isNew) return
      setIds([...leaving.keys()])
      // The newcomer need not wait for the next announcement.
      announce()
    })
    const dwell = setTimeout(announce, dwellMilliseconds)
    const repeat = setInterval(announce, announceMilliseconds)
    document.addEventListener('visibilitychange', announce)
    return () => {
      endListening()
      clearTimeout(dwell)
      clearInterval(repeat)
      document.removeEventListener('visibilitychange', announce)
      for (const timer of leaving.values()) clearTimeout(timer)
      setIds([])
    }
  }, [ticketId, isOpen])
  return ids
}
