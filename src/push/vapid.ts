import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { SignJWT } from 'jose'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../lib/clock.ts'

/** The key pair that browsers bind their subscriptions to. */
export type VapidKeys = {
  /** PKCS #8 in PEM form. */
  privateKey: string
  /** The point on P-256, 65 bytes in base64url: the `applicationServerKey` of a browser. */
  publicKey: string
}

export function makeVapidKeys(): VapidKeys {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { x = '', y = '' } = pair.publicKey.export({ format: 'jwk' })
  const point = [Buffer.of(4), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')]
  return {
    privateKey: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    publicKey: Buffer.concat(point).toString('base64url'),
  }
}

const tokenMilliseconds = 12 * 3_600_000
const renewedAfterMilliseconds = 11 * 3_600_000
// Users choose the hosts within a push service's domain, so that there may be any number.
const maxOrigins = 100

type VapidOptions = {
  keys: VapidKeys
  /** How the operator is reached: a mailto: or https: address. */
  subject: string
  clock: Clock
}

/** Tells push services who sends (RFC 8292).
 *  @returns what makes the Authorization header for an endpoint; tokens are used again for half a day */
export function createVapid({ keys, subject, clock }: VapidOptions) {
  const privateKey = createPrivateKey(keys.privateKey)
  const headers = new LRUCache<string, { header: string; madeAt: number }>({ max: maxOrigins })

  return async (endpoint: string): Promise<string> => {
    const { origin } = new URL(endpoint)
    const now = clock.now()
    const held = headers.get(origin)
    if (held && held.madeAt + renewedAfterMilliseconds > now) return held.header
    const token = await new SignJWT()
      .setProtectedHeader({ alg: 'ES256', typ: 'JWT' })
      .setAudience(origin)
      .setExpirationTime(Math.floor((now + tokenMilliseconds) / 1_000))
      .setSubject(subject)
      .sign(privateKey)
    const header = `vapid t=${token}, k=${keys.publicKey}`
    headers.set(origin, { header, madeAt: now })
    return header
  }
}
