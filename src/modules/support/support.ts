import type { Core, Module } from '../../core.ts'
import type { Mailer } from '../../mail/mailer.ts'
import { cannedReplyRoutes } from './canned-replies.ts'
import { deskRoutes } from './desk-routes.ts'
import { createDeskService, type Notify } from './desk-service.ts'
import { createDeskStore } from './desk-store.ts'
import { serverFrames } from './frames.ts'
import { createInboxMail, createIndexMerger, startAutoClose } from './jobs.ts'
import { supportRoutes } from './routes.ts'
import { createSearchStore } from './search-store.ts'
import { createTicketService } from './service.ts'
import { createTicketStore } from './store.ts'
import { createTicketChanges } from './ticket-changes.ts'

type Neighbours = { mailer: Mailer; notify: Notify }

/** Tickets: those of each person, and the desk where admins work on all of them. */
export function createSupport(core: Core, { mailer, notify }: Neighbours) {
  const { orm } = core
  const store = createTicketStore(orm)
  const desk = createDeskStore(orm)
  const search = createSearchStore(orm)
  const merger = createIndexMerger(core, search)
  const changes = createTicketChanges(core, { store, desk, onIndexed: merger.count })
  const tickets = createTicketService(core, { store, changes })
  const deskService = createDeskService(core, { store, desk, search, changes, notify })
  const stopClosing = startAutoClose(core, { store, changes })

  return {
    routes: supportRoutes(tickets).use(deskRoutes(deskService)).use(cannedReplyRoutes(core)),
    serverFrames,
    jobs: { support_inbox_mail: createInboxMail(core, { store, desk, mailer }) },
    exportOf: (userId: string) => ({ tickets: tickets.exportTickets(userId) }),
    forget: store.endWaiting,
    stop() {
      stopClosing()
      merger.stop()
    },
  } satisfies Module
}
