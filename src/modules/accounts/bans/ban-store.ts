import { and, eq, isNull } from 'drizzle-orm'
import type { Orm } from '../../../db/open.ts'
import { bans, sessions } from '../../../db/schema.ts'
import { listById } from '../../../db/statements.ts'
import type { RetentionRule } from '../../../jobs/retention.ts'
import type { Listing, ListRange } from '../../../lib/list-range.ts'
import type { BanKind } from '../../../lib/vocabulary.ts'

export type BanRow = typeof bans.$inferSelect
type OpenSession = { id: string; userId: string; ip: string | null }

export function createBanStore(orm: Orm) {
  const openSessions = orm.$client.prepare<OpenSession, [string, number]>(
    `SELECT id, user_id AS userId, ip FROM sessions WHERE id > ? AND revoked_at IS NULL ORDER BY id LIMIT ?`,
  )
  return {
    listAll: (): BanRow[] => orm.select().from(bans).all(),
    /** A ban of the same value takes the new reason and end. */
    upsert(row: BanRow): BanRow {
      const { reason, until } = row
      return orm
        .insert(bans)
        .values(row)
        .onConflictDoUpdate({ target: [bans.kind, bans.value], set: { reason, until } })
        .returning()
        .get()
    },
    delete: (id: string): BanRow | undefined =>
      orm.delete(bans).where(eq(bans.id, id)).returning().get(),
    list: (
      kind: BanKind | undefined,
      value: string | undefined,
      range: ListRange,
    ): Listing<BanRow> =>
      listById(orm, range, {
        id: bans.id,
        which: and(
          kind === undefined ? undefined : eq(bans.kind, kind),
          value === undefined ? undefined : eq(bans.value, value),
        ),
      }),
    /** The addresses of a user’s open sessions. */
    listAddresses: (userId: string): string[] =>
      orm
        .select({ ip: sessions.ip })
        .from(sessions)
        .where(and(eq(sessions.userId, userId), isNull(sessions.revokedAt)))
        .all()
        .flatMap(({ ip }) => ip ?? []),
    listOpenSessions: (after: string, limit: number): OpenSession[] =>
      openSessions.all(after, limit),
  }
}

export const banRetention: RetentionRule = { key: [bans.id], time: bans.until, days: 30 }
