import type { Core } from '../../core.ts'
import type { Clock } from '../../lib/clock.ts'
import { AppError, invalidField } from '../../lib/errors.ts'
import { parseId } from '../../lib/ids.ts'
import { TokenBucket } from '../../lib/limits.ts'
import { type Listing, type ListRange, listByNumber, listByPosition } from '../../lib/list-range.ts'
import { createLru } from '../../lib/lru.ts'
import type { Peer } from '../../realtime/hub.ts'
import type { ConversationReadFrame, ReadReceiptFrame, TypingFrame } from './frames.ts'
import type { InboxRow, InboxStore } from './inbox-store.ts'
import { type Draft, newMessageFrame } from './model.ts'
import type { ChatStore, ConversationRow, MessageRow } from './store.ts'

/** What a message says, before it has a place, an id and a time. */
export type Content = Omit<MessageRow, 'id' | 'seq' | 'createdAt' | 'deletedAt'>

/** Adds the pushes of a message to the queue, inside its `write`. */
export type PushMessage = (message: {
  recipientId: string
  conversationId: string
  seq: number
}) => void

type SentMessage = { message: MessageRow; replayed: boolean }

export type ChatService = ReturnType<typeof createChatService>

type Parts = {
  store: ChatStore
  inbox: InboxStore
  pushMessage: PushMessage
  /** Whether two users are in a call; undefined when nobody has to be. */
  areInCall: ((userId: string, otherId: string) => boolean) | undefined
}

export function createChatService(core: Core, parts: Parts) {
  const { write, afterCommit, hub, clock, newId } = core
  const { store, inbox, pushMessage, areInCall } = parts
  const mayType = createTypingThrottle(clock)

  /** Inside a `write`: the one conversation of two users, made at the first call. */
  function openConversation(userId: string, otherId: string): ConversationRow {
    const [userA, userB] = userId < otherId ? [userId, otherId] : [otherId, userId]
    const existing = store.findByPair(userA, userB)
    if (existing) return existing
    const conversation = { id: newId(), userA, userB, lastSeq: 0, createdAt: clock.now() }
    store.insert(conversation)
    return conversation
  }

  /** Inside a `write`: stores a message, shows it to `watchers` once it is safe, and has it pushed. */
  function post(content: Content, conversation: ConversationRow, watchers: readonly string[]) {
    const row = { ...content, id: newId(), createdAt: clock.now(), deletedAt: null }
    const message = store.insertMessage(row, conversation)
    const { conversationId, seq, id } = message
    const recipientId = otherOf(conversation, content.senderId)
    pushMessage({ recipientId, conversationId, seq })
    afterCommit(() => hub.send(watchers, newMessageFrame(message), { id }))
    return message
  }

  /** @throws not_found · not_participant */
  function participate(userId: string, conversationId: string): ConversationRow {
    const id = parseId(conversationId)
    const conversation = id === undefined ? undefined : store.find(id)
    if (!conversation) throw new AppError('not_found')
    if (conversation.userA !== userId && conversation.userB !== userId) {
      throw new AppError('not_participant')
    }
    return conversation
  }

  /** @throws no_active_call. Admins need none. */
  function mustBeInCall(senderId: string, { userA, userB }: ConversationRow) {
    if (!areInCall || areInCall(userA, userB) || store.isAdmin(senderId)) return
    throw new AppError('no_active_call')
  }

  function sendOnce(senderId: string, conversation: ConversationRow, draft: Draft): SentMessage {
    const content = { ...draft, conversationId: conversation.id, senderId, broadcastId: null }
    const first =
      draft.clientId === null ? undefined : store.findByClientId(senderId, draft.clientId)
    if (first) {
      if (!saysTheSame(content, first)) throw new AppError('idempotency_mismatch')
      // Choice: what was sent before is answered, not delivered again.
      return { message: first, replayed: true }
    }
    if (!store.isReachable(otherOf(conversation, senderId))) throw new AppError('recipient_gone')
    mustBeInCall(senderId, conversation)
    const both = [conversation.userA, conversation.userB]
    return { message: post(content, conversation, both), replayed: false }
  }

  return {
    openConversation,
    post,

    /** The conversation of two users, made at the first call.
     *  @throws validation_error (oneself) · not_found (no such user, or removed) */
    async open(userId: string, otherIdText: string) {
      const otherId = parseId(otherIdText)
      if (otherId === userId) throw invalidField('user_id', 'oneself')
      const participant = otherId === undefined ? undefined : store.findPerson(otherId)
      if (!participant) throw new AppError('not_found')
      const { id, createdAt } = await write(() => openConversation(userId, participant.id))
      return { id, participant, createdAt, unreadCount: store.findUnreadCount(userId, id) }
    },

    /** A user's conversations, most recent activity first. */
    listConversations: (userId: string, range: ListRange): Listing<InboxRow> =>
      listByPosition(range, {
        name: 'conversations',
        list: (rows) => inbox.list(userId, rows),
        count: () => inbox.count(userId),
        position: (row) => row.lastActivityId,
      }),

    /** Messages of a conversation, newest first.
     *  @throws not_found · not_participant */
    listMessages(userId: string, conversationId: string, range: ListRange): Listing<MessageRow> {
      const { id, lastSeq } = participate(userId, conversationId)
      return listByNumber(range, {
        name: id,
        total: lastSeq,
        list: (after, until) => store.listMessages(id, after, until),
        numberOf: ({ seq }) => seq,
      })
    },

    /** Sends a message and delivers it to both users' sockets, once it is safe on the disk. The same `clientId` with
     *  the same content gives the first message again, and delivers nothing.
     *  @throws not_found · not_participant · no_active_call · recipient_gone · idempotency_mismatch (`clientId` was used for
     *  something else) */
    async send(senderId: string, conversationId: string, draft: Draft): Promise<SentMessage> {
      const conversation = participate(senderId, conversationId)
      return write(() => sendOnce(senderId, conversation, draft))
    },

    /** Marks everything in a conversation as read; tells the other user, and the reader's other sockets than `from`.
     *  @throws not_found · not_participant */
    async markRead(userId: string, conversationId: string, from?: Peer): Promise<void> {
      const conversation = participate(userId, conversationId)
      const { id } = conversation
      const common = { conversation_id: id }
      const receipt: ReadReceiptFrame = { type: 'read_receipt', ...common, user_id: userId }
      const read: ConversationReadFrame = { type: 'conversation_read', ...common, unread_count: 0 }
      // Choice: a receipt for every read, also when nothing was unread.
      await write(() => {
        store.updateRead(userId, id, store.find(id)?.lastSeq ?? 0)
        afterCommit(() => {
          hub.send([otherOf(conversation, userId)], receipt)
          hub.send([userId], read, { except: from })
        })
      })
    },

    /** Tells the other user now and then that this one is typing.
     *  @throws not_found · not_participant */
    typing(userId: string, conversationId: string): void {
      const conversation = participate(userId, conversationId)
      const { id } = conversation
      if (!mayType(`${userId}:${id}`)) return
      const frame: TypingFrame = { type: 'typing', conversation_id: id, user_id: userId }
      hub.sendVolatile(otherOf(conversation, userId), frame)
    },
  }
}

function otherOf({ userA, userB }: ConversationRow, userId: string): string {
  return userA === userId ? userB : userA
}

const typingRule = { burst: 5, millisecondsPerToken: 2_000 }
const rememberedTypists = 10_000

/** Whether a typing frame of a user in a conversation is passed on. */
function createTypingThrottle(clock: Clock) {
  const buckets = createLru<TokenBucket>(rememberedTypists)

  return (key: string): boolean => {
    const now = clock.now()
    const bucket = buckets.get(key) ?? new TokenBucket(typingRule, now)
    buckets.set(key, bucket)
    return bucket.take(now)
  }
}

function saysTheSame(content: Content, stored: MessageRow) {
  const names = Object.keys(content) as Array<keyof Content>
  return names.every((name) => content[name] === stored[name])
}
