import { timingSafeEqual } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import serviceWorker from '../../client/service-worker.js' with { type: 'text' }
import { isLoopback } from '../http/client-ip.ts'
import { hidden, operations } from '../http/operation.ts'
import { routeBase } from '../http/request-context.ts'
import { AppError } from '../lib/errors.ts'
import { Sample } from '../lib/fields.ts'
import { sha256 } from '../lib/hash.ts'
import { locales } from '../lib/i18n.ts'
import type { Metrics } from '../metrics.ts'
import accountScript from './account-page.client.js' with { type: 'text' }
import { type AccountPage, accountPage, pageStyle } from './account-pages.ts'

const uncounted = operations('Service', { access: 'public', limit: 'none' })
const counted = operations('Service', { access: 'public' })
const retryAfterSeconds = 1
const pagePolicy =
  "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const Health = Type.Object({ status: Sample('ok'), version: Sample('1.0.0') }, { title: 'Health' })
const Readiness = Type.Object({ status: Sample('ready') }, { title: 'Readiness' })

type WebRoutesOptions = {
  version: string
  /** Whether requests are welcome: the database can be written and nobody is shutting down. */
  isReady: () => Promise<boolean>
  metrics: Metrics
  metricsToken: string | undefined
}

/** The start page, the account pages, health, readiness and metrics. */
export function webRoutes({ version, isReady, metrics, metricsToken }: WebRoutesOptions) {
  return new Elysia({ name: 'web' })
    .use(routeBase)
    .get('/', ({ set }) => page(set, startPage(version)), hidden)
    .use(accountPageRoute('verify-email'))
    .use(accountPageRoute('reset-password'))
    .use(accountPageRoute('change-email'))
    .use(accountPageRoute('undo-email'))
    .use(accountPageRoute('set-up'))
    .get('/assets/account.css', ({ set }) => asset(set, 'text/css', pageStyle), hidden)
    .get('/assets/account.js', ({ set }) => asset(set, 'text/javascript', accountScript), hidden)
    .get(
      '/client.js',
      async ({ set }) => shared(set, 'text/javascript', (await import('./client-files.ts')).script),
      hidden,
    )
    .get(
      '/client.d.ts',
      async ({ set }) => shared(set, 'text/plain', (await import('./client-files.ts')).types),
      hidden,
    )
    .get('/service-worker.js', ({ set }) => asset(set, 'text/javascript', serviceWorker), hidden)
    .get(
      '/healthz',
      () => ({ status: 'ok', version }),
      uncounted('getHealth', 'Reports that the process is running.', { 200: Health }),
    )
    .get(
      '/readyz',
      async () => {
        if (!(await isReady())) throw new AppError('unavailable', { retryAfterSeconds })
        return { status: 'ready' }
      },
      uncounted(
        'getReadiness',
        'Reports whether the server takes requests. It does while the database is writable and no shutdown has begun.',
        {
          200: Readiness,
        },
      ),
    )
    .get(
      '/metrics',
      ({ request, server, set }) => {
        const isAllowed =
          metricsToken === undefined
            ? isFromThisMachine(request, server?.requestIP(request)?.address)
            : isBearer(request, metricsToken)
        if (!isAllowed) throw new AppError('unauthorized')
        set.headers['content-type'] = metrics.contentType
        return metrics.text()
      },
      uncounted(
        'getMetrics',
        'Shows metrics as Prometheus text. Needs `METRICS_TOKEN` as bearer token. Without that setting, only requests from the same machine are answered.',
        { 200: null },
        { errors: ['unauthorized'] },
      ),
    )
}

// A request that a proxy on this machine forwards comes from elsewhere.
function isFromThisMachine({ headers }: Request, peer: string | undefined) {
  return isLoopback(peer) && !headers.has('x-forwarded-for')
}

function isBearer({ headers }: Request, token: string) {
  const digest = (text: string) => Buffer.from(sha256(text))
  return timingSafeEqual(digest(headers.get('authorization') ?? ''), digest(`Bearer ${token}`))
}

/** The page behind a mailed or printed link, in the language of the link, else of the browser. */
function accountPageRoute(name: AccountPage) {
  return new Elysia().use(routeBase).get(
    `/${name}`,
    ({ set, query, context }) => {
      const { lang }: Record<string, unknown> = query
      return page(set, accountPage(name, locales.find((known) => known === lang) ?? context.locale))
    },
    hidden,
  )
}

type ResponseSet = { headers: Record<string, string | number> }

function page({ headers }: ResponseSet, html: string) {
  headers['content-type'] = 'text/html; charset=utf-8'
  headers['content-security-policy'] = pagePolicy
  return html
}

function asset({ headers }: ResponseSet, type: string, text: string) {
  headers['content-type'] = `${type}; charset=utf-8`
  headers['cache-control'] = 'public, max-age=3600'
  return text
}

/** What pages of other origins may load, too. */
function shared(set: ResponseSet, type: string, text: string) {
  set.headers['access-control-allow-origin'] = '*'
  return asset(set, type, text)
}

type DescriptionOf = {
  path: `/v1/${string}`
  id: string
  text: string
  /** What the description begins with. */
  example: object
}

/** A description of the interface, made at the first call: it describes itself, too. */
export function descriptionRoute(
  { path, id, text, example }: DescriptionOf,
  describe: () => Promise<object> | object,
) {
  let description: Promise<object> | object | undefined
  const schema = Type.Object({}, { additionalProperties: true, examples: [example] })
  return new Elysia({ name: path }).use(routeBase).get(
    path,
    () => {
      description ??= describe()
      return description
    },
    counted(id, text, { 200: schema }),
  )
}

function startPage(version: string) {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Hostline</title>
<link rel="stylesheet" href="/assets/account.css">
<main>
<h1>Hostline</h1>
<p>Version ${version} is running.</p>
<ul>
<li><a href="/v1/openapi.json">API description (OpenAPI 3.1)</a>,
<a href="/v1/asyncapi.json">its WebSocket channel (AsyncAPI 3.0)</a></li>
<li><a href="/.well-known/jwks.json">Public keys (JWKS)</a></li>
<li><a href="/healthz">Health</a> and <a href="/readyz">readiness</a></li>
</ul>
</main>
</html>
`
}
