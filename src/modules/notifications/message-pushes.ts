import type { Core } from '../../core.ts'
import { timeLeft } from '../../lib/clock.ts'
import { createLru } from '../../lib/lru.ts'
import type { NotificationParts } from './notifications.ts'

type Arrived = { recipientId: string; conversationId: string; seq: number }

export type MessagePushes = ReturnType<typeof createMessagePushes>

/** While a socket is open, pushes wait this long and are sent if the message stays unread: a tab may be forgotten. */
const unreadDelayMilliseconds = 30_000
const rememberedConversations = 100_000

/** Call everything inside a `write`. */
export function createMessagePushes(core: Core, parts: NotificationParts) {
  const { preferences, pushTokenStore, unreadMessages } = parts
  const { outbox, hub, clock, afterCommit } = core
  // The next check of a conversation covers all messages before it.
  const checkQueuedAt = createLru<number>(rememberedConversations)

  function push({ recipientId: userId, conversationId, seq }: Arrived) {
    const devices = pushTokenStore.listDevices(userId)
    if (devices.length === 0 || !preferences.channelsOf(userId, 'chat_message').push) return
    for (const { id, service } of devices) {
      const job = { user_id: userId, push_token_id: id, conversation_id: conversationId, seq }
      outbox.add('message_push', job, { receiver: service })
    }
  }

  function checkLater({ recipientId: userId, conversationId }: Arrived) {
    const key = `${userId} ${conversationId}`
    const now = clock.now()
    if (timeLeft(checkQueuedAt.get(key), unreadDelayMilliseconds, now) > 0) return
    if (pushTokenStore.listDevices(userId).length === 0) return
    afterCommit(() => checkQueuedAt.set(key, now))
    const job = { user_id: userId, conversation_id: conversationId }
    outbox.add('unread_push', job, { delayMilliseconds: unreadDelayMilliseconds })
  }

  return {
    arrived(message: Arrived): void {
      if (hub.isOnline(message.recipientId)) checkLater(message)
      else push(message)
    },

    /** Several messages of one commit cause several checks; each device gets one push.
     *  @returns milliseconds until the next check, if the unread messages are too recent */
    pushUnread(recipientId: string, conversationId: string): number | undefined {
      const unread = unreadMessages.find(recipientId, conversationId)
      if (!unread) return undefined
      const wait = timeLeft(unread.since, unreadDelayMilliseconds, clock.now())
      if (wait > 0) return wait
      push({ recipientId, conversationId, seq: unread.seq })
      return undefined
    },
  }
}
