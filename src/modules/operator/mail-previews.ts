import type { Static } from '@sinclair/typebox'
import type { Core } from '../../core.ts'
import type { By } from '../../db/audit-trail.ts'
import type { ShownSettings } from '../../db/settings-store.ts'
import { hour } from '../../lib/clock.ts'
import { failureMessage, invalidField } from '../../lib/errors.ts'
import { type Locale, locales, texts } from '../../lib/i18n.ts'
import { SlidingWindow } from '../../lib/limits.ts'
import {
  defaultMailText,
  isStoppable,
  type MailKind,
  type MailText,
  mailKinds,
  mailPlaceholders,
  requiredPlaceholder,
  type StoppableMail,
} from '../../lib/mail-texts.ts'
import type { PreferenceType } from '../../lib/vocabulary.ts'
import { inPlatformStyle } from '../../outside/mail/face.ts'
import type { Mail, Mailer } from '../../outside/mail/mailer.ts'
import { type MailItem, ownerMessageItem, renderMail } from '../../outside/mail/templates.ts'
import type { MailTextPreviewRequest } from './model.ts'

type PreviewRequest = Static<typeof MailTextPreviewRequest>

const aboutOf: Record<StoppableMail, PreferenceType[]> = {
  notifications: ['support_reply', 'broadcast'],
  unread_messages: ['chat_message'],
  ticket_answer: ['support_reply'],
}
type Recipient = { id: string; displayName: string; email: string }

const sentPerHour = { count: 60, windowMilliseconds: hour }

export type PreviewParts = {
  mailer: Mailer
  findUser: (id: string) => Recipient | undefined
}

export type MailPreviews = ReturnType<typeof createMailPreviews>

export function createMailPreviews(core: Core, { mailer, findUser }: PreviewParts) {
  const { settings, clock, config, newId, write, audit } = core
  const sent = new SlidingWindow()

  function contentOf({ kind, lang, ...own }: PreviewRequest, face: ShownSettings, to: Recipient) {
    const stored = face.get('texts')[kind]?.[lang]
    const texts = { subject: own.subject ?? stored?.subject, body: own.body ?? stored?.body }
    const addressed = { to: { ...to, locale: lang }, id: newId() }
    const values = {
      ...addressed,
      link: linkOf(kind, config.publicUrl),
      items: itemsOf(kind, lang, face, config.publicUrl),
      fields: { code: '123456', url: config.publicUrl, reason: 'no answer' },
    }
    return isStoppable(kind)
      ? renderMail(face, kind, { ...values, about: aboutOf[kind] }, texts)
      : renderMail(face, kind, values, texts)
  }

  /** @throws Error with the reason for the operator */
  async function sendNow(mail: Mail): Promise<void> {
    const { state, answer } = await mailer.send(mail)
    if (state === 'bounced') throw new Error(answer ?? state)
  }

  return {
    list: () =>
      mailKinds.map((kind) => ({
        kind,
        placeholders: mailPlaceholders(kind),
        required: requiredPlaceholder(kind),
        texts: Object.fromEntries(
          locales.map((locale) => [locale, defaultMailText(kind, locale)]),
        ) as Record<Locale, MailText>, // one for each of them
      })),

    /** @throws validation_error (`send`: a command, or the mail was not accepted) · rate_limited */
    async preview(request: PreviewRequest, by: By) {
      const { kind, lang } = request
      const { id = '' } = by.actor
      const admin = findUser(id)
      const face = settings.changedBy(request.settings ?? {})
      const content = contentOf(request, face, admin ?? { id, displayName: 'Ada', email: '' })
      if (request.send) {
        if (!admin) throw invalidField('send', 'invalid')
        sent.mustTake(sentPerHour, clock.now())
        const failure = await failureMessage(sendNow({ ...content, face }))
        if (failure !== undefined) throw invalidField('send', 'not_mailed', failure)
        const target = { type: 'setting', id: 'texts' } as const
        const details = { kind, lang }
        await write(() => audit.record({ action: 'mail_text_sent', ...by, target, details }))
      }
      const link = content.about && {
        unsubscribeUrl: `${config.publicUrl}/mail-preferences?token=…`,
      }
      const { subject, text, html } = inPlatformStyle({ ...content, ...link }, face)
      return { subject, text, html }
    },
  }
}

const deskKinds: readonly MailKind[] = ['ticket_answer', 'ticket_waiting', 'bucket_failed']

function linkOf(kind: MailKind, publicUrl: string): string | undefined {
  if (requiredPlaceholder(kind) === 'link') return `${publicUrl}/${kind.replace('_', '-')}#token=…`
  return deskKinds.includes(kind) ? `${publicUrl}/console` : undefined
}

function itemsOf(kind: MailKind, locale: Locale, face: ShownSettings, publicUrl: string) {
  const [level, platform] = [face.get('mail_content'), face.get('platform_name')]
  const { notifications, push } = texts[locale]
  const { support_reply, broadcast } = notifications
  const news = { title: broadcast.title, body: broadcast.body }
  const answer = { title: support_reply.bareTitle, body: support_reply.body }
  if (kind === 'notifications') {
    const hidden = (item: MailItem) => ({ title: platform, body: item.title })
    return level === 'none' ? [answer, news].map(hidden) : [answer, news]
  }
  if (kind === 'unread_messages') {
    const body = level === 'full' ? 'Hello?' : push.message
    return [{ title: level === 'none' ? platform : 'Ada', body }]
  }
  const message = {
    id: '01JZ4M7Y6D3S0V9X2B8C5K1N4Q',
    subject: 'Refund',
    body: 'Hello?',
    category: 'billing',
    priority: 'normal',
    owner: { name: 'Ada', email: 'ada@example.com' },
    link: `${publicUrl}/console`,
  } as const
  const item = ownerMessageItem(face, locale, message)
  const { link: _, ...withoutLink } = item
  return [kind === 'ticket_waiting' ? item : withoutLink]
}
