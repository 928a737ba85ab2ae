import { Type } from '@sinclair/typebox'
import type { Write } from '../../db/writer.ts'
import type { Clock } from '../../lib/clock.ts'
import { AppError } from '../../lib/errors.ts'
import { type NewId, parseId } from '../../lib/ids.ts'
import { cutAtLimit, decodeCursor, type Listing, type ListRange } from '../../lib/list-range.ts'
import type { TicketCategory, TicketPriority } from '../../lib/vocabulary.ts'
import type { Announcements } from './announcements.ts'
import type { DeskStore } from './desk-store.ts'
import { type TicketDetail, ticketView } from './model.ts'
import type { TicketMessageRow, TicketRow, TicketStore } from './store.ts'
import type { TicketChangesMaker } from './ticket-changes.ts'

/** What a person wants help with. */
export type TicketRequest = {
  subject: string
  body: string
  category: TicketCategory
  priority: TicketPriority
  clientId: string | null
}

export type Replayable<T> = { value: T; replayed: boolean }

export type OwnerService = ReturnType<typeof createOwnerService>

type OwnerServiceOptions = {
  store: TicketStore
  desk: Pick<DeskStore, 'get'>
  changes: TicketChangesMaker
  announce: Announcements
  write: Write
  newId: NewId
  clock: Clock
  reopenDays: number
  /** Notes, inside the write, that the operator is told of a new ticket. */
  tellOperator: (ticketId: string) => void
}

const day = 86_400_000
const ownPosition = Type.Tuple([Type.Integer({ minimum: 1 })])

/** What people do with their own tickets (spec 4.3, decisions 7). */
export function createOwnerService(options: OwnerServiceOptions) {
  const { store, desk, changes, announce, write, newId, clock } = options

  /** @throws not_found · forbidden (somebody else's, whoever asks) */
  function own(userId: string, idText: string): TicketRow {
    const ticket = store.find(parseId(idText) ?? '')
    if (!ticket) throw new AppError('not_found')
    if (ticket.userId !== userId) throw new AppError('forbidden')
    return ticket
  }

  function detailOf(ticket: TicketRow): TicketDetail {
    return { ticket, messages: store.listMessages(ticket.id) }
  }

  // The ticket as it was answered first, whatever has become of it.
  function findOpened(userId: string, request: TicketRequest): TicketDetail | undefined {
    const { clientId, subject, body, category, priority } = request
    const first = clientId === null ? undefined : changes.findByKey(userId, clientId)
    if (!first) return undefined
    const ticket = store.find(first.ticketId)
    if (first.seq > 1 || !ticket) throw new AppError('conflict')
    const before = store.findFirstPriorityChange(ticket.id)?.from ?? ticket.priority
    const isSame = ticket.subject === subject && first.body === body
    if (!isSame || ticket.category !== category || before !== priority) {
      throw new AppError('conflict')
    }
    const updatedAt = first.createdAt
    const opened = { ...ticket, priority, status: 'open', updatedAt } as const
    return { ticket: opened, messages: [first] }
  }

  function open(userId: string, request: TicketRequest) {
    const { subject, body, category, priority, clientId } = request
    const id = newId()
    store.insert({ id, userId, subject, category, priority, createdAt: clock.now() })
    const draft = { authorId: userId, isAdmin: false, body, clientId }
    const { ticket, message } = changes.append(own(userId, id), draft)
    options.tellOperator(id)
    return { ticket, messages: [message] }
  }

  // Choice: an answer to a closed ticket opens it again for some days; later it is a matter of its own.
  function reopened(ticket: TicketRow, userId: string): TicketRow {
    const { status, settledAt } = ticket
    if (status === 'open' || status === 'in_progress') return ticket
    const until = (settledAt ?? 0) + options.reopenDays * day
    const isOver = options.reopenDays === 0 || clock.now() > until
    if (status === 'closed' && isOver) throw new AppError('conflict')
    return changes.change(ticket, { status: 'open' }, userId)
  }

  return {
    /** Opens a ticket. The same `clientId` with the same content gives the first answer again.
     *  @throws conflict (`clientId` was used for something else) */
    async open(userId: string, request: TicketRequest): Promise<Replayable<TicketDetail>> {
      const { value, item } = await write(() => {
        const earlier = findOpened(userId, request)
        if (earlier) return { value: earlier, item: undefined }
        const opened = open(userId, request)
        return { value: opened, item: desk.get(opened.ticket.id) }
      })
      if (item) announce.created(item)
      return { value, replayed: item === undefined }
    },

    /** A person's tickets, newest first. */
    list(userId: string, range: ListRange): Listing<TicketRow> {
      const total = store.countOfUser(userId)
      if (range.form === 'page') {
        const until = total - range.offset
        const rows = until > 0 ? store.listOfUser(userId, until - range.perPage, until) : []
        return { form: 'page', rows, total }
      }
      const { cursor, limit } = range
      const until = cursor === undefined ? total : decodeCursor(cursor, ownPosition)[0] - 1
      const rows = store.listOfUser(userId, until - limit - 1, until)
      return cutAtLimit(rows, limit, (row) => [row.userSeq])
    },

    /** @throws not_found · forbidden (somebody else's) */
    get: (userId: string, id: string): TicketDetail => detailOf(own(userId, id)),

    /** Writes into a ticket, which opens it again when it was settled. The same `clientId` with the same content gives
     *  the first message again.
     *  @throws not_found · forbidden (somebody else's) · conflict (closed too long ago; `clientId` was used for
     *  something else) */
    async reply(
      userId: string,
      id: string,
      { body, clientId }: { body: string; clientId: string | null },
    ): Promise<Replayable<TicketMessageRow>> {
      const draft = { authorId: userId, isAdmin: false, body, clientId }
      const { value, item } = await write(() => {
        const ticket = own(userId, id)
        const earlier = changes.findReplayed(ticket.id, draft)
        if (earlier) return { value: earlier, item: undefined }
        const { message } = changes.append(reopened(ticket, userId), draft)
        return { value: message, item: desk.get(ticket.id) }
      })
      if (item) announce.updated(item)
      return { value, replayed: item === undefined }
    },

    /** Closes a ticket; one that is closed stays as it is.
     *  @throws not_found · forbidden (somebody else's) */
    async close(userId: string, id: string): Promise<TicketDetail> {
      const { detail, item } = await write(() => {
        const before = own(userId, id)
        const ticket = changes.change(before, { status: 'closed' }, userId)
        const isChanged = ticket !== before
        return { detail: detailOf(ticket), item: isChanged ? desk.get(ticket.id) : undefined }
      })
      if (item) announce.updated(item)
      return detail
    },

    /** What a person asked and was answered, for their own export. */
    *exportTickets(userId: string) {
      for (const ticket of store.eachOfUser(userId)) yield ticketView(detailOf(ticket))
    },
  }
}
