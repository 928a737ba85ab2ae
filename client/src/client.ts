import { createApi } from './api.ts'
import { type ChannelEvents, type ChannelOptions, createChannel } from './channel.ts'
import type { Answer, Body, NewMessage, User } from './contract.ts'
import { createDelivery, type QueuedMessage } from './delivery.ts'
import { createEmitter } from './emitter.ts'
import { ClosedError } from './errors.ts'
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
  /** The language of error messages; by default the browser's. */
  language?: string | undefined
  /** Stores the session and unsent messages. `webStorage(localStorage)` survives a reload and is shared by tabs. */
  storage?: Storage | undefined
  /** `sk_…`: for servers, which call the service feed by `request`. No user can log in. */
  serviceKey?: string | undefined
}

/** Events by name: the service's frames, and the client's own events. */
export type ClientEvents = ChannelEvents & {
  /** The service ended the session; not emitted after `logout`. */
  session_ended: undefined
  /** Number of unread notifications: when the channel opens, and when it changes. */
  unread_notifications: { count: number }
  /** The service permanently refused a message of `send`, perhaps one queued before a reload. */
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
    // The channel emits a subset of the client's events.
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
  on('notification', ({ unread_count: count }) => publishUnread(count))
  on('notifications_read', ({ unread_count: count }) => publishUnread(count))

  let publishedUnread = 0
  function publishUnread(count: number) {
    publishedUnread++
    emit('unread_notifications', { count })
  }

  // A frame that arrives meanwhile is newer than the response. A failure is ignored: the next opening of the channel counts
  // again.
  function countUnread() {
    const before = publishedUnread
    api.notifications.unreadCount().then(
      ({ count }) => publishedUnread === before && publishUnread(count),
      () => {},
    )
  }

  async function begin(route: string, body: object): Promise<User> {
    const answer = await http({ route, body, signal: closing })
    return use(answer as Answer<'POST /v1/auth/login'>) // by the contract
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
    /** Uses a session that a server created by `POST /v1/service/users/{id}/sessions`. */
    useSession: use,

    /** Resumes the stored session and unsent messages after a reload.
     *  @returns the logged-in user, if any */
    restore(): User | undefined {
      if (closing.aborted) throw new ClosedError()
      const user = session.current()?.user ?? session.restore()
      if (user) outbox.begin(user.id)
      return user
    },

    /** Ends the session. It and the unsent messages are deleted locally even when the service cannot be reached.
     *  @throws the network's error; at the service the session then ends when its tokens expire */
    logout: session.logout,

    /** The logged-in user, as of the login. `account.get` asks the service. */
    user: () => session.current()?.user,

    /** Sends a message exactly once, with as many tries as needed: over the open channel or REST, even after a lost
     *  connection or a reload. The messages of a conversation are sent in order. With your own `client_id`, even another
     *  run of the program does not send it twice.
     *  @returns the stored message
     *  @throws ApiError when the service refuses it · SessionEndedError */
    send: (conversationId: string, message: NewMessage) => outbox.send(conversationId, message),
    /** Messages not sent yet, including those queued before a reload. */
    pending: outbox.pending,

    /** Calls `handler` for each event of this name. Add handlers before `connect` to miss no event.
     *  @returns a function that removes the handler */
    on,
    /** Opens the channel and keeps it open. Messages arrive in order, exactly once: those after the message `since`,
     *  else those after the last delivered one, else new ones. An open channel stays as it is.
     *  @returns a promise that resolves once it is open
     *  @throws SessionEndedError · ClosedError */
    connect: ({ since }: { since?: string | undefined } = {}): Promise<void> =>
      closing.aborted ? Promise.reject(new ClosedError()) : channel.start(since),
    disconnect: () => channel.stop(new ClosedError()),
    status: channel.status,
    /** The id of the newest message delivered. Pass it to `connect` as `since` after a reload. */
    newestMessageId: channel.newestMessageId,
    /** Shows the other participant that this user is typing. May be called for every key press. */
    typing: (conversationId: string) =>
      channel.send({ type: 'typing', conversation_id: conversationId }),

    /** Closes the client, so that a program can exit. The session and unsent messages stay in the storage. */
    close(): void {
      const reason = new ClosedError()
      channel.stop(reason)
      outbox.end('keep', reason)
      closed.abort(reason)
    },
  }
}
