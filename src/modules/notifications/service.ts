import type { Write } from '../../db/writer.ts'
import type { Clock } from '../../lib/clock.ts'
import { AppError, invalidField } from '../../lib/errors.ts'
import { parseId } from '../../lib/ids.ts'
import { type Listing, type ListRange, listById } from '../../lib/list-range.ts'
import type { Hub } from '../../realtime/hub.ts'
import { notificationsReadFrame } from './frames.ts'
import { notificationView } from './model.ts'
import type { NotificationEvent, Notifier, Outcome } from './notifier.ts'
import type { NotificationRow, NotificationStore } from './store.ts'

type NotificationServiceOptions = {
  store: NotificationStore
  notifier: Notifier
  write: Write
  hub: Hub
  clock: Clock
}

/** Users in one commit: each may have many devices, of which each makes a row. */
const part = 20

export type NotificationService = ReturnType<typeof createNotificationService>

/** A user's notifications (spec 4.5), and those that the rest of the platform reports (decisions 9). */
export function createNotificationService(options: NotificationServiceOptions) {
  const { store, notifier, write, hub, clock } = options

  return {
    /** Newest first. */
    list: (userId: string, isUnread: boolean, range: ListRange): Listing<NotificationRow> =>
      listById(
        range,
        (rows) => store.list(userId, isUnread, rows),
        () => (isUnread ? store.count(userId).unread : store.count(userId).total),
      ),

    unreadCount: (userId: string): number => store.count(userId).unread,

    /** Again changes nothing.
     *  @throws not_found (unknown, or somebody else's). Spec 3.2. */
    async markRead(userId: string, idText: string): Promise<void> {
      const id = parseId(idText) ?? ''
      const { wasUnread, unread } = await write(() => {
        if (!store.find(userId, id)) throw new AppError('not_found')
        const wasUnread = store.updateRead(userId, id, clock.now())
        return { wasUnread, unread: store.count(userId).unread }
      })
      if (wasUnread) hub.send([userId], notificationsReadFrame(unread))
    },

    async markAllRead(userId: string): Promise<void> {
      const { unread } = await write(() => {
        const before = store.count(userId)
        store.updateAllRead(userId, clock.now())
        return before
      })
      if (unread > 0) hub.send([userId], notificationsReadFrame(0))
    },

    /** Makes a notification for each user, or gives the one that the same `dedupeKey` made.
     *  @throws validation_error (`field`): somebody who is none */
    async report(userIds: readonly string[], event: NotificationEvent, field: string) {
      const ids = [...new Set(userIds.map((id) => parseId(id) ?? ''))]
      if (!ids.every((id) => store.findPerson(id))) throw invalidField(field, 'unknown_user')
      const outcomes: Outcome[] = []
      for (let start = 0; start < ids.length; start += part) {
        const some = ids.slice(start, start + part)
        const made = await write(() => some.map((id) => notifier.create(id, event)))
        made.forEach(notifier.tell)
        outcomes.push(...made)
      }
      const count = (kind: Outcome['kind']) => outcomes.filter((it) => it.kind === kind).length
      return {
        rows: outcomes.flatMap((outcome) => ('row' in outcome ? [outcome.row] : [])),
        duplicates: count('duplicate'),
        muted: count('muted'),
      }
    },

    /** For a person's own export. */
    *exportNotifications(userId: string) {
      for (const row of store.each(userId)) yield notificationView(row)
    },
  }
}
