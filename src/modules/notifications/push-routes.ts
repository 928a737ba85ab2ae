import { Elysia } from 'elysia'
import { operation } from '../../http/operation.ts'
import { envelope, ListOf, listQuery, listRange } from '../../http/pagination.ts'
import { routeBase } from '../../http/request-context.ts'
import { NewPushToken, PushToken, pushTokenView, WebPushKey } from './model.ts'
import type { PushTokens } from './push-tokens.ts'

const tag = 'Notifications'
const pageSize = 20

type PushRoutesOptions = {
  pushTokens: PushTokens
  /** What browsers subscribe with: 65 bytes in base64url. */
  webPushKey: string
}

/** The devices of a user (spec 4.5). */
export function pushRoutes({ pushTokens, webPushKey }: PushRoutesOptions) {
  return new Elysia({ name: 'push-tokens' })
    .use(routeBase)
    .get('/v1/notifications/web-push-key', () => ({ public_key: webPushKey }), {
      access: 'public',
      limit: 'default',
      detail: operation({
        tag,
        summary: 'The key that a browser subscribes with',
        success: { 200: WebPushKey },
      }),
    })
    .post(
      '/v1/notifications/push-tokens',
      async ({ body, context }) => {
        const { userId, sessionId } = context.user
        const { token, platform } = body
        const row = await pushTokens.register({ userId, sessionId, token, platform })
        return pushTokenView(row)
      },
      {
        access: 'user',
        limit: 'default',
        body: NewPushToken,
        detail: operation({
          tag,
          summary: 'Register a device, which stays until this session ends',
          success: { 201: PushToken },
        }),
      },
    )
    .get(
      '/v1/notifications/push-tokens',
      ({ query, context }) => {
        const range = listRange(query, pageSize)
        return envelope(range, pushTokens.list(context.user.userId, range), pushTokenView)
      },
      {
        access: 'user',
        limit: 'default',
        detail: operation({
          tag,
          query: listQuery(pageSize),
          summary: 'List one’s devices',
          success: { 200: ListOf(PushToken) },
        }),
      },
    )
    .delete(
      '/v1/notifications/push-tokens/:id',
      async ({ params, context }) => {
        await pushTokens.remove(context.user.userId, params.id)
      },
      {
        access: 'user',
        limit: 'default',
        detail: operation({ tag, summary: 'Remove a device', success: { 204: null } }),
      },
    )
}
