import type { Core, Module } from '../../core.ts'
import { loadVapidKeys } from '../../db/vapid-keys.ts'
import type { JobHandlers } from '../../jobs/runner.ts'
import type { Mailer } from '../../mail/mailer.ts'
import type { Pusher } from '../../push/pusher.ts'
import { makeVapidKeys, type VapidKeys } from '../../push/vapid.ts'
import { announcementRoutes } from './admin-routes.ts'
import { createAnnouncementStore } from './announcement-store.ts'
import { createAnnouncements } from './announcements.ts'
import { notificationFeedRoutes } from './feed-routes.ts'
import { notificationFrames } from './frames.ts'
import { createMailJob } from './mail-job.ts'
import { createNotifier } from './notifier.ts'
import { createPreferenceStore } from './preference-store.ts'
import { createPreferences } from './preferences.ts'
import { createPushJobs, type UnreadMessage } from './push-jobs.ts'
import { pushRoutes } from './push-routes.ts'
import { createPushTokenStore } from './push-token-store.ts'
import { createPushTokens } from './push-tokens.ts'
import { notificationRoutes } from './routes.ts'
import { createNotificationService } from './service.ts'
import { createNotificationStore } from './store.ts'

type Neighbours = {
  mailer: Mailer
  createPusher: (keys: VapidKeys) => Pusher
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

export function createNotifications(core: Core, neighbours: Neighbours) {
  const { orm, write, outbox } = core
  const keys = loadVapidKeys(orm, makeVapidKeys)
  const options = {
    ...core,
    ...neighbours,
    pusher: neighbours.createPusher(keys),
    publicUrl: core.config.publicUrl,
  }
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
    routes: notificationRoutes({ notifications, preferences })
      .use(pushRoutes({ pushTokens, webPushKey: keys.publicKey }))
      .use(notificationFeedRoutes({ notifications }))
      .use(announcementRoutes({ announcements })),
    serverFrames: Object.fromEntries(
      Object.entries(notificationFrames).map(([t, schema]) => [
        t,
        { schema, group: 'notification' },
      ]),
    ),
    exportOf: (userId: string) => ({ notifications: notifications.exportNotifications(userId) }),
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
  } satisfies Module & Record<string, unknown>
}
