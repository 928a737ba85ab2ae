import { desc, eq, getTableColumns, sql } from 'drizzle-orm'
import { alias } from 'drizzle-orm/sqlite-core'
import type { Orm } from '../../db/open.ts'
import { ticketHistory, ticketNotes, tickets, users } from '../../db/schema.ts'
import { lazy } from '../../db/statements.ts'
import type { RowRange } from '../../lib/list-range.ts'
import type { TicketCategory, TicketPriority, TicketStatus } from '../../lib/vocabulary.ts'

/** What the desk wants to see; null is nobody's. */
export type TicketFilter = {
  status?: TicketStatus | undefined
  priority?: TicketPriority | undefined
  category?: TicketCategory | undefined
  assigneeId?: string | null | undefined
  userId?: string | undefined
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
const filterNames = ['status', 'priority', 'category', 'assigneeId', 'userId'] as const
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
      const { userId, ...kind } = filter
      if (userId === undefined) {
        const assigneeId = kind.assigneeId === null ? nobody : kind.assigneeId
        return countBy('sum(ticket_count) AS n FROM ticket_counts', where({ ...kind, assigneeId }))
      }
      const own = where(filter)
      return own.values.length === 1
        ? countBy('max(user_seq) AS n FROM tickets INDEXED BY tickets_owner', own)
        : countBy('count(*) AS n FROM tickets INDEXED BY tickets_queue_user', own)
    },
    /** A part of the desk's list: its page is cut from one index, whatever the filter. */
    list(filter: TicketFilter, { limit, offset, before: after = start }: RowRange<DeskPosition>) {
      const { conditions, values } = where(filter)
      const page = sqlite.query<{ n: number }, Values>(
        `SELECT n FROM tickets INDEXED BY ${indexFor(filter)}
         WHERE ${conditions} AND (queue_key, n) > (?, ?) ORDER BY queue_key, n LIMIT ? OFFSET ?`,
      )
      const rows = page.all(...values, after.queueKey, after.n, limit, offset)
      return listByNumber(rows.map(({ n }) => n))
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

function where(filter: TicketFilter): Where {
  const names = filterNames.filter((name) => filter[name] !== undefined)
  const conditions = names.map((name) => `${tickets[name].name} IS ?`)
  const values: Values = names.map((name) => filter[name] ?? null)
  return { conditions: ['TRUE', ...conditions].join(' AND '), values }
}

// Without statistics SQLite would take any of them. Nearly always the first that fits leaves the fewest tickets.
function indexFor({ userId, status, assigneeId }: TicketFilter): string {
  if (userId !== undefined) return 'tickets_queue_user'
  if (status !== undefined) return 'tickets_queue_status'
  return assigneeId === undefined ? 'tickets_queue' : 'tickets_queue_assignee'
}
