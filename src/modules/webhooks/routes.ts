import { operations } from '../../api/operation.ts'
import { recentlyConfirmed } from '../../http/confirmation.ts'
import { idempotencyKey, idempotent, markReplayed } from '../../http/idempotency.ts'
import { pageOf } from '../../http/pagination.ts'
import type { RouteApp } from '../../http/request-context.ts'
import { parseTime } from '../../lib/clock.ts'
import type { ListRange } from '../../lib/list-range.ts'
import * as model from './model.ts'
import type { WebhookService } from './service.ts'

const deliveryPageSize = 100
const admin = operations('Administration', { access: 'admin' })
const sensitive = operations('Administration', { access: 'admin', confirm: recentlyConfirmed })

export function webhookRoutes(app: RouteApp, webhooks: WebhookService) {
  app
    .get(
      '/v1/admin/webhooks',
      ({ query }) => pageOf(query, webhooks.list, model.webhookView),
      admin.list('adminListWebhooks', 'Lists webhooks, newest first.', model.Webhook),
    )
    .post(
      '/v1/admin/webhooks',
      async ({ body, request, set, context }) => {
        const key = idempotencyKey(request.headers)
        const { row, replayed } = await webhooks.create(body, context.by, key)
        markReplayed(set.headers, replayed)
        return model.webhookWithSecretView(row)
      },
      sensitive(
        'adminCreateWebhook',
        'Creates a webhook. Its secret is shown only this once. A repeated call with the same `X-Idempotency-Key` within a day creates nothing and returns the first webhook with its secret.',
        {
          201: model.WebhookWithSecret,
          body: model.NewWebhook,
          errors: ['too_many_webhooks', 'idempotency_mismatch'],
          ...idempotent,
        },
      ),
    )
    .get(
      '/v1/admin/webhooks/:id',
      ({ params }) => model.webhookView(webhooks.get(params.id)),
      admin('adminGetWebhook', 'Shows a webhook.', { 200: model.Webhook }),
    )
    .patch(
      '/v1/admin/webhooks/:id',
      async ({ params, body, context }) =>
        model.webhookView(await webhooks.update(params.id, body, context.by)),
      sensitive(
        'adminUpdateWebhook',
        'Changes a webhook, or disables or enables it. Absent fields keep their value.',
        { 200: model.Webhook, body: model.WebhookUpdate },
      ),
    )
    .delete(
      '/v1/admin/webhooks/:id',
      ({ params, context }) => webhooks.delete(params.id, context.by),
      admin('adminDeleteWebhook', 'Removes a webhook. Waiting deliveries are dropped.', {
        204: null,
      }),
    )
    .post(
      '/v1/admin/webhooks/:id/secret',
      async ({ params, context }) =>
        model.webhookWithSecretView(await webhooks.renewSecret(params.id, context.by)),
      sensitive(
        'adminRenewWebhookSecret',
        'Renews the secret of a webhook. The new one is shown only this once. For 24 hours deliveries are signed with the former ones, too.',
        { 200: model.WebhookWithSecret },
      ),
    )
    .post(
      '/v1/admin/webhooks/:id/test',
      async ({ params, context }) => model.testView(await webhooks.test(params.id, context.by)),
      admin('adminTestWebhook', 'Sends a signed `webhook.test` now and returns the result.', {
        200: model.WebhookTest,
      }),
    )
    .get(
      '/v1/admin/webhooks/:id/deliveries',
      ({ params, query }) => {
        const list = (range: ListRange) => webhooks.listDeliveries(params.id, range)
        return pageOf(query, list, model.deliveryView, deliveryPageSize)
      },
      admin.list(
        'adminListWebhookDeliveries',
        'Lists attempted deliveries, newest first. The last 100 are kept, for 30 days.',
        model.WebhookDelivery,
        { size: deliveryPageSize },
      ),
    )
    .post(
      '/v1/admin/webhooks/:id/deliveries/retry',
      async ({ params, body, context }) => {
        const since = parseTime(body.since) ?? 0 // the schema has checked it
        return { retried: await webhooks.retrySince(params.id, since, context.by) }
      },
      admin(
        'adminRetryWebhookDeliveries',
        'Delivers again what an endpoint has not accepted, of events since a time: all that wait, and of those that were given up the kept ones (the last 100).',
        { 200: model.Retried, body: model.RetrySince },
      ),
    )
    .post(
      '/v1/admin/webhooks/:id/deliveries/:delivery_id/retry',
      async ({ params, context }) =>
        model.deliveryView(await webhooks.retry(params.id, params.delivery_id, context.by)),
      admin(
        'adminRetryWebhookDelivery',
        'Delivers an event again at once, with the same id and a new series of attempts.',
        { 200: model.WebhookDelivery, example: { status: 'waiting' } },
      ),
    )
}
