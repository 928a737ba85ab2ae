import { and, eq, gt, isNull, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { calls, users } from '../../db/schema.ts'

export type CallRow = typeof calls.$inferSelect
export type CallStore = ReturnType<typeof createCallStore>

const value = sql.placeholder

/** SQL over calls. */
export function createCallStore(orm: Orm) {
  const byId = orm
    .select()
    .from(calls)
    .where(eq(calls.id, value('id')))
    .prepare()
  const active = orm
    .select({ id: calls.id })
    .from(calls)
    .where(
      and(
        eq(calls.hostId, value('hostId')),
        eq(calls.guestId, value('guestId')),
        // Written out: the index holds active calls alone.
        sql`${calls.state} = 'active'`,
        gt(calls.activeAt, value('since')),
      ),
    )
    .limit(1)
    .prepare()

  return {
    find: (id: string): CallRow | undefined => byId.get({ id }),
    /** Whether somebody is there, and not gone. */
    hasUser(id: string): boolean {
      const present = and(eq(users.id, id), isNull(users.deletedAt))
      return orm.select({ id: users.id }).from(users).where(present).get() !== undefined
    },
    upsert(row: CallRow) {
      const { state, activeAt, updatedAt } = row
      orm
        .insert(calls)
        .values(row)
        .onConflictDoUpdate({ target: calls.id, set: { state, activeAt, updatedAt } })
        .run()
    },
    /** Whether a call that became active after `since` goes on between them. */
    hasActive: (hostId: string, guestId: string, since: number): boolean =>
      active.get({ hostId, guestId, since }) !== undefined,
  }
}
