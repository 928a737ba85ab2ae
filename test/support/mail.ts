import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { waitFor } from './wait.ts'

export type ReceivedMail = {
  to: string
  from: string
  raw: string
  text: string
  link: string
  messageId: string
}

type Options = SMTPServerOptions & {
  /** Called before a mail is answered. */
  onMail?: (mail: ReceivedMail) => void
}

/** A real SMTP server on a free port that keeps its mails. */
export async function startMailServer({ onMail, ...options }: Options = {}) {
  const mails: ReceivedMail[] = []
  let connections = 0
  const server = new SMTPServer({
    authOptional: true,
    disableReverseLookup: true,
    disabledCommands: options.key ? [] : ['STARTTLS'],
    onConnect(_session, callback) {
      connections++
      callback()
    },
    onData(stream, session, callback) {
      let raw = ''
      stream.setEncoding('utf8')
      stream.on('data', (text: string) => {
        raw += text
      })
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope
        const mail = parse(raw, mailFrom ? mailFrom.address : '', rcptTo[0]?.address ?? '')
        mails.push(mail)
        onMail?.(mail)
        callback()
      })
    },
    ...options,
  })
  server.on('error', () => {}) // a client that is killed resets its connection
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  const { port } = server.server.address() as { port: number }

  return {
    port,
    url: `smtp://127.0.0.1:${port}`,
    mails,
    connections: () => connections,
    /** Takes the oldest mail, optionally to an address, and waits for it if needed. */
    next: (to?: string): Promise<ReceivedMail> =>
      waitFor(() => {
        const index = mails.findIndex((mail) => to === undefined || mail.to === to)
        return index < 0 ? undefined : mails.splice(index, 1)[0]
      }, 'a mail'),
    async [Symbol.asyncDispose]() {
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

function parse(raw: string, from: string, to: string): ReceivedMail {
  const soft = raw.replace(/=\r?\n/g, '')
  const text = Buffer.from(
    soft.replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  ).toString('utf8')
  const link = /https?:\/\/\S+#token=[\w-]+/.exec(text)?.[0] ?? ''
  const messageId = /^Message-ID: (.*)$/im.exec(raw)?.[1]?.trim() ?? ''
  return { raw, from, to, text, link, messageId }
}
