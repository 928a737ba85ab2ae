import { minute } from '../../lib/clock.ts'
import { unlessAborted, within } from '../exchange.ts'
import { type Mailer, RecipientRefused, type SentMail } from './mailer.ts'

/** A connection fails after this time without a byte from the server. */
const timeoutMilliseconds = 20_000
/** For one mail, including its wait for a connection. */
const longestMilliseconds = 5 * minute
const longestTryMilliseconds = minute
const timeouts = {
  connectionTimeout: timeoutMilliseconds,
  greetingTimeout: timeoutMilliseconds,
  socketTimeout: timeoutMilliseconds,
}
const maxConnections = 2

/** `smtps:` uses TLS from the start, `smtp:` upgrades by STARTTLS. */
export function createSmtpMailer(
  url: string,
  from: string,
  longest = longestMilliseconds,
): Mailer<SentMail> {
  let transport: ReturnType<typeof open> | undefined
  const [, address = from] = /<([^<>]+)>$/.exec(from) ?? []

  async function open() {
    const { createTransport } = await loadNodemailer()
    return createTransport({ url, pool: true, maxConnections, ...timeouts })
  }

  return {
    async send({ locale, fromName, unsubscribeUrl, ...mail }) {
      // Invented people have such addresses. A mail server would refuse them for hours, or send a bounce to `from`.
      if (mail.to.endsWith('.invalid')) return { state: 'skipped', answer: unreachable }
      const headers = {
        'Content-Language': locale,
        'Auto-Submitted': 'auto-generated',
        ...(unsubscribeUrl !== undefined && {
          'List-Unsubscribe': `<${unsubscribeUrl}>`,
          'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
        }),
      }
      const sent = { ...mail, from: { name: fromName, address }, headers }
      transport ??= open()
      const opened = await transport
      try {
        // A server that drips its answer would keep its connection for ever. The signal closes this one alone: the other mail
        // may be accepted already.
        const { response } = await within(longest, undefined, (signal) =>
          opened.sendMail({ ...sent, signal }),
        )
        return { state: 'sent', answer: response }
      } catch (error) {
        throw translate(error as SmtpError)
      }
    },
    close: () => void transport?.then((opened) => opened.close({ force: true })),
  }
}

const unreachable = 'no mail reaches an address in .invalid (RFC 2606)'

/** @throws Error with the reason for the operator */
export async function trySmtp(url: string, longest = longestTryMilliseconds) {
  const { createTransport } = await loadNodemailer()
  const transport = createTransport({ url, ...timeouts })
  const verified = within(longest, undefined, (signal) => unlessAborted(signal, transport.verify()))
  await verified.finally(() => transport.close())
}

// Imported on demand: its many files would slow every start.
const loadNodemailer = () => import('nodemailer')

type SmtpError = Error & { response?: string; command?: string }

/** Enhanced status codes about the recipient (RFC 3463, 3.2 and 3.3): a wrong address, a mailbox that is disabled. 5.1.7 and
 *  5.1.8 are about the sender. */
const refusedRecipient = /^5\d\d[ -]5\.(1\.(?![78]\b)\d{1,3}|2\.1)\b/

// Choice: every other refusal is retried, because the operator of a mail server can fix it: "554 5.7.1 Relay access denied"
// is no statement about the recipient.
function translate(error: SmtpError): Error {
  const { response = '', command, message } = error
  const isRecipient = command === 'RCPT TO' && refusedRecipient.test(response)
  return isRecipient ? new RecipientRefused(message) : error
}
