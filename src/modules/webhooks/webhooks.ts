import type { Core, Module } from '../../core.ts'
import type { Notify } from '../../lib/events.ts'
import { createDeliveries, type WebhookEvent } from './deliveries.ts'
import { webhookBodies } from './model.ts'
import type { ResolveHost } from './post.ts'
import { webhookRoutes } from './routes.ts'
import { createSender, type Send } from './sender.ts'
import { createWebhookService } from './service.ts'
import { createWebhookStore, deliveryRetention, type WebhookStore } from './store.ts'
import { subscribeWebhooks } from './subscriptions.ts'

declare module '../../db/audit-trail.ts' {
  interface AuditActions {
    webhook_created: 'webhook'
    webhook_changed: 'webhook'
    webhook_deleted: 'webhook'
    webhook_secret_renewed: 'webhook'
    webhook_tested: 'webhook'
    webhook_delivery_retried: 'webhook'
    webhook_disabled: 'webhook'
    webhook_events_dropped: 'webhook'
  }
}

declare module '../../jobs/outbox.ts' {
  interface OutboxJobs {
    webhook_delivery: { webhook_id: string; event: WebhookEvent }
  }
}

export type WebhookParts = {
  notify: Notify
  /** They load the data of events. */
  others: readonly Module[]
  store: WebhookStore
  send: Send
  /** Reads the subscriptions again; called after the commit of any change to a webhook. */
  reload: () => void
}

type Neighbours = Pick<WebhookParts, 'notify' | 'others'> & {
  version: string
  resolve: ResolveHost
}

export function createWebhooks(core: Core, neighbours: Neighbours) {
  const store = createWebhookStore(core.orm)
  const send = createSender(core, neighbours)
  const reload = subscribeWebhooks(core, store)
  const parts = { ...neighbours, store, send, reload }
  const service = createWebhookService(core, parts)

  return {
    retention: deliveryRetention,
    routes: (app) => webhookRoutes(app, service),
    webhooks: webhookBodies,
    jobs: { webhook_delivery: createDeliveries(core, parts) },
    stats: service.stats,
    endDelivery: service.endDelivery,
  } satisfies Module & Record<string, unknown>
}
