import { max } from 'drizzle-orm'
import type { Orm } from './client.ts'
import {
  auditLog,
  broadcasts,
  conversations,
  messages,
  sessions,
  ticketMessages,
  tickets,
  users,
} from './schema.ts'

/** The newest id that an earlier process made, as far as an index tells it; undefined in an empty database. */
export function findNewestId(orm: Orm): string | undefined {
  const tables = [
    auditLog,
    broadcasts,
    conversations,
    messages,
    sessions,
    ticketMessages,
    tickets,
    users,
  ]
  const newest = tables.flatMap((table) => {
    const found = orm
      .select({ id: max(table.id) })
      .from(table)
      .get()
    return found?.id ?? []
  })
  return newest.sort().at(-1)
}
