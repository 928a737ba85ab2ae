import { SessionEndedError } from './api-error.ts'
import type { Draft, Message } from './contract.ts'
import type { Delivery, Letter } from './delivery.ts'
import { readJson, removeKey, type Storage, writeJson } from './storage.ts'

/** A message on its way. */
export type Pending = Letter & {
  /** Settles once: with the stored message, or with why there will be none. */
  sent: Promise<Message>
}

type OutboxOptions = { storage: Storage; delivery: Delivery }

/** Messages that the service has not acknowledged yet, kept in the storage: what a page did not get through, the next
 *  one sends. One at a time per conversation, in the order of `send`. */
export function createOutbox({ storage, delivery }: OutboxOptions) {
  const pending = new Map<string, Pending>()
  const lanes = new Map<string, Promise<unknown>>()
  let owner: { key: string; leave: AbortController } | undefined

  function enqueue(letter: Letter): Promise<Message> {
    if (!owner) throw new SessionEndedError()
    const { key, leave } = owner
    const { client_id, conversation_id } = letter
    const before = lanes.get(conversation_id) ?? Promise.resolve()
    const sent = before
      .then(() => delivery.deliver(letter, leave.signal))
      .finally(() => {
        pending.delete(client_id)
        if (!leave.signal.aborted) forget(key, client_id)
      })
    const lane = sent
      .catch(() => {}) // whoever holds `sent` hears of it
      .finally(() => {
        if (lanes.get(conversation_id) === lane) lanes.delete(conversation_id)
      })
    lanes.set(conversation_id, lane)
    pending.set(client_id, { ...letter, sent })
    return sent
  }

  // Other tabs of the user write to the same list: it is read anew for each change.
  function remember(key: string, letter: Letter) {
    writeJson(storage, key, [...storedLetters(storage, key), letter])
  }

  function forget(key: string, clientId: string) {
    const others = storedLetters(storage, key).filter(({ client_id }) => client_id !== clientId)
    if (others.length === 0) removeKey(storage, key)
    else writeJson(storage, key, others)
  }

  return {
    /** Works for a user, beginning with what an earlier page left. */
    begin(userId: string) {
      if (owner) return
      owner = { key: `hostline.outbox.${userId}`, leave: new AbortController() }
      for (const letter of storedLetters(storage, owner.key)) void enqueue(letter)
    },

    /** @throws ApiError when the service refuses the message · SessionEndedError */
    async send(conversationId: string, message: Draft): Promise<Message> {
      const client_id = crypto.randomUUID()
      const letter = { client_id, conversation_id: conversationId, message }
      if (owner) remember(owner.key, letter)
      return enqueue(letter)
    },

    /** In the order in which they are sent, those of an earlier page first. */
    pending: (): Pending[] => [...pending.values()],

    /** Lets go of the user; what is pending stays in the storage for their next login, or goes for good. */
    end(leftovers: 'keep' | 'drop') {
      if (!owner) return
      const { key, leave } = owner
      owner = undefined
      pending.clear()
      lanes.clear()
      leave.abort(new SessionEndedError())
      delivery.disconnected()
      if (leftovers === 'drop') removeKey(storage, key)
    },
  }
}

function storedLetters(storage: Storage, key: string): Letter[] {
  const stored = readJson(storage, key)
  return Array.isArray(stored) ? stored : [] // only we write under this key
}
