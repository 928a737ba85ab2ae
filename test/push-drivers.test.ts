import { describe, expect, spyOn, test } from 'bun:test'
import { createECDH, ECDH, generateKeyPairSync } from 'node:crypto'
import { RetryLater } from '../src/lib/errors.ts'
import { createFcmDriver } from '../src/outside/push/fcm.ts'
import {
  createPusher,
  type FcmTarget,
  type PushMessage,
  PushRefused,
  targetOf,
} from '../src/outside/push/pusher.ts'
import { createAccessTokens, parseServiceAccount } from '../src/outside/push/service-account.ts'
import {
  isAllowedEndpoint,
  parseSubscription,
  publicPushServices,
} from '../src/outside/push/subscription.ts'
import { makeVapidKeys } from '../src/outside/push/vapid-key-store.ts'
import { createWebPushDriver, encrypt, maxPlaintextBytes } from '../src/outside/push/web-push.ts'
import { createTestClock } from './support/clock.ts'
import { startGoogle, startPushService } from './support/push-services.ts'
import { waitFor } from './support/wait.ts'

const call: PushMessage = {
  title: 'Ana calls',
  body: 'Pick up',
  data: { call_session_id: 'c1' },
  type: 'call_incoming',
  ttlSeconds: 45,
  urgency: 'high',
  collapseKey: 'call-c1',
  badge: 3,
}
const note: PushMessage = {
  title: 'Paid',
  body: '12.00 EUR',
  data: {},
  type: 'payment_captured',
  ttlSeconds: 3_600,
  urgency: 'normal',
  collapseKey: 'paid-p1',
  badge: 1,
}

type End = string | { refused: string } | { postponed: string; afterMilliseconds?: number }

/** The outcome of a push in a comparable form. */
async function endOf(push: Promise<string>): Promise<End> {
  try {
    return await push
  } catch (error) {
    if (error instanceof PushRefused) return { refused: error.message }
    if (!(error instanceof RetryLater)) throw error
    const { message: postponed, afterMilliseconds } = error
    return { postponed, ...(afterMilliseconds > 0 && { afterMilliseconds }) }
  }
}

const redirect = { status: 307, headers: { location: '/elsewhere' } }
const minuteMilliseconds = 60_000

describe('FCM', () => {
  const token = 'device-1'
  const android: FcmTarget = { kind: 'fcm', token, platform: 'android' }
  const ios: FcmTarget = { ...android, platform: 'ios' }
  const web: FcmTarget = { ...android, platform: 'web' }

  function startFcm(timeoutMilliseconds = 10_000) {
    const clock = createTestClock(1_800_000_000_000)
    const google = startGoogle(clock)
    const account = parseServiceAccount(google.keyFile)
    const driver = createFcmDriver({ account, baseUrl: google.url, clock, timeoutMilliseconds })
    const push = (target = android, message = call, signal = new AbortController().signal) =>
      endOf(driver(target, message, signal))
    return { ...google, host: new URL(google.url).host, clock, push }
  }

  const common = {
    token,
    notification: { title: 'Ana calls', body: 'Pick up' },
    data: { call_session_id: 'c1', type: 'call_incoming' },
  }
  const commonOfNote = {
    token,
    notification: { title: 'Paid', body: '12.00 EUR' },
    data: { type: 'payment_captured' },
  }

  test('a message goes to the project of the service account with its access token', async () => {
    await using fcm = startFcm()
    expect(await fcm.push()).toBe('delivered')
    expect(fcm.sends).toEqual([
      {
        path: '/v1/projects/demo-project/messages:send',
        authorization: 'Bearer access-1',
        message: {
          ...common,
          android: {
            priority: 'HIGH',
            ttl: '45s',
            collapse_key: 'call-c1',
            notification: { channel_id: 'call_incoming', tag: 'call-c1' },
          },
        },
      },
    ])
  })

  test('the grant is requested as RFC 7523 specifies', async () => {
    await using fcm = startFcm()
    await fcm.push()
    expect(fcm.grants).toEqual([
      {
        iss: 'push@demo-project.iam.gserviceaccount.com',
        aud: fcm.tokenUri,
        scope: 'https://www.googleapis.com/auth/firebase.messaging',
        iat: 1_800_000_000,
        exp: 1_800_003_600,
      },
    ])
  })

  test('an iPhone rings, shows the badge and drops the call in time', async () => {
    await using fcm = startFcm()
    await fcm.push(ios)
    const headers = {
      'apns-priority': '10',
      'apns-expiration': '1800000045',
      'apns-collapse-id': 'call-c1',
    }
    const apns = { headers, payload: { aps: { badge: 3, sound: 'default' } } }
    expect(fcm.sends.map(({ message }) => message)).toEqual([{ ...common, apns }])
  })

  test('a browser behind FCM gets the headers of Web Push', async () => {
    await using fcm = startFcm()
    await fcm.push(web)
    const webpush = {
      headers: { TTL: '45', Urgency: 'high', Topic: 'call-c1' },
      notification: { tag: 'call-c1' },
    }
    expect(fcm.sends.map(({ message }) => message)).toEqual([{ ...common, webpush }])
  })

  test('a push that is not urgent is marked so on every platform', async () => {
    await using fcm = startFcm()
    for (const target of [android, ios, web]) await fcm.push(target, note)
    const tag = 'paid-p1'
    const headers = {
      'apns-priority': '5',
      'apns-expiration': '1800003600',
      'apns-collapse-id': tag,
    }
    expect(fcm.sends.map(({ message }) => message)).toEqual([
      {
        ...commonOfNote,
        android: {
          priority: 'NORMAL',
          ttl: '3600s',
          collapse_key: tag,
          notification: { channel_id: 'payment_captured', tag },
        },
      },
      { ...commonOfNote, apns: { headers, payload: { aps: { badge: 1 } } } },
      {
        ...commonOfNote,
        webpush: { headers: { TTL: '3600', Urgency: 'normal', Topic: tag }, notification: { tag } },
      },
    ])
  })

  test('data cannot overwrite the type', async () => {
    await using fcm = startFcm()
    await fcm.push(android, { ...note, data: { type: 'call_incoming' } })
    expect(fcm.sends[0]?.message).toMatchObject({ data: { type: 'payment_captured' } })
  })

  test('a hundred parallel pushes request one access token', async () => {
    await using fcm = startFcm()
    const ends = await Promise.all(Array.from({ length: 100 }, () => fcm.push()))
    expect(new Set(ends)).toEqual(new Set(['delivered']))
    expect([fcm.grants.length, fcm.sends.length]).toEqual([1, 100])
  })

  test('an access token is used until shortly before it expires', async () => {
    await using fcm = startFcm()
    await fcm.push()
    fcm.clock.advance(59 * minuteMilliseconds - 1)
    await fcm.push()
    fcm.clock.advance(1)
    await fcm.push()
    const used = fcm.sends.map(({ authorization }) => authorization)
    expect(used).toEqual(['Bearer access-1', 'Bearer access-1', 'Bearer access-2'])
  })

  test('refused access tokens are replaced by one fresh token', async () => {
    await using fcm = startFcm()
    await fcm.push()
    fcm.revokeTokens()
    const ends = await Promise.all(Array.from({ length: 20 }, () => fcm.push()))
    expect(new Set(ends)).toEqual(new Set(['delivered']))
    expect(fcm.grants).toHaveLength(2)
  })

  test('a late refusal of a token does not request a second fresh one', async () => {
    await using google = startGoogle(createTestClock())
    const account = parseServiceAccount(google.keyFile)
    const clock = createTestClock()
    const tokens = createAccessTokens({ account, clock, timeoutMilliseconds: 10_000 })
    expect(await tokens.current()).toBe('access-1')
    expect(await tokens.renew('access-1')).toBe('access-2')
    expect(await tokens.renew('access-1')).toBe('access-2')
  })

  test('a refused fresh token ends the attempt', async () => {
    await using fcm = startFcm()
    fcm.respondFcm({ status: 401 }, { status: 401 })
    const postponed = `FCM_SERVICE_ACCOUNT: ${fcm.host} answered 401`
    expect(await fcm.push()).toEqual({ postponed })
    const used = fcm.sends.map(({ authorization }) => authorization)
    expect(used).toEqual(['Bearer access-1', 'Bearer access-2'])
  })

  test('missing Apple credentials do not request a fresh token', async () => {
    await using fcm = startFcm()
    fcm.respondFcm({ status: 401, body: fcmError('THIRD_PARTY_AUTH_ERROR') })
    expect(await fcm.push(ios)).toHaveProperty('postponed')
    expect([fcm.grants.length, fcm.sends.length]).toEqual([1, 1])
  })

  test.each([
    [404, fcmError('UNREGISTERED')],
    [400, fcmError('UNREGISTERED')],
  ])('the device is unregistered: %d %j', async (status, body) => {
    await using fcm = startFcm()
    fcm.respondFcm({ status, body })
    expect(await fcm.push()).toBe('gone')
  })

  test.each([
    [400, fcmError('INVALID_ARGUMENT')],
    [413, 'UNREGISTERED'],
    [400, { error: { details: [{ '@type': 'x/google.rpc.Help', errorCode: 'UNREGISTERED' }] } }],
  ])('the message is refused and the push token stays: %d %j', async (status, body) => {
    await using fcm = startFcm()
    fcm.respondFcm({ status, body })
    const reason = `${fcm.host} answered ${status} ${JSON.stringify(body).slice(0, 200)}`
    expect(await fcm.push()).toEqual({ refused: reason })
  })

  test('a refusal that the operator can fix names the configuration entry', async () => {
    await using fcm = startFcm()
    const named = (status: number, body: object) =>
      `FCM_SERVICE_ACCOUNT: ${fcm.host} answered ${status} ${JSON.stringify(body)}`.slice(0, 300)
    const foreign = fcmError('SENDER_ID_MISMATCH')
    fcm.respondFcm({ status: 403, body: foreign })
    expect(await fcm.push()).toEqual({ refused: named(403, foreign) })
    const denied = { error: { status: 'PERMISSION_DENIED' } }
    fcm.respondFcm({ status: 403, body: denied })
    expect(await fcm.push()).toEqual({ postponed: named(403, denied) })
    const unknown = { error: { status: 'NOT_FOUND' } }
    fcm.respondFcm({ status: 404, body: unknown })
    expect(await fcm.push()).toEqual({ postponed: named(404, unknown) })
  })

  test.each([
    [429, '120', { afterMilliseconds: 120_000 }],
    [503, '0', {}],
    [503, 'Fri, 15 Jan 2027 08:01:30 GMT', { afterMilliseconds: 90_000 }],
    [503, 'Fri, 15 Jan 2027 07:00:00 GMT', {}],
    [500, '99999999999', { afterMilliseconds: 86_400_000 }],
    [500, 'soon', {}],
    [502, '', {}],
  ])('%d with Retry-After "%s" is retried after %p', async (status, retryAfter, expected) => {
    await using fcm = startFcm()
    fcm.respondFcm({ status, headers: { 'retry-after': retryAfter } })
    const end = { postponed: `${fcm.host} answered ${status}`, ...expected }
    expect(await fcm.push()).toEqual(end)
  })

  test('a hanging service delays no other push', async () => {
    await using fcm = startFcm()
    await fcm.push()
    fcm.respondFcm('hang')
    const timeout = new AbortController()
    using _ = spyOn(AbortSignal, 'timeout').mockReturnValue(timeout.signal)
    const pushes = [fcm.push(), fcm.push()]
    expect(await Promise.race(pushes)).toBe('delivered')
    timeout.abort()
    const late = { postponed: `${fcm.host}: no answer within 10 s` }
    expect(await Promise.all(pushes)).toContainEqual(late)
  })

  test('an endless response counts by its status', async () => {
    await using fcm = startFcm(1_000)
    fcm.respondFcm('stall')
    expect(await fcm.push()).toBe('delivered')
  })

  test('aborting a push does not abort the grant that others wait for', async () => {
    await using fcm = startFcm()
    const pushes = [fcm.push(android, call, AbortSignal.abort()), fcm.push()]
    expect(await Promise.all(pushes)).toEqual([
      { postponed: `${fcm.host}: The operation was aborted.` },
      'delivered',
    ])
    expect([fcm.grants.length, fcm.sends.length]).toEqual([1, 1])
  })

  test.each([
    { status: 503 },
    { status: 400, body: { error: 'invalid_grant' } },
    { status: 200, body: { expires_in: 3_600 } },
    redirect,
  ])(
    'without an access token nothing is sent, and the next push requests one again: %j',
    async (answer) => {
      await using fcm = startFcm()
      fcm.respondGrant(answer)
      const entry = answer.status === 400 ? 'FCM_SERVICE_ACCOUNT: ' : ''
      const body = 'body' in answer ? ` ${JSON.stringify(answer.body)}` : ''
      const postponed = `${entry}no access token: ${fcm.host} answered ${answer.status}${body}`
      expect(await fcm.push()).toEqual({ postponed })
      expect(await fcm.push()).toBe('delivered')
      expect([fcm.sends.length, fcm.elsewhere]).toEqual([1, []])
    },
  )

  test('a grant that cannot be used does not tell its token', async () => {
    await using fcm = startFcm()
    fcm.respondGrant({ status: 200, body: { access_token: 'ya29.secret', expires_in: 'soon' } })
    const told = '{"access_token":"…","expires_in":"soon"}'
    const postponed = `no access token: ${fcm.host} answered 200 ${told}`
    expect(await fcm.push()).toEqual({ postponed })
  })

  test('a push that is stopped waits for no grant', async () => {
    await using fcm = startFcm()
    fcm.respondGrant('hang')
    const stop = new AbortController()
    const push = fcm.push(android, call, stop.signal)
    await waitFor(() => fcm.grants.length === 1)
    stop.abort()
    expect(push).rejects.toThrow('The operation was aborted.')
    await push.catch(() => {})
  })

  test('a hanging token endpoint times out', async () => {
    await using fcm = startFcm(200)
    fcm.respondGrant('hang')
    expect(await fcm.push()).toEqual({ postponed: `${fcm.host}: no answer within 0.2 s` })
  })

  test('a redirect is not followed', async () => {
    await using fcm = startFcm()
    fcm.respondFcm(redirect)
    expect(await fcm.push()).toEqual({ refused: `${fcm.host} answered 307` })
    expect(fcm.elsewhere).toEqual([])
  })

  test('an unreachable service is retried', async () => {
    const fcm = startFcm()
    await fcm.push()
    await fcm[Symbol.asyncDispose]()
    expect(await fcm.push()).toHaveProperty('postponed')
  })
})

function fcmError(errorCode: string) {
  const help = { '@type': 'type.googleapis.com/google.rpc.Help' }
  const detail = { '@type': 'type.googleapis.com/google.firebase.fcm.v1.FcmError', errorCode }
  return { error: { status: 'X', details: [help, detail] } }
}

describe('a service account', () => {
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  const ecPem = ec.export({ type: 'pkcs8', format: 'pem' })
  const names = 'project_id, client_email, private_key, token_uri'
  const whole = `be the JSON key file of a service account, with ${names}`
  const noKey = 'have an RSA private key in PEM form as private_key'

  test.each([
    ['not JSON', () => '{', whole],
    ['a list', () => '[]', whole],
    ['no project', (file: object) => JSON.stringify({ ...file, project_id: '' }), whole],
    ['a user', () => JSON.stringify({ type: 'authorized_user', refresh_token: 'r' }), whole],
    ['no key', (file: object) => JSON.stringify({ ...file, private_key: 'secret' }), noKey],
    ['another key', (file: object) => JSON.stringify({ ...file, private_key: ecPem }), noKey],
    [
      'no address',
      (file: object) => JSON.stringify({ ...file, token_uri: 'file:///etc/passwd' }),
      'have an http(s) address as token_uri',
    ],
  ])('%s is refused with a reason', async (_, change, reason) => {
    await using google = startGoogle(createTestClock())
    const text = change(JSON.parse(google.keyFile))
    expect(() => parseServiceAccount(text)).toThrow(new Error(reason))
  })
})

describe('Web Push', () => {
  async function startWebPush(timeoutMilliseconds = 10_000) {
    const clock = createTestClock(1_800_000_000_000)
    const keys = makeVapidKeys()
    const service = startPushService(keys.publicKey, clock)
    const subscription = await service.subscribe()
    const subject = 'mailto:ops@example.com'
    const isAllowed = (endpoint: string) => endpoint.startsWith('http://127.0.0.1:')
    const driver = createWebPushDriver({ keys, subject, clock, isAllowed, timeoutMilliseconds })
    const push = (message = call, target = subscription, signal = new AbortController().signal) =>
      endOf(driver({ kind: 'web_push', subscription: target }, message, signal))
    return { ...service, host: new URL(service.origin).host, clock, subscription, push }
  }

  test('a browser can decrypt a push, and the push service can verify its sender', async () => {
    await using web = await startWebPush()
    expect(await web.push()).toBe('delivered')
    expect(web.pushed).toEqual([
      {
        path: '/push/1',
        headers: pushHeaders({ ttl: '45', urgency: 'high', topic: 'call-c1' }),
        claims: { aud: web.origin, exp: 1_800_043_200, sub: 'mailto:ops@example.com' },
        payload: {
          title: 'Ana calls',
          body: 'Pick up',
          data: { call_session_id: 'c1', type: 'call_incoming' },
          badge: 3,
          tag: 'call-c1',
        },
      },
    ])
  })

  test.each([200, 201, 202, 204])('%d means delivered', async (status) => {
    await using web = await startWebPush()
    web.respond({ status })
    expect(await web.push()).toBe('delivered')
  })

  test.each([404, 410])('%d means that the subscription has ended', async (status) => {
    await using web = await startWebPush()
    web.respond({ status })
    expect(await web.push()).toBe('gone')
  })

  test.each([400, 401, 403, 413])('%d is a refusal with a reason', async (status) => {
    await using web = await startWebPush()
    web.respond({ status, body: { reason: 'BadJwtToken' } })
    const refused = `${web.host} answered ${status} {"reason":"BadJwtToken"}`
    expect(await web.push()).toEqual({ refused })
  })

  test.each([
    [429, '30', { afterMilliseconds: 30_000 }],
    [503, 'Fri, 15 Jan 2027 08:00:05 GMT', { afterMilliseconds: 5_000 }],
    [500, '', {}],
  ])('%d with Retry-After "%s" is retried after %p', async (status, retryAfter, expected) => {
    await using web = await startWebPush()
    web.respond({ status, headers: { 'retry-after': retryAfter } })
    const end = { postponed: `${web.host} answered ${status}`, ...expected }
    expect(await web.push()).toEqual(end)
  })

  test('a hanging service delays no other push', async () => {
    await using web = await startWebPush()
    web.respond('hang')
    const timeout = new AbortController()
    using _ = spyOn(AbortSignal, 'timeout').mockReturnValue(timeout.signal)
    const pushes = [web.push(), web.push()]
    expect(await Promise.race(pushes)).toBe('delivered')
    timeout.abort()
    const late = { postponed: `${web.host}: no answer within 10 s` }
    expect(await Promise.all(pushes)).toContainEqual(late)
  })

  test('an endless response counts by its status', async () => {
    await using web = await startWebPush(1_000)
    web.respond('stall')
    expect(await web.push()).toBe('delivered')
  })

  test('only the start of an endless response is read', async () => {
    await using web = await startWebPush()
    web.respond('flood')
    expect(await web.push()).toEqual({ refused: `${web.host} answered 400 ${'x'.repeat(200)}` })
    expect(web.flooded()).toBeLessThan(20_000_000)
  })

  test('an aborted push is retried later', async () => {
    await using web = await startWebPush()
    const end = await web.push(call, web.subscription, AbortSignal.abort())
    expect(end).toEqual({ postponed: `${web.host}: The operation was aborted.` })
  })

  test('a redirect is refused and its target not requested', async () => {
    await using web = await startWebPush()
    const other = await web.subscribe()
    web.respond({ status: 307, headers: { location: other.endpoint } })
    expect(await web.push()).toEqual({ refused: `${web.host} answered 307` })
    expect(web.pushed.map(({ path }) => path)).toEqual(['/push/1'])
  })

  test('an endpoint that is not allowed is not requested', async () => {
    await using web = await startWebPush()
    const endpoint = web.subscription.endpoint.replace('127.0.0.1', 'localhost')
    const end = await web.push(call, { ...web.subscription, endpoint })
    expect(end).toEqual({ refused: 'the endpoint is not at an allowed push service' })
    expect(web.authorizations).toEqual([])
  })

  test('the VAPID token is signed once in eleven hours for each push service', async () => {
    await using web = await startWebPush()
    await using other = startPushService('', web.clock)
    await web.push()
    await web.push(call, await other.subscribe())
    web.clock.advance(11 * 60 * minuteMilliseconds - 1)
    await web.push()
    web.clock.advance(1)
    await web.push()
    const [first, second, third] = web.authorizations
    expect([second, third === first]).toEqual([first, false])
    expect(web.authorizations).not.toContain(other.authorizations[0])
  })

  test('a VAPID token of a time when the clock was ahead is signed anew', async () => {
    await using web = await startWebPush()
    web.clock.advance(3 * 24 * 60 * minuteMilliseconds)
    await web.push()
    web.clock.setBack(3 * 24 * 60 * minuteMilliseconds)
    await web.push()
    const [ahead, right] = web.authorizations
    expect(right).not.toBe(ahead)
  })

  test('the longest message that fits arrives complete; a longer one is not sent', async () => {
    await using web = await startWebPush()
    const { type, badge, collapseKey: tag } = note
    const frame = JSON.stringify({ title: '', body: '', data: { type }, badge, tag })
    const body = 'x'.repeat(maxPlaintextBytes - frame.length)
    expect(await web.push({ ...note, title: '', body })).toBe('delivered')
    expect(web.pushed[0]?.payload).toMatchObject({ body })
    const refused = `the message has ${maxPlaintextBytes + 1} bytes, of ${maxPlaintextBytes}`
    expect(await web.push({ ...note, title: 'x', body })).toEqual({ refused })
    expect(web.pushed).toHaveLength(1)
  })

  test('each message has a salt and a key of its own', () => {
    const keys = { p256dh: rfc8291.receiver, auth: rfc8291.auth }
    const [one, other] = [1, 2].map(() => encrypt(Buffer.from('same'), keys))
    expect(one?.slice(0, 16)).not.toEqual(other?.slice(0, 16))
    expect(one?.slice(21, 86)).not.toEqual(other?.slice(21, 86))
  })

  test('the example of RFC 8291 is reproduced byte for byte', () => {
    const ecdh = createECDH('prime256v1')
    ecdh.setPrivateKey(rfc8291.sender, 'base64url')
    const keys = { p256dh: rfc8291.receiver, auth: rfc8291.auth }
    const salt = Buffer.from(rfc8291.salt, 'base64url')
    const body = encrypt(Buffer.from(rfc8291.plaintext), keys, { ecdh, salt })
    expect(Buffer.from(body).toString('base64url')).toBe(rfc8291.body)
  })

  test('fresh keys are a private key in PEM form and a point of 65 bytes', () => {
    const { privateKey, publicKey } = makeVapidKeys()
    expect(privateKey).toStartWith('-----BEGIN PRIVATE KEY-----\n')
    expect(publicKey).toMatch(/^B[\w-]{86}$/)
  })
})

function pushHeaders(own: { ttl: string; urgency: string; topic: string }) {
  const type = 'application/octet-stream'
  return { 'content-type': type, 'content-encoding': 'aes128gcm', ...own }
}

// RFC 8291, section 5 and appendix A.
const rfc8291 = {
  plaintext: 'When I grow up, I want to be a watermelon',
  sender: 'yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw',
  receiver:
    'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
  auth: 'BTBZMqHH6r4Tts7J_aSIgg',
  salt: 'DGv6ra1nlYgDCS1FRnbzlw',
  body: [
    'DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27ml',
    'mlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPT',
    'pK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN',
  ].join(''),
}

describe('an endpoint', () => {
  test.each([
    'https://fcm.googleapis.com/fcm/send/abc:APA91b-_x',
    'https://updates.push.services.mozilla.com/wpush/v2/gAAAAA==',
    'https://web.push.apple.com/QGuQyavXutnMH',
    'https://wns2-par02p.notify.windows.com/w/?token=BQYAAAB%2b',
  ])('of a browser is allowed: %s', (endpoint) => {
    expect(isAllowedEndpoint(endpoint, publicPushServices)).toBe(true)
  })

  test.each([
    'http://push.example.com/1',
    'https://evilpush.example.com/1',
    'https://push.example.com.evil.com/1',
    'https://push.example.com@evil.com/1',
    'https://evil.com/push.example.com/1',
    'https://evil.com#.push.example.com/1',
    'https://evil.com\\.push.example.com/1',
    'https://example.com/1',
    'https://push.example.com./1',
    'https://PUSH.example.com/1',
    'HTTPS://push.example.com/1',
    'https://pusһ.example.com/1',
    'https://push。example.com/1',
    'https://xn--pus-8ld.example.com/1',
    'https://user@push.example.com/1',
    'https://:pw@push.example.com/1',
    'https://push.example.com:443/1',
    'https://push.example.com:8443/1',
    'https://push.example.com',
    'https:push.example.com/1',
    ' https://push.example.com/1',
    'https://push.example.com/1\n',
    'https://push.example.com/a/../1',
    'https://127.0.0.1/1',
    'https://0x7f.1/1',
    'https://2130706433/1',
    'https://[::1]/1',
    'https://localhost/1',
    'wss://push.example.com/1',
    'push.example.com/1',
    '',
  ])('that imitates an allowed one is refused: %j', (endpoint) => {
    expect(isAllowedEndpoint(endpoint, ['push.example.com', '0.1', '127.0.0.1', '[::1]', ''])).toBe(
      false,
    )
  })

  test('is allowed at a listed host and its subdomains', () => {
    const hosts = ['push.example.com']
    const endpoints = ['https://push.example.com/1', 'https://a.b.push.example.com/1']
    expect(endpoints.map((endpoint) => isAllowedEndpoint(endpoint, hosts))).toEqual([true, true])
  })
})

describe('a push token', () => {
  const endpoint = 'https://push.example.com/1'
  const keys = { p256dh: rfc8291.receiver, auth: rfc8291.auth }

  test('of a browser stores only the fields that are needed', () => {
    const text = JSON.stringify({ endpoint, expirationTime: null, keys: { ...keys, more: 1 } })
    expect(targetOf(text, 'web')).toEqual({ kind: 'web_push', subscription: { endpoint, keys } })
  })

  test.each([
    ['web', 'cXyz:APA91b'],
    ['ios', JSON.stringify({ endpoint, keys })],
    ['android', 'cXyz:APA91b'],
  ] as const)('on %s that is no subscription belongs to FCM', (platform, token) => {
    expect(targetOf(token, platform)).toEqual({ kind: 'fcm', token, platform })
  })

  const short = ECDH.convertKey(keys.p256dh, 'prime256v1', 'base64url', 'base64url', 'compressed')
  const off = Buffer.from(rfc8291.receiver, 'base64url').fill(7, 64).toString('base64url')
  test.each([
    '',
    'null',
    '{}',
    '[]',
    JSON.stringify({ endpoint }),
    JSON.stringify({ endpoint: 'nowhere', keys }),
    JSON.stringify({ endpoint: `${endpoint}${'x'.repeat(2_048)}`, keys }),
    JSON.stringify({ endpoint, keys: { ...keys, auth: 'c2hvcnQ' } }),
    JSON.stringify({ endpoint, keys: { ...keys, auth: `${keys.auth}!` } }),
    JSON.stringify({ endpoint, keys: { ...keys, auth: 5 } }),
    JSON.stringify({ endpoint, keys: { ...keys, p256dh: keys.auth } }),
    JSON.stringify({ endpoint, keys: { ...keys, p256dh: Buffer.alloc(65).toString('base64url') } }),
    JSON.stringify({ endpoint, keys: { ...keys, p256dh: off } }),
    JSON.stringify({ endpoint, keys: { ...keys, p256dh: short } }),
  ])('%s is no subscription', (text) => {
    expect(parseSubscription(text)).toBeUndefined()
  })
})

test('each target is sent by the driver of its kind', async () => {
  const fcm = async () => 'gone' as const
  const webPush = async () => 'delivered' as const
  const keys = { p256dh: rfc8291.receiver, auth: rfc8291.auth }
  const browser = targetOf(JSON.stringify({ endpoint: 'https://a.b/1', keys }), 'web')
  const push = createPusher({ fcm, webPush })
  const { signal } = new AbortController()
  expect(await push(targetOf('t', 'ios'), note, signal)).toBe('gone')
  expect(await push(browser, note, signal)).toBe('delivered')
  const pushWithoutFcm = createPusher({ fcm: undefined, webPush })
  expect(await pushWithoutFcm(targetOf('t', 'ios'), note, signal)).toBe('unconfigured')
  expect(await pushWithoutFcm(browser, note, signal)).toBe('delivered')
})
