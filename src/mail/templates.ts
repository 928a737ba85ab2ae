import { type Locale, type Texts, texts } from '../lib/i18n.ts'

type MailText = { subject: string; lead: string; button?: string; note: string }

/** Subject, text and HTML of a mail. `link` belongs to the button of the kinds that have one. */
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

/** One mail for several notifications, oldest first. Anybody may have written their texts. */
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

type NewTicketMail = {
  id: string
  subject: string
  body: string
  category: string
  priority: string
  /** The name and the address of who asks. */
  from: string
}

/** Tells the operator of a new ticket, in English. A stranger may have written everything in it. */
export function renderTicketMail({ id, subject, body, category, priority, from }: NewTicketMail) {
  const lead = `${from} opened ticket ${id} (${category}, priority ${priority}).`
  const line = oneLine(subject)
  const content = `<p>${Bun.escapeHTML(lead)}</p>${htmlItem({ title: line, body })}`
  return {
    subject: `New ticket: ${line}`,
    text: [lead, line, body].join('\n\n'),
    html: htmlMail('en', Bun.escapeHTML(line), content),
  }
}

/** The frame of every mail. `title` and `content` are HTML. */
function htmlMail(locale: Locale, title: string, content: string) {
  return `<!doctype html><html lang="${locale}"><head><meta charset="utf-8"><title>${title}</title></head><body style="font-family:sans-serif;line-height:1.5;color:#1c2330">${content}</body></html>`
}

function htmlItem({ title, body }: Item) {
  return `<p><b>${Bun.escapeHTML(title)}</b></p><p style="white-space:pre-wrap">${Bun.escapeHTML(body)}</p>`
}

const small = (text: string) => `<p style="color:#555">${text}</p>`

const oneLine = (text: string) => text.replace(/[\p{Cc}\s]+/gu, ' ')
