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

/** Filters of the desk's list; a null assignee stands for unassigned. */
export type TicketFilter = {
  /** Any of these, without duplicates. */
  statuses?: readonly TicketStatus[] | undefined
  priority?: TicketPriority | undefined
  category?: TicketCategory | undefined
  assigneeId?: string | null | undefined
  userId?: string | undefined
  /** Whether the owner waits for a reply. */
  isWaiting?: boolean | undefined
}
type DeskPosition = { queueKey: number; n: number }
export type DeskItem = ReturnType<DeskStore['get']>
type NoteRow = typeof ticketNotes.$inferSelect
export type NoteItem = ReturnType<DeskStore['listNewestNotes']>[number]
export type HistoryItem = ReturnType<DeskStore['listNewestHistory']>[number]

export type DeskStore = ReturnType<typeof createDeskStore>

const value = sql.placeholder
/** Notes and changes of one ticket. */
const maxShown = 200
const filterNames = ['priority', 'category', 'assigneeId', 'userId'] as const
// The assignee of unassigned tickets in `ticket_counts`.
const nobody = ''
const start: DeskPosition = { queueKey: 0, n: 0 }

/** SQL over the desk's data: all tickets in the desk's order (longest waiting first, then most recently changed),
 *  notes, and history. */
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

  /** In the order of `ns`. */
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
    /** @throws Error when there is no such ticket */
    get(ticketId: string) {
      const found = byId().get({ id: ticketId })
      if (!found) throw new Error(`there is no ticket ${ticketId}`)
      return found
    },
    listByNumber,
    /** Counts the tickets that match. Triggers keep counts by kind; tickets of one owner are counted along an index. */
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
    /** A page of the desk's list, merged from walks along one index, whatever the filter. */
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
    /** The newest ones, oldest first. */
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

/** Tickets that wait come before all others, so without them the list starts behind `waitingUntil`. */
function firstAfter(after: DeskPosition, { isWaiting }: TicketFilter): DeskPosition {
  const isBefore = isWaiting === false && after.queueKey < waitingUntil
  return isBefore ? { queueKey: waitingUntil, n: 0 } : after
}

/** Walks along one index that find the matching tickets, each in the desk's order. The query names the index, since
 *  SQLite picks an arbitrary one without statistics. The first index that fits nearly always leaves the fewest
 *  tickets. */
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
