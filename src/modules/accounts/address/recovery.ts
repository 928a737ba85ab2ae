import type { Core } from '../../../core.ts'
import { onOneself } from '../../../db/audit-trail.ts'
import { AppError, invalidField } from '../../../lib/errors.ts'
import type { UserPrincipal } from '../../../lib/principal.ts'
import { normalizeEmail } from '../../../lib/text.ts'
import type { AccountParts } from '../account-parts.ts'
import type { PasswordChange, PasswordReset } from '../model.ts'
import { isGuessable, type LoginThrottle } from '../sign-in/passwords.ts'
import type { UserRow } from '../store.ts'

const changesPerHour = 5

/** Absent after a confirmation of the session. */
export type GivenPassword = string | null | undefined

export type Recovery = ReturnType<typeof createRecovery>

type Parts = AccountParts & { throttle: LoginThrottle }

export function createRecovery(core: Core, parts: Parts) {
  const { write, afterCommit, audit, outbox, hub, clock } = core
  const { store, sessionStore, oneTimeTokens, passwords, throttle } = parts
  const { sentMails, queueMail, hashAddress } = parts

  /** The user of a token, who must still have the address that it was mailed to. */
  function holder({ userId, email }: ReturnType<typeof oneTimeTokens.redeem>): UserRow {
    const user = store.find(userId)
    if (user?.email !== email) throw invalidField('token', 'token')
    return user
  }

  /** Marks the address as verified; the role `user` becomes `verified_user`.
   *  @param user the row before this `write` */
  function markVerified(user: UserRow, ip: string) {
    store.update(user.id, { emailBouncedAt: null, emailVerified: true })
    if (!user.emailVerified) {
      oneTimeTokens.revoke('verify_email', user.id)
      if (user.role === 'user') parts.changeAccess(user.id, { role: 'verified_user' })
      audit.record({ action: 'email_verified', ...onOneself(user.id, ip) })
    }
    parts.publishChange(user)
  }

  function setPassword(user: UserRow, passwordHash: string, keptSession?: string) {
    const { id, email } = user
    store.update(id, { passwordHash })
    oneTimeTokens.revoke('reset_password', id)
    // A recovered account must not be lost to a change of address that an intruder requested.
    oneTimeTokens.revoke('change_email', id)
    // Mail only verified addresses: an unverified one may belong to somebody else.
    const isMailed = store.find(id)?.emailVerified && sentMails.take('password_changed', email)
    if (isMailed) queueMail('password_changed_mail', user)
    return sessionStore.revokeAll(id, clock.now(), keptSession)
  }

  /** Checks the user's password. Without a password the pipeline has checked the confirmation of the session.
   *  @throws invalid_credentials · login_throttled · quota_exceeded (10 a minute) */
  async function confirm(principal: UserPrincipal, password: GivenPassword, ip: string) {
    const { userId, sessionId } = principal
    const user = store.own(userId)
    if (typeof password !== 'string') return user
    // Counted per session, so that failed logins of strangers do not block a logged-in user.
    const name = `session:${sessionId}`
    throttle.admitConfirmation(name, ip, userId)
    if (!(await passwords.matches(password, user.passwordHash, 'low'))) {
      await write(() => audit.record({ action: 'password_refused', ...onOneself(userId, ip) }))
      throw new AppError('invalid_credentials')
    }
    throttle.succeeded(name, ip)
    return user
  }

  /** Called in the write after `confirm`, because the password or the session may have changed in between.
   *  @throws session_ended · invalid_credentials */
  function mustStillBeConfirmed(user: UserRow, principal: UserPrincipal): void {
    if (!sessionStore.findPrincipal(principal)) throw new AppError('session_ended')
    if (store.find(user.id)?.passwordHash !== user.passwordHash) {
      throw new AppError('invalid_credentials')
    }
  }

  // Checked before hashing and again in the write, because requests may be concurrent.
  const mustHaveChangesLeft = (userId: string) =>
    audit.mustHaveLeft(userId, 'password_changed', changesPerHour)

  return {
    confirm,
    mustStillBeConfirmed,
    markVerified,

    /** Marks the address that a token was mailed to as verified; the role `user` becomes `verified_user`.
     *  @throws validation_error (`token`: wrong, used, expired, or for a former address) */
    verifyEmail: (token: string, ip: string): Promise<UserRow> =>
      write(() => {
        const user = holder(oneTimeTokens.redeem('verify_email', token))
        markVerified(user, ip)
        return store.find(user.id) ?? user
      }),

    /** Sends the verification mail again, unless the address is verified.
     *  @throws mail_throttled: at most 1 a minute and 5 a day, the first one included */
    async resendVerification(userId: string, ip: string): Promise<void> {
      await write(() => {
        const user = store.own(userId)
        if (user.emailVerified) return
        sentMails.mustTake('verify_email', user.email)
        queueMail('verification_mail', user)
        audit.record({ action: 'verification_mail_requested', ...onOneself(userId, ip) })
      })
    },

    /** Mails a reset link if the address is known. Neither the response nor its duration reveals this: an unknown address
     *  gets the same rows, and their job sends nothing. */
    async forgotPassword(email: string, ip: string): Promise<void> {
      const address = normalizeEmail(email)
      if (address === undefined) return
      await write(() => {
        if (!sentMails.take('reset_password', address)) return
        const userId = store.findByEmail(address)?.id
        const address_hash = hashAddress(address)
        outbox.add('password_reset_mail', { user_id: userId ?? null, address_hash, ip })
      })
    },

    /** Sets a new password, verifies the address and ends every session. If the address was never verified before, removes
     *  what the registrant has set.
     *  @throws validation_error (`token`: wrong, used or expired; `password`: easily guessed, which does not consume the
     *  token) */
    async resetPassword({ token, password }: PasswordReset, ip: string): Promise<void> {
      const owner = holder(oneTimeTokens.check('reset_password', token))
      if (isGuessable(password, owner)) throw invalidField('password', 'guessable_password')
      const passwordHash = await passwords.hash(password)
      await write(() => {
        const user = holder(oneTimeTokens.redeem('reset_password', token))
        if (user.disabledAt !== null) throw invalidField('token', 'token')
        parts.adopt(user, onOneself(user.id, ip))
        // This factor was set up before the address was verified, perhaps by somebody else.
        if (parts.factors.find(user.id)?.isProvisional) {
          parts.removeFactor(user, onOneself(user.id, ip))
        }
        markVerified(user, ip)
        setPassword(user, passwordHash)
        audit.record({ action: 'password_reset', ...onOneself(user.id, ip) })
        afterCommit(() => {
          throttle.succeeded(user.email, ip)
          hub.closeUser(user.id)
        })
      })
    },

    /** Sets a new password and ends the other sessions.
     *  @throws invalid_credentials (wrong current password) · login_throttled · validation_error (`new_password`:
     *  easily guessed) · quota_exceeded (5 an hour) */
    async changePassword(principal: UserPrincipal, change: PasswordChange, ip: string) {
      const { userId, sessionId } = principal
      const { current_password: current, new_password: password } = change
      mustHaveChangesLeft(userId)
      const user = await confirm(principal, current, ip)
      if (isGuessable(password, user)) throw invalidField('new_password', 'guessable_password')
      const passwordHash = await passwords.hash(password, 'low')
      await write(() => {
        mustStillBeConfirmed(user, principal)
        mustHaveChangesLeft(userId)
        audit.record({ action: 'password_changed', ...onOneself(userId, ip) })
        const ended = setPassword(user, passwordHash, sessionId)
        afterCommit(() => {
          for (const id of ended) hub.closeSession(userId, id)
        })
      })
    },
  }
}
