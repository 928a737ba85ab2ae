import type { Orm } from '../../db/client.ts'
import type { Write } from '../../db/writer.ts'
import type { Outbox } from '../../jobs/outbox.ts'
import type { JobHandlers } from '../../jobs/runner.ts'
import type { Clock } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import type { Mailer } from '../../mail/mailer.ts'
import type { Pusher } from '../../push/pusher.ts'
import type { Hub } from '../../realtime/hub.ts'
import { createAnnouncementStore } from './announcement-store.ts'
import { createAnnouncements } from './announcements.ts'
import { createMailJob } from './mail-job.ts'
import { createNotifier } from './notifier.ts'
import { createPreferenceStore } from './preference-store.ts'
import { createPreferences } from './preferences.ts'
import { createPushJobs, type UnreadMessage } from './push-jobs.ts'
import { createPushTokenStore } from './push-token-store.ts'
import { createPushTokens } from './push-tokens.ts'
import { createNotificationService } from './service.ts'
import { createNotificationStore } from './store.ts'

type NotificationsOptions = {
  orm: Orm
  write: Write
  outbox: Outbox
  newId: NewId
  clock: Clock
  log: Log
  hub: Hub
  mailer: Mailer
  pusher: Pusher
  publicUrl: string
  isAllowedEndpoint: (endpoint: string) => boolean
  findUnreadMessage: (
    userId: string,
    conversationId: string,
    seq: number,
  ) => UnreadMessage | undefined
}

type Jobs = Pick<
  JobHandlers,
  | 'notification'
  | 'notification_mail'
  | 'urgent_push'
  | 'notification_push'
  | 'message_push'
  | 'announcement'
>

/** Builds the chapter on notifications: in the app, by push and by mail. */
export function openNotifications(options: NotificationsOptions) {
  const { orm, write, outbox } = options
  const store = createNotificationStore(orm)
  const preferences = createPreferences({ store: createPreferenceStore(orm), write })
  const pushTokens = createPushTokens({ ...options, store: createPushTokenStore(orm) })
  const common = { ...options, store, preferences, pushTokens }
  const notifier = createNotifier(common)
  const announcements = createAnnouncements({
    ...common,
    store: createAnnouncementStore(orm),
    people: store,
    notifier,
  })
  const notifications = createNotificationService({ ...common, notifier })
  const jobs: Jobs = {
    ...createPushJobs(common),
    notification_mail: createMailJob(common),
    announcement: announcements.job,
    // What a command asked for; the job's id tells a second run from a second wish.
    async notification({ user_id: userId, ...event }, { id: dedupeKey }) {
      const tell = await write(() => notifier.notify(userId, { ...event, dedupeKey }))
      tell()
      return undefined
    },
  }

  return {
    notifications,
    preferences,
    pushTokens,
    announcements,
    notify: notifier.notify,
    /** Notes, inside a chat message's `write`, that its recipient's devices are to be told of it. */
    pushMessage(message: { recipientId: string; conversationId: string; seq: number }): void {
      const { recipientId: userId, conversationId, seq } = message
      for (const id of pushTokens.listIds(userId)) {
        const job = { user_id: userId, push_token_id: id, conversation_id: conversationId, seq }
        outbox.add('message_push', job)
      }
    },
    /** Inside the removal of an account. */
    forget(userId: string): void {
      store.deleteOfUser(userId)
      preferences.forget(userId)
      pushTokens.forget(userId)
    },
    jobs,
  }
}
