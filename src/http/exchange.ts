import { Elysia } from 'elysia'
import { AppError } from '../lib/errors.ts'
import type { Locale } from '../lib/messages.ts'

/** Who may call a route: anybody, a person with an access token, a person with that role, or a person whose token
 *  comes the way of a socket's upgrade. */
export type Access = 'public' | 'user' | 'admin' | 'socket'

/** Which limit counts a route's requests; by default the user's, or the address's when nobody is known. */
export type RouteLimit = 'login' | 'register' | 'default' | 'none'

/** The person behind an access token, as the database knows them at this request. */
export type Caller = {
  userId: string
  sessionId: string
  role: string
  /** When the access token expires, ms since the epoch. */
  expiresAt: number
}

/** What the pipeline found out about a request before its route ran. */
export type Exchange = {
  requestId: string
  locale: Locale
  caller: Caller | undefined
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
  earlyBody: undefined,
  ip: () => 'unknown',
  readmit() {},
}

/** What every module's routes start from: `exchange` in the handlers, and two options that each route must name or
 *  inherit, for the pipeline and for the API description. */
export const routeBase = new Elysia({ name: 'route-base' })
  .decorate('exchange', beforePipeline)
  .macro({ access: (_access: Access) => ({}), limit: (_limit: RouteLimit) => ({}) })

/** @throws unauthorized on a public route that was called without a token */
export function callerOf({ caller }: Exchange): Caller {
  if (!caller) throw new AppError('unauthorized')
  return caller
}
