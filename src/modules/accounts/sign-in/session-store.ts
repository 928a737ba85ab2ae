import { and, between, eq, gt, gte, inArray, isNotNull, isNull } from 'drizzle-orm'
import type { Core } from '../../../core.ts'
import { pushTokens, refreshTokens, sessions } from '../../../db/schema.ts'
import {
  deleteSome,
  eachOf,
  hasRow,
  listById,
  listColumn,
  prepareInsert,
  rowsOf,
} from '../../../db/statements.ts'
import { day } from '../../../lib/clock.ts'
import type { Listing, ListRange } from '../../../lib/list-range.ts'
import {
  type AccessClaims,
  longestSessionMilliseconds,
  type UserPrincipal,
} from '../../../lib/principal.ts'
import type { Role } from '../../../lib/vocabulary.ts'

/** A repeated refresh needs an idempotency key and an unused successor. */
const repeatMilliseconds = day
export const refreshTokenMilliseconds = 30 * day

export type SessionRow = typeof sessions.$inferSelect
type RefreshToken = Pick<typeof refreshTokens.$inferSelect, 'sessionId' | 'consumedAt'> &
  Pick<SessionRow, 'userId' | 'revokedAt'> & {
    /** The parent of the session's one unused token. */
    liveParentHash: string | null
  }

export function createSessionStore({ orm, clock, config }: Core) {
  const sqlite = orm.$client
  // Runs with every request, so omit the subquery when the second factor is optional.
  const isSecured =
    config.adminTotp === 'optional'
      ? '1'
      : `EXISTS (SELECT 1 FROM totp_factors f
         WHERE f.user_id = u.id AND confirmed_at IS NOT NULL)`
  const access = sqlite.prepare<
    { role: Role; isVerified: number; isSecured: number; isByPlatform: number },
    [string, string]
  >(
    `SELECT role, email_verified AS isVerified, ${isSecured} AS isSecured, is_by_platform AS isByPlatform
     FROM sessions s JOIN users u ON u.id = s.user_id
     WHERE s.id = ? AND s.user_id = ? AND s.revoked_at IS NULL AND u.disabled_at IS NULL`,
  )
  const consume = sqlite.prepare<{ sessionId: string }, [string, number, string | null]>(
    `UPDATE refresh_tokens SET consumed_at = ?2, key_hash = ?3
     WHERE hash = ?1 AND consumed_at IS NULL AND expires_at > ?2 AND EXISTS (
       SELECT 1 FROM sessions s JOIN users u ON u.id = s.user_id
       WHERE s.id = refresh_tokens.session_id AND s.revoked_at IS NULL AND u.disabled_at IS NULL)
     RETURNING session_id AS sessionId`,
  )
  const token = sqlite.prepare<RefreshToken, [string]>(
    `SELECT t.session_id AS sessionId, s.user_id AS userId, t.consumed_at AS consumedAt, s.revoked_at AS revokedAt,
       (SELECT parent_hash FROM refresh_tokens WHERE session_id = s.id AND consumed_at IS NULL) AS liveParentHash
     FROM refresh_tokens t JOIN sessions s ON s.id = t.session_id WHERE t.hash = ?`,
  )

  const consumeSuccessor = sqlite.prepare<
    { sessionId: string },
    [string, number, string, string | null]
  >(
    `UPDATE refresh_tokens SET consumed_at = ?2
     WHERE session_id = (SELECT session_id FROM refresh_tokens WHERE hash = ?1) AND parent_hash = ?1
       AND consumed_at IS NULL AND expires_at > ?2 AND EXISTS (
         SELECT 1 FROM refresh_tokens p JOIN sessions s ON s.id = p.session_id JOIN users u ON u.id = s.user_id
         WHERE p.hash = ?1 AND p.key_hash = ?3 AND p.consumed_at > ?2 - ${repeatMilliseconds}
           AND s.user_agent IS ?4 AND s.revoked_at IS NULL AND u.disabled_at IS NULL)
     RETURNING session_id AS sessionId`,
  )

  type Origin = Pick<SessionRow, 'id' | 'userId' | 'ip' | 'revokedAt'>
  const origins = sqlite.prepare<Origin, [string, number]>(
    `SELECT id, user_id AS userId, ip, revoked_at AS revokedAt FROM sessions WHERE id > ? ORDER BY id LIMIT ?`,
  )
  const isOpen = isNull(sessions.revokedAt)
  const live = (userId: string) =>
    and(
      eq(sessions.userId, userId),
      isOpen,
      gt(sessions.lastUsedAt, clock.now() - refreshTokenMilliseconds),
      gt(sessions.createdAt, clock.now() - longestSessionMilliseconds),
    )
  const revoke = sqlite.prepare<unknown, [number, string, string]>(
    'UPDATE sessions SET revoked_at = ? WHERE id = ? AND user_id = ? AND revoked_at IS NULL',
  )
  // Without RETURNING, because a platform may have opened thousands.
  const revokeAll = sqlite.prepare<unknown, [number, string, string]>(
    'UPDATE sessions SET revoked_at = ? WHERE user_id = ? AND id <> ? AND revoked_at IS NULL',
  )

  return {
    /** The user of verified claims; undefined if they are deleted or disabled, or the session has ended. */
    findPrincipal(claims: AccessClaims): UserPrincipal | undefined {
      const found = access.get(claims.sessionId, claims.userId)
      if (!found) return undefined
      const { role, isVerified, isSecured, isByPlatform } = found
      const mayAdminister = role === 'admin' && isSecured === 1
      const mayUseExternalIds = isByPlatform === 1
      return { ...claims, role, isVerified: isVerified === 1, mayAdminister, mayUseExternalIds }
    },
    ...rowsOf(orm, sessions),
    insertToken: prepareInsert(sqlite, refreshTokens),
    /** @returns the id of its session; undefined if the token, its session or its user is not active */
    consumeToken: (hash: string, keyHash: string | null) =>
      consume.get(hash, clock.now(), keyHash)?.sessionId,
    /** The refresh token must have been exchanged within a day, with this key and user agent. */
    consumeSuccessor: (hash: string, keyHash: string, userAgent: string | null) =>
      consumeSuccessor.get(hash, clock.now(), keyHash, userAgent)?.sessionId,
    isConfirmed({ sessionId }: UserPrincipal, milliseconds: number): boolean {
      const now = clock.now()
      // A later confirmation is from before the clock was set back.
      const isRecent = between(sessions.confirmedAt, now - milliseconds, now)
      return hasRow(orm, sessions, and(eq(sessions.id, sessionId), isRecent))
    },
    findToken: (hash: string) => token.get(hash) ?? undefined,
    list: (userId: string, range: ListRange): Listing<SessionRow> =>
      listById(orm, range, { id: sessions.id, which: live(userId) }),
    each: (userId: string, from: string) =>
      eachOf(orm, sessions, 'id', and(eq(sessions.userId, userId), gte(sessions.id, from))),
    /** False when it belongs to another user or has already ended. */
    revoke: (id: string, userId: string): boolean =>
      revoke.run(clock.now(), id, userId).changes > 0,
    revokeAll(userId: string, keptId = ''): void {
      revokeAll.run(clock.now(), userId, keptId)
    },
    listAddresses: (userId: string): string[] =>
      listColumn(
        orm,
        sessions.ip,
        and(eq(sessions.userId, userId), isOpen, isNotNull(sessions.ip)),
      ),
    /** Also ended ones: a million of them may be between two open ones. */
    listOrigins: (after: string, limit: number) => origins.all(after, limit),
    endDevices(userId: string): void {
      revokeAll.run(clock.now(), userId, '')
      orm.delete(pushTokens).where(eq(pushTokens.userId, userId)).run()
    },
    /** A session may have thousands of tokens. */
    erase(userId: string, limit: number): string | undefined {
      const own = eq(sessions.userId, userId)
      const first = orm.select({ id: sessions.id }).from(sessions).where(own)
      const ofFirst = inArray(refreshTokens.sessionId, first.orderBy(sessions.id).limit(limit))
      const deleted = deleteSome(orm, refreshTokens.hash, ofFirst, limit)
      return (deleted.length > 0 ? deleted : deleteSome(orm, sessions.id, own, limit)).at(-1)
    },
  }
}
