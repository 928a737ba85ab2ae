import { estimateShallowMemoryUsageOf } from 'bun:jsc'
import { errorBody } from '../lib/error-body.ts'
import { AppError } from '../lib/errors.ts'
import { negotiateLocale } from '../lib/i18n.ts'

type Handle = (request: Request) => Promise<Response>
/** What the runtime knows of the connection of a request. */
type Connections = {
  /** Null once the answer was sent or the connection is gone. */
  requestIP(request: Request): unknown
  /** Closes the connection after so long without progress. */
  timeout(request: Request, seconds: number): void
}

const maxBytes = 32 * 1_024 * 1_024
/** The rest is for ordinary answers. */
const largeShare = 0.75
const largeBytes = 64 * 1_024
/** The send buffer of the kernel takes as much anyway. */
const uncountedBytes = 4 * 1_024
/** A streamed answer: two chunks are under way, and its producer holds something. */
const streamBytes = 256 * 1_024
const stuckSeconds = 8
const sweepMilliseconds = 50
const sweptAtLength = 256
const retryAfterSeconds = 5
const emptyBytes = estimateShallowMemoryUsageOf(new Response(null))

/** Bounds what answers that clients do not read hold in memory, all together: past it whoever reads gets a 503. What a
 *  request has changed is answered whatever it takes. */
export function createUnreadAnswers(findServer: () => Connections | null | undefined) {
  let unread: { request: Request; bytes: number }[] = []
  let total = 0
  let sweepAt = sweptAtLength
  let sweptAt = 0

  function sweep() {
    const server = findServer()
    unread = unread.filter(({ request }) => server?.requestIP(request))
    total = unread.reduce((sum, { bytes }) => sum + bytes, 0)
    sweepAt = unread.length * 2 + sweptAtLength
    sweptAt = performance.now()
  }

  function hasRoom(bytes: number): boolean {
    const max = bytes > largeBytes ? maxBytes * largeShare : maxBytes
    if (total + bytes > max && performance.now() - sweptAt > sweepMilliseconds) sweep()
    return total + bytes <= max
  }

  function note(request: Request, bytes: number) {
    unread.push({ request, bytes })
    total += bytes
    if (unread.length >= sweepAt) sweep()
    if (bytes > largeBytes) findServer()?.timeout(request, stuckSeconds)
  }

  return (handle: Handle): Handle =>
    async (request) => {
      const response = await handle(request)
      const bytes = bytesOf(response)
      if (bytes < uncountedBytes) return response
      if (request.method === 'GET' && !hasRoom(bytes)) return refuse(request, response)
      note(request, bytes)
      return response
    }
}

// What the body takes, without touching it; of a stream nothing shows.
function bytesOf(response: Response): number {
  const bytes = estimateShallowMemoryUsageOf(response) - emptyBytes
  return bytes <= 0 && response.body ? streamBytes : bytes
}

function refuse(request: Request, answer: Response): Response {
  void answer.body?.cancel() // a stream holds its producer
  const refusal = new AppError('unavailable', { retryAfterSeconds })
  const headers = new Headers(answer.headers)
  headers.delete('content-disposition')
  headers.set('cache-control', 'no-store')
  headers.set('content-type', 'application/json')
  headers.set('retry-after', String(retryAfterSeconds))
  const locale = negotiateLocale(request.headers.get('accept-language'))
  return new Response(JSON.stringify(errorBody(refusal, locale)), {
    status: refusal.status,
    headers,
  })
}
