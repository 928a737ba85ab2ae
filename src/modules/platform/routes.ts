import { OneOf, PersonId } from '../../api/fields.ts'
import { operations } from '../../api/operation.ts'
import { samples } from '../../api/samples.ts'
import { recentlyConfirmed } from '../../http/confirmation.ts'
import { idempotencyKey, idempotent, markReplayed } from '../../http/idempotency.ts'
import { pageOf } from '../../http/pagination.ts'
import type { RouteApp } from '../../http/request-context.ts'
import { callStates } from '../../lib/vocabulary.ts'
import type { Calls } from './calls.ts'
import type { Follows } from './follows.ts'
import * as model from './model.ts'
import type { ServiceKeys } from './service-keys.ts'

const admin = operations('Administration', { access: 'admin' })
const sensitive = operations('Administration', { access: 'admin', confirm: recentlyConfirmed })
const followFeed = operations('Feed', { access: 'service', scope: 'follows' })
const callFeed = operations('Feed', { access: 'service', scope: 'calls' })

type Parts = {
  serviceKeys: ServiceKeys
  follows: Follows
  calls: Calls
  externalIdOf: model.ExternalIdOf
}

export function platformRoutes(
  app: RouteApp,
  { serviceKeys, follows, calls, externalIdOf }: Parts,
) {
  const [viewFollow, viewCall] = [model.followView(externalIdOf), model.callView(externalIdOf)]

  app
    .get(
      '/v1/admin/service-keys',
      ({ query }) => pageOf(query, serviceKeys.list, model.serviceKeyView),
      admin.list(
        'adminListServiceKeys',
        'Lists service keys including revoked ones, newest first.',
        model.ServiceKey,
      ),
    )
    .post(
      '/v1/admin/service-keys',
      async ({ body, request, set, context }) => {
        const key = idempotencyKey(request.headers)
        const { created, replayed } = await serviceKeys.create(body, context.by, key)
        markReplayed(set.headers, replayed)
        return created
      },
      sensitive(
        'adminCreateServiceKey',
        'Creates a service key. The key itself is shown only this once. A repeated call with the same `X-Idempotency-Key` within a day creates no other one: it returns the same service key with a new `key`, which replaces the unused first one.',
        {
          201: model.CreatedServiceKey,
          body: model.NewServiceKey,
          example: { last_used_at: null },
          errors: ['idempotency_mismatch'],
          ...idempotent,
        },
      ),
    )
    .delete(
      '/v1/admin/service-keys/:id',
      ({ params, context }) => serviceKeys.revoke(params.id, context.by),
      sensitive('adminRevokeServiceKey', 'Revokes a service key. It stops working at once.', {
        204: null,
      }),
    )
    .get(
      '/v1/service/follows',
      ({ query }) => {
        const hostId = query['host_id'] ?? '' // the pipeline has checked it
        return pageOf(query, (range) => follows.list(hostId, range), viewFollow)
      },
      followFeed.list(
        'serviceListFollows',
        'Lists the followers of a host, ordered by id, to compare them with your own.',
        model.Follow,
        {
          query: { host_id: PersonId(samples.host.id) },
          required: ['host_id'],
          errors: ['not_found'],
        },
      ),
    )
    .get(
      '/v1/service/calls',
      ({ query }) => {
        const state = callStates.find((it) => it === query['state'])
        return pageOf(query, (range) => calls.list(state, range), viewCall)
      },
      callFeed.list(
        'serviceListCalls',
        'Lists the calls of the last 30 days, ordered by id, to compare them with your own.',
        model.Call,
        { query: { state: OneOf(callStates, { description: 'Only calls in this state.' }) } },
      ),
    )
    .put(
      '/v1/service/follows/:host_id/:follower_id',
      ({ params }) => follows.follow(params.host_id, params.follower_id),
      followFeed(
        'serviceCreateFollow',
        'Makes a person follow a host. Only hosts and admins can be followed. The host is notified the first time; a repeated call changes nothing.',
        { 204: null, errors: ['not_a_host'] },
      ),
    )
    .delete(
      '/v1/service/follows/:host_id/:follower_id',
      ({ params }) => follows.unfollow(params.host_id, params.follower_id),
      followFeed(
        'serviceDeleteFollow',
        'Removes a follower of a host. A repeated call changes nothing.',
        { 204: null },
      ),
    )
    .put(
      '/v1/service/follows/:host_id',
      ({ params, body }) => follows.importFollowers(params.host_id, body.follower_ids),
      followFeed(
        'serviceImportFollowers',
        'Imports followers of a host, up to 1,000 at once. Adds followers, removes none and notifies nobody. `unknown` lists the ids of nobody who can follow. `ext:` followed by an external id also identifies a person.',
        { 200: model.ImportCounts, body: model.FollowerImport, errors: ['not_a_host'] },
      ),
    )
    .put(
      '/v1/service/calls/:call_session_id',
      async ({ params, body }) => viewCall(await calls.report(params.call_session_id, body)),
      callFeed(
        'serviceUpdateCall',
        'Reports the state of a call. A call never returns to an earlier state, so late and repeated reports change nothing. The host is notified of a ringing or missed call.',
        { 200: model.Call, body: model.CallUpdate, errors: ['idempotency_mismatch'] },
      ),
    )
}
