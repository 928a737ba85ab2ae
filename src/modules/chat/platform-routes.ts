import { operations } from '../../api/operation.ts'
import { idempotencyKey, idempotent, markReplayed } from '../../http/idempotency.ts'
import type { RouteApp } from '../../http/request-context.ts'
import { AppError } from '../../lib/errors.ts'
import { Message, messageView, sendRefusals } from './model.ts'
import type { PlatformChat } from './platform-chat.ts'
import {
  NewPlatformConversation,
  NewPlatformMessage,
  PlatformConversation,
  PlatformConversationUpdate,
  platformConversationView,
} from './platform-model.ts'

const platform = operations('Feed', { access: 'service', scope: 'messages' })

export function platformChatRoutes(app: RouteApp, platformChat: PlatformChat) {
  app
    .post(
      '/v1/service/messages',
      async ({ body, context, request, set }) => {
        const { scopes } = context.service
        if (body.from && !scopes.includes('messages_as'))
          throw new AppError('scope_required', { value: 'messages_as' })
        const key = idempotencyKey(request.headers)
        const { message, replayed } = await platformChat.send(body, key, context.by)
        markReplayed(set.headers, replayed)
        return messageView(message)
      },
      platform(
        'serviceSendMessage',
        'Posts a notice of the platform in the conversation of two people: `type: notice`, `sender_id: null`. Blocks, the rule of active calls and a read-only conversation do not hold it up. It counts as unread and is pushed only with `unread: true`. With `from`, which needs the scope `messages_as`, it is a message of that participant under the rules for theirs. A repeated call with the same `X-Idempotency-Key` sends nothing and returns the first result.',
        {
          201: Message,
          body: NewPlatformMessage,
          errors: [
            'not_found',
            'admin_protected',
            ...sendRefusals,
            'text_quota_exceeded',
            'idempotency_mismatch',
          ],
          example: { sender_id: null, type: 'notice', unread: true },
          ...idempotent,
        },
      ),
    )
    .delete(
      '/v1/service/messages/:id',
      ({ params, context }) => platformChat.remove(params.id, context.by),
      platform(
        'serviceDeleteMessage',
        'Removes a notice. It stays in the list without content. A repeated call changes nothing.',
        { 204: null, errors: ['not_owner'] },
      ),
    )
    .post(
      '/v1/service/conversations',
      async ({ body }) => platformConversationView(await platformChat.open(body.user_ids)),
      platform(
        'serviceCreateConversation',
        'Opens the conversation of two people, or returns the existing one.',
        { 201: PlatformConversation, body: NewPlatformConversation },
      ),
    )
    .get(
      '/v1/service/conversations/:id',
      ({ params }) => platformConversationView(platformChat.get(params.id)),
      platform('serviceGetConversation', 'Shows a conversation.', { 200: PlatformConversation }),
    )
    .patch(
      '/v1/service/conversations/:id',
      async ({ params, body }) =>
        platformConversationView(await platformChat.update(params.id, body)),
      platform(
        'serviceUpdateConversation',
        'Changes the data of a conversation, or closes it for writing and opens it again. Absent fields keep their value; `data` replaces the former object, and null removes it. Both people see the change at once.',
        { 200: PlatformConversation, body: PlatformConversationUpdate },
      ),
    )
}
