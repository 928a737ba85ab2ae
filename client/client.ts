import { createApi } from './api.ts'
import { ApiError } from './api-error.ts'
import { type Channel, createChannel, type Network } from './channel.ts'
import type { WebSocketClass } from './connection.ts'
import type { Authenticated, Draft, EventGroup, User } from './contract.ts'
import { createDelivery } from './delivery.ts'
import { createExchange, type Fetch } from './exchange.ts'
import { createOutbox } from './outbox.ts'
import { createRequest } from './request.ts'
import { createSession, type Ending, type Locks } from './session.ts'
import { memoryStorage, type Storage } from './storage.ts'
import { systemTimers, type Timers } from './timers.ts'

export { ApiError, SessionEndedError } from './api-error.ts'
export type { Channel, Network } from './channel.ts'
export type * from './contract.ts'
export type { ChannelEvents, ChannelStatus } from './handlers.ts'
export type { Pending } from './outbox.ts'
export type { RequestOptions } from './request.ts'
export { memoryStorage, type Storage, webStorage } from './storage.ts'
export type { Timers } from './timers.ts'

export type ClientOptions = {
  /** Scheme and host of the service, without a path. */
  baseUrl: string
  /** The language of error messages; without it the browser's own. */
  language?: string
  /** Keeps the session and unsent messages; `webStorage(localStorage)` outlives the page and is shared by its tabs. */
  storage?: Storage
  /** Called once when the service no longer knows the session; not for a `logout`. */
  onSessionEnded?: () => void
  /** In the place of the platform's own, for tests. */
  timers?: Timers
  random?: () => number
  fetch?: Fetch
  WebSocket?: WebSocketClass
  locks?: Locks
  network?: Network
}

export type ConnectOptions = {
  /** What to hear of beyond messages, typing and read receipts. */
  events?: EventGroup[]
  /** The id of the newest message that the page has; without it the channel begins with what is new from now on. */
  since?: string
}

export type Client = ReturnType<typeof createClient>

/** A client of the service, for browsers and Bun. */
export function createClient(options: ClientOptions) {
  const { storage = memoryStorage(), timers = systemTimers, random = Math.random } = options
  const platform = platformOf(options)
  const baseUrl = options.baseUrl.replace(/\/+$/, '')
  const exchange = createExchange(baseUrl, platform.fetch, options.language)
  let channel: Channel | undefined

  const session = createSession({
    exchange,
    storage,
    isShared: options.storage !== undefined,
    timers,
    locks: platform.locks,
    onRenewed: (accessToken) => channel?.authenticate(accessToken),
    onEnd(ending: Ending) {
      channel?.close()
      outbox.end(ending === 'logged_out' ? 'drop' : 'keep')
      if (ending === 'ended') options.onSessionEnded?.()
    },
  })
  const request = createRequest({ exchange, session, timers })
  const api = createApi(request)
  const delivery = createDelivery({
    timers,
    random,
    sendFrame: (frame) => channel?.send(frame) ?? false,
    post: api.messages.send,
  })
  const outbox = createOutbox({ storage, delivery })

  async function begin(path: string, body: object): Promise<User> {
    const answer = await exchange({ method: 'POST', path, body })
    const user = session.begin(answer as Authenticated) // the contract's word for it
    outbox.begin(user.id)
    return user
  }

  return {
    ...api,
    request,

    login: (credentials: { email: string; password: string }) =>
      begin('/v1/auth/login', credentials),
    register: (registration: { email: string; password: string; display_name?: string }) =>
      begin('/v1/auth/register', registration),

    /** Goes on with the session and the unsent messages that an earlier page left in the storage.
     *  @returns who is logged in; undefined when nobody is */
    restore(): User | undefined {
      const user = session.user() ?? session.restore()
      if (user) outbox.begin(user.id)
      return user
    },

    /** Ends the session, and forgets it and the unsent messages here even when the service cannot be reached.
     *  @throws what the network throws; the session then ends when its tokens expire */
    async logout(): Promise<void> {
      const refreshToken = session.refreshToken()
      if (refreshToken === undefined) return
      try {
        await request('POST', '/v1/auth/logout', { body: { refresh_token: refreshToken } })
      } catch (error) {
        if (!(error instanceof ApiError && error.status === 401)) throw error
      } finally {
        session.end('logged_out')
      }
    },

    user: session.user,

    /** Sends a message once, however often that takes: over the open channel, else over REST, again after a lost
     *  connection or a reload.
     *  @returns the stored message
     *  @throws ApiError when the service refuses it · SessionEndedError */
    send: (conversationId: string, message: Draft) => outbox.send(conversationId, message),
    /** The messages on their way, those of an earlier page too. */
    pending: outbox.pending,

    /** Opens the channel, in the place of one that is open. */
    connect({ events = [], since }: ConnectOptions = {}): Channel {
      channel?.close()
      const opened = createChannel({
        baseUrl,
        topics: [...new Set<EventGroup>(['ack', ...events])],
        since,
        session,
        newestMessageId: api.newestMessageId,
        probe: api.me,
        timers,
        random,
        WebSocket: platform.WebSocket,
        network: platform.network,
      })
      opened.on('ack', delivery.acknowledged)
      opened.on('error', delivery.refused)
      opened.on('status', ({ status }) => {
        if (status === 'open') delivery.connected()
        else delivery.disconnected()
      })
      channel = opened
      return opened
    },
  }
}

/** What browsers have and Bun may not. */
type Browser = Partial<Network> & { navigator?: { locks?: Locks } }

function platformOf({ fetch, WebSocket, locks, network }: ClientOptions) {
  const browser = globalThis as Browser
  return {
    fetch: fetch ?? ((url: string, init: RequestInit) => globalThis.fetch(url, init)),
    WebSocket: WebSocket ?? globalThis.WebSocket,
    locks: locks ?? browser.navigator?.locks,
    network: network ?? ('addEventListener' in globalThis ? (browser as Network) : undefined),
  }
}
