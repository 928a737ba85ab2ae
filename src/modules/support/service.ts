import { Type } from '@sinclair/typebox'
import type { Core } from '../../core.ts'
import { AppError } from '../../lib/errors.ts'
import { parseId } from '../../lib/ids.ts'
import { cutAtLimit, decodeCursor, type Listing, type ListRange } from '../../lib/list-range.ts'
import { type TicketDetail, ticketView } from './model.ts'
import type { TicketMessageRow, TicketRow, TicketStore } from './store.ts'
import type { Replayable, TicketChangesMaker, Wanted } from './ticket-changes.ts'

/** What a person wants help with. */
type TicketRequest = Pick<TicketRow, 'subject' | 'category' | 'priority'> & {
  body: string
  clientId: string | null
}

type Parts = { store: TicketStore; changes: TicketChangesMaker }

export type TicketService = ReturnType<typeof createTicketService>

const day = 86_400_000
const ownPosition = Type.Tuple([Type.Literal('own_tickets'), Type.Integer({ minimum: 1 })])

/** What people do with their own tickets. */
export function createTicketService(core: Core, { store, changes }: Parts) {
  const { write, newId, clock, outbox } = core
  const { inbox, reopenDays } = core.config.support

  /** @throws not_found · not_owner (whoever asks) */
  function own(userId: string, idText: string): TicketRow {
    const id = parseId(idText)
    const ticket = id === undefined ? undefined : store.find(id)
    if (!ticket) throw new AppError('not_found')
    if (ticket.userId !== userId) throw new AppError('not_owner')
    return ticket
  }

  function detailOf(ticket: TicketRow): TicketDetail {
    return { ticket, messages: store.listMessages(ticket.id) }
  }

  /** The ticket as it was answered first, whatever has become of it. */
  function findOpened(userId: string, request: TicketRequest): TicketDetail | undefined {
    const { clientId, subject, body, category, priority } = request
    const first = clientId === null ? undefined : store.findMessageByClientId(userId, clientId)
    if (!first) return undefined
    const ticket = store.find(first.ticketId)
    if (first.seq > 1 || !ticket) throw new AppError('idempotency_mismatch')
    const before = store.findFirstPriorityChange(ticket.id)?.from ?? ticket.priority
    const isSame = ticket.subject === subject && first.body === body
    if (!isSame || ticket.category !== category || before !== priority) {
      throw new AppError('idempotency_mismatch')
    }
    const updatedAt = first.createdAt
    const opened = { ...ticket, priority, status: 'open', updatedAt } as const
    return { ticket: opened, messages: [first] }
  }

  function open(userId: string, request: TicketRequest): TicketDetail {
    const { subject, body, category, priority, clientId } = request
    const row = { id: newId(), userId, subject, category, priority, createdAt: clock.now() }
    if (inbox !== undefined) outbox.add('support_inbox_mail', { ticket_id: row.id })
    return changes.open(row, { authorId: userId, isAdmin: false, body, clientId })
  }

  // Choice: a reply opens a closed ticket again for some days; later it takes a new ticket.
  function reopening({ status, settledAt }: TicketRow): Wanted {
    if (status === 'open' || status === 'in_progress') return {}
    const until = (settledAt ?? 0) + reopenDays * day
    const isOver = reopenDays === 0 || clock.now() > until
    if (status === 'closed' && isOver) throw new AppError('ticket_closed')
    return { status: 'open' }
  }

  return {
    /** Opens a ticket. The same `clientId` with the same content gives the first answer again.
     *  @throws idempotency_mismatch (`clientId` was used for something else) */
    open: (userId: string, request: TicketRequest): Promise<Replayable<TicketDetail>> =>
      write(() => {
        const earlier = findOpened(userId, request)
        return { value: earlier ?? open(userId, request), replayed: earlier !== undefined }
      }),

    /** A person's tickets, newest first. */
    list(userId: string, range: ListRange): Listing<TicketRow> {
      const total = store.countOfUser(userId)
      if (range.form === 'page') {
        const until = total - range.offset
        const rows = until > 0 ? store.listOfUser(userId, until - range.perPage, until) : []
        return { form: 'page', rows, total }
      }
      const { cursor, limit } = range
      const until = cursor === undefined ? total : decodeCursor(cursor, ownPosition)[1] - 1
      const rows = store.listOfUser(userId, until - limit - 1, until)
      return cutAtLimit(rows, limit, (row) => ['own_tickets', row.userSeq])
    },

    /** @throws not_found · not_owner */
    get: (userId: string, id: string): TicketDetail => detailOf(own(userId, id)),

    /** Writes into a ticket, which opens it again when it was settled. The same `clientId` with the same content gives
     *  the first message again.
     *  @throws not_found · not_owner · ticket_closed (too long ago) · ticket_full · idempotency_mismatch (`clientId`
     *  was used for something else) */
    reply(
      userId: string,
      id: string,
      message: { body: string; clientId: string | null },
    ): Promise<Replayable<TicketMessageRow>> {
      const draft = { ...message, authorId: userId, isAdmin: false }
      return write(() => {
        const ticket = own(userId, id)
        const earlier = changes.findReplayed(ticket.id, draft)
        const value = earlier ?? changes.reply(ticket, draft, reopening(ticket))
        return { value, replayed: earlier !== undefined }
      })
    },

    /** Closes a ticket; one that is closed stays as it is.
     *  @throws not_found · not_owner */
    close: (userId: string, id: string): Promise<TicketDetail> =>
      write(() => detailOf(changes.change(own(userId, id), { status: 'closed' }, userId))),

    /** What a person asked and was answered, for their own export. */
    *exportTickets(userId: string) {
      for (const ticket of store.eachOfUser(userId)) yield ticketView(detailOf(ticket))
    },
  }
}
