import type { Write } from '../../db/writer.ts'
import type { JobHandlers } from '../../jobs/runner.ts'
import type { Mailer } from '../../mail/mailer.ts'
import { renderMail } from '../../mail/templates.ts'
import type { OneTimeTokens } from './one-time-tokens.ts'
import type { AccountStore, UserRow } from './store.ts'

type AccountMail = { user_id: string; email: string }

type MailJobsOptions = {
  store: AccountStore
  tokens: OneTimeTokens
  mailer: Mailer
  write: Write
  publicUrl: string
}

/** The mails about an account. Tokens are made when a mail is sent, and links lead to `PUBLIC_URL` alone; the token is
 *  in the fragment, which no browser sends and no log sees. */
export function createMailJobs(options: MailJobsOptions) {
  const { store, tokens, mailer, write, publicUrl } = options

  async function deliver(user: UserRow, jobId: string, mail: ReturnType<typeof renderMail>) {
    const messageId = `<${jobId.toLowerCase()}@${new URL(publicUrl).hostname}>`
    await mailer.send({ ...mail, to: user.email, locale: user.locale, messageId })
  }

  function linkTo(page: string, { locale }: UserRow, token: string) {
    return `${publicUrl}/${page}?lang=${locale}#token=${token}`
  }

  return {
    async verification_mail({ user_id, email }: AccountMail, jobId: string) {
      const user = store.find(user_id)
      if (!user || user.email !== email || user.emailVerified) return
      const token = await write(() => tokens.issue('verify_email', { userId: user.id, email }))
      const link = linkTo('verify-email', user, token)
      await deliver(user, jobId, renderMail('verify_email', user.locale, link))
    },

    async password_reset_mail({ user_id, email }: AccountMail, jobId: string) {
      const user = store.find(user_id)
      if (!user || user.email !== email || user.disabledAt !== null) return
      const token = await write(() => tokens.issue('reset_password', { userId: user.id, email }))
      const link = linkTo('reset-password', user, token)
      await deliver(user, jobId, renderMail('reset_password', user.locale, link))
    },

    async password_changed_mail({ user_id, email }: AccountMail, jobId: string) {
      const user = store.find(user_id)
      if (!user || user.email !== email) return
      await deliver(user, jobId, renderMail('password_changed', user.locale))
    },
  } satisfies Partial<JobHandlers>
}
