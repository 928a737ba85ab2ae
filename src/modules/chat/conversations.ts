import type { Core } from '../../core.ts'
import { newMessageFrame } from './frames.ts'
import type { ChatStore, ConversationRow, MessageRow } from './store.ts'

/** What a message says, before it has a place, an id and a time. */
export type Content = Omit<MessageRow, 'id' | 'seq' | 'createdAt'>

/** Adds the pushes of a message to the queue, inside its `write`. */
export type PushMessage = (message: {
  recipientId: string
  conversationId: string
  seq: number
}) => void

export type Conversations = ReturnType<typeof createConversations>

/** What every way of sending does, inside a `write`: opening a conversation, and posting to it. */
export function createConversations(core: Core, store: ChatStore, pushMessage: PushMessage) {
  const { newId, clock, hub, afterCommit } = core

  return {
    /** The one conversation of two users, made at the first call. */
    open(userId: string, otherId: string): ConversationRow {
      const [userA, userB] = userId < otherId ? [userId, otherId] : [otherId, userId]
      const existing = store.findByPair(userA, userB)
      if (existing) return existing
      const conversation = { id: newId(), userA, userB, lastSeq: 0, createdAt: clock.now() }
      store.insert(conversation)
      return conversation
    },

    /** Stores a message, shows it to `watchers` once it is safe, and pushes it when its recipient has no socket. */
    post(content: Content, conversation: ConversationRow, watchers: readonly string[]): MessageRow {
      const row = { ...content, id: newId(), createdAt: clock.now() }
      const message = store.insertMessage(row, conversation)
      const { conversationId, seq, id } = message
      const recipientId = otherOf(conversation, content.senderId)
      if (!hub.isOnline(recipientId)) pushMessage({ recipientId, conversationId, seq })
      afterCommit(() => hub.send(watchers, newMessageFrame(message), { id }))
      return message
    },
  }
}

export function otherOf({ userA, userB }: ConversationRow, userId: string): string {
  return userA === userId ? userB : userA
}
