import { ApiError } from './api-error.ts'
import type { Authenticated, TokenSet, User } from './contract.ts'
import type { Exchange } from './exchange.ts'
import { readJson, removeKey, type Storage, writeJson } from './storage.ts'
import { sleep, type Timers } from './timers.ts'

const storageKey = 'hostline.session'
/** A token is renewed this long before it expires. */
export const renewalMilliseconds = 60_000

const sightMilliseconds = 1_000

/** One tab at a time: a browser's `navigator.locks`. */
export type Locks = { request<T>(name: string, work: () => Promise<T>): Promise<T> }

type Login = { user: User; accessToken: string; refreshToken: string; expiresAt: number }
/** Why a session is over: on purpose, because the service says so, or for another login. */
export type Ending = 'logged_out' | 'ended' | 'replaced'

type SessionOptions = {
  exchange: Exchange
  storage: Storage
  /** Whether other tabs may use the storage. */
  isShared: boolean
  timers: Timers
  locks: Locks | undefined
  onRenewed: (accessToken: string) => void
  onEnd: (ending: Ending, user: User) => void
}

export type Session = ReturnType<typeof createSession>

/** Who is logged in, here and in the other tabs that share the storage, and a token that works. */
export function createSession(options: SessionOptions) {
  const { exchange, storage, isShared, timers, locks, onRenewed, onEnd } = options
  let login: Login | undefined
  let isStored = false
  let renewal: Promise<void> | undefined

  function keep(next: Login) {
    login = next
    isStored = writeJson(storage, storageKey, next)
  }

  function begin({ user, ...tokens }: Authenticated): User {
    end('replaced')
    keep({ user, ...loginTokens(tokens, timers.now()) })
    return user
  }

  function end(ending: Ending) {
    if (!login) return
    const { user, refreshToken } = login
    const stored = storedLogin(storage)
    const isLeft = ending === 'logged_out' && stored?.user.id === user.id
    if (isLeft || stored?.refreshToken === refreshToken) removeKey(storage, storageKey)
    login = undefined
    onEnd(ending, user)
  }

  function renewOnce(): Promise<void> {
    renewal ??= exclusively(rotate).finally(() => {
      renewal = undefined
    })
    return renewal
  }

  const exclusively = (work: () => Promise<void>) =>
    locks ? locks.request(storageKey, work) : work()

  async function rotate() {
    const mine = login
    if (!mine || followOtherTab(mine)) return
    const tokens = await refreshedTokens(exchange, mine.refreshToken)
    if (login !== mine) return
    if (tokens) {
      keep({ user: mine.user, ...loginTokens(tokens, timers.now()) })
      onRenewed(tokens.access_token)
    } else {
      await giveUp(mine)
    }
  }

  // Another tab may have been faster: with locks, too, as what it stored can take a moment to be seen here.
  async function giveUp(mine: Login) {
    if (followOtherTab(mine)) return
    if (isShared) await sleep(timers, sightMilliseconds)
    if (login === mine && !followOtherTab(mine)) end('ended')
  }

  /** Takes up what another tab did to the session.
   *  @returns whether it did anything: logged out, logged in as another person, or renewed the tokens */
  function followOtherTab(mine: Login): boolean {
    if (!isStored) return false
    const stored = storedLogin(storage)
    if (stored?.user.id !== mine.user.id) {
      end('ended')
      return true
    }
    if (stored.expiresAt <= mine.expiresAt || stored.refreshToken === mine.refreshToken)
      return false
    login = stored
    onRenewed(stored.accessToken)
    return true
  }

  return {
    begin,
    end,
    user: () => login?.user,
    refreshToken: () => login?.refreshToken,
    expiresAt: () => login?.expiresAt,

    /** Takes up the session that an earlier page left in the storage. */
    restore(): User | undefined {
      const stored = storedLogin(storage)
      if (stored) {
        login = stored
        isStored = true
      }
      return login?.user
    },

    /** An access token that still works for a while; undefined when nobody is logged in.
     *  @throws what the network throws, when the token has expired and cannot be renewed now */
    async token(): Promise<string | undefined> {
      if (!login || login.expiresAt - timers.now() > renewalMilliseconds) return login?.accessToken
      try {
        await renewOnce()
      } catch (error) {
        if (login && login.expiresAt <= timers.now()) throw error
      }
      return login?.accessToken
    },

    /** Another access token in the place of one that was refused; undefined when the session is over. */
    async renew(refused: string): Promise<string | undefined> {
      if (login?.accessToken === refused) await renewOnce()
      return login?.accessToken
    },
  }
}

/** @returns undefined when the service refuses the refresh token
 *  @throws everything else: the session may well live on */
async function refreshedTokens(exchange: Exchange, refreshToken: string) {
  const body = { refresh_token: refreshToken }
  try {
    const answer = await exchange({ method: 'POST', path: '/v1/auth/refresh', body })
    return answer as TokenSet // the contract's word for it
  } catch (error) {
    if (error instanceof ApiError && error.code === 'invalid_token') return undefined
    throw error
  }
}

function loginTokens(tokens: TokenSet, now: number) {
  return {
    accessToken: tokens.access_token,
    refreshToken: tokens.refresh_token,
    expiresAt: now + tokens.expires_in * 1_000,
  }
}

function storedLogin(storage: Storage): Login | undefined {
  const stored = readJson(storage, storageKey) as Partial<Login> | undefined
  const isWhole = stored?.user && stored.accessToken && stored.refreshToken && stored.expiresAt
  return isWhole ? (stored as Login) : undefined // only we write under this key
}
