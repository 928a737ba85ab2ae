import { signal } from '@preact/signals'
import type { Client, Notification } from '../../../client/src/client.ts'
import { cursorPages, openList } from './lists.ts'
import { listen } from './session.ts'

/** The unread count. The client loads it when the channel opens, and frames update it. */
export function openNotificationBadge(client: Client) {
  const count = signal(0)
  const close = client.on('unread_notifications', (event) => {
    count.value = event.count
  })
  return { count, close }
}

export type Notifications = ReturnType<typeof openNotifications>

/** Newest first, kept up to date by the channel. */
export function openNotifications(client: Client) {
  const list = openList<Notification>(cursorPages(client, 'GET /v1/notifications'), {
    isBefore: (a, b) => a.id > b.id,
    // A read notification stays read.
    isNewer: (known, item) => known.read && !item.read,
  })

  const readAll = () => list.change((item) => ({ ...item, read: true }))
  const unreadCount = () => list.items.value.filter(({ read }) => !read).length

  const close = listen(client, {
    status: ({ status }) => status === 'open' && void list.load(),
    notification: ({ notification }) => list.put([notification]),
    // Read on another device: the frame has the number left, but no ids.
    notifications_read({ unread_count }) {
      if (unread_count === 0) readAll()
      else if (unread_count !== unreadCount()) void list.load()
    },
  })
  void list.load()

  return {
    ...list,
    markRead(item: Notification) {
      list.put([{ ...item, read: true }])
      return client.notifications.markRead(item.id)
    },
    markAllRead() {
      readAll()
      return client.notifications.markAllRead()
    },
    close,
  }
}
