import { desc, eq, getTableColumns, sql } from 'drizzle-orm'
import { alias } from 'drizzle-orm/sqlite-core'
import type { Orm } from '../../db/open.ts'
import { ticketHistory, ticketNotes, tickets, users } from '../../db/schema.ts'
import { lazy } from '../../db/statements.ts'
import type { RowRange } from '../../lib/list-range.ts'
import {
  type TicketCategory,
  type TicketPriority,
  type TicketStatus,
  ticketStatuses,
} from '../../lib/vocabulary.ts'
import { waitingUntil } from './store.ts'

/** What the desk wants to see; null is nobody's. */
export type TicketFilter = {
  /** Any of these, each named once. */
  statuses?: readonly TicketStatus[] | undefined
  priority?: TicketPriority | undefined
  category?: TicketCategory | undefined
  assigneeId?: string | null | undefined
  userId?: string | undefined
  /** For an answer of the desk. */
  isWaiting?: boolean | undefined
}
/** A place in the desk's order. */
type DeskPosition = { queueKey: number; n: number }
/** A ticket with who wrote it and who works on it. */
export type DeskItem = ReturnType<DeskStore['get']>
type NoteRow = typeof ticketNotes.$inferSelect
export type NoteItem = ReturnType<DeskStore['listNewestNotes']>[number]
export type HistoryItem = ReturnType<DeskStore['listNewestHistory']>[number]

export type DeskStore = ReturnType<typeof createDeskStore>

const value = sql.placeholder
/** Notes and changes of one ticket. */
const maxShown = 200
const filterNames = ['priority', 'category', 'assigneeId', 'userId'] as const
// In the counts, where nobody has a name of its own.
const nobody = ''
const start: DeskPosition = { queueKey: 0, n: 0 }

/** SQL over what only the desk sees: the tickets of everybody in its order (who waits longest for an answer, then what
 *  changed last), notes, and who changed what. */
export function createDeskStore(orm: Orm) {
  const sqlite = orm.$client
  const assignee = alias(users, 'assignee')
  const { id, displayName } = users
  const selectItems = () =>
    orm
      .select({
        ...getTableColumns(tickets),
        user: { id, displayName, email: users.email, deletedAt: users.deletedAt },
        assignee: { id: assignee.id, displayName: assignee.displayName },
      })
      .from(tickets)
      .innerJoin(users, eq(id, tickets.userId))
      .leftJoin(assignee, eq(assignee.id, tickets.assigneeId))
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

  /** Tickets by their numbers, in the same order. */
  function listByNumber(ns: readonly number[]) {
    const items = new Map(
      byNumber()
        .all({ ns: JSON.stringify(ns) })
        .map((item) => [item.n, item]),
    )
    return ns.flatMap((n) => items.get(n) ?? [])
  }

  function countBy(counted: string, { conditions, values }: Where): number {
    const query = sqlite.query<{ n: number | null }, Values>(
      `SELECT ${counted} WHERE ${conditions}`,
    )
    return query.get(...values)?.n ?? 0
  }

  return {
    find: (ticketId: string) => byId().get({ id: ticketId }),
    /** A ticket that is known to be there. */
    get(ticketId: string) {
      const found = byId().get({ id: ticketId })
      if (!found) throw new Error(`there is no ticket ${ticketId}`)
      return found
    },
    listByNumber,
    /** How many tickets pass. Triggers count them by kind; those of one owner are counted along an index. */
    count(filter: TicketFilter): number {
      const { userId, isWaiting, ...kind } = filter
      if (userId === undefined) {
        const assigneeId = kind.assigneeId === null ? nobody : kind.assigneeId
        const counted = `sum(${countedBy(isWaiting)}) AS n FROM ticket_counts`
        return countBy(counted, where({ ...kind, assigneeId }))
      }
      const own = where(filter)
      return own.values.length === 1
        ? countBy('max(user_seq) AS n FROM tickets INDEXED BY tickets_owner', own)
        : countBy('count(*) AS n FROM tickets INDEXED BY tickets_queue_user', own)
    },
    /** A part of the desk's list: its page is merged from walks along one index, whatever the filter. */
    list(filter: TicketFilter, { limit, offset, before: after = start }: RowRange<DeskPosition>) {
      const { index, walks } = walksOf(filter)
      const parts = walks.map(where)
      const queries = parts.map(
        ({ conditions }) =>
          `SELECT queue_key, n FROM tickets INDEXED BY ${index} WHERE ${conditions} AND (queue_key, n) > (?, ?)`,
      )
      const page = sqlite.query<{ n: number }, Values>(
        `${queries.join(' UNION ALL ')} ORDER BY queue_key, n LIMIT ? OFFSET ?`,
      )
      const { queueKey, n } = firstAfter(after, filter)
      const values = parts.flatMap((part) => [...part.values, queueKey, n])
      return listByNumber(page.all(...values, limit, offset).map((row) => row.n))
    },
    insertNote(row: NoteRow): void {
      orm.insert(ticketNotes).values(row).run()
    },
    findAuthor: (userId: string) =>
      orm.select({ id, displayName }).from(users).where(eq(id, userId)).get(),
    /** The newest ones, oldest first. */
    listNewestNotes: (ticketId: string) =>
      orm
        .select({
          id: ticketNotes.id,
          body: ticketNotes.body,
          createdAt: ticketNotes.createdAt,
          author: { id, displayName },
        })
        .from(ticketNotes)
        .innerJoin(users, eq(id, ticketNotes.authorId))
        .where(eq(ticketNotes.ticketId, ticketId))
        .orderBy(desc(ticketNotes.id))
        .limit(maxShown)
        .all()
        .reverse(),
    /** The newest entries, oldest first. */
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

type Values = (string | number | null)[]
type Where = { conditions: string; values: Values }

function where({ statuses, isWaiting, ...filter }: TicketFilter): Where {
  const names = filterNames.filter((name) => filter[name] !== undefined)
  const conditions = ['TRUE', ...names.map((name) => `${tickets[name].name} IS ?`)]
  const values: Values = names.map((name) => filter[name] ?? null)
  if (statuses !== undefined) {
    conditions.push(`status IN (${statuses.map(() => '?')})`)
    values.push(...statuses)
  }
  if (isWaiting !== undefined) {
    conditions.push(`queue_key ${isWaiting ? '<' : '>='} ?`)
    values.push(waitingUntil)
  }
  return { conditions: conditions.join(' AND '), values }
}

function countedBy(isWaiting: boolean | undefined): string {
  if (isWaiting === undefined) return 'ticket_count'
  return isWaiting ? 'waiting_count' : 'ticket_count - waiting_count'
}

/** Where the list after a position starts: what does not wait comes behind all that does. */
function firstAfter(after: DeskPosition, { isWaiting }: TicketFilter): DeskPosition {
  const isBefore = isWaiting === false && after.queueKey < waitingUntil
  return isBefore ? { queueKey: waitingUntil, n: 0 } : after
}

/** The walks along one index that find what passes, each in the desk's order. Without statistics SQLite would take any
 *  index. Nearly always the first that fits leaves the fewest tickets. */
function walksOf(filter: TicketFilter): { index: string; walks: TicketFilter[] } {
  const { userId, assigneeId, statuses } = filter
  if (userId !== undefined) return { index: 'tickets_queue_user', walks: [filter] }
  if (assigneeId === undefined && statuses === undefined) {
    return { index: 'tickets_queue', walks: [filter] }
  }
  const index = assigneeId === undefined ? 'tickets_queue_status' : 'tickets_queue_assignee'
  const walks = (statuses ?? ticketStatuses).map((status) => ({ ...filter, statuses: [status] }))
  return { index, walks }
}
