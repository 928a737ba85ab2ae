import type { Draft, Message } from './contract.ts'
import type { Delivery, QueuedMessage } from './delivery.ts'
import { SessionEndedError } from './errors.ts'
import { readJson, removeKey, type Storage, writeJson } from './storage.ts'

/** A message on its way. */
export type Pending = QueuedMessage & {
  /** Settles once: with the stored message, or with the reason why there is none. */
  sent: Promise<Message>
}

/** Messages that the service has not acknowledged yet. They are kept in the storage: what one page could not send, the
 *  next one sends. Each conversation sends one at a time, in the order of `send`. */
export function createOutbox(storage: Storage, delivery: Delivery) {
  const pending = new Map<string, Pending>()
  const lastOf = new Map<string, Promise<unknown>>()
  let owner: { key: string; controller: AbortController } | undefined

  function enqueue(queued: QueuedMessage): Promise<Message> {
    if (!owner) throw new SessionEndedError()
    const { key, controller } = owner
    const { client_id, conversation_id } = queued
    const before = lastOf.get(conversation_id) ?? Promise.resolve()
    const sent = before
      .then(() => delivery.deliver(queued, controller.signal))
      .finally(() => {
        pending.delete(client_id)
        if (!controller.signal.aborted) forget(key, client_id)
      })
    const settled = sent
      .catch(() => {}) // whoever holds `sent` gets the error
      .finally(() => {
        if (lastOf.get(conversation_id) === settled) lastOf.delete(conversation_id)
      })
    lastOf.set(conversation_id, settled)
    pending.set(client_id, { ...queued, sent })
    return sent
  }

  // Other tabs of the user change the same list: it is read again before each change.
  function remember(key: string, queued: QueuedMessage) {
    writeJson(storage, key, [...storedMessages(storage, key), queued])
  }

  function forget(key: string, clientId: string) {
    const others = storedMessages(storage, key).filter(({ client_id }) => client_id !== clientId)
    if (others.length === 0) removeKey(storage, key)
    else writeJson(storage, key, others)
  }

  return {
    /** Works for a user, and first sends what an earlier page left. */
    begin(userId: string) {
      if (owner) return
      owner = { key: `hostline.outbox.${userId}`, controller: new AbortController() }
      for (const queued of storedMessages(storage, owner.key)) void enqueue(queued)
    },

    /** @throws ApiError when the service refuses the message · SessionEndedError */
    async send(conversationId: string, message: Draft): Promise<Message> {
      const client_id = crypto.randomUUID()
      const queued = { client_id, conversation_id: conversationId, message }
      if (owner) remember(owner.key, queued)
      return enqueue(queued)
    },

    /** In the order in which they are sent, those of an earlier page first. */
    pending: (): Pending[] => [...pending.values()],

    /** Stops working for the user. Pending messages stay in the storage for their next login, or are dropped. */
    end(leftovers: 'keep' | 'drop') {
      if (!owner) return
      const { key, controller } = owner
      owner = undefined
      pending.clear()
      lastOf.clear()
      controller.abort(new SessionEndedError())
      delivery.disconnected()
      if (leftovers === 'drop') removeKey(storage, key)
    },
  }
}

function storedMessages(storage: Storage, key: string): QueuedMessage[] {
  const stored = readJson(storage, key)
  return Array.isArray(stored) ? stored : [] // only we write under this key
}
