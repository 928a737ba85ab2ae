import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { callerOf, routeBase } from '../../http/exchange.ts'
import { idempotencyKey, idempotent, replayedHeader } from '../../http/idempotency.ts'
import { operation } from '../../http/operation.ts'
import {
  CursorListOf,
  cursorQuery,
  cursorRange,
  envelope,
  ListOf,
  listQuery,
  listRange,
} from '../../http/pagination.ts'
import { isoTime } from '../../lib/clock.ts'
import { invalidField } from '../../lib/errors.ts'
import {
  type AvatarUrl,
  Conversation,
  ConversationListItem,
  conversationListItemView,
  draftOf,
  Message,
  messageView,
  NewConversation,
  NewMessage,
} from './model.ts'
import type { ChatService } from './service.ts'

const tag = 'Chat'
const conversationPageSize = 20
const messagePageSize = 50

type ChatRoutesOptions = { chat: ChatService; avatarUrl: AvatarUrl }

export function chatRoutes({ chat, avatarUrl }: ChatRoutesOptions) {
  return new Elysia({ name: 'chat' })
    .use(routeBase)
    .get(
      '/v1/chat/conversations',
      ({ query, exchange }) => {
        const range = listRange(query, conversationPageSize)
        const listing = chat.listConversations(callerOf(exchange).userId, range)
        return envelope(range, listing, (row) => conversationListItemView(row, avatarUrl))
      },
      {
        access: 'user',
        limit: 'default',
        detail: operation({
          tag,
          query: listQuery(conversationPageSize),
          summary: 'List conversations, most recent activity first',
          success: { 200: ListOf(ConversationListItem) },
        }),
      },
    )
    .post(
      '/v1/chat/conversations',
      async ({ body, exchange, set }) => {
        const conversation = await chat.open(callerOf(exchange).userId, body.user_id)
        const { id, participant, unreadCount, createdAt } = conversation
        set.status = 201
        return {
          id,
          participant: { id: participant.id, display_name: participant.displayName },
          unread_count: unreadCount,
          created_at: isoTime(createdAt),
        }
      },
      {
        access: 'user',
        limit: 'default',
        body: NewConversation,
        detail: operation({
          tag,
          summary: 'Open the conversation with another user',
          success: { 201: Conversation },
          errors: ['not_found'],
        }),
      },
    )
    .get(
      '/v1/chat/messages',
      ({ query, exchange }) => {
        const range = cursorRange(query, messagePageSize)
        const { since }: Record<string, unknown> = query
        if (since !== undefined && typeof since !== 'string') throw invalidField('since', 'id')
        return envelope(
          range,
          chat.listMissed(callerOf(exchange).userId, since, range),
          messageView,
        )
      },
      {
        access: 'user',
        limit: 'default',
        detail: operation({
          tag,
          query: {
            ...cursorQuery,
            since: Type.String({ description: 'Id of a message; without it from the first on.' }),
          },
          summary: 'Catch up: own and received messages after another, oldest first',
          success: { 200: CursorListOf(Message) },
        }),
      },
    )
    .get(
      '/v1/chat/conversations/:id/messages',
      ({ params, query, exchange }) => {
        const range = listRange(query, messagePageSize)
        const listing = chat.listMessages(callerOf(exchange).userId, params.id, range)
        return envelope(range, listing, messageView)
      },
      {
        access: 'user',
        limit: 'default',
        detail: operation({
          tag,
          query: listQuery(messagePageSize),
          summary: 'List messages, newest first',
          success: { 200: ListOf(Message) },
          errors: ['forbidden', 'not_found'],
        }),
      },
    )
    .post(
      '/v1/chat/conversations/:id/messages',
      async ({ params, body, exchange, request, set }) => {
        const { userId } = callerOf(exchange)
        const draft = draftOf(body, body.type)
        draft.clientId ??= idempotencyKey(request.headers)
        const { message, replayed } = await chat.send(userId, params.id, draft)
        if (replayed) Object.assign(set.headers, replayedHeader)
        set.status = 201
        return messageView(message)
      },
      {
        access: 'user',
        limit: 'default',
        body: NewMessage,
        detail: operation({
          tag,
          summary: 'Send a message',
          success: { 201: Message },
          errors: ['forbidden', 'not_found', 'conflict'],
          ...idempotent,
        }),
      },
    )
    .put(
      '/v1/chat/conversations/:id/read',
      async ({ params, exchange, set }) => {
        await chat.markRead(callerOf(exchange).userId, params.id)
        set.status = 204
      },
      {
        access: 'user',
        limit: 'default',
        detail: operation({
          tag,
          summary: 'Mark a conversation as read',
          success: { 204: null },
          errors: ['forbidden', 'not_found'],
        }),
      },
    )
}
