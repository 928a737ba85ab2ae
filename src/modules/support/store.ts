import { and, asc, eq, isNotNull, isNull, lte, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { ticketHistory, ticketMessages, tickets, users } from '../../db/schema.ts'
import { lazy, placeholders, prepareInsert, selectList } from '../../db/statements.ts'

export type TicketRow = typeof tickets.$inferSelect
export type TicketMessageRow = typeof ticketMessages.$inferSelect
export type HistoryRow = typeof ticketHistory.$inferSelect
export type NewTicketRow = Pick<
  TicketRow,
  'id' | 'userId' | 'subject' | 'category' | 'priority' | 'createdAt'
>
/** What changes, and the two times that a ticket's place in the queue follows from. */
type TicketChanges = Partial<TicketRow> & Pick<TicketRow, 'waitingSince' | 'updatedAt'>

export type TicketStore = ReturnType<typeof createTicketStore>

const value = sql.placeholder
/** More than twice any time: tickets that wait come first, then those that changed last. */
const notWaiting = 2 ** 52
const exportChunk = 50

/** SQL over tickets, their messages and their history. Nothing here reads a note. */
export function createTicketStore(orm: Orm) {
  const sqlite = orm.$client
  const columns = selectList(tickets)
  const byId = lazy(() =>
    sqlite.prepare<TicketRow, [string]>(`SELECT ${columns} FROM tickets WHERE id = ?`),
  )
  const newestOfUser = lazy(() =>
    sqlite.prepare<{ seq: number | null }, [string]>(
      'SELECT max(user_seq) AS seq FROM tickets WHERE user_id = ?',
    ),
  )
  const ofUser = lazy(() =>
    sqlite.prepare<TicketRow, [string, number, number]>(
      `SELECT ${columns} FROM tickets WHERE user_id = ? AND user_seq > ? AND user_seq <= ? ORDER BY user_seq DESC`,
    ),
  )
  const messagesOf = lazy(() =>
    orm
      .select()
      .from(ticketMessages)
      .where(eq(ticketMessages.ticketId, value('ticketId')))
      .orderBy(asc(ticketMessages.seq))
      .prepare(),
  )
  const insertMessage = lazy(() =>
    orm.insert(ticketMessages).values(placeholders(ticketMessages)).prepare(),
  )
  const insertHistory = lazy(() => prepareInsert(sqlite, ticketHistory))

  const countOfUser = (userId: string): number => newestOfUser().get(userId)?.seq ?? 0

  return {
    find: (id: string): TicketRow | undefined => byId().get(id) ?? undefined,
    /** Makes a ticket without messages, open, whose owner waits. */
    insert(row: NewTicketRow): TicketRow {
      const { userId, createdAt } = row
      const userSeq = countOfUser(userId) + 1
      const times = { waitingSince: createdAt, updatedAt: createdAt, queueKey: createdAt }
      return orm
        .insert(tickets)
        .values({ ...row, userSeq, status: 'open', messageCount: 0, ...times })
        .returning()
        .get()
    },
    update(id: string, changes: TicketChanges): TicketRow {
      const queueKey = changes.waitingSince ?? notWaiting - changes.updatedAt
      return orm
        .update(tickets)
        .set({ ...changes, queueKey })
        .where(eq(tickets.id, id))
        .returning()
        .get()
    },
    /** How many tickets a person has, which is the `userSeq` of the newest. */
    countOfUser,
    /** A person's tickets with `after` < userSeq ≤ `until`, newest first. */
    listOfUser: (userId: string, after: number, until: number): TicketRow[] =>
      ofUser().all(userId, after, until),
    /** Every ticket of a person, oldest first, read in small chunks. */
    *eachOfUser(userId: string): Generator<TicketRow> {
      let chunk: TicketRow[] = []
      let after = 0
      do {
        chunk = ofUser().all(userId, after, after + exportChunk)
        yield* chunk.reverse()
        after += exportChunk
      } while (chunk.length === exportChunk)
    },
    insertMessage(row: TicketMessageRow): void {
      insertMessage().run(row)
    },
    /** Oldest first. */
    listMessages: (ticketId: string): TicketMessageRow[] => messagesOf().all({ ticketId }),
    /** The message at a place: 1 opened the ticket. */
    findMessageAt(ticketId: string, seq: number): TicketMessageRow | undefined {
      const one = and(eq(ticketMessages.ticketId, ticketId), eq(ticketMessages.seq, seq))
      return orm.select().from(ticketMessages).where(one).get()
    },
    findMessage(ticketId: string, id: string): TicketMessageRow | undefined {
      const one = and(eq(ticketMessages.ticketId, ticketId), eq(ticketMessages.id, id))
      return orm.select().from(ticketMessages).where(one).get()
    },
    findMessageByClientId(authorId: string, clientId: string): TicketMessageRow | undefined {
      const own = and(eq(ticketMessages.authorId, authorId), eq(ticketMessages.clientId, clientId))
      return orm.select().from(ticketMessages).where(own).get()
    },
    insertHistory(row: HistoryRow): void {
      insertHistory()(row)
    },
    /** The first change of a ticket's priority. */
    findFirstPriorityChange(ticketId: string): HistoryRow | undefined {
      const { ticketId: ticket, field, id } = ticketHistory
      const wanted = and(eq(ticket, ticketId), eq(field, 'priority'))
      return orm.select().from(ticketHistory).where(wanted).orderBy(asc(id)).limit(1).get()
    },
    /** Resolved tickets in which nothing was written after `until`, the most silent first. */
    listSilent(until: number, limit: number): TicketRow[] {
      const silent = and(eq(tickets.status, 'resolved'), lte(tickets.settledAt, until))
      return orm
        .select()
        .from(tickets)
        .where(silent)
        .orderBy(asc(tickets.settledAt))
        .limit(limit)
        .all()
    },
    /** Whether tickets can be assigned to somebody. */
    isEnabledAdmin(id: string): boolean {
      const admin = and(eq(users.id, id), eq(users.role, 'admin'), isNull(users.disabledAt))
      return orm.select({ id: users.id }).from(users).where(admin).get() !== undefined
    },
    /** Nobody waits for an answer to these tickets any more. */
    endWaiting(userId: string): void {
      const waiting = and(eq(tickets.userId, userId), isNotNull(tickets.waitingSince))
      const queueKey = sql`${notWaiting} - ${tickets.updatedAt}`
      orm.update(tickets).set({ waitingSince: null, queueKey }).where(waiting).run()
    },
  }
}
