import {
  and,
  asc,
  desc,
  eq,
  getTableColumns,
  gt,
  isNotNull,
  isNull,
  lt,
  lte,
  type SQL,
  sql,
} from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { ticketHistory, ticketMessages, ticketNotes, tickets, users } from '../../db/schema.ts'
import {
  countRows,
  eachRow,
  hasRow,
  lazyStatements,
  prepareInsert,
  rowsOf,
  selectList,
} from '../../db/statements.ts'
import { lazy } from '../../lib/lazy.ts'
import {
  cutAtLimit,
  type Listing,
  type ListRange,
  listByNumber,
  type RowRange,
} from '../../lib/list-range.ts'
import type { MessagesShown, TicketContent } from './model.ts'

export type TicketRow = typeof tickets.$inferSelect
export type AuthoredMessage = TicketMessageRow & { authorName: string }
export type TicketMessageRow = typeof ticketMessages.$inferSelect
export type HistoryRow = typeof ticketHistory.$inferSelect
/** Open and unassigned if it does not say otherwise. */
export type NewTicketRow = TicketContent &
  Pick<TicketRow, 'id' | 'userId' | 'createdAt'> &
  Partial<Pick<TicketRow, 'status' | 'assigneeId'>>
/** The two times are required because they determine its position in the queue. */
type TicketChanges = Partial<TicketRow> & Pick<TicketRow, 'waitingSince' | 'updatedAt'>

export type TicketStore = ReturnType<typeof createTicketStore>

const value = sql.placeholder
const maxShown = 200
/** Larger than every time in ms. In the desk's order, the keys of waiting tickets are below it, the others above. */
export const waitingUntil = 2 ** 51
const notWaiting = 2 * waitingUntil

/** Owners read through it, so it never reads notes. */
export function createTicketStore(orm: Orm) {
  const sqlite = orm.$client
  const statement = lazyStatements(sqlite)
  const columns = selectList(tickets)
  const rows = rowsOf(orm, tickets)
  const newestOfUser = statement<{ seq: number | null }, [string]>(
    'SELECT max(user_seq) AS seq FROM tickets WHERE user_id = ?',
  )
  const ofUser = statement<TicketRow, [string, number, number, number]>(
    `SELECT ${columns} FROM tickets WHERE user_id = ? AND user_seq < ? ORDER BY user_seq DESC LIMIT ? OFFSET ?`,
  )
  const ofUserAfter = statement<TicketRow, [string, number, number]>(
    `SELECT ${columns} FROM tickets WHERE user_id = ? AND user_seq > ? ORDER BY user_seq LIMIT ?`,
  )
  const openedBy = statement<Pick<TicketRow, 'createdAt'>, [string, number]>(
    `SELECT tickets.created_at AS createdAt FROM tickets
     JOIN ticket_messages ON ticket_id = tickets.id AND seq = 1 AND NOT is_admin
     WHERE user_id = ? ORDER BY user_seq DESC LIMIT 1 OFFSET ?`,
  )
  const settled = statement<TicketRow, ['resolved' | 'closed', number, number]>(
    `SELECT ${columns} FROM tickets WHERE status = ? AND settled_at <= ? ORDER BY settled_at LIMIT ?`,
  )
  const messagesOf = lazy(() => {
    const { ticketId, seq, authorId } = ticketMessages
    const ofTicket = eq(ticketId, value('ticketId'))
    const authorName = sql<string>`(SELECT ${users.displayName} FROM ${users} WHERE ${users.id} = ${authorId})`
    return orm
      .select({ ...getTableColumns(ticketMessages), authorName })
      .from(ticketMessages)
      .where(and(ofTicket, gt(seq, value('after')), lte(seq, value('until'))))
      .orderBy(desc(seq))
      .prepare()
  })

  const ofTicket = (ticketId: string) => eq(ticketMessages.ticketId, ticketId)
  const selectMessages = (which: SQL | undefined) => orm.select().from(ticketMessages).where(which)

  /** Messages with `after` < seq ≤ `until`, newest first. */
  const listMessages = (ticketId: string, after: number, until: number): AuthoredMessage[] =>
    messagesOf().all({ ticketId, after, until })

  return {
    find: rows.find,
    insert(row: NewTicketRow): TicketRow {
      const { userId, createdAt } = row
      const userSeq = (newestOfUser().get(userId)?.seq ?? 0) + 1
      const times = { waitingSince: createdAt, updatedAt: createdAt, queueKey: createdAt }
      return rows.insert({ status: 'open', ...row, userSeq, messageCount: 0, ...times })
    },
    update(id: string, changes: TicketChanges): TicketRow {
      const queueKey = changes.waitingSince ?? notWaiting - changes.updatedAt
      return rows.update(id, { ...changes, queueKey })
    },
    /** @returns the ids of the messages and notes with files */
    delete({ n, id }: TicketRow): string[] {
      const texts = [ticketMessages, ticketNotes].flatMap((table) =>
        orm
          .delete(table)
          .where(eq(table.ticketId, id))
          .returning({ id: table.id, attachments: table.attachments })
          .all(),
      )
      orm.delete(ticketHistory).where(eq(ticketHistory.ticketId, id)).run()
      rows.delete(id)
      sqlite.run('DELETE FROM ticket_search WHERE rowid = ?', [n])
      return texts.filter(({ attachments }) => attachments !== null).map((text) => text.id)
    },
    countOfUser: (userId: string): number => countRows(orm, tickets, eq(tickets.userId, userId)),
    /** A user's tickets, newest first. `before` is a `userSeq`. */
    listOfUser: (userId: string, { limit, offset, before }: RowRange<number>): TicketRow[] =>
      ofUser().all(userId, before ?? Number.MAX_SAFE_INTEGER, limit, offset),
    /** The tickets that the desk opened do not count. */
    findOpenedBefore: (userId: string, count: number) => openedBy().get(userId, count) ?? undefined,
    /** The first closed first. */
    listOld: (closedBefore: number, limit: number): TicketRow[] =>
      settled().all('closed', closedBefore - 1, limit),
    countOld(closedBefore: number): number {
      const old = and(eq(tickets.status, 'closed'), lt(tickets.settledAt, closedBefore))
      return countRows(orm, tickets, old)
    },
    /** Oldest first. */
    eachOfUser: (userId: string) =>
      eachRow<TicketRow>((last, limit) => ofUserAfter().all(userId, last?.userSeq ?? 0, limit)),
    insertMessage: prepareInsert(sqlite, ticketMessages),
    listMessages,
    /** The newest messages of a ticket, oldest first, and the cursor of the earlier ones. */
    listNewest({ id, messageCount }: TicketRow): MessagesShown {
      const newest = listMessages(id, messageCount - maxShown - 1, messageCount)
      const cut = cutAtLimit(newest, maxShown, ({ seq }) => [id, seq])
      return { messages: cut.rows.reverse(), before: cut.cursor }
    },
    /** Messages of a ticket, newest first. */
    listRange: ({ id, messageCount }: TicketRow, range: ListRange): Listing<AuthoredMessage> =>
      listByNumber(range, {
        name: id,
        last: messageCount,
        list: (after, until) => listMessages(id, after, until),
        numberOf: ({ seq }) => seq,
      }),
    findMessageAt: (ticketId: string, seq: number) =>
      selectMessages(and(ofTicket(ticketId), eq(ticketMessages.seq, seq))).get(),
    findUnanswered(ticketId: string) {
      const newestReply = orm
        .select({ seq: sql`coalesce(max(${ticketMessages.seq}), 0)` })
        .from(ticketMessages)
        .where(and(ofTicket(ticketId), eq(ticketMessages.isAdmin, true)))
      const unanswered = and(ofTicket(ticketId), gt(ticketMessages.seq, newestReply))
      return selectMessages(unanswered).orderBy(asc(ticketMessages.seq)).limit(1).get()
    },
    findMessage: (ticketId: string, id: string) =>
      selectMessages(and(ofTicket(ticketId), eq(ticketMessages.id, id))).get(),
    findMessageByClientId(authorId: string, clientId: string) {
      const own = and(eq(ticketMessages.authorId, authorId), eq(ticketMessages.clientId, clientId))
      return selectMessages(own).get()
    },
    insertHistory: prepareInsert(sqlite, ticketHistory),
    findFirstChange(ticketId: string, of: HistoryRow['field']): HistoryRow | undefined {
      const { ticketId: ticket, field, id } = ticketHistory
      const wanted = and(eq(ticket, ticketId), eq(field, of))
      return orm.select().from(ticketHistory).where(wanted).orderBy(asc(id)).limit(1).get()
    },
    /** Longest silence first. */
    listSilent: (until: number, limit: number): TicketRow[] =>
      settled().all('resolved', until, limit),
    /** Longest due first. */
    listInboxDue(limit: number): TicketRow[] {
      const { inboxDueAt: due } = tickets
      return orm.select().from(tickets).where(isNotNull(due)).orderBy(asc(due)).limit(limit).all()
    },
    /** Records the mail to the inbox, unless the ticket has a newer message. */
    updateInboxMailed({ id, messageCount }: TicketRow): void {
      const asItWas = and(eq(tickets.id, id), eq(tickets.messageCount, messageCount))
      orm.update(tickets).set({ inboxDueAt: null }).where(asItWas).run()
    },
    updateAssigneeMailed(id: string, assigneeMailedAt: number): void {
      rows.update(id, { assigneeMailedAt })
    },
    isVerified: (id: string): boolean =>
      hasRow(orm, users, and(eq(users.id, id), eq(users.emailVerified, true))),
    findEnabledAdmin(id: string) {
      const admin = and(eq(users.id, id), eq(users.role, 'admin'), isNull(users.disabledAt))
      const { email, locale, displayName, quietHours } = users
      const columns = { id: users.id, email, locale, displayName, quietHours }
      return orm.select(columns).from(users).where(admin).get()
    },
    listWaiting(userId: string, limit: number): TicketRow[] {
      const waiting = and(eq(tickets.userId, userId), lt(tickets.queueKey, waitingUntil))
      return orm.select().from(tickets).where(waiting).limit(limit).all()
    },
  }
}
