import { and, eq, gt } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { oneTimeTokens } from '../../db/schema.ts'
import type { TokenPurpose } from '../../lib/vocabulary.ts'

export type OneTimeTokenRow = typeof oneTimeTokens.$inferSelect
export type TokenStore = ReturnType<typeof createTokenStore>

/** SQL over one-time tokens. */
export function createTokenStore(orm: Orm) {
  const live = (hash: string, purpose: TokenPurpose, now: number) =>
    and(
      eq(oneTimeTokens.hash, hash),
      eq(oneTimeTokens.purpose, purpose),
      gt(oneTimeTokens.expiresAt, now),
    )

  return {
    insert(row: OneTimeTokenRow) {
      orm.insert(oneTimeTokens).values(row).run()
    },
    isLive: (hash: string, purpose: TokenPurpose, now: number): boolean =>
      orm
        .select()
        .from(oneTimeTokens)
        .where(live(hash, purpose, now))
        .get() !== undefined,
    /** Takes a live token out of the table: it works once. */
    take(hash: string, purpose: TokenPurpose, now: number): OneTimeTokenRow | undefined {
      return orm
        .delete(oneTimeTokens)
        .where(live(hash, purpose, now))
        .returning()
        .all()[0]
    },
    deleteOfUser(userId: string, purpose: TokenPurpose) {
      const own = and(eq(oneTimeTokens.userId, userId), eq(oneTimeTokens.purpose, purpose))
      orm.delete(oneTimeTokens).where(own).run()
    },
    deleteOfPurpose(purpose: TokenPurpose) {
      orm.delete(oneTimeTokens).where(eq(oneTimeTokens.purpose, purpose)).run()
    },
  }
}
