import type { Message, TicketMessage } from './contract.ts'
import type { Delivery, Queued, QueuedMessage, QueuedReply } from './delivery.ts'
import { AbortError, SessionEndedError } from './errors.ts'
import { uniqueId } from './platform.ts'
import { readJson, removeKey, type Storage, writeJson } from './storage.ts'
import { linkSignals, reasonOf } from './waiting.ts'

type Settled<Item> = Item & {
  /** Settles once: with the stored message, or with the error. */
  sent: Promise<Item extends QueuedMessage ? Message : TicketMessage>
}
export type Pending = Settled<QueuedMessage> | Settled<QueuedReply>

export type Refused = {
  queued: Queued
  error: unknown
  /** Sends it again, with a new key. */
  retry: () => Promise<Message | TicketMessage>
}

export type SendMore = {
  /** Completes the message before it is sent. Until then it is not stored, because files cannot be. */
  prepare?: ((queued: Queued, signal: AbortSignal) => Promise<Queued>) | undefined
  signal?: AbortSignal | undefined
}
type Owner = { key: string; controller: AbortController; ending?: Error }

/** Messages and replies that the service has not acknowledged yet. They are kept in the storage, so that a reload does
 *  not lose them. Each conversation and ticket sends one at a time, in the order of `send`. */
export function createOutbox(
  storage: Storage,
  delivery: Delivery,
  listener: {
    onChange: () => void
    onRefused: (refused: Refused) => void
  },
) {
  const pending = new Map<string, Pending>()
  const lastOf = new Map<string, Promise<unknown>>()
  let current: Owner | undefined
  let ending: Error = new SessionEndedError()

  function enqueue(owner: Owner, queued: Queued, { prepare, signal: given }: SendMore = {}) {
    const { client_id } = queued
    const target = queued.conversation_id ?? queued.ticket_id
    const { signal, release } = linkSignals([owner.controller.signal, given])
    const work = async () => {
      const whole = prepare ? await delivery.persist(() => prepare(queued, signal), signal) : queued
      if (prepare && !signal.aborted) remember(owner.key, whole)
      return delivery.deliver(whole, signal)
    }
    const sent = (lastOf.get(target) ?? Promise.resolve())
      .then(work)
      .catch((error) => {
        if (owner.ending) throw owner.ending
        if (given?.aborted) throw new AbortError(reasonOf(given))
        const retry = () => send({ ...queued, client_id: uniqueId() }, { prepare })
        listener.onRefused({ queued, error, retry })
        throw error
      })
      .finally(() => {
        release()
        if (owner.ending) return
        pending.delete(client_id)
        forget(owner.key, client_id)
        listener.onChange()
      })
    const settled = sent
      .catch(() => {}) // errors go to callers that hold `sent`, if any
      .finally(() => {
        if (lastOf.get(target) === settled) lastOf.delete(target)
      })
    lastOf.set(target, settled)
    pending.set(client_id, { ...queued, sent } as Pending) // a conversation gets a Message, a ticket a TicketMessage
    listener.onChange()
    return sent
  }

  /** @throws ApiError when the service refuses the message · SessionEndedError · AbortError */
  function send(queued: Queued, more: SendMore = {}): Promise<Message | TicketMessage> {
    if (!current) return Promise.reject(ending)
    const underway = pending.get(queued.client_id)
    if (underway) return underway.sent
    if (!more.prepare) remember(current.key, queued)
    return enqueue(current, queued, more)
  }

  // Other tabs of the user change the same list, so read it again before each change.
  function remember(key: string, queued: Queued) {
    writeJson(storage, key, [...storedItems(storage, key), queued])
  }

  function forget(key: string, clientId: string) {
    const others = storedItems(storage, key).filter(({ client_id }) => client_id !== clientId)
    if (others.length === 0) removeKey(storage, key)
    else writeJson(storage, key, others)
  }

  return {
    /** Starts for a user, and first sends what was queued before a reload. */
    begin(userId: string) {
      if (current) return
      current = { key: `outbox.${userId}`, controller: new AbortController() }
      for (const queued of storedItems(storage, current.key)) void enqueue(current, queued)
    },

    send,

    /** In sending order, those queued before a reload first. */
    pending: (): Pending[] => [...pending.values()],

    /** Stops for the user. Pending messages are kept in the storage for the next login, or dropped. */
    end(leftovers: 'keep' | 'drop', reason: Error) {
      if (!current) return
      const { key, controller } = current
      ending = reason
      current.ending = reason
      current = undefined
      const wasEmpty = pending.size === 0
      pending.clear()
      lastOf.clear()
      controller.abort()
      delivery.disconnected()
      if (leftovers === 'drop') removeKey(storage, key)
      if (!wasEmpty) listener.onChange()
    },
  }
}

function storedItems(storage: Storage, key: string): Queued[] {
  const stored = readJson(storage, key)
  return Array.isArray(stored) ? stored : [] // only the client writes under this key
}
