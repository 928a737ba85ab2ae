import { and, desc, eq, gt, lt, lte, sql } from 'drizzle-orm'
import type { Orm } from '../../db/client.ts'
import { conversations, messages, participants, users } from '../../db/schema.ts'
import { createInboxStore } from './inbox-store.ts'

export type MessageRow = typeof messages.$inferSelect
export type ConversationRow = typeof conversations.$inferSelect
export type NewMessageRow = Omit<MessageRow, 'seq'>

export type ChatStore = ReturnType<typeof createChatStore>

const value = sql.placeholder

/** SQL over conversations and messages; hot statements are prepared once. */
export function createChatStore(orm: Orm) {
  const conversation = orm
    .select()
    .from(conversations)
    .where(eq(conversations.id, value('id')))
    .prepare()
  const insertMessage = orm
    .insert(messages)
    .values({
      conversationId: value('conversationId'),
      seq: value('seq'),
      id: value('id'),
      senderId: value('senderId'),
      recipientId: value('recipientId'),
      type: value('type'),
      body: value('body'),
      fileUrl: value('fileUrl'),
      fileName: value('fileName'),
      fileSize: value('fileSize'),
      fileType: value('fileType'),
      clientId: value('clientId'),
      broadcastId: value('broadcastId'),
      createdAt: value('createdAt'),
    })
    .prepare()
  const nextSeq = orm
    .update(conversations)
    .set({ lastSeq: sql`${conversations.lastSeq} + 1` })
    .where(eq(conversations.id, value('id')))
    .returning({ seq: conversations.lastSeq })
    .prepare()
  const touch = orm
    .update(participants)
    .set({
      lastActivityAt: sql`${value('now')}`,
      unreadCount: sql`${participants.unreadCount} + (${participants.userId} <> ${value('senderId')})`,
    })
    .where(
      and(
        sql`${participants.userId} IN (${value('userA')}, ${value('userB')})`,
        eq(participants.conversationId, value('conversationId')),
      ),
    )
    .prepare()
  const byClientId = orm
    .select()
    .from(messages)
    .where(and(eq(messages.senderId, value('senderId')), eq(messages.clientId, value('clientId'))))
    .prepare()
  const messageRange = orm
    .select()
    .from(messages)
    .where(
      and(
        eq(messages.conversationId, value('conversationId')),
        gt(messages.seq, value('after')),
        lte(messages.seq, value('until')),
      ),
    )
    .orderBy(desc(messages.seq))
    .prepare()
  const read = orm
    .update(participants)
    .set({ unreadCount: 0, lastReadSeq: sql`${value('seq')}` })
    .where(
      and(
        eq(participants.userId, value('userId')),
        eq(participants.conversationId, value('conversationId')),
      ),
    )
    .prepare()
  const byPair = orm
    .select()
    .from(conversations)
    .where(and(eq(conversations.userA, value('userA')), eq(conversations.userB, value('userB'))))
    .prepare()
  const insertConversation = orm
    .insert(conversations)
    .values({
      id: value('id'),
      userA: value('userA'),
      userB: value('userB'),
      createdAt: value('createdAt'),
    })
    .prepare()
  const insertParticipant = orm
    .insert(participants)
    .values({
      userId: value('userId'),
      otherUserId: value('otherUserId'),
      conversationId: value('conversationId'),
      lastActivityAt: value('lastActivityAt'),
    })
    .prepare()
  const inbox = createInboxStore(orm)

  return {
    find: (id: string): ConversationRow | undefined => conversation.get({ id }),
    findByPair: (userA: string, userB: string): ConversationRow | undefined =>
      byPair.get({ userA, userB }),
    /** Makes the conversation, both participants, and counts it for both. */
    insert(row: ConversationRow) {
      const { id: conversationId, createdAt: lastActivityAt } = row
      insertConversation.run(row)
      for (const [userId, otherUserId] of [
        [row.userA, row.userB],
        [row.userB, row.userA],
      ] as const) {
        inbox.beforeMove(userId, conversationId)
        insertParticipant.run({ userId, otherUserId, conversationId, lastActivityAt })
        inbox.countOneMore(userId)
      }
    },
    findPerson(id: string) {
      const { displayName } = users
      return orm.select({ id: users.id, displayName }).from(users).where(eq(users.id, id)).get()
    },
    isAdmin: (userId: string): boolean =>
      orm.select({ role: users.role }).from(users).where(eq(users.id, userId)).get()?.role ===
      'admin',
    findUnreadCount(userId: string, conversationId: string): number {
      const { unreadCount } = participants
      const own = and(
        eq(participants.userId, userId),
        eq(participants.conversationId, conversationId),
      )
      return orm.select({ unreadCount }).from(participants).where(own).get()?.unreadCount ?? 0
    },
    countConversations: inbox.count,
    listInbox: inbox.list,
    findByClientId: (senderId: string, clientId: string): MessageRow | undefined =>
      byClientId.get({ senderId, clientId }),
    /** Appends a message to its conversation and counts it for the other side. */
    insertMessage(row: NewMessageRow, { id, userA, userB }: ConversationRow): MessageRow {
      const { seq } = nextSeq.get({ id })
      inbox.beforeMove(userA, id)
      inbox.beforeMove(userB, id)
      insertMessage.run({ ...row, seq })
      touch.run({ now: row.createdAt, senderId: row.senderId, userA, userB, conversationId: id })
      return { ...row, seq }
    },
    /** Messages with `after` < seq ≤ `until`, newest first. */
    listMessages: (conversationId: string, after: number, until: number): MessageRow[] =>
      messageRange.all({ conversationId, after, until }),
    /** The newest message to somebody in a conversation, unless they have read it, with what a push tells of it;
     *  undefined when it is another one than `seq`. */
    findUnread(userId: string, conversationId: string, seq: number) {
      return orm
        .select({
          senderName: users.displayName,
          text: sql<string>`CASE ${messages.type} WHEN 'file' THEN coalesce(${messages.fileName}, ${messages.body}) ELSE ${messages.body} END`,
          createdAt: messages.createdAt,
        })
        .from(messages)
        .innerJoin(users, eq(users.id, messages.senderId))
        .innerJoin(
          participants,
          and(
            eq(participants.userId, userId),
            eq(participants.conversationId, messages.conversationId),
            lt(participants.lastReadSeq, messages.seq),
          ),
        )
        .where(
          and(
            eq(messages.conversationId, conversationId),
            eq(messages.seq, seq),
            eq(messages.recipientId, userId),
            sql`NOT EXISTS (SELECT 1 FROM ${messages} AS newer WHERE newer.conversation_id = ${conversationId}
              AND newer.seq > ${seq} AND newer.recipient_id = ${userId})`,
          ),
        )
        .get()
    },
    updateRead(userId: string, conversationId: string, seq: number) {
      read.run({ userId, conversationId, seq })
    },
  }
}
