import { Elysia } from 'elysia'
import { operation } from '../../http/operation.ts'
import { routeBase } from '../../http/request-context.ts'
import type { Calls } from './calls.ts'
import type { Follows } from './follows.ts'
import { Call, CallUpdate, callView, FollowerImport, ImportCounts } from './model.ts'

const tag = 'Feed'

/** What the rest of the platform tells us about follows and calls (decisions 9). */
export function feedRoutes({ follows, calls }: { follows: Follows; calls: Calls }) {
  return new Elysia({ name: 'feed' })
    .use(routeBase)
    .put(
      '/v1/service/follows/:host_id/:follower_id',
      async ({ params }) => {
        await follows.follow(params.host_id, params.follower_id)
      },
      {
        access: 'service',
        scope: 'follows',
        limit: 'default',
        detail: operation({ tag, summary: 'Somebody follows a host', success: { 204: null } }),
      },
    )
    .delete(
      '/v1/service/follows/:host_id/:follower_id',
      async ({ params }) => {
        await follows.unfollow(params.host_id, params.follower_id)
      },
      {
        access: 'service',
        scope: 'follows',
        limit: 'default',
        detail: operation({
          tag,
          summary: 'Somebody follows a host no longer',
          success: { 204: null },
        }),
      },
    )
    .put(
      '/v1/service/follows/:host_id',
      ({ params, body }) => follows.importFollowers(params.host_id, body.follower_ids),
      {
        access: 'service',
        scope: 'follows',
        limit: 'default',
        body: FollowerImport,
        detail: operation({
          tag,
          summary: 'Import followers of a host, up to 1,000 at once',
          description: 'Adds; nobody is removed. Ids of nobody are counted as unknown.',
          success: { 200: ImportCounts },
        }),
      },
    )
    .put(
      '/v1/service/calls/:call_session_id',
      async ({ params, body }) => {
        const { state, host_id: hostId, guest_id: guestId } = body
        return callView(await calls.report(params.call_session_id, { state, hostId, guestId }))
      },
      {
        access: 'service',
        scope: 'calls',
        limit: 'default',
        body: CallUpdate,
        detail: operation({
          tag,
          summary: 'Report the state of a call',
          description: 'A call only moves on: what comes late or again changes nothing.',
          success: { 200: Call },
          errors: ['conflict'],
        }),
      },
    )
}
