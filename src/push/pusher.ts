import { createHash } from 'node:crypto'
import { parseSubscription, type WebPushSubscription } from './subscription.ts'

/** A notification as it leaves for one device. */
export type PushMessage = {
  title: string
  body: string
  /** Reaches the app as it is, together with `type`. */
  data: Record<string, string>
  type: string
  /** How long the push service keeps it for a device that is away. */
  ttlSeconds: number
  urgency: 'normal' | 'high'
  /** A message replaces one with the same key that was not delivered yet. */
  collapseKey?: string
  badge?: number
}

export type PushPlatform = 'ios' | 'android' | 'web'
export type FcmTarget = { kind: 'fcm'; token: string; platform: PushPlatform }
export type WebPushTarget = { kind: 'web_push'; subscription: WebPushSubscription }
export type PushTarget = FcmTarget | WebPushTarget

/** `gone`: the device can never be reached by this token again, which is to be removed. `unconfigured`: no service is
 *  set up for targets of this kind, so nothing was sent. */
export type PushOutcome = 'delivered' | 'gone' | 'unconfigured'

export type Pusher = {
  /** Hands a message to the push service of a device.
   *  @throws PushPostponed when it is worth trying again · PushRefused when it is not */
  push(
    target: PushTarget,
    message: PushMessage,
    options?: { signal?: AbortSignal },
  ): Promise<PushOutcome>
}

/** Sends to targets of one kind. */
export type PushDriver<Target extends PushTarget> = (
  target: Target,
  message: PushMessage,
  signal: AbortSignal | undefined,
) => Promise<'delivered' | 'gone'>

/** The push service cannot take the message now, or could not be reached. */
export class PushPostponed extends Error {
  /** How long the service asks to be left alone. */
  readonly retryAfterMilliseconds: number | undefined

  constructor(message: string, options: { retryAfterMilliseconds?: number; cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.retryAfterMilliseconds = options.retryAfterMilliseconds
  }
}

/** The push service does not want this message. The token stays: it is not what is wrong. */
export class PushRefused extends Error {}

type Drivers = {
  fcm: PushDriver<FcmTarget> | undefined
  webPush: PushDriver<WebPushTarget> | undefined
}

export function createPusher({ fcm, webPush }: Drivers): Pusher {
  return {
    async push(target, message, { signal } = {}) {
      if (target.kind === 'fcm') return fcm ? fcm(target, message, signal) : 'unconfigured'
      return webPush ? webPush(target, message, signal) : 'unconfigured'
    },
  }
}

/** Where a push token leads: a PushSubscription that a browser made to its own push service, all others to FCM. */
export function targetOf(token: string, platform: PushPlatform): PushTarget {
  const subscription = platform === 'web' ? parseSubscription(token) : undefined
  return subscription ? { kind: 'web_push', subscription } : { kind: 'fcm', token, platform }
}

const topicPattern = /^[\w-]{1,32}$/

/** The same key in the form that every push service takes: at most 32 characters of base64url (RFC 8030, 5.4). */
export function topicOf(collapseKey: string): string {
  if (topicPattern.test(collapseKey)) return collapseKey
  return createHash('sha256').update(collapseKey).digest('base64url').slice(0, 32)
}
