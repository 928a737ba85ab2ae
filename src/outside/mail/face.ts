import type { Settings, ShownSettings } from '../../db/settings-store.ts'
import { texts } from '../../lib/i18n.ts'
import type { Mailer, SentMail } from './mailer.ts'
import type { PreferenceLinks } from './preference-links.ts'

/** Marks a link in the HTML of a mail as its button. Texts of people are escaped and cannot contain it. */
export const buttonMark = 'data-button=""'

type Style = { settings: Settings; links: PreferenceLinks; issuer: string }

export function createPlatformMailer(mailer: Mailer<SentMail>, style: Style): Mailer {
  const { settings, links, issuer } = style
  return {
    send({ face = settings, about, id, ...mail }) {
      const unsubscribeUrl = about && links.urlFor({ ...about, address: mail.to }, mail.locale)
      const messageId = `<${id.toLowerCase()}@${issuer}>`
      return mailer.send(inPlatformStyle({ ...mail, unsubscribeUrl, messageId }, face))
    },
    close: mailer.close,
  }
}

type Shown = Omit<SentMail, 'fromName' | 'messageId'>

export function inPlatformStyle<M extends Shown>(mail: M, settings: ShownSettings) {
  const name = settings.get('platform_name')
  const foot = footOf(mail, settings)
  return {
    ...mail,
    fromName: name,
    subject: oneLine(mail.subject),
    text: [mail.text, `-- \n${[name, ...foot.map(({ text }) => text)].join('\n')}`].join('\n\n'),
    html: documentOf(mail, settings, foot.map(({ html }) => html).join('<br>')),
  }
}

type FootLine = { text: string; html: string }

function footOf({ locale, unsubscribeUrl }: Shown, settings: ShownSettings): FootLine[] {
  const [appUrl, email] = [settings.get('app_url'), settings.get('support_email')]
  const { questions, unsubscribe } = texts[locale].mailFrame
  const line = (before: string, href: string, shown: string) => ({
    text: before + shown,
    html: `${before}<a href="${Bun.escapeHTML(href)}" style="color:inherit">${Bun.escapeHTML(shown)}</a>`,
  })
  return [
    ...(appUrl === null ? [] : [line('', appUrl, appUrl)]),
    ...(email === null ? [] : [line(`${questions} `, `mailto:${email}`, email)]),
    ...(unsubscribeUrl === undefined
      ? []
      : [line(`${unsubscribe} `, unsubscribeUrl, unsubscribeUrl)]),
  ]
}

function documentOf({ locale, subject, html }: Shown, settings: ShownSettings, foot: string) {
  const name = Bun.escapeHTML(settings.get('platform_name'))
  const [logo, accent] = [settings.get('logo_url'), settings.get('accent')]
  const head = logo
    ? `<img src="${Bun.escapeHTML(logo)}" alt="${name}" height="40" style="border:0;max-width:100%;object-fit:contain">`
    : `<b style="font-size:18px">${name}</b>`
  const button = `style="display:inline-block;padding:12px 20px;background:${accent};color:${textOn(accent)};border-radius:6px;text-decoration:none"`
  const body = html.replaceAll(buttonMark, button)
  return `<!doctype html><html lang="${locale}"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>${Bun.escapeHTML(subject)}</title></head><body style="margin:0 auto;padding:24px;max-width:600px;font-family:sans-serif;line-height:1.5;word-break:break-word"><p>${head}</p>${body}<p style="margin-top:32px;padding-top:12px;border-top:1px solid #888;opacity:.75;font-size:13px">${name}${foot && `<br>${foot}`}</p></body></html>`
}

/** Black or white, whichever is easier to read on the colour (WCAG 2.2, relative luminance). */
export function textOn(colour: string): '#000000' | '#ffffff' {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const value = Number.parseInt(colour.slice(at, at + 2), 16) / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? '#000000' : '#ffffff'
}

export const oneLine = (text: string) => text.replace(/[\p{Cc}\s]+/gu, ' ')
