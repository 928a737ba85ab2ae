import { type Locale, type Texts, texts } from '../../lib/i18n.ts'

type MailText = { subject: string; lead: string; button?: string; note: string }

/** Renders the subject, text and HTML of a mail. `link` is the target of the button, if the kind has one. */
export function renderMail(kind: keyof Texts['mails'], locale: Locale, link?: string) {
  const { subject, lead, button, note }: MailText = texts[locale].mails[kind]
  const text = [lead, ...(link === undefined ? [] : [link]), note].join('\n\n')
  const anchor =
    link === undefined
      ? ''
      : `<p><a href="${link}" style="display:inline-block;padding:12px 20px;background:#1d4ed8;color:#fff;border-radius:6px;text-decoration:none">${button}</a></p><p style="color:#555;font-size:13px;word-break:break-all">${link}</p>`
  return { subject, text, html: htmlMail(locale, subject, `<p>${lead}</p>${anchor}${small(note)}`) }
}

type Item = { title: string; body: string }

/** Renders one mail for several notifications, oldest first. Their texts are untrusted. */
export function renderDigest(locale: Locale, items: readonly Item[]) {
  const { note } = texts[locale].digest
  const line = oneLine(items[0]?.title ?? '')
  const subject = items.length > 1 ? `${line} (${items.length})` : line
  return {
    subject,
    text: [...items.map(({ title, body }) => `${title}\n\n${body}`), note].join('\n\n'),
    html: htmlMail(
      locale,
      Bun.escapeHTML(subject),
      `${items.map(htmlItem).join('')}${small(note)}`,
    ),
  }
}

/** An owner's message in a ticket, for the desk. */
export type OwnerMessage = {
  id: string
  subject: string
  body: string
  category: string
  priority: string
  /** Name and address of the ticket's owner. */
  from: string
  link: string
}

/** Renders a mail to the desk's inbox about waiting tickets, in English. Its content is untrusted. */
export function renderInboxMail(messages: readonly OwnerMessage[]) {
  const line = oneLine(messages[0]?.subject ?? '')
  const subject =
    messages.length > 1
      ? `${messages.length} tickets wait: ${line} and others`
      : `New ticket: ${line}`
  return deskMail(subject, messages)
}

/** Renders a mail about an owner's message to the assignee of the ticket. */
export function renderAnswerMail(message: OwnerMessage) {
  return deskMail(`Answer in ticket: ${oneLine(message.subject)}`, [message])
}

function deskMail(subject: string, messages: readonly OwnerMessage[]) {
  const parts = messages.map(({ id, category, priority, from, body, link, ...ticket }) => {
    const title = oneLine(ticket.subject)
    const lead = `${from} wrote in ticket ${id} (${category}, priority ${priority}).`
    const shown = excerpt(body)
    return {
      text: [lead, title, shown, link].join('\n\n'),
      html: `<p>${Bun.escapeHTML(lead)}</p>${htmlItem({ title, body: shown })}<p><a href="${link}">${link}</a></p>`,
    }
  })
  return {
    subject,
    text: parts.map(({ text }) => text).join('\n\n---\n\n'),
    html: htmlMail('en', Bun.escapeHTML(subject), parts.map(({ html }) => html).join('<hr>')),
  }
}

const excerptLength = 1_000
const excerpt = (text: string) =>
  text.length > excerptLength ? `${text.slice(0, excerptLength).toWellFormed()}…` : text

/** The HTML frame of every mail. `title` and `content` are HTML. */
function htmlMail(locale: Locale, title: string, content: string) {
  return `<!doctype html><html lang="${locale}"><head><meta charset="utf-8"><title>${title}</title></head><body style="font-family:sans-serif;line-height:1.5;color:#1c2330">${content}</body></html>`
}

function htmlItem({ title, body }: Item) {
  return `<p><b>${Bun.escapeHTML(title)}</b></p><p style="white-space:pre-wrap">${Bun.escapeHTML(body)}</p>`
}

const small = (text: string) => `<p style="color:#555">${text}</p>`

const oneLine = (text: string) => text.replace(/[\p{Cc}\s]+/gu, ' ')
