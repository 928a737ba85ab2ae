import type { Locale } from '../lib/i18n.ts'
import type { Log } from '../lib/log.ts'

/** A mail as it leaves: plain text and the same as HTML. */
export type Mail = {
  to: string
  replyTo?: string
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

/** Writes mails to the log when no SMTP server is configured: with their links for development, without the tokens in
 *  them where people are served, since whoever reads the log could use them. */
export function createLogMailer(log: Log, publicUrl: string): Mailer {
  const isServing = publicUrl.startsWith('https:')
  return {
    async send({ to, subject, text }) {
      const shown = isServing ? text.replace(/#token=[\w-]+/g, '#token=…') : text
      log.info('mail', { to, subject, text: shown })
    },
    close() {},
  }
}
