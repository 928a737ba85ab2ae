import { Elysia } from 'elysia'
import { AppError } from '../lib/errors.ts'
import type { Locale } from '../lib/i18n.ts'
import type { Role, ServiceScope } from '../lib/vocabulary.ts'

/** Who may call a route: anybody, a person with an access token, an admin, a host with a verified address (or an
 *  admin), a person whose token comes the way of a socket's upgrade, or another service with its key. */
export type Access = 'public' | 'user' | 'admin' | 'host' | 'socket' | 'service'

/** Which limit counts a route's requests; by default the user's, or the address's when nobody is known. */
export type RouteLimit = 'login' | 'register' | 'default' | 'none'

/** The person behind an access token, as the database knows them at this request. */
export type Caller = {
  userId: string
  sessionId: string
  role: Role
  isVerified: boolean
  /** When the access token expires, ms since the epoch. */
  expiresAt: number
}

/** The key that another part of the platform calls with. */
export type ServiceKey = { id: string; scopes: readonly ServiceScope[] }

/** What the pipeline found out about a request before its route ran. */
export type Exchange = {
  requestId: string
  locale: Locale
  caller: Caller | undefined
  serviceKey: ServiceKey | undefined
  /** A streamed body, which had to be read to be measured. */
  earlyBody: Uint8Array | undefined
  ip(): string
  /** Lets the caller in again, or throws: a body may have been held back while their access ended. */
  readmit(): void
}

const beforePipeline: Exchange = {
  requestId: '',
  locale: 'en',
  caller: undefined,
  serviceKey: undefined,
  earlyBody: undefined,
  ip: () => 'unknown',
  readmit() {},
}

/** What every module's routes start from: `exchange` in the handlers, and the options that each route names, for the
 *  pipeline and for the API description: who may call it, what counts it, and for services the scope that it takes. */
export const routeBase = new Elysia({ name: 'route-base' })
  .decorate('exchange', beforePipeline)
  .macro({
    access: (_access: Access) => ({}),
    limit: (_limit: RouteLimit) => ({}),
    scope: (_scope: ServiceScope) => ({}),
  })

/** @throws unauthorized on a public route that was called without a token */
export function callerOf({ caller }: Exchange): Caller {
  if (!caller) throw new AppError('unauthorized')
  return caller
}

/** Who acts and from where, for the audit log. */
export function byCaller(exchange: Exchange) {
  return { actor: { type: 'user' as const, id: callerOf(exchange).userId }, ip: exchange.ip() }
}

/** The same on a route for services. */
export function byServiceKey({ serviceKey, ip }: Exchange) {
  if (!serviceKey) throw new AppError('unauthorized')
  return { actor: { type: 'service_key' as const, id: serviceKey.id }, ip: ip() }
}
