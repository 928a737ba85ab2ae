import type { Authenticated, TokenSet, User } from './contract.ts'
import { ApiError } from './errors.ts'
import type { HttpTransport } from './http.ts'
import { type Platform, sleep } from './platform.ts'
import { readJson, removeKey, type Storage, writeJson } from './storage.ts'

const storageKey = 'hostline.session'
/** A token is renewed this long before it expires. */
export const renewalMilliseconds = 60_000
/** It can take this long until a tab sees what another one stored. */
const storageLagMilliseconds = 1_000

type StoredSession = { user: User; accessToken: string; refreshToken: string; expiresAt: number }
/** Why a session is over: on purpose, because the service says so, or because of another login. */
type Ending = 'logged_out' | 'ended' | 'replaced'

type SessionOptions = {
  http: HttpTransport
  storage: Storage
  /** Whether other tabs may use the storage. */
  isShared: boolean
  onRenewed: (accessToken: string) => void
  onEnd: (ending: Ending) => void
}

export type Session = ReturnType<typeof createSession>

/** Who is logged in, here and in the other tabs that share the storage, and an access token that works. */
export function createSession({ timers, locks }: Platform, options: SessionOptions) {
  const { http, storage, isShared, onRenewed, onEnd } = options
  let current: StoredSession | undefined
  let isStored = false
  let renewal: Promise<void> | undefined

  function keep(user: User, tokens: TokenSet) {
    current = {
      user,
      accessToken: tokens.access_token,
      refreshToken: tokens.refresh_token,
      expiresAt: timers.now() + tokens.expires_in * 1_000,
    }
    isStored = writeJson(storage, storageKey, current)
  }

  function end(ending: Ending) {
    if (!current) return
    const { user, refreshToken } = current
    const stored = readSession(storage)
    const isOwn = ending === 'logged_out' && stored?.user.id === user.id
    if (isOwn || stored?.refreshToken === refreshToken) removeKey(storage, storageKey)
    current = undefined
    onEnd(ending)
  }

  function renewOnce(): Promise<void> {
    renewal ??= (locks ? locks.request(storageKey, rotate) : rotate()).finally(() => {
      renewal = undefined
    })
    return renewal
  }

  async function rotate() {
    const before = current
    if (!before || followOtherTab(before)) return
    const tokens = await refresh(http, before.refreshToken)
    if (current !== before) return
    if (!tokens) return giveUp(before)
    keep(before.user, tokens)
    onRenewed(tokens.access_token)
  }

  // Another tab may have renewed the tokens first. With locks too: what it stored can be seen late.
  async function giveUp(before: StoredSession) {
    if (followOtherTab(before)) return
    if (isShared) await sleep(timers, storageLagMilliseconds)
    if (current === before && !followOtherTab(before)) end('ended')
  }

  /** Does what another tab did: logged out, logged in as somebody else, or renewed the tokens.
   *  @returns false when no other tab did anything */
  function followOtherTab(before: StoredSession): boolean {
    if (!isStored) return false
    const stored = readSession(storage)
    if (stored?.user.id !== before.user.id) {
      end('ended')
      return true
    }
    const isOlder = stored.expiresAt <= before.expiresAt
    if (isOlder || stored.refreshToken === before.refreshToken) return false
    current = stored
    onRenewed(stored.accessToken)
    return true
  }

  return {
    end,
    current: () => current,

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
async function refresh(http: HttpTransport, refreshToken: string): Promise<TokenSet | undefined> {
  const body = { refresh_token: refreshToken }
  try {
    const answer = await http({ method: 'POST', path: '/v1/auth/refresh', body })
    return answer as TokenSet // the contract's word for it
  } catch (error) {
    if (error instanceof ApiError && error.code === 'invalid_token') return undefined
    throw error
  }
}

function readSession(storage: Storage): StoredSession | undefined {
  const stored = readJson(storage, storageKey) as Partial<StoredSession> | undefined
  const isWhole = stored?.user && stored.accessToken && stored.refreshToken && stored.expiresAt
  return isWhole ? (stored as StoredSession) : undefined // only we write under this key
}
