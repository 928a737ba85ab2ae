import { and, asc, count, eq, gt, isNull, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { announcements, users } from '../../db/schema.ts'
import type { Role } from '../../lib/vocabulary.ts'

export type AnnouncementRow = typeof announcements.$inferSelect
export type NewAnnouncementRow = typeof announcements.$inferInsert
export type AnnouncementStore = ReturnType<typeof createAnnouncementStore>

/** SQL over announcements and whom they reach. */
export function createAnnouncementStore(orm: Orm) {
  const present = (role: Role | null) =>
    and(isNull(users.deletedAt), role === null ? undefined : eq(users.role, role))

  return {
    insert: (row: NewAnnouncementRow): AnnouncementRow =>
      orm.insert(announcements).values(row).returning().get(),
    find: (id: string): AnnouncementRow | undefined =>
      orm.select().from(announcements).where(eq(announcements.id, id)).get(),
    findRunning: (id: string): AnnouncementRow | undefined =>
      orm
        .select()
        .from(announcements)
        .where(and(eq(announcements.id, id), isNull(announcements.completedAt)))
        .get(),
    /** Whether somebody is an admin at this moment. */
    maySend(senderId: string): boolean {
      const isAdmin = and(eq(users.role, 'admin'), isNull(users.disabledAt))
      const found = orm
        .select({ id: users.id })
        .from(users)
        .where(and(eq(users.id, senderId), isAdmin))
      return found.get() !== undefined
    },
    findByClientId(senderId: string, clientId: string): AnnouncementRow | undefined {
      const own = and(eq(announcements.senderId, senderId), eq(announcements.clientId, clientId))
      return orm.select().from(announcements).where(own).get()
    },
    /** Everybody, or those with a role. */
    countPeople: (role: Role | null): number =>
      orm.select({ n: count() }).from(users).where(present(role)).get()?.n ?? 0,
    /** The next ones in the order of their ids. */
    listPeople: (role: Role | null, after: string, limit: number): string[] =>
      orm
        .select({ id: users.id })
        .from(users)
        .where(and(present(role), gt(users.id, after)))
        .orderBy(asc(users.id))
        .limit(limit)
        .all()
        .map(({ id }) => id),
    updateProgress: (id: string, delivered: number, lastUserId: string): AnnouncementRow =>
      orm
        .update(announcements)
        .set({ deliveredCount: sql`${announcements.deliveredCount} + ${delivered}`, lastUserId })
        .where(eq(announcements.id, id))
        .returning()
        .get(),
    updateCompleted: (id: string, completedAt: number): AnnouncementRow =>
      orm
        .update(announcements)
        .set({ completedAt })
        .where(eq(announcements.id, id))
        .returning()
        .get(),
  }
}
