import type { PreContext } from 'elysia'
import type { Core } from '../core.ts'
import type { ShareReads } from '../db/writer.ts'
import { minute } from '../lib/clock.ts'
import { AppError, invalidField } from '../lib/errors.ts'
import { clientIp, ipGroup, ipv6Network } from '../lib/ip-network.ts'
import type { AccessClaims, ServicePrincipal, UserPrincipal } from '../lib/principal.ts'
import { bearerToken, socketToken, tokenRefusal } from './bearer.ts'
import { guardLength, readJson } from './body.ts'
import { operatorOf } from './command-socket.ts'
import { isRequired } from './confirmation.ts'
import { createCors, isPreflight, preflightHeaders } from './cors.ts'
import { noteContext } from './observe-requests.ts'
import type { OpenAnswers } from './open-answers.ts'
import { createRateLimiter, type RateLimit, type RateVerdict } from './rate-limit.ts'
import { type Access, RequestContext, type RouteLimit } from './request-context.ts'
import type { RoutePolicy } from './route-table.ts'

export type PipelineOptions = {
  peerOf: (request: Request) => string | undefined
  openAnswers: OpenAnswers
  onRefusedOrigin: (origin: string) => void
  shareReads: ShareReads
  /** The claims of a valid, unexpired access token, without a database query. */
  verifyToken: (token: string) => AccessClaims | undefined | Promise<AccessClaims | undefined>
  /** Undefined for deleted and disabled users and for revoked sessions. */
  findPrincipal: (claims: AccessClaims) => UserPrincipal | undefined
  isConfirmed: (principal: UserPrincipal, milliseconds: number) => boolean
  /** Without a database query. */
  findServiceKey: (key: string) => ServicePrincipal | undefined
  findRoute: (method: string, path: string) => RoutePolicy | undefined
  /** Whether this server's data may be old, because another one may lead. */
  isCutOff: () => boolean
}

// The router matches `path`, and routes receive `body`. Both exist at run time but not in the framework's type.
type Hook = PreContext & { context: RequestContext; path?: string; body?: unknown }
type Headers = Hook['set']['headers']

/** The order of the checks is a promise (docs/choices.md). Every response has the headers that they set, errors included. */
export function createPipeline(core: Core, options: PipelineOptions) {
  const { newId, clock, config } = core
  const { limits, trustedProxies } = config
  const { openAnswers } = options
  const limiter = createRateLimiter(clock.now)
  const cors = createCors(core, options.onRefusedOrigin)
  const isHttps = config.publicUrl.startsWith('https:')
  const common = { ...commonHeaders, ...(isHttps && { 'strict-transport-security': oneYear }) }

  // The framework reads this function's source text: only members of `hook` may be used, and not `server`. Otherwise it
  // parses cookies or defines a property for each request.
  return async (hook: Hook): Promise<Response | undefined> => {
    const { request, set, path = '' } = hook
    const { headers } = set
    const context = begin(request, headers)
    hook.context = context
    noteContext(request, context)
    const route = options.findRoute(request.method, path)
    if (route) {
      context.route = route
      set.status = route.status
    }
    if (isPreflight(request)) {
      Object.assign(headers, preflightHeaders)
      return new Response(null, { status: 204 })
    }
    const asked: Asked = { request, context, headers, countedAt: 0 }
    guard(asked, path)
    const bearer = await identify(route?.access, request)
    context.bearer = bearer.logged
    countRequest(route?.limit ?? 'default', bearer, asked)
    if (!route || isHiddenFrom(bearer, route)) throw missing(path, headers)
    authorize(route, bearer, asked)
    if (mayHaveBody(request)) hook.body = await receive(route, bearer, asked)
    else route.guardQuery(request.url)
    mustBeConfirmed(route, context, hook.body)
    return undefined
  }

  async function receive(route: RoutePolicy, bearer: Bearer, asked: Asked): Promise<unknown> {
    const { request, context } = asked
    // The session may end while the body is still arriving.
    const reauthorize = () => authorize(route, bearer, asked)
    const isStreamed = route.maxFileBytes !== undefined
    if (isStreamed) context.reauthorize = reauthorize
    try {
      const body = isStreamed ? undefined : await readJson(request, reauthorize)
      route.guardQuery(request.url)
      route.guardBody?.(body)
      return body
    } catch (error) {
      countInstead(route.limit, bearer, asked)
      throw error
    }
  }

  function begin(request: Request, headers: Headers) {
    const requestId = newId()
    headers['x-request-id'] = requestId
    Object.assign(headers, common)
    Object.assign(headers, cors(request.headers))
    return new RequestContext(requestId, request, findIp)
  }

  function findIp(request: Request): string {
    const forwardedFor = request.headers.get('x-forwarded-for')
    return clientIp(options.peerOf(request), forwardedFor, trustedProxies)
  }

  function guard({ request, context, headers }: Asked, path: string) {
    try {
      guardAddress(request.url, path)
      if (options.isCutOff() && !isProbe(request, path)) {
        throw new AppError('unavailable', { retryAfterSeconds: cutOffRetrySeconds })
      }
      guardLength(request, context.route?.maxFileBytes)
      if (request.method === 'GET') openAnswers.mustHaveRoom(context.ip)
    } catch (error) {
      // Sets the rate limit headers without counting the refused request.
      setRateHeaders(headers, limiter.peek(addressKey('anonymous', context), limits.anonymous))
      throw error
    }
  }

  // Without a database query: the rate limit comes first.
  function identify(access: Access | undefined, request: Request): Bearer | Promise<Bearer> {
    const operator = operatorOf(request)
    if (operator !== undefined) return { operator, limit: undefined }
    if (access === 'service') return identifyService(request)
    const token = access === 'socket' ? socketToken(request) : bearerToken(request.headers)
    const claims = token === undefined ? undefined : options.verifyToken(token)
    return claims instanceof Promise ? claims.then(bearerOf) : bearerOf(claims)
  }

  function identifyService({ headers }: Request): Bearer {
    const key = bearerToken(headers)
    const id = key === undefined ? undefined : options.findServiceKey(key)?.id
    if (id === undefined) return { key, limit: undefined }
    return { key, limit: { key: `key:${id}`, rule: limits.service }, logged: { key: id } }
  }

  function bearerOf(claims: AccessClaims | undefined): Bearer {
    if (!claims) return { limit: undefined }
    const { userId } = claims
    const limit = { key: `user:${userId}`, rule: limits.user }
    return { claims, limit, logged: { user: userId } }
  }

  function countRequest(name: RouteLimit, bearer: Bearer, asked: Asked) {
    if (name === 'none' || bearer.operator !== undefined) return
    const verdict = count(name, bearer, asked)
    setRateHeaders(asked.headers, verdict)
    if (verdict?.allowed !== false) return
    throw new AppError('rate_limited', { retryAfterSeconds: verdict.retryAfterSeconds })
  }

  function count(name: AddressLimit | 'default', { limit }: Bearer, asked: Asked) {
    if (name !== 'default') return countAddress(name, asked)
    return limit ? limiter.take(limit.key, limit.rule) : countAddress('anonymous', asked)
  }

  /** Counts a request with an invalid body as an ordinary one: it used up no login and no registration. */
  function countInstead(name: RouteLimit, bearer: Bearer, asked: Asked) {
    if (name !== 'login' && name !== 'register') return
    const { context, countedAt } = asked
    for (const { key } of addressRules(name, context, limits[name])) {
      limiter.giveBack(key, countedAt)
    }
    countRequest('default', bearer, asked)
  }

  function countAddress(name: AddressLimit, asked: Asked) {
    const rules = addressRules(name, asked.context, limits[name])
    // A refused request counts towards no rule, so check all rules before counting.
    const verdicts = rules.map(({ key, limit }) => limiter.peek(key, limit))
    const refusal = verdicts.find((verdict) => verdict?.allowed === false)
    if (refusal) return refusal
    const at = clock.now()
    asked.countedAt = at
    return rules.map(({ key, limit }) => limiter.take(key, limit, at))[0]
  }

  function missing(path: string, headers: Headers): AppError {
    const allowed = methods.filter((method) => {
      const other = options.findRoute(method, path)
      return other !== undefined && other.access !== 'operator'
    })
    if (allowed.length === 0) return new AppError('not_found')
    headers['allow'] = allowed.join(', ')
    return new AppError('method_not_allowed')
  }

  function authorize(route: RoutePolicy, bearer: Bearer, { request, context }: Asked) {
    const { claims, key, operator } = bearer
    if (route.access === 'public') return
    options.shareReads()
    if (operator !== undefined && (route.access === 'admin' || route.access === 'operator')) {
      context.operator = operator
    } else if (route.access === 'service') {
      context.servicePrincipal = authorizeService(route, key, request)
    } else {
      context.userPrincipal = authorizePerson(route, claims, request)
    }
  }

  function mustBeConfirmed({ confirm }: RoutePolicy, context: RequestContext, body: unknown) {
    if (!confirm || context.operator !== undefined || !isRequired(confirm, body)) return
    if (!options.isConfirmed(context.user, confirm.minutes * minute))
      throw new AppError('confirm_required')
  }

  function authorizeService({ scope }: RoutePolicy, text: string | undefined, request: Request) {
    const key = text === undefined ? undefined : options.findServiceKey(text)
    if (!key) throw new AppError(tokenRefusal(request, 'service', clock.now()))
    if (!scope || !key.scopes.includes(scope))
      throw new AppError('scope_required', { value: scope })
    return key
  }

  function authorizePerson({ access }: RoutePolicy, claims: Bearer['claims'], request: Request) {
    if (!claims) throw new AppError(tokenRefusal(request, access, clock.now()))
    const principal = options.findPrincipal(claims)
    if (!principal) throw new AppError('session_ended')
    const refusal = refusalOf(access, principal)
    if (refusal) throw new AppError(refusal)
    return principal
  }
}

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

type Asked = {
  request: Request
  context: RequestContext
  headers: Headers
  /** When the limit of the address counted it. */
  countedAt: number
}

/** Routes for commands answer 404 to requests from the network. */
const isHiddenFrom = ({ operator }: Bearer, { access }: RoutePolicy) =>
  access === 'operator' && operator === undefined

function refusalOf(access: Access, { role, isVerified, mayAdminister }: UserPrincipal) {
  if (access === 'admin') {
    if (role !== 'admin') return 'role_required'
    return mayAdminister ? undefined : 'admin_totp_required'
  }
  if (access !== 'host' || role === 'admin') return undefined
  if (role !== 'host') return 'role_required'
  return isVerified ? undefined : 'email_not_verified'
}

/** The credentials of a request, not yet checked against the database. */
type Bearer = {
  claims?: AccessClaims | undefined
  key?: string | undefined
  operator?: string
  logged?: RequestContext['bearer']
  /** The limit of the user or service key; undefined if the limit of the address applies. */
  limit: { key: string; rule: RateLimit } | undefined
}

function mayHaveBody({ method }: Request) {
  return method !== 'GET' && method !== 'HEAD'
}

/** On every response unless its route overrides them: an API response must not act as a page. */
const commonHeaders = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
}
// Without `includeSubDomains`: other services may run on subdomains.
const oneYear = 'max-age=31536000'

// A /48 contains 65,536 networks of /64, each of which has its own limit. One customer may have a whole /48.
const siteFactor = 20

type AddressLimit = 'login' | 'register' | 'anonymous'

function addressRules(name: AddressLimit, context: RequestContext, limit: RateLimit) {
  if (limit === 'off') return []
  const rules = [{ key: addressKey(name, context), limit }]
  const site = name === 'anonymous' ? undefined : ipv6Network(context.ip, 48)
  if (site !== undefined) {
    rules.push({ key: `${name}:${site}`, limit: { ...limit, count: limit.count * siteFactor } })
  }
  return rules
}

function addressKey(name: AddressLimit, { ip }: RequestContext) {
  return `${name}:${ipGroup(ip)}`
}

function setRateHeaders(headers: Headers, verdict: RateVerdict | undefined) {
  if (!verdict) return
  headers['x-ratelimit-limit'] = verdict.limit
  headers['x-ratelimit-remaining'] = verdict.remaining
  headers['x-ratelimit-reset'] = verdict.resetAtSeconds
}

const cutOffRetrySeconds = 5
const probes = ['/healthz', '/readyz', '/metrics']

const isProbe = (request: Request, path: string) =>
  probes.includes(path) || operatorOf(request) !== undefined

// The router takes the path from the URL text by position, so an unusual Host header could make it match another path
// than the requested one.
function guardAddress(url: string, path: string) {
  if (URL.parse(url)?.pathname !== path) throw invalidField('host', 'host')
}
