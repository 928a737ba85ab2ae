import { and, count, desc, eq, gt, inArray, isNull, lt, ne, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { refreshTokens, sessions, users } from '../../db/schema.ts'
import type { RowRange } from '../../lib/list-range.ts'

export type SessionRow = typeof sessions.$inferSelect
export type NewSession = typeof sessions.$inferInsert
export type NewRefreshToken = typeof refreshTokens.$inferInsert

export type SessionStore = ReturnType<typeof createSessionStore>

/** SQL over sessions and their refresh tokens. */
export function createSessionStore(orm: Orm) {
  return {
    insert(session: NewSession) {
      orm.insert(sessions).values(session).run()
    },
    insertToken(token: NewRefreshToken) {
      orm.insert(refreshTokens).values(token).run()
    },
    /** Uses a token up, once: when it is live and its session and user are too.
     *  @returns the id of its session */
    consumeToken(hash: string, now: number): string | undefined {
      const alive = orm
        .select({ id: sessions.id })
        .from(sessions)
        .innerJoin(users, eq(users.id, sessions.userId))
        .where(and(isNull(sessions.revokedAt), isNull(users.disabledAt)))
      const consumed = orm
        .update(refreshTokens)
        .set({ consumedAt: now })
        .where(
          and(
            eq(refreshTokens.hash, hash),
            isNull(refreshTokens.consumedAt),
            gt(refreshTokens.expiresAt, now),
            inArray(refreshTokens.sessionId, alive),
          ),
        )
        .returning({ sessionId: refreshTokens.sessionId })
        .all()
      return consumed[0]?.sessionId
    },
    findToken(hash: string) {
      return orm
        .select({
          sessionId: refreshTokens.sessionId,
          userId: sessions.userId,
          consumedAt: refreshTokens.consumedAt,
          revokedAt: sessions.revokedAt,
        })
        .from(refreshTokens)
        .innerJoin(sessions, eq(sessions.id, refreshTokens.sessionId))
        .where(eq(refreshTokens.hash, hash))
        .get()
    },
    /** The parent of the session's one unused token. */
    findLiveParent(sessionId: string): string | null | undefined {
      const live = and(eq(refreshTokens.sessionId, sessionId), isNull(refreshTokens.consumedAt))
      return orm
        .select({ parentHash: refreshTokens.parentHash })
        .from(refreshTokens)
        .where(live)
        .get()?.parentHash
    },
    updateUsed(id: string, now: number) {
      return orm
        .update(sessions)
        .set({ lastUsedAt: now })
        .where(eq(sessions.id, id))
        .returning({ userId: sessions.userId })
        .get()
    },
    /** A user's sessions that can still be used, the newest login first. */
    list(userId: string, usedAfter: number, range: RowRange): SessionRow[] {
      const { limit, offset, before } = range
      return orm
        .select()
        .from(sessions)
        .where(
          and(live(userId, usedAfter), before === undefined ? undefined : lt(sessions.id, before)),
        )
        .orderBy(desc(sessions.id))
        .limit(limit)
        .offset(offset)
        .all()
    },
    count(userId: string, usedAfter: number): number {
      return orm.select({ n: count() }).from(sessions).where(live(userId, usedAfter)).get()?.n ?? 0
    },
    /** Ends one session of a user; false when it is not theirs or has ended. */
    revokeOwn(id: string, userId: string, now: number): boolean {
      const own = and(eq(sessions.id, id), eq(sessions.userId, userId), isNull(sessions.revokedAt))
      return orm.update(sessions).set({ revokedAt: now }).where(own).returning().all().length > 0
    },
    /** Ends every session of a user but one.
     *  @returns the ids of those that ended */
    revokeOthers(userId: string, keptId: string | undefined, now: number): string[] {
      const others = and(
        eq(sessions.userId, userId),
        isNull(sessions.revokedAt),
        keptId === undefined ? undefined : ne(sessions.id, keptId),
      )
      const ended = orm.update(sessions).set({ revokedAt: now }).where(others).returning().all()
      return ended.map(({ id }) => id)
    },
    deleteOfUser(userId: string) {
      orm.delete(sessions).where(eq(sessions.userId, userId)).run()
    },
    revoke(id: string, now: number) {
      orm
        .update(sessions)
        .set({ revokedAt: sql`coalesce(${sessions.revokedAt}, ${now})` })
        .where(eq(sessions.id, id))
        .run()
    },
  }
}

function live(userId: string, usedAfter: number) {
  return and(
    eq(sessions.userId, userId),
    isNull(sessions.revokedAt),
    gt(sessions.lastUsedAt, usedAfter),
  )
}
