import { isObject } from '../../api/fields.ts'
import type { Core } from '../../core.ts'
import type { JobHandler } from '../../jobs/runner.ts'
import { day, hour, minute, retryAfterMilliseconds, timeLeft } from '../../lib/clock.ts'
import { RetryLater } from '../../lib/errors.ts'
import type { EventType } from '../../lib/vocabulary.ts'
import type { Answer } from '../../outside/exchange.ts'
import type { DeliveryRow, WebhookRow } from './store.ts'
import type { WebhookParts } from './webhooks.ts'

export type WebhookEvent = { type: EventType; at: string } & Record<string, string>

/** Without a response `status` is null and `text` is the reason. */
export type Outcome = { status: number | null; retryAfter: string | null; text: string }

const delays = [5_000, 5 * minute, 30 * minute, ...[2, 5, 10, 14, 20, 24].map((n) => n * hour)]
const disableAfterMilliseconds = 5 * day
/** None is disabled for that in this time after a start: the machine may have been off for days, or is restored, and the
 *  endpoint starts with it. */
const startMilliseconds = hour
const gone = 410

export const isSuccess = ({ status }: Outcome) => status !== null && status >= 200 && status < 300

export const outcomeOf = (sending: Promise<Answer>): Promise<Outcome> =>
  sending.catch((error: Error) => ({ status: null, retryAfter: null, text: error.message }))

/** Each run of a job is one attempt. A job contains only ids: the data is loaded at delivery. */
export function createDeliveries(core: Core, parts: WebhookParts) {
  const { store, send, notify, others, reload } = parts
  const { afterCommit, audit, clock, log, outbox } = core
  const startedAt = clock.now()

  const job: JobHandler<'webhook_delivery'> = async (payload, run) => {
    const { event } = payload
    const { id, attempts, signal, withOutcome } = run
    const webhook = store.find(payload.webhook_id)
    if (!webhook) return undefined
    const data = dataOf(event)
    if (!data) {
      const response = 'not sent: its subject was removed'
      const ended = { status: 'failed', responseStatus: null, response } as const
      // Only a delivery that was tried before has a row.
      withOutcome(() => store.updateDelivery(webhook.id, id, ended))
      return undefined
    }
    const delivery = { id, webhook, event, attempts }
    if (webhook.disabledAt !== null) {
      const text = 'not sent: the webhook is switched off'
      const outcome = { status: null, retryAfter: null, text }
      withOutcome(() => store.upsertDelivery(rowOf(delivery, outcome)))
      return undefined
    }
    const message = { id, type: event.type, at: Date.parse(event.at), data }
    const outcome = await outcomeOf(send(webhook, message, signal))
    if (outcome.status === null && signal.aborted) return { againAfterMilliseconds: 0 }
    const delay = delayAfter(outcome, delivery)
    withOutcome((isLast) => record(delivery, outcome, isLast))
    if (delay !== undefined) throw new RetryLater(failureOf(webhook, outcome), delay)
    return undefined
  }

  function delayAfter(outcome: Outcome, { id, attempts }: Delivery): number | undefined {
    if (isSuccess(outcome) || outcome.status === gone) return undefined
    // A retry during the attempt has begun a new series.
    const delay = delays[outbox.find(id)?.attempts ?? attempts - 1]
    return delay && Math.max(delay, retryAfterMilliseconds(outcome.retryAfter, clock.now()))
  }

  function record(delivery: Delivery, outcome: Outcome, isLast: boolean) {
    const { webhook } = delivery
    const status = isLast ? 'failed' : 'waiting'
    store.upsertDelivery(rowOf(delivery, outcome, isSuccess(outcome) ? 'delivered' : status))
    if (!isSuccess(outcome)) countFailure(webhook, outcome)
    // Read the row again: other deliveries may have failed since.
    else if (store.find(webhook.id)?.failingSince) store.update(webhook.id, { failingSince: null })
  }

  /** A failure of the address that the webhook had during the attempt says nothing about a new one. */
  function countFailure({ id, url }: WebhookRow, { status }: Outcome) {
    const webhook = store.find(id)
    if (webhook?.disabledAt !== null || webhook.url !== url) return
    const { failingSince } = webhook
    const failingMilliseconds = failingSince === null ? 0 : clock.now() - failingSince
    if (status === gone) disable(webhook, 'it responded with 410')
    else if (failingMilliseconds >= disableAfterMilliseconds && !isStarting())
      disable(webhook, 'every delivery failed for five days')
    else if (failingSince === null) store.update(id, { failingSince: clock.now() })
  }

  const isStarting = () => timeLeft(startedAt, startMilliseconds, clock.now()) > 0

  function disable(webhook: WebhookRow, reason: string) {
    const { id } = webhook
    const host = hostOf(webhook)
    store.update(id, { disabledAt: clock.now() })
    audit.record({
      action: 'webhook_disabled',
      actor: { type: 'system' },
      target: { type: 'webhook', id },
      details: { host, reason },
    })
    for (const adminId of store.listAdminIds()) {
      const data = { webhook_id: id }
      notify(adminId, { type: 'broadcast', text: 'webhook_disabled', values: { host }, data })
    }
    afterCommit(() => {
      reload()
      log.error('a webhook was switched off', { webhook: id, host, reason })
    })
  }

  function rowOf(delivery: Delivery, outcome: Outcome, status: DeliveryRow['status'] = 'failed') {
    const { id, webhook, event, attempts } = delivery
    return {
      webhookId: webhook.id,
      id,
      event,
      status,
      attempts,
      responseStatus: outcome.status,
      response: outcome.text,
      createdAt: Date.parse(event.at),
      attemptedAt: clock.now(),
    }
  }

  function dataOf({ type, at: _, ...ids }: WebhookEvent): object | undefined {
    const [subject = '', action] = type.split('.')
    if (action === 'deleted') {
      const { [`${subject}_id`]: id, ...others } = ids
      return { [subject]: { id, ...others } }
    }
    for (const { eventData } of others) {
      const data = eventData?.[type]?.(ids)
      if (data) return store.hasExternalIds() ? withExternalIds(data) : data
    }
    return undefined
  }

  /** The platform's own object of a message stays as it was given. */
  function withExternalIds(value: object): object {
    const entries = Object.entries(value).flatMap(([key, part]) => {
      const isPlatformData = key === 'data' && 'sender_id' in value
      if (isObject(part)) return [[key, isPlatformData ? part : withExternalIds(part)]]
      return [[key, part], ...externalIdBeside(key, part)]
    })
    return Object.fromEntries(entries)
  }

  function externalIdBeside(key: string, part: unknown): [string, string][] {
    if (!/(^|_)id$/.test(key) || typeof part !== 'string') return []
    const externalId = store.findExternalId(part)
    return externalId === undefined ? [] : [[`${key.slice(0, -2)}external_id`, externalId]]
  }

  return job
}

type Delivery = { id: string; webhook: WebhookRow; event: WebhookEvent; attempts: number }

const failureOf = (webhook: WebhookRow, { status, text }: Outcome) =>
  `${hostOf(webhook)}: ${status === null ? text : `answered ${status}`}`

/** For logs and notifications, because the path and query of the URL may contain a secret. */
export const hostOf = ({ url }: Pick<WebhookRow, 'url'>) => new URL(url).host
