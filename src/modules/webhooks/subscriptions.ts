import type { Core } from '../../core.ts'
import { hour, isoTime } from '../../lib/clock.ts'
import type { EventType } from '../../lib/vocabulary.ts'
import { hostOf } from './deliveries.ts'
import type { WebhookStore } from './store.ts'

/** Events that wait for one webhook: beyond it the oldest are dropped, so that a dead endpoint cannot fill the disk. */
const maxWaiting = 100_000
const checkedEvery = 1_000
const kind = 'webhook_delivery'
const action = 'webhook_events_dropped'

/** In the transaction of the event. Subscriptions are in memory, so that an event without subscribers costs one lookup.
 *  @returns the function that reads them again */
export function subscribeWebhooks(core: Core, store: WebhookStore) {
  const { events, outbox, audit, clock, log, afterCommit } = core
  const addedTo = new Map<string, number>()
  const droppedThrough = new Map<string, string>()
  let subscribers = new Map<EventType, string[]>()
  reload()

  function reload(): void {
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
      outbox.add(kind, { webhook_id: id, event }, { receiver: id })
      const added = addedTo.get(id) ?? 0
      if (added % checkedEvery === 0) dropOldest(id)
      addedTo.set(id, added + 1)
    }
  })

  function dropOldest(id: string) {
    const limit = 2 * checkedEvery
    const after = droppedThrough.get(id) ?? ''
    const dropped = outbox.dropOldest({ kind, receiver: id }, { kept: maxWaiting, limit, after })
    const last = dropped.at(-1)
    if (last === undefined) return
    afterCommit(() => droppedThrough.set(id, last))
    const host = hostOf(store.countDropped(id, dropped))
    recordDropped(id, host)
    afterCommit(() =>
      log.error('events of a webhook were dropped because too many wait', {
        webhook: id,
        host,
        dropped: dropped.length,
      }),
    )
  }

  function recordDropped(id: string, host: string) {
    const latest = audit.findLatest(action, [id])
    if (latest && clock.now() - latest.at < hour) return
    const target = { type: 'webhook', id } as const
    audit.record({ action, actor: { type: 'system' }, target, details: { host } })
  }

  return reload
}
