const exposed =
  'X-Request-ID, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, X-Error-Reason, Idempotent-Replayed'

/** The CORS headers for a page of one of the exact `origins`; none for any other page. */
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

/** Whether a page of this origin may open a socket; CORS does not cover sockets. Without configured origins every page
 *  may. Clients other than browsers send no origin, and may too. */
export function mayOpenSocket(
  request: Headers,
  origins: readonly string[],
  publicUrl: string,
): boolean {
  const origin = request.get('origin')
  return origin === null || origins.length === 0 || [...origins, publicUrl].includes(origin)
}

/** Whether a request is a CORS preflight, which gets the same response on every path. */
export function isPreflight(request: Request): boolean {
  return request.method === 'OPTIONS' && request.headers.has('access-control-request-method')
}

export const preflightHeaders = {
  'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
  'access-control-allow-headers':
    'Authorization, Content-Type, Accept-Language, X-Idempotency-Key, X-File-Name',
  'access-control-max-age': '600',
}
