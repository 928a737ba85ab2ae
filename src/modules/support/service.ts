import { Type } from '@sinclair/typebox'
import type { Core } from '../../core.ts'
import { day, timeLeft } from '../../lib/clock.ts'
import { AppError, throttled } from '../../lib/errors.ts'
import { getById } from '../../lib/ids.ts'
import { type Listing, type ListRange, listByPosition } from '../../lib/list-range.ts'
import { type MessageRequest, type TicketDetail, ticketView } from './model.ts'
import type { TicketMessageRow, TicketRow } from './store.ts'
import type { SupportParts } from './support.ts'
import type { Replayable, RequestedChanges, TicketRequest } from './ticket-changes.ts'

export type TicketService = ReturnType<typeof createTicketService>

const perDayVerified = 20
const perDayUnverified = 5

export function createTicketService(core: Core, parts: SupportParts) {
  const { write, newId, clock } = core
  const { store, changes, takeText, ticketsPerDay } = parts
  const { reopenDays } = core.config.support

  /** @throws not_found · not_owner (also for admins) */
  function own(userId: string, idText: string): TicketRow {
    const ticket = getById(idText, store.find)
    if (ticket.userId !== userId) throw new AppError('not_owner')
    return ticket
  }

  function detailOf(ticket: TicketRow): TicketDetail {
    return { ticket, shown: store.listNewest(ticket) }
  }

  function mustBeWithinQuota(userId: string) {
    const perDay = ticketsPerDay ?? (store.isVerified(userId) ? perDayVerified : perDayUnverified)
    const first = store.findOpenedBefore(userId, perDay - 1)
    const wait = timeLeft(first?.createdAt, day, clock.now())
    if (wait > 0) throw throttled('quota_exceeded', wait)
  }

  // Choice: a reply reopens a settled ticket for some days. Later the owner must open a new ticket.
  function reopening({ status, settledAt }: TicketRow): RequestedChanges {
    if (status === 'open' || status === 'in_progress') return {}
    const until = (settledAt ?? 0) + reopenDays * day
    const isOver = reopenDays === 0 || clock.now() > until
    if (status === 'closed' && isOver) throw new AppError('ticket_closed')
    return { status: 'open' }
  }

  return {
    /** Opens a ticket. A repeated call with the same `clientId` and content returns the first result.
     *  @throws idempotency_mismatch (same `clientId`, other content) · quota_exceeded (20 a day, 5 for an
     *  unverified address) · text_quota_exceeded · validation_error (`attachments`) */
    open(userId: string, { content, ...message }: TicketRequest) {
      const draft = { ...message, authorId: userId, isAdmin: false }
      return write((): Replayable<TicketDetail> => {
        const earlier = changes.findOpened(userId, content, draft)
        if (earlier) return { value: detailOf(earlier), replayed: true }
        mustBeWithinQuota(userId)
        takeText(userId, content.subject, message.body)
        const row = { id: newId(), userId, ...content, createdAt: clock.now() }
        return { value: detailOf(changes.open(row, draft)), replayed: false }
      })
    },

    list: (userId: string, range: ListRange): Listing<TicketRow> =>
      listByPosition(range, {
        name: 'own_tickets',
        shape: Type.Integer(),
        count: () => store.countOfUser(userId),
        list: (rows) => store.listOfUser(userId, rows),
        position: ({ userSeq }) => userSeq,
      }),

    get: (userId: string, id: string): TicketDetail => detailOf(own(userId, id)),

    /** Newest first.
     *  @throws not_found · not_owner */
    listMessages: (userId: string, id: string, range: ListRange): Listing<TicketMessageRow> =>
      store.listRange(own(userId, id), range),

    /** Adds a message to a ticket and reopens a settled one. A repeated call with the same `clientId` and content returns
     *  the first message.
     *  @throws not_found · not_owner · ticket_closed (too long ago) · ticket_full · idempotency_mismatch (same `clientId`,
     *  other content) · text_quota_exceeded · validation_error (`attachments`) */
    reply(userId: string, id: string, message: MessageRequest) {
      const draft = { ...message, authorId: userId, isAdmin: false }
      return write((): Replayable<TicketMessageRow> => {
        const ticket = own(userId, id)
        const earlier = changes.findReplayed(ticket.id, draft)
        if (earlier) return { value: earlier, replayed: true }
        takeText(userId, message.body)
        return { value: changes.reply(ticket, draft, reopening(ticket)), replayed: false }
      })
    },

    /** Closes a ticket. Idempotent.
     *  @throws not_found · not_owner */
    close: (userId: string, id: string): Promise<TicketDetail> =>
      write(() => detailOf(changes.change(own(userId, id), { status: 'closed' }, userId))),

    *exportTickets(userId: string) {
      for (const ticket of store.eachOfUser(userId)) {
        const all = store.listMessages(ticket.id, 0, ticket.messageCount).reverse()
        yield ticketView({ ticket, shown: { messages: all, before: null } })
      }
    },
  }
}
