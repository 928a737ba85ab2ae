import {
  ApiError,
  type Block,
  type Client,
  ClosedError,
  type ConversationListItem,
  type FileOptions,
  type Message,
  type NewMessage,
  type NewReply,
  type Notification,
  type Pending,
  type QueuedMessage,
  type QueuedReply,
  type Refused,
  type RequestOptions,
  type SendOptions,
  SessionEndedError,
  type Ticket,
  type TicketListItem,
  type TicketMessage,
} from './client.ts'
import { createStore, type ListState, listen, newestFirst, openList } from './list.ts'

/** Stores of an app's lists. Each loads, follows the channel, and ends with `close`. */

export type { ListState, Opened, Store, Used } from './list.ts'

export type ThreadState = ListState<Message> & {
  /** As the inbox shows it, but `last_message`, `unread_count` and `updated_at` are from the last load; undefined until
   *  it is loaded. */
  conversation: ConversationListItem | undefined
  /** Own messages that are not sent yet. */
  waiting: readonly QueuedMessage[]
  isTyping: boolean
}
export type TicketState = ListState<TicketMessage> & {
  ticket: TicketListItem | undefined
  /** Own replies that are not sent yet. */
  waiting: readonly QueuedReply[]
}
export type NotificationsState = ListState<Notification> & { unread: number }
export type BlocksState = { blocks: readonly Block[] }
export type OutboxState = { pending: readonly Pending[]; refused: readonly Refused[] }

/** Between two reads of single conversations, so that many changes leave most of the user's requests to the app. */
const pauseMilliseconds = 1_000
const retryMilliseconds = 5_000
/** More new ones are read by a page. */
const fewConversations = 2

/** A typing person sends a frame every two seconds. */
const typingMilliseconds = 5_000

/** The conversations, most recent activity first. */
export function openInbox(client: Client) {
  const list = openList<ConversationListItem, object>(client, {
    more: {},
    read: (options) => client.request('GET /v1/chat/conversations', options),
    order: (one, other) =>
      Date.parse(other.updated_at) - Date.parse(one.updated_at) ||
      newestFirst(activityOf(one), activityOf(other)),
  })

  /** Conversations to be read again. */
  const stale = new Set<string>()
  let timer: ReturnType<typeof setTimeout> | undefined
  let isClosed = false

  /** Reads a conversation, later again if it changes meanwhile. */
  async function refresh(id: string) {
    const before = list.find(id)
    const item = await client.conversations.get(id)
    if (list.find(id) !== before) refreshLater(id)
    else if (!item.archived) list.put(item)
  }

  function refreshLater(id: string) {
    stale.add(id)
    readLater(0)
  }

  function readLater(milliseconds: number) {
    if (stale.size > 0 && !isClosed) timer ??= setTimeout(readStale, milliseconds)
  }

  /** Reads one of them, or several new ones by a page. */
  async function readStale() {
    const ids = takeStale()
    const error = await read(ids)
    timer = undefined
    if (error !== undefined) for (const id of ids) stale.add(id)
    if (!isOver(error)) readLater(error === undefined ? pauseMilliseconds : retryMilliseconds)
  }

  function takeStale(): string[] {
    const added = [...stale].filter((id) => !list.find(id))
    const ids = added.length > fewConversations ? added : [...stale].slice(0, 1)
    for (const id of ids) stale.delete(id)
    return ids
  }

  /** @returns why it failed */
  async function read([id = '', ...others]: string[]): Promise<unknown> {
    if (others.length === 0)
      return refresh(id).catch((error) => (isGone(error) ? undefined : error))
    await list.actions.reload()
    return list.actions.getSnapshot().error
  }

  function receive(message: Message) {
    const { id, conversation_id, sender_id, body, type, created_at } = message
    const isSilent = message.type === 'notice' && !message.unread
    const isCounted = sender_id !== client.user()?.id && !isSilent
    list.change(conversation_id, ({ unread_count, last_message }) =>
      // A replay can have messages that the loaded list already counts.
      last_message !== null && id <= last_message.id
        ? {}
        : {
            last_message: { id, body, type, sent_at: created_at },
            unread_count: unread_count + (isCounted ? 1 : 0),
            updated_at: created_at,
          },
    )
  }

  /** Shows how many are unread after a mark. Only the service knows what a loaded row counts beyond the mark, and whether a
   *  block has refused it. */
  function showUnread(id: string, unread_count: number, upTo = client.newestMessageId()) {
    list.change(id, ({ last_message, may_send }) => {
      const isNewest = upTo === undefined || last_message === null || last_message.id <= upTo
      if (isNewest && may_send) return { unread_count }
      refreshLater(id)
      return {}
    })
  }

  list.follow({
    new_message({ message }) {
      if (list.find(message.conversation_id)) receive(message)
      else refreshLater(message.conversation_id)
    },
    conversation_updated({ conversation }) {
      if (conversation.archived) list.remove(conversation.id)
      else list.put(conversation)
    },
    conversation_read: ({ conversation_id, unread_count }) =>
      showUnread(conversation_id, unread_count),
    marked_read: ({ conversation_id, message_id }) => showUnread(conversation_id, 0, message_id),
    read_receipt({ conversation_id: id, message_id }) {
      const upTo = message_id ?? client.newestMessageId() ?? null
      list.change(id, ({ last_message }) => {
        if (message_id === undefined && isBeyond(last_message, upTo)) refreshLater(id)
        return { participant_read_up_to: upTo }
      })
    },
    message_deleted: ({ conversation_id: id }) =>
      list.edit(() => void (list.find(id) && refreshLater(id))),
  })
  return {
    ...list.actions,
    /** Finds the conversation with a person, or creates it.
     *  @returns its id */
    async open(userId: string, options?: RequestOptions): Promise<string> {
      const { id } = await client.conversations.open(userId, options)
      await refresh(id)
      return id
    },
    close() {
      isClosed = true
      clearTimeout(timer)
      list.actions.close()
    },
  }
}

/** Whether a message is newer than the newest delivered one: a copy of an own broadcast does not come over the channel. Only the
 *  service knows whether a receipt for everything covers it. */
const isBeyond = (message: { id: string } | null | undefined, upTo: string | null) =>
  (message?.id ?? '') > (upTo ?? '')

/** The id that orders conversations of one millisecond. */
const activityOf = ({ id, last_message }: ConversationListItem) => last_message ?? { id }

const isGone = (error: unknown) => error instanceof ApiError && error.code === 'not_found'
const isOver = (error: unknown) =>
  error instanceof SessionEndedError ||
  error instanceof ClosedError ||
  (error instanceof ApiError && error.code === 'unauthorized')

/** The messages of a conversation, oldest first, with own ones that wait, and whether the other person types. */
export function openThread(client: Client, conversationId: string) {
  const route = 'GET /v1/chat/conversations/{id}/messages'
  const params = { id: conversationId }
  const isHere = (one: { conversation_id?: string | undefined }) =>
    one.conversation_id === conversationId
  const pending = () => client.pending().filter(isHere) as QueuedMessage[] // of a conversation
  const list = openList<Message, Omit<ThreadState, keyof ListState<Message>>>(client, {
    more: { conversation: undefined, waiting: pending(), isTyping: false },
    async read({ query, signal }) {
      const page = client.request(route, { params, query, signal })
      if (query.cursor !== undefined) return page
      const conversation = client.conversations.get(conversationId, { signal })
      const [found, item] = await Promise.all([page, conversation])
      return { ...found, more: { conversation: item } }
    },
    order: newestFirst,
    isOldestFirst: true,
  })
  const { getSnapshot, loadMore: loadEarlier, ...actions } = list.actions

  let timer: ReturnType<typeof setTimeout> | undefined
  function setTyping(isTyping: boolean) {
    clearTimeout(timer)
    if (isTyping) timer = setTimeout(setTyping, typingMilliseconds, false)
    if (getSnapshot().isTyping !== isTyping) list.set({ isTyping })
  }
  const arrived = new Set<string>()
  function showWaiting() {
    const all = pending()
    for (const id of arrived) if (!all.some((it) => it.client_id === id)) arrived.delete(id)
    list.set({ waiting: all.filter(({ client_id }) => !arrived.has(client_id)) })
  }
  const changeConversation = (part: (it: ConversationListItem) => Partial<ConversationListItem>) =>
    list.edit(() => {
      const { conversation } = getSnapshot()
      if (conversation) list.set({ conversation: { ...conversation, ...part(conversation) } })
    })
  async function put(sending: Promise<Message>) {
    const sent = await sending
    // Removed since then, it must not come back.
    if (!list.find(sent.id)) list.put(sent)
    return sent
  }

  list.follow({
    new_message({ message, client_id }) {
      if (!isHere(message)) return
      if (message.sender_id !== client.user()?.id) setTyping(false)
      list.put(message)
      // A replay can have messages from before the conversation was archived.
      changeConversation(({ last_message }) =>
        last_message !== null && message.id <= last_message.id ? {} : { archived: false },
      )
      // A message arrives over the channel before its response: it is shown once.
      if (client_id !== undefined) arrived.add(client_id)
      showWaiting()
    },
    message_deleted: (frame) => isHere(frame) && list.replace(frame.message_id, removed),
    typing: (frame) => isHere(frame) && setTyping(true),
    conversation_updated: ({ conversation }) =>
      conversation.id === conversationId && changeConversation(() => conversation),
    // Without an id everything so far is read: later messages have greater ids.
    read_receipt({ message_id, ...frame }) {
      if (!isHere(frame)) return
      const upTo = message_id ?? client.newestMessageId() ?? null
      changeConversation(() => ({ participant_read_up_to: upTo }))
      if (message_id === undefined && isBeyond(getSnapshot().items.at(-1), upTo))
        void actions.reload()
    },
    outbox: showWaiting,
  })
  return {
    ...actions,
    getSnapshot,
    loadEarlier,
    send: (message: NewMessage, options?: SendOptions) =>
      put(client.send(conversationId, message, options)),
    sendFile: (bytes: Blob & { name?: string }, options?: FileOptions) =>
      put(client.sendFile(conversationId, bytes, options)),
    /** Marks messages as read: those up to a message, by default the newest one that is shown. */
    markRead: (upTo = getSnapshot().items.at(-1)?.id) =>
      client.conversations.markRead(conversationId, upTo),
    /** Removes an own message for both people. */
    async remove(id: string, options?: RequestOptions) {
      await client.messages.remove(conversationId, id, options)
      list.replace(id, removed)
    },
    close() {
      clearTimeout(timer)
      actions.close()
    },
  }
}

/** A removed message is empty; a notice stays one. */
function removed(message: Message): Message {
  const { id, conversation_id, created_at } = message
  const noFile = { file_url: null, file_name: null, file_size: null, file_type: null }
  const deleted_at = new Date().toISOString()
  const empty = { id, conversation_id, body: '', ...noFile, created_at, deleted_at }
  return message.type === 'notice'
    ? { ...empty, type: 'notice', sender_id: null, unread: message.unread }
    : { ...empty, type: 'text', sender_id: message.sender_id }
}

/** The notifications, newest first, and how many are unread. */
export function openNotifications(client: Client) {
  const list = openList<Notification, { unread: number }>(client, {
    more: { unread: 0 },
    async read(options) {
      const [page, { count: unread }] = await Promise.all([
        client.request('GET /v1/notifications', options),
        client.notifications.unreadCount({ signal: options.signal }),
      ])
      return { ...page, more: { unread } }
    },
    order: newestFirst,
  })
  const { getSnapshot } = list.actions
  const unreadIds = () => getSnapshot().items.flatMap(({ id, read }) => (read ? [] : [id]))
  const mark = (ids: readonly string[], read: boolean) => {
    for (const id of ids) list.change(id, () => ({ read }))
  }
  /** Shows a mark at once, and takes it back when it fails. */
  async function showUntil(ids: readonly string[], marking: Promise<unknown>) {
    mark(ids, true)
    await marking.catch((error) => {
      mark(ids, false)
      // The service may have it all the same. The next opening loads the list anyway.
      if (!(error instanceof ApiError) && client.status() === 'open') reloadLater()
      throw error
    })
  }

  /** Own marks whose frame has not come. */
  let expected = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  let isClosed = false
  function reloadLater() {
    clearTimeout(timer)
    if (isClosed) return
    timer = setTimeout(() => {
      // A mark of what another device has marked before has no frame.
      expected = 0
      void list.actions.reload()
    }, pauseMilliseconds)
  }

  list.follow({
    ready() {
      expected = 0
    },
    unread_notifications: ({ count }) => list.edit(() => list.set({ unread: count })),
    notification: ({ notification }) => list.put(notification),
    notifications_read({ unread_count }) {
      if (unread_count === 0) mark(unreadIds(), true)
      if (expected > 0) expected--
      // The frame does not say what another device has marked.
      else if (unread_count > 0) reloadLater()
    },
  })
  return {
    ...list.actions,
    async markRead(id: string, options?: RequestOptions) {
      const ids = unreadIds().filter((one) => one === id)
      expected += ids.length
      const marking = client.notifications.markRead(id, options)
      marking.catch(() => {
        // The frame of another device counted as this one's.
        if (expected < ids.length) reloadLater()
        expected = Math.max(0, expected - ids.length)
      })
      await showUntil(ids, marking)
    },
    markAllRead: (options?: RequestOptions) =>
      showUntil(unreadIds(), client.notifications.markAllRead(options)),
    close() {
      isClosed = true
      clearTimeout(timer)
      list.actions.close()
    },
  }
}

/** One's own tickets, newest first. */
export function openTickets(client: Client) {
  const list = openList<TicketListItem, object>(client, {
    more: {},
    read: (options) => client.request('GET /v1/support/tickets', options),
    order: newestFirst,
  })
  // Admins get the tickets of others as the desk lists them.
  list.follow({ ticket_updated: ({ ticket }) => 'user' in ticket || list.put(ticket) })
  return {
    ...list.actions,
    async create(...given: Parameters<Client['tickets']['create']>) {
      const item = withoutMessages(await client.tickets.create(...given))
      list.put(item)
      return item
    },
  }
}

const withoutMessages = ({ messages: _, messages_before: __, ...item }: Ticket): TicketListItem =>
  item

/** One of one's own tickets with its messages, oldest first, and own replies that wait. */
export function openTicket(client: Client, id: string) {
  const pending = () => client.pending().filter((one) => one.ticket_id === id) as QueuedReply[] // of a ticket
  const list = openList<TicketMessage, Omit<TicketState, keyof ListState<TicketMessage>>>(client, {
    more: { ticket: undefined, waiting: pending() },
    async read({ query, signal }) {
      if (query.cursor !== undefined) {
        const route = 'GET /v1/support/tickets/{id}/messages'
        return client.request(route, { params: { id }, query, signal })
      }
      const ticket = await client.tickets.get(id, { signal })
      return {
        data: [...ticket.messages].reverse(),
        pagination: { cursor: ticket.messages_before ?? null },
        more: { ticket: withoutMessages(ticket) },
      }
    },
    order: newestFirst,
    isOldestFirst: true,
  })
  const { loadMore: loadEarlier, ...actions } = list.actions
  list.follow({
    // It does not say whether there is a new message.
    ticket_updated: ({ ticket }) => ticket.id === id && void actions.reload(),
    outbox: () => list.set({ waiting: pending() }),
  })
  return {
    ...actions,
    loadEarlier,
    async reply(reply: NewReply, options?: SendOptions): Promise<TicketMessage> {
      const sent = await client.reply(id, reply, options)
      list.put(sent)
      return sent
    },
    async closeTicket(options?: RequestOptions): Promise<void> {
      const closed = withoutMessages(await client.tickets.close(id, options))
      list.edit(() => list.set({ ticket: closed }))
    },
  }
}

/** The people whom this one has blocked. */
export function openBlocks(client: Client) {
  const store = createStore<BlocksState>({ blocks: [] })
  let begun = 0
  let shown = 0
  async function reload() {
    const own = ++begun
    const blocks: Block[] = []
    for await (const block of client.blocks.each()) blocks.push(block)
    if (own < shown) return // a later one was faster
    shown = own
    store.set({ blocks })
  }
  let timer: ReturnType<typeof setTimeout> | undefined
  let isClosed = false
  const reloadLater = () =>
    void reload().catch((error) => {
      clearTimeout(timer)
      if (!isClosed && !isOver(error)) timer = setTimeout(reloadLater, retryMilliseconds)
    })
  const forget = listen(client, {
    status: ({ status }) => status === 'open' && reloadLater(),
    // Another device of this person may have changed them.
    conversation_updated({ conversation: { may_send_reason, participant } }) {
      const isKnown = store.getSnapshot().blocks.some(({ user }) => user.id === participant.id)
      if (isKnown !== (may_send_reason === 'blocked')) reloadLater()
    },
  })
  reloadLater()
  return {
    subscribe: store.subscribe,
    getSnapshot: store.getSnapshot,
    reload,
    async add(userId: string, options?: RequestOptions) {
      await client.blocks.add(userId, options)
      await reload()
    },
    async remove(userId: string, options?: RequestOptions) {
      await client.blocks.remove(userId, options)
      await reload()
    },
    close() {
      isClosed = true
      clearTimeout(timer)
      forget()
    },
  }
}

/** Messages and replies that wait to be sent, and those that the service has refused. */
export function openOutbox(client: Client) {
  const store = createStore<OutboxState>({ pending: client.pending(), refused: [] })
  const set = (part: Partial<OutboxState>) => store.set({ ...store.getSnapshot(), ...part })
  const add = (one: Refused) => set({ refused: [...store.getSnapshot().refused, one] })
  const dismiss = ({ queued }: Refused) =>
    set({ refused: store.getSnapshot().refused.filter((it) => it.queued !== queued) })
  const close = listen(client, {
    outbox: ({ pending }) => set({ pending }),
    message_refused: add,
    reply_refused: add,
  })
  return {
    subscribe: store.subscribe,
    getSnapshot: store.getSnapshot,
    dismiss,
    /** Sends it again, with a new key. */
    retry(refused: Refused): Promise<Message | TicketMessage> {
      dismiss(refused)
      return refused.retry()
    },
    close,
  }
}
