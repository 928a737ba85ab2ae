import { PermanentFailure } from '../../lib/errors.ts'
import { type Mailer, RecipientRefused } from './mailer.ts'

const timeoutMilliseconds = 20_000
const timeouts = {
  connectionTimeout: timeoutMilliseconds,
  greetingTimeout: timeoutMilliseconds,
  socketTimeout: timeoutMilliseconds,
}
const maxConnections = 2

/** Sends through an SMTP server over pooled connections. `smtps:` uses TLS from the start, `smtp:` upgrades by STARTTLS. */
export function createSmtpMailer(url: string, from: string): Mailer {
  let transport: ReturnType<typeof open> | undefined

  async function open() {
    const { createTransport } = await loadNodemailer()
    return createTransport({ url, pool: true, maxConnections, ...timeouts })
  }

  return {
    async send({ locale, ...mail }) {
      transport ??= open()
      try {
        const headers = { 'Content-Language': locale, 'Auto-Submitted': 'auto-generated' }
        await (await transport).sendMail({ from, ...mail, headers })
      } catch (error) {
        throw translate(error as SmtpError)
      }
    },
    close: () => void transport?.then((opened) => opened.close()),
  }
}

/** Connects and logs in without sending anything.
 *  @returns the reason for a failure; undefined on success */
export async function trySmtp(url: string): Promise<string | undefined> {
  const { createTransport } = await loadNodemailer()
  const transport = createTransport({ url, ...timeouts })
  try {
    await transport.verify()
    return undefined
  } catch (error) {
    return (error as Error).message
  } finally {
    transport.close()
  }
}

// Imported on demand: its many files would slow every start.
const loadNodemailer = () => import('nodemailer')

type SmtpError = Error & { responseCode?: number; command?: string }

// A 5xx response to the recipient or the message is permanent. Failures caused by this server's configuration are retried,
// because the operator can fix them.
function translate(error: SmtpError): Error {
  const { responseCode = 0, command, message } = error
  if (responseCode < 500) return error
  if (command === 'RCPT TO') return new RecipientRefused(message)
  return command === 'DATA' ? new PermanentFailure(message) : error
}
