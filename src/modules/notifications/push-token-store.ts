import { and, desc, eq, exists, isNotNull, notInArray, type Placeholder, sql } from 'drizzle-orm'
import type { Core } from '../../core.ts'
import { type HeldPush, pushTokens, sessions } from '../../db/schema.ts'
import { listById, rowsOf } from '../../db/statements.ts'
import type { Listing, ListRange } from '../../lib/list-range.ts'
import { longestSessionMilliseconds } from '../../lib/principal.ts'

export type { HeldPush, PushSubject } from '../../db/schema.ts'
export type PushTokenRow = typeof pushTokens.$inferSelect
export type LiveDevice = Pick<PushTokenRow, 'id' | 'service'>
export type PushTokenStore = ReturnType<typeof createPushTokenStore>

/** A token is live while its session has not ended and its user is enabled; other tokens are neither listed nor used. */
export function createPushTokenStore({ orm, clock }: Pick<Core, 'orm' | 'clock'>) {
  const { id, service } = pushTokens
  const isLive = (oldestLogin: number | Placeholder) =>
    sql`(SELECT revoked_at IS NULL AND created_at > ${oldestLogin} FROM sessions WHERE id = session_id)
      AND (SELECT disabled_at IS NULL FROM users WHERE id = user_id)`
  const oldestLogin = () => clock.now() - longestSessionMilliseconds
  const ofUser = (userId: string | Placeholder) => eq(pushTokens.userId, userId)
  const liveOf = (userId: string) => and(ofUser(userId), isLive(oldestLogin()))
  // Runs for every message to an offline user.
  const live = orm
    .select({ id, service })
    .from(pushTokens)
    .where(and(ofUser(sql.placeholder('userId')), isLive(sql.placeholder('oldestLogin'))))
    .prepare()

  return {
    ...rowsOf(orm, pushTokens),
    isSessionLive: (sessionId: string): boolean =>
      orm.$client
        .query(
          `SELECT 1 FROM sessions s JOIN users u ON u.id = s.user_id
           WHERE s.id = ? AND s.revoked_at IS NULL AND u.disabled_at IS NULL`,
        )
        .get(sessionId) !== null,
    findByHash: (tokenHash: string): PushTokenRow | undefined =>
      orm.select().from(pushTokens).where(eq(pushTokens.tokenHash, tokenHash)).get(),
    findLive(userId: string, id: string): PushTokenRow | undefined {
      const one = and(eq(pushTokens.id, id), liveOf(userId))
      return orm.select().from(pushTokens).where(one).get()
    },
    listDevices: (userId: string): LiveDevice[] => live.all({ userId, oldestLogin: oldestLogin() }),
    /** Includes tokens of ended sessions. */
    listAll: (userId: string): PushTokenRow[] =>
      orm.select().from(pushTokens).where(ofUser(userId)).all(),
    /** Newest first. */
    listLive: (userId: string, range: ListRange): Listing<PushTokenRow> =>
      listById(orm, range, { id: pushTokens.id, which: liveOf(userId) }),
    deleteEnded(userId: string) {
      const ended = orm
        .select({ id: sessions.id })
        .from(sessions)
        .where(and(eq(sessions.id, pushTokens.sessionId), isNotNull(sessions.revokedAt)))
      const which = and(ofUser(userId), exists(ended))
      orm.delete(pushTokens).where(which).run()
    },
    deleteLeastRecent(userId: string, kept: number) {
      const recent = orm
        .select({ id: pushTokens.id })
        .from(pushTokens)
        .where(ofUser(userId))
        .orderBy(desc(pushTokens.registeredAt), desc(pushTokens.id))
        .limit(kept)
      const which = and(ofUser(userId), notInArray(pushTokens.id, recent))
      orm.delete(pushTokens).where(which).run()
    },
    deleteOfUser(userId: string) {
      orm.delete(pushTokens).where(ofUser(userId)).run()
    },
  }
}

export const heldOf = ({ heldPush }: PushTokenRow): HeldPush[] => heldPush ?? []
