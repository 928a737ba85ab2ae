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
  const html = `<!doctype html><html lang="${locale}"><head><meta charset="utf-8"><title>${subject}</title></head><body style="font-family:sans-serif;line-height:1.5;color:#1c2330"><p>${lead}</p>${anchor}<p style="color:#555">${note}</p></body></html>`
  return { subject, text, html }
}

/** One mail for several notifications, oldest first. What they say may come from anybody. */
export function renderDigest(locale: Locale, items: readonly { title: string; body: string }[]) {
  const { note } = texts[locale].digest
  const [first] = items
  const line = (first?.title ?? '').replace(/[\p{Cc}\s]+/gu, ' ')
  const subject = items.length > 1 ? `${line} (${items.length})` : line
  const parts = items.map(({ title, body }) => [title, body].map(Bun.escapeHTML))
  const html = parts.map(
    ([title, body]) => `<p><b>${title}</b></p><p style="white-space:pre-wrap">${body}</p>`,
  )
  return {
    subject,
    text: [...items.map(({ title, body }) => `${title}\n\n${body}`), note].join('\n\n'),
    html: `<!doctype html><html lang="${locale}"><head><meta charset="utf-8"><title>${Bun.escapeHTML(subject)}</title></head><body style="font-family:sans-serif;line-height:1.5;color:#1c2330">${html.join('')}<p style="color:#555">${note}</p></body></html>`,
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

/** Tells the operator of a new ticket, in English. Everything in it may come from a stranger. */
export function renderTicketMail({ id, subject, body, category, priority, from }: NewTicketMail) {
  const lead = `${from} opened ticket ${id} (${category}, priority ${priority}).`
  const line = subject.replace(/[\p{Cc}\s]+/gu, ' ')
  const [safeLead, safeLine, safeBody] = [lead, line, body].map(Bun.escapeHTML)
  return {
    subject: `New ticket: ${line}`,
    text: [lead, line, body].join('\n\n'),
    html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${safeLine}</title></head><body style="font-family:sans-serif;line-height:1.5;color:#1c2330"><p>${safeLead}</p><p><b>${safeLine}</b></p><p style="white-space:pre-wrap">${safeBody}</p></body></html>`,
  }
}
