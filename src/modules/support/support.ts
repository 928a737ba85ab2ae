import type { Core, Module } from '../../core.ts'
import type { TakeText } from '../../db/text-quota.ts'
import type { Aging } from '../../jobs/forgetting.ts'
import { createAvatarUrls } from '../../lib/avatar.ts'
import { AppError } from '../../lib/errors.ts'
import type { DomainEvent, Notify } from '../../lib/events.ts'
import { getById } from '../../lib/ids.ts'
import type { Mailer } from '../../outside/mail/mailer.ts'
import { clientFrame } from '../../realtime/frames.ts'
import { cannedReplyRoutes } from './canned-replies.ts'
import { deskRoutes } from './desk-routes.ts'
import { createDeskService } from './desk-service.ts'
import { createDeskStore, type DeskStore } from './desk-store.ts'
import { createDeskMails, startAutoClose } from './jobs.ts'
import * as model from './model.ts'
import { supportRoutes } from './routes.ts'
import { createSearchStore, type SearchStore } from './search-store.ts'
import { createTicketService } from './service.ts'
import { createTicketStore, type TicketRow, type TicketStore } from './store.ts'
import { type Attach, createTicketChanges, type TicketChangesMaker } from './ticket-changes.ts'

declare module '../../db/audit-trail.ts' {
  interface AuditActions {
    ticket_opened: 'ticket'
    ticket_updated: 'ticket'
    ticket_answered: 'ticket'
    ticket_note_added: 'ticket'
    ticket_note_changed: 'ticket'
    ticket_note_deleted: 'ticket'
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
  takeText: TakeText
  ticketsPerDay: number | undefined
  wantsMail: (userId: string) => boolean
  notify: Notify
  forgetReplies: (userId: string, ticketId: string) => void
  attach: Attach
  detach: (messageId: string) => void
}

export type SupportParts = Neighbours & {
  store: TicketStore
  desk: DeskStore
  search: SearchStore
  views: model.DeskViews
  changes: TicketChangesMaker
}

type AnsweredField = 'subject' | 'body' | 'answer'

const publishedAtOnce = 25
const purgedAtOnce = 5

export function createSupport(core: Core, neighbours: Neighbours) {
  const { notify, forgetReplies, detach } = neighbours
  const { orm } = core
  const store = createTicketStore(orm)
  const desk = createDeskStore(orm)
  const views = model.createDeskViews(createAvatarUrls(core.config.publicUrl))
  const changes = createTicketChanges(core, { ...neighbours, store, desk, views })
  const parts = { ...neighbours, store, desk, views, changes, search: createSearchStore(orm) }
  const tickets = createTicketService(core, parts)

  function eventData({ ticket_id = '', message_id = '' }: DomainEvent['ids']) {
    const item = desk.find(ticket_id)
    if (!item) return undefined
    const message = store.findMessage(ticket_id, message_id)
    const said = message && { message: model.deskTicketMessageView(desk.withAuthor(message)) }
    return { ticket: views.deskTicketListItemView(item), ...said }
  }

  /** A removed owner waits for nothing, and has no name. */
  function ownerRemoved(some: TicketRow[]) {
    for (const { id, waitingSince, updatedAt } of some) {
      if (waitingSince !== null) {
        store.update(id, { waitingSince: null, inboxDueAt: null, updatedAt })
      }
      changes.publishUpdate(id)
    }
  }

  function purge(userId: string) {
    const some = store.listOfUser(userId, { limit: purgedAtOnce, offset: 0 })
    for (const ticket of some) {
      // A reader of this last frame finds the ticket gone.
      changes.publishUpdate(ticket.id)
      store.delete(ticket).forEach(detach)
    }
    const last = some.at(-1)?.id
    return last === undefined ? undefined : { last, count: some.length }
  }

  function openAnswered(userId: string, authorId: string, said: Record<AnsweredField, string>) {
    const { subject, body, answer } = said
    const draft = { body, fileUrls: [], clientId: null }
    const content = model.contentOf({ subject, body, category: 'billing' })
    return core.write(() => {
      const row = { id: core.newId(), userId, ...content, createdAt: core.clock.now() }
      const ticket = changes.open(row, { ...draft, authorId: userId, isAdmin: false })
      const reply = { ...draft, body: answer, authorId, isAdmin: true }
      const { id } = changes.reply(ticket, reply, { status: 'in_progress' })
      const data = { ticket_id: ticket.id, message_id: id }
      notify(userId, { type: 'support_reply', body: answer, values: { subject }, data })
    })
  }

  const deskService = createDeskService(core, parts)

  return {
    openAnswered,
    routes(app) {
      supportRoutes(app, tickets)
      deskRoutes(app, deskService, views)
      cannedReplyRoutes(app, core)
    },
    frames: {
      viewing: clientFrame(model.ViewingClientFrame, (frame, { userId, role, mayAdminister }) => {
        if (role !== 'admin') throw new AppError('role_required')
        if (!mayAdminister) throw new AppError('admin_totp_required')
        const { id: ticket_id } = getById(frame.ticket_id, store.find)
        const viewed: model.TicketViewedFrame = {
          type: 'ticket_viewed',
          ticket_id,
          user_id: userId,
        }
        core.hub.sendVolatileToAdmins(viewed, userId)
      }),
    },
    serverFrames: model.serverFrames,
    eventData: {
      'ticket.created': eventData,
      'ticket.replied': eventData,
      'ticket.updated': eventData,
    },
    jobs: createDeskMails(core, parts),
    exports: {
      tickets: {
        description: 'The tickets of the person, with all their messages.',
        item: model.Ticket,
        each: tickets.exportTickets,
      },
    },
    forget: (userId) => ownerRemoved(store.listWaiting(userId, publishedAtOnce)),
    erase(userId, _, after) {
      const before = after === undefined ? undefined : Number(after)
      const some = store.listOfUser(userId, { limit: publishedAtOnce, offset: 0, before })
      ownerRemoved(some)
      return some.at(-1)?.userSeq.toString()
    },
    aging: {
      forget(before, _, done) {
        // A ticket has hundreds of messages.
        const [ticket] = store.listOld(before, 1)
        if (!ticket) return undefined
        store.delete(ticket).forEach(detach)
        forgetReplies(ticket.userId, ticket.id)
        return { ...done, count: done.count + 1 }
      },
      *survey(before) {
        yield { due: store.countOld(before), held: 0 }
      },
    } satisfies Aging,
    purge: { tickets: { count: (userId: string) => [store.countOfUser(userId)], some: purge } },
    stop: startAutoClose(core, parts),
  } satisfies Module & Record<string, unknown>
}
