import type { Log } from '../lib/log.ts'
import type { Mailer } from './mailer.ts'

/** Writes mails, with their links, to the log: for development, when no SMTP server is configured. */
export function createLogMailer(log: Log): Mailer {
  return {
    async send({ to, subject, text }) {
      log.info('mail', { to, subject, text })
    },
    close() {},
  }
}
