import { asc, count, eq, gt } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { cannedReplies } from '../../db/schema.ts'
import type { RowRange } from '../../lib/list-range.ts'

export type CannedReplyRow = typeof cannedReplies.$inferSelect

export type CannedReplyStore = ReturnType<typeof createCannedReplyStore>

/** SQL over answers that admins keep ready. */
export function createCannedReplyStore(orm: Orm) {
  const { id } = cannedReplies

  return {
    insert: (row: CannedReplyRow): CannedReplyRow =>
      orm.insert(cannedReplies).values(row).returning().get(),
    /** @returns undefined when there is none of this id */
    update: (
      known: string,
      changes: Partial<Omit<CannedReplyRow, 'id'>>,
    ): CannedReplyRow | undefined =>
      orm.update(cannedReplies).set(changes).where(eq(id, known)).returning().get(),
    /** Whether there was one. */
    delete: (known: string): boolean =>
      orm.delete(cannedReplies).where(eq(id, known)).returning({ id }).get() !== undefined,
    /** Oldest first. */
    list: ({ limit, offset, before: after }: RowRange): CannedReplyRow[] =>
      orm
        .select()
        .from(cannedReplies)
        .where(after === undefined ? undefined : gt(id, after))
        .orderBy(asc(id))
        .limit(limit)
        .offset(offset)
        .all(),
    count: (): number => orm.select({ n: count() }).from(cannedReplies).get()?.n ?? 0,
  }
}
