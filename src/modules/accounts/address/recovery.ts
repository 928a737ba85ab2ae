import type { Core } from '../../../core.ts'
import { onOneself } from '../../../db/audit-trail.ts'
import { AppError, invalidField } from '../../../lib/errors.ts'
import type { UserPrincipal } from '../../../lib/principal.ts'
import { normalizeEmail, storedEmail } from '../../../lib/text.ts'
import type { AccountParts } from '../account-parts.ts'
import type { Bans } from '../bans/bans.ts'
import type { EmailChangeBody, PasswordChange, PasswordReset } from '../model.ts'
import { isGuessable } from '../sign-in/passwords.ts'
import type { Sessions } from '../sign-in/sessions.ts'
import { noPassword, type UserRow } from '../store.ts'
import { lifetimeMilliseconds } from './one-time-token-store.ts'

export type Recovery = ReturnType<typeof createRecovery>

type Parts = AccountParts & { bans: Bans; sessions: Sessions }

export function createRecovery(core: Core, parts: Parts) {
  const { write, afterCommit, audit, outbox, hub } = core
  const { store, sessionStore, factors, oneTimeTokens, passwords, throttle } = parts
  const { sessions, sentMails, queueMail, hashAddress, bans } = parts

  /** The user of a token, who must still have the address that it was mailed to. */
  function holder({ userId, email }: ReturnType<typeof oneTimeTokens.redeem>): UserRow {
    const user = store.find(userId)
    if (user?.email !== email) throw invalidField('token', 'token')
    return user
  }

  /** @param user the row before this `write` */
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
    sessionStore.revokeAll(id, keptSession)
  }

  function redeemChange(purpose: 'change_email' | 'undo_email', token: string) {
    const { userId, email, expiresAt } = oneTimeTokens.redeem(purpose, token)
    const user = store.find(userId)
    if (!user || email === null) throw invalidField('token', 'token')
    return { user, email, expiresAt }
  }

  function setEmail(user: UserRow, email: string, ip: string) {
    store.update(user.id, { email })
    const purposes = ['verify_email', 'reset_password', 'change_email', 'confirm'] as const
    for (const purpose of purposes) oneTimeTokens.revoke(purpose, user.id)
    markVerified(user, ip)
  }

  return {
    /** Marks the address that a token was mailed to as verified; the role `user` becomes `verified_user`.
     *  @throws validation_error (`token`: wrong, used, expired, or for a former address) */
    verifyEmail: (token: string, ip: string): Promise<UserRow> =>
      write(() => {
        const user = holder(oneTimeTokens.redeem('verify_email', token))
        markVerified(user, ip)
        return store.own(user.id)
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
        parts.adopt(user, onOneself(user.id, ip))
        // This factor was set up before the address was verified, perhaps by somebody else.
        if (factors.find(user.id)?.isProvisional) {
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
      // Again in the write, because requests may be concurrent.
      audit.mustHaveLeft(userId, 'password_changed')
      const confirmed = await sessions.confirm(principal, current, ip)
      if (isGuessable(password, confirmed)) throw invalidField('new_password', 'guessable_password')
      const passwordHash = await passwords.hash(password, 'low')
      await write(() => {
        const user = sessions.mustStillBeConfirmed(confirmed, principal)
        audit.mustHaveLeft(userId, 'password_changed')
        audit.record({ action: 'password_changed', ...onOneself(userId, ip) })
        setPassword(user, passwordHash, sessionId)
        afterCommit(() => hub.closeUser(userId, (peer) => peer.sessionId === sessionId))
      })
    },

    /** Mails a link to the new address. Only that address learns whether it belongs to an account. A later request replaces
     *  an earlier one.
     *  @throws invalid_credentials (wrong password) · login_throttled · validation_error (`new_email`: the current one)
     *  · banned · mail_throttled (1 a minute and 5 a day to one address) · quota_exceeded (5 an hour) */
    async requestEmailChange(principal: UserPrincipal, body: EmailChangeBody, ip: string) {
      const { userId } = principal
      const email = storedEmail(body.new_email)
      // Again in the write, because requests may be concurrent.
      audit.mustHaveLeft(userId, 'email_change_requested')
      const confirmed = await sessions.confirm(principal, body.password, ip)
      await write(() => {
        const user = sessions.mustStillBeConfirmed(confirmed, principal)
        // A ban of the address must hold for the person.
        for (const address of [user.email, email]) bans.mustNotBeBanned(address, ip)
        if (user.email === email) throw invalidField('new_email', 'nothing_to_change')
        audit.mustHaveLeft(userId, 'email_change_requested')
        sentMails.mustTake('change_email', email)
        oneTimeTokens.revoke('change_email', userId)
        // This token is never sent: it marks the change as pending until the job issues the mailed one. Revoking it stops
        // the mail.
        oneTimeTokens.issue('change_email', { id: userId, email })
        queueMail('email_change_mail', { id: userId, email })
        audit.record({ action: 'email_change_requested', ...onOneself(userId, ip) })
      })
    },

    /** Sets the address that the token was mailed to, as verified, and mails the former address if that was verified. A
     *  change back to a former address revokes the links that undo the changes since.
     *  @throws validation_error (`token`: wrong, used, expired or revoked) · banned · email_taken (since the request) */
    confirmEmail: (token: string, ip: string): Promise<UserRow> =>
      write(() => {
        const { user, email } = redeemChange('change_email', token)
        const former = user.email
        for (const address of [former, email]) bans.mustNotBeBanned(address, ip)
        if (parts.isTaken(email, user.id)) throw new AppError('email_taken')
        const changes = oneTimeTokens.list('undo_email', user.id)
        const undone = changes.find((change) => change.email === email)
        setEmail(user, email, ip)
        oneTimeTokens.revokeUndo(user.id, undone ?? { email })
        // An unverified former address may be somebody else's, so it cannot undo the change, nor can one that was just
        // changed back.
        if (user.emailVerified && !undone) {
          // This token is not sent: it reserves the former address from this commit on.
          oneTimeTokens.issue('undo_email', { id: user.id, email: former })
          queueMail('email_changed_mail', user)
        }
        audit.record({ action: 'email_changed', ...onOneself(user.id, ip) })
        return store.own(user.id)
      }),

    /** Restores the former address as verified, because the account may be in other hands: ends every session, removes the
     *  password and a second factor enabled after the change, and mails a link for a new password. Later changes can no
     *  longer be undone.
     *  @throws validation_error (`token`: wrong, used or expired) */
    undoEmailChange: (token: string, ip: string): Promise<void> =>
      write(() => {
        const { user, email, expiresAt } = redeemChange('undo_email', token)
        oneTimeTokens.revokeUndo(user.id, { email, expiresAt })
        setEmail(user, email, ip)
        store.update(user.id, { passwordHash: noPassword })
        const changedAt = expiresAt - lifetimeMilliseconds.undo_email
        const factorSince = factors.find(user.id)?.confirmedAt ?? 0
        const owner = store.own(user.id)
        if (factorSince >= changedAt) parts.removeFactor(owner, onOneself(user.id, ip))
        sessionStore.revokeAll(user.id)
        queueMail('password_reset_mail', { id: user.id, email })
        audit.record({ action: 'email_change_undone', ...onOneself(user.id, ip) })
        afterCommit(() => hub.closeUser(user.id))
      }),
  }
}
