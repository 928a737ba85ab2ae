import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import serviceWorker from '../../client/service-worker.js' with { type: 'text' }
import { Sample } from '../api/fields.ts'
import { hidden, operations } from '../api/operation.ts'
import { mayReadMetrics } from '../http/metrics-access.ts'
import { routeBase } from '../http/request-context.ts'
import { AppError } from '../lib/errors.ts'
import type { Metrics } from '../metrics.ts'
import { pageRoutes } from './pages.ts'

const uncounted = operations('Service', { access: 'public', limit: 'none' })
const counted = operations('Service', { access: 'public' })
const retryAfterSeconds = 1

const Health = Type.Object({ status: Sample('ok'), version: Sample('1.0.0') }, { title: 'Health' })
const Readiness = Type.Object({ status: Sample('ready') }, { title: 'Readiness' })

type WebRoutesOptions = {
  version: string
  demo: boolean
  /** False while the database cannot be written or the service shuts down. */
  isReady: () => Promise<boolean>
  metrics: Metrics
  metricsToken: string | undefined
}

/** The pages, the client's files, health, readiness and metrics. */
export function webRoutes({ version, demo, isReady, metrics, metricsToken }: WebRoutesOptions) {
  return new Elysia({ name: 'web' })
    .use(routeBase)
    .use(pageRoutes({ version, demo }))
    .get(
      '/client.js',
      async ({ set }) =>
        allowCrossOrigin(set, 'text/javascript', (await import('./client-files.ts')).script),
      hidden,
    )
    .get(
      '/client.d.ts',
      async ({ set }) =>
        allowCrossOrigin(set, 'text/plain', (await import('./client-files.ts')).types),
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
        const peer = server?.requestIP(request)?.address
        if (!mayReadMetrics(request, peer, metricsToken)) throw new AppError('unauthorized')
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

type ResponseSet = { headers: Record<string, string | number> }

function asset({ headers }: ResponseSet, type: string, text: string) {
  headers['content-type'] = `${type}; charset=utf-8`
  headers['cache-control'] = 'public, max-age=3600'
  return text
}

/** Allows pages of other origins to load it. */
function allowCrossOrigin(set: ResponseSet, type: string, text: string) {
  set.headers['access-control-allow-origin'] = '*'
  return asset(set, type, text)
}

type DescriptionOf = {
  path: `/v1/${string}`
  id: string
  text: string
  /** Example in the description. */
  example: object
}

/** Serves an API description. It is built at the first request, because it describes its own route, too. */
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
