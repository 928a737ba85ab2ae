import type { ShownSettings } from '../../db/settings-store.ts'
import type { Delivered } from '../../jobs/delivery-store.ts'
import { PermanentFailure } from '../../lib/errors.ts'
import type { Locale } from '../../lib/i18n.ts'
import type { Log } from '../../lib/log.ts'
import { withoutAddresses } from '../../lib/text.ts'
import type { DeliveryState } from '../delivery-state.ts'
import type { About } from './templates.ts'

export type Mail = {
  to: string
  replyTo?: string
  subject: string
  text: string
  html: string
  locale: Locale
  /** The id of the job; a mail without a job has one of its own. */
  id: string
  /** Absent in mails that cannot be stopped. */
  about?: About
  /** Shown in place of the platform's own, in a test mail. */
  face?: ShownSettings
}

export type SentMail = Omit<Mail, 'id' | 'about' | 'face'> & {
  fromName: string
  /** Stops such mails with one click (RFC 8058). */
  unsubscribeUrl?: string | undefined
  /** The same for every attempt, so that receivers recognise duplicates. */
  messageId: string
}

export type Mailer<M = Mail> = {
  /** @throws RecipientRefused when a retry cannot help */
  send(mail: M): Promise<Delivered>
  /** Ends the mails that are being sent, too: they fail. */
  close(): void
}

export class RecipientRefused extends PermanentFailure {}

type Observers = {
  log: Log
  state: DeliveryState
  /** @returns whether the address belongs to a user */
  onRefused: (address: string) => Promise<boolean>
  onAccepted: (address: string) => Promise<void>
}

/** A mail to a permanently refused address of a user counts as done, because a retry cannot help. */
export function observeMails(mailer: Mailer<SentMail>, observers: Observers): Mailer<SentMail> {
  const { log, state, onRefused, onAccepted } = observers

  async function send(mail: SentMail) {
    const { subject, messageId: message_id } = mail
    try {
      const delivered = await mailer.send(mail)
      state.sent()
      log.debug('mail sent', { subject: withoutSecrets(subject), message_id })
      // A failure here, as of a full disk, must not send the mail again.
      if (delivered.state === 'sent') await onAccepted(mail.to).catch(() => {})
      return delivered
    } catch (error) {
      const answer = withoutAddresses((error as Error).message)
      state.failed(answer)
      if (!(error instanceof RecipientRefused) || !(await onRefused(mail.to))) throw error
      log.warn('a mail server permanently refused an address', { message_id, answer })
      return { state: 'bounced', answer } as const
    }
  }
  return { send, close: mailer.close }
}

/** In production (an https: URL) without secrets. */
export function createLogMailer(log: Log, publicUrl: string): Mailer<SentMail> {
  const isServing = publicUrl.startsWith('https:')
  const shown = isServing ? withoutSecrets : (text: string) => text
  return {
    async send({ to, subject, text }) {
      log.info('mail', { to, subject: shown(subject), text: shown(text) })
      return { state: 'skipped', answer: 'written to the log: SMTP_URL is not set' }
    },
    close() {},
  }
}

/** Hides the tokens in links and mailed codes, because readers of the log could use them. */
const withoutSecrets = (text: string) => text.replace(/(?<=[#?&]token=)[\w.-]+|\b\d{6}\b/g, '…')
