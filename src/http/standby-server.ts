import { ulid } from 'ulid'
import type { Config } from '../config.ts'
import { errorBody } from '../lib/error-body.ts'
import { AppError, invalidField } from '../lib/errors.ts'
import { negotiateLocale } from '../lib/i18n.ts'
import { refusalOfMetrics } from './bearer.ts'
import { errorHeaders } from './error-answer.ts'

type StandbyOptions = {
  config: Pick<Config, 'metricsToken'>
  version: string
  metrics: { contentType: string; text: () => Promise<string> }
}

const retryAfterSeconds = 5

/** The handler of requests to a standby: answers for its health and its metrics; refuses all others. */
export function createStandbyHandler({ config, version, metrics }: StandbyOptions) {
  async function answer(request: Request, peer: string | undefined): Promise<Response> {
    const pathname = URL.parse(request.url)?.pathname
    if (pathname === undefined) return refusal(request, invalidField('host', 'host'))
    if (pathname === '/healthz') return Response.json({ status: 'ok', version, role: 'standby' })
    if (pathname !== '/metrics') {
      return refusal(request, new AppError('unavailable', { retryAfterSeconds }))
    }
    const refused = refusalOfMetrics(request, peer, config.metricsToken)
    if (refused) return refusal(request, refused)
    return new Response(await metrics.text(), { headers: { 'content-type': metrics.contentType } })
  }

  return async (request: Request, server: Bun.Server<undefined>) => {
    const answered = await answer(request, server.requestIP(request)?.address)
    answered.headers.set('x-request-id', ulid())
    return answered
  }
}

function refusal({ headers }: Request, error: AppError): Response {
  const body = errorBody(error, negotiateLocale(headers.get('accept-language')))
  return Response.json(body, { status: error.status, headers: errorHeaders(error) })
}
