import { type AuditTrail, onOneself } from '../../db/audit-trail.ts'
import type { Write } from '../../db/writer.ts'
import type { Outbox } from '../../jobs/outbox.ts'
import type { Clock } from '../../lib/clock.ts'
import { AppError, invalidField } from '../../lib/errors.ts'
import { normalizeEmail } from '../../lib/text.ts'
import type { LoginThrottle } from './login-throttle.ts'
import type { OneTimeTokens } from './one-time-tokens.ts'
import type { Passwords } from './passwords.ts'
import type { SessionStore } from './session-store.ts'
import type { Caller } from './sessions.ts'
import type { AccountStore, UserRow } from './store.ts'

const minute = 60_000
const day = 24 * 60 * minute
const mailsPerDay = 5
const longestPause = 60 * minute

export type RecoveryService = ReturnType<typeof createRecoveryService>

type RecoveryServiceOptions = {
  store: AccountStore
  sessions: SessionStore
  tokens: OneTimeTokens
  passwords: Passwords
  throttle: LoginThrottle
  audit: AuditTrail
  outbox: Outbox
  write: Write
  clock: Clock
  closeUser: (userId: string) => void
  closeSession: (userId: string, sessionId: string) => void
}

/** E-mail verification and passwords (decisions 3). */
export function createRecoveryService(options: RecoveryServiceOptions) {
  const { store, sessions, tokens, passwords, throttle, audit, outbox, write, clock } = options

  function setPassword(user: UserRow, passwordHash: string, keptSession?: string): string[] {
    store.updatePasswordHash(user.id, passwordHash)
    tokens.revoke(user.id, 'reset_password')
    outbox.add('password_changed_mail', { user_id: user.id, email: user.email })
    return sessions.revokeOthers(user.id, keptSession, clock.now())
  }

  return {
    /** Counts the address that a token was mailed to as verified; a user becomes a verified_user.
     *  @throws validation_error (`token`: wrong, used, expired, or for an address of before) */
    async verifyEmail(token: string, ip: string): Promise<UserRow> {
      const { user, isPromoted } = await write(() => {
        const { userId, email } = tokens.redeem('verify_email', token)
        const user = userId === null ? undefined : store.find(userId)
        if (!user || user.email !== email) throw invalidField('token', 'token')
        const isPromoted = user.role === 'user'
        tokens.revoke(user.id, 'verify_email')
        store.updateVerified(user.id, true)
        if (isPromoted) store.updateRole(user.id, 'verified_user', clock.now())
        audit.record({ action: 'email_verified', ...onOneself(user.id, ip) })
        return { user: store.find(user.id) ?? user, isPromoted }
      })
      if (isPromoted) options.closeUser(user.id)
      return user
    },

    /** Has the verification mail sent again; nothing happens for an address that is verified.
     *  @throws rate_limited: at most 1 a minute and 5 a day, the first one included */
    async resendVerification(userId: string, ip: string): Promise<void> {
      await write(() => {
        const user = store.find(userId)
        if (!user || user.emailVerified) return
        const { times, lastAt } = audit.recent(userId, 'verification_mail_requested', day)
        const wait = times >= mailsPerDay ? minute * 60 : lastAt + minute - clock.now()
        if (times > 0 && wait > 0) {
          throw new AppError('rate_limited', { retryAfterSeconds: Math.ceil(wait / 1_000) })
        }
        outbox.add('verification_mail', { user_id: userId, email: user.email })
        audit.record({ action: 'verification_mail_requested', ...onOneself(userId, ip) })
      })
    },

    /** Has a reset link mailed if the address is known. The answer tells nothing about that, nor about mails that come
     *  too fast: the pause between them grows from a minute to an hour. */
    async forgotPassword(email: string, ip: string): Promise<void> {
      const address = normalizeEmail(email)
      await write(() => {
        const user = address === undefined ? undefined : store.findByEmail(address)
        if (!user || user.disabledAt !== null) return
        const { times, lastAt } = audit.recent(user.id, 'password_reset_requested', day)
        const pause = Math.min(longestPause, minute * 4 ** (times - 1))
        if (times > 0 && lastAt + pause > clock.now()) return
        audit.record({ action: 'password_reset_requested', ...onOneself(user.id, ip) })
        outbox.add('password_reset_mail', { user_id: user.id, email: user.email })
      })
    },

    /** Sets a new password and ends every session.
     *  @throws validation_error (`token`: wrong, used or expired) */
    async resetPassword(token: string, password: string, ip: string): Promise<void> {
      tokens.check('reset_password', token)
      const passwordHash = await passwords.hash(password)
      const userId = await write(() => {
        const row = tokens.redeem('reset_password', token)
        const user = row.userId === null ? undefined : store.find(row.userId)
        const isHolder = user?.email === row.email && user.disabledAt === null
        if (!isHolder) throw invalidField('token', 'token')
        setPassword(user, passwordHash)
        audit.record({ action: 'password_reset', ...onOneself(user.id, ip) })
        return user.id
      })
      options.closeUser(userId)
    },

    /** Sets a new password and ends the other sessions.
     *  @throws invalid_credentials (the current password is wrong) · rate_limited (too many wrong ones) */
    async changePassword(caller: Caller, current: string, next: string): Promise<void> {
      const user = await confirm(caller, current)
      const passwordHash = await passwords.hash(next)
      const ended = await write(() => {
        stillConfirmed(user, caller)
        audit.record({ action: 'password_changed', ...onOneself(user.id, caller.ip) })
        return setPassword(user, passwordHash, caller.sessionId)
      })
      for (const id of ended) options.closeSession(user.id, id)
    },

    confirm,
    stillConfirmed,
  }

  /** The user, when the password is theirs.
   *  @throws invalid_credentials · rate_limited (too many wrong ones) */
  async function confirm({ userId, ip }: Caller, password: string): Promise<UserRow> {
    const user = store.find(userId)
    if (!user) throw new AppError('unauthorized')
    throttle.admit(user.email)
    if (!(await passwords.matches(password, user.passwordHash))) {
      await write(() => audit.record({ action: 'password_refused', ...onOneself(userId, ip) }))
      throw new AppError('invalid_credentials')
    }
    throttle.succeeded(user.email)
    return user
  }

  /** For inside the write that follows a `confirm`: meanwhile the password or the session may have gone.
   *  @throws unauthorized · invalid_credentials */
  function stillConfirmed(user: UserRow, { userId, sessionId }: Caller): void {
    if (!store.findAccess(userId, sessionId)) throw new AppError('unauthorized')
    if (store.find(userId)?.passwordHash !== user.passwordHash) {
      throw new AppError('invalid_credentials')
    }
  }
}
