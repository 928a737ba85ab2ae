import { AppError } from '../lib/errors.ts'
import { isSameSecret } from '../lib/hash.ts'
import { isLoopback } from '../lib/ip-network.ts'
import { parseJson } from '../lib/text.ts'
import type { Access } from './request-context.ts'

const tokenPattern = /^[\w-]+\.[\w-]+\.[\w-]+$/

const socketProtocol = 'hostline.v1'
const bearerProtocol = 'bearer.'

export function tokenRefusal(request: Request, access: Access, now: number) {
  const token = access === 'socket' ? socketTokens(request)[0] : bearerToken(request.headers)
  return refusalOfToken(token, access, now)
}

/** The reason why a token was refused, from its form alone.
 *  @param now ms since the epoch */
export function refusalOfToken(token: string | undefined, access: Access, now: number) {
  if (!token) return 'token_missing'
  const isAccessToken = tokenPattern.test(token)
  if (access === 'service' ? isAccessToken : token.startsWith('sk_')) return 'wrong_kind_of_token'
  if (token.startsWith('rt_')) return 'wrong_kind_of_token'
  return isAccessToken && expiryOf(token) <= now ? 'token_expired' : 'token_invalid'
}

/** When a token expires by its own account, in ms since the epoch. */
function expiryOf(token: string): number {
  const [, payload = ''] = token.split('.')
  const claims = parseJson(Buffer.from(payload, 'base64url').toString())
  return Number(Object(claims).exp) * 1_000
}

export function bearerToken(headers: Headers): string | undefined {
  return /^bearer +([^ ]+)$/i.exec(headers.get('authorization') ?? '')?.[1]
}

/** Browsers cannot set headers there, so a query and a subprotocol count, too. Undefined for more than one. */
export function socketToken(request: Request): string | undefined {
  const [token, ...more] = socketTokens(request)
  return more.length === 0 ? token : undefined
}

function socketTokens(request: Request): (string | undefined)[] {
  const query = new URL(request.url).searchParams.getAll('token')
  const protocols = offeredProtocols(request.headers)
    .filter((protocol) => protocol.startsWith(bearerProtocol))
    .map((protocol) => protocol.slice(bearerProtocol.length))
  const header = request.headers.has('authorization') ? [bearerToken(request.headers)] : []
  return [...query, ...protocols, ...header]
}

/** The subprotocol to select. Browsers drop the connection when the server selects none of the offered ones. */
export function selectedProtocol(headers: Headers): string | undefined {
  const offered = offeredProtocols(headers)
  if (offered.includes(socketProtocol)) return socketProtocol
  return offered.find((protocol) => protocol.startsWith(bearerProtocol))
}

function offeredProtocols(headers: Headers) {
  const header = headers.get('sec-websocket-protocol')
  return header === null ? [] : header.split(',').map((protocol) => protocol.trim())
}

/** Without a configured token, requests from this machine alone: a proxy here forwards requests of others. */
export function refusalOfMetrics({ headers }: Request, peer: string | undefined, token?: string) {
  const given = headers.get('authorization')
  const isOpen = token === undefined && isLoopback(peer) && !headers.has('x-forwarded-for')
  if (isOpen || (token && isSameSecret(given ?? '', `Bearer ${token}`))) return undefined
  return new AppError(given === null ? 'token_missing' : 'token_invalid')
}
