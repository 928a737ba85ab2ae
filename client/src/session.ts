import type { Authenticated, TokenSet, User } from './contract.ts'
import { ApiError, SessionEndedError } from './errors.ts'
import type { HttpTransport } from './http.ts'
import { type Platform, uniqueId } from './platform.ts'
import { readJson, removeKey, type Storage, writeJson } from './storage.ts'
import { linkSignals } from './waiting.ts'

const storageKey = 'session'
/** A token is renewed this long before it expires. */
export const renewalMilliseconds = 60_000
const renewalAnswerMilliseconds = 10_000
/** A tab that holds the lock for longer hangs. */
const lockMilliseconds = 10_000

type StoredSession = {
  user: User
  accessToken: string
  refreshToken: string
  /** The idempotency key of its one renewal: tabs that race and a renewal whose answer was lost use it again. */
  renewalKey: string
  expiresAt: number
}
/** Why a session is over: on purpose, because the service says so, or because of another login. */
type Ending = 'logged_out' | 'ended' | 'replaced'

type SessionOptions = {
  http: HttpTransport
  storage: Storage
  /** The name of the lock among the tabs that share the storage; undefined when none do. */
  lockName: string | undefined
  onRenewed: (accessToken: string) => void
  onEnd: (ending: Ending, reason: SessionEndedError) => void
  /** Aborted when the client is closed. */
  closing: AbortSignal
}

export type ClientSession = ReturnType<typeof createSession>

/** Who is logged in, here and in the other tabs that share the storage, and an access token that works. */
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
      // New with each token set: a copy is worth one renewal, which betrays the thief.
      renewalKey: uniqueId(),
      expiresAt: timers.now() + tokens.expires_in * 1_000,
    }
    isStored = writeJson(storage, storageKey, current)
    // The tokens of before are worth nothing to the next page.
    if (!isStored) removeKey(storage, storageKey)
  }

  function end(ending: Ending) {
    if (!current) return
    const { user, refreshToken } = current
    const stored = readSession(storage)
    const isOwn = ending === 'logged_out' && stored?.user.id === user.id
    if (isOwn || stored?.refreshToken === refreshToken) removeKey(storage, storageKey)
    current = undefined
    const reason = new SessionEndedError()
    login.abort(reason)
    login = new AbortController()
    onEnd(ending, reason)
  }

  function renewOnce(): Promise<void> {
    renewal ??= oneTabAtATime(rotate).finally(() => {
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

  async function rotate() {
    const before = current
    if (before && !followOtherTab(before)) await exchange(before)
  }

  async function exchange(before: StoredSession): Promise<void> {
    const seen = storedToken()
    const tokens = await refresh(http, before, closing)
    if (current !== before) return
    // Without the lock two tabs may ask at once. The last answer of the service alone works: the later tab asks again.
    if (tokens && storedToken() !== seen) return exchange(before)
    if (tokens) {
      keep(before.user, tokens)
      onRenewed(tokens.access_token)
    } else if (!followOtherTab(before)) end('ended')
  }

  const storedToken = () => (isStored ? readSession(storage)?.refreshToken : undefined)

  /** Does what another tab did: logged out, logged in as somebody else, or renewed the tokens.
   *  @returns false when no other tab did anything */
  function followOtherTab(before: StoredSession): boolean {
    if (!isStored) return false
    const stored = readSession(storage)
    if (stored?.user.id !== before.user.id) {
      end('ended')
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
    /** Aborted when the session ends: what one person asked for must not be asked in the name of the next. */
    signal: () => login.signal,

    begin({ user, ...tokens }: Authenticated): User {
      end('replaced')
      keep(user, tokens)
      return user
    },

    /** Goes on with the session that an earlier page left in the storage. */
    restore(): User | undefined {
      const stored = readSession(storage)
      isStored ||= stored !== undefined
      current = stored ?? current
      return current?.user
    },

    /** An access token that works for a while; undefined when nobody is logged in.
     *  @throws what the network throws, when the token has expired and cannot be renewed now */
    async token(): Promise<string | undefined> {
      if (current && current.expiresAt - timers.now() <= renewalMilliseconds) {
        await renewOnce().catch((error) => {
          if (current && current.expiresAt <= timers.now()) throw error
        })
      }
      return current?.accessToken
    },

    /** Another access token after this one was refused; undefined when the session is over. */
    async renew(refused: string): Promise<string | undefined> {
      if (current?.accessToken === refused) await renewOnce()
      return current?.accessToken
    },
  }
}

/** @returns undefined when the service refuses the refresh token
 *  @throws everything else: the session may still be alive */
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
      milliseconds: renewalAnswerMilliseconds,
      signal,
    })
    return answer as TokenSet // the contract's word for it
  } catch (error) {
    if (error instanceof ApiError && error.code === 'invalid_token') return undefined
    throw error
  }
}

function readSession(storage: Storage): StoredSession | undefined {
  const stored = readJson(storage, storageKey) as Partial<StoredSession> | undefined
  const { user, accessToken, refreshToken, renewalKey, expiresAt } = stored ?? {}
  const isWhole = user && accessToken && refreshToken && renewalKey && expiresAt
  return isWhole ? (stored as StoredSession) : undefined // only we write under this key
}
