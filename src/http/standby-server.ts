import { ulid } from 'ulid'
import type { Config } from '../config.ts'
import { errorBody } from '../lib/error-body.ts'
import { AppError, invalidField, StartError } from '../lib/errors.ts'
import { negotiateLocale } from '../lib/i18n.ts'
import { refusalOfMetrics } from './bearer.ts'
import { ciphers, readCertificate } from './certificate.ts'
import { errorHeaders } from './error-answer.ts'

type StandbyServerOptions = {
  config: Pick<Config, 'host' | 'port' | 'tls' | 'metricsToken'>
  version: string
  metrics: { contentType: string; text: () => Promise<string> }
}

const retryAfterSeconds = 5

/** The HTTP server of a standby, for its health and its metrics; it refuses all other requests.
 *  @throws StartError when it cannot listen */
export function serveStandby({ config, version, metrics }: StandbyServerOptions) {
  const { host, port, tls, metricsToken } = config
  const pem = tls && readCertificate(tls)

  async function answer(request: Request, peer: string | undefined): Promise<Response> {
    const pathname = URL.parse(request.url)?.pathname
    if (pathname === undefined) return refusal(request, invalidField('host', 'host'))
    if (pathname === '/healthz') return Response.json({ status: 'ok', version, role: 'standby' })
    if (pathname !== '/metrics') {
      return refusal(request, new AppError('unavailable', { retryAfterSeconds }))
    }
    const refused = refusalOfMetrics(request, peer, metricsToken)
    if (refused) return refusal(request, refused)
    return new Response(await metrics.text(), { headers: { 'content-type': metrics.contentType } })
  }

  try {
    return Bun.serve({
      port,
      hostname: host,
      development: false,
      ...(pem && { tls: { cert: pem.cert, key: pem.key, ciphers } }),
      async fetch(request, server) {
        const answered = await answer(request, server.requestIP(request)?.address)
        answered.headers.set('x-request-id', ulid())
        return answered
      },
    })
  } catch (cause) {
    throw new StartError(`cannot listen on ${host}:${port}: ${(cause as Error).message}`, { cause })
  }
}

function refusal({ headers }: Request, error: AppError): Response {
  const body = errorBody(error, negotiateLocale(headers.get('accept-language')))
  return Response.json(body, { status: error.status, headers: errorHeaders(error) })
}
