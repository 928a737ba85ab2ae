import { createApi } from './api.ts'
import { type ChannelEvents, type ChannelOptions, createChannel } from './channel.ts'
import type { Answer, Body, Draft, User } from './contract.ts'
import { createDelivery, type QueuedMessage } from './delivery.ts'
import { createEmitter } from './emitter.ts'
import { ApiError, ClosedError, SessionEndedError } from './errors.ts'
import { createHttpTransport, createRequest } from './http.ts'
import { createOutbox } from './outbox.ts'
import { type Platform, platformOf } from './platform.ts'
import { createPush } from './push.ts'
import { createSession } from './session.ts'
import { memoryStorage, type Storage } from './storage.ts'

export type { ChannelEvents, ChannelStatus } from './channel.ts'
export type * from './contract.ts'
export type { QueuedMessage } from './delivery.ts'
export { ApiError, ClosedError, SessionEndedError } from './errors.ts'
export type { Request } from './http.ts'
export type { Pending } from './outbox.ts'
export type { Platform, Socket, Timers } from './platform.ts'
export { asyncStorage, memoryStorage, type Storage, webStorage } from './storage.ts'
export type { Progress } from './upload.ts'

export type ClientOptions = Partial<Platform> & {
  /** Scheme and host of the service, without a path. */
  baseUrl: string
  /** The language of error messages; without it the browser's own. */
  language?: string
  /** Keeps the session and unsent messages. `webStorage(localStorage)` outlives the page, and its tabs share it. */
  storage?: Storage
  /** `sk_…`: the client of a server, which calls the service feed by `request`. Nobody logs in. */
  serviceKey?: string
}

/** What a client tells, by name: frames of the service as they come, and what happens to the client itself. */
export type ClientEvents = ChannelEvents & {
  /** The service ended the session; not told after a `logout`. */
  session_ended: undefined
  /** Unread notifications: when the channel opens, and when their number changes. */
  unread_notifications: { count: number }
  /** The service refused a message of `send` for good, perhaps one that an earlier page left. */
  message_refused: { message: QueuedMessage; error: unknown }
}

export type Client = ReturnType<typeof createClient>

/** A client of the service, for browsers, Node, Bun and React Native. */
export function createClient(options: ClientOptions) {
  const { storage = memoryStorage(), serviceKey } = options
  const platform = platformOf(options)
  const baseUrl = options.baseUrl.replace(/\/+$/, '')
  const closed = new AbortController()
  const closing = closed.signal
  const { on, emit, isHeard } = createEmitter<ClientEvents>()
  const http = createHttpTransport(platform, baseUrl, options.language)

  const session = createSession(platform, {
    http,
    storage,
    closing,
    onRenewed: (accessToken) => channel.authenticate(accessToken),
    onEnd(ending) {
      const reason = new SessionEndedError()
      channel.stop(reason)
      outbox.end(ending === 'logged_out' ? 'drop' : 'keep', reason)
      if (ending === 'ended') emit('session_ended', undefined)
    },
  })
  const key = { token: async () => serviceKey, renew: async () => undefined }
  const tokens = serviceKey === undefined ? session : key
  const send = createRequest(platform, http, { ...tokens, closing })
  const { newestMessageId, listOf, ...api } = createApi(send)
  const channel = createChannel(platform, {
    baseUrl,
    session,
    // A channel tells a part of what the client tells.
    emit: emit as ChannelOptions['emit'],
    probe: api.account.get,
    newestMessageId,
  })
  const delivery = createDelivery(platform, { sendFrame: channel.send, post: api.messages.send })
  const outbox = createOutbox(storage, delivery, (message, error) =>
    emit('message_refused', { message, error }),
  )
  on('ack', delivery.acknowledged)
  on('error', delivery.refused)
  on('status', ({ status }) => {
    if (status !== 'open') return delivery.disconnected()
    delivery.connected()
    if (isHeard('unread_notifications')) void countUnread().catch(() => {}) // the next opening tells
  })
  on('notification', ({ unread_count: count }) => tellUnread(count))
  on('notifications_read', ({ unread_count: count }) => tellUnread(count))

  let toldUnread = 0
  function tellUnread(count: number) {
    toldUnread++
    emit('unread_notifications', { count })
  }

  // A frame that comes meanwhile is newer than the answer.
  async function countUnread() {
    const before = toldUnread
    const { count } = await api.notifications.unreadCount()
    if (toldUnread === before) tellUnread(count)
  }

  async function begin(route: string, body: object): Promise<User> {
    const answer = await http({ route, body, signal: closing })
    return use(answer as Answer<'POST /v1/auth/login'>) // the contract's word for it
  }

  function use(authenticated: Answer<'POST /v1/auth/login'>): User {
    const user = session.begin(authenticated)
    outbox.begin(user.id)
    return user
  }

  return {
    ...api,
    pushTokens: createPush({ request: api.request, listOf }),

    login: (credentials: Body<'POST /v1/auth/login'>) => begin('POST /v1/auth/login', credentials),
    register: (registration: Body<'POST /v1/auth/register'>) =>
      begin('POST /v1/auth/register', registration),
    /** Logs in with what a server got from `POST /v1/service/users/{id}/sessions`. */
    useSession: use,

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
        await api.request('POST /v1/auth/logout', { body: { refresh_token: login.refreshToken } })
      } catch (error) {
        if (!(error instanceof ApiError && error.status === 401)) throw error
      } finally {
        session.end('logged_out')
      }
    },

    user: () => session.current()?.user,

    /** Sends a message once, even if that takes many tries: over the open channel or else over REST, and again after a
     *  lost connection or a reload. The messages of a conversation go out one after the other.
     *  @returns the stored message
     *  @throws ApiError when the service refuses it · SessionEndedError */
    send: (conversationId: string, message: Draft) => outbox.send(conversationId, message),
    /** The messages on their way, also those of an earlier page. */
    pending: outbox.pending,

    on,
    /** Opens the channel and keeps it open. Messages come in order, none twice, none lost: those after the message
     *  `since`, else those after what came before, else those from now on.
     *  @returns what resolves once it is open
     *  @throws SessionEndedError · ClosedError */
    connect: ({ since }: { since?: string } = {}) => channel.start(since),
    disconnect: () => channel.stop(new ClosedError()),
    status: channel.status,
    /** The id of the newest message that came: a later page passes it to `connect` as `since`. */
    newestMessageId: channel.newestMessageId,
    /** Shows the other participant that this user is typing. Call it as often as keys are pressed. */
    typing: (conversationId: string) =>
      channel.send({ type: 'typing', conversation_id: conversationId }),

    /** Ends everything, so that a program can exit. The session and unsent messages stay in the storage. */
    close(): void {
      const reason = new ClosedError()
      channel.stop(reason)
      outbox.end('keep', reason)
      closed.abort(reason)
    },
  }
}
