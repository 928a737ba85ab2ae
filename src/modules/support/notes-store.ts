import { asc, eq, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { ticketHistory, ticketNotes, users } from '../../db/schema.ts'

export type NoteRow = typeof ticketNotes.$inferSelect
export type NoteItem = ReturnType<NotesStore['list']>[number]
export type HistoryItem = ReturnType<NotesStore['listHistory']>[number]

export type NotesStore = ReturnType<typeof createNotesStore>

/** SQL over what only the desk sees of a ticket: notes, and who changed what. Only the desk's service has it. */
export function createNotesStore(orm: Orm) {
  const { id, displayName } = users
  const notes = orm
    .select({
      id: ticketNotes.id,
      body: ticketNotes.body,
      createdAt: ticketNotes.createdAt,
      author: { id, displayName },
    })
    .from(ticketNotes)
    .innerJoin(users, eq(id, ticketNotes.authorId))
    .where(eq(ticketNotes.ticketId, sql.placeholder('ticketId')))
    .orderBy(asc(ticketNotes.id))
    .prepare()
  const history = orm
    .select({
      id: ticketHistory.id,
      at: ticketHistory.at,
      field: ticketHistory.field,
      from: ticketHistory.from,
      to: ticketHistory.to,
      actor: { id, displayName },
    })
    .from(ticketHistory)
    .leftJoin(users, eq(id, ticketHistory.actorId))
    .where(eq(ticketHistory.ticketId, sql.placeholder('ticketId')))
    .orderBy(asc(ticketHistory.id))
    .prepare()

  return {
    insert(row: NoteRow): void {
      orm.insert(ticketNotes).values(row).run()
    },
    findAuthor(userId: string) {
      return orm.select({ id, displayName }).from(users).where(eq(id, userId)).get()
    },
    /** Oldest first. */
    list: (ticketId: string) => notes.all({ ticketId }),
    /** Oldest first. */
    listHistory: (ticketId: string) => history.all({ ticketId }),
  }
}
