import { problem } from './errors.ts'
import { type Locale, type Texts, texts } from './i18n.ts'
import { textProblem } from './text.ts'

export type MailKind = keyof Texts['mails']
export const mailKinds = Object.keys(texts.en.mails) as MailKind[] // exactly the keys of the table

/** Mails that people can stop with one click (RFC 8058). Nobody stops mails about the safety of an account and of
 *  the data; the inbox of the desk belongs to no person. */
const stoppableMails = ['notifications', 'unread_messages', 'ticket_answer'] as const
export type StoppableMail = (typeof stoppableMails)[number]

export const isStoppable = (kind: MailKind): kind is StoppableMail =>
  stoppableMails.some((known) => known === kind)

export type MailText = { subject: string; body: string }
type OwnText = { [K in keyof MailText]?: string | null | undefined }
export type OwnTexts = { [K in MailKind]?: { [L in Locale]?: OwnText } }

const common = ['platform', 'name', 'link'] as const
const list = ['title', 'items'] as const
const further: Partial<Record<MailKind, readonly string[]>> = {
  confirm: ['code'],
  notifications: list,
  unread_messages: list,
  ticket_answer: list,
  ticket_waiting: list,
  bucket_failed: ['url', 'reason'],
}
const required: Partial<Record<MailKind, string>> = {
  verify_email: 'link',
  reset_password: 'link',
  change_email: 'link',
  undo_email: 'link',
  confirm: 'code',
}

export const mailPlaceholders = (kind: MailKind): string[] => [...common, ...(further[kind] ?? [])]

export const requiredPlaceholder = (kind: MailKind): string | null => required[kind] ?? null

type Parts = { subject?: string; lead?: string; button?: string; note?: string }

export function defaultMailText(kind: MailKind, locale: Locale): MailText {
  const { subject = '{title}', lead = '{items}', note }: Parts = texts[locale].mails[kind]
  return { subject, body: [lead, '{link}', ...(note ? [note] : [])].join('\n\n') }
}

export function mailButton(kind: MailKind, locale: Locale): string {
  const { mails } = texts[locale]
  const { button = mails.notifications.button }: Parts = mails[kind]
  return button
}

export const maxTextLength = { subject: 200, body: 10_000 } as const

export function mailTextProblem(kind: MailKind, part: keyof MailText, text: string) {
  const rule = { min: 1, max: maxTextLength[part], notBlank: true }
  const wrong = textProblem(text, { ...rule, noControlCharacters: part === 'subject' })
  if (wrong) return wrong
  const named = [...text.matchAll(/\{(.*?)\}/gs)].map(([, name = '']) => name)
  const known = mailPlaceholders(kind)
  const unknown = named.find((name) => !known.includes(name))
  if (unknown !== undefined) return problem('placeholder', `{${unknown.slice(0, 40)}}`)
  const needed = required[kind]
  const isMissing = part === 'body' && needed !== undefined && !named.includes(needed)
  return isMissing ? problem('missing_placeholder', `{${needed}}`) : undefined
}
