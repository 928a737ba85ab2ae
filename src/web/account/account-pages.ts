import { type Locale, type Texts, texts } from '../../lib/i18n.ts'

export type AccountPage = keyof Texts['pages']

const endpoints: Record<AccountPage, string> = {
  'verify-email': '/v1/auth/verify-email',
  'reset-password': '/v1/auth/password/reset',
  'change-email': '/v1/auth/email/confirm',
  'undo-email': '/v1/auth/email/undo',
  'set-up': '/v1/auth/set-up',
}

/** The page behind a mailed or printed link: a form whose button does the POST. */
export function accountPage(html: string, page: AccountPage, locale: Locale): string {
  const { form, pages } = texts[locale]
  const { title, lead, button, done } = pages[page]
  const email =
    page === 'set-up'
      ? `<div class="field"><label for="email">${form.email}</label><input id="email" name="email" type="email" autocomplete="username" required></div>`
      : ''
  const password =
    page !== 'reset-password' && page !== 'set-up'
      ? ''
      : `<div class="field"><label for="password">${form.password}</label><input id="password" name="password" type="password" autocomplete="new-password" minlength="8" maxlength="256" required aria-describedby="hint"><span class="hint" id="hint">${form.passwordHint}</span></div>`
  const next =
    page === 'set-up' ? `<p class="next" hidden><a href="/console">${form.console}</a></p>` : ''
  const main = `<main>
<h1>${title}</h1>
<form data-endpoint="${endpoints[page]}" data-busy="${form.busy}" data-done="${done}" data-offline="${form.offline}" data-expired="${form.expired}">
<p>${lead}</p>
${email}${password}
<button class="button primary">${button}</button>
</form>
<p role="status" tabindex="-1"></p>
${next}
<noscript><p class="error">${form.noScript}</p></noscript>
</main>`
  return html
    .replace('<html lang="en">', `<html lang="${locale}">`)
    .replace('<title>Hostline</title>', `<title>${title}</title>`)
    .replace('<main></main>', main)
}
