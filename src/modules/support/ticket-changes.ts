import type { Clock } from '../../lib/clock.ts'
import { AppError } from '../../lib/errors.ts'
import type { NewId } from '../../lib/ids.ts'
import type { TicketField, TicketPriority, TicketStatus } from '../../lib/vocabulary.ts'
import type { TicketChanges, TicketMessageRow, TicketRow, TicketStore } from './store.ts'

/** What somebody wants of a ticket; what is absent stays. */
export type Wanted = {
  status?: TicketStatus | undefined
  priority?: TicketPriority | undefined
  assigneeId?: string | null | undefined
}

/** What somebody writes into a ticket. */
export type TicketDraft = {
  authorId: string
  /** Whether it comes from the desk. */
  isAdmin: boolean
  body: string
  /** The author's idempotency key. */
  clientId: string | null
}

export type TicketChangesMaker = ReturnType<typeof createTicketChanges>

/** A ticket is answered whole: what has grown beyond this is continued in another one. */
const mostMessages = 500

type TicketChangesOptions = { store: TicketStore; newId: NewId; clock: Clock }

/** The rules of spec 3.1 and decisions 7 that hold whoever acts. Everything here is SQL, inside a write. */
export function createTicketChanges({ store, newId, clock }: TicketChangesOptions) {
  function note(ticketId: string, actorId: string | null, entry: Change) {
    store.insertHistory({ id: newId(), ticketId, at: clock.now(), actorId, ...entry })
  }

  /** Changes what differs from what is wanted, with a row of history for each difference; `actorId` is null for what
   *  happens by itself. */
  function change(ticket: TicketRow, wanted: Wanted, actorId: string | null): TicketRow {
    const differences = differencesOf(ticket, wanted)
    if (differences.length === 0) return ticket
    for (const entry of differences) note(ticket.id, actorId, entry)
    const now = clock.now()
    const { status = ticket.status, priority = ticket.priority } = wanted
    const assigneeId = wanted.assigneeId === undefined ? ticket.assigneeId : wanted.assigneeId
    const times: TicketChanges = status === ticket.status ? {} : timesOf(status, ticket, now)
    if (isTakenUpAgain(ticket, status) && actorId !== ticket.userId) {
      times.waitingSince = unansweredSince(ticket)
    }
    return store.update(ticket, { status, priority, assigneeId, ...times, updatedAt: now })
  }

  // What the desk opens again waits as it did before: an owner who wrote last has no answer yet.
  function unansweredSince({ id, messageCount }: TicketRow): number | null {
    const newest = store.findMessageAt(id, messageCount)
    return newest && !newest.isAdmin ? newest.createdAt : null
  }

  /** Appends a message. The owner waits from the first one without an answer on; an answer of the desk ends that.
   *  @throws conflict: the ticket is full */
  function append(ticket: TicketRow, draft: TicketDraft) {
    if (ticket.messageCount >= mostMessages) throw new AppError('conflict')
    const now = clock.now()
    const seq = ticket.messageCount + 1
    const message = { ...draft, id: newId(), ticketId: ticket.id, seq, createdAt: now }
    store.insertMessage(message)
    const times: TicketChanges = draft.isAdmin
      ? { waitingSince: null, firstResponseAt: ticket.firstResponseAt ?? now }
      : { waitingSince: ticket.waitingSince ?? now }
    // A resolved ticket closes after a silence, which ends here.
    if (ticket.status === 'resolved') times.settledAt = now
    return {
      message,
      ticket: store.update(ticket, { messageCount: seq, ...times, updatedAt: now }),
    }
  }

  /** What the author wrote before under the same key.
   *  @throws conflict: the key was used for something else */
  function findReplayed(ticketId: string, draft: TicketDraft): TicketMessageRow | undefined {
    const { clientId } = draft
    const first = clientId === null ? undefined : findByKey(draft.authorId, clientId)
    if (!first) return undefined
    const isSame = first.ticketId === ticketId && first.seq > 1
    if (isSame && first.body === draft.body && first.isAdmin === draft.isAdmin) return first
    throw new AppError('conflict')
  }

  function findByKey(authorId: string, clientId: string) {
    return store.findMessageByClientId(authorId, clientId)
  }

  return { change, append, findReplayed, findByKey }
}

type Change = { field: TicketField; from: string | null; to: string | null }

function isTakenUpAgain({ settledAt }: TicketRow, status: TicketStatus) {
  return settledAt !== null && status !== 'resolved' && status !== 'closed'
}

function differencesOf(ticket: TicketRow, { status, priority, assigneeId }: Wanted): Change[] {
  const changes = [
    { field: 'status', from: ticket.status, to: status },
    { field: 'priority', from: ticket.priority, to: priority },
    { field: 'assignee', from: ticket.assigneeId, to: assigneeId },
  ] as const
  return changes.flatMap(({ field, from, to }) =>
    to === undefined || to === from ? [] : [{ field, from, to }],
  )
}

// Nobody waits for an answer to what is settled; what is taken up again has not been settled.
function timesOf(status: TicketStatus, { waitingSince }: TicketRow, now: number): TicketChanges {
  const isSettled = status === 'resolved' || status === 'closed'
  return isSettled ? { settledAt: now, waitingSince: null } : { settledAt: null, waitingSince }
}
