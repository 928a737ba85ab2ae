import { and, asc, eq, gt, isNull, or, sql } from 'drizzle-orm'
import type { Orm } from '../../db/client.ts'
import { broadcasts, users } from '../../db/schema.ts'

export type BroadcastRow = typeof broadcasts.$inferSelect
export type NewBroadcastRow = typeof broadcasts.$inferInsert
export type BroadcastStore = ReturnType<typeof createBroadcastStore>

const exportPart = 200

/** SQL over broadcasts. */
export function createBroadcastStore(orm: Orm) {
  return {
    insert: (row: NewBroadcastRow): BroadcastRow =>
      orm.insert(broadcasts).values(row).returning().get(),
    find: (id: string): BroadcastRow | undefined =>
      orm.select().from(broadcasts).where(eq(broadcasts.id, id)).get(),
    findRunning: (id: string): BroadcastRow | undefined =>
      orm
        .select()
        .from(broadcasts)
        .where(and(eq(broadcasts.id, id), isNull(broadcasts.completedAt)))
        .get(),
    /** Whether somebody may broadcast at this moment (spec 5.6). */
    maySend(senderId: string): boolean {
      const isHost = and(eq(users.role, 'host'), eq(users.emailVerified, true))
      return (
        orm
          .select({ id: users.id })
          .from(users)
          .where(
            and(
              eq(users.id, senderId),
              isNull(users.disabledAt),
              or(isHost, eq(users.role, 'admin')),
            ),
          )
          .get() !== undefined
      )
    },
    findByClientId(senderId: string, clientId: string): BroadcastRow | undefined {
      const own = and(eq(broadcasts.senderId, senderId), eq(broadcasts.clientId, clientId))
      return orm.select().from(broadcasts).where(own).get()
    },
    /** Notes that `count` more followers, up to `lastFollowerId`, have it. */
    updateProgress: (id: string, count: number, lastFollowerId: string): BroadcastRow =>
      orm
        .update(broadcasts)
        .set({ deliveredCount: sql`${broadcasts.deliveredCount} + ${count}`, lastFollowerId })
        .where(eq(broadcasts.id, id))
        .returning()
        .get(),
    /** Everybody has it: those whom it reached are its recipients. */
    updateCompleted: (id: string, completedAt: number): BroadcastRow =>
      orm
        .update(broadcasts)
        .set({ completedAt, recipientsCount: sql`${broadcasts.deliveredCount}` })
        .where(eq(broadcasts.id, id))
        .returning()
        .get(),
    /** Every broadcast of a user, oldest first, read in small parts. */
    *eachSentBy(senderId: string): Iterable<BroadcastRow> {
      let part: BroadcastRow[] = []
      do {
        const after = part.at(-1)?.id ?? ''
        part = orm
          .select()
          .from(broadcasts)
          .where(and(eq(broadcasts.senderId, senderId), gt(broadcasts.id, after)))
          .orderBy(asc(broadcasts.id))
          .limit(exportPart)
          .all()
        yield* part
      } while (part.length === exportPart)
    },
  }
}
