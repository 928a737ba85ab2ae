import { Type } from '@sinclair/typebox'
import serviceWorker from '../../client/service-worker.js' with { type: 'text' }
import { Sample } from '../api/fields.ts'
import { hidden, operations } from '../api/operation.ts'
import { refusalOfMetrics } from '../http/bearer.ts'
import { type Compressed, compress, compressedAnswer } from '../http/compressed-answer.ts'
import type { RouteApp } from '../http/request-context.ts'
import { AppError } from '../lib/errors.ts'
import type { Metrics } from '../metrics.ts'
import { type PagesOptions, pageRoutes } from './pages.ts'

const uncounted = operations('Service', { access: 'public', limit: 'none' })
const counted = operations('Service', { access: 'public' })
const retryAfterSeconds = 1

const Health = Type.Object({ status: Sample('ok'), version: Sample('1.0.0') }, { title: 'Health' })
const Readiness = Type.Object({ status: Sample('ready') }, { title: 'Readiness' })

type WebRoutesOptions = PagesOptions & {
  /** False while the database cannot be written or the service shuts down. */
  isReady: () => Promise<boolean>
  metrics: Metrics
  metricsToken: string | undefined
}

/** The pages, the client's files, health, readiness and metrics. */
export function webRoutes(app: RouteApp, options: WebRoutesOptions) {
  const { version, isReady, metrics, metricsToken } = options
  pageRoutes(app, options)
  app
    .get('/client.js', ({ set, request }) => clientFile(set, request, 'script'), hidden)
    .get('/state.js', ({ set, request }) => clientFile(set, request, 'state'), hidden)
    .get('/client.d.ts', ({ set, request }) => clientFile(set, request, 'types'), hidden)
    .get('/hostline-client.tgz', ({ set, request }) => clientFile(set, request, 'package'), hidden)
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
        { 200: Readiness },
      ),
    )
    .get(
      '/metrics',
      ({ request, server, set }) => {
        const peer = server?.requestIP(request)?.address
        const refused = refusalOfMetrics(request, peer, metricsToken)
        if (refused) throw refused
        set.headers['content-type'] = metrics.contentType
        return metrics.text()
      },
      uncounted(
        'getMetrics',
        'Shows metrics as Prometheus text. Needs `METRICS_TOKEN` as bearer token. Without that setting, only requests from the same machine are answered.',
        {
          200: null,
          media: { 'text/plain': { schema: { type: 'string' } } },
          errors: ['token_missing', 'token_invalid'],
        },
      ),
    )
}

type ResponseSet = { headers: Record<string, string | number>; status?: number | string }

function asset({ headers }: ResponseSet, type: string, text: string) {
  headers['content-type'] = `${type}; charset=utf-8`
  headers['cache-control'] = 'public, max-age=3600'
  return text
}

const clientTypes = {
  script: 'text/javascript; charset=utf-8',
  state: 'text/javascript; charset=utf-8',
  types: 'text/plain; charset=utf-8',
  package: 'application/gzip',
} as const
const clientFiles = new Map<string, Promise<Compressed>>()

/** The client's script, its stores, its types or its npm package. Pages of other origins may load them. */
async function clientFile(set: ResponseSet, request: Request, name: keyof typeof clientTypes) {
  const file = clientFiles.get(name) ?? readClientFile(name)
  clientFiles.set(name, file)
  set.headers['access-control-allow-origin'] = '*'
  return compressedAnswer(request, set, await file)
}

async function readClientFile(name: keyof typeof clientTypes) {
  if (name !== 'package') {
    return compress(clientTypes[name], (await import('./client-files.ts'))[name])
  }
  const { archive } = await import('./client-package.ts')
  return compress(clientTypes[name], Buffer.from(archive, 'base64'))
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
  app: RouteApp,
  { path, id, text, example }: DescriptionOf,
  describe: () => Promise<object> | object,
) {
  let description: Promise<Compressed> | undefined
  const made = async () => compress('application/json', JSON.stringify(await describe()))
  const schema = Type.Object({}, { additionalProperties: true, examples: [example] })
  app.get(
    path,
    async ({ set, request }) => {
      description ??= made()
      return compressedAnswer(request, set, await description)
    },
    counted(id, text, { 200: schema, 304: null }),
  )
}
