const exposed =
  'X-Request-ID, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, X-Error-Reason, Idempotent-Replayed'

/** What a browser page of one of the exact `origins` needs to read an answer; nothing for any other page. */
export function corsHeaders(request: Headers, origins: readonly string[]): Record<string, string> {
  const origin = request.get('origin')
  if (origin === null) return {}
  if (!origins.includes(origin)) return { vary: 'Origin' }
  return {
    vary: 'Origin',
    'access-control-allow-origin': origin,
    'access-control-expose-headers': exposed,
  }
}

/** Whether a browser page may open a socket, which no CORS rule covers. Pages of everywhere may while no origins are
 *  configured, and so may clients that are no page: they send no origin. */
export function mayOpenSocket(
  request: Headers,
  origins: readonly string[],
  publicUrl: string,
): boolean {
  const origin = request.get('origin')
  return origin === null || origins.length === 0 || [...origins, publicUrl].includes(origin)
}

/** A browser asking whether it may send a request; what it may is the same everywhere. */
export function isPreflight(request: Request): boolean {
  return request.method === 'OPTIONS' && request.headers.has('access-control-request-method')
}

export const preflightHeaders = {
  'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
  'access-control-allow-headers':
    'Authorization, Content-Type, Accept-Language, X-Idempotency-Key, X-File-Name',
  'access-control-max-age': '600',
}
