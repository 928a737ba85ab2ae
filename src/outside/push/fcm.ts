import { Type } from '@sinclair/typebox'
import { parseAs } from '../../api/fields.ts'
import type { Clock } from '../../lib/clock.ts'
import { RetryLater } from '../../lib/errors.ts'
import { unlessAborted } from '../exchange.ts'
import { outcomeOf, type PushAnswer, post, reasonOf } from './post.ts'
import {
  accountEntry,
  type FcmTarget,
  type PushDriver,
  type PushMessage,
  PushRefused,
} from './pusher.ts'
import { createAccessTokens, type ServiceAccount } from './service-account.ts'

type FcmOptions = {
  account: ServiceAccount
  clock: Clock
  baseUrl: string
  timeoutMilliseconds?: number
}

export function createFcmDriver(options: FcmOptions): PushDriver<FcmTarget> {
  const { account, clock, baseUrl, timeoutMilliseconds } = options
  const project = encodeURIComponent(account.projectId)
  const url = `${baseUrl.replace(/\/$/, '')}/v1/projects/${project}/messages:send`
  const tokens = createAccessTokens({ account, clock, timeoutMilliseconds })

  function send(accessToken: string, body: string, signal: AbortSignal) {
    const headers = { Authorization: `Bearer ${accessToken}`, 'Content-Type': 'application/json' }
    return post(url, { headers, body, timeoutMilliseconds, signal })
  }

  return async (target, message, signal) => {
    const body = JSON.stringify({ message: fcmMessage(target, message, clock.now()) })
    // Only this wait for a grant ends, which others share.
    const accessToken = await unlessAborted(signal, tokens.current())
    const answer = await send(accessToken, body, signal)
    if (!isTokenRefused(answer)) return fcmOutcome(answer, clock)
    const renewed = await unlessAborted(signal, tokens.renew(accessToken))
    return fcmOutcome(await send(renewed, body, signal), clock)
  }
}

function fcmMessage({ token, platform }: FcmTarget, message: PushMessage, now: number) {
  const { title, body, data, type } = message
  const common = { token, notification: { title, body }, data: { ...data, type } }
  switch (platform) {
    case 'android':
      return { ...common, android: androidPart(message) }
    case 'ios':
      return { ...common, apns: apnsPart(message, now) }
    case 'web':
      return { ...common, webpush: webPushPart(message) }
  }
}

function androidPart({ type, urgency, ttlSeconds, collapseKey }: PushMessage) {
  return {
    priority: urgency === 'high' ? 'HIGH' : 'NORMAL',
    ttl: `${ttlSeconds}s`,
    collapse_key: collapseKey,
    // The key replaces a waiting message, the tag a displayed one.
    // Kinds of the platform share a channel, because an app must create each.
    notification: { channel_id: type.replace(/^custom\..*/, 'custom'), tag: collapseKey },
  }
}

function apnsPart({ urgency, ttlSeconds, collapseKey, badge }: PushMessage, now: number) {
  return {
    headers: {
      'apns-priority': urgency === 'high' ? '10' : '5',
      'apns-expiration': String(Math.floor(now / 1_000) + ttlSeconds),
      'apns-collapse-id': collapseKey,
    },
    payload: { aps: { badge, sound: urgency === 'high' ? 'default' : undefined } },
  }
}

function webPushPart({ urgency, ttlSeconds, collapseKey }: PushMessage) {
  const headers = { TTL: String(ttlSeconds), Urgency: urgency, Topic: collapseKey }
  return { headers, notification: { tag: collapseKey } }
}

// A 401 may also concern the credentials for Apple or the browsers, and then a new access token does not help.
function isTokenRefused({ status, text }: PushAnswer) {
  return status === 401 && errorCodeOf(text) !== 'THIRD_PARTY_AUTH_ERROR'
}

function fcmOutcome(answer: PushAnswer, clock: Clock): 'delivered' | 'gone' {
  if (errorCodeOf(answer.text) === 'UNREGISTERED') return 'gone'
  const reason = `${accountEntry}: ${reasonOf(answer)}`
  if (errorCodeOf(answer.text) === 'SENDER_ID_MISMATCH') throw new PushRefused(reason)
  // Choice: retry, because the operator can fix the credentials and the address. No device is forgotten because of them.
  if ([401, 403, 404, 410].includes(answer.status)) throw new RetryLater(reason, 0)
  return outcomeOf(answer, clock)
}

const Failure = Type.Object({
  error: Type.Object({
    details: Type.Array(
      Type.Object({ '@type': Type.String(), errorCode: Type.Optional(Type.String()) }),
    ),
  }),
})

function errorCodeOf(text: string) {
  const details = parseAs(Failure, text)?.error.details ?? []
  return details.find((detail) => detail['@type'].endsWith('google.firebase.fcm.v1.FcmError'))
    ?.errorCode
}
