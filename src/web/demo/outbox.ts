import { signal } from '@preact/signals'
import type { Message, NewMessage, QueuedMessage } from '../../../client/src/client.ts'
import { listen, type Refused, type Session } from './session.ts'

export type Outbox = ReturnType<typeof openOutbox>

/** The messages of all conversations that are on their way, and those that the service refused. The client sends, repeats
 *  and keeps them: here is only what of that is shown. */
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
    // The message comes back over the channel before the service confirms it: it must not be shown twice in between.
    new_message({ client_id }) {
      if (client_id === undefined) return
      arrived.add(client_id)
      look()
    },
  })

  // What an earlier page could not send.
  for (const { sent } of client.pending()) sent.catch(() => {}).finally(look)
  look()

  const dismiss = ({ client_id }: QueuedMessage) => {
    refused.value = refused.value.filter(({ queued }) => queued.client_id !== client_id)
  }

  /** @returns the stored message; undefined when it was refused, or when the page goes first */
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
    /** Sends a refused message again, as a new one. */
    retry({ queued }: Refused) {
      dismiss(queued)
      return send(queued.conversation_id, queued.message)
    },
    close: stop,
  }
}
