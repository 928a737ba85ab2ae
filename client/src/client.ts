import { createApi } from './api.ts'
import { type ChannelEvents, type ChannelOptions, createChannel } from './channel.ts'
import type { Answer, Body, Message, NewMessage, TicketMessage, User } from './contract.ts'
import {
  createDelivery,
  fileMessage,
  type NewReply,
  type QueuedMessage,
  type QueuedReply,
} from './delivery.ts'
import { createEmitter } from './emitter.ts'
import { ClosedError } from './errors.ts'
import { createHttpTransport, createRequest, type RequestOptions } from './http.ts'
import { createOutbox, type Pending, type Refused, type SendMore } from './outbox.ts'
import { type GivenPlatform, platformOf, uniqueId } from './platform.ts'
import { createReadMarks } from './read-marks.ts'
import { createSession } from './session.ts'
import { memoryStorage, type Storage, scoped } from './storage.ts'
import type { Progress } from './upload.ts'
import { linkSignals } from './waiting.ts'

export type { ChannelEvents, ChannelStatus } from './channel.ts'
export type * from './contract.ts'
export type { NewReply, Queued, QueuedMessage, QueuedReply } from './delivery.ts'
export {
  AbortError,
  ApiError,
  ClosedError,
  NetworkError,
  SessionEndedError,
  TimeoutError,
} from './errors.ts'
export type { Request, RequestOptions } from './http.ts'
export type { Pending, Refused } from './outbox.ts'
export type { Platform, Socket, Timers } from './platform.ts'
export { asyncStorage, memoryStorage, type Storage, webStorage } from './storage.ts'
export type { Progress } from './upload.ts'

export type ClientOptions = GivenPlatform & {
  /** Scheme and host of the service, without a path. */
  baseUrl: string
  /** The language of error messages; by default the browser's. A function where it can change. */
  language?: string | (() => string) | undefined
  /** Stores the session and unsent messages. `webStorage(localStorage)` survives a reload and is shared by tabs. */
  storage?: Storage | undefined
  /** Keeps what is stored apart from other clients of the same service in one storage. */
  storageKey?: string | undefined
  /** `sk_…`: for servers, which call the service feed by `request`. No user can log in. */
  serviceKey?: string | undefined
}

/** Events by name: the service's frames, and the client's own events. */
export type ClientEvents = ChannelEvents & {
  /** The service or another tab ended the session; not emitted after `logout`. `user` is who has logged in in the other
   *  tab: `restore` continues as them. */
  session_ended: { user: User | undefined }
  /** Number of unread notifications: when the channel opens, and when it changes. */
  unread_notifications: { count: number }
  /** The messages and replies that wait to be sent, whenever they change. */
  outbox: { pending: Pending[] }
  /** The service permanently refused a message of `send`, perhaps one queued before a reload. */
  message_refused: Refused & { queued: QueuedMessage }
  /** The same for a reply. */
  reply_refused: Refused & { queued: QueuedReply }
  /** The service has a mark of `markRead`, which covers all messages up to this one. */
  marked_read: { conversation_id: string; message_id: string | undefined }
}

/** An aborted message is not sent, unless the service has it already. */
export type SendOptions = { signal?: AbortSignal | undefined }
export type FileOptions = SendOptions & {
  /** A text beside the file. */
  body?: string | undefined
  client_id?: string | null | undefined
  /** The default name and type are those of a `File`. */
  name?: string | undefined
  type?: string | undefined
  onProgress?: Progress | undefined
}

/** The service passes on one frame of a typing person in this time. */
const typingMilliseconds = 2_000

export type Client = ReturnType<typeof createClient>

/** A client of the service, for browsers, Node, Bun and React Native. */
export function createClient(options: ClientOptions) {
  const { serviceKey } = options
  const platform = platformOf(options)
  const baseUrl = options.baseUrl.replace(/\/+$/, '')
  if (!/^https?:\/\/[^/?#]+$/.test(baseUrl)) {
    throw new TypeError(`baseUrl must be like https://chat.example.com, without a path: ${baseUrl}`)
  }
  // Another service must not see the tokens.
  const prefix = [options.storageKey, 'hostline', baseUrl].filter(Boolean).join(' ')
  const storage = scoped(options.storage ?? memoryStorage(), prefix)
  const closed = new AbortController()
  const closing = closed.signal
  const { on, off, once, emit } = createEmitter<ClientEvents>()
  const http = createHttpTransport(platform, baseUrl, options.language)

  const session = createSession(platform, {
    http,
    storage,
    closing,
    lockName: options.storage && prefix,
    onRenewed: (accessToken) => channel.authenticate(accessToken),
    onEnd(ending, reason, user) {
      const leftovers = ending === 'logged_out' ? 'drop' : 'keep'
      channel.stop(reason)
      outbox.end(leftovers, reason)
      marks.end(leftovers, reason)
      if (ending === 'ended') emit('session_ended', { user })
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
  const delivery = createDelivery(platform, {
    sendFrame: channel.send,
    post: api.messages.send,
    reply: api.tickets.reply,
  })
  const outbox = createOutbox(storage, delivery, {
    onChange: () => emit('outbox', { pending: outbox.pending() }),
    onRefused: (refused) =>
      emit(
        refused.queued.ticket_id === undefined ? 'message_refused' : 'reply_refused',
        refused as never,
      ), // one of both
  })
  const marks = createReadMarks({
    timers: platform.timers,
    storage,
    persist: delivery.persist,
    sendFrame: (conversation_id, message_id) =>
      channel.sendSurely({ type: 'read', conversation_id, message_id: message_id ?? null }),
    newestMessageId: channel.newestMessageId,
    put: api.conversations.markRead,
    onMarked: (conversation_id, message_id) => emit('marked_read', { conversation_id, message_id }),
  })
  let typed = { conversation_id: '', at: 0 }
  on('ack', delivery.acknowledged)
  on('error', delivery.refused)
  on('status', ({ status }) => {
    if (status === 'open') delivery.connected()
    else delivery.disconnected()
  })
  on('ready', ({ unread }) => emit('unread_notifications', { count: unread.notifications }))
  on('notification', ({ unread_count: count }) => emit('unread_notifications', { count }))
  on('notifications_read', ({ unread_count: count }) => emit('unread_notifications', { count }))
  platform.network?.addEventListener('storage', session.followOtherTabs)

  async function begin(route: string, body: object, options?: RequestOptions): Promise<User> {
    const { signal, release } = linkSignals([options?.signal, closing])
    try {
      const answer = await http({ route, body, ...options, signal })
      return setSession(answer as Answer<'POST /v1/auth/login'>) // by the contract
    } catch (error) {
      throw closing.aborted ? new ClosedError() : error
    } finally {
      release()
    }
  }

  function setSession(authenticated: Answer<'POST /v1/auth/login'>): User {
    if (closing.aborted) throw new ClosedError()
    return resume(session.begin(authenticated))
  }

  function resume(user: User): User {
    outbox.begin(user.id)
    marks.begin(user.id)
    return user
  }

  function send(conversation_id: string, draft: NewMessage, more?: SendMore) {
    const { client_id, ...message } = draft
    const queued = { client_id: client_id ?? uniqueId(), conversation_id, message }
    return outbox.send(queued, more) as Promise<Message> // of a conversation
  }

  return {
    ...api,

    login: (credentials: Body<'POST /v1/auth/login'>, options?: RequestOptions) =>
      begin('POST /v1/auth/login', credentials, options),
    register: (registration: Body<'POST /v1/auth/register'>, options?: RequestOptions) =>
      begin('POST /v1/auth/register', registration, options),
    /** Uses a session that a server created by `POST /v1/service/users/{id}/sessions`. */
    setSession,

    /** Resumes the stored session and unsent messages after a reload.
     *  @returns the logged-in user, if any */
    restore(): User | undefined {
      if (closing.aborted) throw new ClosedError()
      const user = session.current()?.user ?? session.restore()
      return user && resume(user)
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
     *  @throws ApiError when the service refuses it · SessionEndedError · AbortError */
    send: (conversationId: string, message: NewMessage, options?: SendOptions) =>
      send(conversationId, message, options),
    /** Uploads a file, with as many tries as needed, and sends it like `send`. Until it is uploaded, a reload loses it, and
     *  another tab may send what waits behind it first. */
    sendFile(
      conversationId: string,
      bytes: Blob & { name?: string },
      { body = '', client_id = null, ...options }: FileOptions = {},
    ): Promise<Message> {
      const { name = bytes.name, type = bytes.type, signal } = options
      const draft = {
        type: 'file' as const,
        body,
        client_id,
        file_url: '',
        file_name: name ?? null,
        file_size: bytes.size,
        file_type: type,
      }
      return send(conversationId, draft, {
        signal,
        async prepare(queued, signal) {
          const uploading = api.files.upload(bytes, { ...options, signal })
          const file = await uploading.catch(async (error) => {
            // Browsers report a file that is gone as a failure of the network, until it is read.
            await bytes.slice(0, 1).arrayBuffer?.()
            throw error
          })
          return { ...queued, message: fileMessage(file, body) } as QueuedMessage // with a message it is one
        },
      })
    },
    /** Replies to one's own ticket exactly once, like `send`. */
    reply(ticket_id: string, draft: NewReply, options?: SendOptions): Promise<TicketMessage> {
      const { client_id, ...reply } = draft
      const queued = { client_id: client_id ?? uniqueId(), ticket_id, reply }
      return outbox.send(queued, options) as Promise<TicketMessage> // of a ticket
    },
    /** Messages and replies not sent yet, including those queued before a reload. */
    pending: outbox.pending,

    conversations: {
      ...api.conversations,
      /** Marks messages as read: those up to a message, or all. May be called for every message: marks wait for the
       *  network, those up to a message also across a reload, and a later one replaces those that wait. */
      markRead: marks.mark,
    },

    /** Sends any frame of the channel. Messages, typing and read marks have methods of their own.
     *  @returns false while the channel is not open */
    sendFrame: channel.send,
    /** Calls `handler` for each event of this name. Add handlers before `connect` to miss no event.
     *  @returns a function that removes the handler */
    on,
    off,
    /** Calls `handler` for the next event of this name only. */
    once,
    /** Opens the channel and keeps it open. Messages arrive in order, exactly once: those after the message `since`,
     *  else those after the last delivered one, else new ones. An open channel stays as it is.
     *  @returns a promise that resolves once it is open
     *  @throws SessionEndedError · ClosedError */
    connect: ({ since }: { since?: string | undefined } = {}): Promise<void> =>
      closing.aborted ? Promise.reject(new ClosedError()) : channel.start(since),
    disconnect: () => channel.stop(new ClosedError()),
    status: channel.status,
    /** Looks at once whether the connection still works, and tries a lost one again. Call it when an app comes to the
     *  front; browsers do. */
    check: channel.check,
    /** The id of the newest message delivered. Pass it to `connect` as `since` after a reload. */
    newestMessageId: channel.newestMessageId,
    /** Shows the other participant that this user is typing. May be called for every key press: in two seconds one frame is
     *  sent.
     *  @returns false while the channel is not open */
    typing(conversation_id: string): boolean {
      const now = platform.timers.now()
      // The clock may be set back.
      const isRecent = Math.abs(now - typed.at) < typingMilliseconds
      if (isRecent && typed.conversation_id === conversation_id) return true
      const isSent = channel.send({ type: 'typing', conversation_id })
      if (isSent) typed = { conversation_id, at: now }
      return isSent
    },

    /** Closes the client, so that a program can exit. The session and unsent messages stay in the storage. */
    close(): void {
      const reason = new ClosedError()
      platform.network?.removeEventListener('storage', session.followOtherTabs)
      channel.stop(reason)
      outbox.end('keep', reason)
      marks.end('keep', reason)
      closed.abort(reason)
    },
  }
}
