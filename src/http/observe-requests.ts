import type { RequestContext } from './request-context.ts'

export type Handle = (request: Request) => Promise<Response>

// A property of the request, because a WeakMap costs some microseconds per request, mostly in garbage collection.
const contextKey = Symbol('context')
type Noted = Request & { [contextKey]?: RequestContext }

export type Answered = {
  request: Request
  status: number
  milliseconds: number
  /** Undefined when the pipeline did not see the request. */
  context: RequestContext | undefined
}

export function noteContext(request: Noted, context: RequestContext): void {
  request[contextKey] = context
}

/** Choice: wraps the whole application, because no hook of the framework sees every response, such as preflights, 404s,
 *  failures before a route, and socket upgrades. */
export function observeRequests(handle: Handle, onAnswered: (answered: Answered) => void): Handle {
  return async (request: Noted) => {
    const startedAt = performance.now()
    let status = 500
    try {
      const response = await handle(request)
      status = response.status
      // Without this, the framework would read the whole body to measure it.
      const length = request[contextKey]?.headLength
      if (length !== undefined) response.headers.set('content-length', String(length))
      return response
    } finally {
      const context = request[contextKey]
      // The framework reports 200 for a request that became a socket.
      if (context?.route?.access === 'socket' && status === 200) status = 101
      onAnswered({ request, status, milliseconds: performance.now() - startedAt, context })
    }
  }
}
