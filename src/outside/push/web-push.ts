import {
  createCipheriv,
  createECDH,
  createPrivateKey,
  type ECDH,
  hkdfSync,
  randomBytes,
} from 'node:crypto'
import { type Clock, hour, timeLeft } from '../../lib/clock.ts'
import { createLru } from '../../lib/lru.ts'
import { outcomeOf, post } from './post.ts'
import { type PushDriver, type PushMessage, PushRefused, type WebPushTarget } from './pusher.ts'
import type { WebPushSubscription } from './subscription.ts'
import type { VapidKeys } from './vapid-key-store.ts'

type WebPushOptions = {
  keys: VapidKeys
  /** A mailto: or https: URL for push services to contact the operator. */
  subject: string
  clock: Clock
  /** Called right before each message, because users supply the endpoint. */
  isAllowed: (endpoint: string) => boolean
  timeoutMilliseconds?: number
}

const curve = 'prime256v1'
const tagBytes = 16
const headerBytes = 16 + 4 + 1 + 65
/** Push services need not accept larger bodies (RFC 8030, 7.2). */
const maxBodyBytes = 4_096
const lastRecord = Buffer.of(2)

export const maxPlaintextBytes = maxBodyBytes - headerBytes - lastRecord.length - tagBytes

/** Sends to browsers through their push services (RFC 8030). The service worker finds `{title, body, data, badge,
 *  tag}` in the event; `data` includes the `type`, as with FCM. */
export function createWebPushDriver(options: WebPushOptions): PushDriver<WebPushTarget> {
  const { isAllowed, clock, timeoutMilliseconds } = options
  const authorize = createAuthorization(options)

  return async ({ subscription }, message, signal) => {
    const { endpoint, keys } = subscription
    if (!isAllowed(endpoint))
      throw new PushRefused('the endpoint is not at an allowed push service')
    const plaintext = plaintextOf(message)
    const headers = { ...headersOf(message), Authorization: await authorize(endpoint) }
    const body = encrypt(plaintext, keys)
    return outcomeOf(await post(endpoint, { headers, body, timeoutMilliseconds, signal }), clock)
  }
}

function plaintextOf({ title, body, data, type, badge, collapseKey: tag }: PushMessage) {
  const text = JSON.stringify({ title, body, data: { ...data, type }, badge, tag })
  const plaintext = Buffer.from(text)
  if (plaintext.length > maxPlaintextBytes) {
    throw new PushRefused(`the message has ${plaintext.length} bytes, of ${maxPlaintextBytes}`)
  }
  return plaintext
}

function headersOf({ ttlSeconds, urgency, collapseKey }: PushMessage) {
  return {
    'Content-Type': 'application/octet-stream',
    'Content-Encoding': 'aes128gcm',
    TTL: String(ttlSeconds),
    Urgency: urgency,
    Topic: collapseKey,
  }
}

const tokenMilliseconds = 12 * hour
const renewedAfterMilliseconds = 11 * hour
// Users choose the hosts within a push service's domain, so their number is unlimited.
const maxOrigins = 100

/** RFC 8292. A token is reused for half a day. */
function createAuthorization({ keys, subject, clock }: WebPushOptions) {
  const headers = createLru<{ header: string; madeAt: number }>(maxOrigins)

  return async (endpoint: string): Promise<string> => {
    const { origin } = new URL(endpoint)
    const now = clock.now()
    const held = headers.get(origin)
    if (held && timeLeft(held.madeAt, renewedAfterMilliseconds, now) > 0) return held.header
    const { SignJWT } = await import('jose')
    const token = await new SignJWT()
      .setProtectedHeader({ alg: 'ES256', typ: 'JWT' })
      .setAudience(origin)
      .setExpirationTime(Math.floor((now + tokenMilliseconds) / 1_000))
      .setSubject(subject)
      .sign(createPrivateKey(keys.privateKey))
    const header = `vapid t=${token}, k=${keys.publicKey}`
    headers.set(origin, { header, madeAt: now })
    return header
  }
}

type Sender = { ecdh: ECDH; salt: Uint8Array }

/** RFC 8291, in one record of aes128gcm (RFC 8188). */
export function encrypt(
  plaintext: Uint8Array,
  keys: WebPushSubscription['keys'],
  { ecdh, salt }: Sender = newSender(),
): Uint8Array<ArrayBuffer> {
  const receiverKey = Buffer.from(keys.p256dh, 'base64url')
  const senderKey = ecdh.getPublicKey()
  const keyInfo = Buffer.concat([Buffer.from('WebPush: info\0'), receiverKey, senderKey])
  const authSecret = Buffer.from(keys.auth, 'base64url')
  const input = hkdf(ecdh.computeSecret(receiverKey), authSecret, keyInfo, 32)
  const key = hkdf(input, salt, 'Content-Encoding: aes128gcm\0', 16)
  const nonce = hkdf(input, salt, 'Content-Encoding: nonce\0', 12)

  const cipher = createCipheriv('aes-128-gcm', key, nonce)
  const record = [cipher.update(plaintext), cipher.update(lastRecord), cipher.final()]
  return Buffer.concat([headerOf(salt, senderKey), ...record, cipher.getAuthTag()])
}

function newSender(): Sender {
  const ecdh = createECDH(curve)
  ecdh.generateKeys()
  return { ecdh, salt: randomBytes(16) }
}

// Salt, record size, length of the key id, key id: the sender's public key.
function headerOf(salt: Uint8Array, senderKey: Uint8Array) {
  const sizes = Buffer.alloc(5)
  sizes.writeUInt32BE(maxBodyBytes)
  sizes.writeUInt8(senderKey.length, 4)
  return Buffer.concat([salt, sizes, senderKey])
}

function hkdf(input: Uint8Array, salt: Uint8Array, info: string | Uint8Array, length: number) {
  return new Uint8Array(hkdfSync('sha256', input, salt, info, length))
}
