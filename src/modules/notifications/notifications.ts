import type { Core, Module } from '../../core.ts'
import type { Mailer } from '../../mail/mailer.ts'
import type { Pusher } from '../../push/pusher.ts'
import { createAnnouncementStore } from './announcement-store.ts'
import { createAnnouncements } from './announcements.ts'
import { serverFrames } from './frames.ts'
import { createMailJob, createPushJobs, type FindUnreadMessage } from './jobs.ts'
import { notificationView } from './model.ts'
import { createNotifier } from './notifier.ts'
import { createPreferences } from './preferences.ts'
import { createPushTokenStore } from './push-token-store.ts'
import { createPushTokens } from './push-tokens.ts'
import { notificationRoutes } from './routes.ts'
import { createNotificationService } from './service.ts'
import { createNotificationStore } from './store.ts'

type Neighbours = {
  mailer: Mailer
  pusher: Pusher
  webPushKey: string
  isAllowedEndpoint: (endpoint: string) => boolean
  findUnreadMessage: FindUnreadMessage
}

type MessagePush = { recipientId: string; conversationId: string; seq: number }

/** Notifications in the app, by push and by mail. */
export function createNotifications(core: Core, neighbours: Neighbours) {
  const { orm, write, outbox } = core
  const { webPushKey, isAllowedEndpoint } = neighbours
  const store = createNotificationStore(orm)
  const pushTokenStore = createPushTokenStore(orm)
  const preferences = createPreferences(core, store)
  const parts = { ...neighbours, store, preferences, pushTokenStore }
  const notifier = createNotifier(core, parts)
  const announcements = createAnnouncements(core, {
    store: createAnnouncementStore(orm),
    notifier,
  })

  return {
    routes: notificationRoutes({
      notifications: createNotificationService(core, { store, notifier }),
      preferences,
      pushTokens: createPushTokens(core, { store: pushTokenStore, isAllowedEndpoint }),
      webPushKey,
      announcements,
    }),
    serverFrames,
    jobs: {
      ...createPushJobs(core, parts),
      notification_mail: createMailJob(core, parts),
      announcement: announcements.job,
      // A command asked for it; the id of the job tells a second run from a second request.
      async notification({ user_id: userId, ...event }, { id: dedupeKey }) {
        await write(() => notifier.notify(userId, { ...event, dedupeKey }))
        return undefined
      },
    },
    notify: notifier.notify,
    /** Adds the pushes of a chat message to the queue, inside its `write`. */
    pushMessage({ recipientId: userId, conversationId, seq }: MessagePush): void {
      for (const id of pushTokenStore.listLiveIds(userId)) {
        const job = { user_id: userId, push_token_id: id, conversation_id: conversationId, seq }
        outbox.add('message_push', job)
      }
    },
    exportOf: (userId: string) => ({ notifications: store.each(userId).map(notificationView) }),
    forget(userId: string): void {
      store.deleteOfUser(userId)
      pushTokenStore.deleteOfUser(userId)
    },
  } satisfies Module & Record<string, unknown>
}
