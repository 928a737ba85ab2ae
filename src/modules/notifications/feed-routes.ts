import { Elysia } from 'elysia'
import { operation } from '../../http/operation.ts'
import { routeBase } from '../../http/request-context.ts'
import { NewNotification, NotifyResult, notificationView } from './model.ts'
import type { NotificationService } from './service.ts'

/** What the rest of the platform has to tell users (decisions 8 and 9). */
export function notificationFeedRoutes({ notifications }: { notifications: NotificationService }) {
  return new Elysia({ name: 'notification-feed' }).use(routeBase).post(
    '/v1/service/notifications',
    async ({ body }) => {
      const { user_id, user_ids, type, title, body: text, data, dedupe_key } = body
      const userIds = [...(user_ids ?? []), ...(user_id ? [user_id] : [])]
      const event = {
        type,
        title: title?.trim(),
        body: text?.trim(),
        data: data ?? {},
        dedupeKey: dedupe_key ?? undefined,
      }
      const field = user_ids ? 'user_ids' : 'user_id'
      const { rows, duplicates, muted } = await notifications.report(userIds, event, field)
      return { data: rows.map(notificationView), duplicates, muted }
    },
    {
      access: 'service',
      scope: 'notifications',
      limit: 'default',
      body: NewNotification,
      detail: operation({
        tag: 'Feed',
        summary: 'Notify one user or up to a hundred',
        description:
          'Texts that are absent are told in the language of each user. `duplicates` had been made with the same `dedupe_key`; `muted` users have switched the type off.',
        success: { 201: NotifyResult },
      }),
    },
  )
}
