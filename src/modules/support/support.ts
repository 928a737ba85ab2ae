import type { Core, Module } from '../../core.ts'
import type { TakeText } from '../../db/text-quota.ts'
import type { DomainEvent } from '../../lib/events.ts'
import type { Mailer } from '../../outside/mail/mailer.ts'
import { cannedReplyRoutes } from './canned-replies.ts'
import { deskRoutes } from './desk-routes.ts'
import { createDeskService, type Notify } from './desk-service.ts'
import { createDeskStore } from './desk-store.ts'
import { serverFrames } from './frames.ts'
import { createDeskMails, startAutoClose } from './jobs.ts'
import { deskTicketListItemView, deskTicketMessageView } from './model.ts'
import { supportRoutes } from './routes.ts'
import { createSearchStore } from './search-store.ts'
import { createTicketService } from './service.ts'
import { createTicketStore } from './store.ts'
import { type Attach, createTicketChanges } from './ticket-changes.ts'
import { createTicketMessages } from './ticket-messages.ts'

declare module '../../db/audit-trail.ts' {
  interface AuditActions {
    ticket_updated: 'ticket'
    ticket_answered: 'ticket'
    ticket_note_added: 'ticket'
    canned_reply_created: 'canned_reply'
    canned_reply_changed: 'canned_reply'
    canned_reply_deleted: 'canned_reply'
  }
}

declare module '../../jobs/outbox.ts' {
  interface OutboxJobs {
    support_inbox_mail: { ticket_id: string }
    assignee_mail: { ticket_id: string }
  }
}

type Neighbours = {
  mailer: Mailer
  notify: Notify
  attach: Attach
  takeText: TakeText
  ticketsPerDay: number | undefined
}

/** Tickets per transaction. */
const endedAtOnce = 25

export function createSupport(core: Core, neighbours: Neighbours) {
  const { mailer, notify, attach, takeText, ticketsPerDay } = neighbours
  const { orm } = core
  const store = createTicketStore(orm)
  const desk = createDeskStore(orm)
  const search = createSearchStore(orm)
  const changes = createTicketChanges(core, { store, desk, attach })
  const messages = createTicketMessages(store)
  const tickets = createTicketService(core, { store, messages, changes, takeText, ticketsPerDay })
  const parts = { store, desk, search, messages, changes, notify }
  const deskService = createDeskService(core, parts)
  const stopClosing = startAutoClose(core, { store, changes })

  /** The data of a webhook event: the ticket as in the desk's list, and the message of the event. */
  function eventData({ ticket_id = '', message_id = '' }: DomainEvent['ids']) {
    const item = desk.find(ticket_id)
    const message = store.findMessage(ticket_id, message_id)
    const authorName = message && desk.findAuthor(message.authorId)?.displayName
    return (
      item && {
        ticket: deskTicketListItemView(item),
        ...(message && {
          message: deskTicketMessageView({ ...message, authorName: authorName ?? '' }),
        }),
      }
    )
  }

  /** Makes tickets of a deleted user no longer wait for an answer.
   *  @returns the id of the last one; undefined when there was none */
  function endWaiting(userId: string): string | undefined {
    const waiting = store.listWaiting(userId, endedAtOnce)
    for (const { id, updatedAt } of waiting) store.update(id, { waitingSince: null, updatedAt })
    return waiting.at(-1)?.id
  }

  return {
    routes: supportRoutes(tickets).use(deskRoutes(deskService)).use(cannedReplyRoutes(core)),
    serverFrames,
    eventData: {
      'ticket.created': eventData,
      'ticket.replied': eventData,
      'ticket.updated': eventData,
    },
    jobs: createDeskMails(core, { store, desk, mailer }),
    exportOf: (userId: string) => ({ tickets: tickets.exportTickets(userId) }),
    forget: endWaiting,
    erase: endWaiting,
    stop: stopClosing,
  } satisfies Module
}
