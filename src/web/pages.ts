import { gunzipSync } from 'node:zlib'
import { Elysia } from 'elysia'
import type { PageName } from '../../scripts/build-pages.ts'
import { hidden } from '../api/operation.ts'
import { routeBase } from '../http/request-context.ts'
import { AppError } from '../lib/errors.ts'
import { sha256 } from '../lib/hash.ts'
import { locales } from '../lib/i18n.ts'
import { type AccountPage, accountPage } from './account/account-pages.ts'
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

type PagesOptions = { version: string; demo: boolean }

/** The console, the demo, the API reference, the start page and the pages behind mailed links. Their files are
 *  loaded at the first request. */
export function pageRoutes({ version, demo }: PagesOptions) {
  const routes = new Elysia({ name: 'pages' })
    .use(routeBase)
    .get(
      '/',
      ({ set, request }) => page(set, request, 'start', (html) => startPage(html, version, demo)),
      hidden,
    )
    .use(appRoutes('/console', 'console'))
    .use(appRoutes('/docs', 'reference'))
    .get('/assets/:name', ({ set, request, params }) => asset(set, request, params.name), hidden)
  if (demo) routes.use(appRoutes('/demo', 'demo'))
  for (const name of accountPageNames) routes.use(accountPageRoute(name))
  return routes
}

const accountPageNames = [
  'verify-email',
  'reset-password',
  'change-email',
  'undo-email',
  'set-up',
] as const satisfies AccountPage[]

/** A single-page app: every path below the prefix gets the same HTML. */
function appRoutes(path: string, name: PageName) {
  const show = ({ set, request }: { set: ResponseSet; request: Request }) =>
    page(set, request, name)
  return new Elysia().use(routeBase).get(path, show, hidden).get(`${path}/*`, show, hidden)
}

/** The page behind a mailed or printed link. The language is that of the link, or else of the browser. */
function accountPageRoute(name: AccountPage) {
  return new Elysia().use(routeBase).get(
    `/${name}`,
    ({ set, request, query, context }) => {
      const { lang }: Record<string, unknown> = query
      const locale = locales.find((known) => known === lang) ?? context.locale
      return page(set, request, 'account', (html) => accountPage(html, name, locale))
    },
    hidden,
  )
}

type ResponseSet = { headers: Record<string, string | number>; status?: number | string }

/** HTML is revalidated on each request; assets have a hash in their name and never change. */
async function page(
  set: ResponseSet,
  request: Request,
  name: PageName,
  fill = (html: string): string => html,
) {
  const { html } = await import('./page-files.ts')
  const text = fill(html[name])
  const tag = `"${sha256(text).slice(0, 22)}"`
  Object.assign(set.headers, {
    'cache-control': 'no-cache',
    'content-security-policy': policy,
    etag: tag,
  })
  if (request.headers.get('if-none-match') === tag) {
    set.status = 304
    return
  }
  set.headers['content-type'] = 'text/html; charset=utf-8'
  return text
}

const decoded = new Map<string, Uint8Array<ArrayBuffer>>()
const unzipped = new Map<string, Uint8Array<ArrayBuffer>>()

/** @throws not_found */
async function asset({ headers }: ResponseSet, request: Request, name: string) {
  const { assets } = await import('./page-files.ts')
  const found = Object.hasOwn(assets, name) ? assets[name] : undefined
  if (!found) throw new AppError('not_found')
  const { type, encoding } = found
  headers['content-type'] = type
  headers['cache-control'] = 'public, max-age=31536000, immutable'
  const bytes = decoded.get(name) ?? Buffer.from(found.bytes, 'base64')
  decoded.set(name, bytes)
  if (encoding === undefined) return bytes
  headers['vary'] = 'Accept-Encoding'
  // gzip is accepted by every browser.
  if (!request.headers.get('accept-encoding')?.includes(encoding)) {
    const plain = unzipped.get(name) ?? gunzipSync(bytes)
    unzipped.set(name, plain)
    return plain
  }
  headers['content-encoding'] = encoding
  return bytes
}
