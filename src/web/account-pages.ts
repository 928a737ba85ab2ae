import { type Locale, type Texts, texts } from '../lib/i18n.ts'

export type AccountPage = keyof Texts['pages']

const endpoints: Record<AccountPage, string> = {
  'verify-email': '/v1/auth/verify-email',
  'reset-password': '/v1/auth/password/reset',
  'change-email': '/v1/auth/email/confirm',
  'undo-email': '/v1/auth/email/undo',
  'set-up': '/v1/auth/set-up',
}

export const pageStyle = `body { font: 1rem/1.6 system-ui, sans-serif; max-width: 26rem; margin: 12vh auto; padding: 0 1rem; color: #1c2330; background: #fff }
h1 { font-size: 1.5rem; line-height: 1.25 }
label { display: block; margin-top: 1rem; font-weight: 600 }
input { box-sizing: border-box; width: 100%; margin-top: .25rem; padding: .6rem; font: inherit; color: inherit; background: transparent; border: 1px solid #76809a; border-radius: .4rem }
small { display: block; margin-top: .25rem; color: #566079 }
button { margin-top: 1.25rem; padding: .7rem 1.25rem; font: inherit; font-weight: 600; color: #fff; background: #1d4ed8; border: 0; border-radius: .4rem; cursor: pointer }
button:disabled { opacity: .6 }
:focus-visible { outline: 3px solid #f59e0b; outline-offset: 2px }
[role=status] { min-height: 1.6em; margin-top: 1.25rem; outline: none }
.error { color: #b91c1c }
@media (prefers-color-scheme: dark) {
  body { color: #e6e9ef; background: #14181f }
  small { color: #a3acc2 }
  .error { color: #fca5a5 }
}
`

/** The page behind a mailed or printed link: a form whose button does the POST. */
export function accountPage(page: AccountPage, locale: Locale): string {
  const { form, pages } = texts[locale]
  const { title, lead, button, done } = pages[page]
  const email =
    page === 'set-up'
      ? `<label for="email">${form.email}</label><input id="email" name="email" type="email" autocomplete="username" required>`
      : ''
  const password =
    page !== 'reset-password' && page !== 'set-up'
      ? ''
      : `<label for="password">${form.password}</label><input id="password" name="password" type="password" autocomplete="new-password" minlength="8" maxlength="256" required aria-describedby="hint"><small id="hint">${form.passwordHint}</small>`
  return `<!doctype html>
<html lang="${locale}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}</title>
<link rel="stylesheet" href="/assets/account.css">
</head>
<body>
<main>
<h1>${title}</h1>
<form data-endpoint="${endpoints[page]}" data-busy="${form.busy}" data-done="${done}" data-offline="${form.offline}" data-expired="${form.expired}">
<p>${lead}</p>
${email}${password}
<button>${button}</button>
</form>
<p role="status" tabindex="-1"></p>
<noscript><p class="error">${form.noScript}</p></noscript>
</main>
<script src="/assets/account.js"></script>
</body>
</html>
`
}
