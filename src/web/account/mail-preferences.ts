import type { Settings } from '../../db/settings-store.ts'
import type { readForm } from '../../http/body.ts'
import { type Locale, texts } from '../../lib/i18n.ts'
import { inAccountFrame, withoutScript } from './account-pages.ts'

type Channels = { [channel: string]: boolean | undefined }

export type MailPreferences = {
  isSigned: (token: string) => boolean
  find: (token: string) => { about: readonly string[]; types: Record<string, Channels> } | undefined
  unsubscribe: (token: string) => Promise<void>
  change: (token: string, chosen: Set<string>, before: Set<string>) => Promise<void>
  isAlwaysOn: (type: string, channel: string) => boolean
}

export type Done = 'stopped' | 'saved'
type Form = Awaited<ReturnType<typeof readForm>>

/** Whether a form is of the page, and not the one of a mail program (RFC 8058). */
export const isOfPage = (form: Form) => form.has('save') || form.has('stop')

/** @returns the message for the page */
export async function changeByForm(
  preferences: MailPreferences,
  token: string,
  form: Form,
): Promise<Done> {
  if (!form.has('save')) {
    await preferences.unsubscribe(token)
    return 'stopped'
  }
  const named = (name: string) => new Set(form.getAll(name).map(String))
  await preferences.change(token, named('on'), named('was_on'))
  return 'saved'
}

const channels = ['in_app', 'push', 'email'] as const

type Shown = {
  preferences: MailPreferences
  token: string
  done: Done | undefined
  locale: Locale
  settings: Settings
}

/** The page behind the link at the end of mails. It needs no script. */
export function mailPreferencesPage(html: string, shown: Shown): string {
  const { preferences, token, done, locale, settings } = shown
  const words = texts[locale].mailPreferences
  const found = preferences.find(token)
  const frame = (content: string) =>
    inAccountFrame(withoutScript(html), { title: words.title, content, locale, settings })
  if (!preferences.isSigned(token)) return frame(`<p class="error">${words.invalid}</p>`)
  if (!found) return frame(`<p>${words.gone}</p>`)
  const { about, types } = found
  const named = about.map((type) => nameOf(type, locale)).join(', ')
  const isOn = about.some((type) => types[type]?.['email'])
  const stop = isOn
    ? `<form method="post"><p>${words.lead.replace('{types}', () => named)}</p><button class="button primary" name="stop" value="1">${words.button}</button></form>`
    : ''
  const row = ([type, on]: [string, Channels]) =>
    `<tr><th scope="row">${nameOf(type, locale)}</th>${channels.map((channel) => `<td>${box(type, channel, on[channel])}</td>`).join('')}</tr>`
  const labels = { in_app: words.app, push: words.push, email: words.email }
  const box = (type: string, channel: keyof typeof labels, isOn: boolean | undefined) =>
    isOn === undefined
      ? ''
      : `${isOn ? `<input type="hidden" name="was_on" value="${type}.${channel}">` : ''}<input type="checkbox" name="on" value="${type}.${channel}" aria-label="${nameOf(type, locale)}: ${labels[channel]}"${isOn ? ' checked' : ''}${preferences.isAlwaysOn(type, channel) ? ' disabled' : ''}>`
  const head = channels.map((channel) => `<th scope="col">${labels[channel]}</th>`).join('')
  // Such mails may have been switched on again since.
  const isDone = done && !(done === 'stopped' && isOn)
  return frame(`${isDone ? `<p role="status">${words[done]}</p>` : ''}${stop}
<form method="post"><h2>${words.all}</h2>
<table class="preferences"><thead><tr><td></td>${head}</tr></thead><tbody>${Object.entries(types).map(row).join('')}</tbody></table>
<button class="button" name="save" value="1">${words.save}</button></form>`)
}

function nameOf(type: string, locale: Locale): string {
  const { mailPreferences, notifications } = texts[locale]
  if (type === 'chat_message') return mailPreferences.messages
  const known: Record<string, { title: string; bareTitle?: string }> = notifications
  const text = known[type]
  return Bun.escapeHTML(
    text?.bareTitle ?? text?.title ?? type.replace('custom.', '').replaceAll('_', ' '),
  )
}
