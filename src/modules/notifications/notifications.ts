import type { Core, Module } from '../../core.ts'
import type { Mailer } from '../../outside/mail/mailer.ts'
import type { Pusher } from '../../outside/push/pusher.ts'
import { createAnnouncementStore } from './announcement-store.ts'
import { createAnnouncements } from './announcements.ts'
import { serverFrames } from './frames.ts'
import { createMailJob, createPushJobs, type UnreadMessages } from './jobs.ts'
import { createMessagePushes } from './message-pushes.ts'
import {
  announcementProgressView,
  notificationView,
  preferencesView,
  pushTokenView,
} from './model.ts'
import { createNotifier } from './notifier.ts'
import { createPreferences } from './preferences.ts'
import { createPushTokenStore } from './push-token-store.ts'
import { createPushTokens } from './push-tokens.ts'
import { notificationRoutes } from './routes.ts'
import { createNotificationService, type MayTalk } from './service.ts'
import { createNotificationStore, notificationRetention } from './store.ts'

type NotificationPush = { user_id: string; push_token_id: string; notification_id: string }

declare module '../../db/audit-trail.ts' {
  interface AuditActions {
    announcement_sent: 'announcement'
  }
}

declare module '../../jobs/outbox.ts' {
  interface OutboxJobs {
    announcement: { announcement_id: string }
    notification_mail: { user_id: string; notification_id: string }
    /** Urgent pushes have their own queue: they expire within a minute. */
    urgent_push: NotificationPush
    notification_push: NotificationPush
    message_push: { user_id: string; push_token_id: string; conversation_id: string; seq: number }
    unread_push: { user_id: string; conversation_id: string }
  }
}

type Neighbours = {
  mailer: Mailer
  pusher: Pusher
  webPushKey: string
  isAllowedEndpoint: (endpoint: string) => boolean
  unreadMessages: UnreadMessages
  resolveUser: (reference: string) => string | undefined
  mayTalk: MayTalk
}

/** Notifications in the app, by push and by mail. */
export function createNotifications(core: Core, neighbours: Neighbours) {
  const { orm } = core
  const { webPushKey, isAllowedEndpoint } = neighbours
  const store = createNotificationStore(orm)
  const pushTokenStore = createPushTokenStore(orm)
  const preferences = createPreferences(core, store)
  const messagePushes = createMessagePushes(core, {
    preferences,
    pushTokenStore,
    findUnread: neighbours.unreadMessages.findAll,
  })
  const parts = { ...neighbours, store, preferences, pushTokenStore, messagePushes }
  const notifier = createNotifier(core, parts)
  const announcementStore = createAnnouncementStore(orm)
  const announcements = createAnnouncements(core, { store: announcementStore, notifier })

  return {
    retention: notificationRetention,
    routes: notificationRoutes({
      notifications: createNotificationService(core, {
        store,
        notifier,
        mayTalk: neighbours.mayTalk,
      }),
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
    },
    eventData: {
      'notification.created'({ user_id = '', notification_id = '' }) {
        const row = store.find(user_id, notification_id)
        return row && { notification: { ...notificationView(row), user_id } }
      },
      'broadcast.completed'({ announcement_id = '' }) {
        const row = announcementStore.findItem(announcement_id)
        return row && { broadcast: announcementProgressView(row) }
      },
    },
    notify: notifier.notify,
    pushMessage: messagePushes.arrived,
    exportOf: (userId: string) => ({
      notifications: store.each(userId).map(notificationView),
      push_tokens: pushTokenStore.listAll(userId).map(pushTokenView),
      notification_preferences: [preferencesView(preferences.list(userId))],
    }),
    /** Removes the name of a deleted user from other users' notifications. */
    erase(userId: string, limit: number, after?: string) {
      const rows = store.listNaming(userId, limit, after)
      rows.forEach(notifier.eraseName)
      return rows.at(-1)?.id
    },
    forget(userId: string): void {
      store.deleteOfUser(userId)
      pushTokenStore.deleteOfUser(userId)
    },
  } satisfies Module & Record<string, unknown>
}
