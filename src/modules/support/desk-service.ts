import type { Write } from '../../db/writer.ts'
import type { Clock } from '../../lib/clock.ts'
import { AppError, invalidField } from '../../lib/errors.ts'
import { type NewId, parseId } from '../../lib/ids.ts'
import type { TicketStatus } from '../../lib/vocabulary.ts'
import type { Announcements } from './announcements.ts'
import type { DeskItem, DeskStore } from './desk-store.ts'
import type { DeskDetail } from './model.ts'
import type { NoteItem, NotesStore } from './notes-store.ts'
import type { Replayable } from './owner-service.ts'
import type { TicketMessageRow, TicketRow, TicketStore } from './store.ts'
import type { TicketChangesMaker, TicketDraft, Wanted } from './ticket-changes.ts'

/** What an admin answers. */
export type Answer = {
  body: string
  clientId: string | null
  status?: TicketStatus | undefined
  /** The newest message that the admin saw. */
  lastMessageId?: string | undefined
}

/** Notifies the owner, inside the write of an answer. */
export type NotifySupportReply = (reply: {
  userId: string
  ticketId: string
  messageId: string
  subject: string
  body: string
}) => void

export type DeskService = ReturnType<typeof createDeskService>

type DeskServiceOptions = {
  store: TicketStore
  desk: DeskStore
  notes: NotesStore
  changes: TicketChangesMaker
  announce: Announcements
  write: Write
  newId: NewId
  clock: Clock
  notifySupportReply: NotifySupportReply
}

/** What admins do with tickets (spec 4.4, decisions 7). */
export function createDeskService(options: DeskServiceOptions) {
  const { store, desk, notes, changes, announce, write, newId, clock } = options

  /** @throws not_found */
  function required(idText: string): TicketRow {
    const ticket = store.find(parseId(idText) ?? '')
    if (!ticket) throw new AppError('not_found')
    return ticket
  }

  function detailOf(item: DeskItem): DeskDetail {
    const { id } = item
    return {
      item,
      messages: store.listMessages(id),
      notes: notes.list(id),
      history: notes.listHistory(id),
    }
  }

  // Somebody else has written since this admin looked.
  function mustBeNewest(ticket: TicketRow, messageId: string) {
    const seen = store.findMessage(ticket.id, parseId(messageId) ?? '')
    if (!seen) throw invalidField('last_message_id', 'id')
    if (seen.seq < ticket.messageCount) throw new AppError('conflict')
  }

  function answer(ticket: TicketRow, draft: TicketDraft, status: TicketStatus | undefined) {
    const { ticket: answered, message } = changes.append(ticket, draft)
    // Choice: whoever answers a ticket that nobody has takes it on.
    const assigneeId = answered.assigneeId ?? draft.authorId
    changes.change(answered, { status, assigneeId }, draft.authorId)
    const item = desk.get(ticket.id)
    notifyOwner(item, message)
    return { message, item }
  }

  function notifyOwner({ user, id, subject }: DeskItem, message: TicketMessageRow) {
    if (user.deletedAt !== null) return
    const { id: messageId, body } = message
    options.notifySupportReply({ userId: user.id, ticketId: id, messageId, subject, body })
  }

  return {
    /** @throws not_found */
    get: (id: string): DeskDetail => detailOf(desk.get(required(id).id)),

    /** Changes what is wanted; what is so already stays, without a trace. `blamed` is the field that named the assignee.
     *  @throws not_found · validation_error (the assignee is no admin, or disabled) */
    async update(adminId: string, id: string, wanted: Wanted, blamed: string): Promise<DeskDetail> {
      const { detail, isChanged } = await write(() => {
        const before = required(id)
        const { assigneeId = null } = wanted
        const isNew = assigneeId !== null && assigneeId !== before.assigneeId
        if (isNew && !store.isEnabledAdmin(assigneeId)) throw invalidField(blamed, 'not_an_admin')
        const after = changes.change(before, wanted, adminId)
        return { detail: detailOf(desk.get(after.id)), isChanged: after !== before }
      })
      if (isChanged) announce.updated(detail.item)
      return detail
    },

    /** Answers the owner, who is notified; a closed ticket stays closed unless a status is given.
     *  @throws not_found · validation_error (`lastMessageId`) · conflict (somebody wrote meanwhile; `clientId` was used
     *  for something else) */
    async reply(
      adminId: string,
      id: string,
      { body, clientId, status, lastMessageId }: Answer,
    ): Promise<Replayable<TicketMessageRow>> {
      const draft = { authorId: adminId, isAdmin: true, body, clientId }
      const { message, done } = await write(() => {
        const ticket = required(id)
        const earlier = changes.findReplayed(ticket.id, draft)
        if (earlier) return { message: earlier, done: undefined }
        if (lastMessageId !== undefined) mustBeNewest(ticket, lastMessageId)
        const { message, ...done } = answer(ticket, draft, status)
        return { message, done }
      })
      if (done) announce.updated(done.item)
      return { value: message, replayed: done === undefined }
    },

    /** Leaves a note that the owner never sees.
     *  @throws not_found */
    async addNote(adminId: string, id: string, body: string): Promise<NoteItem> {
      const { note, item } = await write(() => {
        const ticketId = required(id).id
        const row = { id: newId(), ticketId, authorId: adminId, body, createdAt: clock.now() }
        notes.insert(row)
        const author = notes.findAuthor(adminId)
        if (!author) throw new AppError('unauthorized')
        return { note: { ...row, author }, item: desk.get(ticketId) }
      })
      announce.updatedForDesk(item)
      return note
    },
  }
}
