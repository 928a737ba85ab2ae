import { and, asc, eq, gt, inArray, isNull, type SQL, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import {
  notificationCounts,
  notificationPreferences,
  notifications,
  users,
} from '../../db/schema.ts'
import { deleteSome, eachOf, listById, prepareInsert } from '../../db/statements.ts'
import type { RetentionRule } from '../../jobs/retention.ts'
import { lazy } from '../../lib/lazy.ts'
import type { Listing, ListRange } from '../../lib/list-range.ts'
import {
  type CustomType,
  isCustomType,
  type NotificationType,
  type PreferenceType,
} from '../../lib/vocabulary.ts'
import { personKeys } from './model.ts'

export type NotificationRow = typeof notifications.$inferSelect
type PreferenceRow = typeof notificationPreferences.$inferSelect

export type NotificationStore = ReturnType<typeof createNotificationStore>
export type Person = NonNullable<ReturnType<NotificationStore['findPerson']>>

const value = sql.placeholder
/** A user in a notification. Must equal the expression of the index. */
const personIn = (key: string) => sql`json_extract(data, ${sql.raw(`'$.${key}'`)})`

/** Triggers maintain the totals. Queries for each notification are prepared: an announcement creates one for every user. */
export function createNotificationStore(orm: Orm) {
  const dedupeKeys = and(
    eq(notifications.userId, value('userId')),
    eq(notifications.dedupeKey, value('dedupeKey')),
  )
  const byDedupeKey = orm.select().from(notifications).where(dedupeKeys).prepare()
  const counts = lazy(() => {
    const { userId, totalCount: total, unreadCount: unread } = notificationCounts
    const own = eq(userId, value('userId'))
    return orm.select({ total, unread }).from(notificationCounts).where(own).prepare()
  })
  const person = lazy(() => {
    const { id, locale, email, disabledAt, emailVerified, quietHours, displayName } = users
    const columns = { id, locale, email, disabledAt, emailVerified, quietHours, displayName }
    const present = and(eq(id, value('id')), isNull(users.deletedAt))
    return orm.select(columns).from(users).where(present).prepare()
  })
  const preference = lazy(() => {
    const { userId, type } = notificationPreferences
    const one = and(eq(userId, value('userId')), eq(type, value('type')))
    return orm.select().from(notificationPreferences).where(one).prepare()
  })

  const customTypes = orm.$client.prepare<{ type: CustomType }, [string]>(
    "SELECT type FROM notification_preferences WHERE user_id = ? AND type GLOB 'custom.*' ORDER BY type",
  )
  const newestTypes = orm.$client.prepare<{ type: NotificationType }, [string]>(
    'SELECT type FROM notifications WHERE user_id = ? ORDER BY id DESC LIMIT 1000',
  )
  const own = (userId: string, id: string) =>
    and(eq(notifications.userId, userId), eq(notifications.id, id))
  const shown = (userId: string) =>
    and(eq(notifications.userId, userId), eq(notifications.inApp, true))
  const unread = (userId: string) =>
    and(eq(notifications.userId, userId), isNull(notifications.readAt))

  const listAfter = (which: SQL | undefined, limit: number, after = ''): NotificationRow[] =>
    orm
      .select()
      .from(notifications)
      .where(and(which, gt(notifications.id, after)))
      .orderBy(asc(notifications.id))
      .limit(limit)
      .all()

  const count = (userId: string) => counts().get({ userId }) ?? { total: 0, unread: 0 }

  return {
    findPerson: (id: string) => person().get({ id }),
    isRemoved: (id: string): boolean =>
      orm.$client.query('SELECT 1 FROM users WHERE id = ? AND deleted_at IS NOT NULL').get(id) !==
      null,
    insert: prepareInsert(orm.$client, notifications),
    find: (userId: string, id: string): NotificationRow | undefined =>
      orm.select().from(notifications).where(own(userId, id)).get(),
    findByDedupeKey: (userId: string, dedupeKey: string): NotificationRow | undefined =>
      byDedupeKey.get({ userId, dedupeKey }),
    count,
    /** Newest first. */
    list: (userId: string, isUnread: boolean, range: ListRange): Listing<NotificationRow> =>
      listById(orm, range, {
        id: notifications.id,
        which: and(shown(userId), isUnread ? unread(userId) : undefined),
        count: () => count(userId)[isUnread ? 'unread' : 'total'],
      }),
    updateRead(userId: string, id: string, readAt: number) {
      orm.update(notifications).set({ readAt }).where(own(userId, id)).run()
    },
    updateAllRead(userId: string, readAt: number) {
      const which = and(shown(userId), unread(userId))
      orm.update(notifications).set({ readAt }).where(which).run()
    },
    /** Unread, not yet mailed notifications of some types, oldest first. */
    listUnmailed(userId: string, types: readonly PreferenceType[], limit: number) {
      const isWanted = inArray(sql<string>`${notifications.type}`, types)
      return listAfter(and(unread(userId), isNull(notifications.mailedAt), isWanted), limit)
    },
    updateMailed(userId: string, rows: readonly NotificationRow[], mailedAt: number | null) {
      for (const { id } of rows)
        orm.update(notifications).set({ mailedAt }).where(own(userId, id)).run()
    },
    deleteOfTicket(userId: string, ticketId: string) {
      const isReply = and(eq(notifications.userId, userId), eq(notifications.type, 'support_reply'))
      const ofTicket = sql`json_extract(data, '$.ticket_id') = ${ticketId}`
      orm.delete(notifications).where(and(isReply, ofTicket)).run()
    },
    deleteOldest(userId: string, count: number) {
      const oldest = orm
        .select({ id: notifications.id })
        .from(notifications)
        .where(shown(userId))
        .orderBy(asc(notifications.id))
        .limit(count)
      const which = and(eq(notifications.userId, userId), inArray(notifications.id, oldest))
      orm.delete(notifications).where(which).run()
    },
    /** Every notification of a user including hidden ones, oldest first. */
    each: (userId: string) => eachOf(orm, notifications, 'id', eq(notifications.userId, userId)),
    listNaming: (id: string, limit: number, after?: string): NotificationRow[] =>
      personKeys
        .flatMap((key) => listAfter(eq(personIn(key), id), limit, after))
        .sort((one, other) => (one.id < other.id ? -1 : 1))
        .slice(0, limit),
    updateTexts({ userId, id, title, body, data }: NotificationRow) {
      orm.update(notifications).set({ title, body, data }).where(own(userId, id)).run()
    },
    findPreference: (userId: string, type: PreferenceType): PreferenceRow | undefined =>
      preference().get({ userId, type }),
    listCustomTypes: (userId: string): CustomType[] =>
      customTypes.all(userId).map(({ type }) => type),
    /** Types of the platform among the user's newest thousand notifications. */
    listReceivedTypes: (userId: string): CustomType[] =>
      [...new Set(newestTypes.all(userId).map(({ type }) => type))].filter(isCustomType).sort(),
    upsertPreference(row: PreferenceRow) {
      const { userId, type } = notificationPreferences
      orm
        .insert(notificationPreferences)
        .values(row)
        .onConflictDoUpdate({ target: [userId, type], set: row })
        .run()
    },
    deleteSome: (userId: string, limit: number): string[] =>
      deleteSome(orm, notifications.id, eq(notifications.userId, userId), limit),
    deletePreferences(userId: string) {
      orm.delete(notificationPreferences).where(eq(notificationPreferences.userId, userId)).run()
    },
  }
}

const key = [notifications.userId, notifications.id]
export const notificationRetention: readonly RetentionRule[] = [
  { key, time: notifications.createdAt, days: 90, which: 'read_at IS NOT NULL' },
  { key, time: notifications.createdAt, days: 180 },
  { key, time: notifications.createdAt, days: 7, which: 'in_app = 0' },
]
