import type { Core } from '../../core.ts'
import type { MayTalk } from './service.ts'
import { createUnreadStore } from './unread-store.ts'

export type Unread = ReturnType<typeof createUnread>

/** Unread messages for pushes, except those of muted or blocked conversations. */
export function createUnread({ orm, clock }: Core, mayTalk: MayTalk) {
  const store = createUnreadStore(orm)

  function findPushable(userId: string, conversationId: string) {
    const participant = store.findParticipant(userId, conversationId)
    if (!participant || (participant.mutedUntil ?? 0) > clock.now()) return undefined
    return mayTalk(userId, participant.otherUserId) ? participant : undefined
  }

  return {
    find: (userId: string, conversationId: string, seq: number) =>
      findPushable(userId, conversationId) && store.findUnread(userId, conversationId, seq),
    findAll(userId: string, conversationId: string) {
      const participant = findPushable(userId, conversationId)
      return participant && store.findAllUnread(participant)
    },
    count: store.countUnread,
  }
}
