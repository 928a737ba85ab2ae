import { Type } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import type { Write } from '../../db/writer.ts'
import type { Clock } from '../../lib/clock.ts'
import { AppError, invalidField } from '../../lib/errors.ts'
import { parseId } from '../../lib/ids.ts'
import {
  type CursorRange,
  cutAtLimit,
  decodeCursor,
  idPosition,
  type Listing,
  type ListRange,
} from '../../lib/list-range.ts'
import type { Hub, Peer } from '../../realtime/hub.ts'
import { type Content, type Conversations, otherOf } from './conversations.ts'
import type { InboxRow } from './inbox-store.ts'
import { type Draft, messageView } from './model.ts'
import {
  conversationReadFrame,
  newMessageFrame,
  readReceiptFrame,
  typingFrame,
} from './server-frames.ts'
import type { ChatStore, ConversationRow, MessageRow } from './store.ts'
import type { TimelineStore } from './timeline-store.ts'
import { createTypingThrottle } from './typing-throttle.ts'

export type SentMessage = { message: MessageRow; replayed: boolean }

export type ChatService = ReturnType<typeof createChatService>

type ChatServiceOptions = {
  store: ChatStore
  timelines: TimelineStore
  write: Write
  hub: Hub
  clock: Clock
  conversations: Conversations
  /** Notes, inside the `write`, that the recipient's devices are to be told. */
  pushMessage: (message: MessageRow) => void
  /** Undefined when nobody has to be in a call. */
  areInCall: AreInCall | undefined
}

/** Whether two users are in a call with each other. */
export type AreInCall = (userId: string, otherId: string) => boolean

const messagePosition = TypeCompiler.Compile(Type.Tuple([Type.Integer({ minimum: 1 })]))
const replayPart = 100
const exportPart = 200
const inboxPosition = TypeCompiler.Compile(Type.Tuple([Type.Integer(), Type.String()]))

export function createChatService(options: ChatServiceOptions) {
  const { store, timelines, write, hub, clock, conversations, pushMessage, areInCall } = options
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

  /** @throws forbidden: no active call (spec 4.2, rule 3). Admins need none. */
  function mustBeInCall(senderId: string, { userA, userB }: ConversationRow) {
    if (!areInCall || areInCall(userA, userB) || store.isAdmin(senderId)) return
    throw new AppError('forbidden')
  }

  function append(senderId: string, conversation: ConversationRow, draft: Draft): SentMessage {
    const content = contentOf(draft, conversation, senderId)
    const first = draft.clientId && store.findByClientId(senderId, draft.clientId)
    if (!first) {
      mustBeInCall(senderId, conversation)
      const message = conversations.append(content, conversation)
      if (!hub.isOnline(message.recipientId)) pushMessage(message)
      return { message, replayed: false }
    }
    if (!saysTheSame(content, first)) throw new AppError('conflict')
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
      const { id, createdAt } = await write(() => conversations.open(userId, otherId))
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
     *  @throws not_found · forbidden (not a participant, no active call) · conflict (`clientId` was used for something
     *  else).
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

    /** Marks everything in a conversation as read; tells the other user, and the reader's other sockets than `from`.
     *  @throws not_found · forbidden (not a participant). Spec 3.3. */
    async markRead(userId: string, conversationId: string, from?: Peer): Promise<void> {
      const conversation = participate(userId, conversationId)
      const { id } = conversation
      // Choice: a receipt for every read, also when nothing was unread.
      await write(() => store.updateRead(userId, id, store.find(id)?.lastSeq ?? 0))
      hub.send([otherOf(conversation, userId)], readReceiptFrame(id, userId))
      hub.send([userId], conversationReadFrame(id), from)
    },

    /** What a user got and sent after a message, oldest first, the copies of their own broadcasts left out. Ids rise in
     *  commit order, so that nothing older can come later. Decisions 6, catching up. */
    listMissed(userId: string, sinceText: string | undefined, { limit, cursor }: CursorRange) {
      const since = sinceText === undefined ? '' : parseId(sinceText)
      if (since === undefined) throw invalidField('since', 'id')
      const after = cursor === undefined ? since : decodeCursor(cursor, idPosition)[0]
      return cutAtLimit(timelines.listAfter(userId, after, limit + 1), limit, ({ id }) => [id])
    },

    /** Where a replay starts: `since`, but not after the newest message there is.
     *  @throws validation_error (`since`) */
    startOfReplay(since: string): string {
      const id = parseId(since)
      if (id === undefined) throw invalidField('since', 'id')
      const newest = timelines.findNewestId()
      const isKnown = id <= newest
      return isKnown ? id : newest
    },

    /** A part of a replay: the frames of what came after `after`. */
    missedFrames: (userId: string, after: string) =>
      timelines.listAfter(userId, after, replayPart).map(newMessageFrame),

    /** What a person said, for their own export. */
    *exportMessages(userId: string) {
      let part: MessageRow[] = []
      do {
        part = timelines.listAfter(userId, part.at(-1)?.id ?? '', exportPart)
        yield* part.filter(({ senderId }) => senderId === userId).map(messageView)
      } while (part.length === exportPart)
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

function contentOf(draft: Draft, conversation: ConversationRow, senderId: string): Content {
  const { body, type, clientId = null } = draft
  const file = type === 'file' ? draft : undefined
  return {
    conversationId: conversation.id,
    senderId,
    recipientId: otherOf(conversation, senderId),
    type,
    body,
    fileUrl: file?.fileUrl ?? null,
    fileName: file?.fileName ?? null,
    fileSize: file?.fileSize ?? null,
    fileType: file?.fileType ?? null,
    clientId,
    broadcastId: null,
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
