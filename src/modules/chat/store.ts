import { and, eq, gt, isNull, lt, ne, or, type SQLWrapper, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import {
  blocks,
  broadcasts,
  conversations,
  messages,
  participants,
  removedMessages,
  users,
} from '../../db/schema.ts'
import {
  eachOf,
  eachRow,
  hasRow,
  listColumn,
  prepareInsert,
  rowsOf,
  selectList,
} from '../../db/statements.ts'
import type { RetentionRule } from '../../jobs/retention.ts'

export type MessageRow = typeof messages.$inferSelect
/** The content of a removed message, kept for reports. */
export type Said = (typeof removedMessages.$inferSelect)['said']
export type ParticipantRow = typeof participants.$inferSelect
export type ConversationRow = Omit<typeof conversations.$inferSelect, 'data'>

export type BroadcastRow = typeof broadcasts.$inferSelect

export type ChatStore = ReturnType<typeof createChatStore>
export type BroadcastStore = ReturnType<typeof createBroadcastStore>

/** About a millisecond. */
const examinedAtOnce = 1_000

export type Place = { conversationId: string; seq: number }

/** Read with every message, so without `data`. */
const conversationFields = {
  id: conversations.id,
  userA: conversations.userA,
  userB: conversations.userB,
  lastSeq: conversations.lastSeq,
  firstSeq: conversations.firstSeq,
  createdAt: conversations.createdAt,
  state: conversations.state,
}

/** A person as another user sees them: after a block between the two, the name at the time of the block and no picture.
 *  The query must join `blocks` on `isBlockedFrom`. */
export const shownPerson = {
  id: users.id,
  externalId: users.externalId,
  displayName: sql<string>`coalesce(${blocks.otherName}, ${users.displayName})`,
  avatarUrl: sql<string | null>`CASE WHEN ${blocks.userId} IS NULL THEN ${users.avatarUrl} END`,
}

export const isBlockedFrom = (viewerId: SQLWrapper | string) =>
  and(sql`${blocks.userId} = ${viewerId}`, eq(blocks.otherUserId, users.id))

/** SQL over conversations and messages. Sending a message and listing a page use plain SQL, at half the cost of the ORM. */
export function createChatStore(orm: Orm) {
  const sqlite = orm.$client
  const messageColumns = selectList(messages)
  const conversation = sqlite.prepare<ConversationRow, [string]>(
    `SELECT ${selectList(conversationFields)} FROM conversations WHERE id = ?`,
  )
  const setLastSeq = sqlite.prepare<unknown, [number, string]>(
    'UPDATE conversations SET last_seq = ? WHERE id = ?',
  )
  const insertMessage = prepareInsert(sqlite, messages)
  // One row at a time: SQLite builds a temporary index for `IN`. Setting the flag here would run its trigger for each message.
  const touchInInbox = sqlite.prepare<unknown, [string, number, string, string]>(
    `UPDATE participants SET last_activity_id = ?, unread_count = unread_count + ?
     WHERE user_id = ? AND conversation_id = ? AND is_archived = 0`,
  )
  const unarchive = sqlite.prepare<unknown, [string, string]>(
    'UPDATE participants SET is_archived = 0 WHERE user_id = ? AND conversation_id = ?',
  )
  const countUnread = sqlite.prepare<unknown, [string]>(
    'UPDATE inboxes SET unread_count = unread_count + 1 WHERE user_id = ?',
  )
  const participantRow = sqlite.prepare<ParticipantRow, [string, string]>(
    `SELECT ${selectList(participants)} FROM participants WHERE user_id = ? AND conversation_id = ?`,
  )
  const setRead = sqlite.prepare<unknown, [number, number, string, string]>(
    `UPDATE participants SET unread_count = ?, last_read_seq = ?
     WHERE user_id = ? AND conversation_id = ?`,
  )
  const countRead = sqlite.prepare<unknown, [number, string]>(
    `UPDATE inboxes SET unread_count = unread_count - ?1, is_mailed = is_mailed AND unread_count > ?1
     WHERE user_id = ?2`,
  )
  const byId = sqlite.prepare<MessageRow, [string]>(
    `SELECT ${messageColumns} FROM messages WHERE id = ?`,
  )
  const countFromOther = sqlite.prepare<{ n: number }, [string, number, number, string]>(
    `SELECT count(*) AS n FROM messages
     WHERE conversation_id = ? AND seq > ? AND seq <= ? AND sender_id IS NOT ? AND is_silent = 0 AND deleted_at IS NULL`,
  )
  const byClientId = sqlite.prepare<MessageRow, [string | null, string]>(
    `SELECT ${messageColumns} FROM messages WHERE sender_id IS ? AND client_id = ?`,
  )
  const messageRange = sqlite.prepare<MessageRow, [string, number, number]>(
    `SELECT ${messageColumns} FROM messages WHERE conversation_id = ? AND seq > ? AND seq <= ? ORDER BY seq DESC`,
  )
  const reachable = sqlite.prepare<unknown, [string]>(
    'SELECT 1 FROM users WHERE id = ? AND disabled_at IS NULL',
  )
  const admin = sqlite.prepare<unknown, [string]>(
    "SELECT 1 FROM users WHERE id = ? AND role = 'admin'",
  )
  const insertConversation = prepareInsert(sqlite, conversations)
  const insertParticipant = prepareInsert(sqlite, participants)
  const countConversation = sqlite.prepare<unknown, [string]>(
    `INSERT INTO inboxes (user_id, conversation_count) VALUES (?, 1)
     ON CONFLICT DO UPDATE SET conversation_count = conversation_count + 1`,
  )
  const ownConversations = sqlite.prepare<
    { id: string; otherUserId: string },
    [string, string, number]
  >(
    `SELECT conversation_id AS id, other_user_id AS otherUserId FROM participants
     WHERE user_id = ? AND conversation_id > ? ORDER BY conversation_id LIMIT ?`,
  )
  const examined = sqlite.prepare<Place & { isLeft: number }, [string, string, number, number]>(
    `SELECT place AS conversationId, seq, sender_id = ?1
       AND (deleted_at IS NULL OR id IN (SELECT message_id FROM removed_messages)) AS isLeft
     FROM (SELECT conversation_id AS place FROM participants WHERE user_id = ?1 AND conversation_id >= ?2)
       CROSS JOIN messages ON conversation_id = place
     WHERE seq > iif(place = ?2, ?3, 0) ORDER BY place, seq LIMIT ?4`,
  )
  const participant = (userId: string, conversationId: string) =>
    and(eq(participants.userId, userId), eq(participants.conversationId, conversationId))

  function touch(...change: [lastId: string, unread: number, userId: string, id: string]) {
    if (touchInInbox.run(...change).changes > 0) return
    const [, , userId, id] = change
    unarchive.run(userId, id)
    touchInInbox.run(...change)
  }

  const eachConversation = (userId: string) =>
    eachRow<{ id: string; otherUserId: string }>((last, limit) =>
      ownConversations.all(userId, last?.id ?? '', limit),
    )

  const eachMessage = (conversationId: string, userId: string) =>
    eachRow<MessageRow>((last, limit) => {
      // Retention may have moved the first message past the last one read.
      const { firstSeq = 1 } = conversation.get(conversationId) ?? {}
      const after = Math.max(last?.seq ?? 0, firstSeq - 1)
      return messageRange.all(conversationId, after, after + limit).reverse()
    }).map((row) => (row.senderId === userId && row.broadcastId !== null ? undefined : row))

  return {
    find: (id: string): ConversationRow | undefined => conversation.get(id) ?? undefined,
    findByPair(userA: string, userB: string): ConversationRow | undefined {
      const pair = and(eq(conversations.userA, userA), eq(conversations.userB, userB))
      return orm.select(conversationFields).from(conversations).where(pair).get()
    },
    insert(row: ConversationRow) {
      insertConversation({ ...row, data: null })
      const { id, userA, userB } = row
      const unread = { unreadCount: 0, lastReadSeq: 0, mutedUntil: null, isArchived: 0 }
      const common = { conversationId: id, lastActivityId: id, ...unread }
      for (const userId of [userA, userB]) {
        const otherUserId = userId === userA ? userB : userA
        insertParticipant({ ...common, userId, otherUserId })
        countConversation.run(userId)
      }
    },
    findPerson(id: string, viewerId: string) {
      const person = orm.select(shownPerson).from(users).leftJoin(blocks, isBlockedFrom(viewerId))
      return person.where(and(eq(users.id, id), isNull(users.deletedAt))).get()
    },
    findParty: (id: string, isDeletedToo = false) => {
      const { displayName, externalId } = users
      const which = and(eq(users.id, id), isDeletedToo ? undefined : isNull(users.deletedAt))
      return orm.select({ id: users.id, displayName, externalId }).from(users).where(which).get()
    },
    listOwn: (userId: string, after: string, limit: number) =>
      ownConversations.all(userId, after, limit),
    isReachable: (userId: string): boolean => reachable.get(userId) !== null,
    isAdmin: (userId: string): boolean => admin.get(userId) !== null,
    findParticipant: (userId: string, conversationId: string): ParticipantRow | undefined =>
      participantRow.get(userId, conversationId) ?? undefined,
    findMessage: (id: string): MessageRow | undefined => byId.get(id) ?? undefined,
    findByClientId: (senderId: string | null, clientId: string): MessageRow | undefined =>
      byClientId.get(senderId, clientId) ?? undefined,
    /** @param conversation read in the same write */
    insertMessage(content: Omit<MessageRow, 'seq'>, conversation: ConversationRow) {
      const { id, userA, userB, lastSeq } = conversation
      const row: MessageRow = { ...content, seq: lastSeq + 1 }
      setLastSeq.run(row.seq, id)
      insertMessage(row)
      const readers = readersOf(row, conversation)
      for (const userId of [userA, userB]) {
        touch(row.id, readers.includes(userId) ? 1 : 0, userId, id)
      }
      for (const userId of readers) countUnread.run(userId)
      return row
    },
    findData: (id: string): string | null =>
      orm.select().from(conversations).where(eq(conversations.id, id)).get()?.data ?? null,
    updateConversation: rowsOf(orm, conversations).update,
    /** Clears the content of a message and keeps it in `removed_messages` for reports. An unread message no longer counts. */
    updateDeleted(message: MessageRow, conversation: ConversationRow, now: number) {
      const { id, conversationId, seq, type, body, data, picture, attachments, ...file } = message
      const { fileUrl, fileName, fileSize, fileType } = file
      const said = { type, body, fileUrl, fileName, fileSize, fileType, data, picture, attachments }
      orm.insert(removedMessages).values({ messageId: id, said, removedAt: now }).run()
      const left = type === 'notice' ? type : 'text'
      const noFile = { fileUrl: null, fileName: null, fileSize: null, fileType: null }
      const empty = { ...noFile, body: '', data: null, picture: null, attachments: null }
      const ofMessage = and(eq(messages.conversationId, conversationId), eq(messages.seq, seq))
      const removed = { ...empty, type: left, deletedAt: now } as const
      orm.update(messages).set(removed).where(ofMessage).run()
      const { unreadCount, lastReadSeq } = participants
      for (const userId of readersOf(message, conversation)) {
        const unread = orm
          .update(participants)
          .set({ unreadCount: sql`${unreadCount} - 1` })
          .where(and(participant(userId, conversationId), lt(lastReadSeq, seq)))
          .returning()
          .all()
        countRead.run(unread.filter(isCounted).length, userId)
      }
    },
    deleteRemoved: (id: string): void =>
      void orm.delete(removedMessages).where(eq(removedMessages.messageId, id)).run(),
    withOriginalText(row: MessageRow): MessageRow {
      if (row.deletedAt === null) return row
      const { messageId } = removedMessages
      const kept = orm.select().from(removedMessages).where(eq(messageId, row.id)).get()
      return { ...row, ...kept?.said }
    },
    /** Messages with `after` < seq ≤ `until`, newest first. */
    listMessages: (conversationId: string, after: number, until: number): MessageRow[] =>
      messageRange.all(conversationId, after, until),
    /** The next messages in a user's conversations, by conversation and `seq`, of anybody: a read that looked for the user's own
     *  could go through any number of others. `isLeft`: it is their own, and its text is still stored, also for reports. */
    listExamined: (userId: string, after: Place) =>
      examined.all(userId, after.conversationId, after.seq, examinedAtOnce),
    /** Every conversation of a user, by id: the order of the list changes with each message. */
    eachConversation,
    /** By conversation, oldest first; undefined for copies of the user's own broadcasts. */
    eachOf: (userId: string) =>
      eachConversation(userId).flatMap(({ id }) => eachMessage(id, userId)),
    countUnreadIn: (userId: string, conversationId: string, after: number, until: number): number =>
      countFromOther.get(conversationId, after, until, userId)?.n ?? 0,
    /** @param unreadCount the messages still unread after `lastReadSeq` */
    updateRead(before: ParticipantRow, lastReadSeq: number, unreadCount: number) {
      const { userId, conversationId } = before
      if (isCounted(before)) countRead.run(before.unreadCount - unreadCount, userId)
      setRead.run(unreadCount, lastReadSeq, userId, conversationId)
    },
    /** When `isArchived` changes, a trigger moves the conversation between the totals of the inbox. */
    updateParticipant(
      userId: string,
      conversationId: string,
      changes: Partial<Pick<ParticipantRow, 'isArchived' | 'mutedUntil'>>,
    ) {
      orm.update(participants).set(changes).where(participant(userId, conversationId)).run()
    },
  }
}

const isCounted = ({ isArchived }: ParticipantRow) => isArchived === 0

/** The participants for whom a message is unread until they read it. */
export function readersOf(
  { senderId, isSilent }: Pick<MessageRow, 'senderId' | 'isSilent'>,
  { userA, userB }: Pick<ConversationRow, 'userA' | 'userB'>,
): string[] {
  if (senderId !== null) return [senderId === userA ? userB : userA]
  return isSilent === 0 ? [userA, userB] : []
}

export function createBroadcastStore(orm: Orm) {
  const rows = rowsOf(orm, broadcasts)

  return {
    ...rows,
    maySend(senderId: string): boolean {
      const isHost = and(eq(users.role, 'host'), eq(users.emailVerified, true))
      const isSender = and(eq(users.id, senderId), isNull(users.disabledAt))
      return hasRow(orm, users, and(isSender, or(isHost, eq(users.role, 'admin'))))
    },
    findByClientId(senderId: string, clientId: string): BroadcastRow | undefined {
      const own = and(eq(broadcasts.senderId, senderId), eq(broadcasts.clientId, clientId))
      return orm.select().from(broadcasts).where(own).get()
    },
    purge(senderId: string, limit: number, after = '') {
      const { id, senderId: sender, body } = broadcasts
      const next = and(eq(sender, senderId), gt(id, after), ne(body, ''))
      const ids = listColumn(orm, id, next, { limit, sorted: true })
      for (const one of ids) rows.update(one, { body: '' })
      const last = ids.at(-1)
      return last === undefined ? undefined : { last, count: ids.length }
    },
    eachSentBy: (senderId: string) =>
      eachOf(orm, broadcasts, 'id', eq(broadcasts.senderId, senderId)),
  }
}

export const chatRetention: readonly RetentionRule[] = [
  { key: [removedMessages.messageId], time: removedMessages.removedAt, days: 30 },
]
