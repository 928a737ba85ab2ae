import { and, asc, count, desc, eq, inArray, isNotNull, isNull, lt, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { pushTokens, sessions, users } from '../../db/schema.ts'
import type { RowRange } from '../../lib/list-range.ts'

export type PushTokenRow = typeof pushTokens.$inferSelect
export type PushTokenStore = ReturnType<typeof createPushTokenStore>

/** SQL over push tokens. A token of a session that has ended, or of somebody shut out, is as good as none. */
export function createPushTokenStore(orm: Orm) {
  const isLive = and(isNull(sessions.revokedAt), isNull(users.disabledAt))
  const ofUser = (userId: string) => and(eq(pushTokens.userId, userId), isLive)
  const selectLive = () =>
    orm
      .select({ row: pushTokens })
      .from(pushTokens)
      .innerJoin(sessions, eq(sessions.id, pushTokens.sessionId))
      .innerJoin(users, eq(users.id, pushTokens.userId))
  const liveIds = orm
    .select({ id: pushTokens.id })
    .from(pushTokens)
    .innerJoin(sessions, eq(sessions.id, pushTokens.sessionId))
    .innerJoin(users, eq(users.id, pushTokens.userId))
    .where(and(eq(pushTokens.userId, sql.placeholder('userId')), isLive))
    .prepare()

  return {
    insert(row: PushTokenRow) {
      orm.insert(pushTokens).values(row).run()
    },
    findByHash: (tokenHash: string): PushTokenRow | undefined =>
      orm.select().from(pushTokens).where(eq(pushTokens.tokenHash, tokenHash)).get(),
    updateRegistration(
      id: string,
      changes: Pick<PushTokenRow, 'sessionId' | 'platform' | 'registeredAt'>,
    ) {
      orm.update(pushTokens).set(changes).where(eq(pushTokens.id, id)).run()
    },
    findLive: (userId: string, id: string): PushTokenRow | undefined =>
      selectLive()
        .where(and(ofUser(userId), eq(pushTokens.id, id)))
        .get()?.row,
    listLiveIds: (userId: string): string[] => liveIds.all({ userId }).map(({ id }) => id),
    /** Newest first. */
    list: (userId: string, { limit, offset, before }: RowRange): PushTokenRow[] =>
      selectLive()
        .where(and(ofUser(userId), before === undefined ? undefined : lt(pushTokens.id, before)))
        .orderBy(desc(pushTokens.id))
        .limit(limit)
        .offset(offset)
        .all()
        .map(({ row }) => row),
    /** How many a user has, those of ended sessions too. */
    count: (userId: string): number =>
      orm.select({ n: count() }).from(pushTokens).where(eq(pushTokens.userId, userId)).get()?.n ??
      0,
    countLive: (userId: string): number => liveIds.all({ userId }).length,
    /** Those of sessions that have ended are of no use to anybody. */
    deleteEnded(userId: string) {
      const ended = orm
        .select({ id: sessions.id })
        .from(sessions)
        .where(isNotNull(sessions.revokedAt))
      const own = and(eq(pushTokens.userId, userId), inArray(pushTokens.sessionId, ended))
      orm.delete(pushTokens).where(own).run()
    },
    findLeastRecent: (userId: string): PushTokenRow | undefined =>
      orm
        .select()
        .from(pushTokens)
        .where(eq(pushTokens.userId, userId))
        .orderBy(asc(pushTokens.registeredAt), asc(pushTokens.id))
        .get(),
    delete(id: string) {
      orm.delete(pushTokens).where(eq(pushTokens.id, id)).run()
    },
    deleteOfUser(userId: string) {
      orm.delete(pushTokens).where(eq(pushTokens.userId, userId)).run()
    },
  }
}
