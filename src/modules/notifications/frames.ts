import { type Static, Type } from '@sinclair/typebox'
import { Count } from '../../api/fields.ts'
import type { ServerFrames } from '../../realtime/frames.ts'
import { Notification } from './model.ts'

export const NotificationFrame = Type.Object(
  { type: Type.Literal('notification'), notification: Notification, unread_count: Count(0) },
  { description: 'With `events=notification`: a new notification.' },
)
export type NotificationFrame = Static<typeof NotificationFrame>

export const NotificationsReadFrame = Type.Object(
  { type: Type.Literal('notifications_read'), unread_count: Count(0) },
  { description: 'With `events=notification`: one or all notifications were read.' },
)
export type NotificationsReadFrame = Static<typeof NotificationsReadFrame>

export const serverFrames: ServerFrames = {
  notification: { schema: NotificationFrame, group: 'notification' },
  notifications_read: { schema: NotificationsReadFrame, group: 'notification' },
}
