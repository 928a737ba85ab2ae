import { and, asc, desc, eq, gt, isNotNull, isNull, lte, max, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { ticketHistory, ticketMessages, tickets, users } from '../../db/schema.ts'

export type TicketRow = typeof tickets.$inferSelect
export type TicketMessageRow = typeof ticketMessages.$inferSelect
export type HistoryRow = typeof ticketHistory.$inferSelect
export type NewTicketRow = Pick<
  TicketRow,
  'id' | 'userId' | 'subject' | 'category' | 'priority' | 'createdAt'
>
/** What of a ticket can change. */
export type TicketChanges = Partial<
  Pick<
    TicketRow,
    | 'status'
    | 'priority'
    | 'assigneeId'
    | 'messageCount'
    | 'waitingSince'
    | 'firstResponseAt'
    | 'settledAt'
    | 'updatedAt'
  >
>

export type TicketStore = ReturnType<typeof createTicketStore>

const value = sql.placeholder
/** More than twice any time: what waits comes before what does not, and what changed last before the rest. */
const notWaiting = 2 ** 52
const exportPart = 50

/** SQL over tickets, their messages and their history. Nothing here reads a note. */
export function createTicketStore(orm: Orm) {
  const byId = orm
    .select()
    .from(tickets)
    .where(eq(tickets.id, value('id')))
    .prepare()
  const insertTicket = orm
    .insert(tickets)
    .values({
      id: value('id'),
      userId: value('userId'),
      userSeq: sql`(SELECT coalesce(max(user_seq), 0) + 1 FROM tickets WHERE user_id = ${value('userId')})`,
      subject: value('subject'),
      status: 'open',
      priority: value('priority'),
      category: value('category'),
      messageCount: 0,
      waitingSince: value('createdAt'),
      queueKey: value('createdAt'),
      createdAt: value('createdAt'),
      updatedAt: value('createdAt'),
    })
    .prepare()
  const updateTicket = orm
    .update(tickets)
    .set({
      status: sql`${value('status')}`,
      priority: sql`${value('priority')}`,
      assigneeId: sql`${value('assigneeId')}`,
      messageCount: sql`${value('messageCount')}`,
      waitingSince: sql`${value('waitingSince')}`,
      firstResponseAt: sql`${value('firstResponseAt')}`,
      settledAt: sql`${value('settledAt')}`,
      updatedAt: sql`${value('updatedAt')}`,
      queueKey: sql`${value('queueKey')}`,
    })
    .where(eq(tickets.id, value('id')))
    .prepare()
  const newestOfUser = orm
    .select({ seq: max(tickets.userSeq) })
    .from(tickets)
    .where(eq(tickets.userId, value('userId')))
    .prepare()
  const ofUser = orm
    .select()
    .from(tickets)
    .where(
      and(
        eq(tickets.userId, value('userId')),
        gt(tickets.userSeq, value('after')),
        lte(tickets.userSeq, value('until')),
      ),
    )
    .orderBy(desc(tickets.userSeq))
    .prepare()
  const insertMessage = orm
    .insert(ticketMessages)
    .values({
      ticketId: value('ticketId'),
      seq: value('seq'),
      id: value('id'),
      authorId: value('authorId'),
      isAdmin: value('isAdmin'),
      body: value('body'),
      clientId: value('clientId'),
      createdAt: value('createdAt'),
    })
    .prepare()
  const messagesOf = orm
    .select()
    .from(ticketMessages)
    .where(eq(ticketMessages.ticketId, value('ticketId')))
    .orderBy(asc(ticketMessages.seq))
    .prepare()
  const messageByClientId = orm
    .select()
    .from(ticketMessages)
    .where(
      and(
        eq(ticketMessages.authorId, value('authorId')),
        eq(ticketMessages.clientId, value('clientId')),
      ),
    )
    .prepare()
  const insertHistory = orm
    .insert(ticketHistory)
    .values({
      id: value('id'),
      ticketId: value('ticketId'),
      at: value('at'),
      actorId: value('actorId'),
      field: value('field'),
      from: value('from'),
      to: value('to'),
    })
    .prepare()
  const silent = orm
    .select()
    .from(tickets)
    .where(and(sql`${tickets.status} = 'resolved'`, lte(tickets.settledAt, value('until'))))
    .orderBy(asc(tickets.settledAt))
    .limit(value('limit'))
    .prepare()

  return {
    find: (id: string): TicketRow | undefined => byId.get({ id }),
    /** Makes a ticket without messages, open, whose owner waits. */
    insert(row: NewTicketRow): void {
      insertTicket.run(row)
    },
    update(ticket: TicketRow, changes: TicketChanges): TicketRow {
      const changed = { ...ticket, ...changes }
      const queueKey = changed.waitingSince ?? notWaiting - changed.updatedAt
      updateTicket.run({ ...changed, queueKey })
      return { ...changed, queueKey }
    },
    /** How many tickets a person has, which is the `userSeq` of the newest. */
    countOfUser: (userId: string): number => newestOfUser.get({ userId })?.seq ?? 0,
    /** A person's tickets with `after` < userSeq ≤ `until`, newest first. */
    listOfUser: (userId: string, after: number, until: number): TicketRow[] =>
      ofUser.all({ userId, after, until }),
    /** Every ticket of a person, oldest first, read in small parts. */
    *eachOfUser(userId: string): Iterable<TicketRow> {
      let part: TicketRow[] = []
      let after = 0
      do {
        part = ofUser.all({ userId, after, until: after + exportPart })
        yield* part.reverse()
        after += exportPart
      } while (part.length === exportPart)
    },
    insertMessage(row: TicketMessageRow): void {
      insertMessage.run({ ...row, isAdmin: Number(row.isAdmin) })
    },
    /** Oldest first. */
    listMessages: (ticketId: string): TicketMessageRow[] => messagesOf.all({ ticketId }),
    /** The message at a place: 1 opened the ticket. */
    findMessageAt(ticketId: string, seq: number): TicketMessageRow | undefined {
      const one = and(eq(ticketMessages.ticketId, ticketId), eq(ticketMessages.seq, seq))
      return orm.select().from(ticketMessages).where(one).get()
    },
    findMessage(ticketId: string, id: string): TicketMessageRow | undefined {
      const { ticketId: ticket, id: message } = ticketMessages
      const wanted = and(eq(ticket, ticketId), eq(message, id))
      return orm.select().from(ticketMessages).where(wanted).get()
    },
    findMessageByClientId: (authorId: string, clientId: string): TicketMessageRow | undefined =>
      messageByClientId.get({ authorId, clientId }),
    insertHistory(row: HistoryRow): void {
      insertHistory.run(row)
    },
    /** The first change of a ticket's priority. */
    findFirstPriorityChange(ticketId: string): HistoryRow | undefined {
      const { ticketId: ticket, field, id } = ticketHistory
      const wanted = and(eq(ticket, ticketId), eq(field, 'priority'))
      return orm.select().from(ticketHistory).where(wanted).orderBy(asc(id)).limit(1).get()
    },
    /** Resolved tickets in which nothing was written after `until`, the most silent first. */
    listSilent: (until: number, limit: number): TicketRow[] => silent.all({ until, limit }),
    /** Whether tickets can be given to somebody. */
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
