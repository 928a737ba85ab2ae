import { and, eq, isNull, lt, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import {
  blocks,
  conversations,
  messages,
  participants,
  removedMessages,
  users,
} from '../../db/schema.ts'
import { isBlockedFrom, shownPerson } from '../../db/shown-person.ts'
import { eachRow, prepareInsert, selectList } from '../../db/statements.ts'
import type { RetentionRule } from '../../jobs/retention.ts'

export type MessageRow = typeof messages.$inferSelect
export type ParticipantRow = typeof participants.$inferSelect
export type ConversationRow = typeof conversations.$inferSelect

export type ChatStore = ReturnType<typeof createChatStore>

/** SQL over conversations and messages. Sending a message and listing a page use plain SQL, at half the cost of the ORM. */
export function createChatStore(orm: Orm) {
  const sqlite = orm.$client
  const conversationColumns = selectList(conversations)
  const messageColumns = selectList(messages)
  const conversation = sqlite.prepare<ConversationRow, [string]>(
    `SELECT ${conversationColumns} FROM conversations WHERE id = ?`,
  )
  const nextSeq = sqlite.prepare<{ seq: number }, [string]>(
    'UPDATE conversations SET last_seq = last_seq + 1 WHERE id = ? RETURNING last_seq AS seq',
  )
  const insertMessage = prepareInsert(sqlite, messages)
  const touch = sqlite.prepare<unknown, [string, string, string, string, string]>(
    `UPDATE participants SET last_activity_id = ?, unread_count = unread_count + (user_id <> ?)
     WHERE user_id IN (?, ?) AND conversation_id = ?`,
  )
  const countUnread = sqlite.prepare<unknown, [string]>(
    'UPDATE inboxes SET unread_count = unread_count + 1 WHERE user_id = ?',
  )
  const countRead = sqlite.prepare<unknown, [number, string]>(
    'UPDATE inboxes SET unread_count = unread_count - ? WHERE user_id = ?',
  )
  const byId = sqlite.prepare<MessageRow, [string]>(
    `SELECT ${messageColumns} FROM messages WHERE id = ?`,
  )
  const countFromOther = sqlite.prepare<{ n: number }, [string, number, number, string]>(
    `SELECT count(*) AS n FROM messages
     WHERE conversation_id = ? AND seq > ? AND seq <= ? AND sender_id <> ? AND deleted_at IS NULL`,
  )
  const byClientId = sqlite.prepare<MessageRow, [string, string]>(
    `SELECT ${messageColumns} FROM messages WHERE sender_id = ? AND client_id = ?`,
  )
  const messageRange = sqlite.prepare<MessageRow, [string, number, number]>(
    `SELECT ${messageColumns} FROM messages WHERE conversation_id = ? AND seq > ? AND seq <= ? ORDER BY seq DESC`,
  )
  const reachable = sqlite.prepare<unknown, [string]>(
    'SELECT 1 FROM users WHERE id = ? AND disabled_at IS NULL',
  )
  const insertConversation = prepareInsert(sqlite, conversations)
  const insertParticipant = prepareInsert(sqlite, participants)
  const countConversation = sqlite.prepare<unknown, [string]>(
    `INSERT INTO inboxes (user_id, conversation_count) VALUES (?, 1)
     ON CONFLICT DO UPDATE SET conversation_count = conversation_count + 1`,
  )
  const ownConversations = sqlite.prepare<{ id: string }, [string, string, number]>(
    `SELECT conversation_id AS id FROM participants WHERE user_id = ? AND conversation_id > ?
     ORDER BY conversation_id LIMIT ?`,
  )
  const participant = (userId: string, conversationId: string) =>
    and(eq(participants.userId, userId), eq(participants.conversationId, conversationId))

  const eachMessage = (conversationId: string, userId: string) =>
    eachRow<MessageRow>((last, limit) => {
      const after = last?.seq ?? 0
      return messageRange.all(conversationId, after, after + limit).reverse()
    }).map((row) => (row.senderId === userId && row.broadcastId !== null ? undefined : row))

  return {
    find: (id: string): ConversationRow | undefined => conversation.get(id) ?? undefined,
    findByPair: (userA: string, userB: string): ConversationRow | undefined =>
      orm
        .select()
        .from(conversations)
        .where(and(eq(conversations.userA, userA), eq(conversations.userB, userB)))
        .get(),
    /** Also inserts both participants, and counts the conversation for both. */
    insert(row: ConversationRow) {
      insertConversation(row)
      const common = {
        conversationId: row.id,
        unreadCount: 0,
        lastReadSeq: 0,
        lastActivityId: row.id,
        mutedUntil: null,
      }
      for (const [userId, otherUserId] of [
        [row.userA, row.userB],
        [row.userB, row.userA],
      ] as const) {
        insertParticipant({ ...common, userId, otherUserId })
        countConversation.run(userId)
      }
    },
    /** The user as `viewerId` sees them; undefined for an unknown or deleted user. */
    findPerson: (id: string, viewerId: string) =>
      orm
        .select(shownPerson)
        .from(users)
        .leftJoin(blocks, isBlockedFrom(viewerId))
        .where(and(eq(users.id, id), isNull(users.deletedAt)))
        .get(),
    /** False for deleted and disabled users. */
    isReachable: (userId: string): boolean => reachable.get(userId) !== null,
    isAdmin: (userId: string): boolean =>
      orm.select({ role: users.role }).from(users).where(eq(users.id, userId)).get()?.role ===
      'admin',
    findParticipant: (userId: string, conversationId: string): ParticipantRow | undefined =>
      orm.select().from(participants).where(participant(userId, conversationId)).get(),
    findMessage: (id: string): MessageRow | undefined => byId.get(id) ?? undefined,
    findByClientId: (senderId: string, clientId: string): MessageRow | undefined =>
      byClientId.get(senderId, clientId) ?? undefined,
    /** Appends a message and counts it as unread for the receiver. */
    insertMessage(content: Omit<MessageRow, 'seq'>, { id, userA, userB }: ConversationRow) {
      const row: MessageRow = { ...content, seq: nextSeq.get(id)?.seq ?? 0 }
      insertMessage(row)
      touch.run(row.id, row.senderId, userA, userB, id)
      countUnread.run(row.senderId === userA ? userB : userA)
      return row
    },
    /** Clears the content of a message and keeps it in `removed_messages` for reports. An unread message no longer counts. */
    updateDeleted(message: MessageRow, receiverId: string, now: number) {
      const { id, conversationId, seq, type, body, fileUrl, fileName, fileSize, fileType } = message
      const said = { type, body, fileUrl, fileName, fileSize, fileType }
      orm.insert(removedMessages).values({ messageId: id, said, removedAt: now }).run()
      const empty = { type: 'text', body: '', fileUrl: null, fileName: null } as const
      const ofMessage = and(eq(messages.conversationId, conversationId), eq(messages.seq, seq))
      orm
        .update(messages)
        .set({ ...empty, fileSize: null, fileType: null, deletedAt: now })
        .where(ofMessage)
        .run()
      const { unreadCount, lastReadSeq } = participants
      const unread = orm
        .update(participants)
        .set({ unreadCount: sql`${unreadCount} - 1` })
        .where(and(participant(receiverId, conversationId), lt(lastReadSeq, seq)))
        .returning()
        .all()
      countRead.run(unread.length, receiverId)
    },
    /** The message with its text before the removal, if that is still kept. */
    withOriginalText(row: MessageRow): MessageRow {
      if (row.deletedAt === null) return row
      const { messageId } = removedMessages
      const kept = orm.select().from(removedMessages).where(eq(messageId, row.id)).get()
      return { ...row, ...kept?.said }
    },
    /** Messages with `after` < seq ≤ `until`, newest first. */
    listMessages: (conversationId: string, after: number, until: number): MessageRow[] =>
      messageRange.all(conversationId, after, until),
    /** Every message that a user sent or received, by conversation, oldest first. Yields undefined for copies of the user's
     *  own broadcasts. */
    eachOf: (userId: string) =>
      eachRow<{ id: string }>((last, limit) =>
        ownConversations.all(userId, last?.id ?? '', limit),
      ).flatMap(({ id }) => eachMessage(id, userId)),
    /** Counts messages of the other user with `after` < seq ≤ `until`. */
    countUnreadIn: (userId: string, conversationId: string, after: number, until: number): number =>
      countFromOther.get(conversationId, after, until, userId)?.n ?? 0,
    /** @param unreadCount the messages still unread after `lastReadSeq` */
    updateRead(before: ParticipantRow, lastReadSeq: number, unreadCount: number) {
      const { userId, conversationId } = before
      countRead.run(before.unreadCount - unreadCount, userId)
      orm
        .update(participants)
        .set({ unreadCount, lastReadSeq })
        .where(participant(userId, conversationId))
        .run()
    },
    /** @param mutedUntil ms since the epoch; null to unmute */
    updateMuted(userId: string, conversationId: string, mutedUntil: number | null) {
      const own = participant(userId, conversationId)
      orm.update(participants).set({ mutedUntil }).where(own).run()
    },
  }
}

export const chatRetention: readonly RetentionRule[] = [
  { key: [removedMessages.messageId], time: removedMessages.removedAt, days: 30 },
]
