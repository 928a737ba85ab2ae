import { and, asc, desc, eq, inArray, isNull, lt, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { notificationCounts, notifications, users } from '../../db/schema.ts'
import type { RowRange } from '../../lib/list-range.ts'
import type { NotificationType } from '../../lib/vocabulary.ts'

export type NotificationRow = typeof notifications.$inferSelect
export type NewNotificationRow = Omit<NotificationRow, 'readAt' | 'mailedAt'>

export type NotificationStore = ReturnType<typeof createNotificationStore>

const value = sql.placeholder
const exportPart = 200

/** SQL over notifications. Totals are kept by triggers. */
export function createNotificationStore(orm: Orm) {
  const insert = orm
    .insert(notifications)
    .values({
      userId: value('userId'),
      id: value('id'),
      type: value('type'),
      title: value('title'),
      body: value('body'),
      data: value('data'),
      dedupeKey: value('dedupeKey'),
      createdAt: value('createdAt'),
    })
    .prepare()
  const byDedupeKey = orm
    .select()
    .from(notifications)
    .where(
      and(
        eq(notifications.userId, value('userId')),
        eq(notifications.dedupeKey, value('dedupeKey')),
      ),
    )
    .prepare()
  const counts = orm
    .select({ total: notificationCounts.totalCount, unread: notificationCounts.unreadCount })
    .from(notificationCounts)
    .where(eq(notificationCounts.userId, value('userId')))
    .prepare()
  const person = orm
    .select({
      id: users.id,
      locale: users.locale,
      email: users.email,
      disabledAt: users.disabledAt,
      deletedAt: users.deletedAt,
    })
    .from(users)
    .where(eq(users.id, value('id')))
    .prepare()
  const own = (userId: string, id: string) =>
    and(eq(notifications.userId, userId), eq(notifications.id, id))

  return {
    /** @returns undefined for somebody who is gone, too */
    findPerson(id: string) {
      const found = person.get({ id })
      return found?.deletedAt === null ? found : undefined
    },
    insert(row: NewNotificationRow): NotificationRow {
      insert.run(row)
      return { ...row, readAt: null, mailedAt: null }
    },
    find: (userId: string, id: string): NotificationRow | undefined =>
      orm.select().from(notifications).where(own(userId, id)).get(),
    findByDedupeKey: (userId: string, dedupeKey: string): NotificationRow | undefined =>
      byDedupeKey.get({ userId, dedupeKey }),
    /** How many a user has, and how many of them are unread. */
    count: (userId: string) => counts.get({ userId }) ?? { total: 0, unread: 0 },
    /** Newest first. */
    list(userId: string, isUnread: boolean, { limit, offset, before }: RowRange) {
      return orm
        .select()
        .from(notifications)
        .where(
          and(
            eq(notifications.userId, userId),
            isUnread ? isNull(notifications.readAt) : undefined,
            before === undefined ? undefined : lt(notifications.id, before),
          ),
        )
        .orderBy(desc(notifications.id))
        .limit(limit)
        .offset(offset)
        .all()
    },
    /** @returns whether it was unread */
    updateRead(userId: string, id: string, readAt: number): boolean {
      const unread = and(own(userId, id), isNull(notifications.readAt))
      return orm.update(notifications).set({ readAt }).where(unread).returning().all().length > 0
    },
    updateAllRead(userId: string, readAt: number) {
      const unread = and(eq(notifications.userId, userId), isNull(notifications.readAt))
      orm.update(notifications).set({ readAt }).where(unread).run()
    },
    /** Unread ones of some types that no mail has told of, oldest first. */
    listUnmailed: (
      userId: string,
      types: readonly NotificationType[],
      limit: number,
    ): NotificationRow[] =>
      orm
        .select()
        .from(notifications)
        .where(
          and(
            eq(notifications.userId, userId),
            isNull(notifications.readAt),
            isNull(notifications.mailedAt),
            inArray(notifications.type, [...types]),
          ),
        )
        .orderBy(asc(notifications.id))
        .limit(limit)
        .all(),
    updateMailed(userId: string, id: string, mailedAt: number) {
      orm.update(notifications).set({ mailedAt }).where(own(userId, id)).run()
    },
    deleteOldest(userId: string, count: number) {
      orm.run(sql`DELETE FROM ${notifications} WHERE ${notifications.userId} = ${userId} AND ${notifications.id} IN (
        SELECT id FROM ${notifications} WHERE user_id = ${userId} ORDER BY id LIMIT ${count})`)
    },
    deleteOfUser(userId: string) {
      orm.delete(notifications).where(eq(notifications.userId, userId)).run()
    },
    /** Every notification of a user, newest first, read in small parts. */
    *each(userId: string): Iterable<NotificationRow> {
      let part: NotificationRow[] = []
      do {
        const before = part.at(-1)?.id
        part = this.list(userId, false, { limit: exportPart, offset: 0, before })
        yield* part
      } while (part.length === exportPart)
    },
  }
}
