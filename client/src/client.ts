import { createApi } from './api.ts'
import { type ChannelEvents, type ChannelOptions, createChannel } from './channel.ts'
import type { Answer, Body, NewMessage, User } from './contract.ts'
import { createDelivery, type QueuedMessage } from './delivery.ts'
import { createEmitter } from './emitter.ts'
import { ApiError, ClosedError, SessionEndedError } from './errors.ts'
import { createHttpTransport, createRequest } from './http.ts'
import { createOutbox } from './outbox.ts'
import { type GivenPlatform, platformOf } from './platform.ts'
import { createSession } from './session.ts'
import { memoryStorage, type Storage, scoped } from './storage.ts'

export type { ChannelEvents, ChannelStatus } from './channel.ts'
export type * from './contract.ts'
export type { QueuedMessage } from './delivery.ts'
export { ApiError, ClosedError, SessionEndedError } from './errors.ts'
export type { Request } from './http.ts'
export type { Pending } from './outbox.ts'
export type { Platform, Socket, Timers } from './platform.ts'
export { asyncStorage, memoryStorage, type Storage, webStorage } from './storage.ts'
export type { Progress } from './upload.ts'

export type ClientOptions = GivenPlatform & {
  /** Scheme and host of the service, without a path. */
  baseUrl: string
  /** The language of error messages; without it the browser's own. */
  language?: string | undefined
  /** Keeps the session and unsent messages. `webStorage(localStorage)` outlives the page, and its tabs share it. */
  storage?: Storage | undefined
  /** `sk_…`: the client of a server, which calls the service feed by `request`. Nobody logs in. */
  serviceKey?: string | undefined
}

/** Events by name: frames of the service as they come, and what happens to the client itself. */
export type ClientEvents = ChannelEvents & {
  /** The service ended the session; not told after a `logout`. */
  session_ended: undefined
  /** Unread notifications: when the channel opens, and when their number changes. */
  unread_notifications: { count: number }
  /** The service refused a message of `send` for good, perhaps one that an earlier page left. */
  message_refused: { queued: QueuedMessage; error: unknown }
}

export type Client = ReturnType<typeof createClient>

/** A client of the service, for browsers, Node, Bun and React Native. */
export function createClient(options: ClientOptions) {
  const { serviceKey } = options
  const platform = platformOf(options)
  const baseUrl = options.baseUrl.replace(/\/+$/, '')
  const storage = scoped(options.storage ?? memoryStorage(), baseUrl)
  const closed = new AbortController()
  const closing = closed.signal
  const { on, emit, isHeard } = createEmitter<ClientEvents>()
  const http = createHttpTransport(platform, baseUrl, options.language)

  const session = createSession(platform, {
    http,
    storage,
    closing,
    lockName: options.storage && `hostline ${baseUrl}`,
    onRenewed: (accessToken) => channel.authenticate(accessToken),
    onEnd(ending, reason) {
      channel.stop(reason)
      outbox.end(ending === 'logged_out' ? 'drop' : 'keep', reason)
      if (ending === 'ended') emit('session_ended', undefined)
    },
  })
  const key = {
    token: async () => serviceKey,
    renew: async () => undefined,
    signal: () => closing,
  }
  const sender = serviceKey === undefined ? session : key
  const api = createApi(createRequest(platform, http, { ...sender, closing }))
  const channel = createChannel(platform, {
    baseUrl,
    session,
    // A channel tells a part of what the client tells.
    emit: emit as ChannelOptions['emit'],
    api,
  })
  const delivery = createDelivery(platform, { sendFrame: channel.send, post: api.messages.send })
  const outbox = createOutbox(storage, delivery, (queued, error) =>
    emit('message_refused', { queued, error }),
  )
  on('ack', delivery.acknowledged)
  on('error', delivery.refused)
  on('status', ({ status }) => {
    if (status !== 'open') return delivery.disconnected()
    delivery.connected()
    if (isHeard('unread_notifications')) countUnread()
  })
  on('notification', ({ unread_count: count }) => tellUnread(count))
  on('notifications_read', ({ unread_count: count }) => tellUnread(count))

  let toldUnread = 0
  function tellUnread(count: number) {
    toldUnread++
    emit('unread_notifications', { count })
  }

  // A frame that comes meanwhile is newer than the answer. Where none comes, the next opening tells.
  function countUnread() {
    const before = toldUnread
    api.notifications.unreadCount().then(
      ({ count }) => toldUnread === before && tellUnread(count),
      () => {},
    )
  }

  async function begin(route: string, body: object): Promise<User> {
    const answer = await http({ route, body, signal: closing })
    return use(answer as Answer<'POST /v1/auth/login'>) // the contract's word for it
  }

  function use(authenticated: Answer<'POST /v1/auth/login'>): User {
    if (closing.aborted) throw new ClosedError()
    const user = session.begin(authenticated)
    outbox.begin(user.id)
    return user
  }

  return {
    ...api,

    login: (credentials: Body<'POST /v1/auth/login'>) => begin('POST /v1/auth/login', credentials),
    register: (registration: Body<'POST /v1/auth/register'>) =>
      begin('POST /v1/auth/register', registration),
    /** Logs in with what a server got from `POST /v1/service/users/{id}/sessions`. */
    useSession: use,

    /** Goes on with the session and the unsent messages that an earlier page left in the storage.
     *  @returns who is logged in; undefined when nobody is */
    restore(): User | undefined {
      if (closing.aborted) throw new ClosedError()
      const user = session.current()?.user ?? session.restore()
      if (user) outbox.begin(user.id)
      return user
    },

    /** Ends the session. It and the unsent messages are forgotten here even when the service cannot be reached.
     *  @throws what the network throws; at the service the session then ends when its tokens expire */
    async logout(): Promise<void> {
      const login = session.current()
      const ended = session.signal()
      if (!login) return
      try {
        await api.request('POST /v1/auth/logout', { body: { refresh_token: login.refreshToken } })
      } catch (error) {
        const isOver = error instanceof SessionEndedError
        if (!isOver && !(error instanceof ApiError && error.status === 401)) throw error
      } finally {
        // Somebody else may have logged in meanwhile.
        if (!ended.aborted) session.end('logged_out')
      }
    },

    /** Who is logged in, as they were at the login. `account.get` asks the service. */
    user: () => session.current()?.user,

    /** Sends a message once, even if that takes many tries: over the open channel or else over REST, and again after a
     *  lost connection or a reload. The messages of a conversation go out one after the other. With a `client_id` of one's
     *  own, the same message is sent once even by another run of the program.
     *  @returns the stored message
     *  @throws ApiError when the service refuses it · SessionEndedError */
    send: (conversationId: string, message: NewMessage) => outbox.send(conversationId, message),
    /** The messages on their way, also those of an earlier page. */
    pending: outbox.pending,

    /** Calls `handler` for each event of a name. Add handlers before `connect`: they miss nothing then.
     *  @returns a function that removes the handler */
    on,
    /** Opens the channel and keeps it open. Messages come in order, none twice, none lost: those after the message
     *  `since`, else those after what came before, else those from now on. A channel that is kept open goes on as it is.
     *  @returns what resolves once it is open
     *  @throws SessionEndedError · ClosedError */
    connect: ({ since }: { since?: string | undefined } = {}): Promise<void> =>
      closing.aborted ? Promise.reject(new ClosedError()) : channel.start(since),
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
