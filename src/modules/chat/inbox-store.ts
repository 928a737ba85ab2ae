import { and, desc, eq, lt, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { conversations, inboxes, messages, participants, users } from '../../db/schema.ts'
import type { RowRange } from '../../lib/list-range.ts'

export type InboxStore = ReturnType<typeof createInboxStore>
export type InboxRow = ReturnType<InboxStore['list']>[number]

/** After the id of every message. */
const start = '~'
const value = sql.placeholder

/** SQL over conversation lists, most recent activity first. */
export function createInboxStore(orm: Orm) {
  // The page is cut from the index alone; only its rows meet the other tables.
  const page = orm
    .select({ conversationId: participants.conversationId })
    .from(participants)
    .where(
      and(
        eq(participants.userId, value('userId')),
        lt(participants.lastActivityId, value('before')),
      ),
    )
    .orderBy(desc(participants.lastActivityId))
    .limit(value('limit'))
    .offset(value('offset'))
    .as('page')
  const rows = orm
    .select({
      conversationId: participants.conversationId,
      lastActivityId: participants.lastActivityId,
      unreadCount: participants.unreadCount,
      createdAt: conversations.createdAt,
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
    .orderBy(desc(participants.lastActivityId))
    .prepare()

  return {
    count(userId: string): number {
      const { conversationCount } = inboxes
      const own = eq(inboxes.userId, userId)
      return orm.select({ n: conversationCount }).from(inboxes).where(own).get()?.n ?? 0
    },
    /** A user's conversations with what the list shows; `before` is a `lastActivityId`. */
    list: (userId: string, { limit, offset, before = start }: RowRange) =>
      rows.all({ userId, limit, offset, before }),
  }
}
