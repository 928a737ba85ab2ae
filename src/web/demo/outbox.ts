import { signal } from '@preact/signals'
import type { Message, NewMessage, QueuedMessage } from '../../../client/src/client.ts'
import { listen, type Refused, type Session } from './session.ts'

export type Outbox = ReturnType<typeof openOutbox>

/** The state of queued and refused messages for the page. The client itself stores, sends and retries them. */
export function openOutbox({ client, refused }: Session) {
  const waiting = signal<QueuedMessage[]>([])
  const arrived = new Set<string>()

  function look() {
    const pending = client.pending()
    for (const id of arrived)
      if (!pending.some(({ client_id }) => client_id === id)) arrived.delete(id)
    waiting.value = pending.filter(({ client_id }) => !arrived.has(client_id))
  }

  const stop = listen(client, {
    // The message arrives over the channel before its response: without this it would appear twice for a moment.
    new_message({ client_id }) {
      if (client_id === undefined) return
      arrived.add(client_id)
      look()
    },
  })

  // Messages queued before the page was loaded.
  for (const { sent } of client.pending()) sent.catch(() => {}).finally(look)
  look()

  const dismiss = ({ client_id }: QueuedMessage) => {
    refused.value = refused.value.filter(({ queued }) => queued.client_id !== client_id)
  }

  /** @returns the stored message; undefined when it was refused or the page was left */
  function send(conversationId: string, message: NewMessage): Promise<Message | undefined> {
    const sent = client.send(conversationId, message).catch(() => undefined)
    look()
    void sent.finally(look)
    return sent
  }

  return {
    waiting,
    refused,
    send,
    dismiss,
    /** Sends a refused message again with a new key. */
    retry({ queued }: Refused) {
      dismiss(queued)
      return send(queued.conversation_id, queued.message)
    },
    close: stop,
  }
}
