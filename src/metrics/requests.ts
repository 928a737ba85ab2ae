import { Counter, Histogram, type Registry } from 'prom-client'
import type { Access } from '../http/exchange.ts'

type Answer = (request: Request) => Promise<Response>

type Route = { path: string; access: Access }

// On the request itself: a WeakMap costs some microseconds for each, mostly in the garbage collector.
const routeOf = Symbol('route')
type Routed = Request & { [routeOf]?: Route }

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
const unknown: Route = { path: 'unknown', access: 'public' }
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]

/** Counts what the application answers, by the pattern of the route: what clients make up is one label value. */
export function countRequests(registry: Registry) {
  const registers = [registry]
  const total = new Counter({
    name: 'hostline_http_requests_total',
    help: 'Answered requests; route is unknown where there is none, preflights included.',
    labelNames: ['method', 'route', 'status'],
    registers,
  })
  const duration = new Histogram({
    name: 'hostline_http_request_duration_seconds',
    help: 'From the head of a request to its answer, which a stream then only begins.',
    labelNames: ['method', 'route'],
    buckets,
    registers,
  })

  function note(request: Routed, answered: number, milliseconds: number) {
    const method = methods.has(request.method) ? request.method : 'other'
    const { path: route, access } = request[routeOf] ?? unknown
    // The framework has a 200 for a request that has become a socket; it goes nowhere.
    const status = access === 'socket' && answered === 200 ? 101 : answered
    total.inc({ method, route, status })
    duration.observe({ method, route }, milliseconds / 1_000)
  }

  return {
    /** Tells which route a request is for. */
    noteRoute(request: Routed, route: Route) {
      request[routeOf] = route
    },
    /** Choice: around the whole application rather than as a hook in it, as no hook sees every answer: preflights,
     *  404s, what fails before a route, and the upgrade of a socket. */
    count:
      (answer: Answer): Answer =>
      async (request) => {
        const startedAt = performance.now()
        let status = 500
        try {
          const response = await answer(request)
          status = response.status
          return response
        } finally {
          note(request, status, performance.now() - startedAt)
        }
      },
  }
}
