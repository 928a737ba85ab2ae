import type { Core } from '../../core.ts'
import { isoTime } from '../../lib/clock.ts'
import type { EventType } from '../../lib/vocabulary.ts'
import type { WebhookStore } from './store.ts'

/** Queues events for the subscribed webhooks, in the transaction of the event. Subscriptions are kept in memory, so that an
 *  event without subscribers costs one lookup. */
export function subscribeWebhooks({ events, outbox, clock }: Core, store: WebhookStore) {
  let subscribers = new Map<EventType, string[]>()
  reload()

  function reload() {
    const next: typeof subscribers = new Map()
    for (const { id, events, disabledAt } of store.listAll()) {
      if (disabledAt !== null) continue
      for (const type of events) next.set(type, [...(next.get(type) ?? []), id])
    }
    subscribers = next
  }

  events.subscribe(({ type, ids }) => {
    const webhookIds = subscribers.get(type)
    if (!webhookIds) return
    const event = { ...ids, type, at: isoTime(clock.now()) }
    for (const id of webhookIds) {
      outbox.add('webhook_delivery', { webhook_id: id, event }, { receiver: id })
    }
  })

  return { reload }
}
