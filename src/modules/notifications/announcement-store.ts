import { and, eq, getTableColumns, gt, isNull, or, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { announcements, users } from '../../db/schema.ts'
import { countRows, hasRow, listById, listColumn, rowsOf } from '../../db/statements.ts'
import type { ListRange } from '../../lib/list-range.ts'
import type { Role } from '../../lib/vocabulary.ts'
import { personKeys } from './model.ts'

export type AnnouncementRow = typeof announcements.$inferSelect
export type AnnouncementItem = NonNullable<ReturnType<AnnouncementStore['findItem']>>
export type AnnouncementStore = ReturnType<typeof createAnnouncementStore>

export function createAnnouncementStore(orm: Orm) {
  const { userIds: _, ...columns } = getTableColumns(announcements)
  const selectItems = () =>
    orm
      .select({ ...columns, sender: { id: users.id, displayName: users.displayName } })
      .from(announcements)
      .innerJoin(users, eq(users.id, announcements.senderId))
  // Disabled users get no announcements, like broadcasts.
  const reached = (role: Role | null) =>
    and(
      isNull(users.deletedAt),
      isNull(users.disabledAt),
      role === null ? undefined : eq(users.role, role),
    )

  return {
    ...rowsOf(orm, announcements),
    /** Removes the names from the data of the announcements about a person. */
    eraseNames(personId: string): void {
      const { data } = announcements
      const isAbout = personKeys.map((key) => sql`${data} ->> ${key} = ${personId}`)
      const left = sql`json_remove(${data}, '$.follower_name', '$.guest_name', '$.host_name')`
      orm
        .update(announcements)
        .set({ data: left })
        .where(or(...isAbout))
        .run()
    },
    findItem: (id: string) => selectItems().where(eq(announcements.id, id)).get(),
    /** Newest first. */
    list: (range: ListRange) =>
      listById(orm, range, { id: announcements.id, select: (which) => selectItems().where(which) }),
    maySend(senderId: string): boolean {
      const isAdmin = and(eq(users.role, 'admin'), isNull(users.disabledAt))
      return hasRow(orm, users, and(eq(users.id, senderId), isAdmin))
    },
    findByClientId(senderId: string, clientId: string): AnnouncementRow | undefined {
      const own = and(eq(announcements.senderId, senderId), eq(announcements.clientId, clientId))
      return orm.select().from(announcements).where(own).get()
    },
    countPeople: (role: Role | null): number => countRows(orm, users, reached(role)),
    listPeople: (role: Role | null, after: string, limit: number): string[] =>
      listColumn(orm, users.id, and(reached(role), gt(users.id, after)), { limit, sorted: true }),
  }
}
