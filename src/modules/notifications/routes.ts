import { Flag, UnreadCount } from '../../api/fields.ts'
import { operations } from '../../api/operation.ts'
import { recentlyConfirmed } from '../../http/confirmation.ts'
import { idempotencyKey, idempotent, markReplayed } from '../../http/idempotency.ts'
import { pageOf } from '../../http/pagination.ts'
import type { RouteApp } from '../../http/request-context.ts'
import type { DeliveryStore } from '../../jobs/delivery-store.ts'
import { getById } from '../../lib/ids.ts'
import type { ListRange } from '../../lib/list-range.ts'
import type { Announcements } from './announcements.ts'
import * as model from './model.ts'
import type { NotificationParts } from './notifications.ts'
import type { Notifier } from './notifier.ts'
import type { PushTokens } from './push-tokens.ts'

const user = operations('Notifications', { access: 'user' })
const anybody = operations('Notifications', { access: 'public' })
const platform = operations('Feed', { access: 'service', scope: 'notifications' })
const admin = operations('Administration', { access: 'admin' })
const announcing = operations('Administration', {
  access: 'admin',
  confirm: { ...recentlyConfirmed, onlyFor: { field: 'audience', value: 'all' } },
})

type Parts = NotificationParts & {
  notifier: Notifier
  pushTokens: PushTokens
  announcements: Announcements
  deliveries: DeliveryStore
}

export function notificationRoutes(app: RouteApp, parts: Parts) {
  const { notifier, preferences, pushTokens, webPushKey, announcements } = parts
  app
    .get(
      '/v1/notifications',
      ({ query, context }) => {
        const isUnread = query['unread'] === 'true'
        const list = (range: ListRange) => notifier.list(context.user.userId, isUnread, range)
        return pageOf(query, list, model.notificationView)
      },
      user.list('listNotifications', 'Lists notifications, newest first.', model.Notification, {
        query: { unread: Flag('`true` lists only unread notifications.') },
      }),
    )
    .get(
      '/v1/notifications/unread-count',
      ({ context }) => ({ count: notifier.unreadCount(context.user.userId) }),
      user('getUnreadNotificationCount', 'Counts unread notifications.', { 200: UnreadCount }),
    )
    .put(
      '/v1/notifications/:id/read',
      ({ params, context }) => notifier.markRead(context.user.userId, params.id),
      user(
        'markNotificationRead',
        'Marks a notification as read. A repeated call changes nothing.',
        { 204: null },
      ),
    )
    .put(
      '/v1/notifications/read-all',
      ({ context }) => notifier.markAllRead(context.user.userId),
      user('markAllNotificationsRead', 'Marks every notification as read.', { 204: null }),
    )
    .get(
      '/v1/notifications/preferences',
      ({ context }) => model.preferencesView(preferences.list(context.user.userId)),
      user(
        'getNotificationPreferences',
        'Shows the enabled channels for each type of notification.',
        { 200: model.Preferences },
      ),
    )
    .put(
      '/v1/notifications/preferences',
      async ({ body, context }) =>
        model.preferencesView(await preferences.update(context.user.userId, model.changesOf(body))),
      user(
        'updateNotificationPreferences',
        'Enables or disables channels for each type of notification. Absent types and channels keep their value. Some types cannot be switched off in the app.',
        { 200: model.Preferences, body: model.PreferencesUpdate },
      ),
    )
    .get(
      '/v1/notifications/web-push-key',
      () => ({ public_key: webPushKey }),
      anybody('getWebPushKey', 'Shows the key with which browsers subscribe to Web Push.', {
        200: model.WebPushKey,
      }),
    )
    .post(
      '/v1/notifications/push-tokens',
      async ({ body: { token, platform }, context }) => {
        const { userId, sessionId } = context.user
        return model.pushTokenView(
          await pushTokens.register({ userId, sessionId, token, platform }),
        )
      },
      user(
        'createPushToken',
        'Registers a device for pushes until this session ends. A repeated call with the same token returns the same id. A token of another user moves to you.',
        { 201: model.PushToken, body: model.NewPushToken },
      ),
    )
    .get(
      '/v1/notifications/push-tokens',
      ({ query, context }) =>
        pageOf(query, (range) => pushTokens.list(context.user.userId, range), model.pushTokenView),
      user.list('listPushTokens', 'Lists your devices.', model.PushToken),
    )
    .delete(
      '/v1/notifications/push-tokens/:id',
      ({ params, context }) => pushTokens.remove(context.user.userId, params.id),
      user('deletePushToken', 'Removes a device.', { 204: null }),
    )
    .post(
      '/v1/service/notifications',
      async ({ body, request }) => {
        const { user_id, user_ids, type, title, body: text, data, dedupe_key } = body
        const event = {
          type,
          title: title?.trim(),
          body: text?.trim(),
          data: data ?? {},
          dedupeKey: dedupe_key ?? idempotencyKey(request.headers),
        }
        const references = [...(user_ids ?? []), ...(user_id ? [user_id] : [])]
        const recipients = { references, field: user_id ? 'user_id' : 'user_ids.0' }
        const { rows, ...counts } = await notifier.report(recipients, event)
        return { data: rows.map(model.notificationView), ...counts }
      },
      platform(
        'serviceSendNotifications',
        'Notifies one person or up to a hundred. An absent title or body gets the default text in the language of each person. `duplicates` counts people who already had a notification with this `dedupe_key`. `unknown` lists those of several recipients who do not exist; the others are notified. `muted` counts people who switched the type off, or, for calls and follows, who have blocked or are blocked by a person in `data`. `X-Idempotency-Key` is the `dedupe_key` of a body without one.',
        { 201: model.NotifyResult, body: model.NewNotification, headers: idempotent.headers },
      ),
    )
    .post(
      '/v1/admin/notifications',
      async ({ body, context, request, set }) => {
        const { audience, role, user_ids, title, body: text, data, client_id } = body
        const { announcement, unknown, replayed } = await announcements.send(context.byUser, {
          audience,
          role: role ?? null,
          userIds: user_ids ?? null,
          title: title.trim(),
          body: text.trim(),
          data: data ?? {},
          clientId: client_id ?? idempotencyKey(request.headers),
        })
        markReplayed(set.headers, replayed)
        return { ...model.announcementView(announcement), ...(unknown.length > 0 && { unknown }) }
      },
      announcing(
        'adminSendAnnouncement',
        'Notifies everybody, everybody with a role, or single people. The first two omit disabled accounts; `GET /v1/admin/users?disabled=false`, optionally with `role`, counts them beforehand. Delivery to many recipients takes a while; `GET /v1/admin/notifications/{id}` shows the progress.',
        {
          201: model.SentAnnouncement,
          body: model.NewAnnouncement,
          errors: ['idempotency_mismatch'],
          ...idempotent,
        },
      ),
    )
    .get(
      '/v1/admin/notifications',
      ({ query }) => pageOf(query, announcements.list, model.announcementProgressView),
      admin.list(
        'adminListAnnouncements',
        'Lists the announcements of all admins, newest first.',
        model.AnnouncementProgress,
      ),
    )
    .get(
      '/v1/admin/users/:id/deliveries',
      ({ params, query }) => {
        const { id } = getById(params.id, parts.store.findPerson)
        return pageOf(query, (range) => parts.deliveries.list(id, range), model.deliveryView)
      },
      admin.list(
        'adminListUserDeliveries',
        'Lists the mails and pushes of the last 30 days to a person and what became of them, newest first.',
        model.Delivery,
      ),
    )
    .get(
      '/v1/admin/notifications/:id',
      ({ params }) => model.announcementProgressView(announcements.get(params.id)),
      admin('adminGetAnnouncement', 'Shows an announcement and its progress.', {
        200: model.AnnouncementProgress,
      }),
    )
}
