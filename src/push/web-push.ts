import type { Clock } from '../lib/clock.ts'
import { encrypt, maxPlaintextBytes } from './encryption.ts'
import { type Answer, failureOf, post, usualTimeoutMilliseconds } from './post.ts'
import {
  type PushDriver,
  type PushMessage,
  PushRefused,
  topicOf,
  type WebPushTarget,
} from './pusher.ts'
import { createVapid, type VapidKeys } from './vapid.ts'

type WebPushOptions = {
  keys: VapidKeys
  /** A mailto: or https: address by which push services reach the operator. */
  subject: string
  clock: Clock
  /** Asked right before each message, as the endpoint comes from a user. */
  isAllowed: (endpoint: string) => boolean
  timeoutMilliseconds?: number
}

/** Sends to browsers through the push services of their makers (RFC 8030). The service worker finds
 *  `{title, body, data, badge?, tag?}` in the event; `data` carries the `type`, as with FCM. */
export function createWebPushDriver(options: WebPushOptions): PushDriver<WebPushTarget> {
  const { isAllowed, clock, timeoutMilliseconds = usualTimeoutMilliseconds } = options
  const authorize = createVapid(options)

  return async ({ subscription }, message, signal) => {
    const { endpoint, keys } = subscription
    if (!isAllowed(endpoint)) throw new PushRefused('the endpoint is not at a push service we use')
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
    ...(collapseKey === undefined ? {} : { Topic: topicOf(collapseKey) }),
  }
}

function outcomeOf(answer: Answer, clock: Clock): 'delivered' | 'gone' {
  const { status } = answer
  if (status >= 200 && status < 300) return 'delivered'
  if (status === 404 || status === 410) return 'gone'
  throw failureOf(answer, clock)
}
