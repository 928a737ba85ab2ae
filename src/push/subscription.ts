import { ECDH } from 'node:crypto'
import { isIP } from 'node:net'
import { type Static, Type } from '@sinclair/typebox'
import { readJson } from './json.ts'

export const WebPushSubscription = Type.Object({
  endpoint: Type.String({ maxLength: 2_048 }),
  keys: Type.Object({ p256dh: Type.String(), auth: Type.String() }),
})
/** What a browser tells about itself (Push API, PushSubscription.toJSON); both keys in base64url. */
export type WebPushSubscription = Static<typeof WebPushSubscription>

/** The hosts of the browsers' push services, each with every host below it: Chrome and what is built on it, Firefox,
 *  Safari, Edge. */
export const publicPushServices: readonly string[] = [
  'fcm.googleapis.com',
  'push.services.mozilla.com',
  'push.apple.com',
  'notify.windows.com',
]

const publicKeyBytes = 65
const authSecretBytes = 16

/** @returns undefined when the text is no subscription that a message can be encrypted for */
export function parseSubscription(text: string): WebPushSubscription | undefined {
  const subscription = readJson(WebPushSubscription, text)
  if (!subscription || !URL.canParse(subscription.endpoint)) return undefined
  const { endpoint, keys } = subscription
  const isUsable = isPublicKey(keys.p256dh) && decode(keys.auth)?.length === authSecretBytes
  return isUsable ? { endpoint, keys: { p256dh: keys.p256dh, auth: keys.auth } } : undefined
}

/** Whether messages may be posted to this endpoint: it comes from a user, so it must be one of the push services.
 *  Choice: only an address in its canonical spelling passes, so what was checked is to the letter what is asked. */
export function isAllowedEndpoint(endpoint: string, hostSuffixes: readonly string[]): boolean {
  if (!URL.canParse(endpoint)) return false
  const { href, hostname } = new URL(endpoint)
  // Neither a user nor a port stands between the scheme, the host and the path.
  const isPlain = href === endpoint && href.startsWith(`https://${hostname}/`)
  if (!isPlain || isAddress(hostname)) return false
  return hostSuffixes.some((suffix) => isWithin(hostname, suffix))
}

function isWithin(hostname: string, suffix: string) {
  return suffix !== '' && (hostname === suffix || hostname.endsWith(`.${suffix}`))
}

function isAddress(hostname: string) {
  return isIP(hostname) !== 0 || hostname.startsWith('[')
}

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
