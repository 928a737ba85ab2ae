import type { Message, NewMessage } from './contract.ts'
import type { Delivery, QueuedMessage } from './delivery.ts'
import { SessionEndedError } from './errors.ts'
import { uniqueId } from './platform.ts'
import { readJson, removeKey, type Storage, writeJson } from './storage.ts'

export type Pending = QueuedMessage & {
  /** Settles once: with the stored message, or with the error. */
  sent: Promise<Message>
}

type Owner = { key: string; controller: AbortController; ending?: Error }

/** Messages that the service has not acknowledged yet. They are kept in the storage, so that a reload does not lose
 *  them. Each conversation sends one at a time, in the order of `send`. */
export function createOutbox(
  storage: Storage,
  delivery: Delivery,
  onRefused: (refused: QueuedMessage, error: unknown) => void,
) {
  const pending = new Map<string, Pending>()
  const lastOf = new Map<string, Promise<unknown>>()
  let current: Owner | undefined
  let ending: Error = new SessionEndedError()

  function enqueue(owner: Owner, queued: QueuedMessage): Promise<Message> {
    const { client_id, conversation_id } = queued
    const before = lastOf.get(conversation_id) ?? Promise.resolve()
    const sent = before
      .then(() => delivery.deliver(queued, owner.controller.signal))
      .catch((error) => {
        if (owner.ending) throw owner.ending
        onRefused(queued, error)
        throw error
      })
      .finally(() => {
        pending.delete(client_id)
        if (!owner.ending) forget(owner.key, client_id)
      })
    const settled = sent
      .catch(() => {}) // errors go to callers that hold `sent`, if any
      .finally(() => {
        if (lastOf.get(conversation_id) === settled) lastOf.delete(conversation_id)
      })
    lastOf.set(conversation_id, settled)
    pending.set(client_id, { ...queued, sent })
    return sent
  }

  // Other tabs of the user change the same list, so read it again before each change.
  function remember(key: string, queued: QueuedMessage) {
    writeJson(storage, key, [...storedMessages(storage, key), queued])
  }

  function forget(key: string, clientId: string) {
    const others = storedMessages(storage, key).filter(({ client_id }) => client_id !== clientId)
    if (others.length === 0) removeKey(storage, key)
    else writeJson(storage, key, others)
  }

  return {
    /** Starts for a user, and first sends what was queued before a reload. */
    begin(userId: string) {
      if (current) return
      current = { key: `outbox.${userId}`, controller: new AbortController() }
      for (const queued of storedMessages(storage, current.key)) void enqueue(current, queued)
    },

    /** @throws ApiError when the service refuses the message · SessionEndedError */
    send(conversationId: string, draft: NewMessage): Promise<Message> {
      if (!current) return Promise.reject(ending)
      const { client_id: given, ...message } = draft
      const client_id = given ?? uniqueId()
      const underway = pending.get(client_id)
      if (underway) return underway.sent
      const queued = { client_id, conversation_id: conversationId, message }
      remember(current.key, queued)
      return enqueue(current, queued)
    },

    /** In sending order, those queued before a reload first. */
    pending: (): Pending[] => [...pending.values()],

    /** Stops for the user. Pending messages are kept in the storage for the next login, or dropped. */
    end(leftovers: 'keep' | 'drop', reason: Error) {
      if (!current) return
      const { key, controller } = current
      ending = reason
      current.ending = reason
      current = undefined
      pending.clear()
      lastOf.clear()
      controller.abort()
      delivery.disconnected()
      if (leftovers === 'drop') removeKey(storage, key)
    },
  }
}

function storedMessages(storage: Storage, key: string): QueuedMessage[] {
  const stored = readJson(storage, key)
  return Array.isArray(stored) ? stored : [] // only the client writes under this key
}
