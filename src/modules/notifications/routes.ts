import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { operation } from '../../http/operation.ts'
import { envelope, ListOf, listQuery, listRange } from '../../http/pagination.ts'
import { routeBase } from '../../http/request-context.ts'
import { invalidField } from '../../lib/errors.ts'
import { notificationTypes } from '../../lib/vocabulary.ts'
import {
  Notification,
  notificationView,
  Preferences,
  PreferencesUpdate,
  preferencesView,
  UnreadCount,
} from './model.ts'
import type { PreferenceChanges, Preferences as PreferenceService } from './preferences.ts'
import type { NotificationService } from './service.ts'

const tag = 'Notifications'
const pageSize = 20

type NotificationRoutesOptions = {
  notifications: NotificationService
  preferences: PreferenceService
}

/** A user's own notifications (spec 4.5). */
export function notificationRoutes({ notifications, preferences }: NotificationRoutesOptions) {
  return new Elysia({ name: 'notifications' })
    .use(routeBase)
    .get(
      '/v1/notifications',
      ({ query, context }) => {
        const range = listRange(query, pageSize)
        const listing = notifications.list(context.user.userId, isUnread(query), range)
        return envelope(range, listing, notificationView)
      },
      {
        access: 'user',
        limit: 'default',
        detail: operation({
          tag,
          query: {
            ...listQuery(pageSize),
            unread: Type.Boolean({ description: '`true` shows the unread ones alone.' }),
          },
          summary: 'List notifications, newest first',
          success: { 200: ListOf(Notification) },
        }),
      },
    )
    .get(
      '/v1/notifications/unread-count',
      ({ context }) => ({ count: notifications.unreadCount(context.user.userId) }),
      {
        access: 'user',
        limit: 'default',
        detail: operation({
          tag,
          summary: 'Count unread notifications',
          success: { 200: UnreadCount },
        }),
      },
    )
    .put(
      '/v1/notifications/:id/read',
      async ({ params, context }) => {
        await notifications.markRead(context.user.userId, params.id)
      },
      {
        access: 'user',
        limit: 'default',
        detail: operation({ tag, summary: 'Mark a notification as read', success: { 204: null } }),
      },
    )
    .put(
      '/v1/notifications/read-all',
      async ({ context }) => {
        await notifications.markAllRead(context.user.userId)
      },
      {
        access: 'user',
        limit: 'default',
        detail: operation({
          tag,
          summary: 'Mark every notification as read',
          success: { 204: null },
        }),
      },
    )
    .get(
      '/v1/notifications/preferences',
      ({ context }) => preferencesView(preferences.list(context.user.userId)),
      {
        access: 'user',
        limit: 'default',
        detail: operation({
          tag,
          summary: 'What one is told of, and how',
          success: { 200: Preferences },
        }),
      },
    )
    .put(
      '/v1/notifications/preferences',
      async ({ body, context }) => {
        const { userId } = context.user
        return preferencesView(await preferences.update(userId, changesOf(body)))
      },
      {
        access: 'user',
        limit: 'default',
        body: PreferencesUpdate,
        detail: operation({
          tag,
          summary: 'Switch types of notifications on or off; what is not named stays',
          success: { 200: Preferences },
        }),
      },
    )
}

function isUnread({ unread }: Record<string, unknown>): boolean {
  if (unread === undefined || unread === 'false') return false
  if (unread === 'true') return true
  throw invalidField('unread', 'one_of', 'true, false')
}

function changesOf(body: PreferencesUpdate): PreferenceChanges {
  return Object.fromEntries(
    notificationTypes.flatMap((type) => {
      const { in_app, push, email } = body[type] ?? {}
      const changes = {
        ...(in_app !== undefined && { inApp: in_app }),
        ...(push !== undefined && { push }),
        ...(email !== undefined && { email }),
      }
      return Object.keys(changes).length > 0 ? [[type, changes]] : []
    }),
  )
}
