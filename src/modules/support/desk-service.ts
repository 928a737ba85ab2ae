import { Type } from '@sinclair/typebox'
import type { Core } from '../../core.ts'
import type { AuditAction, ByUser } from '../../db/audit-trail.ts'
import { AppError, invalidField } from '../../lib/errors.ts'
import { findById, getById } from '../../lib/ids.ts'
import { lazy } from '../../lib/lazy.ts'
import { type Listing, type ListRange, listByPosition } from '../../lib/list-range.ts'
import { type TicketStatus, ticketStatuses } from '../../lib/vocabulary.ts'
import type { DeskItem, NoteItem, TicketFilter } from './desk-store.ts'
import type { DeskDetail, MessageRequest, TicketCounts, TicketOrder } from './model.ts'
import { matchOf } from './search-store.ts'
import type { AuthoredMessage, TicketMessageRow, TicketRow } from './store.ts'
import type { SupportParts } from './support.ts'
import type { Replayable, RequestedChanges, TicketRequest } from './ticket-changes.ts'

export type DeskUpdate = RequestedChanges & { assigneeField: string }

type NoteRequest = Pick<MessageRequest, 'body' | 'fileUrls'>

type Answer = MessageRequest & {
  status?: TicketStatus | undefined
  lastMessageId?: string | undefined
}

export type DeskListing = {
  filter: TicketFilter
  q: string | undefined
  order: TicketOrder
}

export type DeskService = ReturnType<typeof createDeskService>

type Action = Extract<AuditAction, `ticket_${string}`>

/** Choice: numbered pages end at 200 hits. Later pages are hardly used, and counting slows down with the number of tickets. */
const maxCounted = 200

const notClosed = ticketStatuses.filter((status) => status !== 'closed')

const codeForm = /^#([0-9a-z]{6})$/i

export function createDeskService(core: Core, parts: SupportParts) {
  const { write, afterCommit, hub, audit, newId, clock } = core
  const { store, desk, search, changes, views, notify, attach, detach } = parts

  const queue = (filter: TicketFilter, order: TicketOrder, range: ListRange): Listing<DeskItem> =>
    listByPosition(range, {
      // A cursor of one order has no place in the other.
      name: order === 'longest_waiting' ? 'queue' : order,
      shape: Type.Tuple([Type.Integer(), Type.Integer()]),
      count: () => desk.count(filter),
      list: (rows) => desk.list(filter, rows, order),
      position: ({ queueKey, n }): [number, number] => [queueKey, n],
    })

  // Choice: newest ticket first, so that the index scan stops when the page is full.
  function find(match: string | undefined, filter: TicketFilter, range: ListRange) {
    const hits = (limit: number, before?: number) =>
      match === undefined ? [] : search.list(match, filter, { limit, before })
    const counted = lazy(() => hits(maxCounted))
    return listByPosition(range, {
      name: 'search',
      shape: Type.Integer(),
      count: () => counted().length,
      list({ limit, offset, before }) {
        const ns = range.form === 'page' ? counted() : hits(limit, before)
        return desk.listByNumber(ns.slice(offset, offset + limit))
      },
      position: ({ n }) => n,
    })
  }

  const mustFind = (idText: string): TicketRow => getById(idText, store.find)

  function detailOf(ticket: TicketRow): DeskDetail {
    const { id } = ticket
    return {
      item: desk.get(id),
      shown: store.listNewest(ticket),
      notes: desk.listNewestNotes(id),
      history: desk.listNewestHistory(id),
    }
  }

  const record = (action: Action, by: ByUser, id: string) =>
    audit.record({ action, ...by, target: { type: 'ticket', id } })

  const mustFindNote = (idText: string, noteIdText: string): NoteItem => {
    const ticketId = mustFind(idText).id
    return getById(noteIdText, (noteId) => desk.findNote(ticketId, noteId))
  }

  function noteChanged(action: Action, by: ByUser, ticketId: string) {
    record(action, by, ticketId)
    const item = desk.get(ticketId)
    afterCommit(() => hub.sendToAdmins(views.deskFrame('ticket_updated', item)))
  }

  function mustBeNewest(ticket: TicketRow, messageId: string) {
    const seen = findById(messageId, (id) => store.findMessage(ticket.id, id))
    if (!seen) throw invalidField('last_message_id', 'unknown_message')
    if (seen.seq < ticket.messageCount) throw new AppError('stale_ticket')
  }

  /** @param text of the notification; without it that of a reply */
  function notifyOwner(
    { id, userId, subject }: TicketRow,
    text: 'ticket_opened' | 'ticket_resolved' | undefined,
    message?: Pick<TicketMessageRow, 'id' | 'body'>,
  ) {
    if (!text && !message) return
    notify(userId, {
      type: 'support_reply',
      text,
      ...(message && { body: message.body }),
      values: { subject },
      data: { ticket_id: id, ...(message && { message_id: message.id }) },
      ...(message && { dedupeKey: `support_reply:${message.id}` }),
    })
  }

  const resolution = (before: TicketRow, after: TicketRow) =>
    before.status !== 'resolved' && after.status === 'resolved' ? 'ticket_resolved' : undefined

  return {
    list({ filter, q, order }: DeskListing, range: ListRange): Listing<DeskItem> {
      if (q === undefined || q.trim() === '') return queue(filter, order, range)
      const [, code] = codeForm.exec(q.trim()) ?? []
      if (code !== undefined) return queue({ ...filter, code: code.toUpperCase() }, order, range)
      return find(matchOf(q, search.listOwners), filter, range)
    },

    counts(adminId: string): TicketCounts {
      const ofStatus = (status: TicketStatus) => desk.count({ statuses: [status] })
      return {
        waiting: desk.count({ isWaiting: true }),
        mine: desk.count({ assigneeId: adminId, statuses: notClosed }),
        unassigned: desk.count({ assigneeId: null, statuses: notClosed }),
        open: ofStatus('open'),
        in_progress: ofStatus('in_progress'),
        resolved: ofStatus('resolved'),
        closed: ofStatus('closed'),
        all: desk.count({}),
      }
    },

    get: (id: string): DeskDetail => detailOf(mustFind(id)),

    /** Opens a ticket for a user with a message of the admin, to whom it is assigned, and notifies the user. A repeated call with
     *  the same `clientId` and content opens nothing and returns the ticket as it is now.
     *  @throws validation_error (nobody has this `userId`; `attachments`) · idempotency_mismatch (same `clientId`,
     *  other content) */
    open(by: ByUser, userId: string, { content, ...message }: TicketRequest) {
      const adminId = by.actor.id
      const draft = { ...message, authorId: adminId, isAdmin: true }
      return write((): Replayable<DeskDetail> => {
        const owner = findById(userId, desk.findPerson)
        const earlier = owner && changes.findOpened(owner.id, content, draft)
        if (earlier) return { value: detailOf(mustFind(earlier.id)), replayed: true }
        if (owner?.deletedAt !== null) throw invalidField('user_id', 'unknown_user')
        const place = { id: newId(), userId: owner.id, createdAt: clock.now() }
        const state = { status: 'in_progress', assigneeId: adminId } as const
        const ticket = changes.open({ ...content, ...place, ...state }, draft)
        record('ticket_opened', by, ticket.id)
        const opened = detailOf(ticket)
        const { id } = opened.item.lastMessage
        notifyOwner(ticket, 'ticket_opened', { id, body: message.body })
        return { value: opened, replayed: false }
      })
    },

    /** Applies the changes and records them. Unchanged values are not recorded.
     *  @throws not_found · validation_error (the assignee is not an enabled admin) */
    update: (by: ByUser, id: string, update: DeskUpdate): Promise<DeskDetail> =>
      write(() => {
        const before = mustFind(id)
        const { assigneeId, assigneeField } = update
        const isNew = typeof assigneeId === 'string' && assigneeId !== before.assigneeId
        if (isNew && !store.findEnabledAdmin(assigneeId)) {
          throw invalidField(assigneeField, 'not_an_admin')
        }
        const after = changes.change(before, update, by.actor.id)
        if (after !== before) record('ticket_updated', by, before.id)
        notifyOwner(after, resolution(before, after))
        return detailOf(after)
      }),

    /** Newest first.
     *  @throws not_found */
    listMessages: (id: string, range: ListRange): Listing<AuthoredMessage> =>
      store.listRange(mustFind(id), range),

    /** Replies to the owner and notifies them. A closed ticket stays closed unless the reply sets a status.
     *  @throws not_found · validation_error (`lastMessageId`) · stale_ticket (there is a newer message) ·
     *  ticket_full · idempotency_mismatch (same `clientId`, other content) */
    reply(by: ByUser, id: string, answer: Answer): Promise<Replayable<AuthoredMessage>> {
      const { status, lastMessageId, ...message } = answer
      const adminId = by.actor.id
      const draft = { ...message, authorId: adminId, isAdmin: true }
      return write(() => {
        const ticket = mustFind(id)
        const earlier = changes.findReplayed(ticket.id, draft)
        if (earlier) return { value: desk.withAuthor(earlier), replayed: true }
        if (lastMessageId !== undefined) mustBeNewest(ticket, lastMessageId)
        // Choice: a reply assigns an unassigned ticket to the admin who replies.
        const wanted = { status, assigneeId: ticket.assigneeId ?? adminId }
        const message = changes.reply(ticket, draft, wanted)
        record('ticket_answered', by, ticket.id)
        const after = mustFind(ticket.id)
        notifyOwner(after, resolution(ticket, after), message)
        return { value: desk.withAuthor(message), replayed: false }
      })
    },

    /** Adds a note, which the owner never sees.
     *  @throws not_found · validation_error (`attachments`) */
    addNote: (by: ByUser, id: string, { body, fileUrls }: NoteRequest): Promise<NoteItem> =>
      write(() => {
        const ticketId = mustFind(id).id
        const adminId = by.actor.id
        const text = { id: newId(), body, createdAt: clock.now(), editedAt: null }
        const attached = attach(text.id, adminId, fileUrls)
        const attachments = attached.length > 0 ? attached : null
        desk.insertNote({ ...text, ticketId, authorId: adminId, attachments })
        noteChanged('ticket_note_added', by, ticketId)
        return mustFindNote(ticketId, text.id)
      }),

    /** Changes the text of an own note. The same text again changes nothing.
     *  @throws not_found · not_owner */
    editNote: (by: ByUser, id: string, noteId: string, body: string): Promise<NoteItem> =>
      write(() => {
        const note = mustFindNote(id, noteId)
        if (note.authorId !== by.actor.id) throw new AppError('not_owner')
        if (note.body === body) return note
        const changes = { body, editedAt: clock.now() }
        desk.updateNote(note, changes)
        noteChanged('ticket_note_changed', by, note.ticketId)
        return { ...note, ...changes }
      }),

    /** Deletes an own note, or one whose author is no longer an enabled admin.
     *  @throws not_found · not_owner */
    deleteNote: (by: ByUser, id: string, noteId: string): Promise<void> =>
      write(() => {
        const note = mustFindNote(id, noteId)
        const isOwn = note.authorId === by.actor.id
        if (!isOwn && store.findEnabledAdmin(note.authorId)) throw new AppError('not_owner')
        desk.deleteNote(note)
        if (note.attachments) detach(note.id)
        noteChanged('ticket_note_deleted', by, note.ticketId)
      }),
  }
}
