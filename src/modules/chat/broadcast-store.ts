import { and, eq, gt, isNull, ne, or } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { broadcasts, users } from '../../db/schema.ts'
import { eachOf, hasRow, listColumn, rowsOf } from '../../db/statements.ts'

export type BroadcastRow = typeof broadcasts.$inferSelect
export type BroadcastStore = ReturnType<typeof createBroadcastStore>

export function createBroadcastStore(orm: Orm) {
  const rows = rowsOf(orm, broadcasts)

  return {
    ...rows,
    maySend(senderId: string): boolean {
      const isHost = and(eq(users.role, 'host'), eq(users.emailVerified, true))
      const isSender = and(eq(users.id, senderId), isNull(users.disabledAt))
      return hasRow(orm, users, and(isSender, or(isHost, eq(users.role, 'admin'))))
    },
    findByClientId(senderId: string, clientId: string): BroadcastRow | undefined {
      const own = and(eq(broadcasts.senderId, senderId), eq(broadcasts.clientId, clientId))
      return orm.select().from(broadcasts).where(own).get()
    },
    purge(senderId: string, limit: number, after = '') {
      const { id, senderId: sender, body } = broadcasts
      const next = and(eq(sender, senderId), gt(id, after), ne(body, ''))
      const ids = listColumn(orm, id, next, { limit, sorted: true })
      for (const one of ids) rows.update(one, { body: '' })
      const last = ids.at(-1)
      return last === undefined ? undefined : { last, count: ids.length }
    },
    eachSentBy: (senderId: string) =>
      eachOf(orm, broadcasts, 'id', eq(broadcasts.senderId, senderId)),
  }
}
