import { randomBytes, randomInt } from 'node:crypto'
import { and, eq, gt, gte, ne, or, sql } from 'drizzle-orm'
import type { Core } from '../../../core.ts'
import { oneTimeTokens } from '../../../db/schema.ts'
import { hasRow } from '../../../db/statements.ts'
import { day, minute } from '../../../lib/clock.ts'
import { invalidField } from '../../../lib/errors.ts'
import { sha256 } from '../../../lib/hash.ts'
import type { UserPrincipal } from '../../../lib/principal.ts'
import type { TokenPurpose } from '../../../lib/vocabulary.ts'

export const lifetimeMilliseconds: Record<TokenPurpose, number> = {
  verify_email: day,
  reset_password: 30 * minute,
  set_up: 30 * minute,
  change_email: day,
  undo_email: 7 * day,
  confirm: 10 * minute,
}

/** A code is one of a million, so it is void after this many wrong attempts. */
const maxFailures = 5

/** Tokens of one-time links (256 random bits) and mailed codes (six digits), of which only the hash is stored. Call
 *  changes inside a `write`. */
export function createOneTimeTokens({ orm, clock }: Core) {
  const live = (purpose: TokenPurpose, token: string) =>
    and(
      eq(oneTimeTokens.hash, sha256(token)),
      eq(oneTimeTokens.purpose, purpose),
      gt(oneTimeTokens.expiresAt, clock.now()),
    )

  /** Null for tokens without a user. */
  const own = (purpose: TokenPurpose, userId: string | null) =>
    and(sql`${oneTimeTokens.userId} IS ${userId}`, eq(oneTimeTokens.purpose, purpose))

  return {
    issue(
      purpose: TokenPurpose,
      holder?: { id: string; email: string },
      expiresAt = clock.now() + lifetimeMilliseconds[purpose],
    ): string {
      const token = randomBytes(32).toString('base64url')
      const { id: userId = null, email = null } = holder ?? {}
      const row = { hash: sha256(token), purpose, userId, email, expiresAt }
      orm.insert(oneTimeTokens).values(row).run()
      return token
    },
    /** Finds the row of a token without consuming it.
     *  @throws validation_error (`token`) when it is wrong, used or expired */
    check(purpose: TokenPurpose, token: string) {
      const row = orm.select().from(oneTimeTokens).where(live(purpose, token)).get()
      if (!row) throw invalidField('token', 'token')
      return row
    },
    /** @throws validation_error (`token`) when it is wrong, used or expired */
    redeem(purpose: TokenPurpose, token: string) {
      const row = orm.delete(oneTimeTokens).where(live(purpose, token)).returning().get()
      if (!row) throw invalidField('token', 'token')
      return row
    },
    /** Replaces an earlier code. */
    issueCode({ id: userId, email }: { id: string; email: string }, sessionId: string): string {
      const code = String(randomInt(1_000_000)).padStart(6, '0')
      this.revoke('confirm', userId)
      const expiresAt = clock.now() + lifetimeMilliseconds.confirm
      const hash = codeHash(sessionId, code)
      orm.insert(oneTimeTokens).values({ hash, purpose: 'confirm', userId, email, expiresAt }).run()
      return code
    },
    /** False also for a code of another session. The fifth failure voids the code. */
    redeemCode({ userId, sessionId }: UserPrincipal, text: string): boolean {
      const { expiresAt, failures } = oneTimeTokens
      const row = orm
        .update(oneTimeTokens)
        .set({ failures: sql`${failures} + 1` })
        .where(and(own('confirm', userId), gt(expiresAt, clock.now())))
        .returning()
        .get()
      const isMatch = row?.hash === codeHash(sessionId, text.replace(/\s/g, ''))
      if (row && (isMatch || row.failures >= maxFailures)) this.revoke('confirm', userId)
      return isMatch
    },
    /** The addresses of a user's live tokens; `expiresAt` in ms since the epoch. */
    list(purpose: TokenPurpose, userId: string): { email: string; expiresAt: number }[] {
      const { email, expiresAt } = oneTimeTokens
      const rows = orm
        .select({ email: sql<string>`${email}`, expiresAt })
        .from(oneTimeTokens)
        .where(and(own(purpose, userId), gt(expiresAt, clock.now())))
        .all()
      // An address may have several tokens, one for each mail.
      return [...new Map(rows.map((row) => [row.email, row])).values()]
    },
    isReserved(email: string, userId = ''): boolean {
      // The purpose must be a literal: the partial index holds only these tokens.
      const reserved = sql`${oneTimeTokens.purpose} = 'undo_email'`
      const { email: address, userId: owner, expiresAt } = oneTimeTokens
      const byOther = and(eq(address, email), ne(owner, userId), gt(expiresAt, clock.now()))
      return hasRow(orm, oneTimeTokens, and(reserved, byOther))
    },
    /** Revokes a user's undo tokens for `email`, and those that expire at `expiresAt` or later. */
    revokeUndo(userId: string, change: { email: string; expiresAt?: number }): void {
      const { email, expiresAt } = oneTimeTokens
      const since = change.expiresAt === undefined ? undefined : gte(expiresAt, change.expiresAt)
      orm
        .delete(oneTimeTokens)
        .where(and(own('undo_email', userId), or(eq(email, change.email), since)))
        .run()
    },
    deleteOfUser(userId: string): void {
      orm.delete(oneTimeTokens).where(eq(oneTimeTokens.userId, userId)).run()
    },
    revoke(purpose: TokenPurpose, userId: string | null): void {
      orm.delete(oneTimeTokens).where(own(purpose, userId)).run()
    },
  }
}

const codeHash = (sessionId: string, code: string) => sha256(`${sessionId} ${code}`)
