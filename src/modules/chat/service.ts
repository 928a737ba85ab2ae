import type { Core } from '../../core.ts'
import type { TakeText } from '../../db/text-quota.ts'
import type { Clock } from '../../lib/clock.ts'
import { AppError, invalidField } from '../../lib/errors.ts'
import { getById, parseId } from '../../lib/ids.ts'
import { TokenBucket } from '../../lib/limits.ts'
import { type Listing, type ListRange, listByNumber, listByPosition } from '../../lib/list-range.ts'
import { createLru } from '../../lib/lru.ts'
import type { MessageDeletedFrame, TypingFrame } from './frames.ts'
import type { InboxRow, InboxStore } from './inbox-store.ts'
import { type Draft, messageView, newMessageFrame, senderVariant } from './model.ts'
import type { ChatStore, ConversationRow, MessageRow } from './store.ts'

export type Content = Omit<MessageRow, 'id' | 'seq' | 'createdAt' | 'deletedAt'>

/** Queues the pushes of a message, inside its `write`. */
export type PushMessage = (message: {
  recipientId: string
  conversationId: string
  seq: number
}) => void

/** False when either user has blocked the other. */
export type MayTalk = (userId: string, otherId: string) => boolean

type SentMessage = { message: MessageRow; replayed: boolean }

/** Messages before and after a reported one in its excerpt. */
const excerptNeighbours = 20

export type ChatService = ReturnType<typeof createChatService>

type Parts = {
  store: ChatStore
  inbox: InboxStore
  participate: Participate
  pushMessage: PushMessage
  /** Whether two users are in a call; undefined when sending needs no call. */
  areInCall: ((userId: string, otherId: string) => boolean) | undefined
  mayTalk: MayTalk
  takeText: TakeText
}

export function createChatService(core: Core, parts: Parts) {
  const { write, afterCommit, hub, clock, newId, events } = core
  const { store, inbox, participate, pushMessage, areInCall, mayTalk, takeText } = parts
  const mayType = createTypingThrottle(clock)

  /** Finds or creates the conversation of two users, inside a `write`.
   *  @throws blocked (a new conversation) */
  function openConversation(userId: string, otherId: string): ConversationRow {
    const [userA, userB] = userId < otherId ? [userId, otherId] : [otherId, userId]
    const existing = store.findByPair(userA, userB)
    if (existing) return existing
    if (!mayTalk(userId, otherId)) throw new AppError('blocked')
    const conversation = { id: newId(), userA, userB, lastSeq: 0, createdAt: clock.now() }
    store.insert(conversation)
    return conversation
  }

  /** Stores a message and queues its pushes, inside a `write`. The frames are sent after the commit. */
  function post(content: Content, conversation: ConversationRow, watchers: readonly string[]) {
    const row = { ...content, id: newId(), createdAt: clock.now(), deletedAt: null }
    const message = store.insertMessage(row, conversation)
    const { conversationId, seq, id } = message
    const recipientId = otherOf(conversation, content.senderId)
    pushMessage({ recipientId, conversationId, seq })
    afterCommit(() => {
      const frame = newMessageFrame(message)
      hub.send(watchers, frame, { id, variant: senderVariant(message, frame) })
    })
    // A broadcast publishes one event for all its copies.
    if (content.broadcastId === null) {
      const { fileUrl, senderId: fileOwnerId } = message
      events.publish({ type: 'message.created', ids: { message_id: id }, fileUrl, fileOwnerId })
    }
    return message
  }

  /** @throws no_active_call. Admins need no call. */
  function mustBeInCall(senderId: string, { userA, userB }: ConversationRow) {
    if (!areInCall || areInCall(userA, userB) || store.isAdmin(senderId)) return
    throw new AppError('no_active_call')
  }

  function sendOnce(senderId: string, conversation: ConversationRow, draft: Draft): SentMessage {
    const content = { ...draft, conversationId: conversation.id, senderId, broadcastId: null }
    const first =
      draft.clientId === null ? undefined : store.findByClientId(senderId, draft.clientId)
    if (first && !isReplay(content, first)) throw new AppError('idempotency_mismatch')
    // Choice: a repeated send returns the first message and delivers nothing.
    if (first) return { message: first, replayed: true }
    const receiverId = otherOf(conversation, senderId)
    if (!mayTalk(senderId, receiverId)) throw new AppError('blocked')
    if (!store.isReachable(receiverId)) throw new AppError('recipient_gone')
    mustBeInCall(senderId, conversation)
    takeText(senderId, draft.body, draft.fileUrl, draft.fileName)
    const both = [conversation.userA, conversation.userB]
    return { message: post(content, conversation, both), replayed: false }
  }

  /** Called inside a `write`.
   *  @param removedBy the sender; undefined for an admin, whose removal is also sent to the other user after a block */
  function removeMessage(
    message: MessageRow,
    conversation: ConversationRow,
    removedBy: string | undefined,
  ) {
    if (message.deletedAt !== null) return
    const { id, conversationId, senderId } = message
    store.updateDeleted(message, otherOf(conversation, senderId), clock.now())
    events.publish({ type: 'message.deleted', ids: { message_id: id } })
    const frame: MessageDeletedFrame = {
      type: 'message_deleted',
      conversation_id: conversationId,
      message_id: id,
    }
    const { userA, userB } = conversation
    const watchers = removedBy === undefined || mayTalk(userA, userB) ? [userA, userB] : [removedBy]
    afterCommit(() => hub.send(watchers, frame))
  }

  return {
    openConversation,
    post,

    /** Removes a message by any author, inside a `write`. Idempotent.
     *  @returns whether the message exists */
    removeAny(messageId: string): boolean {
      const message = store.findMessage(messageId)
      const conversation = message && store.find(message.conversationId)
      if (conversation) removeMessage(message, conversation, undefined)
      return conversation !== undefined
    },

    /** Finds or creates the conversation of two users.
     *  @throws validation_error (oneself) · not_found (unknown or deleted user) · blocked (a new conversation) */
    async open(userId: string, otherIdText: string) {
      const otherId = parseId(otherIdText)
      if (otherId === userId) throw invalidField('user_id', 'oneself')
      const participant = otherId === undefined ? undefined : store.findPerson(otherId, userId)
      if (!participant) throw new AppError('not_found')
      const { id, createdAt } = await write(() => openConversation(userId, participant.id))
      const unreadCount = store.findParticipant(userId, id)?.unreadCount ?? 0
      return { id, participant, createdAt, unreadCount }
    },

    /** A message of one of the user's conversations with up to 20 before and after it, oldest first. Includes the text of
     *  recently removed messages. */
    findExcerpt(userId: string, messageId: string) {
      const message = store.findMessage(messageId)
      const conversation = message && store.find(message.conversationId)
      if (!conversation || !isOf(conversation, userId)) return undefined
      const { conversationId, senderId, seq } = message
      const first = seq - excerptNeighbours
      const rows = store.listMessages(conversationId, first - 1, seq + excerptNeighbours).reverse()
      return { senderId, messages: rows.map((row) => messageView(store.withOriginalText(row))) }
    },

    /** Most recent activity first. */
    listConversations: (userId: string, range: ListRange): Listing<InboxRow> =>
      listByPosition(range, {
        name: 'conversations',
        list: (rows) => inbox.list(userId, rows),
        count: () => inbox.count(userId),
        position: (row) => row.lastActivityId,
      }),

    /** Newest first.
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

    /** Sends a message, and delivers it to both users' sockets when the commit is on disk. A repeated call with the same
     *  `clientId` and content returns the first message and delivers nothing.
     *  @throws not_found · not_participant · blocked · no_active_call · recipient_gone · text_quota_exceeded ·
     *  idempotency_mismatch (same `clientId`, other content) */
    send: (senderId: string, conversationId: string, draft: Draft): Promise<SentMessage> =>
      // Outside the transaction this read would cost as much as all other statements of a message.
      write(() => sendOnce(senderId, participate(senderId, conversationId), draft)),

    /** Removes the content of a message of the user's own; the row keeps its `seq`. Idempotent.
     *  @throws not_found · not_participant · not_owner */
    async remove(userId: string, conversationId: string, messageIdText: string): Promise<void> {
      const conversation = participate(userId, conversationId)
      const messageId = parseId(messageIdText)
      await write(() => {
        const message = messageId === undefined ? undefined : store.findMessage(messageId)
        if (!message || !isIn(conversation, message)) throw new AppError('not_found')
        if (message.senderId !== userId) throw new AppError('not_owner')
        removeMessage(message, conversation, userId)
      })
    },

    /** Sends the other user a typing frame, at a limited rate.
     *  @throws not_found · not_participant */
    typing(userId: string, conversationId: string): void {
      const conversation = participate(userId, conversationId)
      const { id } = conversation
      const otherId = otherOf(conversation, userId)
      if (!mayType(`${userId}:${id}`) || !mayTalk(userId, otherId)) return
      const frame: TypingFrame = { type: 'typing', conversation_id: id, user_id: userId }
      hub.sendVolatile(otherId, frame)
    },
  }
}

export type Participate = (userId: string, conversationId: string) => ConversationRow

export function createParticipate(store: ChatStore): Participate {
  /** @throws not_found · not_participant */
  return (userId, conversationId) => {
    const conversation = getById(conversationId, store.find)
    if (!isOf(conversation, userId)) throw new AppError('not_participant')
    return conversation
  }
}

const isOf = ({ userA, userB }: ConversationRow, userId: string) =>
  userA === userId || userB === userId
const isIn = ({ id }: ConversationRow, { conversationId }: MessageRow) => conversationId === id

export function otherOf({ userA, userB }: ConversationRow, userId: string): string {
  return userA === userId ? userB : userA
}

const typingRule = { burst: 5, millisecondsPerToken: 2_000 }
const rememberedTypists = 10_000

function createTypingThrottle(clock: Clock) {
  const buckets = createLru<TokenBucket>(rememberedTypists)

  return (key: string): boolean => {
    const now = clock.now()
    const bucket = buckets.get(key) ?? new TokenBucket(typingRule, now)
    buckets.set(key, bucket)
    return bucket.take(now)
  }
}

/** Whether a message has the same content as the stored one. The content of a removed message is gone, so only the
 *  conversation is compared. */
function isReplay(content: Content, stored: MessageRow): boolean {
  if (stored.deletedAt !== null) return content.conversationId === stored.conversationId
  const names = Object.keys(content) as Array<keyof Content>
  return names.every((name) => content[name] === stored[name])
}
