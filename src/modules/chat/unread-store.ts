import { and, asc, desc, eq, gt, isNull, lt, lte, type SQL, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { inboxes, messages, participants, users } from '../../db/schema.ts'
import type { ParticipantRow } from './store.ts'

type Owner = Pick<ParticipantRow, 'userId' | 'conversationId'>
/** Conversations that a mail about unread messages looks at. */
const maxConversations = 1_000
type Mailable = { conversationId: string; otherUserId: string; lastReadSeq: number; name: string }
type Excerpt = { id: string; createdAt: number; isNotice: number; text: string }
/** Only notices, or also messages of the other user. */
type Origin = 'platform' | 'anybody'

/** The text of a message; of a file message its caption, else the names of its files. Empty when there are none. */
const shownText = `CASE type WHEN 'file' THEN coalesce(nullif(trim(body), ''),
  (SELECT group_concat(value ->> 'file_name', ', ') FROM json_each(attachments)), file_name, '') ELSE body END`

/** SQL over unread messages, for pushes. */
export function createUnreadStore(orm: Orm) {
  const participant = (userId: string, conversationId: string) =>
    and(eq(participants.userId, userId), eq(participants.conversationId, conversationId))

  const sqlite = orm.$client
  const mailable = sqlite.prepare<Mailable, [string, string, number, number]>(
    `SELECT conversation_id AS conversationId, other_user_id AS otherUserId, last_read_seq AS lastReadSeq,
       (SELECT display_name FROM users WHERE id = other_user_id) AS name
     FROM (SELECT * FROM participants WHERE user_id = ?1 AND is_archived = 0 AND last_activity_id > ?2
       ORDER BY last_activity_id DESC LIMIT ?4)
     WHERE unread_count > 0 AND coalesce(muted_until, 0) <= ?3`,
  )
  const prepareExcerpts = (order: 'ASC' | 'DESC') =>
    sqlite.prepare<Excerpt, [string, number, string, string | null, string, number]>(
      `SELECT id, created_at AS createdAt, sender_id IS NULL AS isNotice,
         ${shownText} AS text
       FROM messages WHERE conversation_id = ?1 AND seq > ?2 AND id > ?3
         AND (sender_id IS NULL OR (sender_id = ?4 AND sender_id <> ?5))
         AND is_silent = 0 AND broadcast_id IS NULL AND deleted_at IS NULL
       ORDER BY seq ${order} LIMIT ?6`,
    )
  const oldestFirst = prepareExcerpts('ASC')
  const newestFirst = prepareExcerpts('DESC')
  const ofInbox = (userId: string) => eq(inboxes.userId, userId)
  const isMailed = sqlite.prepare<unknown, [string]>(
    'SELECT 1 FROM inboxes WHERE user_id = ? AND is_mailed',
  )

  return {
    isMailed: (userId: string): boolean => isMailed.get(userId) !== null,
    findInbox: (userId: string) => orm.select().from(inboxes).where(ofInbox(userId)).get(),
    updateMailed(userId: string, change: { isMailed?: boolean; mailedThrough?: string }) {
      orm.update(inboxes).set(change).where(ofInbox(userId)).run()
    },
    /** Conversations with unread messages that are neither archived nor muted, the most recent first.
     *  @param through the message up to which they were mailed */
    listMailable: (userId: string, through: string, now: number): Mailable[] =>
      mailable.all(userId, through, now, maxConversations),
    /** The oldest unread message of a conversation after `through`, and the `limit` newest, without copies of broadcasts.
     *  @param senderId null leaves notices alone */
    listExcerpts(
      userId: string,
      { conversationId, lastReadSeq }: Mailable,
      { through, senderId, limit }: { through: string; senderId: string | null; limit: number },
    ) {
      const range = [conversationId, lastReadSeq, through, senderId, userId] as const
      const oldest = oldestFirst.get(...range, 1)
      return oldest && { oldest, newest: newestFirst.all(...range, limit).reverse() }
    },
    findParticipant: (userId: string, conversationId: string): ParticipantRow | undefined =>
      orm.select().from(participants).where(participant(userId, conversationId)).get(),
    /** The newest unread message up to `seq`; undefined when there is none, or when a later one is unread. */
    findUnread({ userId, conversationId }: Owner, seq: number, from: Origin) {
      const isFor = (table: string) =>
        sql
          .raw(`${table}.is_silent = 0 AND ${table}.sender_id`)
          .append(from === 'platform' ? sql` IS NULL` : sql` IS NOT ${userId}`)
      return orm
        .select({
          seq: messages.seq,
          id: messages.id,
          senderId: messages.senderId,
          senderName: users.displayName,
          text: sql<string>`${sql.raw(shownText)}`,
          createdAt: messages.createdAt,
        })
        .from(messages)
        .leftJoin(users, eq(users.id, messages.senderId))
        .innerJoin(
          participants,
          and(participant(userId, conversationId), lt(participants.lastReadSeq, messages.seq)),
        )
        .where(
          and(
            eq(messages.conversationId, conversationId),
            lte(messages.seq, seq),
            isFor('messages'),
            isNull(messages.deletedAt),
            sql`NOT EXISTS (SELECT 1 FROM ${messages} AS newer WHERE newer.conversation_id = ${conversationId}
              AND newer.seq > ${seq} AND ${isFor('newer')} AND newer.deleted_at IS NULL)`,
          ),
        )
        .orderBy(desc(messages.seq))
        .limit(1)
        .get()
    },
    /** The `seq` of the newest unread message, and the time of the oldest. */
    findAllUnread(participant: ParticipantRow, from: Origin) {
      const { userId, conversationId, lastReadSeq, unreadCount } = participant
      if (unreadCount === 0) return undefined
      const { conversationId: conversation, seq, senderId, isSilent, createdAt } = messages
      const fromOther = and(
        eq(conversation, conversationId),
        gt(seq, lastReadSeq),
        eq(isSilent, 0),
        from === 'platform' ? isNull(senderId) : sql`${senderId} IS NOT ${userId}`,
        isNull(messages.deletedAt),
      )
      const first = (order: SQL) =>
        orm.select({ seq, createdAt }).from(messages).where(fromOther).orderBy(order).limit(1).get()
      const [oldest, newest] = [first(asc(seq)), first(desc(seq))]
      return oldest && newest && { newestSeq: newest.seq, since: oldest.createdAt }
    },
  }
}
