import { and, asc, desc, eq, gt, isNull, lt, lte, max, type SQL, sql } from 'drizzle-orm'
import type { Orm } from '../../db/client.ts'
import { conversations, inboxes, messages, participants, users } from '../../db/schema.ts'
import type { RowRange } from '../../lib/list-range.ts'
import { type Anchor, createInboxAnchors } from './inbox-anchors.ts'

export type MessageRow = typeof messages.$inferSelect
export type ConversationRow = typeof conversations.$inferSelect
export type NewMessageRow = Omit<MessageRow, 'seq'>
/** A place in the conversation list, which is ordered by last activity, then id, newest first. */
export type InboxPosition = { lastActivityAt: number; conversationId: string }
export type InboxRow = ReturnType<ChatStore['listInbox']>[number]

export type ChatStore = ReturnType<typeof createChatStore>

const value = sql.placeholder
const exportPart = 200

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
  const addToInbox = orm
    .insert(inboxes)
    .values({ userId: value('userId'), conversationCount: 1 })
    .onConflictDoUpdate({
      target: inboxes.userId,
      set: { conversationCount: sql`${inboxes.conversationCount} + 1` },
    })
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
  const messagesAfter = (own: SQL | undefined) =>
    orm
      .select()
      .from(messages)
      .where(and(own, gt(messages.id, value('after'))))
      .orderBy(asc(messages.id))
      .limit(value('limit'))
      .prepare()
  const receivedAfter = messagesAfter(eq(messages.recipientId, value('userId')))
  // The copies of a broadcast are not told to the one who sent it.
  const sentAfter = messagesAfter(
    and(eq(messages.senderId, value('userId')), isNull(messages.broadcastId)),
  )
  const inboxPage = prepareInboxPage(orm)
  const inboxRow = prepareInboxRows(orm)
  const activity = orm
    .select({ at: participants.lastActivityAt })
    .from(participants)
    .where(
      and(
        eq(participants.userId, value('userId')),
        eq(participants.conversationId, value('conversationId')),
      ),
    )
    .prepare()
  const anchors = createInboxAnchors(
    (userId, conversationId) => activity.get({ userId, conversationId })?.at,
  )

  /** The last row before `offset`, undefined for the start of the list. */
  function placeAt(userId: string, offset: number): InboxPosition | undefined {
    if (offset === 0) return undefined
    const anchor = anchors.find(userId, offset)
    if (anchor?.offset === offset) return anchor.position
    const place = inboxRow(userId, offset, anchor) ?? endOfInbox
    if (place !== endOfInbox) anchors.remember(userId, offset, place)
    return place
  }

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
        anchors.beforeMove(userId, conversationId)
        insertParticipant.run({ userId, otherUserId, conversationId, lastActivityAt })
        addToInbox.run({ userId })
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
    countConversations(userId: string): number {
      const { conversationCount } = inboxes
      const own = eq(inboxes.userId, userId)
      return orm.select({ n: conversationCount }).from(inboxes).where(own).get()?.n ?? 0
    },
    /** A user's conversations with what the list shows, from a place in the list or from the start. */
    listInbox(userId: string, range: RowRange<InboxPosition>) {
      const { limit, offset } = range
      const before = range.before ?? placeAt(userId, offset)
      const rows = inboxPage.all({ userId, limit, ...startOf(before) })
      const last = rows.at(-1)
      // The next page starts where this one ends.
      if (last && range.before === undefined) anchors.remember(userId, offset + rows.length, last)
      return rows
    },
    findByClientId: (senderId: string, clientId: string): MessageRow | undefined =>
      byClientId.get({ senderId, clientId }),
    /** Appends a message to its conversation and counts it for the other side. */
    insertMessage(row: NewMessageRow, { id, userA, userB }: ConversationRow): MessageRow {
      const { seq } = nextSeq.get({ id })
      anchors.beforeMove(userA, id)
      anchors.beforeMove(userB, id)
      insertMessage.run({ ...row, seq })
      touch.run({ now: row.createdAt, senderId: row.senderId, userA, userB, conversationId: id })
      return { ...row, seq }
    },
    /** Messages with `after` < seq ≤ `until`, newest first. */
    listMessages: (conversationId: string, after: number, until: number): MessageRow[] =>
      messageRange.all({ conversationId, after, until }),
    /** A message that its recipient has not read, with what a push tells of it. */
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
          ),
        )
        .get()
    },
    /** What a user got and sent after an id, oldest first. */
    listAfter(userId: string, after: string, limit: number): MessageRow[] {
      const key = { userId, after, limit }
      const found = [...receivedAfter.all(key), ...sentAfter.all(key)]
      return found.sort((a, b) => (a.id < b.id ? -1 : 1)).slice(0, limit)
    },
    /** The id that the newest message of all has. */
    findNewestId: () =>
      orm
        .select({ id: max(messages.id) })
        .from(messages)
        .get()?.id ?? undefined,
    /** Every message that a user sent, oldest first, read in small parts. */
    *eachSentBy(userId: string): Iterable<MessageRow> {
      let part: MessageRow[] = []
      do {
        part = sentAfter.all({ userId, after: part.at(-1)?.id ?? '', limit: exportPart })
        yield* part
      } while (part.length === exportPart)
    },
    updateRead(userId: string, conversationId: string, seq: number) {
      read.run({ userId, conversationId, seq })
    },
  }
}

// Later than any activity, and earlier.
const startOfInbox: InboxPosition = { lastActivityAt: Number.MAX_SAFE_INTEGER, conversationId: '' }
const endOfInbox: InboxPosition = { lastActivityAt: Number.MIN_SAFE_INTEGER, conversationId: '' }

function startOf({ lastActivityAt, conversationId } = startOfInbox): InboxPosition {
  return { lastActivityAt, conversationId }
}

const place = sql`(${participants.lastActivityAt}, ${participants.conversationId})`
const known = sql`(${value('lastActivityAt')}, ${value('conversationId')})`
const afterPlace = and(eq(participants.userId, value('userId')), sql`${place} < ${known}`)
const upToPlace = and(eq(participants.userId, value('userId')), sql`${place} >= ${known}`)
const newestFirst = [desc(participants.lastActivityAt), desc(participants.conversationId)]
const oldestFirst = [asc(participants.lastActivityAt), asc(participants.conversationId)]

// The row that is the last one before `offset`, counted from a known place on either side: from the index alone.
function prepareInboxRows(orm: Orm) {
  const row = (where: SQL | undefined, order: SQL[]) =>
    orm
      .select({
        conversationId: participants.conversationId,
        lastActivityAt: participants.lastActivityAt,
      })
      .from(participants)
      .where(where)
      .orderBy(...order)
      .limit(1)
      .offset(value('skipped'))
      .prepare()
  const down = row(afterPlace, newestFirst)
  const up = row(upToPlace, oldestFirst)
  return (userId: string, offset: number, anchor: Anchor | undefined) => {
    const skipped = offset - 1 - (anchor?.offset ?? 0)
    const key = { userId, ...startOf(anchor?.position) }
    return skipped >= 0 ? down.get({ ...key, skipped }) : up.get({ ...key, skipped: -skipped - 1 })
  }
}

// The page is cut from the index first; only its rows meet the other tables.
function prepareInboxPage(orm: Orm) {
  const page = orm
    .select({
      conversationId: participants.conversationId,
      lastActivityAt: participants.lastActivityAt,
    })
    .from(participants)
    .where(afterPlace)
    .orderBy(...newestFirst)
    .limit(value('limit'))
    .as('page')
  return orm
    .select({
      conversationId: participants.conversationId,
      lastActivityAt: participants.lastActivityAt,
      unreadCount: participants.unreadCount,
      other: { id: users.id, displayName: users.displayName, avatarUrl: users.avatarUrl },
      lastMessage: { body: messages.body, type: messages.type, createdAt: messages.createdAt },
    })
    .from(page)
    .innerJoin(
      participants,
      and(
        eq(participants.userId, value('userId')),
        eq(participants.conversationId, page.conversationId),
      ),
    )
    .innerJoin(users, eq(users.id, participants.otherUserId))
    .innerJoin(conversations, eq(conversations.id, page.conversationId))
    .leftJoin(
      messages,
      and(
        eq(messages.conversationId, page.conversationId),
        eq(messages.seq, conversations.lastSeq),
      ),
    )
    .orderBy(desc(page.lastActivityAt), desc(page.conversationId))
    .prepare()
}
