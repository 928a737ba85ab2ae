import { createApi } from './api.ts'
import { type Channel, createChannel } from './channel.ts'
import type { Authenticated, Draft, EventGroup, User } from './contract.ts'
import { createDelivery } from './delivery.ts'
import { ApiError } from './errors.ts'
import { createHttpTransport, createRequest } from './http.ts'
import { createOutbox } from './outbox.ts'
import { type Platform, platformOf } from './platform.ts'
import { createSession } from './session.ts'
import { memoryStorage, type Storage } from './storage.ts'

export type { Channel, ChannelEvents, ChannelStatus } from './channel.ts'
export type * from './contract.ts'
export { ApiError, SessionEndedError } from './errors.ts'
export type { RequestOptions } from './http.ts'
export type { Pending } from './outbox.ts'
export type { Platform, Timers } from './platform.ts'
export { memoryStorage, type Storage, webStorage } from './storage.ts'

export type ClientOptions = Partial<Platform> & {
  /** Scheme and host of the service, without a path. */
  baseUrl: string
  /** The language of error messages; without it the browser's own. */
  language?: string
  /** Keeps the session and unsent messages. `webStorage(localStorage)` outlives the page, and its tabs share it. */
  storage?: Storage
  /** Called once when the service ends the session; not for a `logout`. */
  onSessionEnded?: () => void
}

export type ConnectOptions = {
  /** Frames beyond messages, typing and read receipts. */
  events?: EventGroup[]
  /** The id of the newest message that the page has; without it the channel delivers only new messages. */
  since?: string
}

export type Client = ReturnType<typeof createClient>

/** A client of the service, for browsers and Bun. */
export function createClient(options: ClientOptions) {
  const { storage = memoryStorage() } = options
  const platform = platformOf(options)
  const baseUrl = options.baseUrl.replace(/\/+$/, '')
  const http = createHttpTransport(platform.fetch, baseUrl, options.language)
  let channel: Channel | undefined

  const session = createSession(platform, {
    http,
    storage,
    isShared: options.storage !== undefined,
    onRenewed: (accessToken) => channel?.authenticate(accessToken),
    onEnd(ending) {
      channel?.close()
      outbox.end(ending === 'logged_out' ? 'drop' : 'keep')
      if (ending === 'ended') options.onSessionEnded?.()
    },
  })
  const request = createRequest(platform, http, session)
  const api = createApi(request)
  const delivery = createDelivery(platform, {
    sendFrame: (frame) => channel?.send(frame) ?? false,
    post: api.messages.send,
  })
  const outbox = createOutbox(storage, delivery)

  async function begin(path: string, body: object): Promise<User> {
    const answer = await http({ method: 'POST', path, body })
    const user = session.begin(answer as Authenticated) // the contract's word for it
    outbox.begin(user.id)
    return user
  }

  return {
    ...api,
    request,

    login: (credentials: { email: string; password: string; code?: string }) =>
      begin('/v1/auth/login', credentials),
    register: (registration: { email: string; password: string; display_name?: string }) =>
      begin('/v1/auth/register', registration),

    /** Goes on with the session and the unsent messages that an earlier page left in the storage.
     *  @returns who is logged in; undefined when nobody is */
    restore(): User | undefined {
      const user = session.current()?.user ?? session.restore()
      if (user) outbox.begin(user.id)
      return user
    },

    /** Ends the session. It and the unsent messages are forgotten here even when the service cannot be reached.
     *  @throws what the network throws; at the service the session then ends when its tokens expire */
    async logout(): Promise<void> {
      const login = session.current()
      if (!login) return
      try {
        await request('POST', '/v1/auth/logout', { body: { refresh_token: login.refreshToken } })
      } catch (error) {
        if (!(error instanceof ApiError && error.status === 401)) throw error
      } finally {
        session.end('logged_out')
      }
    },

    user: () => session.current()?.user,

    /** Sends a message once, even if that takes many tries: over the open channel or else over REST, and again after a
     *  lost connection or a reload.
     *  @returns the stored message
     *  @throws ApiError when the service refuses it · SessionEndedError */
    send: (conversationId: string, message: Draft) => outbox.send(conversationId, message),
    /** The messages on their way, also those of an earlier page. */
    pending: outbox.pending,

    /** Opens the channel, and closes an earlier one. */
    connect({ events = [], since }: ConnectOptions = {}): Channel {
      channel?.close()
      const opened = createChannel(platform, {
        baseUrl,
        events: [...new Set<EventGroup>(['ack', ...events])],
        since,
        session,
        api,
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
