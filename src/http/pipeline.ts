import type { PreContext } from 'elysia'
import { AppError, invalidField } from '../lib/errors.ts'
import { negotiateLocale } from '../lib/i18n.ts'
import type { NewId } from '../lib/ids.ts'
import type { ServiceScope } from '../lib/vocabulary.ts'
import { bearerServiceKey, bearerToken, socketToken } from './bearer.ts'
import { guardBody } from './body.ts'
import { clientIp, ipGroup, type Network } from './client-ip.ts'
import { corsHeaders, isPreflight, preflightHeaders } from './cors.ts'
import type { Access, Caller, Exchange, RouteLimit, ServiceKey } from './exchange.ts'
import type { RateLimit, RateLimiter, RateVerdict } from './rate-limit.ts'

/** What the signature of an access token vouches for. */
export type Claims = { userId: string; sessionId: string; expiresAt: number }

export type RoutePolicy = {
  /** The pattern, such as /v1/chat/conversations/:id. */
  path: string
  access: Access
  limit: RouteLimit
  scope: ServiceScope | undefined
}

export type RateLimits = Record<'login' | 'register' | 'user' | 'anonymous' | 'service', RateLimit>

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
  /** The live service key of that text: the first does not touch the database, the second knows one that was made just
   *  now. */
  findServiceKey: (key: string) => ServiceKey | undefined
  loadServiceKey: (key: string) => ServiceKey | undefined
  findRoute: (method: string, path: string) => RoutePolicy | undefined
  /** Told which route a request is for, whatever becomes of it. */
  noteRoute: (request: Request, route: RoutePolicy) => void
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
    const route = options.findRoute(request.method, path)
    if (route) options.noteRoute(request, route)
    Object.assign(headers, corsHeaders(request.headers, options.corsOrigins))
    if (isPreflight(request)) {
      Object.assign(headers, preflightHeaders)
      return new Response(null, { status: 204 })
    }
    exchange.earlyBody = await guard(context, exchange)

    const bearer = await identify(route?.access, request)
    countRequest(route?.limit ?? 'default', bearer, exchange, headers)
    if (!route) throw new AppError('not_found')
    if (route.access === 'public') return undefined
    exchange.readmit = () => admit(route, bearer, exchange)
    exchange.readmit()
    return undefined
  }

  // Whose limit counts, without touching the database.
  async function identify(access: Access | undefined, request: Request): Promise<Bearer> {
    if (access === 'service') {
      const key = bearerServiceKey(request.headers)
      const id = key && options.findServiceKey(key)?.id
      return {
        key,
        limit: id === undefined ? undefined : { of: `key:${id}`, rule: limits.service },
      }
    }
    const token = access === 'socket' ? socketToken(request) : bearerToken(request.headers)
    const claims = token === undefined ? undefined : await options.verifyToken(token)
    return { claims, limit: claims && { of: `user:${claims.userId}`, rule: limits.user } }
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
      serviceKey: undefined,
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
    bearer: Bearer,
    exchange: Exchange,
    headers: ResponseHeaders,
  ) {
    if (of === 'none') return
    const verdict = count(of, bearer, exchange)
    tell(headers, verdict)
    if (verdict?.allowed !== false) return
    throw new AppError('rate_limited', { retryAfterSeconds: verdict.retryAfterSeconds })
  }

  function count(of: AddressLimit | 'default', { limit }: Bearer, exchange: Exchange) {
    if (of !== 'default') return countAddress(of, exchange)
    return limit ? limiter.take(limit.of, limit.rule) : countAddress('anonymous', exchange)
  }

  function countAddress(of: AddressLimit, exchange: Exchange) {
    return limits[of] === 'off' ? undefined : limiter.take(addressKey(of, exchange), limits[of])
  }

  function admit({ access, scope }: RoutePolicy, { claims, key }: Bearer, exchange: Exchange) {
    if (access === 'service') exchange.serviceKey = admitService(key, scope)
    else exchange.caller = admitPerson(access, claims)
  }

  function admitService(text: string | undefined, scope: ServiceScope | undefined): ServiceKey {
    const key = text === undefined ? undefined : options.loadServiceKey(text)
    if (!key) throw new AppError('unauthorized')
    if (!scope || !key.scopes.includes(scope)) throw new AppError('forbidden')
    return key
  }

  function admitPerson(access: Access, claims: Claims | undefined): Caller {
    const caller = claims && options.loadCaller(claims)
    if (!caller) throw new AppError('unauthorized')
    const { role, isVerified } = caller
    const isHost = role === 'host' && isVerified
    if (access === 'admin' && role !== 'admin') throw new AppError('forbidden')
    if (access === 'host' && !isHost && role !== 'admin') throw new AppError('forbidden')
    return caller
  }
}

/** What a request shows of whoever sent it, before the database is asked. */
type Bearer = {
  claims?: Claims | undefined
  key?: string | undefined
  /** What counts it; undefined for the address it came from. */
  limit: { of: string; rule: RateLimit } | undefined
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
