import type { Database } from 'bun:sqlite'
import type { Config } from './config.ts'
import type { AuditTrail } from './db/audit-trail.ts'
import type { Orm } from './db/client.ts'
import type { Write } from './db/writer.ts'
import type { Outbox } from './jobs/outbox.ts'
import type { JobHandlers } from './jobs/runner.ts'
import type { Clock } from './lib/clock.ts'
import type { NewId } from './lib/ids.ts'
import type { Log } from './lib/log.ts'
import type { Mailer } from './mail/mailer.ts'
import { openAccounts } from './modules/accounts/accounts.ts'
import type { Argon2Cost } from './modules/accounts/passwords.ts'
import { openChat } from './modules/chat/chat.ts'
import { createChatStore } from './modules/chat/store.ts'
import { openNotifications } from './modules/notifications/notifications.ts'
import { openPlatform } from './modules/platform/platform.ts'
import { openSupport } from './modules/support/support.ts'
import type { Pusher } from './push/pusher.ts'
import type { Hub } from './realtime/hub.ts'

type ChaptersOptions = {
  config: Config
  sqlite: Database
  orm: Orm
  write: Write
  audit: AuditTrail
  outbox: Outbox
  newId: NewId
  clock: Clock
  log: Log
  hub: Hub
  mailer: Mailer
  pusher: Pusher
  isAllowedEndpoint: (endpoint: string) => boolean
  passwordCost: Argon2Cost | undefined
}

/** Builds the chapters, each with what it needs of the others: platform ← notifications ← chat and support; accounts
 *  stands alone. */
export async function openChapters(options: ChaptersOptions) {
  const { config, orm } = options
  const common = { ...options, publicUrl: config.publicUrl }
  const chatStore = createChatStore(orm)
  const notifications = openNotifications({ ...common, findUnreadMessage: chatStore.findUnread })
  const { notify } = notifications
  const platform = openPlatform({ ...common, notify })
  const { calls, follows } = platform
  const support = openSupport({
    ...common,
    ...config.support,
    notifySupportReply: ({ userId, ticketId, messageId, subject, body }) =>
      notify(userId, {
        type: 'support_reply',
        body,
        named: { subject },
        data: { ticket_id: ticketId, message_id: messageId },
        dedupeKey: `support_reply:${messageId}`,
      }),
  })
  const accounts = await openAccounts({
    ...common,
    issuer: config.issuer,
    isThrottled: config.limits.login !== 'off',
    forget(userId) {
      follows.forget(userId)
      support.forget(userId)
      notifications.forget(userId)
    },
    onForeignCommit: platform.serviceKeys.reload,
  })
  const chat = openChat({
    ...common,
    store: chatStore,
    pushMessage: notifications.pushMessage,
    areInCall: config.chatRequiresActiveCall ? calls.areInCall : undefined,
    audience: { count: follows.countFollowers, listAfter: follows.listFollowers },
  })

  const jobs: JobHandlers = {
    ...accounts.jobs,
    ...chat.jobs,
    ...support.jobs,
    ...notifications.jobs,
  }
  return {
    services: { ...accounts, ...platform, ...chat, ...support, ...notifications },
    jobs,
    /** What the chapters keep of a person, for their export. */
    exports: {
      messages: chat.chat.exportMessages,
      broadcasts: chat.broadcasts.exportOwn,
      tickets: support.exportTickets,
      notifications: notifications.notifications.exportNotifications,
    },
    /** Stops what runs by itself. */
    stop() {
      accounts.stopWatching()
      support.stopClosing()
      chat.stopTimelines()
    },
  }
}
