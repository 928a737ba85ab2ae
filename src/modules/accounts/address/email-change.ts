import type { Core } from '../../../core.ts'
import { onOneself } from '../../../db/audit-trail.ts'
import { AppError, invalidField } from '../../../lib/errors.ts'
import type { UserPrincipal } from '../../../lib/principal.ts'
import { storedEmail } from '../../../lib/text.ts'
import type { AccountParts } from '../account-parts.ts'
import type { Bans } from '../bans/bans.ts'
import type { EmailChangeBody } from '../model.ts'
import { noPassword, type UserRow } from '../store.ts'
import { lifetimeMilliseconds } from './one-time-token-store.ts'
import type { Recovery } from './recovery.ts'

const requestsPerHour = 5

export type EmailChange = ReturnType<typeof createEmailChange>

type Parts = AccountParts & { recovery: Recovery; bans: Bans }

/** Changes of the e-mail address: a link to the new address confirms one, a link to the former address undoes it. */
export function createEmailChange(core: Core, parts: Parts) {
  const { write, afterCommit, audit, hub, clock } = core
  const { store, sessionStore, factors, oneTimeTokens, sentMails, queueMail, recovery, bans } =
    parts

  function redeem(purpose: 'change_email' | 'undo_email', token: string) {
    const { userId, email, expiresAt } = oneTimeTokens.redeem(purpose, token)
    const user = store.find(userId)
    if (!user || email === null) throw invalidField('token', 'token')
    return { user, email, expiresAt }
  }

  /** Sets the address, which the token has verified, and revokes the links and codes mailed before. */
  function setEmail(user: UserRow, email: string, ip: string) {
    store.update(user.id, { email })
    const purposes = ['verify_email', 'reset_password', 'change_email', 'confirm'] as const
    for (const purpose of purposes) oneTimeTokens.revoke(purpose, user.id)
    recovery.markVerified(user, ip)
  }

  // Checked before the password is compared and again in the write, because requests may be concurrent.
  const mustHaveRequestsLeft = (userId: string) =>
    audit.mustHaveLeft(userId, 'email_change_requested', requestsPerHour)

  return {
    /** Mails a link to the new address. Only that address learns whether it belongs to an account. A later request replaces
     *  an earlier one.
     *  @throws invalid_credentials (wrong password) · login_throttled · validation_error (`new_email`: the current one)
     *  · banned · mail_throttled (1 a minute and 5 a day to one address) · quota_exceeded (5 an hour) */
    async request(principal: UserPrincipal, body: EmailChangeBody, ip: string): Promise<void> {
      const { userId } = principal
      const email = storedEmail(body.new_email)
      mustHaveRequestsLeft(userId)
      const user = await recovery.confirm(principal, body.password, ip)
      await write(() => {
        recovery.mustStillBeConfirmed(user, principal)
        // A ban of the address must hold for the person.
        for (const address of [user.email, email]) bans.mustNotBeBanned(address, ip)
        if (store.find(userId)?.email === email) {
          throw invalidField('new_email', 'nothing_to_change')
        }
        mustHaveRequestsLeft(userId)
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
    confirm: (token: string, ip: string): Promise<UserRow> =>
      write(() => {
        const { user, email } = redeem('change_email', token)
        const former = user.email
        for (const address of [former, email]) bans.mustNotBeBanned(address, ip)
        if (parts.isTaken(email, user.id)) throw new AppError('email_taken')
        const changes = oneTimeTokens.list('undo_email', user.id)
        const undone = changes.find((change) => change.email === email)
        setEmail(user, email, ip)
        oneTimeTokens.revokeUndo(user.id, undone ?? { email })
        // A former address that was never verified cannot undo the change, nor can one that was just changed back.
        if (!user.isProvisional && !undone) {
          // This token is not sent: it reserves the former address from this commit on.
          oneTimeTokens.issue('undo_email', { id: user.id, email: former })
          queueMail('email_changed_mail', user)
        }
        audit.record({ action: 'email_changed', ...onOneself(user.id, ip) })
        return store.find(user.id) ?? user
      }),

    /** Restores the former address as verified, because the account may be in other hands: ends every session, removes the
     *  password and a second factor enabled after the change, and mails a link for a new password. Later changes can no
     *  longer be undone.
     *  @throws validation_error (`token`: wrong, used or expired) */
    undo: (token: string, ip: string): Promise<void> =>
      write(() => {
        const { user, email, expiresAt } = redeem('undo_email', token)
        oneTimeTokens.revokeUndo(user.id, { email, expiresAt })
        setEmail(user, email, ip)
        store.update(user.id, { passwordHash: noPassword })
        const changedAt = expiresAt - lifetimeMilliseconds.undo_email
        const factorSince = factors.find(user.id)?.confirmedAt ?? 0
        const owner = store.find(user.id) ?? user
        if (factorSince >= changedAt) parts.removeFactor(owner, onOneself(user.id, ip))
        sessionStore.revokeAll(user.id, clock.now())
        queueMail('password_reset_mail', { id: user.id, email })
        audit.record({ action: 'email_change_undone', ...onOneself(user.id, ip) })
        afterCommit(() => hub.closeUser(user.id))
      }),
  }
}
