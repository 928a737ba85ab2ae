import { and, asc, desc, eq, type SQL, sql } from 'drizzle-orm'
import type { Orm } from '../../db/client.ts'
import { conversations, inboxes, messages, participants, users } from '../../db/schema.ts'
import type { RowRange } from '../../lib/list-range.ts'
import { type Anchor, createInboxAnchors } from './inbox-anchors.ts'

/** A place in the conversation list, which is ordered by last activity, then id, newest first. */
export type InboxPosition = { lastActivityAt: number; conversationId: string }
export type InboxRow = ReturnType<ReturnType<typeof createInboxStore>['list']>[number]

const value = sql.placeholder

/** SQL over conversation lists. */
export function createInboxStore(orm: Orm) {
  const oneMore = orm
    .insert(inboxes)
    .values({ userId: value('userId'), conversationCount: 1 })
    .onConflictDoUpdate({
      target: inboxes.userId,
      set: { conversationCount: sql`${inboxes.conversationCount} + 1` },
    })
    .prepare()
  const page = preparePage(orm)
  const rowAt = prepareRows(orm)
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
    const place = rowAt(userId, offset, anchor) ?? end
    if (place !== end) anchors.remember(userId, offset, place)
    return place
  }

  return {
    /** To be told before a conversation changes its place in the user's list, or gets one. */
    beforeMove: anchors.beforeMove,
    countOneMore(userId: string) {
      oneMore.run({ userId })
    },
    count(userId: string): number {
      const { conversationCount } = inboxes
      const own = eq(inboxes.userId, userId)
      return orm.select({ n: conversationCount }).from(inboxes).where(own).get()?.n ?? 0
    },
    /** A user's conversations with what the list shows, from a place in the list or from the start. */
    list(userId: string, range: RowRange<InboxPosition>) {
      const { limit, offset } = range
      const before = range.before ?? placeAt(userId, offset)
      const rows = page.all({ userId, limit, ...startOf(before) })
      const last = rows.at(-1)
      // The next page starts where this one ends.
      if (last && range.before === undefined) anchors.remember(userId, offset + rows.length, last)
      return rows
    },
  }
}

// Later than any activity, and earlier.
const start: InboxPosition = { lastActivityAt: Number.MAX_SAFE_INTEGER, conversationId: '' }
const end: InboxPosition = { lastActivityAt: Number.MIN_SAFE_INTEGER, conversationId: '' }

function startOf({ lastActivityAt, conversationId } = start): InboxPosition {
  return { lastActivityAt, conversationId }
}

const place = sql`(${participants.lastActivityAt}, ${participants.conversationId})`
const known = sql`(${value('lastActivityAt')}, ${value('conversationId')})`
const afterPlace = and(eq(participants.userId, value('userId')), sql`${place} < ${known}`)
const upToPlace = and(eq(participants.userId, value('userId')), sql`${place} >= ${known}`)
const newestFirst = [desc(participants.lastActivityAt), desc(participants.conversationId)]
const oldestFirst = [asc(participants.lastActivityAt), asc(participants.conversationId)]

// The row that is the last one before `offset`, counted from a known place on either side: from the index alone.
function prepareRows(orm: Orm) {
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
function preparePage(orm: Orm) {
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
