import { ECDH } from 'node:crypto'
import { isIP } from 'node:net'
import { type Static, Type } from '@sinclair/typebox'
import { parseAs } from '../../api/fields.ts'

const WebPushSubscription = Type.Object({
  endpoint: Type.String({ maxLength: 2_048 }),
  keys: Type.Object({ p256dh: Type.String(), auth: Type.String() }),
})
/** A browser's PushSubscription.toJSON (Push API); both keys in base64url. */
export type WebPushSubscription = Static<typeof WebPushSubscription>

/** The push services of browsers, each including its subdomains: Chrome and its derivatives, Firefox, Safari, Edge. */
export const publicPushServices: readonly string[] = [
  'fcm.googleapis.com',
  'push.services.mozilla.com',
  'push.apple.com',
  'notify.windows.com',
]

const publicKeyBytes = 65
const authSecretBytes = 16

export function parseSubscription(text: string): WebPushSubscription | undefined {
  const subscription = parseAs(WebPushSubscription, text)
  if (!subscription || !URL.canParse(subscription.endpoint)) return undefined
  const { endpoint, keys } = subscription
  const isUsable = isPublicKey(keys.p256dh) && decode(keys.auth)?.length === authSecretBytes
  return isUsable ? { endpoint, keys: { p256dh: keys.p256dh, auth: keys.auth } } : undefined
}

/** Whether messages may be posted to this endpoint. Users supply it, so it must belong to a known push service. Choice: only
 *  a URL in canonical form is allowed, so that the checked host is the one that is called. */
export function isAllowedEndpoint(endpoint: string, hostSuffixes: readonly string[]): boolean {
  if (!URL.canParse(endpoint)) return false
  const { href, hostname } = new URL(endpoint)
  // Allows neither credentials nor a port between the scheme, the host and the path.
  const isPlain = href === endpoint && href.startsWith(`https://${hostname}/`)
  const isAddress = isIP(hostname) !== 0 || hostname.startsWith('[')
  if (!isPlain || isAddress) return false
  return hostSuffixes.some((suffix) => isWithin(hostname, suffix))
}

export const isWithin = (host: string, suffix: string): boolean =>
  suffix !== '' && (host === suffix || host.endsWith(`.${suffix}`))

function isPublicKey(text: string) {
  const point = decode(text)
  if (point?.length !== publicKeyBytes) return false
  try {
    ECDH.convertKey(point, 'prime256v1') // throws for a point that is not on the curve
    return true
  } catch {
    return false
  }
}

function decode(text: string) {
  return /^[\w-]+={0,2}$/.test(text) ? Buffer.from(text, 'base64url') : undefined
}
