import { randomBytes } from 'node:crypto'
import type { Core } from '../../core.ts'
import { type By, onOneself } from '../../db/audit-trail.ts'
import { AppError } from '../../lib/errors.ts'
import { sha256 } from '../../lib/hash.ts'
import { parseId } from '../../lib/ids.ts'
import { type Listing, type ListRange, listById } from '../../lib/list-range.ts'
import type { UserPrincipal } from '../../lib/principal.ts'
import { type Authenticated, type TokenSet, userView } from './model.ts'
import { seal, unseal } from './sealed-answers.ts'
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
/** How long a refresh with the same idempotency key gets the same answer again. */
const answerMilliseconds = 60_000
const tokenPattern = /^rt_[\w-]{43}$/

/** Where a session is used from. */
export type Client = { ip: string; userAgent: string | undefined }

/** A session that has just begun or been renewed; only the hash of its refresh token is kept. */
type OpenSession = { user: UserRow; sessionId: string; refreshToken: string }

/** A refresh token as it was presented; with an idempotency key the two together name the request. */
type Presented = { token: string; hash: string; requestHash: string | undefined }
/** What a refresh token is traded for; `sealed` is the same for whoever presents that token again. */
type Renewal = { tokens: TokenSet; sealed: string | undefined }

export type Sessions = ReturnType<typeof createSessions>

type Parts = { store: AccountStore; sessionStore: SessionStore; accessTokens: AccessTokens }

/** Sessions: each is a login on a device, and the family of the refresh tokens that descend from it. */
export function createSessions(core: Core, { store, sessionStore, accessTokens }: Parts) {
  const { write, afterCommit, audit, hub, newId, clock } = core

  type Family = Pick<SessionRow, 'id' | 'createdAt'>

  function keepRefreshToken(
    token: string,
    { id: sessionId, createdAt }: Family,
    parentHash: string | null,
  ) {
    const expiresAt = Math.min(
      clock.now() + refreshTokenMilliseconds,
      createdAt + longestSessionMilliseconds,
    )
    const hash = sha256(token)
    sessionStore.insertToken({ hash, sessionId, parentHash, expiresAt, consumedAt: null })
  }

  // Made before the token is used up, so that the answer can be kept in the same transaction. Whether the token may be
  // used is decided there.
  async function prepare({ token, hash, requestHash }: Presented): Promise<Renewal | undefined> {
    const found = sessionStore.findToken(hash)
    const isUsable = found?.consumedAt === null && found.revokedAt === null
    const user = isUsable ? store.find(found.userId) : undefined
    if (!found || !user) return undefined
    const { sessionId } = found
    const tokens = await tokenSet({ user, sessionId, refreshToken: newRefreshToken() })
    const sealed = requestHash === undefined ? undefined : seal(JSON.stringify(tokens), token)
    return { tokens, sealed }
  }

  /** @returns undefined when the token is not usable (any more) */
  function rotate(
    { hash, requestHash }: Presented,
    { tokens, sealed }: Renewal,
    client: Client,
  ): TokenSet | undefined {
    const now = clock.now()
    const sessionId = sessionStore.consumeToken(hash, now)
    const session = sessionId === undefined ? undefined : sessionStore.find(sessionId)
    if (!session) return undefined
    noteUse(session, client)
    keepRefreshToken(tokens.refresh_token, session, hash)
    if (requestHash !== undefined && sealed !== undefined) {
      const expiresAt = now + answerMilliseconds
      sessionStore.insertAnswer({ requestHash, sessionId: session.id, sealed, expiresAt })
    }
    return tokens
  }

  /** Inside a `write`: trades the token, or finds what it was traded for before. Of two requests with the same token and key
   *  the later one finds the answer to the other. */
  function trade(presented: Presented, renewal: Renewal | undefined, client: Client) {
    const { hash, requestHash } = presented
    const tokens = renewal && rotate(presented, renewal, client)
    if (tokens) return { tokens }
    const sealed =
      requestHash === undefined ? undefined : sessionStore.findAnswer(requestHash, clock.now())
    if (sealed !== undefined) return { sealed }
    endIfReused(hash, client)
    return undefined
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
      const refreshToken = newRefreshToken()
      keepRefreshToken(refreshToken, session, null)
      return { user, sessionId: id, refreshToken }
    },

    /** Trades a refresh token for a new token set, once; with the same `key` again within a minute, for the same set.
     *  @throws invalid_token (unknown, expired, used, session ended, user disabled) */
    async refresh(token: string, key: string | undefined, client: Client) {
      if (!tokenPattern.test(token)) throw new AppError('invalid_token')
      const presented = presentedOf(token, key)
      const renewal = await prepare(presented)
      const outcome = await write(() => trade(presented, renewal, client))
      if (!outcome) throw new AppError('invalid_token')
      if ('tokens' in outcome) return { tokens: outcome.tokens, replayed: false }
      const tokens: TokenSet = JSON.parse(unseal(outcome.sealed, token)) // what `prepare` sealed
      return { tokens, replayed: true }
    },

    /** Ends the session that a refresh token of the user's belongs to; a token that is not theirs does nothing. */
    async logout(userId: string, token: string, ip: string): Promise<void> {
      await write(() => {
        const found = sessionStore.findToken(sha256(token))
        if (found?.userId !== userId) return
        end(found.sessionId, userId)
        audit.record({ action: 'logged_out', ...onOneself(userId, ip) })
      })
    },

    /** The devices that are logged in, the newest login first. */
    list: (userId: string, range: ListRange): Listing<SessionRow> =>
      listById(range, {
        name: 'sessions',
        list: (rows) => sessionStore.list(userId, clock.now(), rows),
        count: () => sessionStore.count(userId, clock.now()),
      }),

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

const newRefreshToken = () => `rt_${randomBytes(32).toString('base64url')}`

function presentedOf(token: string, key: string | undefined): Presented {
  const requestHash = key === undefined ? undefined : sha256(`${token} ${key}`)
  return { token, hash: sha256(token), requestHash }
}

export function clientOf(request: Request, ip: string): Client {
  return { ip, userAgent: request.headers.get('user-agent') ?? undefined }
}

function agentOf({ userAgent }: Client): string | null {
  return userAgent?.slice(0, 256).toWellFormed() ?? null
}
