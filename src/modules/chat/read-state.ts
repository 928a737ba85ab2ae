import type { Core, MayTalk } from '../../core.ts'
import { invalidField } from '../../lib/errors.ts'
import { findById } from '../../lib/ids.ts'
import type { Peer } from '../../realtime/hub.ts'
import type { ConversationReadFrame, ReadReceiptFrame } from './frames.ts'
import type { ChatService } from './service.ts'
import type { ChatStore, ConversationRow, ParticipantRow } from './store.ts'

/** Muted permanently: the latest time that a Date can represent. */
const forever = 8_640_000_000_000_000

type Parts = { store: ChatStore; chat: ChatService; mayTalk: MayTalk }

type OwnChanges = Parameters<ChatStore['updateParticipant']>[2]
type Reading = { messageId?: string | null | undefined; from?: Peer | undefined }

export type ReadState = ReturnType<typeof createReadState>

export function createReadState(core: Core, { store, chat, mayTalk }: Parts) {
  const { participate, publishUpdate } = chat
  const { write, afterCommit, hub, clock } = core

  /** @throws validation_error (`message_id`: not in this conversation) */
  function upTo({ id: conversationId }: ConversationRow, messageId: string | null | undefined) {
    if (!messageId) return undefined
    const message = findById(messageId, store.findMessage)
    if (message?.conversationId === conversationId) return message
    throw invalidField('message_id', 'unknown_message')
  }

  /** Counts the unread messages after `seq`, directly or from the known count, whichever reads fewer rows. */
  function unreadAfter(seq: number, { lastSeq }: ConversationRow, before: ParticipantRow): number {
    const { userId, conversationId, lastReadSeq, unreadCount } = before
    const count = (after: number, until: number) =>
      store.countUnreadIn(userId, conversationId, after, until)
    if (lastSeq - seq < seq - lastReadSeq) return count(seq, lastSeq)
    return unreadCount - count(lastReadSeq, seq)
  }

  function read(userId: string, conversationId: string, { messageId, from }: Reading) {
    const conversation = participate(userId, conversationId)
    const message = upTo(conversation, messageId)
    const seq = message?.seq ?? conversation.lastSeq
    const before = store.findParticipant(userId, conversation.id)
    // Read positions do not move between blocked users.
    if (!before || !mayTalk(userId, before.otherUserId)) return
    const unreadCount = advance(before, seq, conversation)
    const isComplete = seq === conversation.lastSeq
    if (unreadCount === undefined && !isComplete) return
    const common = { conversation_id: conversation.id }
    // Choice: reading the whole conversation sends a receipt even when nothing was unread.
    const receipt: ReadReceiptFrame = {
      type: 'read_receipt',
      ...common,
      user_id: userId,
      ...(message && !isComplete && { message_id: message.id }),
    }
    const own: ConversationReadFrame = {
      type: 'conversation_read',
      ...common,
      unread_count: unreadCount ?? 0,
    }
    afterCommit(() => {
      hub.send([before.otherUserId], receipt)
      hub.send([userId], own, { except: from })
    })
  }

  function advance(before: ParticipantRow, seq: number, conversation: ConversationRow) {
    if (seq <= before.lastReadSeq) return undefined
    const unreadCount = unreadAfter(seq, conversation, before)
    store.updateRead(before, seq, unreadCount)
    return unreadCount
  }

  /** Changes a conversation for one user and sends it to their sockets.
   *  @throws not_found · not_participant */
  const change = (userId: string, conversationId: string, changesOf: () => OwnChanges) =>
    write(() => {
      const { id } = participate(userId, conversationId)
      store.updateParticipant(userId, id, changesOf())
      publishUpdate(id, [userId])
    })

  return {
    /** The read position never moves back. The other user and the reader's sockets except `from` are notified.
     *  @throws not_found · not_participant · validation_error (`message_id`: not in this conversation) */
    markRead: (userId: string, conversationId: string, reading: Reading = {}): Promise<void> =>
      write(() => read(userId, conversationId, reading)),

    /** @param until ms since the epoch; without it permanently; null unmutes
     *  @throws not_found · not_participant · validation_error (`until` is in the past) */
    mute: (userId: string, conversationId: string, until: number | null = forever) =>
      change(userId, conversationId, () => {
        if (until !== null && until <= clock.now()) throw invalidField('until', 'in_the_past')
        return { mutedUntil: until }
      }),

    archive: (userId: string, conversationId: string, isArchived: boolean) =>
      change(userId, conversationId, () => ({ isArchived: isArchived ? 1 : 0 })),
  }
}
