import type { Log } from '../../lib/log.ts'
import { withoutAddresses } from '../../lib/text.ts'
import type { pushPlatforms } from '../../lib/vocabulary.ts'
import type { DeliveryState } from '../delivery-state.ts'
import { isWithin, parseSubscription, type WebPushSubscription } from './subscription.ts'

export type PushMessage = {
  title: string
  body: string
  data: Record<string, string>
  type: string
  /** How long the push service keeps the message for an offline device. */
  ttlSeconds: number
  urgency: 'normal' | 'high'
  /** Replaces an earlier message with the same key, waiting or displayed. At most 32 characters of base64url, which every
   *  push service accepts (RFC 8030, 5.4). */
  collapseKey: string
  badge: number
}

export type PushPlatform = (typeof pushPlatforms)[number]
export type FcmTarget = { kind: 'fcm'; token: string; platform: PushPlatform }
export type WebPushTarget = { kind: 'web_push'; subscription: WebPushSubscription }
export type PushTarget = FcmTarget | WebPushTarget

/** `gone`: the token is permanently invalid.
 *  @throws RetryLater when the service is busy, broken or unreachable · PushRefused for every other failure */
export type PushDriver<Target extends PushTarget> = (
  target: Target,
  message: PushMessage,
  signal: AbortSignal,
) => Promise<'delivered' | 'gone'>

export type Pusher = ReturnType<typeof createPusher>

export class PushRefused extends Error {}

/** Begins the reason of a failure that the operator can fix there. */
export const accountEntry = 'FCM_SERVICE_ACCOUNT'

type Drivers = { fcm: PushDriver<FcmTarget> | undefined; webPush: PushDriver<WebPushTarget> }

/** `unconfigured`: nothing was sent, because FCM is not set up. */
export function createPusher({ fcm, webPush }: Drivers) {
  return async (target: PushTarget, message: PushMessage, signal: AbortSignal) => {
    if (target.kind === 'web_push') return webPush(target, message, signal)
    return fcm ? fcm(target, message, signal) : 'unconfigured'
  }
}

type Observers = { log: Log; state: DeliveryState }

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
      const reason = withoutAddresses((error as Error).message)
      const isNews = state.failed(reason)
      if (isNews && reason.startsWith(accountEntry)) log.warn('pushes to apps fail', { reason })
      throw error
    }
  }
}

/** The target of a push token: a browser's PushSubscription goes to its own push service, any other token to FCM. */
export function targetOf(token: string, platform: PushPlatform): PushTarget {
  const subscription = platform === 'web' ? parseSubscription(token) : undefined
  return subscription ? { kind: 'web_push', subscription } : { kind: 'fcm', token, platform }
}

/** Users choose the host, so all hosts below one of `hostSuffixes` count as one service. */
export function serviceOf(target: PushTarget, hostSuffixes: readonly string[]): string {
  if (target.kind === 'fcm') return 'fcm'
  const { host } = new URL(target.subscription.endpoint)
  return hostSuffixes.find((suffix) => isWithin(host, suffix)) ?? host
}
