import { and, count, desc, eq, isNotNull, lt, or, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { blocks, users } from '../../db/schema.ts'
import { eachRow } from '../../db/statements.ts'
import type { RowRange } from '../../lib/list-range.ts'

export type BlockStore = ReturnType<typeof createBlockStore>
export type BlockItem = ReturnType<BlockStore['list']>[number]

/** SQL over blocks. A block has a row on either side, so that sending a message costs one look-up. */
export function createBlockStore(orm: Orm) {
  const apart = orm.$client.prepare<unknown, [string, string]>(
    'SELECT 1 FROM blocks WHERE user_id = ? AND other_user_id = ?',
  )
  const side = (userId: string, otherUserId: string) =>
    and(eq(blocks.userId, userId), eq(blocks.otherUserId, otherUserId))
  const nameOf = (userId: string) =>
    sql<string>`(SELECT ${users.displayName} FROM ${users} WHERE ${users.id} = ${userId})`
  const own = (userId: string) => and(eq(blocks.userId, userId), isNotNull(blocks.id))

  const list = (userId: string, { limit, offset, before }: RowRange) =>
    orm
      .select({
        id: blocks.id,
        blockedAt: blocks.blockedAt,
        user: { id: blocks.otherUserId, displayName: blocks.otherName },
      })
      .from(blocks)
      .where(and(own(userId), before === undefined ? undefined : lt(blocks.id, before)))
      .orderBy(desc(blocks.id))
      .limit(limit)
      .offset(offset)
      .all()
      // `own` has excluded nulls; the type does not know.
      .map(({ id, blockedAt, user }) => ({ id: id ?? '', blockedAt: blockedAt ?? 0, user }))

  return {
    /** True when either user blocks the other. */
    areApart: (userId: string, otherId: string): boolean => apart.get(userId, otherId) !== null,
    /** The users that this one blocks or is blocked by. */
    listApart: (userId: string): string[] =>
      orm
        .select({ id: blocks.otherUserId })
        .from(blocks)
        .where(eq(blocks.userId, userId))
        .all()
        .map(({ id }) => id),
    isBlocking: (userId: string, otherId: string): boolean =>
      orm
        .select({ id: blocks.id })
        .from(blocks)
        .where(and(side(userId, otherId), isNotNull(blocks.id)))
        .get() !== undefined,
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
    /** For a mutual block: the other side's block stays, and both rows with it. */
    updateUnblocked(userId: string, otherUserId: string) {
      const set = { id: null, blockedAt: null }
      orm.update(blocks).set(set).where(side(userId, otherUserId)).run()
    },
    delete(userId: string, otherUserId: string) {
      const both = or(side(userId, otherUserId), side(otherUserId, userId))
      orm.delete(blocks).where(both).run()
    },
    /** Newest first. */
    list,
    each: (userId: string) =>
      eachRow<ReturnType<typeof list>[number]>((last, limit) =>
        list(userId, { limit, offset: 0, before: last?.id }),
      ),
    count: (userId: string): number =>
      orm.select({ n: count() }).from(blocks).where(own(userId)).get()?.n ?? 0,
  }
}
