import type { Clock } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import type { ChatStore, ConversationRow, MessageRow, NewMessageRow } from './store.ts'

/** What a message says, before it has an id and a time. */
export type Content = Omit<NewMessageRow, 'id' | 'createdAt'>

export type Conversations = ReturnType<typeof createConversations>

type ConversationsOptions = { store: ChatStore; newId: NewId; clock: Clock }

/** What every way of sending does, for inside a `write`: opening a conversation, and appending to it. */
export function createConversations({ store, newId, clock }: ConversationsOptions) {
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
    append: (content: Content, conversation: ConversationRow): MessageRow =>
      store.insertMessage({ ...content, id: newId(), createdAt: clock.now() }, conversation),
  }
}

export function otherOf({ userA, userB }: ConversationRow, userId: string): string {
  return userA === userId ? userB : userA
}
