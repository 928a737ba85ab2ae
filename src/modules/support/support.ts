import type { Core, Module } from '../../core.ts'
import type { Mailer } from '../../mail/mailer.ts'
import { deskRoutes } from './admin-routes.ts'
import { createAnnouncements } from './announcements.ts'
import { startAutoClose } from './auto-close.ts'
import { createCannedReplies } from './canned-replies.ts'
import { createCannedReplyStore } from './canned-reply-store.ts'
import { createDeskList } from './desk-list.ts'
import { createDeskService } from './desk-service.ts'
import { createDeskStore } from './desk-store.ts'
import { ticketFrames } from './frames.ts'
import { createInboxMail } from './inbox-mail.ts'
import { createNotesStore } from './notes-store.ts'
import { createOwnerService } from './owner-service.ts'
import { supportRoutes } from './routes.ts'
import { createSearchStore } from './search-store.ts'
import { createTicketStore } from './store.ts'
import { createTicketChanges } from './ticket-changes.ts'

// biome-ignore lint/suspicious/noExplicitAny: until the module is rewritten
type Neighbours = { mailer: Mailer; notify: any }

export function createSupport(core: Core, { mailer, notify }: Neighbours) {
  const { orm, outbox, hub, config } = core
  const { inbox, autocloseDays } = config.support
  const options = {
    ...core,
    ...config.support,
    mailer,
    publicUrl: config.publicUrl,
    notifySupportReply: ({ userId, ticketId, messageId, subject, body }: any) =>
      notify(userId, {
        type: 'support_reply',
        body,
        named: { subject },
        data: { ticket_id: ticketId, message_id: messageId },
        dedupeKey: `support_reply:${messageId}`,
      }),
  }
  const store = createTicketStore(orm)
  const desk = createDeskStore(orm)
  const common = {
    ...options,
    store,
    desk,
    changes: createTicketChanges({ ...options, store }),
    announce: createAnnouncements(hub),
  }
  const tickets = createOwnerService({
    ...common,
    tellOperator(ticketId) {
      if (inbox !== undefined) outbox.add('support_inbox_mail', { ticket_id: ticketId })
    },
  })

  const desk2 = createDeskService({ ...common, notes: createNotesStore(orm) })
  const deskList = createDeskList({ desk, search: createSearchStore(orm) })
  const cannedReplies = createCannedReplies({ ...options, store: createCannedReplyStore(orm) })
  return {
    routes: supportRoutes({ tickets }).use(deskRoutes({ desk: desk2, deskList, cannedReplies })),
    serverFrames: Object.fromEntries(
      Object.entries(ticketFrames).map(([t, schema]) => [t, { schema, group: 'support' }]),
    ),
    jobs: createInboxMail(common),
    exportOf: (userId: string) => ({ tickets: tickets.exportTickets(userId) }),
    forget: store.endWaiting,
    stop: startAutoClose({ ...common, days: autocloseDays }),
  } satisfies Module
}
