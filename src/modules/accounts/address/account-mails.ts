import type { Core } from '../../../core.ts'
import { onOneself } from '../../../db/audit-trail.ts'
import type { Delivered } from '../../../jobs/delivery-store.ts'
import type { JobKind, OutboxJobs } from '../../../jobs/outbox.ts'
import type { Deliver, JobHandler, JobHandlers } from '../../../jobs/runner.ts'
import { type Mail, type Mailer, RecipientRefused } from '../../../outside/mail/mailer.ts'
import { type Addressee, renderMail } from '../../../outside/mail/templates.ts'
import type { AccountParts } from '../account-parts.ts'
import type { UserRow } from '../store.ts'

/** A mail to a user, dropped if their address changes before it is sent. `user_id` is null when no account has the
 *  address. */
export type AccountMail = { user_id: string | null; address_hash: string }

export type MailJob = {
  [K in JobKind]: OutboxJobs[K] extends AccountMail ? K : never
}[JobKind]

type Run = Parameters<JobHandler<'verification_mail'>>[1]
type Job = { payload: AccountMail; run: Run }

/** Mails about accounts. A token is created when its mail is sent. Links lead to `PUBLIC_URL` only and carry the token in
 *  the fragment, which browsers do not send, so no log records it. */
export function createMailJobs(core: Core, mailer: Mailer, parts: AccountParts) {
  const { write, audit, outbox, config, settings } = core
  const { store, oneTimeTokens, hashAddress } = parts

  async function send(userId: string, { deliver }: Run, mail: Mail) {
    await deliver({ userId, channel: 'email' }, () => mailer.send(mail))
    return undefined
  }

  /** False for an account that was removed since the row was read. */
  const isCurrent = ({ id, email }: UserRow) => store.find(id)?.email === email

  type Purpose = keyof typeof pages
  async function sendLink(user: UserRow, run: Run, purpose: Purpose, alsoWrite = () => {}) {
    const token = await write(() => {
      if (!isCurrent(user)) return undefined
      alsoWrite()
      return oneTimeTokens.issue(purpose, user)
    })
    if (token === undefined) return undefined
    return send(user.id, run, linkMail(purpose, user, { id: run.id, token }))
  }

  type Link = { id: string; token: string }
  function linkMail(purpose: Purpose, to: Addressee, { id, token }: Link) {
    const link = `${config.publicUrl}/${pages[purpose]}?lang=${to.locale}#token=${token}`
    return renderMail(settings, purpose, { to, id, link })
  }

  /** A refused address is ignored: it is not (or no longer) the address of the profile. */
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
    const to = { ...((isTaken && store.findByEmail(email)) || user), email }
    const { id } = run
    const mail = isTaken
      ? renderMail(settings, 'email_taken', { to, id })
      : linkMail(purpose, to, { id, token })
    const ignoringRefusal: Deliver = (of, work) => run.deliver(of, () => work().catch(bounced))
    return send(user.id, { ...run, deliver: ignoringRefusal }, mail)
  }

  function recipient({ user_id, address_hash }: AccountMail): UserRow | undefined {
    const user = store.find(user_id)
    return user && hashAddress(user.email) === address_hash ? user : undefined
  }

  const notify =
    (kind: 'password_changed' | 'totp_enabled' | 'totp_disabled') =>
    async (payload: AccountMail, run: Run) => {
      const user = recipient(payload)
      return user && send(user.id, run, renderMail(settings, kind, { to: user, id: run.id }))
    }

  return {
    async verification_mail(payload, run) {
      const user = recipient(payload)
      return user && !user.emailVerified ? sendLink(user, run, 'verify_email') : undefined
    },
    async password_reset_mail(payload, run) {
      const user = recipient(payload)
      if (user?.disabledAt !== null) return undefined
      const { ip, ...others } = payload
      return sendLink(user, run, 'reset_password', () => {
        if (ip === undefined) return
        audit.record({ action: 'password_reset_requested', ...onOneself(user.id, ip) })
        // Another attempt is no other request.
        outbox.updatePayload(run.id, others)
      })
    },
    email_change_mail: (payload, run) => sendChange({ payload, run }, 'change_email'),
    email_changed_mail: (payload, run) => sendChange({ payload, run }, 'undo_email'),
    password_changed_mail: notify('password_changed'),
    async confirm_mail(payload, run) {
      const user = recipient(payload)
      if (!user) return undefined
      const code = await write(() =>
        isCurrent(user) ? oneTimeTokens.issueCode(user, payload.session_id) : undefined,
      )
      if (code === undefined) return undefined
      const content = { to: user, id: run.id, fields: { code } }
      return send(user.id, run, renderMail(settings, 'confirm', content))
    },
    totp_enabled_mail: notify('totp_enabled'),
    totp_disabled_mail: notify('totp_disabled'),
  } satisfies Partial<JobHandlers>
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
