import { and, desc, eq, exists, isNotNull, notInArray, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { type HeldPush, pushTokens, sessions } from '../../db/schema.ts'
import { listById, rowsOf } from '../../db/statements.ts'
import type { Listing, ListRange } from '../../lib/list-range.ts'

export type { HeldPush, PushSubject } from '../../db/schema.ts'
export type PushTokenRow = typeof pushTokens.$inferSelect
export type LiveDevice = Pick<PushTokenRow, 'id' | 'service'>
export type PushTokenStore = ReturnType<typeof createPushTokenStore>

/** A token is live while its session is open and its user enabled; other tokens are neither listed nor used. */
export function createPushTokenStore(orm: Orm) {
  const isLive = `(SELECT revoked_at IS NULL FROM sessions WHERE id = session_id)
    AND (SELECT disabled_at IS NULL FROM users WHERE id = user_id)`
  const ofUser = (userId: string) => eq(pushTokens.userId, userId)
  const liveOf = (userId: string) => and(ofUser(userId), sql.raw(isLive))
  // Runs for every message to an offline user.
  const live = orm.$client.prepare<LiveDevice, [string]>(
    `SELECT id, service FROM push_tokens WHERE user_id = ? AND ${isLive}`,
  )

  return {
    ...rowsOf(orm, pushTokens),
    findByHash: (tokenHash: string): PushTokenRow | undefined =>
      orm.select().from(pushTokens).where(eq(pushTokens.tokenHash, tokenHash)).get(),
    findLive(userId: string, id: string): PushTokenRow | undefined {
      const one = and(eq(pushTokens.id, id), liveOf(userId))
      return orm.select().from(pushTokens).where(one).get()
    },
    listDevices: (userId: string): LiveDevice[] => live.all(userId),
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
