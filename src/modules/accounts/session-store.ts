import { and, eq, gt, inArray, isNull, sql } from 'drizzle-orm'
import type { Orm } from '../../db/client.ts'
import { refreshTokens, sessions, users } from '../../db/schema.ts'

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
    revoke(id: string, now: number) {
      orm
        .update(sessions)
        .set({ revokedAt: sql`coalesce(${sessions.revokedAt}, ${now})` })
        .where(eq(sessions.id, id))
        .run()
    },
  }
}
