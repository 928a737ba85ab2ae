import { Elysia } from 'elysia'
import { callerOf, routeBase } from '../../http/exchange.ts'
import { idempotencyKey, idempotent, replayedHeader } from '../../http/idempotency.ts'
import { operation } from '../../http/operation.ts'
import type { Broadcasts } from './broadcasts.ts'
import {
  Broadcast,
  BroadcastProgress,
  broadcastProgressView,
  broadcastView,
  NewBroadcast,
} from './model.ts'

const tag = 'Chat'

export function broadcastRoutes({ broadcasts }: { broadcasts: Broadcasts }) {
  return new Elysia({ name: 'broadcasts' })
    .use(routeBase)
    .post(
      '/v1/chat/broadcast',
      async ({ body, exchange, request, set }) => {
        const { userId } = callerOf(exchange)
        const clientId = body.client_id ?? idempotencyKey(request.headers)
        const { broadcast, replayed } = await broadcasts.send(userId, body.body, clientId)
        if (replayed) Object.assign(set.headers, replayedHeader)
        set.status = 201
        return broadcastView(broadcast)
      },
      {
        access: 'host',
        limit: 'default',
        body: NewBroadcast,
        detail: operation({
          tag,
          summary: 'Send a message to every follower',
          success: { 201: Broadcast },
          errors: ['conflict'],
          ...idempotent,
        }),
      },
    )
    .get(
      '/v1/chat/broadcasts/:id',
      ({ params, exchange }) =>
        broadcastProgressView(broadcasts.get(callerOf(exchange).userId, params.id)),
      {
        access: 'user',
        limit: 'default',
        detail: operation({
          tag,
          summary: 'How far a broadcast has come',
          success: { 200: BroadcastProgress },
          errors: ['forbidden'],
        }),
      },
    )
}
