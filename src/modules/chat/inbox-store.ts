import { and, desc, eq, lt, type SQLWrapper, sql } from 'drizzle-orm'
import { alias } from 'drizzle-orm/sqlite-core'
import type { Orm } from '../../db/open.ts'
import { blocks, conversations, inboxes, messages, participants, users } from '../../db/schema.ts'
import { selectList } from '../../db/statements.ts'
import { lazy } from '../../lib/lazy.ts'
import { type ListRange, listByPosition } from '../../lib/list-range.ts'
import { isBlockedFrom, type MessageRow, shownPerson } from './store.ts'

export type InboxStore = ReturnType<typeof createInboxStore>
export type InboxRow = NonNullable<ReturnType<InboxStore['find']>>
export type MessageKey = { id: string; conversationId: string; seq: number }
export type MessageRange = { conversationId: string; seq: number; lastSeq: number }
/** `id` and `seq` are null when no message is left. */
type MovedConversation = Omit<MessageRange, 'seq'> & { id: string | null; seq: number | null }

type OfConversation = { conversationId: SQLWrapper }
const isIn = (row: OfConversation, page: OfConversation) =>
  sql`${row.conversationId} = ${page.conversationId}`

/** Sorts after every message id. */
const start = '~'
const value = sql.placeholder

/** Catch-up needs no table of its own, because ids rise in commit order, also within each conversation. */
export function createInboxStore(orm: Orm) {
  const ofUser = eq(participants.userId, value('userId'))
  const isShown = eq(participants.isArchived, value('isArchived'))
  const isBefore = lt(participants.lastActivityId, value('before'))
  const own = () => orm.select({ conversationId: participants.conversationId }).from(participants)
  const byPosition = own()
    .where(and(ofUser, isShown, isBefore))
    .orderBy(desc(participants.lastActivityId))
    .limit(value('limit'))
    .offset(value('offset'))
    .as('page')
  const isOne = eq(participants.conversationId, value('conversationId'))
  const byId = own().where(and(ofUser, isOne)).as('page')
  const others = alias(participants, 'others')
  const readMessages = alias(messages, 'read_messages')
  // Selects the page from the index alone, so that only its rows are joined.
  const select = (page: typeof byPosition | typeof byId) =>
    orm
      .select({
        conversationId: participants.conversationId,
        lastActivityId: participants.lastActivityId,
        unreadCount: participants.unreadCount,
        mutedUntil: participants.mutedUntil,
        isArchived: participants.isArchived,
        otherReadId: readMessages.id,
        state: conversations.state,
        firstSeq: conversations.firstSeq,
        data: conversations.data,
        other: shownPerson,
        lastMessage: {
          id: messages.id,
          body: messages.body,
          type: messages.type,
          createdAt: messages.createdAt,
        },
      })
      .from(page)
      .innerJoin(participants, and(ofUser, isIn(participants, page)))
      .innerJoin(users, eq(users.id, participants.otherUserId))
      .leftJoin(blocks, isBlockedFrom(value('userId')))
      .innerJoin(conversations, eq(conversations.id, page.conversationId))
      .innerJoin(others, and(eq(others.userId, participants.otherUserId), isIn(others, page)))
      .leftJoin(
        readMessages,
        and(isIn(readMessages, page), eq(readMessages.seq, others.lastReadSeq)),
      )
      .leftJoin(messages, and(isIn(messages, page), eq(messages.seq, conversations.lastSeq)))
      .orderBy(desc(participants.lastActivityId))
      .prepare()
  const rows = lazy(() => select(byPosition))
  const row = lazy(() => select(byId))

  const sqlite = orm.$client
  // No sequence number is missing, so the first missed message follows the newest known one.
  const moved = sqlite.prepare<MovedConversation, [string, string, number, number]>(
    `SELECT m.id, m.seq, c.id AS conversationId, c.last_seq AS lastSeq FROM participants p
     JOIN conversations c ON c.id = p.conversation_id
     LEFT JOIN messages m ON m.conversation_id = c.id AND m.seq = 1 + max(
       c.first_seq - 1, c.last_seq - ?3 - 1, coalesce((SELECT seq FROM messages WHERE conversation_id = c.id
         AND seq >= c.last_seq - ?3 AND id <= ?2 ORDER BY seq DESC LIMIT 1), 0))
     WHERE p.user_id = ?1 AND p.is_archived IN (0, 1) AND p.last_activity_id > ?2 LIMIT ?4`,
  )
  // The sender of a broadcast does not get its copies.
  const keys = sqlite.prepare<MessageKey, [string, number, number, string, number]>(
    `SELECT id, conversation_id AS conversationId, seq FROM messages
     WHERE conversation_id = ? AND seq BETWEEN ? AND ? AND NOT (sender_id = ? AND broadcast_id IS NOT NULL)
     ORDER BY seq LIMIT ?`,
  )
  const one = sqlite.prepare<MessageRow, [string, number]>(
    `SELECT ${selectList(messages)} FROM messages WHERE conversation_id = ? AND seq = ?`,
  )
  // `IN` would read every conversation of the user.
  const lastActivity = sqlite.prepare<{ id: string | null }, [string, number]>(
    'SELECT max(last_activity_id) AS id FROM participants WHERE user_id = ? AND is_archived = ?',
  )
  const knownId = sqlite.prepare<{ id: string }, [string]>(
    `SELECT max(coalesce((SELECT max(id) FROM messages WHERE id <= ?1), ''),
       coalesce((SELECT max(id) FROM conversations WHERE id <= ?1), '')) AS id`,
  )

  return {
    find: (userId: string, conversationId: string) => row().get({ userId, conversationId }),
    list: (userId: string, range: ListRange, isArchived: boolean) =>
      listByPosition(range, {
        name: isArchived ? 'archived_conversations' : 'conversations',
        list: ({ limit, offset, before = start }) =>
          rows().all({ userId, limit, offset, before, isArchived: isArchived ? 1 : 0 }),
        count() {
          const inbox = orm.select().from(inboxes).where(eq(inboxes.userId, userId)).get()
          return inbox?.[isArchived ? 'archivedCount' : 'conversationCount'] ?? 0
        },
        position: (row) => row.lastActivityId,
      }),
    /** With activity after message `since`, each with its first missed message; of more than `depth` a later one. Read as the
     *  caller iterates. */
    eachMoved: (
      userId: string,
      since: string,
      { depth, limit }: { depth: number; limit: number },
    ) => moved.iterate(userId, since, depth, limit),
    listKeys: (
      userId: string,
      { conversationId, seq, lastSeq }: MessageRange,
      limit: number,
    ): MessageKey[] => keys.all(conversationId, seq, lastSeq, userId, limit),
    listMessages: (wanted: readonly MessageKey[]): MessageRow[] =>
      wanted.flatMap(({ conversationId, seq }) => one.get(conversationId, seq) ?? []),
    /** May be the id of a forgotten message; an empty text without a conversation. */
    findPosition(userId: string): string {
      const ids = [0, 1].map((isArchived) => lastActivity.get(userId, isArchived)?.id ?? '')
      return ids.sort().at(-1) ?? ''
    },
    /** The newest id of a message or conversation up to `id`, which are the positions of clients; else an empty text. */
    findKnownId: (id: string): string => knownId.get(id)?.id ?? '',
  }
}
