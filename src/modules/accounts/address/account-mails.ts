import type { Core } from '../../../core.ts'
import { onOneself } from '../../../db/audit-trail.ts'
import type { Delivered } from '../../../jobs/delivery-store.ts'
import type { JobKind, OutboxJobs } from '../../../jobs/outbox.ts'
import type { Deliver, JobHandler, JobHandlers } from '../../../jobs/runner.ts'
import type { Locale } from '../../../lib/i18n.ts'
import type { MailKind } from '../../../lib/mail-texts.ts'
import { type Mailer, messageIdOf, RecipientRefused } from '../../../outside/mail/mailer.ts'
import { renderMail } from '../../../outside/mail/templates.ts'
import type { AccountParts } from '../account-parts.ts'
import type { UserRow } from '../store.ts'

/** A mail to a user, dropped if their address changes before it is sent. `user_id` is null when no account has the
 *  address. */
export type AccountMail = { user_id: string | null; address_hash: string }

export type MailJob = {
  [K in JobKind]: OutboxJobs[K] extends AccountMail ? K : never
}[JobKind]

type Named = { locale: Locale; displayName: string }
type Recipient = { id: string; email: string; locale: Locale }
type Run = Parameters<JobHandler<'verification_mail'>>[1]
type Job = { payload: AccountMail; run: Run }

/** Mails about accounts. A token is created when its mail is sent. Links lead to `PUBLIC_URL` only and carry the token in
 *  the fragment, which browsers do not send, so no log records it. */
export function createMailJobs(
  core: Core,
  mailer: Mailer,
  parts: AccountParts,
): Partial<JobHandlers> {
  const { write, audit, config, settings } = core
  const { store, oneTimeTokens, hashAddress } = parts
  const { publicUrl } = config

  async function send(to: Recipient, { id, deliver }: Run, mail: ReturnType<typeof renderMail>) {
    const messageId = messageIdOf(id, config)
    const { state } = await deliver({ userId: to.id, channel: 'email' }, () =>
      mailer.send({ ...mail, to: to.email, locale: to.locale, messageId }),
    )
    const user = store.find(to.id)
    if (state === 'sent' && user?.email === to.email && user.emailBouncedAt !== null) {
      await write(() => {
        store.update(user.id, { emailBouncedAt: null })
        parts.publishChange(user)
      })
    }
    return undefined
  }

  /** @param alsoWrite runs in the write that stores the token */
  async function sendLink(
    user: UserRow,
    run: Run,
    purpose: keyof typeof pages,
    alsoWrite = () => {},
  ) {
    const token = await write(() => {
      alsoWrite()
      return oneTimeTokens.issue(purpose, user)
    })
    return send(user, run, linkMail(purpose, user, token))
  }

  function linkMail(purpose: keyof typeof pages, { locale, displayName }: Named, token: string) {
    const link = `${publicUrl}/${pages[purpose]}?lang=${locale}#token=${token}`
    return renderMail(settings, purpose, { locale, name: displayName, link })
  }

  /** Mails a link for a change of address, unless the change was revoked. A refused address is ignored: it is not (or no
   *  longer) the address of the profile. */
  async function sendChange({ payload, run }: Job, purpose: 'change_email' | 'undo_email') {
    const { user_id, address_hash } = payload
    const user = store.find(user_id)
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
    const person = (isTaken && store.findByEmail(email)) || user
    const { locale, displayName: name } = person
    const mail = isTaken
      ? renderMail(settings, 'email_taken', { locale, name })
      : linkMail(purpose, person, token)
    const ignoringRefusal: Deliver = (of, work) => run.deliver(of, () => work().catch(bounced))
    return send({ id: user.id, email, locale }, { ...run, deliver: ignoringRefusal }, mail)
  }

  /** @returns undefined if the user was deleted or has changed the address */
  function recipient({ user_id, address_hash }: AccountMail): UserRow | undefined {
    const user = store.find(user_id)
    return user && hashAddress(user.email) === address_hash ? user : undefined
  }

  const mailOf = (kind: MailKind, { locale, displayName: name }: Named, fields = {}) =>
    renderMail(settings, kind, { locale, name, fields })

  const notify =
    (kind: 'password_changed' | 'totp_enabled' | 'totp_disabled') =>
    async (payload: AccountMail, run: Run) => {
      const user = recipient(payload)
      return user && send(user, run, mailOf(kind, user))
    }

  return {
    async verification_mail(payload, run) {
      const user = recipient(payload)
      return user && !user.emailVerified ? sendLink(user, run, 'verify_email') : undefined
    },
    async password_reset_mail(payload, run) {
      const user = recipient(payload)
      if (user?.disabledAt !== null) return undefined
      const { ip } = payload
      return sendLink(user, run, 'reset_password', () => {
        if (ip === undefined) return
        audit.record({ action: 'password_reset_requested', ...onOneself(user.id, ip) })
      })
    },
    email_change_mail: (payload, run) => sendChange({ payload, run }, 'change_email'),
    email_changed_mail: (payload, run) => sendChange({ payload, run }, 'undo_email'),
    password_changed_mail: notify('password_changed'),
    async confirm_mail(payload, run) {
      const user = recipient(payload)
      if (user?.disabledAt !== null || !user.emailVerified) return undefined
      const code = await write(() => oneTimeTokens.issueCode(user, payload.session_id))
      return send(user, run, mailOf('confirm', user, { code }))
    },
    totp_enabled_mail: notify('totp_enabled'),
    totp_disabled_mail: notify('totp_disabled'),
  }
}

function bounced(error: unknown): Delivered {
  if (!(error instanceof RecipientRefused)) throw error
  return { state: 'bounced', answer: error.message }
}

const pages = {
  verify_email: 'verify-email',
  reset_password: 'reset-password',
  change_email: 'change-email',
  undo_email: 'undo-email',
} as const
