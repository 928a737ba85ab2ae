import { and, asc, count, desc, eq, getTableColumns, gt, max, type SQL, sql } from 'drizzle-orm'
import { alias } from 'drizzle-orm/sqlite-core'
import type { Orm } from '../../db/open.ts'
import { ticketCounts, tickets, users } from '../../db/schema.ts'
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
/** A part of the desk's order, from its start or, `reversed`, from its end. */
export type DeskRange = RowRange<DeskPosition> & { reversed?: boolean }
/** A place in the desk's order. */
export type DeskPosition = { queueKey: number; n: number }
/** A ticket with who wrote it and who works on it. */
export type DeskItem = ReturnType<DeskStore['get']>
export type DeskCounts = Record<CountedFilter, number | null> & { total: number | null }

export type DeskStore = ReturnType<typeof createDeskStore>

const value = sql.placeholder
const columns = {
  status: tickets.status,
  priority: tickets.priority,
  category: tickets.category,
  assigneeId: tickets.assigneeId,
  userId: tickets.userId,
}
type FilterName = keyof typeof columns
type CountedFilter = Exclude<FilterName, 'userId'>
const filterNames = Object.keys(columns) as FilterName[]
/** Past every time, and before the place of every ticket that does not wait. */
const afterWaiting = 2 ** 51
// In the counts, where nobody has a name of its own.
const nobody = ''

/** SQL over the tickets of everybody, in the desk's order: who waits longest for an answer, then what changed last. */
export function createDeskStore(orm: Orm) {
  const assignee = alias(users, 'assignee')
  const item = {
    ...getTableColumns(tickets),
    user: {
      id: users.id,
      displayName: users.displayName,
      email: users.email,
      deletedAt: users.deletedAt,
    },
    assignee: { id: assignee.id, displayName: assignee.displayName },
  }
  const byId = orm
    .select(item)
    .from(tickets)
    .innerJoin(users, eq(users.id, tickets.userId))
    .leftJoin(assignee, eq(assignee.id, tickets.assigneeId))
    .where(eq(tickets.id, value('id')))
    .prepare()
  const some = orm
    .select(item)
    .from(tickets)
    .innerJoin(users, eq(users.id, tickets.userId))
    .leftJoin(assignee, eq(assignee.id, tickets.assigneeId))
    .where(sql`${tickets.n} IN (SELECT value FROM json_each(${value('ns')}))`)
    .orderBy(desc(tickets.n))
    .prepare()
  const counts = prepareCounts(orm)
  const newest = orm
    .select({ n: max(tickets.n) })
    .from(tickets)
    .prepare()
  const newestOfUser = orm
    .select({ seq: max(tickets.userSeq) })
    .from(tickets)
    .where(eq(tickets.userId, value('userId')))
    .prepare()
  const pages = new Map<string, ReturnType<typeof preparePage>>()

  // The page is cut from one index first; only its rows meet the other tables.
  function preparePage(
    present: readonly FilterName[],
    first: FilterName | undefined,
    direction: typeof asc,
  ) {
    const page = orm
      .select({ n: tickets.n, queueKey: tickets.queueKey })
      .from(tickets)
      .where(
        and(
          ...present.map((name) => condition(name, name === first)),
          sql`(${tickets.queueKey}, ${tickets.n}) > (${value('queueKey')}, ${value('n')})`,
        ),
      )
      .orderBy(direction(tickets.queueKey), direction(tickets.n))
      .limit(value('limit'))
      .offset(value('offset'))
      .as('page')
    return orm
      .select(item)
      .from(page)
      .innerJoin(tickets, eq(tickets.n, page.n))
      .innerJoin(users, eq(users.id, tickets.userId))
      .leftJoin(assignee, eq(assignee.id, tickets.assigneeId))
      .orderBy(direction(page.queueKey), direction(page.n))
      .prepare()
  }

  /** What each filter alone selects, and all of them together; the counts of kinds say it, however many tickets. */
  function countKinds(filter: TicketFilter): DeskCounts {
    const { status = null, priority = null, category = null } = filter
    const assigneeId = filter.assigneeId === null ? nobody : (filter.assigneeId ?? null)
    const none = { total: 0, status: null, priority: null, category: null, assigneeId: null }
    return counts.get({ status, priority, category, assigneeId }) ?? none
  }

  function countOfUser(filter: TicketFilter): number {
    const present = presentIn(filter)
    if (present.length === 1) return newestOfUser.get(filter)?.seq ?? 0
    const own = and(...present.map((name) => condition(name, name === 'userId')))
    return orm.select({ n: count() }).from(tickets).where(own).prepare().get(filter)?.n ?? 0
  }

  return {
    find: (id: string) => byId.get({ id }),
    /** A ticket that is known to be there. */
    get(id: string) {
      const found = byId.get({ id })
      if (!found) throw new Error(`there is no ticket ${id}`)
      return found
    },
    /** Tickets by their numbers, newest first. */
    listByNumber: (ns: readonly number[]) => some.all({ ns: JSON.stringify(ns) }),
    /** How many there are, and the filter that leaves the fewest: the one whose index to walk along. */
    plan(filter: TicketFilter): { total: number; first: FilterName | undefined } {
      const present = presentIn(filter)
      if (present.length === 0) return { total: newest.get()?.n ?? 0, first: undefined }
      if (present.includes('userId')) return { total: countOfUser(filter), first: 'userId' }
      const found = countKinds(filter)
      const size = (name: FilterName) => (name === 'userId' ? 0 : (found[name] ?? 0))
      const first = present.reduce((best, name) => (size(name) < size(best) ? name : best))
      return { total: found.total ?? 0, first }
    },
    /** A part of the desk's list, walked along the index of `first`. */
    list(filter: TicketFilter, first: FilterName | undefined, range: DeskRange) {
      const { limit, offset, before: after, reversed = false } = range
      const present = presentIn(filter)
      const key = `${first}:${present}:${reversed}`
      const page = pages.get(key) ?? preparePage(present, first, reversed ? desc : asc)
      pages.set(key, page)
      const rows = page.all({ ...filter, limit, offset, ...(after ?? startOf(filter)) })
      return reversed ? rows.reverse() : rows
    },
  }
}

/** A place before the first ticket. Nobody waits for what is settled: such tickets come after all that wait. */
function startOf({ status }: TicketFilter): DeskPosition {
  return { queueKey: status === 'resolved' || status === 'closed' ? afterWaiting : 0, n: 0 }
}

function presentIn(filter: TicketFilter): FilterName[] {
  return filterNames.filter((name) => filter[name] !== undefined)
}

// A plus keeps SQLite from walking along the index of this column.
function condition(name: FilterName, isFirst: boolean): SQL {
  const column = columns[name]
  return isFirst ? sql`${column} IS ${value(name)}` : sql`+${column} IS ${value(name)}`
}

function prepareCounts(orm: Orm) {
  const { assigneeId, status, priority, category, ticketCount } = ticketCounts
  const counted = { status, priority, category, assigneeId }
  const all = and(
    ...Object.entries(counted).map(
      ([name, column]) => sql`coalesce(${column} = ${value(name)}, true)`,
    ),
  )
  const sumOf = (filter: SQL | undefined) =>
    sql<number | null>`sum(${ticketCount}) FILTER (WHERE ${filter})`
  return orm
    .select({
      total: sumOf(all),
      status: sumOf(eq(status, value('status'))),
      priority: sumOf(eq(priority, value('priority'))),
      category: sumOf(eq(category, value('category'))),
      assigneeId: sumOf(eq(assigneeId, value('assigneeId'))),
    })
    .from(ticketCounts)
    .where(gt(ticketCount, 0))
    .prepare()
}
