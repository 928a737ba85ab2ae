import { Type } from '@sinclair/typebox'
import { Flag, Id, UnreadCount } from '../../api/fields.ts'
import { operations } from '../../api/operation.ts'
import { samples } from '../../api/samples.ts'
import { idempotencyKey, idempotent, markReplayed } from '../../http/idempotency.ts'
import {
  CursorListOf,
  cursorQuery,
  cursorRange,
  listAnswer,
  pageOf,
} from '../../http/pagination.ts'
import type { RouteApp } from '../../http/request-context.ts'
import { isoTime, parseTime } from '../../lib/clock.ts'
import { type ErrorKind, invalidField } from '../../lib/errors.ts'
import { parseExternalId } from '../../lib/ids.ts'
import type { ListRange } from '../../lib/list-range.ts'
import type { Broadcasts } from './broadcasts.ts'
import type { CatchUp } from './catch-up.ts'
import {
  Broadcast,
  BroadcastProgress,
  broadcastProgressView,
  broadcastView,
  Conversation,
  ConversationListItem,
  draftOf,
  Message,
  Mute,
  messageView,
  NewBroadcast,
  NewConversation,
  NewMessage,
  participantView,
  ReadUpTo,
  sendRefusals,
} from './model.ts'
import type { ReadState } from './read-state.ts'
import type { ChatService } from './service.ts'
import type { Unread } from './unread-store.ts'

const messagePageSize = 50
const user = operations('Chat', { access: 'user' })
const inConversation: ErrorKind[] = ['not_found', 'not_participant']
const host = operations('Chat', { access: 'host' })

type Parts = {
  chat: ChatService
  readState: ReadState
  unread: Unread
  catchUp: CatchUp
  broadcasts: Broadcasts
}

export function chatRoutes(app: RouteApp, { chat, readState, unread, catchUp, broadcasts }: Parts) {
  app
    .get(
      '/v1/chat/conversations',
      ({ query, context }) => {
        const { userId } = context.user
        const isArchived = query['archived'] === 'true'
        const list = (range: ListRange) => chat.listConversations(userId, range, isArchived)
        return pageOf(query, list, (row) => chat.item(userId, row))
      },
      user.list(
        'listConversations',
        'Lists conversations, most recent activity first.',
        ConversationListItem,
        {
          query: {
            archived: Flag('`true` lists archived conversations, which are otherwise left out.'),
          },
        },
      ),
    )
    .post(
      '/v1/chat/conversations',
      async ({ body, context }) => {
        const { userId, mayUseExternalIds } = context.user
        if (parseExternalId(body.user_id) !== undefined && !mayUseExternalIds)
          throw invalidField('user_id', 'id')
        const conversation = await chat.open(userId, body.user_id)
        const { id, participant, unreadCount, createdAt } = conversation
        return {
          id,
          participant: participantView(participant),
          unread_count: unreadCount,
          created_at: isoTime(createdAt),
        }
      },
      user(
        'createConversation',
        'Opens the conversation with another user, or returns the existing one.',
        { 201: Conversation, body: NewConversation, errors: ['not_found', 'blocked'] },
      ),
    )
    .get(
      '/v1/chat/conversations/:id',
      ({ params, context }) => chat.get(context.user.userId, params.id),
      user('getConversation', 'Shows a conversation as the list does.', {
        200: ConversationListItem,
        errors: inConversation,
      }),
    )
    .get(
      '/v1/chat/messages',
      ({ query, context }) => {
        const range = cursorRange(query, messagePageSize)
        const { userId } = context.user
        return listAnswer(range, catchUp.list(userId, query['since'], range), messageView)
      },
      user(
        'listMessagesSince',
        'Lists messages sent or received after the message `since`, oldest first, so that a client can catch up. With more than 1,000 conversations or 10,000 messages the response is 409: load the conversations and messages again.',
        {
          200: CursorListOf(Message),
          query: {
            ...cursorQuery,
            since: Id({
              description: 'Id of a message. Without it the list starts with the first message.',
              examples: [samples.messageId],
            }),
          },
          errors: ['resync'],
        },
      ),
    )
    .get(
      '/v1/chat/conversations/:id/messages',
      ({ params, query, context }) => {
        const list = (range: ListRange) => chat.listMessages(context.user.userId, params.id, range)
        return pageOf(query, list, messageView, messagePageSize)
      },
      user.list('listMessages', 'Lists the messages of a conversation, newest first.', Message, {
        size: messagePageSize,
        errors: inConversation,
      }),
    )
    .post(
      '/v1/chat/conversations/:id/messages',
      async ({ params, body, context, request, set }) => {
        const draft = draftOf(body, body.type)
        draft.clientId ??= idempotencyKey(request.headers) ?? null
        const { message, replayed } = await chat.send(context.user.userId, params.id, draft)
        markReplayed(set.headers, replayed)
        return messageView(message)
      },
      user(
        'sendMessage',
        'Sends a message to the sockets of both users, and a push to the receiver’s devices. A repeated call with the same `client_id` or `X-Idempotency-Key` sends nothing and returns the first result.',
        {
          201: Message,
          body: NewMessage,
          errors: [
            ...inConversation,
            ...sendRefusals,
            'text_quota_exceeded',
            'idempotency_mismatch',
          ],
          ...idempotent,
        },
      ),
    )
    .put(
      '/v1/chat/conversations/:id/read',
      ({ params, body, context }) =>
        readState.markRead(context.user.userId, params.id, { messageId: body?.message_id }),
      user(
        'markConversationRead',
        'Marks a conversation as read, up to `message_id` or, without it, to the end. The read position never moves back. The other user gets a read receipt.',
        { 204: null, body: Type.Optional(ReadUpTo), errors: inConversation },
      ),
    )
    .put(
      '/v1/chat/conversations/:id/mute',
      ({ params, body, context }) => {
        const until = body?.until ? parseTime(body.until) : undefined
        return readState.mute(context.user.userId, params.id, until)
      },
      user(
        'muteConversation',
        'Mutes a conversation. Its messages are not pushed, but still count as unread.',
        { 204: null, body: Type.Optional(Mute), errors: inConversation },
      ),
    )
    .delete(
      '/v1/chat/conversations/:id/mute',
      ({ params, context }) => readState.mute(context.user.userId, params.id, null),
      user('unmuteConversation', 'Unmutes a conversation.', { 204: null, errors: inConversation }),
    )
    .put(
      '/v1/chat/conversations/:id/archive',
      ({ params, context }) => readState.archive(context.user.userId, params.id, true),
      user(
        'archiveConversation',
        'Archives a conversation: it leaves your list and your badge until its next message.',
        { 204: null, errors: inConversation },
      ),
    )
    .delete(
      '/v1/chat/conversations/:id/archive',
      ({ params, context }) => readState.archive(context.user.userId, params.id, false),
      user('unarchiveConversation', 'Takes a conversation back into your list.', {
        204: null,
        errors: inConversation,
      }),
    )
    .delete(
      '/v1/chat/conversations/:id/messages/:message_id',
      ({ params, context }) => chat.remove(context.user.userId, params.id, params.message_id),
      user(
        'deleteMessage',
        'Removes a message of your own. It stays in the list without content. A repeated call changes nothing.',
        { 204: null, errors: [...inConversation, 'not_owner'] },
      ),
    )
    .get(
      '/v1/chat/unread-count',
      ({ context }) => ({ count: unread.count(context.user.userId) }),
      user('getUnreadMessageCount', 'Counts the unread messages of all conversations.', {
        200: UnreadCount,
      }),
    )
    .post(
      '/v1/chat/broadcast',
      async ({ body, context, request, set }) => {
        const clientId = body.client_id ?? idempotencyKey(request.headers)
        const sent = await broadcasts.send(context.user.userId, body.body, clientId)
        markReplayed(set.headers, sent.replayed)
        return broadcastView(sent.broadcast)
      },
      host(
        'sendBroadcast',
        'Sends a message to every follower. Each follower gets it once, in the conversation with you. Delivery to many followers takes a while; `GET /v1/chat/broadcasts/{id}` shows the progress.',
        {
          201: Broadcast,
          body: NewBroadcast,
          errors: ['idempotency_mismatch', 'text_quota_exceeded'],
          ...idempotent,
        },
      ),
    )
    .get(
      '/v1/chat/broadcasts/:id',
      ({ params, context }) =>
        broadcastProgressView(broadcasts.get(context.user.userId, params.id)),
      user('getBroadcast', 'Shows the progress of a broadcast of your own.', {
        200: BroadcastProgress,
        errors: ['not_owner'],
      }),
    )
}
