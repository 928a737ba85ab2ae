import { isDeepStrictEqual } from 'node:util'
import type { Core } from '../../core.ts'
import { minute } from '../../lib/clock.ts'
import { AppError } from '../../lib/errors.ts'
import { codePoints } from '../../lib/text.ts'
import type { TicketStatus } from '../../lib/vocabulary.ts'
import type { DeskStore } from './desk-store.ts'
import { type DeskViews, type MessageRequest, ownTicketFrame, type TicketContent } from './model.ts'
import type { HistoryRow, NewTicketRow, TicketMessageRow, TicketRow, TicketStore } from './store.ts'

type Changeable = 'status' | 'priority' | 'category' | 'assigneeId'
export type RequestedChanges = { [K in Changeable]?: TicketRow[K] | undefined }

export type TicketRequest = MessageRequest & { content: TicketContent }

type TicketDraft = MessageRequest & { authorId: string; isAdmin: boolean }

/** `actorId` is null for automatic changes. */
type Update = { actorId: string | null; requested?: RequestedChanges; message?: TicketMessageRow }

export type Replayable<T> = { value: T; replayed: boolean }

/** Attaches the owner's files to a message, inside its `write`.
 *  @throws validation_error (`attachments`) */
export type Attach = (
  messageId: string,
  ownerId: string,
  fileUrls: readonly string[],
) => NonNullable<TicketMessageRow['attachments']>

type Parts = { store: TicketStore; desk: DeskStore; views: DeskViews; attach: Attach }

export type TicketChangesMaker = ReturnType<typeof createTicketChanges>

/** The owner's limits for one ticket: a longer exchange continues in another. */
const maxOwnerMessages = 200
const maxOwnerCharacters = 200_000
/** The time between two mails to the inbox, and between two mails about a ticket to its assignee. */
export const mailIntervalMilliseconds = 10 * minute

/** Called inside a `write`; each change updates the ticket row once. */
export function createTicketChanges(core: Core, parts: Parts) {
  const { store, desk, attach, views } = parts
  const { newId, clock, hub, afterCommit, outbox, events } = core
  const hasInbox = core.config.support.inbox !== undefined

  function append(ticket: TicketRow, draft: TicketDraft, createdAt = clock.now()) {
    if (!draft.isAdmin) mustHaveRoom(ticket, draft.body)
    const { fileUrls, ...text } = draft
    const place = { id: newId(), ticketId: ticket.id, seq: ticket.messageCount + 1, createdAt }
    const attached = attach(place.id, draft.authorId, fileUrls)
    const message = { ...text, ...place, attachments: attached.length > 0 ? attached : null }
    store.insertMessage(message)
    return message
  }

  function update(ticket: TicketRow, { actorId, requested = {}, message }: Update): TicketRow {
    const { id: ticketId } = ticket
    const { status = ticket.status, priority = ticket.priority } = requested
    const { category = ticket.category, assigneeId = ticket.assigneeId } = requested
    const sizes = sizesOf(ticket, message)
    const times = timesOf(ticket, status, message)
    const differences = differencesOf(ticket, requested)
    for (const difference of differences) {
      store.insertHistory({ id: newId(), ticketId, at: times.updatedAt, actorId, ...difference })
    }
    if (differences.length > 0) {
      events.publish({ type: 'ticket.updated', ids: { ticket_id: ticketId } })
    }
    // An assignment or a resolve may be taken back: the job looks whether the ticket still waits for the inbox.
    const inboxDueAt = message?.isAdmin ? null : notifyDesk(ticket, assigneeId, message)
    const changes = { status, priority, category, assigneeId, inboxDueAt, ...sizes, ...times }
    return store.update(ticketId, changes)
  }

  /** A mail to the inbox covers the messages of several minutes.
   *  @returns the time of the first message that the next inbox mail covers; null when no mail is pending */
  function notifyDesk(ticket: TicketRow, assigneeId: string | null, message?: TicketMessageRow) {
    const { inboxDueAt } = ticket
    const job = { ticket_id: ticket.id }
    if (!message) return inboxDueAt
    if (assigneeId !== null && store.findEnabledAdmin(assigneeId)) {
      outbox.add('assignee_mail', job)
      return inboxDueAt
    }
    if (!hasInbox) return inboxDueAt
    outbox.add('support_inbox_mail', job, { delayMilliseconds: mailIntervalMilliseconds })
    // The earlier one is later if the clock was set back.
    return Math.min(inboxDueAt ?? message.createdAt, message.createdAt)
  }

  function timesOf(ticket: TicketRow, status: TicketStatus, message?: TicketMessageRow) {
    const now = message?.createdAt ?? clock.now()
    const isAnswer = message?.isAdmin && ticket.ownerMessageCount > 0
    const firstResponseAt = ticket.firstResponseAt ?? (isAnswer ? now : null)
    const times = { firstResponseAt, updatedAt: now }
    if (status !== 'resolved' && status !== 'closed') {
      return { ...times, waitingSince: waitingSince(ticket, message), settledAt: null }
    }
    // A message to a resolved ticket restarts the time until it is closed.
    const isNew = status !== ticket.status || (status === 'resolved' && message !== undefined)
    return { ...times, waitingSince: null, settledAt: isNew ? now : ticket.settledAt }
  }

  function waitingSince(ticket: TicketRow, message?: TicketMessageRow): number | null {
    if (message) return message.isAdmin ? null : (ticket.waitingSince ?? message.createdAt)
    return ticket.settledAt === null ? ticket.waitingSince : waitingAgain(ticket)
  }

  /** A ticket that the desk reopens waits on if the owner wrote last. A removed owner waits for nothing. */
  function waitingAgain({ id }: TicketRow): number | null {
    const isRemoved = desk.get(id).user.deletedAt !== null
    return isRemoved ? null : (store.findUnanswered(id)?.createdAt ?? null)
  }

  function publish(type: 'ticket.created' | 'ticket.replied', { ticketId, id }: TicketMessageRow) {
    events.publish({ type, ids: { ticket_id: ticketId, message_id: id } })
  }

  function sendFrames(ticketId: string, forAdmins: 'ticket_created' | 'ticket_updated') {
    const item = desk.get(ticketId)
    afterCommit(() => {
      hub.send([item.userId], ownTicketFrame(item))
      hub.sendToAdmins(views.deskFrame(forAdmins, item))
    })
  }

  const publishUpdate = (ticketId: string) => sendFrames(ticketId, 'ticket_updated')

  /** The ticket as it was when its first message opened it. */
  function asOpened(ticket: TicketRow, { createdAt: updatedAt }: TicketMessageRow): TicketRow {
    const before = (field: 'priority' | 'category') =>
      store.findFirstChange(ticket.id, field)?.from ?? ticket[field]
    const known = { priority: before('priority'), category: before('category') }
    return { ...ticket, ...known, status: 'open', updatedAt, messageCount: 1 } as TicketRow // a history of priorities holds priorities
  }

  return {
    publishUpdate,

    open(row: NewTicketRow, draft: TicketDraft): TicketRow {
      const opened = store.insert(row)
      const message = append(opened, draft, opened.createdAt)
      const ticket = update(opened, { actorId: draft.authorId, message })
      publish('ticket.created', message)
      sendFrames(ticket.id, 'ticket_created')
      return ticket
    },

    /** Finds the ticket that the author opened earlier with the same key, as it was then.
     *  @throws idempotency_mismatch (same key, other content) */
    findOpened(userId: string, content: TicketContent, draft: TicketDraft): TicketRow | undefined {
      const { authorId, clientId } = draft
      const first = clientId === null ? undefined : store.findMessageByClientId(authorId, clientId)
      if (!first) return undefined
      const ticket = store.find(first.ticketId)
      const opened = first.seq === 1 && ticket ? asOpened(ticket, first) : undefined
      const isSame = isDeepStrictEqual({ ...opened, userId, ...content }, opened)
      if (opened && isSame && hasContent(first, draft)) return opened
      throw new AppError('idempotency_mismatch')
    },

    /** Appends a message and applies the changes that its author requested.
     *  @throws ticket_full */
    reply(ticket: TicketRow, draft: TicketDraft, requested: RequestedChanges): TicketMessageRow {
      const message = append(ticket, draft)
      publish('ticket.replied', message)
      update(ticket, { actorId: draft.authorId, requested, message })
      publishUpdate(ticket.id)
      return message
    },

    change(ticket: TicketRow, requested: RequestedChanges, actorId: string | null): TicketRow {
      if (differencesOf(ticket, requested).length === 0) return ticket
      const changed = update(ticket, { actorId, requested })
      publishUpdate(ticket.id)
      return changed
    },

    /** Finds the author's earlier message with the same key.
     *  @throws idempotency_mismatch (same key, other content) */
    findReplayed(ticketId: string, draft: TicketDraft): TicketMessageRow | undefined {
      const { authorId, clientId } = draft
      if (clientId === null) return undefined
      const first = store.findMessageByClientId(authorId, clientId)
      if (!first) return undefined
      const isSame = first.ticketId === ticketId && first.seq > 1
      if (isSame && hasContent(first, draft)) return first
      throw new AppError('idempotency_mismatch')
    },
  }
}

function hasContent({ body, isAdmin, attachments }: TicketMessageRow, draft: TicketDraft): boolean {
  if (body !== draft.body || isAdmin !== draft.isAdmin) return false
  const fileUrls = attachments?.map((it) => it.file_url) ?? []
  return isDeepStrictEqual(fileUrls, draft.fileUrls)
}

function mustHaveRoom({ ownerMessageCount, ownerCharacters }: TicketRow, body: string) {
  const characters = ownerCharacters + codePoints(body)
  if (ownerMessageCount >= maxOwnerMessages || characters > maxOwnerCharacters) {
    throw new AppError('ticket_full')
  }
}

function sizesOf(ticket: TicketRow, message?: TicketMessageRow) {
  const { messageCount, ownerMessageCount, ownerCharacters } = ticket
  const isOwners = message !== undefined && !message.isAdmin
  return {
    messageCount: message?.seq ?? messageCount,
    ownerMessageCount: ownerMessageCount + (isOwners ? 1 : 0),
    ownerCharacters: ownerCharacters + (isOwners ? codePoints(message.body) : 0),
  }
}

type Difference = Pick<HistoryRow, 'field' | 'from' | 'to'>

function differencesOf(ticket: TicketRow, requested: RequestedChanges): Difference[] {
  const changes = [
    { field: 'status', from: ticket.status, to: requested.status },
    { field: 'priority', from: ticket.priority, to: requested.priority },
    { field: 'category', from: ticket.category, to: requested.category },
    { field: 'assignee', from: ticket.assigneeId, to: requested.assigneeId },
  ] as const
  return changes.flatMap(({ field, from, to }) =>
    to === undefined || to === from ? [] : [{ field, from, to }],
  )
}
