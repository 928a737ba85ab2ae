import { isDeepStrictEqual } from 'node:util'
import type { Core, MayTalk, ResolveUser } from '../../core.ts'
import type { TakeText } from '../../db/text-quota.ts'
import { createAvatarUrls } from '../../lib/avatar.ts'
import { AppError, invalidField } from '../../lib/errors.ts'
import { getById } from '../../lib/ids.ts'
import { TokenBucket } from '../../lib/limits.ts'
import { type Listing, type ListRange, listByNumber } from '../../lib/list-range.ts'
import { createLru } from '../../lib/lru.ts'
import type { ConversationUpdatedFrame, MessageDeletedFrame, TypingFrame } from './frames.ts'
import type { InboxRow, InboxStore } from './inbox-store.ts'
import {
  type Attachment,
  type ConversationListItem,
  conversationListItemView,
  type Draft,
  messageView,
  newMessageFrame,
  type SendRefusal,
  senderVariant,
} from './model.ts'
import { type ChatStore, type ConversationRow, type MessageRow, readersOf } from './store.ts'

export type Content = Omit<MessageRow, 'id' | 'seq' | 'createdAt' | 'deletedAt' | 'picture'>

type PushMessage = (message: {
  recipientId: string
  conversationId: string
  seq: number
  isCopy: boolean
}) => void

type SentMessage = { message: MessageRow; replayed: boolean }

const typingRule = { burst: 5, millisecondsPerToken: 2_000 }
const rememberedTypists = 10_000
const excerptNeighbours = 20

export type ChatService = ReturnType<typeof createChatService>

export type ChatParts = {
  store: ChatStore
  inbox: InboxStore
  pushMessage: PushMessage
  areInCall: (userId: string, otherId: string) => boolean
  mayTalk: MayTalk
  takeText: TakeText
  resolveUser: ResolveUser
  pictureOf: (fileUrl: string) => string | null
}

export function createChatService(core: Core, parts: ChatParts) {
  const { config, write, afterCommit, hub, clock, newId, events } = core
  const { store, inbox, pushMessage, areInCall, mayTalk, takeText, resolveUser, pictureOf } = parts
  const avatarUrl = createAvatarUrls(config.publicUrl)
  const newTypist = () => new TokenBucket(typingRule, clock.now())
  const typists = createLru<TokenBucket>(rememberedTypists, newTypist)
  // Ids rise in commit order; those of earlier starts are smaller.
  let newestDelivered = newId()

  /** @throws not_found · not_participant */
  function participate(userId: string, conversationId: string): ConversationRow {
    const conversation = getById(conversationId, store.find)
    if (!isOf(conversation, userId)) throw new AppError('not_participant')
    return conversation
  }

  /** Called inside a `write`.
   *  @param by the platform also opens one between blocked users
   *  @throws blocked (a new conversation) */
  function openConversation(
    userId: string,
    otherId: string,
    by: 'user' | 'platform' = 'user',
  ): ConversationRow {
    const [userA, userB] = pairOf(userId, otherId)
    const existing = store.findByPair(userA, userB)
    if (existing) return existing
    if (by === 'user' && !mayTalk(userId, otherId)) throw new AppError('blocked')
    const unused = { lastSeq: 0, firstSeq: 1, createdAt: clock.now(), state: 'open' } as const
    const conversation = { id: newId(), userA, userB, ...unused }
    store.insert(conversation)
    return conversation
  }

  /** Like `openConversation`, for a conversation that no message announces: sends a new one to both users. */
  function openEmpty(...given: Parameters<typeof openConversation>): ConversationRow {
    const [userId, otherId] = given
    const isKnown = store.findByPair(...pairOf(userId, otherId)) !== undefined
    const conversation = openConversation(...given)
    if (!isKnown) publishUpdate(conversation.id, [userId, otherId])
    return conversation
  }

  const picturesOf = (urls: readonly string[]) =>
    JSON.stringify(urls.map((url) => JSON.parse(pictureOf(url) ?? 'null')))

  /** Called inside a `write`. The frames are sent after the commit. */
  function post(content: Content, conversation: ConversationRow, watchers: readonly string[]) {
    const { fileUrl, attachments } = content
    const urls = attachments === null ? undefined : urlsOf(attachments)
    const picture = urls ? picturesOf(urls) : fileUrl && pictureOf(fileUrl)
    const row = { ...content, picture, id: newId(), createdAt: clock.now(), deletedAt: null }
    const message = store.insertMessage(row, conversation)
    const { conversationId, seq, id } = message
    for (const recipientId of readersOf(message, conversation)) {
      pushMessage({ recipientId, conversationId, seq, isCopy: content.broadcastId !== null })
    }
    afterCommit(() => {
      newestDelivered = id
      const frame = newMessageFrame(message)
      hub.send(watchers, frame, { id, variant: senderVariant(message, frame) })
    })
    // A broadcast publishes one event for all its copies.
    if (content.broadcastId === null) {
      const { senderId } = message
      const file = senderId === null ? {} : { fileUrl, fileUrls: urls, fileOwnerId: senderId }
      events.publish({ type: 'message.created', ids: { message_id: id }, ...file })
    }
    return message
  }

  /** The first reason for which a user may not send; undefined when they may. Admins need no call. */
  function refusalOf(
    senderId: string,
    conversation: Pair & Pick<ConversationRow, 'state'>,
  ): SendRefusal | undefined {
    const { userA, userB, state } = conversation
    const receiverId = otherOf(conversation, senderId)
    if (!store.isReachable(receiverId)) return 'recipient_gone'
    if (!mayTalk(senderId, receiverId)) return 'blocked'
    if (state === 'read_only') return state
    if (!config.chatRequiresActiveCall || areInCall(userA, userB)) return undefined
    return store.isAdmin(senderId) ? undefined : 'no_active_call'
  }

  function item(userId: string, row: InboxRow): ConversationListItem {
    const refusal = refusalOf(userId, { userA: userId, userB: row.other.id, state: row.state })
    return conversationListItemView(row, { avatarUrl, refusal, now: clock.now() })
  }

  /** Called inside a `write`. */
  function publishUpdate(conversationId: string, userIds: readonly string[]): void {
    for (const userId of userIds.filter(hub.isOnline)) {
      const row = inbox.find(userId, conversationId)
      if (!row) continue
      const frame: ConversationUpdatedFrame = {
        type: 'conversation_updated',
        conversation: item(userId, row),
      }
      afterCommit(() => hub.send([userId], frame))
    }
  }

  /** @throws idempotency_mismatch (same key, other content) */
  function findFirst(content: Content): MessageRow | undefined {
    const { senderId, clientId } = content
    const first = clientId === null ? undefined : store.findByClientId(senderId, clientId)
    if (first && !isReplay(content, first)) throw new AppError('idempotency_mismatch')
    return first
  }

  function sendOnce(senderId: string, conversation: ConversationRow, draft: Draft): SentMessage {
    const conversationId = conversation.id
    const content = { ...draft, conversationId, senderId, isSilent: 0, broadcastId: null }
    const first = findFirst(content)
    // Choice: a repeated send returns the first message and delivers nothing.
    if (first) return { message: first, replayed: true }
    const refusal = refusalOf(senderId, conversation)
    if (refusal) throw new AppError(refusal)
    takeText(senderId, draft.body, draft.fileUrl, draft.fileName, draft.attachments)
    const both = [conversation.userA, conversation.userB]
    return { message: post(content, conversation, both), replayed: false }
  }

  /** Called inside a `write`.
   *  @param removedBy the sender; undefined for an admin or the platform, whose removal is also sent to the other user after
   *  a block */
  function removeMessage(
    message: MessageRow,
    conversation: ConversationRow,
    removedBy: string | undefined,
  ): boolean {
    if (message.deletedAt !== null) return false
    const { id, conversationId } = message
    store.updateDeleted(message, conversation, clock.now())
    events.publish({ type: 'message.deleted', ids: { message_id: id } })
    const frame: MessageDeletedFrame = {
      type: 'message_deleted',
      conversation_id: conversationId,
      message_id: id,
    }
    const { userA, userB } = conversation
    const watchers = removedBy === undefined || mayTalk(userA, userB) ? [userA, userB] : [removedBy]
    afterCommit(() => hub.send(watchers, frame))
    return true
  }

  function removeAny(messageId: string): boolean | undefined {
    const message = store.findMessage(messageId)
    const conversation = message && store.find(message.conversationId)
    return conversation && removeMessage(message, conversation, undefined)
  }

  return {
    participate,
    openConversation,
    openEmpty,
    post,
    sendOnce,
    removeAny,
    findFirst,
    publishUpdate,
    item,

    /** False for a message whose commit is not on the disk yet. */
    isDelivered: (id: string): boolean => id <= newestDelivered,

    /** After their right to send has changed, inside a `write`. */
    publishPair(userId: string, otherId: string): void {
      const both = pairOf(userId, otherId)
      const conversation = both.some(hub.isOnline) ? store.findByPair(...both) : undefined
      if (conversation) publishUpdate(conversation.id, both)
    },

    /** Inside a `write`.
     *  @returns the last conversation; undefined when there is none after `after` */
    publishToOthers(userId: string, limit: number, after = ''): string | undefined {
      const some = store.listOwn(userId, after, limit)
      for (const { id, otherUserId } of some) publishUpdate(id, [otherUserId])
      return some.at(-1)?.id
    },

    *countSentBy(userId: string) {
      for (let place = { conversationId: '', seq: 0 }; ; ) {
        const rows = store.listExamined(userId, place)
        const last = rows.at(-1)
        if (!last) return
        yield rows.filter(({ isLeft }) => isLeft).length
        place = last
      }
    },

    /** Also from what is kept for reports, inside a `write`. `after` names a conversation and a `seq` in it. */
    purge(userId: string, limit: number, after = ' 0') {
      const [conversationId = '', seq] = after.split(' ')
      const rows = store.listExamined(userId, { conversationId, seq: Number(seq) })
      const own = rows.filter(({ isLeft }) => isLeft).slice(0, limit)
      for (const place of own) {
        const conversation = store.find(place.conversationId)
        const [message] = store.listMessages(place.conversationId, place.seq - 1, place.seq)
        if (!conversation || !message) continue
        removeMessage(message, conversation, undefined)
        store.deleteRemoved(message.id)
      }
      const last = own.length === limit ? own.at(-1) : rows.at(-1)
      return last && { last: `${last.conversationId} ${last.seq}`, count: own.length }
    },

    /** Finds or creates the conversation of two users.
     *  @param otherReference an id, or `ext:` and an external id
     *  @throws validation_error (oneself) · not_found (unknown or deleted user) · blocked (a new conversation) */
    async open(userId: string, otherReference: string) {
      const otherId = resolveUser(otherReference)
      if (otherId === userId) throw invalidField('user_id', 'oneself')
      const participant = otherId === undefined ? undefined : store.findPerson(otherId, userId)
      if (!participant) throw new AppError('not_found')
      const { id, createdAt } = await write(() => openEmpty(userId, participant.id))
      const unreadCount = store.findParticipant(userId, id)?.unreadCount ?? 0
      return { id, participant, createdAt, unreadCount }
    },

    /** @throws not_found · not_participant */
    get(userId: string, conversationId: string): ConversationListItem {
      const { id } = participate(userId, conversationId)
      const row = inbox.find(userId, id)
      if (!row) throw new AppError('not_found')
      return item(userId, row)
    },

    /** With up to 20 messages before and after it, oldest first, and the text of recently removed ones. */
    findExcerpt(userId: string, messageId: string) {
      const message = store.findMessage(messageId)
      const conversation = message && store.find(message.conversationId)
      if (!conversation || !isOf(conversation, userId)) return undefined
      const { conversationId, senderId, seq } = message
      const first = seq - excerptNeighbours
      const rows = store.listMessages(conversationId, first - 1, seq + excerptNeighbours).reverse()
      return { senderId, messages: rows.map((row) => messageView(store.withOriginalText(row))) }
    },

    listConversations: inbox.list,

    /** Newest first.
     *  @throws not_found · not_participant */
    listMessages(userId: string, conversationId: string, range: ListRange): Listing<MessageRow> {
      const { id, firstSeq, lastSeq } = participate(userId, conversationId)
      return listByNumber(range, {
        name: id,
        first: firstSeq,
        last: lastSeq,
        list: (after, until) => store.listMessages(id, after, until),
        numberOf: ({ seq }) => seq,
      })
    },

    /** Delivers to both users' sockets when the commit is on disk. A repeated call with the same `clientId` and content
     *  returns the first message and delivers nothing.
     *  @throws not_found · not_participant · a `SendRefusal` · text_quota_exceeded · idempotency_mismatch */
    send: (senderId: string, conversationId: string, draft: Draft): Promise<SentMessage> =>
      // Outside the transaction this read would cost as much as all other statements of a message.
      write(() => sendOnce(senderId, participate(senderId, conversationId), draft)),

    /** The row keeps its `seq`. Idempotent.
     *  @throws not_found · not_participant · not_owner */
    async remove(userId: string, conversationId: string, messageIdText: string): Promise<void> {
      const conversation = participate(userId, conversationId)
      await write(() => {
        const message = getById(messageIdText, store.findMessage)
        if (message.conversationId !== conversation.id) throw new AppError('not_found')
        if (message.senderId !== userId) throw new AppError('not_owner')
        removeMessage(message, conversation, userId)
      })
    },

    /** At a limited rate.
     *  @throws not_found · not_participant */
    typing(userId: string, conversationId: string): void {
      const conversation = participate(userId, conversationId)
      const { id } = conversation
      const otherId = otherOf(conversation, userId)
      const isOpen = conversation.state === 'open' && mayTalk(userId, otherId)
      if (!typists.memo(`${userId}:${id}`).take(clock.now()) || !isOpen) return
      const frame: TypingFrame = { type: 'typing', conversation_id: id, user_id: userId }
      hub.sendVolatile(otherId, frame)
    },
  }
}

type Pair = Pick<ConversationRow, 'userA' | 'userB'>
const isOf = ({ userA, userB }: Pair, userId: string) => userA === userId || userB === userId

const otherOf = ({ userA, userB }: Pair, userId: string) => (userA === userId ? userB : userA)

const urlsOf = (attachments: string) =>
  (JSON.parse(attachments) as Attachment[]).map(({ file_url }) => file_url)

const pairOf = (userId: string, otherId: string): [string, string] =>
  userId < otherId ? [userId, otherId] : [otherId, userId]

/** Whether a message has the same content as the stored one. The content of a removed message is gone, so only the
 *  conversation is compared. The order of the keys in `data` does not matter. */
function isReplay({ data, ...content }: Content, stored: MessageRow): boolean {
  if (stored.deletedAt !== null) return content.conversationId === stored.conversationId
  const names = Object.keys(content) as Array<keyof typeof content>
  const isEqual = names.every((name) => content[name] === stored[name])
  return isEqual && (data === stored.data || isDeepStrictEqual(parsed(data), parsed(stored.data)))
}

const parsed = (json: string | null | undefined) => JSON.parse(json ?? 'null')
