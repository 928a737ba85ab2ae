import { Type } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import type { Write } from '../../db/writer.ts'
import type { Clock } from '../../lib/clock.ts'
import { AppError, invalidField } from '../../lib/errors.ts'
import { type NewId, parseId } from '../../lib/ids.ts'
import { cutAtLimit, decodeCursor, type Listing, type ListRange } from '../../lib/list-range.ts'
import type { Hub } from '../../realtime/hub.ts'
import { newMessageFrame, readReceiptFrame, typingFrame } from './frames.ts'
import { type Draft, messageView } from './model.ts'
import type { ChatStore, ConversationRow, InboxRow, MessageRow, NewMessageRow } from './store.ts'
import { createTypingThrottle } from './typing-throttle.ts'

export type SentMessage = { message: MessageRow; replayed: boolean }

export type ChatService = ReturnType<typeof createChatService>

type ChatServiceOptions = { store: ChatStore; write: Write; hub: Hub; newId: NewId; clock: Clock }

const messagePosition = TypeCompiler.Compile(Type.Tuple([Type.Integer({ minimum: 1 })]))
const inboxPosition = TypeCompiler.Compile(Type.Tuple([Type.Integer(), Type.String()]))

export function createChatService({ store, write, hub, newId, clock }: ChatServiceOptions) {
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

  function open(userId: string, otherId: string): ConversationRow {
    const [userA, userB] = userId < otherId ? [userId, otherId] : [otherId, userId]
    const existing = store.findByPair(userA, userB)
    if (existing) return existing
    const conversation = { id: newId(), userA, userB, lastSeq: 0, createdAt: clock.now() }
    store.insert(conversation)
    return conversation
  }

  function append(senderId: string, conversation: ConversationRow, draft: Draft): SentMessage {
    const row = rowOf(draft, conversation.id, senderId)
    const first = draft.clientId && store.findByClientId(senderId, draft.clientId)
    if (!first) {
      const made = { ...row, id: newId(), createdAt: clock.now() }
      return { message: store.insertMessage(made, conversation), replayed: false }
    }
    if (!saysTheSame(row, first)) throw new AppError('conflict')
    return { message: first, replayed: true }
  }

  return {
    /** The conversation of two users, made at the first call.
     *  @throws validation_error (oneself) · not_found (no such user). Spec 4.2. */
    async open(userId: string, otherIdText: string) {
      const otherId = parseId(otherIdText) ?? ''
      if (otherId === userId) throw invalidField('user_id', 'oneself')
      const participant = store.findPerson(otherId)
      if (!participant) throw new AppError('not_found')
      const { id, createdAt } = await write(() => open(userId, otherId))
      return { id, participant, createdAt, unreadCount: store.findUnreadCount(userId, id) }
    },

    /** A user's conversations, most recent activity first. */
    listConversations(userId: string, range: ListRange): Listing<InboxRow> {
      if (range.form === 'page') {
        const { perPage: limit, offset } = range
        const total = store.countConversations(userId)
        const rows = offset < total ? store.listInbox(userId, { limit, offset }) : []
        return { form: 'page', rows, total }
      }
      const { cursor, limit } = range
      const before = cursor === undefined ? undefined : inboxPlace(cursor)
      const rows = store.listInbox(userId, { limit: limit + 1, offset: 0, before })
      return cutAtLimit(rows, limit, (row) => [row.lastActivityAt, row.conversationId])
    },

    /** Messages of a conversation, newest first.
     *  @throws not_found · forbidden (not a participant). Spec 4.2, rules 1 and 2. */
    listMessages(userId: string, conversationId: string, range: ListRange): Listing<MessageRow> {
      const { id, lastSeq } = participate(userId, conversationId)
      if (range.form === 'page') {
        const until = lastSeq - range.offset
        const rows = until > 0 ? store.listMessages(id, until - range.perPage, until) : []
        return { form: 'page', rows, total: lastSeq }
      }
      const { cursor, limit } = range
      const until = cursor === undefined ? lastSeq : messagePlace(cursor) - 1
      const rows = store.listMessages(id, until - limit - 1, until)
      return cutAtLimit(rows, limit, (row) => [row.seq])
    },

    /** Sends a message and delivers it to both users' sockets, once it is safe on the disk. The same `clientId` with
     *  the same content gives the first message again, and delivers nothing.
     *  @throws not_found · forbidden (not a participant) · conflict (`clientId` was used for something else).
     *  Spec 4.2, rules 1–3; decisions 5. */
    async send(senderId: string, conversationId: string, draft: Draft): Promise<SentMessage> {
      const conversation = participate(senderId, conversationId)
      const sent = await write(() => append(senderId, conversation, draft))
      // Choice: what was sent before is answered, not delivered again.
      if (!sent.replayed) {
        hub.send([conversation.userA, conversation.userB], newMessageFrame(sent.message))
      }
      return sent
    },

    /** Marks everything in a conversation as read and tells the other user.
     *  @throws not_found · forbidden (not a participant). Spec 3.3. */
    async markRead(userId: string, conversationId: string): Promise<void> {
      const conversation = participate(userId, conversationId)
      const { id } = conversation
      // Choice: a receipt for every read, also when nothing was unread.
      await write(() => store.updateRead(userId, id, store.find(id)?.lastSeq ?? 0))
      hub.send([otherOf(conversation, userId)], readReceiptFrame(id, userId))
    },

    /** What a person said, for their own export. */
    *exportMessages(userId: string) {
      for (const row of store.eachSentBy(userId)) yield messageView(row)
    },

    /** Tells the other user that this one is typing, now and then.
     *  @throws not_found · forbidden (not a participant) */
    typing(userId: string, conversationId: string): void {
      const conversation = participate(userId, conversationId)
      if (!mayType(userId, conversation.id)) return
      hub.sendPassing([otherOf(conversation, userId)], typingFrame(conversation.id, userId))
    },
  }
}

function otherOf({ userA, userB }: ConversationRow, userId: string) {
  return userA === userId ? userB : userA
}

type Content = Omit<NewMessageRow, 'id' | 'createdAt'>

function rowOf(draft: Draft, conversationId: string, senderId: string): Content {
  const { body, type, clientId = null } = draft
  const file = type === 'file' ? draft : undefined
  return {
    conversationId,
    senderId,
    type,
    body,
    fileUrl: file?.fileUrl ?? null,
    fileName: file?.fileName ?? null,
    fileSize: file?.fileSize ?? null,
    fileType: file?.fileType ?? null,
    clientId,
  }
}

function saysTheSame(content: Content, stored: MessageRow) {
  const names = Object.keys(content) as Array<keyof Content>
  return names.every((name) => content[name] === stored[name])
}

function messagePlace(cursor: string): number {
  return decodeCursor(cursor, messagePosition)[0]
}

function inboxPlace(cursor: string) {
  const [lastActivityAt, conversationId] = decodeCursor(cursor, inboxPosition)
  return { lastActivityAt, conversationId }
}
