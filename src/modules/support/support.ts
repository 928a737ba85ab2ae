import type { Orm } from '../../db/client.ts'
import type { Write } from '../../db/writer.ts'
import type { Outbox } from '../../jobs/outbox.ts'
import type { Clock } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import type { Mailer } from '../../mail/mailer.ts'
import type { Hub } from '../../realtime/hub.ts'
import { createAnnouncements } from './announcements.ts'
import { startAutoClose } from './auto-close.ts'
import { createCannedReplies } from './canned-replies.ts'
import { createCannedReplyStore } from './canned-reply-store.ts'
import { createDeskList } from './desk-list.ts'
import { createDeskService, type NotifySupportReply } from './desk-service.ts'
import { createDeskStore } from './desk-store.ts'
import { createInboxMail } from './inbox-mail.ts'
import { createNotesStore } from './notes-store.ts'
import { createOwnerService } from './owner-service.ts'
import { createSearchStore } from './search-store.ts'
import { createTicketStore } from './store.ts'
import { createTicketChanges } from './ticket-changes.ts'

type SupportOptions = {
  orm: Orm
  write: Write
  outbox: Outbox
  newId: NewId
  clock: Clock
  log: Log
  hub: Hub
  mailer: Mailer
  publicUrl: string
  reopenDays: number
  autocloseDays: number
  /** Whom the operator wants to be told of new tickets. */
  inbox: string | undefined
  notifySupportReply: NotifySupportReply
}

/** Builds the chapter on support: what owners and admins do with tickets, and what happens to them by itself. */
export function openSupport(options: SupportOptions) {
  const { orm, outbox, hub, inbox, autocloseDays } = options
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

  return {
    tickets,
    desk: createDeskService({ ...common, notes: createNotesStore(orm) }),
    deskList: createDeskList({ desk, search: createSearchStore(orm) }),
    cannedReplies: createCannedReplies({ ...options, store: createCannedReplyStore(orm) }),
    jobs: createInboxMail(common),
    exportTickets: tickets.exportTickets,
    /** Inside the removal of an account: its tickets stay with the desk, and nobody waits for an answer any more. What
     *  an admin had taken on stays theirs until somebody else takes it. */
    forget: store.endWaiting,
    stopClosing: startAutoClose({ ...common, days: autocloseDays }),
  }
}
