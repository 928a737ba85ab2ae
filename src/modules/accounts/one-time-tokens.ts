import { createHash, randomBytes } from 'node:crypto'
import type { Clock } from '../../lib/clock.ts'
import { invalidField } from '../../lib/errors.ts'
import type { TokenPurpose } from '../../lib/vocabulary.ts'
import type { OneTimeTokenRow, TokenStore } from './token-store.ts'

const lifetimeMilliseconds: Record<TokenPurpose, number> = {
  verify_email: 24 * 3_600_000,
  reset_password: 30 * 60_000,
  set_up: 30 * 60_000,
}

export type OneTimeTokens = ReturnType<typeof createOneTimeTokens>

/** Links that work once: 256 random bits of which only the hash is kept. Every function is SQL for inside a `write`. */
export function createOneTimeTokens({ store, clock }: { store: TokenStore; clock: Clock }) {
  return {
    /** @returns the token, which is nowhere else */
    issue(purpose: TokenPurpose, holder?: { userId: string; email: string }): string {
      const token = randomBytes(32).toString('base64url')
      const expiresAt = clock.now() + lifetimeMilliseconds[purpose]
      const { userId = null, email = null } = holder ?? {}
      store.insert({ hash: hashOf(token), purpose, userId, email, expiresAt })
      return token
    },
    /** @throws validation_error (`token`) for one that could not be redeemed; does not use it up */
    check(purpose: TokenPurpose, token: string): void {
      if (!store.isLive(hashOf(token), purpose, clock.now())) throw invalidField('token', 'token')
    },
    /** Uses a token up.
     *  @throws validation_error (`token`) when it is wrong, used or expired */
    redeem(purpose: TokenPurpose, token: string): OneTimeTokenRow {
      const row = store.take(hashOf(token), purpose, clock.now())
      if (!row) throw invalidField('token', 'token')
      return row
    },
    /** Makes what is left of a user's tokens of a kind useless. */
    revoke: (userId: string, purpose: TokenPurpose) => store.deleteOfUser(userId, purpose),
    revokeAll: (purpose: TokenPurpose) => store.deleteOfPurpose(purpose),
  }
}

function hashOf(token: string) {
  return createHash('sha256').update(token).digest('hex')
}
