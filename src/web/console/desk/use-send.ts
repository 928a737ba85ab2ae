import { useRef, useState } from 'preact/hooks'
import type { DeskTicket } from '../../../../client/src/client.ts'
import { ApiError } from '../../../../client/src/errors.ts'
import { toastError } from '../../ui/toast.tsx'
import type { Draft, Kind } from './draft.ts'
import { attemptOf, type Reply, sendNote, sendReply } from './sending.ts'
import { withMessage, withNote } from './timeline.ts'

type Parts = {
  ticket: DeskTicket
  seenId: string | undefined
  update: (change: (ticket: DeskTicket) => DeskTicket) => void
  refresh: () => void
}

/** Sends a reply or note exactly once; after a failure the draft stays. */
export function useSend({ ticket, update, refresh }: Parts) {
  const [isBusy, setBusy] = useState(false)
  const [staleSince, setStaleSince] = useState<string>()
  const knownNotes = useRef<Set<string>>(undefined)

  async function reply(given: Reply, keep: (tried: Draft['tried']) => void) {
    const tried = attemptOf(given.draft)
    keep(tried)
    const message = await sendReply(ticket.id, tried.clientId, given)
    update((before) => withMessage(before, message))
    setStaleSince(undefined)
  }

  async function note({ draft }: Reply) {
    const known = knownNotes.current
    knownNotes.current = known ?? new Set(ticket.notes.map(({ id }) => id))
    const stored = await sendNote(ticket.id, draft.text, known)
    knownNotes.current = undefined
    update((before) => withNote(before, stored))
  }

  /** @param keep stores the attempt with the draft
   *  @returns whether it was sent */
  async function send(kind: Kind, given: Reply, keep: (tried: Draft['tried']) => void) {
    if (isBusy) return false
    setBusy(true)
    try {
      await (kind === 'note' ? note(given) : reply(given, keep))
      return true
    } catch (error) {
      if (isStale(error)) setStaleSince(given.lastMessageId)
      else toastError(error)
      return false
    } finally {
      setBusy(false)
      refresh()
    }
  }

  return { send, isBusy, staleSince }
}

const isStale = (error: unknown) => error instanceof ApiError && error.reason === 'stale_ticket'
