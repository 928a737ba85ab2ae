import { createHash } from 'node:crypto'
import type { DeliveryState } from '../lib/delivery-state.ts'
import type { Log } from '../lib/log.ts'
import { withoutAddresses } from '../lib/text.ts'
import type { pushPlatforms } from '../lib/vocabulary.ts'
import { isWithin, parseSubscription, type WebPushSubscription } from './subscription.ts'

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
  /** A message replaces an earlier one with the same key, waiting or shown. */
  collapseKey?: string
  badge?: number
}

export type PushPlatform = (typeof pushPlatforms)[number]
export type FcmTarget = { kind: 'fcm'; token: string; platform: PushPlatform }
export type WebPushTarget = { kind: 'web_push'; subscription: WebPushSubscription }
export type PushTarget = FcmTarget | WebPushTarget

/** Hands a message to the push service of a device. `gone`: the device can never be reached by this token again.
 *  @throws RetryLater when the service is busy, broken or away · PushRefused for every other failure */
export type PushDriver<Target extends PushTarget> = (
  target: Target,
  message: PushMessage,
  signal?: AbortSignal,
) => Promise<'delivered' | 'gone'>

export type Pusher = ReturnType<typeof createPusher>

/** The push service does not want this message. The token stays: nothing is wrong with it. */
export class PushRefused extends Error {}

type Drivers = { fcm: PushDriver<FcmTarget> | undefined; webPush: PushDriver<WebPushTarget> }

/** Sends each message through the driver of its target. `unconfigured`: FCM is not set up, nothing was sent. */
export function createPusher({ fcm, webPush }: Drivers) {
  return async (target: PushTarget, message: PushMessage, signal?: AbortSignal) => {
    if (target.kind === 'web_push') return webPush(target, message, signal)
    return fcm ? fcm(target, message, signal) : 'unconfigured'
  }
}

type Observers = { log: Log; state: DeliveryState }

/** Notes what becomes of pushes. */
export function observePushes(pusher: Pusher, { log, state }: Observers): Pusher {
  return async (target, message, signal) => {
    try {
      const outcome = await pusher(target, message, signal)
      const isSent = outcome === 'delivered'
      if (isSent) state.sent()
      const fields = { kind: target.kind, type: message.type, outcome }
      log.debug(isSent ? 'push sent' : 'push not sent', fields)
      return outcome
    } catch (error) {
      state.failed(withoutAddresses((error as Error).message))
      throw error
    }
  }
}

/** Where a push token leads: a PushSubscription that a browser made to its own push service, all others to FCM. */
export function targetOf(token: string, platform: PushPlatform): PushTarget {
  const subscription = platform === 'web' ? parseSubscription(token) : undefined
  return subscription ? { kind: 'web_push', subscription } : { kind: 'fcm', token, platform }
}

/** Which push service takes a message. Users choose the host, so all hosts below one of `hostSuffixes` are one service. */
export function serviceOf(target: PushTarget, hostSuffixes: readonly string[]): string {
  if (target.kind === 'fcm') return 'fcm'
  const { host } = new URL(target.subscription.endpoint)
  return hostSuffixes.find((suffix) => isWithin(host, suffix)) ?? host
}

const topicPattern = /^[\w-]{1,32}$/

/** The same key in the form that every push service takes: at most 32 characters of base64url (RFC 8030, 5.4). */
export function topicOf(collapseKey: string): string {
  if (topicPattern.test(collapseKey)) return collapseKey
  return createHash('sha256').update(collapseKey).digest('base64url').slice(0, 32)
}
