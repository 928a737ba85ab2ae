import { and, asc, desc, eq, gt, isNull, lt, lte, ne, type SQL, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { inboxes, messages, participants, users } from '../../db/schema.ts'
import type { ParticipantRow } from './store.ts'

/** SQL over unread messages, for pushes. */
export function createUnreadStore(orm: Orm) {
  const participant = (userId: string, conversationId: string) =>
    and(eq(participants.userId, userId), eq(participants.conversationId, conversationId))

  return {
    findParticipant: (userId: string, conversationId: string): ParticipantRow | undefined =>
      orm.select().from(participants).where(participant(userId, conversationId)).get(),
    /** The newest unread message up to `seq`; undefined when there is none, or when a later one is unread. */
    findUnread(userId: string, conversationId: string, seq: number) {
      return orm
        .select({
          seq: messages.seq,
          senderName: users.displayName,
          text: sql<string>`CASE ${messages.type} WHEN 'file' THEN coalesce(${messages.fileName}, ${messages.body}) ELSE ${messages.body} END`,
          createdAt: messages.createdAt,
        })
        .from(messages)
        .innerJoin(users, eq(users.id, messages.senderId))
        .innerJoin(
          participants,
          and(participant(userId, conversationId), lt(participants.lastReadSeq, messages.seq)),
        )
        .where(
          and(
            eq(messages.conversationId, conversationId),
            lte(messages.seq, seq),
            sql`${messages.senderId} <> ${userId}`,
            isNull(messages.deletedAt),
            sql`NOT EXISTS (SELECT 1 FROM ${messages} AS newer WHERE newer.conversation_id = ${conversationId}
              AND newer.seq > ${seq} AND newer.sender_id <> ${userId} AND newer.deleted_at IS NULL)`,
          ),
        )
        .orderBy(desc(messages.seq))
        .limit(1)
        .get()
    },
    /** The `seq` of the newest unread message, and the time of the oldest. */
    findAllUnread({ userId, conversationId, lastReadSeq, unreadCount }: ParticipantRow) {
      if (unreadCount === 0) return undefined
      const { conversationId: conversation, seq, senderId, createdAt } = messages
      const fromOther = and(
        eq(conversation, conversationId),
        gt(seq, lastReadSeq),
        ne(senderId, userId),
        isNull(messages.deletedAt),
      )
      const first = (order: SQL) =>
        orm.select({ seq, createdAt }).from(messages).where(fromOther).orderBy(order).limit(1).get()
      const [oldest, newest] = [first(asc(seq)), first(desc(seq))]
      return oldest && newest && { newestSeq: newest.seq, since: oldest.createdAt }
    },
    /** The unread messages in all conversations of a user. */
    countUnread: (userId: string): number =>
      orm.select({ n: inboxes.unreadCount }).from(inboxes).where(eq(inboxes.userId, userId)).get()
        ?.n ?? 0,
  }
}
