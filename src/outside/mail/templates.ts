import type { ShownSettings } from '../../db/settings-store.ts'
import { type Locale, texts } from '../../lib/i18n.ts'
import {
  defaultMailText,
  type MailKind,
  type MailText,
  mailButton,
  type StoppableMail,
} from '../../lib/mail-texts.ts'
import { excerptOf, plainName } from '../../lib/text.ts'
import type { PreferenceType } from '../../lib/vocabulary.ts'
import { buttonMark, oneLine } from './face.ts'
import type { Mail } from './mailer.ts'

/** A notification or message in a mail. Its texts are untrusted. */
export type MailItem = { lead?: string; title: string; body: string; link?: string }

const excerptLength = 1_000

export type Addressee = { email: string; locale: Locale; displayName: string }

type MailValues = {
  to: Addressee & { id?: string }
  id: string
  /** The target of the button; by default the first page of the app. */
  link?: string | undefined
  items?: readonly MailItem[]
  fields?: Record<string, string>
  about?: About['types']
}

/** The notifications that a mail is about. Its address for unsubscribing stops them. */
export type About = { userId: string; types: readonly PreferenceType[] }

/** Values replace their placeholders once and are escaped in the HTML, so that nothing in them has an effect. */
export function renderMail<K extends MailKind>(
  settings: ShownSettings,
  kind: K,
  given: MailValues &
    (K extends StoppableMail ? { about: About['types']; to: { id: string } } : { about?: never }),
  ownTexts?: { [K in keyof MailText]?: string | null | undefined },
): Mail {
  const { to, id, link: own, items = [], fields = {}, about: types }: MailValues = given
  const { locale } = to
  const texts = ownTexts ?? settings.get('texts')[kind]?.[locale]
  const usual = defaultMailText(kind, locale)
  const [subject, body] = [texts?.subject ?? usual.subject, texts?.body ?? usual.body]
  const link = own ?? settings.get('links').home ?? settings.get('app_url') ?? ''
  const values = {
    ...fields,
    platform: settings.get('platform_name'),
    name: plainName(to.displayName),
    link,
    title: titleOf(items),
    items: items.map(textItem).join('\n\n---\n\n'),
  }
  const label = fill(mailButton(kind, locale), values)
  const blocks = {
    '{link}': link && anchor(link, label),
    '{items}': items.map(htmlItem).join('<hr style="border:0;border-top:1px solid #888">'),
  }
  const paragraphs = body.split(/\r?\n(?:[ \t]*\r?\n)+/).map((paragraph) => paragraph.trim())
  const last = paragraphs.indexOf('{link}')
  const html = paragraphs.map((paragraph, index) => {
    if (isBlock(paragraph)) return blocks[paragraph]
    const text = Bun.escapeHTML(fill(paragraph, values)).replace(/\r?\n/g, '<br>')
    return index > last && last > 0 ? `<p style="opacity:.75">${text}</p>` : `<p>${text}</p>`
  })
  const text = paragraphs.map((paragraph) => fill(paragraph, values)).filter((part) => part !== '')
  return {
    id,
    to: to.email,
    locale,
    subject: oneLine(fill(subject, values)),
    text: text.join('\n\n'),
    html: html.join(''),
    ...(types && { about: { userId: to.id ?? '', types } }),
  }
}

const isBlock = (text: string): text is '{link}' | '{items}' =>
  text === '{link}' || text === '{items}'

const fill = (text: string, values: Record<string, string>) =>
  text.replace(/\{(\w+)\}/g, (whole, name: string) =>
    Object.hasOwn(values, name) ? (values[name] ?? '') : whole,
  )

function titleOf(items: readonly MailItem[]): string {
  const title = items[0]?.title ?? ''
  return items.length > 1 ? `${title} (${items.length})` : title
}

export type OwnerMessage = {
  id: string
  subject: string
  body: string
  category: keyof (typeof texts)['en']['desk']['categories']
  priority: keyof (typeof texts)['en']['desk']['priorities']
  owner: { name: string; email: string | null }
  link: string
}

/** Limited to what `mail_content` lets mail servers see. */
export function ownerMessageItem(
  settings: ShownSettings,
  locale: Locale,
  { id, subject, body, category, priority, owner: { name: given, email }, link }: OwnerMessage,
): MailItem {
  const name = plainName(given)
  const level = settings.get('mail_content')
  const { push, desk } = texts[locale]
  if (level === 'none') return { title: settings.get('platform_name'), body: push.message, link }
  const { wrote, categories, priorities } = desk
  const words = { id, category: categories[category], priority: priorities[priority] }
  const lead = (from: string) => fill(wrote, { ...words, from })
  if (level === 'sender') return { lead: lead(name), title: name, body: push.message, link }
  const from = email === null ? name : `${name} <${email}>`
  return { lead: lead(from), title: oneLine(subject), body: excerptOf(body, excerptLength), link }
}

const textItem = ({ lead, title, body, link }: MailItem) =>
  [lead, title, body, link].filter((part) => part !== undefined).join('\n\n')

function htmlItem({ lead, title, body, link }: MailItem) {
  const before = lead === undefined ? '' : `<p>${Bun.escapeHTML(lead)}</p>`
  const after = link === undefined ? '' : smallLink(Bun.escapeHTML(link))
  return `${before}<p dir="auto"><b>${Bun.escapeHTML(title)}</b></p><p dir="auto" style="white-space:pre-wrap">${Bun.escapeHTML(body)}</p>${after}`
}

function anchor(link: string, label: string) {
  const href = Bun.escapeHTML(link)
  return `<p><a href="${href}" ${buttonMark}>${Bun.escapeHTML(label)}</a></p>${smallLink(href)}`
}

const smallLink = (href: string) =>
  `<p style="font-size:13px;word-break:break-all;opacity:.75"><a href="${href}" style="color:inherit">${href}</a></p>`
