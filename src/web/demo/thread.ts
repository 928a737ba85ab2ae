import { computed, signal } from '@preact/signals'
import type { Client, Message } from '../../../client/src/client.ts'
import { cursorPages } from './lists.ts'
import { listen } from './session.ts'

/** Signs of typing come every two seconds. */
const typingMilliseconds = 4_000

export type Thread = ReturnType<typeof openThread>

/** The messages of one conversation, oldest first, kept up to date by the channel. */
export function openThread(client: Client, conversationId: string, myId: string) {
  const messages = signal<Message[]>([])
  const cursor = signal<string | null>(null)
  const isLoaded = signal(false)
  const isLoadingEarlier = signal(false)
  const error = signal<unknown>(undefined)
  const isTyping = signal(false)
  const loadPage = cursorPages(client, 'GET /v1/chat/conversations/{id}/messages', {
    id: conversationId,
  })
  let typingTimer: ReturnType<typeof setTimeout> | undefined

  // Messages come from the list, the channel and the response of `send`, so they are merged by id. Ids rise in the
  // order in which the service stored the messages.
  function put(some: Message[]) {
    const byId = new Map(messages.value.map((known) => [known.id, known]))
    for (const message of some) byId.set(message.id, message)
    messages.value = [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  async function load() {
    error.value = undefined
    try {
      const { data, pagination } = await loadPage()
      put(data)
      if (!isLoaded.value) cursor.value = pagination.cursor
      isLoaded.value = true
    } catch (caught) {
      error.value = caught
    }
  }

  async function loadEarlier() {
    if (cursor.value === null || isLoadingEarlier.value) return
    isLoadingEarlier.value = true
    try {
      const { data, pagination } = await loadPage(cursor.value)
      put(data)
      cursor.value = pagination.cursor
    } finally {
      isLoadingEarlier.value = false
    }
  }

  function showTyping(isShown: boolean) {
    clearTimeout(typingTimer)
    isTyping.value = isShown
    if (isShown) typingTimer = setTimeout(() => showTyping(false), typingMilliseconds)
  }

  const isHere = ({ conversation_id }: { conversation_id: string }) =>
    conversation_id === conversationId

  const stop = listen(client, {
    // The catch-up delivers missed messages; only the list shows which were removed.
    status: ({ status }) => status === 'open' && void load(),
    // Too many messages were missed, so there may be a gap.
    resync() {
      messages.value = []
      isLoaded.value = false
      void load()
    },
    new_message({ message }) {
      if (!isHere(message)) return
      put([message])
      if (message.sender_id !== myId) showTyping(false)
    },
    message_deleted(frame) {
      const removed = messages.value.find(({ id }) => id === frame.message_id)
      if (isHere(frame) && removed) put([asRemoved(removed)])
    },
    typing: (frame) => isHere(frame) && showTyping(true),
  })
  void load()

  return {
    messages,
    isLoaded,
    isLoadingEarlier,
    error,
    isTyping,
    hasEarlier: computed(() => cursor.value !== null),
    load,
    loadEarlier,
    put,
    async remove(message: Message) {
      await client.messages.remove(conversationId, message.id)
      put([asRemoved(message)])
    },
    close() {
      clearTimeout(typingTimer)
      stop()
    },
  }
}

const asRemoved = (message: Message): Message => ({
  ...message,
  type: 'text',
  body: '',
  deleted_at: new Date().toISOString(),
})
