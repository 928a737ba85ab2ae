import { randomBytes } from 'node:crypto'
import type { Core } from '../../../core.ts'
import { type By, onOneself } from '../../../db/audit-trail.ts'
import { AppError } from '../../../lib/errors.ts'
import { sha256 } from '../../../lib/hash.ts'
import { parseId } from '../../../lib/ids.ts'
import {
  type Client,
  longestSessionMilliseconds,
  type UserPrincipal,
} from '../../../lib/principal.ts'
import type { AccountParts } from '../account-parts.ts'
import type { Bans } from '../bans/bans.ts'
import { type Authenticated, type TokenSet, userView } from '../model.ts'
import type { UserRow } from '../store.ts'
import { refreshTokenMilliseconds, type SessionRow } from './session-store.ts'
import { type AccessTokens, accessTokenSeconds } from './tokens.ts'

/** Two tabs may use one refresh token at the same time. Within this time the second use does not count as theft. */
const raceMilliseconds = 10_000

/** Absent after a confirmation of the session. */
export type GivenPassword = string | null | undefined

type OpenSession = { user: UserRow; sessionId: string; refreshToken: string }

export type Sessions = ReturnType<typeof createSessions>

type Parts = AccountParts & { accessTokens: AccessTokens; bans: Bans }

/** Each session is a login on a device, with the family of its refresh tokens (RFC 9700, 4.14.2). */
export function createSessions(core: Core, parts: Parts) {
  const { store, sessionStore, passwords, accessTokens, bans, throttle } = parts
  const { write, afterCommit, audit, hub, newId, clock } = core

  type Family = Pick<SessionRow, 'id' | 'createdAt'>
  type Origin = Pick<SessionRow, 'ip' | 'userAgent'>

  function newRefreshToken({ id: sessionId, createdAt }: Family, parentHash: string | null) {
    const token = `rt_${randomBytes(32).toString('base64url')}`
    const expiresAt = Math.min(
      clock.now() + refreshTokenMilliseconds,
      createdAt + longestSessionMilliseconds,
    )
    const hash = sha256(token)
    const unused = { consumedAt: null, keyHash: null }
    sessionStore.insertToken({ hash, sessionId, parentHash, expiresAt, ...unused })
    return token
  }

  /** With the same key the exchange can be repeated after a lost response: it replaces the unused successor. */
  function rotate(token: string, key: string | undefined, client: Client): OpenSession | undefined {
    const hash = sha256(token)
    const sessionId = consume(hash, key, client)
    const session = sessionId === undefined ? undefined : sessionStore.find(sessionId)
    const user = session && store.find(session.userId)
    if (!session || !user) {
      endIfReused(hash, client)
      return undefined
    }
    if (bans.isBanned(user.email, client.ip)) {
      end(session.id, user.id)
      return undefined
    }
    recordUse(session, client)
    return { user, sessionId: session.id, refreshToken: newRefreshToken(session, hash) }
  }

  function consume(hash: string, key: string | undefined, client: Client): string | undefined {
    if (key === undefined) return sessionStore.consumeToken(hash, null)
    const keyHash = sha256(key)
    return (
      sessionStore.consumeToken(hash, keyHash) ??
      sessionStore.consumeSuccessor(hash, keyHash, client.userAgent)
    )
  }

  // A new address is common, and so is a new user agent after an update. Both at once may mean theft, so that is audited.
  function recordUse({ id, userId, ...former }: SessionRow, { ip, userAgent }: Client) {
    sessionStore.update(id, { lastUsedAt: clock.now(), ip, userAgent })
    if (former.ip === null || ip === former.ip || userAgent === former.userAgent) return
    const details = { from: `${former.ip} ${former.userAgent}`, to: `${ip} ${userAgent}` }
    const actor = { type: 'user', id: userId } as const
    audit.record({ action: 'session_moved', actor, target: { type: 'session', id }, ip, details })
  }

  // A reused token suggests theft, so its session ends, unless two tabs merely raced.
  function endIfReused(hash: string, { ip }: Client) {
    const token = sessionStore.findToken(hash)
    if (!token?.consumedAt || token.revokedAt !== null) return
    const { sessionId, userId, consumedAt, liveParentHash } = token
    if (liveParentHash === hash && clock.now() - consumedAt <= raceMilliseconds) return
    end(sessionId, userId)
    audit.record({
      action: 'refresh_token_reused',
      actor: { type: 'user', id: userId },
      target: { type: 'session', id: sessionId },
      ip,
    })
  }

  function end(sessionId: string, userId: string): boolean {
    afterCommit(() => hub.closeSession(userId, sessionId))
    return sessionStore.revoke(sessionId, userId)
  }

  async function tokenSet({ user, sessionId, refreshToken }: OpenSession): Promise<TokenSet> {
    const access = await accessTokens.mint(user, sessionId)
    return { access_token: access, refresh_token: refreshToken, expires_in: accessTokenSeconds }
  }

  return {
    authenticated: async (session: OpenSession): Promise<Authenticated> => ({
      user: userView(session.user),
      ...(await tokenSet(session)),
    }),

    begin(user: UserRow, client: Origin, isByPlatform = false): OpenSession {
      const [id, createdAt] = [newId(), clock.now()]
      const session = { id, createdAt, lastUsedAt: createdAt, isByPlatform, ...client }
      sessionStore.insert({ ...session, userId: user.id })
      return { user, sessionId: id, refreshToken: newRefreshToken(session, null) }
    },

    /** Exchanges a refresh token for a new token set, once. With the same `key` it can be repeated within a day.
     *  @throws invalid_token (unknown, expired, used, session ended, user disabled) */
    async refresh(token: string, key: string | undefined, client: Client): Promise<TokenSet> {
      const session = await write(() => rotate(token, key, client))
      if (!session) throw new AppError('invalid_token')
      return tokenSet(session)
    },

    /** A token of another user changes nothing. */
    async logout(userId: string, token: string, ip: string): Promise<void> {
      await write(() => {
        const found = sessionStore.findToken(sha256(token))
        if (found?.userId !== userId || !end(found.sessionId, userId)) return
        audit.record({ action: 'logged_out', ...onOneself(userId, ip) })
      })
    },

    /** Checks the user's password. Without a password the pipeline has checked the confirmation of the session.
     *  @throws invalid_credentials · login_throttled · quota_exceeded (10 a minute) */
    async confirm(principal: UserPrincipal, password: GivenPassword, ip: string) {
      const { userId, sessionId } = principal
      const user = store.own(userId)
      if (typeof password !== 'string') return user
      // Counted per session, so that failed logins of strangers do not block a logged-in user.
      const name = `session:${sessionId}`
      throttle.admitConfirmation(name, ip, userId)
      if (!(await passwords.matches(password, user.passwordHash, 'low'))) {
        await write(() => {
          if (!sessionStore.findPrincipal(principal)) throw new AppError('session_ended')
          audit.record({ action: 'password_refused', ...onOneself(userId, ip) })
        })
        throw new AppError('invalid_credentials')
      }
      throttle.succeeded(name, ip)
      return user
    },

    /** Called in the write after `confirm`, because the account or the session may have changed in between.
     *  @returns the user as they are now
     *  @throws session_ended · invalid_credentials */
    mustStillBeConfirmed({ id, passwordHash }: UserRow, principal: UserPrincipal): UserRow {
      if (!sessionStore.findPrincipal(principal)) throw new AppError('session_ended')
      const user = store.own(id)
      if (user.passwordHash !== passwordHash) throw new AppError('invalid_credentials')
      return user
    },

    list: sessionStore.list,

    /** @throws not_found (unknown, ended, or of another user) */
    async end(userId: string, idText: string, by: By): Promise<void> {
      const id = parseId(idText)
      await write(() => {
        if (id === undefined || !end(id, userId)) throw new AppError('not_found')
        audit.record({ action: 'session_ended', ...by, target: { type: 'session', id } })
      })
    },

    async endAll(userId: string, by: By): Promise<void> {
      await write(() => {
        sessionStore.revokeAll(userId)
        audit.record({ action: 'session_ended', ...by, target: { type: 'user', id: userId } })
        afterCommit(() => hub.closeUser(userId))
      })
    },
  }
}
