import { timingSafeEqual } from 'node:crypto'
import { sha256 } from '../lib/hash.ts'
import { isLoopback } from './client-ip.ts'

/** Metrics need the token, or, when none is configured, a request from this machine. */
export function mayReadMetrics(
  request: Request,
  peer: string | undefined,
  token: string | undefined,
): boolean {
  return token === undefined ? isFromThisMachine(request, peer) : isBearer(request, token)
}

// A proxy on this machine forwards requests of others.
function isFromThisMachine({ headers }: Request, peer: string | undefined) {
  return isLoopback(peer) && !headers.has('x-forwarded-for')
}

function isBearer({ headers }: Request, token: string) {
  const digest = (text: string) => Buffer.from(sha256(text))
  return timingSafeEqual(digest(headers.get('authorization') ?? ''), digest(`Bearer ${token}`))
}
