import type { JobHandlers } from '../../jobs/runner.ts'
import type { Mailer } from '../../mail/mailer.ts'
import { renderTicketMail } from '../../mail/templates.ts'
import type { DeskStore } from './desk-store.ts'
import type { TicketStore } from './store.ts'

type InboxMailOptions = {
  store: Pick<TicketStore, 'listMessages'>
  desk: Pick<DeskStore, 'find'>
  mailer: Mailer
  publicUrl: string
  /** Whom the operator wants to be told; nobody when it is absent. */
  inbox: string | undefined
}

/** The mail about a new ticket. */
export function createInboxMail({
  store,
  desk,
  mailer,
  publicUrl,
  inbox,
}: InboxMailOptions): Pick<JobHandlers, 'support_inbox_mail'> {
  return {
    async support_inbox_mail({ ticket_id }, { id: jobId }) {
      const item = desk.find(ticket_id)
      const [first] = store.listMessages(ticket_id)
      if (!item || !first || inbox === undefined) return undefined
      const { id, subject, category, priority, user } = item
      const from =
        user.deletedAt === null ? `${user.displayName} <${user.email}>` : user.displayName
      const mail = renderTicketMail({ id, subject, category, priority, from, body: first.body })
      const messageId = `<${jobId.toLowerCase()}@${new URL(publicUrl).hostname}>`
      await mailer.send({ ...mail, to: inbox, locale: 'en', messageId })
      return undefined
    },
  }
}
