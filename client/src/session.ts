import type { Authenticated, TokenSet, User } from './contract.ts'
import { ApiError, SessionEndedError } from './errors.ts'
import type { HttpTransport, RequestOptions } from './http.ts'
import { type Platform, uniqueId } from './platform.ts'
import { readJson, removeKey, type Storage, writeJson } from './storage.ts'
import { linkSignals } from './waiting.ts'

const storageKey = 'session'
/** A token is renewed this long before it expires. */
export const renewalMilliseconds = 60_000
const renewalAnswerMilliseconds = 10_000
/** A tab that holds the lock for longer counts as hung. */
const lockMilliseconds = 10_000

type StoredSession = {
  user: User
  accessToken: string
  refreshToken: string
  /** The idempotency key of the token's one renewal, reused by racing tabs and after a lost response. */
  renewalKey: string
  expiresAt: number
}
/** The reason for the end of a session: a logout, the service, or another login. */
type Ending = 'logged_out' | 'ended' | 'replaced'

type SessionOptions = {
  http: HttpTransport
  storage: Storage
  /** The name of the lock between tabs that share the storage; undefined when the storage is not shared. */
  lockName: string | undefined
  onRenewed: (accessToken: string) => void
  /** @param successor who has logged in in another tab */
  onEnd: (ending: Ending, reason: SessionEndedError, successor: User | undefined) => void
  closing: AbortSignal
}

export type ClientSession = ReturnType<typeof createSession>

/** The session, shared with other tabs through the storage, and its valid access token. */
export function createSession({ timers, locks }: Platform, options: SessionOptions) {
  const { http, storage, lockName, onRenewed, onEnd, closing } = options
  let current: StoredSession | undefined
  let isStored = false
  let login = new AbortController()
  let renewal: Promise<void> | undefined

  function keep(user: User, tokens: TokenSet) {
    current = {
      user,
      accessToken: tokens.access_token,
      refreshToken: tokens.refresh_token,
      // New with each token set. A stolen copy allows at most one renewal, which then reveals the theft.
      renewalKey: uniqueId(),
      expiresAt: timers.now() + tokens.expires_in * 1_000,
    }
    isStored = writeJson(storage, storageKey, current)
    // A later page must not find the outdated tokens.
    if (!isStored) removeKey(storage, storageKey)
  }

  function end(ending: Ending, successor?: User) {
    if (!current) return
    const { user, refreshToken } = current
    const stored = readSession(storage)
    const isOwn = ending === 'logged_out' && stored?.user.id === user.id
    if (isOwn || stored?.refreshToken === refreshToken) removeKey(storage, storageKey)
    current = undefined
    const reason = new SessionEndedError()
    login.abort(reason)
    login = new AbortController()
    onEnd(ending, reason, successor)
  }

  function renewOnce(): Promise<void> {
    const before = current
    renewal ??= oneTabAtATime(() => rotate(before)).finally(() => {
      renewal = undefined
    })
    return renewal
  }

  async function oneTabAtATime(work: () => Promise<void>): Promise<void> {
    if (!locks || lockName === undefined) return work()
    const { signal, release } = linkSignals([closing], lockMilliseconds)
    let hasBegun = false
    const begin = () => {
      hasBegun = true
      return work()
    }
    try {
      await locks.request(lockName, { signal }, begin)
    } catch (error) {
      if (hasBegun || closing.aborted) throw error
      await work()
    } finally {
      release()
    }
  }

  /** @param before the session whose tokens are old; another tab may have renewed it while this one waited for the lock */
  async function rotate(before: StoredSession | undefined) {
    if (!before || current !== before || followOtherTab(before)) return
    await exchange(before)
  }

  async function exchange(before: StoredSession): Promise<void> {
    const seen = storedToken()
    const tokens = await refresh(http, before, closing)
    if (current !== before) return
    // Without the lock two tabs may renew at once. Only the service's last response is valid, so the later tab renews
    // again.
    if (tokens && storedToken() !== seen) return exchange(before)
    if (tokens) {
      keep(before.user, tokens)
      onRenewed(tokens.access_token)
    } else if (!followOtherTab(before)) end('ended')
  }

  const storedToken = () => (isStored ? readSession(storage)?.refreshToken : undefined)

  /** Follows another tab: a logout, a login as another user, or renewed tokens.
   *  @returns false when no other tab changed anything */
  function followOtherTab(before: StoredSession): boolean {
    if (!isStored) return false
    const stored = readSession(storage)
    if (stored?.user.id !== before.user.id) {
      end('ended', stored?.user)
      return true
    }
    if (stored.refreshToken === before.refreshToken) return false
    current = stored
    onRenewed(stored.accessToken)
    return true
  }

  return {
    end,
    current: () => current,
    /** Aborted when the session ends, so that a request of one user is never sent as the next. */
    signal: () => login.signal,

    begin({ user, ...tokens }: Authenticated): User {
      end('replaced')
      keep(user, tokens)
      return user
    },

    /** Ends the session here first, so that a reload meanwhile does not resume it, then at the service.
     *  @throws the network's error */
    async logout(options?: RequestOptions): Promise<void> {
      const left = current
      if (!left) return
      end('logged_out')
      const { signal, release } = linkSignals([options?.signal, closing])
      await revoke(http, left, { ...options, signal }).finally(release)
    },

    /** Resumes the stored session after a reload. */
    restore(): User | undefined {
      const stored = readSession(storage)
      isStored ||= stored !== undefined
      current = stored ?? current
      return current?.user
    },

    /** Notices at once what another tab has done. */
    followOtherTabs: () => void (current && followOtherTab(current)),

    /** A valid access token; undefined without a session.
     *  @throws the network's error, when the token has expired and cannot be renewed now */
    async token(): Promise<string | undefined> {
      if (current && current.expiresAt - timers.now() <= renewalMilliseconds) {
        await renewOnce().catch((error) => {
          if (current && current.expiresAt <= timers.now()) throw error
        })
      }
      return current?.accessToken
    },

    /** A new access token in place of a refused one; undefined when the session is over. */
    async renew(refused: string): Promise<string | undefined> {
      if (current?.accessToken === refused) await renewOnce()
      return current?.accessToken
    },
  }
}

/** @returns undefined when the service refuses the refresh token
 *  @throws any other error: the session may still be valid */
async function refresh(
  http: HttpTransport,
  { refreshToken, renewalKey }: StoredSession,
  signal: AbortSignal,
): Promise<TokenSet | undefined> {
  try {
    const answer = await http({
      route: 'POST /v1/auth/refresh',
      body: { refresh_token: refreshToken },
      headers: { 'x-idempotency-key': renewalKey },
      timeout: renewalAnswerMilliseconds,
      signal,
    })
    return answer as TokenSet // the contract's word for it
  } catch (error) {
    if (error instanceof ApiError && error.code === 'invalid_token') return undefined
    throw error
  }
}

type Cancellable = RequestOptions & { signal: AbortSignal }

/** Ends a session at the service, with renewed tokens when the access token has expired. */
async function revoke(http: HttpTransport, session: StoredSession, options: Cancellable) {
  const send = (token: string, refreshToken: string) =>
    http({
      route: 'POST /v1/auth/logout',
      body: { refresh_token: refreshToken },
      token,
      outlivesPage: true,
      ...options,
    })
  try {
    await send(session.accessToken, session.refreshToken)
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 401)) throw error
    const tokens = await refresh(http, session, options.signal)
    if (tokens) await send(tokens.access_token, tokens.refresh_token)
  }
}

function readSession(storage: Storage): StoredSession | undefined {
  const stored = readJson(storage, storageKey) as Partial<StoredSession> | undefined
  const { user, accessToken, refreshToken, renewalKey, expiresAt } = stored ?? {}
  const isWhole = user && accessToken && refreshToken && renewalKey && expiresAt
  return isWhole ? (stored as StoredSession) : undefined // only the client writes under this key
}
