import type { Settings } from '../../db/settings-store.ts'
import { type Locale, type Texts, texts } from '../../lib/i18n.ts'
import { textOn } from '../../outside/mail/face.ts'

export type AccountPage = keyof Texts['pages']

const endpoints: Record<AccountPage, string> = {
  'verify-email': '/v1/auth/verify-email',
  'reset-password': '/v1/auth/password/reset',
  'change-email': '/v1/auth/email/confirm',
  'undo-email': '/v1/auth/email/undo',
  'set-up': '/v1/auth/set-up',
}

/** Their links are sent again on request. */
const isSentAgain = (page: AccountPage) => page !== 'set-up' && page !== 'undo-email'

/** The page behind a mailed or printed link: a form whose button does the POST. */
export function accountPage(
  html: string,
  page: AccountPage,
  { locale, settings }: { locale: Locale; settings: Settings },
): string {
  const { form, pages } = texts[locale]
  const { title, lead, button, done } = pages[page]
  const expired = isSentAgain(page) ? `${form.expired} ${form.again}` : form.expired
  const email = field('email', form.email, 'type="email" autocomplete="username"')
  const password = field(
    'password',
    form.password,
    'type="password" autocomplete="new-password" minlength="8" maxlength="256"',
    form.passwordHint,
  )
  const fields: Partial<Record<AccountPage, string>> = {
    'reset-password': password,
    'set-up': email + password,
  }
  const next =
    page === 'set-up' ? `<p class="next" hidden><a href="/console">${form.console}</a></p>` : ''
  const content = `<form data-endpoint="${endpoints[page]}" data-busy="${form.busy}" data-done="${done}" data-offline="${form.offline}" data-expired="${expired}" data-lost="${form.lost}">
<p>${lead}</p>
${fields[page] ?? ''}
<button class="button primary">${button}</button>
</form>
<p role="status" tabindex="-1"></p>
${next}
<noscript><p class="error">${form.noScript}</p></noscript>`
  return inAccountFrame(html, { title, content, locale, settings })
}

type Framed = { title: string; content: string; locale: Locale; settings: Settings }

const field = (name: string, label: string, attributes: string, hint = '') =>
  `<div class="field"><label for="${name}">${label}</label><input id="${name}" name="${name}" ${attributes} required aria-describedby="${name}-hint ${name}-problem"><span class="hint" id="${name}-hint">${hint}</span><span class="problem" id="${name}-problem"></span></div>`

/** For pages that need none. */
export const withoutScript = (html: string) => html.replace(/<script.*?<\/script>/gs, '')

/** Shows the platform's logo in the tab, or else the first letter of its name. */
export function withPlatformIcon(html: string, settings: Settings): string {
  const icon = settings.get('logo_url') ?? initialIcon(settings)
  return html.replace(
    /<link rel="icon"[^>]*>/,
    () => `<link rel="icon" href="${Bun.escapeHTML(icon)}">`,
  )
}

function initialIcon(settings: Settings): string {
  const accent = settings.get('accent')
  const [first = ''] = settings.get('platform_name').toUpperCase()
  const letter = `<text x="16" y="22.5" fill="${textOn(accent)}" font-family="sans-serif" font-size="18" font-weight="700" text-anchor="middle">${Bun.escapeHTML(first)}</text>`
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="9" fill="${accent}"/>${letter}</svg>`
  return `data:image/svg+xml,${encodeURIComponent(svg)}`
}

/** A page in the name and colour of the platform, with a way back to the app. */
export function inAccountFrame(html: string, { title, content, locale, settings }: Framed): string {
  const name = Bun.escapeHTML(settings.get('platform_name'))
  const [appUrl, logo] = [settings.get('app_url'), settings.get('logo_url')]
  const mark = logo ? `<img src="${Bun.escapeHTML(logo)}" alt="${name}" height="40">` : name
  const back = appUrl
    ? `<p><a href="${Bun.escapeHTML(appUrl)}">${texts[locale].form.back.replace('{platform}', () => name)}</a></p>`
    : ''
  const main = `<main>
<h1>${title.replace(/e-mail/i, '<span>$&</span>')}</h1>
${content}
${back}
</main>`
  return withPlatformIcon(html, settings)
    .replace('<html lang="en">', `<html lang="${locale}">`)
    .replace('<title></title>', () => `<title>${title} · ${name}</title>`)
    .replace('</head>', '<link rel="stylesheet" href="/platform.css"></head>')
    .replace(
      '<header class="word-mark"></header>',
      () => `<header class="word-mark">${mark}</header>`,
    )
    .replace('<main></main>', () => main)
}
