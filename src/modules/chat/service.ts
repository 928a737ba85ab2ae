import { Type } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import { LRUCache } from 'lru-cache'
import type { Core } from '../../core.ts'
import type { Clock } from '../../lib/clock.ts'
import { AppError, invalidField } from '../../lib/errors.ts'
import { parseId } from '../../lib/ids.ts'
import { TokenBucket } from '../../lib/limits.ts'
import {
  cutAtLimit,
  decodeCursor,
  type Listing,
  type ListRange,
  listByPosition,
} from '../../lib/list-range.ts'
import type { Peer } from '../../realtime/hub.ts'
import { type Content, type Conversations, otherOf } from './conversations.ts'
import type { ConversationReadFrame, ReadReceiptFrame, TypingFrame } from './frames.ts'
import type { InboxRow, InboxStore } from './inbox-store.ts'
import type { Draft } from './model.ts'
import type { ChatStore, ConversationRow, MessageRow } from './store.ts'

export type SentMessage = { message: MessageRow; replayed: boolean }

export type ChatService = ReturnType<typeof createChatService>

type Parts = {
  store: ChatStore
  inbox: InboxStore
  conversations: Conversations
  /** Whether two users are in a call; undefined when nobody has to be. */
  areInCall: ((userId: string, otherId: string) => boolean) | undefined
}

const messagePosition = TypeCompiler.Compile(Type.Tuple([Type.Integer({ minimum: 1 })]))

export function createChatService({ write, afterCommit, hub, clock }: Core, parts: Parts) {
  const { store, inbox, conversations, areInCall } = parts
  const mayType = createTypingThrottle(clock)

  /** @throws not_found · forbidden (not a participant) */
  function participate(userId: string, conversationId: string): ConversationRow {
    const id = parseId(conversationId)
    const conversation = id === undefined ? undefined : store.find(id)
    if (!conversation) throw new AppError('not_found')
    if (conversation.userA !== userId && conversation.userB !== userId) {
      throw new AppError('forbidden')
    }
    return conversation
  }

  /** @throws forbidden: no active call. Admins need none. */
  function mustBeInCall(senderId: string, { userA, userB }: ConversationRow) {
    if (!areInCall || areInCall(userA, userB) || store.isAdmin(senderId)) return
    throw new AppError('forbidden')
  }

  function post(senderId: string, conversation: ConversationRow, draft: Draft): SentMessage {
    const content = { ...draft, conversationId: conversation.id, senderId, broadcastId: null }
    const first =
      draft.clientId === null ? undefined : store.findByClientId(senderId, draft.clientId)
    if (first) {
      if (!saysTheSame(content, first)) throw new AppError('conflict')
      // Choice: what was sent before is answered, not delivered again.
      return { message: first, replayed: true }
    }
    mustBeInCall(senderId, conversation)
    const both = [conversation.userA, conversation.userB]
    return { message: conversations.post(content, conversation, both), replayed: false }
  }

  return {
    /** The conversation of two users, made at the first call.
     *  @throws validation_error (oneself) · not_found (no such user) */
    async open(userId: string, otherIdText: string) {
      const otherId = parseId(otherIdText)
      if (otherId === userId) throw invalidField('user_id', 'oneself')
      const participant = otherId === undefined ? undefined : store.findPerson(otherId)
      if (!participant) throw new AppError('not_found')
      const { id, createdAt } = await write(() => conversations.open(userId, participant.id))
      return { id, participant, createdAt, unreadCount: store.findUnreadCount(userId, id) }
    },

    /** A user's conversations, most recent activity first. */
    listConversations: (userId: string, range: ListRange): Listing<InboxRow> =>
      listByPosition(range, {
        list: (rows) => inbox.list(userId, rows),
        count: () => inbox.count(userId),
        position: (row) => row.lastActivityId,
      }),

    /** Messages of a conversation, newest first.
     *  @throws not_found · forbidden (not a participant) */
    listMessages(userId: string, conversationId: string, range: ListRange): Listing<MessageRow> {
      const { id, lastSeq } = participate(userId, conversationId)
      if (range.form === 'page') {
        const until = lastSeq - range.offset
        const rows = until > 0 ? store.listMessages(id, until - range.perPage, until) : []
        return { form: 'page', rows, total: lastSeq }
      }
      const { cursor, limit } = range
      const until = cursor === undefined ? lastSeq : decodeCursor(cursor, messagePosition)[0] - 1
      const rows = store.listMessages(id, until - limit - 1, until)
      return cutAtLimit(rows, limit, (row) => [row.seq])
    },

    /** Sends a message and delivers it to both users' sockets, once it is safe on the disk. The same `clientId` with
     *  the same content gives the first message again, and delivers nothing.
     *  @throws not_found · forbidden (not a participant, no active call) · conflict (`clientId` was used for something
     *  else) */
    async send(senderId: string, conversationId: string, draft: Draft): Promise<SentMessage> {
      const conversation = participate(senderId, conversationId)
      return write(() => post(senderId, conversation, draft))
    },

    /** Marks everything in a conversation as read; tells the other user, and the reader's other sockets than `from`.
     *  @throws not_found · forbidden (not a participant) */
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
     *  @throws not_found · forbidden (not a participant) */
    typing(userId: string, conversationId: string): void {
      const conversation = participate(userId, conversationId)
      const { id } = conversation
      if (!mayType(`${userId}:${id}`)) return
      const frame: TypingFrame = { type: 'typing', conversation_id: id, user_id: userId }
      hub.sendVolatile(otherOf(conversation, userId), frame)
    },
  }
}

const typingRule = { burst: 5, millisecondsPerToken: 2_000 }
const rememberedTypists = 10_000

/** Whether a typing frame of a user in a conversation is passed on. */
function createTypingThrottle(clock: Clock) {
  const buckets = new LRUCache<string, TokenBucket>({ max: rememberedTypists })

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
