import { and, desc, eq, isNotNull, lt, or, type SQL, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { blocks, users } from '../../db/schema.ts'
import { eachRow, hasRow, listById, listColumn } from '../../db/statements.ts'
import type { ListRange } from '../../lib/list-range.ts'

export type BlockItem = {
  id: string
  blockedAt: number
  user: { id: string; displayName: string }
}

/** A block has a row for each of the two users, so that sending a message costs one look-up. `id` is null in the row of
 *  the blocked user. */
export function createBlockStore(orm: Orm) {
  const blocked = orm.$client.prepare<unknown, [string, string]>(
    'SELECT 1 FROM blocks WHERE user_id = ? AND other_user_id = ?',
  )
  const side = (userId: string, otherUserId: string) =>
    and(eq(blocks.userId, userId), eq(blocks.otherUserId, otherUserId))
  const nameOf = (userId: string) =>
    sql<string>`(SELECT ${users.displayName} FROM ${users} WHERE ${users.id} = ${userId})`
  const own = (userId: string) => and(eq(blocks.userId, userId), isNotNull(blocks.id))

  const select = (which: SQL | undefined) =>
    orm
      .select({
        // Not null in the rows selected by `own`.
        id: sql<string>`${blocks.id}`,
        blockedAt: sql<number>`${blocks.blockedAt}`,
        user: { id: blocks.otherUserId, displayName: blocks.otherName },
      })
      .from(blocks)
      .where(which)

  return {
    areBlocked: (userId: string, otherId: string): boolean => blocked.get(userId, otherId) !== null,
    listBlockedEitherWay: (userId: string, limit?: number): string[] =>
      listColumn(orm, blocks.otherUserId, eq(blocks.userId, userId), { limit }),
    isBlocking: (userId: string, otherId: string): boolean =>
      hasRow(orm, blocks, and(side(userId, otherId), isNotNull(blocks.id))),
    isPresent: (userId: string): boolean =>
      orm.select({ deletedAt: users.deletedAt }).from(users).where(eq(users.id, userId)).get()
        ?.deletedAt === null,
    insert(userId: string, otherUserId: string, block: { id: string; blockedAt: number }) {
      const target = [blocks.userId, blocks.otherUserId]
      const row = { userId, otherUserId, otherName: nameOf(otherUserId), ...block }
      orm.insert(blocks).values(row).onConflictDoUpdate({ target, set: block }).run()
      const other = { userId: otherUserId, otherUserId: userId, otherName: nameOf(userId) }
      orm.insert(blocks).values(other).onConflictDoNothing().run()
    },
    /** Ends one side of a mutual block; both rows stay for the other side. */
    updateUnblocked(userId: string, otherUserId: string) {
      const set = { id: null, blockedAt: null }
      orm.update(blocks).set(set).where(side(userId, otherUserId)).run()
    },
    delete(userId: string, otherUserId: string) {
      const both = or(side(userId, otherUserId), side(otherUserId, userId))
      orm.delete(blocks).where(both).run()
    },
    list: (userId: string, range: ListRange) =>
      listById(orm, range, { id: blocks.id, which: own(userId), select }),
    each: (userId: string) =>
      eachRow<BlockItem>((last, limit) => {
        const next = and(own(userId), last && lt(blocks.id, last.id))
        return select(next).orderBy(desc(blocks.id)).limit(limit).all()
      }),
  }
}
