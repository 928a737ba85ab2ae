import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Client, Notification } from '../../../client/src/client.ts'
import { type List, useList } from '../ui/resource.ts'
import { partsOf } from './lists.ts'
import { listen } from './session.ts'

/** The number on the badge. The client asks for it when the channel opens, and hears when it changes. */
export function openNotificationBadge(client: Client) {
  const count = signal(0)
  const close = client.on('unread_notifications', (event) => {
    count.value = event.count
  })
  return { count, close }
}

export type Notifications = List<Notification> & {
  markRead: (notification: Notification) => Promise<unknown>
  markAllRead: () => Promise<unknown>
}

/** Newest first, kept up to date by the channel. */
export function useNotifications(client: Client): Notifications {
  const list = useList<Notification>('notifications', partsOf(client, 'GET /v1/notifications'))
  const { update, reload } = list
  useEffect(
    () =>
      listen(client, {
        status: ({ status }) => status === 'open' && reload(),
        notification: ({ notification }) => update((items) => [notification, ...items]),
        // Perhaps on another device, and perhaps not all of them.
        notifications_read: () => reload(),
      }),
    [client],
  )
  return {
    ...list,
    markRead({ id }) {
      update((items) => items.map((item) => (item.id === id ? { ...item, read: true } : item)))
      return client.notifications.markRead(id)
    },
    markAllRead() {
      update((items) => items.map((item) => ({ ...item, read: true })))
      return client.notifications.markAllRead()
    },
  }
}
