import { randomBytes } from 'node:crypto'
import type { Core } from '../../core.ts'
import { type By, onOneself } from '../../db/audit-trail.ts'
import { AppError } from '../../lib/errors.ts'
import { sha256 } from '../../lib/hash.ts'
import { parseId } from '../../lib/ids.ts'
import type { Listing, ListRange } from '../../lib/list-range.ts'
import type { UserPrincipal } from '../../lib/principal.ts'
import { type Authenticated, type TokenSet, userView } from './model.ts'
import {
  longestSessionMilliseconds,
  refreshTokenMilliseconds,
  type SessionRow,
  type SessionStore,
} from './session-store.ts'
import type { AccountStore, UserRow } from './store.ts'
import { type AccessTokens, accessTokenSeconds } from './tokens.ts'

/** Two tabs may race for one refresh: the loser's token is this fresh. */
const raceMilliseconds = 10_000
const tokenPattern = /^rt_[\w-]{43}$/

/** Where a session is used from. */
export type Client = { ip: string; userAgent: string | undefined }

/** A session that has just begun or been renewed; only the hash of its refresh token is kept. */
type OpenSession = { user: UserRow; sessionId: string; refreshToken: string }

export type Sessions = ReturnType<typeof createSessions>

type Parts = { store: AccountStore; sessionStore: SessionStore; accessTokens: AccessTokens }

/** Sessions: each is a login on a device, and the family of the refresh tokens that descend from it. */
export function createSessions(core: Core, { store, sessionStore, accessTokens }: Parts) {
  const { write, afterCommit, audit, hub, newId, clock } = core

  type Family = Pick<SessionRow, 'id' | 'createdAt'>

  /** Makes a token, of which only the hash is kept. */
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

  /** Inside a `write`: trades the token. A trade whose answer was lost can be repeated: the new successor takes the place of
   *  the unused one.
   *  @returns undefined when the token is not usable (any more) */
  function trade(token: string, key: string | undefined, client: Client): OpenSession | undefined {
    const now = clock.now()
    const hash = sha256(token)
    const keyHash = key === undefined ? null : sha256(key)
    const sessionId =
      sessionStore.consumeToken(hash, keyHash, now) ??
      (keyHash === null
        ? undefined
        : sessionStore.consumeSuccessor(hash, keyHash, { now, userAgent: agentOf(client) }))
    const session = sessionId === undefined ? undefined : sessionStore.find(sessionId)
    const user = session && store.find(session.userId)
    if (!session || !user) {
      endIfReused(hash, client)
      return undefined
    }
    noteUse(session, client)
    return { user, sessionId: session.id, refreshToken: newRefreshToken(session, hash) }
  }

  // The list of devices shows where a session was used last. Another address is usual, and so is another agent after an
  // update; both at once may be a thief.
  function noteUse(
    { id, userId, ip: formerIp, userAgent: formerAgent }: SessionRow,
    client: Client,
  ) {
    const { ip } = client
    const userAgent = agentOf(client)
    sessionStore.updateUsed(id, clock.now(), { ip, userAgent })
    if (ip === formerIp || userAgent === formerAgent) return
    const details = { from: `${formerIp} ${formerAgent}`, to: `${ip} ${userAgent}` }
    const actor = { type: 'user', id: userId } as const
    audit.record({ action: 'session_moved', actor, target: { type: 'session', id }, ip, details })
  }

  // A token that was used before betrays a thief: its family ends, unless two tabs merely raced.
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
    return sessionStore.revoke(sessionId, userId, clock.now())
  }

  async function tokenSet({ user, sessionId, refreshToken }: OpenSession): Promise<TokenSet> {
    const access = await accessTokens.mint(user, sessionId)
    return { access_token: access, refresh_token: refreshToken, expires_in: accessTokenSeconds }
  }

  return {
    /** The answer to a login. */
    authenticated: async (session: OpenSession): Promise<Authenticated> => ({
      user: userView(session.user),
      ...(await tokenSet(session)),
    }),

    /** Begins a session, inside a `write`. */
    begin(user: UserRow, client: Client): OpenSession {
      const [id, createdAt] = [newId(), clock.now()]
      const { ip } = client
      const session = { id, userId: user.id, ip, userAgent: agentOf(client), createdAt }
      sessionStore.insert({ ...session, lastUsedAt: createdAt })
      return { user, sessionId: id, refreshToken: newRefreshToken(session, null) }
    },

    /** Trades a refresh token for a new token set, once; with the same `key` again within a day, for another one.
     *  @throws invalid_token (unknown, expired, used, session ended, user disabled) */
    async refresh(token: string, key: string | undefined, client: Client): Promise<TokenSet> {
      if (!tokenPattern.test(token)) throw new AppError('invalid_token')
      const session = await write(() => trade(token, key, client))
      if (!session) throw new AppError('invalid_token')
      return tokenSet(session)
    },

    /** Ends the session that a refresh token of the user's belongs to; a token that is not theirs does nothing. */
    async logout(userId: string, token: string, ip: string): Promise<void> {
      await write(() => {
        const found = sessionStore.findToken(sha256(token))
        if (found?.userId !== userId || !end(found.sessionId, userId)) return
        audit.record({ action: 'logged_out', ...onOneself(userId, ip) })
      })
    },

    /** The devices that are logged in, the newest login first. */
    list: (userId: string, range: ListRange): Listing<SessionRow> =>
      sessionStore.list(userId, clock.now(), range),

    /** Logs one device of a user out.
     *  @throws not_found (unknown, ended, or somebody else's) */
    async end(userId: string, idText: string, by: By): Promise<void> {
      const id = parseId(idText)
      await write(() => {
        if (id === undefined || !end(id, userId)) throw new AppError('not_found')
        audit.record({ action: 'session_ended', ...by, target: { type: 'session', id } })
      })
    },

    /** Logs every device of a user out. */
    async endAll(userId: string, by: By): Promise<void> {
      await write(() => {
        sessionStore.revokeAll(userId, clock.now())
        audit.record({ action: 'session_ended', ...by, target: { type: 'user', id: userId } })
        afterCommit(() => hub.closeUser(userId))
      })
    },

    /** The person behind an access token, unless it is invalid or they are shut out. */
    async authenticate(token: string): Promise<UserPrincipal | undefined> {
      const claims = await accessTokens.verify(token)
      return claims && sessionStore.findPrincipal(claims)
    },
  }
}

export function clientOf(request: Request, ip: string): Client {
  return { ip, userAgent: request.headers.get('user-agent') ?? undefined }
}

function agentOf({ userAgent }: Client): string | null {
  return userAgent?.slice(0, 256).toWellFormed() ?? null
}
