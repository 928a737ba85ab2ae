import reasons from '../../docs/reasons.md' with { type: 'text' }
import type { PageName } from '../../scripts/build-pages.ts'
import { hidden } from '../api/operation.ts'
import type { Settings } from '../db/settings-store.ts'
import { readForm } from '../http/body.ts'
import { type Compressed, compress, compressedAnswer } from '../http/compressed-answer.ts'
import { isTagKnown } from '../http/file-answer.ts'
import type { RouteApp } from '../http/request-context.ts'
import { AppError } from '../lib/errors.ts'
import { sha256 } from '../lib/hash.ts'
import { type Locale, locales, texts } from '../lib/i18n.ts'
import { textOn } from '../outside/mail/face.ts'
import {
  type AccountPage,
  accountPage,
  inAccountFrame,
  withoutScript,
  withPlatformIcon,
} from './account/account-pages.ts'
import {
  changeByForm,
  type Done,
  isOfPage,
  type MailPreferences,
  mailPreferencesPage,
} from './account/mail-preferences.ts'
import type { Documents } from './reference/documents.ts'
import { startPage } from './start/start-page.ts'

/** No external or inline content, and no embedding in frames. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "font-src 'self'",
  // Uploaded files come from this service; previews are blobs.
  "img-src 'self' blob: data:",
  "media-src 'self' blob:",
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

export type PagesOptions = {
  version: string
  demo: boolean
  settings: Settings
  mailPreferences: MailPreferences
  /** The OpenAPI and AsyncAPI documents. */
  describe: () => Promise<object>
}

/** The console, the demo, the API reference, the start page and the pages behind mailed links. Their files are
 *  loaded at the first request. */
export function pageRoutes(app: RouteApp, options: PagesOptions) {
  const { version, demo, settings, describe } = options
  app
    .get(
      '/',
      ({ set, request, context: { locale } }) =>
        page(set, request, 'start', (html) => {
          const name = settings.get('platform_name')
          return startPage(inName(html, settings), { name, version, demo, locale })
        }),
      hidden,
    )
    .get('/platform.css', ({ set }) => platformStyle(set, settings), hidden)
    .get('/assets/:name', ({ set, request, params }) => asset(set, request, params.name), hidden)
  addApp(app, 'console', settings)
  addReference(app, describe)
  addMailPreferences(app, options)
  if (demo) addApp(app, 'demo', settings)
  for (const name of accountPageNames) addAccountPage(app, name, settings)
}

const accountPageNames = [
  'verify-email',
  'reset-password',
  'change-email',
  'undo-email',
  'set-up',
] as const satisfies AccountPage[]

const inName = (html: string, settings: Settings) =>
  html.replace(
    /<title>.*<\/title>/,
    () => `<title>${Bun.escapeHTML(settings.get('platform_name'))}</title>`,
  )

/** A single-page app: every path below its name gets the same HTML. Its title has the name of the platform, and its icon the
 *  sign. */
function addApp(app: RouteApp, name: 'console' | 'demo', settings: Settings) {
  const fill = (html: string) => withPlatformIcon(inName(html, settings), settings)
  const show = ({ set, request }: Asked) => page(set, request, name, fill)
  app.get(`/${name}`, show, hidden).get(`/${name}/*`, show, hidden)
}

const searchIndex = '/docs/search.json'

/** The API reference, made at the first request. `/docs/ID` leads to a section. */
function addReference(app: RouteApp, describe: PagesOptions['describe']) {
  let made: ReturnType<typeof makeReference> | undefined
  async function answer({ set, request, path }: Asked & { path: string }) {
    made ??= makeReference(describe)
    const { files, homes } = await made
    const file = files.get(path)
    if (file) {
      set.headers['content-security-policy'] = policy
      return compressedAnswer(request, set, await file())
    }
    const id = path.slice('/docs/'.length)
    const home = homes.get(id)
    set.status = 302
    set.headers['location'] = home ? `${home}#${encodeURIComponent(id)}` : '/docs'
    return undefined
  }
  app.get('/docs', answer, hidden).get('/docs/*', answer, hidden)
}

async function makeReference(describe: PagesOptions['describe']) {
  const [{ html }, { referenceOf }, documents] = await Promise.all([
    import('./page-files.ts'),
    import('./reference/page.ts'),
    describe(),
  ])
  const known = documents as Documents // the descriptions of this service, as far as the pages show them
  const { pages, homes, index } = referenceOf(html.reference, known, reasons)
  const files = new Map([[searchIndex, once('application/json', JSON.stringify(index))]])
  for (const [path, text] of pages) files.set(path, once('text/html; charset=utf-8', text))
  return { files, homes }
}

/** Compresses a file when it is first asked for. */
function once(type: string, text: string): () => Promise<Compressed> {
  let made: Promise<Compressed> | undefined
  return () => {
    made ??= compress(type, text)
    return made
  }
}

/** The page behind a mailed or printed link. The language is that of the link, or else of the browser. */
function addAccountPage(app: RouteApp, name: AccountPage, settings: Settings) {
  app.get(
    `/${name}`,
    ({ set, request, query, context }) => {
      const locale = localeOf(query, context)
      return page(set, request, 'account', (html) => accountPage(html, name, { locale, settings }))
    },
    hidden,
  )
}

function localeOf({ lang }: Record<string, unknown>, context: { locale: Locale }): Locale {
  return locales.find((known) => known === lang) ?? context.locale
}

/** The preferences behind the link in mails. A mail program posts the address, too (RFC 8058). */
function addMailPreferences(app: RouteApp, { settings, mailPreferences }: PagesOptions) {
  const path = '/mail-preferences'
  type AskedIn = Asked & { query: Record<string, unknown>; context: { locale: Locale } }
  async function answer({ set, request, query, context }: AskedIn, done?: Done) {
    const { token = '' } = query
    if (!mailPreferences.isSigned(String(token))) set.status = 400
    const text = await page(set, request, 'account', (html) =>
      mailPreferencesPage(html, {
        preferences: mailPreferences,
        token: String(token),
        done,
        locale: localeOf(query, context),
        settings,
      }),
    )
    set.headers['content-security-policy'] = policy.replace(
      "form-action 'none'",
      "form-action 'self'",
    )
    set.headers['cache-control'] = 'no-store'
    return text
  }
  app
    .get(path, (asked) => answer(asked, doneOf(asked.query)), hidden)
    .post(
      path,
      async (asked) => {
        const { token = '' }: Record<string, unknown> = asked.query
        const form = await readForm(asked.request)
        const done = await changeByForm(mailPreferences, String(token), form)
        if (!isOfPage(form)) return answer(asked, done)
        // So that Back and a reload show the page, and repeat no change.
        const { searchParams } = new URL(asked.request.url)
        searchParams.set('done', done)
        asked.set.status = 303
        asked.set.headers['location'] = `?${searchParams}`
        return undefined
      },
      { ...hidden, maxFileBytes: 0 },
    )
}

const doneOf = ({ done }: Record<string, unknown>): Done | undefined =>
  (['stopped', 'saved'] as const).find((known) => known === done)

/** The colour of the platform, for the account pages. */
function platformStyle({ headers }: ResponseSet, settings: Settings): string {
  headers['content-type'] = 'text/css; charset=utf-8'
  headers['cache-control'] = 'no-cache'
  const accent = settings.get('accent')
  // Links are read on light and dark ground, where a colour for buttons may be too faint.
  return `:root{--accent:${accent};--accent-strong:${accent};--on-accent:${textOn(accent)}}@layer reset{a,a:hover{color:var(--ink)}}`
}

type ResponseSet = { headers: Record<string, string | number>; status?: number | string }
type Asked = { set: ResponseSet; request: Request }

/** HTML is revalidated on each request; assets have a hash in their name and never change. */
async function page(
  set: ResponseSet,
  request: Request,
  name: PageName,
  fill: (html: string) => string,
) {
  const { html } = await import('./page-files.ts')
  const text = fill(html[name])
  const tag = `"${sha256(text).slice(0, 22)}"`
  Object.assign(set.headers, {
    'cache-control': 'no-cache',
    'content-security-policy': policy,
    etag: tag,
  })
  if (isTagKnown(request.headers.get('if-none-match'), tag)) {
    set.status = 304
    return
  }
  set.headers['content-type'] = 'text/html; charset=utf-8'
  return text
}

/** In place of a page that does not exist. */
export async function missingPage(
  { headers }: ResponseSet,
  { locale }: { locale: Locale },
  settings: Settings,
): Promise<string> {
  const { html } = await import('./page-files.ts')
  headers['content-security-policy'] = policy
  headers['content-type'] = 'text/html; charset=utf-8'
  const title = texts[locale].errors.not_found
  return inAccountFrame(withoutScript(html.account), { title, content: '', locale, settings })
}

const compressed = new Map<string, Promise<Compressed>>()

/** @throws not_found */
async function asset(set: ResponseSet, request: Request, name: string) {
  const { assets } = await import('./page-files.ts')
  const found = Object.hasOwn(assets, name) ? assets[name] : undefined
  if (!found) throw new AppError('not_found')
  const known = compressed.get(name) ?? compress(found.type, Buffer.from(found.bytes, 'base64'))
  compressed.set(name, known)
  set.headers['cache-control'] = 'public, max-age=31536000, immutable'
  return compressedAnswer(request, set, await known)
}
