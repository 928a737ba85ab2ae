import type { PreContext } from 'elysia'
import { AppError, invalidField } from '../lib/errors.ts'
import type { NewId } from '../lib/ids.ts'
import { negotiateLocale } from '../lib/locale.ts'
import { bearerToken, socketToken } from './bearer.ts'
import { guardBody } from './body.ts'
import { clientIp, ipGroup, type Network } from './client-ip.ts'
import { corsHeaders, isPreflight, preflightHeaders } from './cors.ts'
import type { Access, Caller, Exchange, RouteLimit } from './exchange.ts'
import type { RateLimit, RateLimiter, RateVerdict } from './rate-limit.ts'

/** What the signature of an access token vouches for. */
export type Claims = { userId: string; sessionId: string; expiresAt: number }

export type RoutePolicy = { access: Access; limit: RouteLimit }

export type RateLimits = Record<'login' | 'register' | 'user' | 'anonymous', RateLimit>

export type PipelineOptions = {
  newId: NewId
  limiter: RateLimiter
  limits: RateLimits
  trustedProxies: readonly Network[]
  corsOrigins: readonly string[]
  /** The claims of a token of ours that has not expired; does not touch the database. */
  verifyToken: (token: string) => Promise<Claims | undefined>
  /** The person, unless they are gone or disabled or the session is revoked. */
  loadCaller: (claims: Claims) => Caller | undefined
  findRoute: (method: string, path: string) => RoutePolicy | undefined
}

// `path` is what the router will look at: there at run time, missing in the framework's type.
type Context = PreContext & { exchange: Exchange; path?: string }
type ResponseHeaders = Context['set']['headers']

/** Steps 1 to 7 of decisions 1, in that order, before a route or a body is looked at. The headers that it sets reach
 *  every answer, errors included. */
export function createPipeline(options: PipelineOptions) {
  const { limiter, limits, trustedProxies } = options

  return async (context: Context): Promise<Response | undefined> => {
    const { request, path = '' } = context
    const headers = context.set.headers
    const exchange = begin(context)
    context.exchange = exchange
    Object.assign(headers, corsHeaders(request.headers, options.corsOrigins))
    if (isPreflight(request)) {
      Object.assign(headers, preflightHeaders)
      return new Response(null, { status: 204 })
    }
    exchange.earlyBody = await guard(context, exchange)

    const route = options.findRoute(request.method, path)
    const token = route?.access === 'socket' ? socketToken(request) : bearerToken(request.headers)
    const claims = token === undefined ? undefined : await options.verifyToken(token)
    countRequest(route?.limit ?? 'default', claims, exchange, headers)
    if (!route) throw new AppError('not_found')
    const { access } = route
    if (access === 'public') return undefined
    exchange.readmit = () => {
      exchange.caller = admit(access, claims)
    }
    exchange.readmit()
    return undefined
  }

  function begin({ request, server, set }: Context): Exchange {
    const requestId = options.newId()
    set.headers['x-request-id'] = requestId
    set.headers['x-content-type-options'] = 'nosniff'
    set.headers['cache-control'] = 'no-store'
    const peer = () => server?.requestIP(request)?.address
    return {
      requestId,
      locale: negotiateLocale(request.headers.get('accept-language')),
      caller: undefined,
      earlyBody: undefined,
      ip: () => clientIp(peer(), request.headers.get('x-forwarded-for'), trustedProxies),
      readmit() {},
    }
  }

  async function guard({ request, path = '', set }: Context, exchange: Exchange) {
    try {
      guardAddress(request, path)
      return await guardBody(request)
    } catch (error) {
      // Refused before anything is counted, yet every answer tells the limit.
      tell(set.headers, limiter.peek(addressKey('anonymous', exchange), limits.anonymous))
      throw error
    }
  }

  function countRequest(
    of: RouteLimit,
    claims: Claims | undefined,
    exchange: Exchange,
    headers: ResponseHeaders,
  ) {
    if (of === 'none') return
    const verdict =
      of === 'default' && claims
        ? limiter.take(`user:${claims.userId}`, limits.user)
        : countAddress(of === 'default' ? 'anonymous' : of, exchange)
    tell(headers, verdict)
    if (verdict?.allowed !== false) return
    throw new AppError('rate_limited', { retryAfterSeconds: verdict.retryAfterSeconds })
  }

  function countAddress(of: AddressLimit, exchange: Exchange) {
    return limits[of] === 'off' ? undefined : limiter.take(addressKey(of, exchange), limits[of])
  }

  function admit(access: Access, claims: Claims | undefined): Caller {
    const caller = claims && options.loadCaller(claims)
    if (!caller) throw new AppError('unauthorized')
    if (access === 'admin' && caller.role !== 'admin') throw new AppError('forbidden')
    return caller
  }
}

type AddressLimit = 'login' | 'register' | 'anonymous'

function addressKey(of: AddressLimit, { ip }: Exchange) {
  return `${of}:${ipGroup(ip())}`
}

function tell(headers: ResponseHeaders, verdict: RateVerdict | undefined) {
  if (!verdict) return
  headers['x-ratelimit-limit'] = verdict.limit
  headers['x-ratelimit-remaining'] = verdict.remaining
  headers['x-ratelimit-reset'] = verdict.resetAtSeconds
}

// The router cuts the path out of the URL text by position, so an unusual Host header can make it see another path
// than the one that was asked for.
function guardAddress(request: Request, path: string) {
  if (!URL.canParse(request.url) || new URL(request.url).pathname !== path) {
    throw invalidField('host', 'host')
  }
}
