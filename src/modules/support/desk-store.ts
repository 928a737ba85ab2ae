import { and, desc, eq, getTableColumns, gte, inArray, isNull, lt, sql } from 'drizzle-orm'
import { alias } from 'drizzle-orm/sqlite-core'
import type { Orm } from '../../db/open.ts'
import { ticketHistory, ticketMessages, ticketNotes, tickets, users } from '../../db/schema.ts'
import { countRows } from '../../db/statements.ts'
import { lazy } from '../../lib/lazy.ts'
import type { RowRange } from '../../lib/list-range.ts'
import type { TicketStatus } from '../../lib/vocabulary.ts'
import { filterFields, lastMessageCharacters, type TicketOrder } from './model.ts'
import {
  type AuthoredMessage,
  type TicketMessageRow,
  type TicketRow,
  waitingUntil,
} from './store.ts'

const filterNames = Object.keys(filterFields) as (keyof typeof filterFields)[]

/** A null assignee means unassigned. */
export type TicketFilter = {
  [Name in keyof typeof filterFields]?: NonNullable<TicketRow[Name]> | undefined
} & {
  /** Any of these; without duplicates. */
  statuses?: readonly TicketStatus[] | undefined
  assigneeId?: string | null | undefined
  userId?: string | undefined
  /** The last characters of the id, which a person can say. */
  code?: string | undefined
  isWaiting?: boolean | undefined
}
type DeskPosition = readonly [queueKey: number, n: number]
export type DeskItem = ReturnType<DeskStore['get']>
type NoteRow = typeof ticketNotes.$inferSelect
type NoteKey = Pick<NoteRow, 'id' | 'ticketId'>
export type NoteItem = ReturnType<DeskStore['listNewestNotes']>[number]
export type HistoryItem = ReturnType<DeskStore['listNewestHistory']>[number]

export type DeskStore = ReturnType<typeof createDeskStore>

const value = sql.placeholder
const maxShown = 200

/** Waiting tickets come first, then the most recently changed. */
export function createDeskStore(orm: Orm) {
  const assignee = alias(users, 'assignee')
  const { id, displayName } = users
  const selectItems = () =>
    orm
      .select({
        ...getTableColumns(tickets),
        user: {
          id,
          displayName,
          avatarUrl: users.avatarUrl,
          email: users.email,
          locale: users.locale,
          deletedAt: users.deletedAt,
        },
        assignee: { id: assignee.id, displayName: assignee.displayName },
        lastMessage: {
          id: ticketMessages.id,
          body: sql<string>`substr(${ticketMessages.body}, 1, ${lastMessageCharacters})`,
          isAdmin: ticketMessages.isAdmin,
          createdAt: ticketMessages.createdAt,
        },
      })
      .from(tickets)
      .innerJoin(users, eq(id, tickets.userId))
      .leftJoin(assignee, eq(assignee.id, tickets.assigneeId))
      .innerJoin(
        ticketMessages,
        and(eq(ticketMessages.ticketId, tickets.id), eq(ticketMessages.seq, tickets.messageCount)),
      )
  const byId = lazy(() =>
    selectItems()
      .where(eq(tickets.id, value('id')))
      .prepare(),
  )
  const byNumber = lazy(() =>
    selectItems()
      .where(sql`${tickets.n} IN (SELECT value FROM json_each(${value('ns')}))`)
      .prepare(),
  )

  const author = { id, displayName, deletedAt: users.deletedAt }
  const findPerson = (userId: string) => orm.select(author).from(users).where(eq(id, userId)).get()
  const selectNotes = () =>
    orm
      .select({ ...getTableColumns(ticketNotes), author })
      .from(ticketNotes)
      .innerJoin(users, eq(id, ticketNotes.authorId))

  // Not a trigger: a ticket is deleted after its notes, and each of them would index it once more.
  const index = lazy(() =>
    orm.$client.prepare<unknown, [string]>(
      `INSERT OR REPLACE INTO ticket_search (rowid, id, subject, body, facets)
       SELECT n, id, subject, body, facets FROM ticket_texts WHERE id = ?`,
    ),
  )

  function listByNumber(ns: readonly number[]) {
    const found = byNumber().all({ ns: JSON.stringify(ns) })
    const items = new Map(found.map((item) => [item.n, item]))
    return ns.flatMap((n) => items.get(n) ?? [])
  }

  const count = (filter: TicketFilter): number => countRows(orm, tickets, matching(filter))

  function walk(
    filter: TicketFilter,
    { limit, offset, before: after }: RowRange<DeskPosition>,
    isBackwards = false,
  ): number[] {
    const { n, queueKey } = tickets
    const beyond = isBackwards ? sql`<` : sql`>`
    const isAfter = after && sql`(${queueKey}, ${n}) ${beyond} (${after[0]}, ${after[1]})`
    const page = orm
      .select({ n })
      .from(tickets)
      .where(and(matching(filter), isAfter))
      .orderBy(...(isBackwards ? [desc(queueKey), desc(n)] : [queueKey, n]))
      .limit(limit)
      .offset(offset)
      .all()
    return page.map((row) => row.n)
  }

  function walkShortestWaiting(filter: TicketFilter, range: RowRange<DeskPosition>): number[] {
    const { limit, offset, before: after } = range
    const waiting = { ...filter, isWaiting: true }
    const isPastWaiting = after !== undefined && after[0] >= waitingUntil
    const hasWaiting = filter.isWaiting !== false && !isPastWaiting
    const first = hasWaiting ? walk(waiting, range, true) : []
    if (filter.isWaiting === true || first.length === limit) return first
    const passed = hasWaiting && offset > 0 ? count(waiting) : 0
    const rest = {
      limit: limit - first.length,
      offset: Math.max(0, offset - passed),
      before: isPastWaiting ? after : undefined,
    }
    return [...first, ...walk({ ...filter, isWaiting: false }, rest)]
  }

  return {
    find: (ticketId: string) => byId().get({ id: ticketId }),
    /** @throws Error when there is no such ticket */
    get(ticketId: string) {
      const found = byId().get({ id: ticketId })
      if (!found) throw new Error(`there is no ticket ${ticketId}`)
      return found
    },
    listByNumber,
    count,
    list: (filter: TicketFilter, range: RowRange<DeskPosition>, order: TicketOrder) =>
      listByNumber(
        order === 'shortest_waiting' ? walkShortestWaiting(filter, range) : walk(filter, range),
      ),
    findNote: (ticketId: string, noteId: string) =>
      selectNotes()
        .where(and(eq(ticketNotes.ticketId, ticketId), eq(ticketNotes.id, noteId)))
        .get(),
    insertNote(row: NoteRow): void {
      orm.insert(ticketNotes).values(row).run()
      index().run(row.ticketId)
    },
    updateNote({ id, ticketId }: NoteKey, changes: Pick<NoteRow, 'body' | 'editedAt'>): void {
      orm.update(ticketNotes).set(changes).where(eq(ticketNotes.id, id)).run()
      index().run(ticketId)
    },
    deleteNote({ id, ticketId }: NoteKey): void {
      orm.delete(ticketNotes).where(eq(ticketNotes.id, id)).run()
      index().run(ticketId)
    },
    findPerson,
    withAuthor: (message: TicketMessageRow): AuthoredMessage => ({
      ...message,
      authorName: findPerson(message.authorId)?.displayName ?? '',
    }),
    /** The newest notes, oldest first. */
    listNewestNotes: (ticketId: string) =>
      selectNotes()
        .where(eq(ticketNotes.ticketId, ticketId))
        .orderBy(desc(ticketNotes.id))
        .limit(maxShown)
        .all()
        .reverse(),
    /** The newest history entries, oldest first. */
    listNewestHistory: (ticketId: string) =>
      orm
        .select({ ...getTableColumns(ticketHistory), actor: { id, displayName } })
        .from(ticketHistory)
        .leftJoin(users, eq(id, ticketHistory.actorId))
        .where(eq(ticketHistory.ticketId, ticketId))
        .orderBy(desc(ticketHistory.id))
        .limit(maxShown)
        .all()
        .reverse(),
  }
}

/** Each index of the desk's order contains every filter column, so that pages and counts read only the index. */
export function matching(filter: TicketFilter) {
  const { statuses, assigneeId, userId, code, isWaiting } = filter
  const waits = isWaiting ? lt : gte
  return and(
    statuses && inArray(tickets.status, [...statuses]),
    ...filterNames.map((name) => (filter[name] ? eq(tickets[name], filter[name]) : undefined)),
    assigneeId === null ? isNull(tickets.assigneeId) : undefined,
    assigneeId ? eq(tickets.assigneeId, assigneeId) : undefined,
    userId ? eq(tickets.userId, userId) : undefined,
    code ? sql`substr(${tickets.id}, -6) = ${code}` : undefined,
    isWaiting === undefined ? undefined : waits(tickets.queueKey, waitingUntil),
  )
}
