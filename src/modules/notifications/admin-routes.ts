import { Elysia } from 'elysia'
import { idempotencyKey, idempotent, markReplayed } from '../../http/idempotency.ts'
import { operation } from '../../http/operation.ts'
import { routeBase } from '../../http/request-context.ts'
import type { Announcements } from './announcements.ts'
import {
  Announcement,
  AnnouncementProgress,
  announcementProgressView,
  announcementView,
  NewAnnouncement,
} from './model.ts'

const tag = 'Administration'

/** What admins tell many (decisions 8). */
export function announcementRoutes({ announcements }: { announcements: Announcements }) {
  return new Elysia({ name: 'announcements' })
    .use(routeBase)
    .post(
      '/v1/admin/notifications',
      async ({ body, context, request, set }) => {
        const { audience, role, user_ids, title, body: text, data, client_id } = body
        const { announcement, replayed } = await announcements.send(context.user.userId, {
          audience,
          role: role ?? null,
          userIds: user_ids ?? null,
          title: title.trim(),
          body: text.trim(),
          data: data ?? {},
          clientId: client_id ?? idempotencyKey(request.headers),
        })
        markReplayed(set.headers, replayed)
        return announcementView(announcement)
      },
      {
        access: 'admin',
        limit: 'default',
        body: NewAnnouncement,
        detail: operation({
          tag,
          summary: 'Notify everybody, everybody with a role, or single users',
          success: { 201: Announcement },
          errors: ['conflict'],
          ...idempotent,
        }),
      },
    )
    .get(
      '/v1/admin/notifications/:id',
      ({ params }) => announcementProgressView(announcements.get(params.id)),
      {
        access: 'admin',
        limit: 'default',
        detail: operation({
          tag,
          summary: 'How far a notification of many has come',
          success: { 200: AnnouncementProgress },
        }),
      },
    )
}
