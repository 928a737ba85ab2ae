import type { Core } from '../../../core.ts'
import { onOneself } from '../../../db/audit-trail.ts'
import type { JobHandlers } from '../../../jobs/runner.ts'
import type { Locale } from '../../../lib/i18n.ts'
import { type Mailer, RecipientRefused } from '../../../outside/mail/mailer.ts'
import { renderMail } from '../../../outside/mail/templates.ts'
import type { AccountParts } from '../account-parts.ts'
import type { UserRow } from '../store.ts'

/** A mail to a user, dropped if their address changes before it is sent. `user_id` is null when no account has the
 *  address. */
export type AccountMail = { user_id: string | null; address_hash: string }

type Recipient = { email: string; locale: Locale }
type Job<Payload> = { payload: Payload; id: string }

/** Mails about accounts. A token is created when its mail is sent. Links lead to `PUBLIC_URL` only and carry the token in
 *  the fragment, which browsers do not send, so no log records it. */
export function createMailJobs(
  core: Core,
  mailer: Mailer,
  parts: AccountParts,
): Partial<JobHandlers> {
  const { write, audit, config } = core
  const { store, oneTimeTokens, hashAddress } = parts
  const { publicUrl } = config

  async function deliver(to: Recipient, jobId: string, mail: ReturnType<typeof renderMail>) {
    const messageId = `<${jobId.toLowerCase()}@${new URL(publicUrl).hostname}>`
    await mailer.send({ ...mail, to: to.email, locale: to.locale, messageId })
    return undefined
  }

  /** @param alsoWrite runs in the write that stores the token */
  async function deliverLink(
    user: UserRow,
    jobId: string,
    purpose: keyof typeof pages,
    alsoWrite = () => {},
  ) {
    const token = await write(() => {
      alsoWrite()
      return oneTimeTokens.issue(purpose, user)
    })
    return deliver(user, jobId, linkMail(purpose, user.locale, token))
  }

  function linkMail(purpose: keyof typeof pages, locale: Locale, token: string) {
    const link = `${publicUrl}/${pages[purpose]}?lang=${locale}#token=${token}`
    return renderMail(purpose, locale, link)
  }

  /** Mails a link for a change of address, unless the change was revoked. A refused address is ignored: it is not (or no
   *  longer) the address of the profile. */
  async function deliverChange(job: Job<AccountMail>, purpose: 'change_email' | 'undo_email') {
    const { user_id, address_hash } = job.payload
    const user = user_id === null ? undefined : store.find(user_id)
    if (!user) return undefined
    const isAddressee = ({ email }: { email: string }) => hashAddress(email) === address_hash
    const issued = await write(() => {
      const change = oneTimeTokens.list(purpose, user.id).find(isAddressee)
      const holder = change && { id: user.id, email: change.email }
      return holder && { ...holder, token: oneTimeTokens.issue(purpose, holder, change.expiresAt) }
    })
    if (!issued) return undefined
    const { email, token } = issued
    const isTaken = purpose === 'change_email' && parts.isTaken(email, user.id)
    const { locale } = (isTaken && store.findByEmail(email)) || user
    const mail = isTaken ? renderMail('email_taken', locale) : linkMail(purpose, locale, token)
    return deliver({ email, locale }, job.id, mail).catch((error: unknown) => {
      if (!(error instanceof RecipientRefused)) throw error
      return undefined
    })
  }

  /** @returns undefined if the user was deleted or has changed the address */
  function recipient({ user_id, address_hash }: AccountMail): UserRow | undefined {
    const user = user_id === null ? undefined : store.find(user_id)
    return user && hashAddress(user.email) === address_hash ? user : undefined
  }

  const notify =
    (kind: 'password_changed' | 'totp_enabled' | 'totp_disabled') =>
    async (payload: AccountMail, { id }: { id: string }) => {
      const user = recipient(payload)
      return user && deliver(user, id, renderMail(kind, user.locale))
    }

  return {
    async verification_mail(payload, { id }) {
      const user = recipient(payload)
      return user && !user.emailVerified ? deliverLink(user, id, 'verify_email') : undefined
    },
    async password_reset_mail(payload, { id }) {
      const user = recipient(payload)
      if (user?.disabledAt !== null) return undefined
      const { ip } = payload
      return deliverLink(user, id, 'reset_password', () => {
        if (ip === undefined) return
        audit.record({ action: 'password_reset_requested', ...onOneself(user.id, ip) })
      })
    },
    email_change_mail: (payload, { id }) => deliverChange({ payload, id }, 'change_email'),
    email_changed_mail: (payload, { id }) => deliverChange({ payload, id }, 'undo_email'),
    password_changed_mail: notify('password_changed'),
    totp_enabled_mail: notify('totp_enabled'),
    totp_disabled_mail: notify('totp_disabled'),
  }
}

const pages = {
  verify_email: 'verify-email',
  reset_password: 'reset-password',
  change_email: 'change-email',
  undo_email: 'undo-email',
} as const
