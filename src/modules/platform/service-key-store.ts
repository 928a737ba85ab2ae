import { and, count, desc, eq, isNull, lt } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { serviceKeys } from '../../db/schema.ts'
import type { RowRange } from '../../lib/list-range.ts'

export type ServiceKeyRow = typeof serviceKeys.$inferSelect

export type ServiceKeyStore = ReturnType<typeof createServiceKeyStore>

/** SQL over service keys. */
export function createServiceKeyStore(orm: Orm) {
  return {
    insert: (row: typeof serviceKeys.$inferInsert): ServiceKeyRow =>
      orm.insert(serviceKeys).values(row).returning().get(),
    find: (id: string): ServiceKeyRow | undefined =>
      orm.select().from(serviceKeys).where(eq(serviceKeys.id, id)).get(),
    findLiveByHash: (hash: string): ServiceKeyRow | undefined =>
      orm
        .select()
        .from(serviceKeys)
        .where(and(eq(serviceKeys.hash, hash), isNull(serviceKeys.revokedAt)))
        .get(),
    listLive: (): ServiceKeyRow[] =>
      orm.select().from(serviceKeys).where(isNull(serviceKeys.revokedAt)).all(),
    /** Revoked ones too, newest first. */
    list: ({ limit, offset, before }: RowRange): ServiceKeyRow[] =>
      orm
        .select()
        .from(serviceKeys)
        .where(before === undefined ? undefined : lt(serviceKeys.id, before))
        .orderBy(desc(serviceKeys.id))
        .limit(limit)
        .offset(offset)
        .all(),
    count: (): number => orm.select({ n: count() }).from(serviceKeys).get()?.n ?? 0,
    updateLastUsed(id: string, lastUsedAt: number) {
      orm.update(serviceKeys).set({ lastUsedAt }).where(eq(serviceKeys.id, id)).run()
    },
    updateRevoked(id: string, revokedAt: number) {
      orm.update(serviceKeys).set({ revokedAt }).where(eq(serviceKeys.id, id)).run()
    },
  }
}
