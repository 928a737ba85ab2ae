import type { RequestContext } from './request-context.ts'

type Handle = (request: Request) => Promise<Response>

// On the request itself: a WeakMap costs some microseconds for each, mostly in the garbage collector.
const contextKey = Symbol('context')
type Noted = Request & { [contextKey]?: RequestContext }

/** A request as it was answered. */
export type Answered = {
  request: Request
  status: number
  milliseconds: number
  /** Undefined when the pipeline did not see it. */
  context: RequestContext | undefined
}

/** Ties a request to what the pipeline finds out about it. */
export function noteContext(request: Noted, context: RequestContext): void {
  request[contextKey] = context
}

/** Tells `onAnswered` of every request.
 *  Choice: around the whole application rather than as a hook in it, as no hook sees every answer: preflights, 404s, what
 *  fails before a route, and the upgrade of a socket. */
export function observeRequests(handle: Handle, onAnswered: (answered: Answered) => void): Handle {
  return async (request: Noted) => {
    const startedAt = performance.now()
    let status = 500
    try {
      const response = await handle(request)
      status = response.status
      // The framework counts the body of a HEAD, which would have to be read.
      const length = request[contextKey]?.headLength
      if (length !== undefined) response.headers.set('content-length', String(length))
      return response
    } finally {
      const context = request[contextKey]
      // The framework has a 200 for a request that has become a socket; it goes nowhere.
      if (context?.route?.access === 'socket' && status === 200) status = 101
      onAnswered({ request, status, milliseconds: performance.now() - startedAt, context })
    }
  }
}
