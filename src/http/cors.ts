import type { Config } from '../config.ts'
import type { Core } from '../core.ts'
import { hour } from '../lib/clock.ts'

const exposed =
  'X-Request-ID, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, X-Error-Reason, WWW-Authenticate, Allow, Idempotent-Replayed'

/** Anybody can send any origin, and each is logged and stored. */
const reportedPerHour = 10

export function createCors({ config, clock }: Core, onRefused: (origin: string) => void) {
  const { corsOrigins: origins, publicUrl } = config
  const reported = new Set<string>()
  let since = 0

  function report(origin: string) {
    if (clock.now() - since >= hour) {
      since = clock.now()
      reported.clear()
    }
    if (origin === publicUrl || reported.has(origin) || reported.size >= reportedPerHour) return
    reported.add(origin)
    onRefused(origin)
  }

  /** A page of this service, reached by another name than its public one. Its requests need no CORS, but with configured
   *  origins its socket is refused. */
  const isOwnPage = (origin: string, request: Headers) =>
    origins.length === 0 && origin.endsWith(`://${request.get('host')}`)

  return (request: Headers): Record<string, string> => {
    const origin = request.get('origin')
    if (origin !== null && origins.includes(origin)) {
      return {
        vary: 'Origin',
        'access-control-allow-origin': origin,
        'access-control-expose-headers': exposed,
      }
    }
    // `null` names nobody: a form on a page without a referrer sends it, as that of the mail preferences does.
    if (origin !== null && origin !== 'null' && !isOwnPage(origin, request)) report(origin)
    return origin === null || origins.length === 0 ? {} : { vary: 'Origin' }
  }
}

/** CORS does not cover sockets. Clients other than browsers send no origin, and may open one. */
export function mayOpenSocket(request: Headers, { corsOrigins, publicUrl }: Config): boolean {
  const origin = request.get('origin')
  return origin === null || corsOrigins.length === 0 || [...corsOrigins, publicUrl].includes(origin)
}

export function isPreflight(request: Request): boolean {
  return request.method === 'OPTIONS' && request.headers.has('access-control-request-method')
}

export const preflightHeaders = {
  'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
  'access-control-allow-headers':
    'Authorization, Content-Type, Accept-Language, X-Idempotency-Key, X-File-Name',
  'access-control-max-age': '600',
}
