import { isIP } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import type { Core } from '../../core.ts'
import type { AuditAction, By } from '../../db/audit-trail.ts'
import { once } from '../../db/once.ts'
import { inPieces } from '../../db/pieces.ts'
import type { Job } from '../../jobs/outbox.ts'
import { day } from '../../lib/clock.ts'
import { AppError, invalidField } from '../../lib/errors.ts'
import { getById } from '../../lib/ids.ts'
import { isPublicAddress } from '../../lib/ip-network.ts'
import type { Listing, ListRange } from '../../lib/list-range.ts'
import { hostnameOf } from '../../outside/names.ts'
import { hostOf, type Outcome, outcomeOf, type WebhookEvent } from './deliveries.ts'
import { type NewWebhook, testEvent, type WebhookUpdate } from './model.ts'
import { newSecret, secretsOf } from './sender.ts'
import type { DeliveryRow, WebhookRow } from './store.ts'
import type { WebhookParts } from './webhooks.ts'

export type WebhookService = ReturnType<typeof createWebhookService>

const maxWebhooks = 100
/** Rotations that follow each other within a day would fill the header of signatures: servers refuse 8 or 16 KB. */
const maxFormerSecrets = 5

type Action = Extract<AuditAction, `webhook_${string}`>

export function createWebhookService(core: Core, { store, send, reload }: WebhookParts) {
  const { config, write, afterCommit, audit, outbox, newId, clock } = core

  /** @throws not_found */
  const mustFind = (idText: string): WebhookRow => getById(idText, store.find)

  function record(action: Action, by: By, webhook: WebhookRow) {
    const { id } = webhook
    const details = { host: hostOf(webhook) }
    audit.record({ action, ...by, target: { type: 'webhook', id }, details })
  }

  /** @throws validation_error (`url`) */
  function mustBeUsable(url: string) {
    if (!config.webhookPrivate && !isPublicUrl(url)) throw invalidField('url', 'public_url')
    if (url.includes('#')) throw invalidField('url', 'no_fragment')
  }

  function deliverAgain(webhookId: string, { id, event }: DeliveryRow): DeliveryRow {
    if (outbox.find(id)) outbox.retry(id)
    else {
      const job = { webhook_id: webhookId, event: event as WebhookEvent } // stored by a delivery
      outbox.add('webhook_delivery', job, { id, receiver: webhookId })
    }
    return store.updateDelivery(webhookId, id, { status: 'waiting' })
  }

  return {
    /** @param key a repeated call returns the webhook of the first one
     *  @returns the webhook with its secret, which later responses omit
     *  @throws validation_error (`url`: not public) · too_many_webhooks · idempotency_mismatch */
    async create({ url, events, description }: NewWebhook, by: By, key: string | undefined) {
      mustBeUsable(url)
      const content = {
        url,
        events: [...new Set(events)],
        description: description?.trim() || null,
      }
      const make = (): WebhookRow => {
        if (store.count() >= maxWebhooks) throw new AppError('too_many_webhooks')
        const made = { id: newId(), secret: newSecret(), createdAt: clock.now() }
        const webhook = store.insert({ ...content, ...made })
        record('webhook_created', by, webhook)
        afterCommit(reload)
        return webhook
      }
      const { find } = store
      return write(() => once(core, { by, kind: 'webhook', key, content }, { find, make }))
    },

    list: store.list,

    /** @throws not_found */
    get: mustFind,

    /** Absent fields keep their value. Enabling a webhook, and a new address of an enabled one, reset the time of its
     *  failures.
     *  @throws not_found · validation_error (`url`: not public) */
    async update(id: string, update: WebhookUpdate, by: By): Promise<WebhookRow> {
      if (typeof update.url === 'string') mustBeUsable(update.url)
      return write(() => {
        const before = mustFind(id)
        const changes = changesIn(update, before, clock.now())
        const webhook = store.update(before.id, changes)
        if (!isDeepStrictEqual(before, webhook)) record('webhook_changed', by, webhook)
        afterCommit(reload)
        return webhook
      })
    },

    /** Deletes a webhook. Its waiting deliveries are not sent.
     *  @throws not_found */
    delete: (id: string, by: By): Promise<void> =>
      write(() => {
        const webhook = mustFind(id)
        store.delete(webhook.id)
        record('webhook_deleted', by, webhook)
        afterCommit(reload)
      }),

    /** Creates a new secret. For a day deliveries are signed with the last few former ones, too: after a lost answer the
     *  endpoint knows none of the newer ones.
     *  @throws not_found */
    renewSecret: (id: string, by: By): Promise<WebhookRow> =>
      write(() => {
        const before = mustFind(id)
        const formerSecret = secretsOf(before, clock.now()).slice(0, maxFormerSecrets).join(' ')
        const formerSecretUntil = clock.now() + day
        const secret = newSecret()
        const webhook = store.update(before.id, { secret, formerSecret, formerSecretUntil })
        record('webhook_secret_renewed', by, webhook)
        return webhook
      }),

    /** Sends a test event at once, even to a disabled webhook.
     *  @throws not_found */
    async test(id: string, by: By): Promise<Outcome> {
      const webhook = mustFind(id)
      await write(() => record('webhook_tested', by, webhook))
      const data = { webhook: { id: webhook.id } }
      const message = { id: newId(), type: testEvent, at: clock.now(), data }
      return outcomeOf(send(webhook, message))
    },

    /** Newest first.
     *  @throws not_found */
    listDeliveries: (idText: string, range: ListRange): Listing<DeliveryRow> =>
      store.listDeliveries(mustFind(idText).id, range),

    /** Delivers an event again at once, with the same id and a new series of attempts.
     *  @throws not_found */
    retry: (idText: string, deliveryIdText: string, by: By): Promise<DeliveryRow> =>
      write(() => {
        const webhook = mustFind(idText)
        const delivery = getById(deliveryIdText, (id) => store.findDelivery(webhook.id, id))
        record('webhook_delivery_retried', by, webhook)
        return deliverAgain(webhook.id, delivery)
      }),

    /** The delivery will not be tried again. */
    endDelivery({ id, receiver }: Job): void {
      store.updateDelivery(receiver, id, { status: 'failed' })
    },

    /** Retries every waiting delivery, and every kept one that was not accepted, of events since a time (ms since the
     *  epoch).
     *  @returns their number; 0 while the webhook is switched off
     *  @throws not_found */
    async retrySince(idText: string, since: number, by: By): Promise<number> {
      const { id: receiver, disabledAt } = mustFind(idText)
      if (disabledAt !== null) return 0
      await write(() => record('webhook_delivery_retried', by, mustFind(idText)))
      type Progress = { last: string; count: number } | undefined
      const hurry = (limit: number, done: Progress): Progress => {
        const range = { since, last: done?.last ?? '', limit }
        const hurried = outbox.hurry({ kind: 'webhook_delivery', receiver }, range)
        return hurried && { ...hurried, count: (done?.count ?? 0) + hurried.count }
      }
      const addMissed = (limit: number, done: Progress): Progress => {
        const missed = store.listUndelivered(receiver, { since, after: done?.last ?? '', limit })
        const ended = missed.filter(({ id }) => outbox.find(id)?.deadAt !== null)
        for (const delivery of ended) deliverAgain(receiver, delivery)
        const last = missed.at(-1)?.id
        return last === undefined ? undefined : { last, count: (done?.count ?? 0) + ended.length }
      }
      const waiting = await inPieces(write, hurry, { size: 1_000 })
      const missed = await inPieces(write, addMissed, { size: 25 })
      return (waiting?.count ?? 0) + (missed?.count ?? 0)
    },

    /** `givenUp` failed until they were disabled. `dropping` is a host whose events were dropped within a day. */
    stats() {
      const all = store.listAll()
      const enabled = all.filter(({ disabledAt }) => disabledAt === null)
      const failing = enabled.filter(({ failingSince }) => failingSince !== null).length
      const failed = all.filter(({ failingSince }) => failingSince !== null).length
      return {
        total: all.length,
        disabled: all.length - enabled.length,
        failing,
        givenUp: failed - failing,
        dropped: all.reduce((sum, { droppedCount }) => sum + droppedCount, 0),
        dropping: audit.findRecentDetails('webhook_events_dropped')?.['host'],
      }
    },
  }
}

function changesIn(update: WebhookUpdate, before: WebhookRow, now: number) {
  const { url, events, description, enabled } = update
  const disabledAt = before.disabledAt ?? now
  const isMoved = typeof url === 'string' && url !== before.url
  return {
    ...(typeof url === 'string' && { url }),
    ...(isMoved && before.disabledAt === null && { failingSince: null }),
    ...(events && { events: [...new Set(events)] }),
    ...(typeof description === 'string' && { description: description.trim() || null }),
    ...(enabled === true && { disabledAt: null, failingSince: null }),
    ...(enabled === false && { disabledAt }),
  }
}

function isPublicUrl(url: string): boolean {
  const host = hostnameOf(url)
  return new URL(url).protocol === 'https:' && (isIP(host) === 0 || isPublicAddress(host))
}
