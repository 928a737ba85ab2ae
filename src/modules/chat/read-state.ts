import type { Core, MayTalk } from '../../core.ts'
import { invalidField } from '../../lib/errors.ts'
import { findById } from '../../lib/ids.ts'
import type { Peer } from '../../realtime/hub.ts'
import type { ConversationReadFrame, ReadReceiptFrame } from './frames.ts'
import { type ChatService, otherOf } from './service.ts'
import type { ChatStore, ConversationRow, ParticipantRow } from './store.ts'

/** Muted permanently: the latest time that a Date can represent. */
const forever = 8_640_000_000_000_000

type Parts = {
  store: ChatStore
  participate: ChatService['participate']
  mayTalk: MayTalk
  publishUpdate: (conversationId: string, userIds: readonly string[]) => void
}

/** Reads up to a message; without one, the whole conversation. */
type Reading = { messageId?: string | null | undefined; from?: Peer | undefined }

type ReadFrames = { receipt: ReadReceiptFrame; read: ConversationReadFrame; from: Peer | undefined }

export type ReadState = ReturnType<typeof createReadState>

/** Read positions, unread counts, muting and archiving. */
export function createReadState(core: Core, parts: Parts) {
  const { store, participate, mayTalk, publishUpdate } = parts
  const { write, afterCommit, hub, clock } = core

  /** @returns the message to read up to; undefined for the whole conversation
   *  @throws validation_error (`message_id`: not in this conversation) */
  function upTo({ id: conversationId }: ConversationRow, messageId: string | null | undefined) {
    if (messageId === undefined || messageId === null) return undefined
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

  function publishRead(
    userId: string,
    conversation: ConversationRow,
    { receipt, read, from }: ReadFrames,
  ) {
    afterCommit(() => {
      hub.send([otherOf(conversation, userId)], receipt)
      hub.send([userId], read, { except: from })
    })
  }

  /** Inside a `write`. */
  function read(userId: string, conversationId: string, { messageId, from }: Reading) {
    const conversation = participate(userId, conversationId)
    const message = upTo(conversation, messageId)
    const { seq, id } = message ?? { seq: conversation.lastSeq, id: undefined }
    const before = store.findParticipant(userId, conversation.id)
    // Read positions do not move between blocked users.
    if (!before || !mayTalk(userId, before.otherUserId)) return
    const unreadCount = advance(before, seq, conversation)
    const isComplete = seq === conversation.lastSeq
    if (unreadCount === undefined && !isComplete) return
    const common = { conversation_id: conversation.id }
    // Choice: reading the whole conversation sends a receipt even when nothing was unread.
    publishRead(userId, conversation, {
      receipt: {
        type: 'read_receipt',
        ...common,
        user_id: userId,
        ...(!isComplete && id !== undefined && { message_id: id }),
      },
      read: { type: 'conversation_read', ...common, unread_count: unreadCount ?? 0 },
      from,
    })
  }

  /** @returns the unread count after `seq`; undefined when `seq` was already read */
  function advance(before: ParticipantRow, seq: number, conversation: ConversationRow) {
    if (seq <= before.lastReadSeq) return undefined
    const unreadCount = unreadAfter(seq, conversation, before)
    store.updateRead(before, seq, unreadCount)
    return unreadCount
  }

  /** Changes a conversation for one user and sends it to their sockets. */
  const change = (userId: string, id: string, update: () => void): Promise<void> =>
    write(() => {
      update()
      publishUpdate(id, [userId])
    })

  return {
    /** Marks a conversation as read, up to a message; the read position never moves back. Notifies the other user and the
     *  reader's sockets except `from`.
     *  @throws not_found · not_participant · validation_error (`message_id`: not in this conversation) */
    async markRead(userId: string, conversationId: string, reading: Reading = {}): Promise<void> {
      participate(userId, conversationId)
      await write(() => read(userId, conversationId, reading))
    },

    /** Stops pushes of the conversation until a time (ms since the epoch) or permanently.
     *  @throws not_found · not_participant · validation_error (`until` is in the past) */
    async mute(userId: string, conversationId: string, until = forever): Promise<void> {
      const { id } = participate(userId, conversationId)
      if (until <= clock.now()) throw invalidField('until', 'in_the_past')
      await change(userId, id, () => store.updateMuted(userId, id, until))
    },

    /** @throws not_found · not_participant */
    async unmute(userId: string, conversationId: string): Promise<void> {
      const { id } = participate(userId, conversationId)
      await change(userId, id, () => store.updateMuted(userId, id, null))
    },

    /** Moves the conversation out of the user's list until its next message, or back. Idempotent.
     *  @throws not_found · not_participant */
    async archive(userId: string, conversationId: string, isArchived: boolean): Promise<void> {
      const { id } = participate(userId, conversationId)
      await change(userId, id, () => store.updateArchived(userId, id, isArchived))
    },
  }
}
