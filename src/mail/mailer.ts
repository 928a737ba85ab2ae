import type { Locale } from '../lib/i18n.ts'
import type { Log } from '../lib/log.ts'

/** A mail as it leaves: plain text and the same as HTML. */
export type Mail = {
  to: string
  subject: string
  text: string
  html: string
  locale: Locale
  /** The same for every attempt, so that receivers recognise a double. */
  messageId: string
}

export type Mailer = {
  /** @throws PermanentFailure when trying again cannot help */
  send(mail: Mail): Promise<void>
  close(): void
}

/** Writes mails, with their links, to the log: for development, when no SMTP server is configured. */
export function createLogMailer(log: Log): Mailer {
  return {
    async send({ to, subject, text }) {
      log.info('mail', { to, subject, text })
    },
    close() {},
  }
}
