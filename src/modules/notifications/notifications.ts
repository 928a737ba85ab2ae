import type { Core, MayTalk, Module, ResolveUser } from '../../core.ts'
import { deliveryRetention } from '../../jobs/delivery-store.ts'
import type { NotificationEvent } from '../../lib/events.ts'
import type { PreferenceType } from '../../lib/vocabulary.ts'
import type { Mailer } from '../../outside/mail/mailer.ts'
import type { PreferenceLinks } from '../../outside/mail/preference-links.ts'
import type { Pusher } from '../../outside/push/pusher.ts'
import { createAnnouncementStore } from './announcement-store.ts'
import { createAnnouncements } from './announcements.ts'
import {
  createMailJob,
  createPushJobs,
  type HasStoppedRinging,
  type UnreadMessages,
} from './jobs.ts'
import { createMessagePushes, type MessagePushes } from './message-pushes.ts'
import * as model from './model.ts'
import { createNotifier } from './notifier.ts'
import { createMailPreferences, createPreferences, type Preferences } from './preferences.ts'
import { createPushTokenStore, type PushTokenStore } from './push-token-store.ts'
import { createPushTokens } from './push-tokens.ts'
import { notificationRoutes } from './routes.ts'
import { createNotificationStore, type NotificationStore, notificationRetention } from './store.ts'
import { createUnreadMail, type UnreadToMail } from './unread-mail.ts'

type Arrived = Parameters<MessagePushes['arrived']>[0] & { isCopy: boolean }
type NotificationPush = { user_id: string; push_token_id: string; notification_id: string }

declare module '../../db/audit-trail.ts' {
  interface AuditActions {
    announcement_sent: 'announcement'
  }
}

declare module '../../jobs/outbox.ts' {
  interface OutboxJobs {
    announcement: { announcement_id: string }
    /** Queued by `hostline notify` of 0.1.0. */
    notification: NotificationEvent & { user_id: string }
    notification_mail: { user_id: string; notification_id: string }
    /** Urgent pushes have their own queue: they expire within a minute. */
    urgent_push: NotificationPush
    notification_push: NotificationPush
    message_push: { user_id: string; push_token_id: string; conversation_id: string; seq: number }
    unread_push: { user_id: string; conversation_id: string }
    unread_mail: { user_id: string }
    /** Runs at the end of quiet hours, once per device. */
    held_push: { user_id: string; push_token_id: string }
  }
}

type Neighbours = {
  mailer: Mailer
  links: PreferenceLinks
  pusher: Pusher
  /** The public VAPID key: 65 bytes in base64url. */
  webPushKey: string
  isAllowedEndpoint: (endpoint: string) => boolean
  unreadMessages: UnreadMessages & UnreadToMail
  hasStoppedRinging: HasStoppedRinging
  resolveUser: ResolveUser
  mayTalk: MayTalk
}

export type NotificationParts = Neighbours & {
  store: NotificationStore
  preferences: Preferences
  pushTokenStore: PushTokenStore
}

export function createNotifications(core: Core, neighbours: Neighbours) {
  const { orm } = core
  const store = createNotificationStore(orm)
  const pushTokenStore = createPushTokenStore(core)
  const preferences = createPreferences(core, store)
  const parts = { ...neighbours, store, preferences, pushTokenStore }
  const messagePushes = createMessagePushes(core, parts)
  const notifier = createNotifier(core, parts)
  const unreadMail = createUnreadMail(core, parts)
  const announcementStore = createAnnouncementStore(orm)
  const announcements = createAnnouncements(core, {
    store: announcementStore,
    notifier,
    isPresent: (userId) => store.findPerson(userId) !== undefined,
  })

  return {
    unreadCount: notifier.unreadCount,
    retention: [...notificationRetention, deliveryRetention],
    routes: (app) =>
      notificationRoutes(app, {
        ...parts,
        notifier,
        pushTokens: createPushTokens(core, parts),
        announcements,
        deliveries: core.deliveries,
      }),
    serverFrames: model.serverFrames,
    jobs: {
      ...createPushJobs(core, { ...parts, messagePushes }),
      async notification({ user_id, ...event }, { withOutcome }) {
        withOutcome(() => notifier.notify(user_id, event))
      },
      notification_mail: createMailJob(core, parts),
      unread_mail: unreadMail.job,
      announcement: announcements.job,
    },
    eventData: {
      'notification.created'({ user_id = '', notification_id = '' }) {
        // A notification of a deleted user counts as gone, although a job still deletes it.
        const row = store.findPerson(user_id) && store.find(user_id, notification_id)
        return row && { notification: { ...model.notificationView(row), user_id } }
      },
      'broadcast.completed'({ announcement_id = '' }) {
        const row = announcementStore.findItem(announcement_id)
        return row && { broadcast: model.announcementProgressView(row) }
      },
    },
    mailPreferences: createMailPreferences(parts),
    wantsMail: (userId: string, type: PreferenceType) => preferences.channelsOf(userId, type).email,
    notify: notifier.notify,
    forgetReplies: notifier.forgetReplies,
    pushMessage(message: Arrived): void {
      messagePushes.arrived(message)
      if (!message.isCopy) unreadMail.arrived(message.recipientId)
    },
    noteVisit: unreadMail.visited,
    onJobChanged: unreadMail.forgetDue,
    exports: {
      notifications: {
        description: 'The notifications of the person.',
        item: model.Notification,
        each: (userId) => store.each(userId).map(model.notificationView),
      },
      push_tokens: {
        description: 'The devices that get pushes.',
        item: model.PushToken,
        each: (userId) => pushTokenStore.listAll(userId).map(model.pushTokenView),
      },
      notification_preferences: {
        description: 'One entry.',
        item: model.Preferences,
        each: (userId) => [model.preferencesView(preferences.list(userId))],
      },
      deliveries: {
        description: 'The last mails and pushes to the person.',
        item: model.Delivery,
        each: (userId) => core.deliveries.each(userId).map(model.deliveryView),
      },
    },
    /** Deletes a deleted user's notifications, then removes their name from announcements and other users' notifications. */
    erase(userId: string, limit: number, after = '') {
      if (store.deleteSome(userId, limit).length > 0) return after
      // Before the notifications: an announcement may still be arriving.
      if (after === '') announcementStore.eraseNames(userId)
      const rows = store.listNaming(userId, limit, after)
      rows.forEach(notifier.eraseName)
      return rows.at(-1)?.id
    },
    forget(userId: string): void {
      store.deletePreferences(userId)
      pushTokenStore.deleteOfUser(userId)
    },
  } satisfies Module & Record<string, unknown>
}
