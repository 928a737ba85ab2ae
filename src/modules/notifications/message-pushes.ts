import type { Core } from '../../core.ts'
import { createLru } from '../../lib/lru.ts'
import type { Preferences } from './preferences.ts'
import type { PushTokenStore } from './push-token-store.ts'

type Parts = { preferences: Preferences; pushTokenStore: PushTokenStore }

/** A chat message, and to whom it was sent. */
type Arrived = { recipientId: string; conversationId: string; seq: number }

export type MessagePushes = ReturnType<typeof createMessagePushes>

/** How long a socket has to show a message before the devices do: a forgotten tab silences no phone. */
const patienceMilliseconds = 30_000
const rememberedConversations = 100_000

/** Which chat messages are pushed, and when. Everything is called inside a `write`. */
export function createMessagePushes(core: Core, { preferences, pushTokenStore }: Parts) {
  const { outbox, hub, clock, afterCommit } = core
  // Until when a look at a conversation is due already: one covers all messages that come before it.
  const lookedAt = createLru<number>(rememberedConversations)

  function push({ recipientId: userId, conversationId, seq }: Arrived) {
    const ids = pushTokenStore.listLiveIds(userId)
    if (ids.length === 0 || !preferences.channelsOf(userId, 'chat_message').push) return
    for (const id of ids) {
      const job = { user_id: userId, push_token_id: id, conversation_id: conversationId, seq }
      outbox.add('message_push', job)
    }
  }

  function lookLater({ recipientId: userId, conversationId }: Arrived) {
    const key = `${userId} ${conversationId}`
    const now = clock.now()
    if ((lookedAt.get(key) ?? 0) > now) return
    afterCommit(() => lookedAt.set(key, now + patienceMilliseconds))
    if (pushTokenStore.listLiveIds(userId).length === 0) return
    const job = { user_id: userId, conversation_id: conversationId }
    outbox.add('unread_push', job, patienceMilliseconds)
  }

  return {
    push,
    /** Pushes a message to somebody without a socket now, to others when it is still unread after a while. */
    arrived(message: Arrived): void {
      if (hub.isOnline(message.recipientId)) lookLater(message)
      else push(message)
    },
  }
}
