import type { Core, MayTalk } from '../../core.ts'
import { chunksOf } from '../../lib/chunks.ts'
import { AppError } from '../../lib/errors.ts'
import type { NotificationEvent } from '../../lib/events.ts'
import { findById } from '../../lib/ids.ts'
import type { NotificationType } from '../../lib/vocabulary.ts'
import type { NotificationsReadFrame } from './frames.ts'
import { personKeys } from './model.ts'
import type { Notifier, Outcome, UserReference } from './notifier.ts'
import type { NotificationStore } from './store.ts'

type Parts = { store: NotificationStore; notifier: Notifier; mayTalk: MayTalk }

const typesAboutPeople: readonly NotificationType[] = ['call_incoming', 'call_missed', 'follow_new']

/** Whether a call or follow comes from a person with whom a block exists. */
export function isAboutBlocked(
  mayTalk: MayTalk,
  userId: string,
  { type, data }: Pick<NotificationEvent, 'type' | 'data'>,
): boolean {
  if (!typesAboutPeople.includes(type)) return false
  return personKeys.some((key) => data[key] !== undefined && !mayTalk(userId, data[key]))
}

/** Users per write: few, because a user may have many devices and each device adds a row. */
const notifiedPerWrite = 20

export type NotificationService = ReturnType<typeof createNotificationService>

/** A user's notifications, and notifications reported by the rest of the platform. */
export function createNotificationService(core: Core, { store, notifier, mayTalk }: Parts) {
  const { write, afterCommit, hub, clock } = core

  function publishRead(userId: string) {
    const unread_count = store.count(userId).unread
    const frame: NotificationsReadFrame = { type: 'notifications_read', unread_count }
    afterCommit(() => hub.send([userId], frame))
  }

  return {
    list: store.list,

    unreadCount: (userId: string): number => store.count(userId).unread,

    /** Idempotent.
     *  @throws not_found (unknown or of another user) */
    markRead: (userId: string, idText: string): Promise<void> =>
      write(() => {
        const row = findById(idText, (id) => store.find(userId, id))
        if (!row?.inApp) throw new AppError('not_found')
        if (row.readAt !== null) return
        store.updateRead(userId, row.id, clock.now())
        publishRead(userId)
      }),

    markAllRead: (userId: string): Promise<void> =>
      write(() => {
        if (store.count(userId).unread === 0) return
        store.updateAllRead(userId, clock.now())
        publishRead(userId)
      }),

    /** Creates a notification for each user, or returns the one with the same `dedupeKey`. Calls and follows count as muted
     *  if one of the two users has blocked the other. Unknown users of several are left out.
     *  @throws validation_error for an unknown user who is the only one, and for unknown external ids in `data` */
    async report(references: readonly UserReference[], reported: NotificationEvent) {
      const { ids, unknown } = notifier.peopleOf(references)
      const event = { ...reported, data: notifier.withIds(reported) }
      const outcomes: Outcome[] = []
      const notify = (id: string): Outcome =>
        isAboutBlocked(mayTalk, id, event) ? { kind: 'muted' } : notifier.notify(id, event)
      for (const some of chunksOf(ids, notifiedPerWrite)) {
        outcomes.push(...(await write(() => some.map(notify))))
      }
      const count = (kind: Outcome['kind']) => outcomes.filter((it) => it.kind === kind).length
      return {
        rows: outcomes.flatMap((outcome) =>
          'row' in outcome && outcome.row.inApp ? [outcome.row] : [],
        ),
        duplicates: count('duplicate'),
        muted: count('muted'),
        ...(unknown.length > 0 && { unknown }),
      }
    },
  }
}
