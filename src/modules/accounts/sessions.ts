import { createHash, randomBytes } from 'node:crypto'
import type { AuditTrail } from '../../db/audit-trail.ts'
import type { Clock } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import type { SessionStore } from './session-store.ts'

export const refreshTokenMilliseconds = 30 * 24 * 60 * 60_000
/** Two tabs may race for one refresh: the loser's token is this fresh. */
const raceMilliseconds = 10_000
const tokenPattern = /^rt_[\w-]{43}$/

/** Where a session is used from. */
export type Client = { ip: string; userAgent: string | undefined }

/** Somebody with a live session, at a request. */
export type Caller = { userId: string; sessionId: string; ip: string }

export type Rotation =
  | { outcome: 'rotated'; sessionId: string; userId: string; refreshToken: string }
  | { outcome: 'refused' }
  | { outcome: 'reused'; sessionId: string; userId: string }

export type Sessions = ReturnType<typeof createSessions>

type SessionOptions = { store: SessionStore; audit: AuditTrail; newId: NewId; clock: Clock }

/** Sessions and the families of their refresh tokens. Every function here is SQL to be run inside a `write`. */
export function createSessions({ store, audit, newId, clock }: SessionOptions) {
  function issueToken(sessionId: string, parentHash: string | null): string {
    const token = `rt_${randomBytes(32).toString('base64url')}`
    const expiresAt = clock.now() + refreshTokenMilliseconds
    store.insertToken({ hash: hashOf(token), sessionId, parentHash, expiresAt })
    return token
  }

  function refuse(hash: string, client: Client): Rotation {
    const token = store.findToken(hash)
    if (!token?.consumedAt || token.revokedAt !== null) return { outcome: 'refused' }
    const isRace =
      store.findLiveParent(token.sessionId) === hash &&
      clock.now() - token.consumedAt <= raceMilliseconds
    if (isRace) return { outcome: 'refused' }
    const { sessionId, userId } = token
    store.revoke(sessionId, clock.now())
    audit.record({
      action: 'refresh_token_reused',
      actor: { type: 'user', id: userId },
      target: { type: 'session', id: sessionId },
      ip: client.ip,
    })
    return { outcome: 'reused', sessionId, userId }
  }

  return {
    /** Begins a session.
     *  @returns its id and its first refresh token */
    begin(userId: string, { ip, userAgent }: Client) {
      const id = newId()
      const now = clock.now()
      const agent = userAgent?.slice(0, 256).toWellFormed() ?? null
      store.insert({ id, userId, ip, userAgent: agent, createdAt: now, lastUsedAt: now })
      return { sessionId: id, refreshToken: issueToken(id, null) }
    },

    /** Trades a refresh token for the next one of its family, once. A token that was used before betrays a thief:
     *  its family ends, unless two tabs merely raced (decisions 3). */
    rotate(token: string, client: Client): Rotation {
      if (!tokenPattern.test(token)) return { outcome: 'refused' }
      const hash = hashOf(token)
      const sessionId = store.consumeToken(hash, clock.now())
      if (!sessionId) return refuse(hash, client)
      const session = store.updateUsed(sessionId, clock.now())
      const refreshToken = issueToken(sessionId, hash)
      return { outcome: 'rotated', sessionId, userId: session.userId, refreshToken }
    },

    /** Ends the session of a refresh token, if it is the user's.
     *  @returns the id of the session that ended */
    endByToken(token: string, userId: string): string | undefined {
      const found = store.findToken(hashOf(token))
      if (found?.userId !== userId) return undefined
      store.revoke(found.sessionId, clock.now())
      return found.sessionId
    },
  }
}

function hashOf(token: string) {
  return createHash('sha256').update(token).digest('hex')
}
