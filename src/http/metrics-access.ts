import { isSameSecret } from '../lib/hash.ts'
import { isLoopback } from './client-ip.ts'

/** Metrics need the token, or, when none is configured, a request from this machine. */
export function mayReadMetrics(
  request: Request,
  peer: string | undefined,
  token: string | undefined,
): boolean {
  if (token === undefined) return isFromThisMachine(request, peer)
  return isSameSecret(request.headers.get('authorization') ?? '', `Bearer ${token}`)
}

// A proxy on this machine forwards requests of others.
function isFromThisMachine({ headers }: Request, peer: string | undefined) {
  return isLoopback(peer) && !headers.has('x-forwarded-for')
}
