import { and, desc, eq, lt, sql } from 'drizzle-orm'
import { alias } from 'drizzle-orm/sqlite-core'
import type { Orm } from '../../db/open.ts'
import { blocks, conversations, inboxes, messages, participants, users } from '../../db/schema.ts'
import { isBlockedFrom, shownPerson } from '../../db/shown-person.ts'
import { selectList } from '../../db/statements.ts'
import { lazy } from '../../lib/lazy.ts'
import type { RowRange } from '../../lib/list-range.ts'
import type { MessageRow } from './store.ts'

export type InboxStore = ReturnType<typeof createInboxStore>
export type InboxRow = ReturnType<InboxStore['list']>[number]
export type MessageKey = { id: string; conversationId: string; seq: number }

/** Sorts after every message id. */
const start = '~'
const value = sql.placeholder

/** SQL over conversation lists, most recent activity first, and over missed messages. Catch-up needs no table of its own,
 *  because ids rise in commit order, also within each conversation. */
export function createInboxStore(orm: Orm) {
  const ofUser = eq(participants.userId, value('userId'))
  const isShown = eq(participants.isArchived, value('isArchived'))
  const isBefore = lt(participants.lastActivityId, value('before'))
  const byPosition = orm
    .select({ conversationId: participants.conversationId })
    .from(participants)
    .where(and(ofUser, isShown, isBefore))
    .orderBy(desc(participants.lastActivityId))
    .limit(value('limit'))
    .offset(value('offset'))
    .as('page')
  const byId = orm
    .select({ conversationId: participants.conversationId })
    .from(participants)
    .where(and(ofUser, eq(participants.conversationId, value('conversationId'))))
    .as('page')
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
      .innerJoin(participants, and(ofUser, eq(participants.conversationId, page.conversationId)))
      .innerJoin(users, eq(users.id, participants.otherUserId))
      .leftJoin(blocks, isBlockedFrom(value('userId')))
      .innerJoin(conversations, eq(conversations.id, page.conversationId))
      .innerJoin(
        others,
        and(
          eq(others.userId, participants.otherUserId),
          eq(others.conversationId, page.conversationId),
        ),
      )
      .leftJoin(
        readMessages,
        and(
          eq(readMessages.conversationId, page.conversationId),
          eq(readMessages.seq, others.lastReadSeq),
        ),
      )
      .leftJoin(
        messages,
        and(
          eq(messages.conversationId, page.conversationId),
          eq(messages.seq, conversations.lastSeq),
        ),
      )
      .orderBy(desc(participants.lastActivityId))
      .prepare()
  const rows = lazy(() => select(byPosition))
  const row = lazy(() => select(byId))

  const sqlite = orm.$client
  const moved = sqlite.prepare<
    { id: string; firstSeq: number; lastSeq: number },
    [string, string, number]
  >(
    `SELECT p.conversation_id AS id, c.first_seq AS firstSeq, c.last_seq AS lastSeq FROM participants p
     JOIN conversations c ON c.id = p.conversation_id
     WHERE p.user_id = ? AND p.is_archived IN (0, 1) AND p.last_activity_id > ? LIMIT ?`,
  )
  const known = sqlite.prepare<{ seq: number }, [string, number, string]>(
    'SELECT seq FROM messages WHERE conversation_id = ? AND seq > ? AND id <= ? ORDER BY seq DESC LIMIT 1',
  )
  // The sender of a broadcast does not get its copies.
  const keys = sqlite.prepare<MessageKey, [string, number, string]>(
    `SELECT id, conversation_id AS conversationId, seq FROM messages
     WHERE conversation_id = ? AND seq > ? AND NOT (sender_id = ? AND broadcast_id IS NOT NULL)`,
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
    count(userId: string, isArchived: boolean): number {
      const inbox = orm.select().from(inboxes).where(eq(inboxes.userId, userId)).get()
      return inbox?.[isArchived ? 'archivedCount' : 'conversationCount'] ?? 0
    },
    find: (userId: string, conversationId: string) => row().get({ userId, conversationId }),
    /** `before` is a `lastActivityId`. */
    list: (userId: string, { limit, offset, before = start }: RowRange, isArchived = false) =>
      rows().all({ userId, limit, offset, before, isArchived: isArchived ? 1 : 0 }),
    /** The user's conversations with activity after message `since`. */
    listMoved: (userId: string, since: string, limit: number) => moved.all(userId, since, limit),
    /** The `seq` of the newest message up to `since`. Searches backwards to `floor`, and returns `floor` if it finds none. */
    findKnownSeq: (conversationId: string, since: string, floor: number): number =>
      known.get(conversationId, floor, since)?.seq ?? floor,
    /** Messages with `seq` > `after` that are delivered to the user. */
    listKeys: (userId: string, conversationId: string, after: number): MessageKey[] =>
      keys.all(conversationId, after, userId),
    listMessages: (wanted: readonly MessageKey[]): MessageRow[] =>
      wanted.flatMap(({ conversationId, seq }) => one.get(conversationId, seq) ?? []),
    /** @returns the id after which the user's next messages come, or an empty text without a conversation */
    findPosition(userId: string): string {
      const ids = [0, 1].map((isArchived) => lastActivity.get(userId, isArchived)?.id ?? '')
      return ids.sort().at(-1) ?? ''
    },
    /** @returns the newest id of a message or conversation up to `id`, which are the positions of clients; or an empty
     *  text */
    findKnownId: (id: string): string => knownId.get(id)?.id ?? '',
  }
}
