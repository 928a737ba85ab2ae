import type { Core, MayTalk } from '../../core.ts'
import { createUnreadStore } from './unread-store.ts'

export type Unread = ReturnType<typeof createUnread>

export const maxPerMail = 20
export const maxExcerpts = 10

/** Unread messages for pushes, except those of muted and archived conversations. Of blocked ones only notices are left. */
export function createUnread({ orm, clock }: Core, mayTalk: MayTalk) {
  const store = createUnreadStore(orm)

  function find(userId: string, conversationId: string) {
    const participant = store.findParticipant(userId, conversationId)
    if (!participant || (participant.mutedUntil ?? 0) > clock.now()) return undefined
    const { isArchived, otherUserId } = participant
    if (isArchived === 1) return undefined
    return store.findNewest(participant, mayTalk(userId, otherUserId) ? otherUserId : null)
  }

  function findMailable(userId: string) {
    const inbox = store.findInbox(userId)
    if (!inbox || inbox.unreadCount === 0) return undefined
    const found = store.listMailable(userId, inbox.mailedThrough ?? '', clock.now())
    if (found.length === 0) return undefined
    const newestIds = found.map(({ newestId }) => newestId)
    return {
      since: Math.min(...found.map(({ oldestAt }) => oldestAt)),
      newestId: newestIds.sort().at(-1) ?? '',
      conversations: found.slice(0, maxPerMail).map((row) => ({
        id: row.conversationId,
        messages: store.listExcerpts(row, maxExcerpts).map(({ isNotice, text }) => ({
          senderName: isNotice === 1 ? null : row.senderName,
          text,
        })),
      })),
    }
  }

  return {
    find,
    findMailable,
    isMailed: store.isMailed,
    updateMailed: store.updateMailed,
    count: (userId: string): number => store.findInbox(userId)?.unreadCount ?? 0,
  }
}
