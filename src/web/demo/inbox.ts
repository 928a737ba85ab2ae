import { computed } from '@preact/signals'
import type { Client, ConversationListItem, Message } from '../../../client/src/client.ts'
import { cursorPages, openList } from './lists.ts'
import { listen } from './session.ts'

export type Inbox = ReturnType<typeof openInbox>

/** The conversations of the signed-in person, most recent activity first, kept up to date by the channel. */
export function openInbox(client: Client, myId: string) {
  const list = openList<ConversationListItem>(cursorPages(client, 'GET /v1/chat/conversations'), {
    isBefore: (a, b) => a.updated_at > b.updated_at,
    isNewer: (known, item) => known.updated_at > item.updated_at,
  })
  const { items: conversations, load, put } = list

  function change(id: string, changeOf: (item: ConversationListItem) => object) {
    list.change((item) => (item.id === id ? { ...item, ...changeOf(item) } : item))
  }

  function receive({ conversation_id, sender_id, body, type, created_at }: Message) {
    const item = conversations.value.find(({ id }) => id === conversation_id)
    if (!item) return void load()
    // After a reconnect the list and the catch-up may contain the same message.
    if (created_at <= item.updated_at && item.last_message) return
    const unread = sender_id === myId ? 0 : 1
    put([
      {
        ...item,
        last_message: { body, type, sent_at: created_at },
        unread_count: item.unread_count + unread,
        updated_at: created_at,
      },
    ])
  }

  const stop = listen(client, {
    // The catch-up contains messages only, so the rest is loaded again.
    status: ({ status }) => status === 'open' && void load(),
    resync: () => void load(),
    new_message: ({ message }) => receive(message),
    message_deleted: () => void load(),
    conversation_read: ({ conversation_id, unread_count }) =>
      change(conversation_id, () => ({ unread_count })),
    // Without an id everything so far has been read: later messages get greater ids.
    read_receipt: ({ conversation_id, message_id = client.newestMessageId() }) =>
      change(conversation_id, () => ({ participant_read_up_to: message_id })),
  })
  void load()

  return {
    ...list,
    conversations,
    unreadCount: computed(() =>
      conversations.value.reduce((sum, { unread_count }) => sum + unread_count, 0),
    ),
    /** Finds or creates the conversation with a person.
     *  @returns its id */
    async open(userId: string): Promise<string> {
      const { id, participant, unread_count, created_at } = await client.conversations.open(userId)
      await load()
      // An old conversation may not be loaded yet.
      const isListed = conversations.value.some((item) => item.id === id)
      const rest = { last_message: null, participant_read_up_to: null, muted: false }
      const item = { id, participant: { ...participant, avatar_url: '' }, unread_count, ...rest }
      if (!isListed) put([{ ...item, updated_at: created_at }])
      return id
    },
    markRead(id: string, upTo: string): Promise<unknown> {
      change(id, () => ({ unread_count: 0 }))
      return client.conversations.markRead(id, upTo)
    },
    close: stop,
  }
}
