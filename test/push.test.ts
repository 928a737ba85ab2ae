import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { systemClock } from '../src/lib/clock.ts'
import { texts } from '../src/lib/i18n.ts'
import { createTestClock } from './support/clock.ts'
import { hostline } from './support/command.ts'
import { temporaryDirectory } from './support/directory.ts'
import { testAtLength } from './support/faults.ts'
import { startMailServer } from './support/mail.ts'
import { call, meet, startServer } from './support/process.ts'
import { startGoogle, startPushService } from './support/push-services.ts'
import { startService, type TestService } from './support/service.ts'
import { shared } from './support/shared.ts'
import { waitFor } from './support/wait.ts'

const anyService = shared(() => startService())

const tokens = '/v1/notifications/push-tokens'
const unknownId = '01ARZ3NDEKTSV4RRFFQ69G5FAV'

const registerDevice = (
  service: TestService,
  { token: bearer }: { token: string },
  token: string,
  platform = 'android',
) => service.call('POST', tokens, { token: bearer, body: { token, platform } })

const devicesOf = async (service: TestService, { token }: { token: string }) =>
  (await service.call('GET', tokens, { token })).body.data

describe('push tokens', () => {
  test('are registered, listed and removed', async () => {
    await using service = await startService()
    const ada = await service.register()
    const made = await registerDevice(service, ada, 'device-1', 'ios')
    const device = {
      id: expect.any(String),
      token: 'device-1',
      platform: 'ios',
      created_at: expect.any(String),
    }
    expect([made.status, made.body]).toEqual([201, device])
    const list = await service.call('GET', tokens, ada)
    expect(list.body).toEqual({
      success: true,
      data: [made.body],
      pagination: { page: 1, per_page: 20, total: 1, total_pages: 1 },
    })
    const remove = () => service.call('DELETE', `${tokens}/${made.body.id}`, ada)
    expect([(await remove()).status, (await remove()).status]).toEqual([204, 404])
    expect(await devicesOf(service, ada)).toEqual([])
  })

  test('keep their id when the same user registers them again, also at once', async () => {
    await using service = await startService()
    const ada = await service.register()
    const again = () => registerDevice(service, ada, 'device-1')
    const answers = await Promise.all([again(), again(), again()])
    const later = await registerDevice(service, ada, 'device-1', 'web')
    expect(new Set([...answers, later].map(({ body }) => body.id)).size).toBe(1)
    expect(await devicesOf(service, ada)).toEqual([later.body])
    expect(later.body.platform).toBe('web')
  })

  test('move with a new id to another user who registers them', async () => {
    await using service = await startService()
    const [ada, bob] = [await service.register(), await service.register()]
    const first = await registerDevice(service, ada, 'device-1')
    const second = await registerDevice(service, bob, 'device-1')
    expect(second.body.id).not.toBe(first.body.id)
    expect(await devicesOf(service, ada)).toEqual([])
    expect(await devicesOf(service, bob)).toEqual([second.body])
    for (const id of [second.body.id, unknownId, 'x']) {
      expect((await service.call('DELETE', `${tokens}/${id}`, ada)).status).toBe(404)
    }
  })

  test('are limited to 25; the least recently registered one is removed', async () => {
    const clock = createTestClock()
    await using service = await startService({ clock })
    const ada = await service.register()
    for (let n = 0; n < 25; n++) {
      await registerDevice(service, ada, `device-${n}`)
      clock.advance(1_000)
    }
    await registerDevice(service, ada, 'device-0')
    await registerDevice(service, ada, 'device-25')
    const list = await service.call('GET', `${tokens}?per_page=100`, ada)
    const kept = list.body.data.map(({ token }: { token: string }) => token)
    expect(kept).toHaveLength(25)
    expect([kept.includes('device-0'), kept.includes('device-1')]).toEqual([true, false])
  })

  test('of ended sessions do not count towards the limit', async () => {
    await using service = await startService()
    const phone = await service.register()
    await registerDevice(service, phone, 'phone')
    const laptop = await service.login(phone.email)
    for (let n = 0; n < 24; n++) await registerDevice(service, laptop, `laptop-${n}`)
    const body = { refresh_token: laptop.refreshToken }
    await service.call('POST', '/v1/auth/logout', { token: laptop.token, body })
    await registerDevice(service, phone, 'tablet')
    const kept = (await devicesOf(service, phone)).map(({ token }: { token: string }) => token)
    expect(kept).toEqual(['tablet', 'phone'])
  })

  test('end with the session that registered them', async () => {
    await using service = await startService()
    const phone = await service.register()
    const laptop = await service.login(phone.email)
    await registerDevice(service, phone, 'phone')
    const kept = await registerDevice(service, laptop, 'laptop')
    const body = { refresh_token: phone.refreshToken }
    await service.call('POST', '/v1/auth/logout', { token: phone.token, body })
    expect(await devicesOf(service, laptop)).toEqual([kept.body])
  })

  test.each([
    [{ platform: 'ios' }, 'token'],
    [{ token: '', platform: 'ios' }, 'token'],
    [{ token: 'x'.repeat(4_097), platform: 'ios' }, 'token'],
    [{ token: 'x' }, 'platform'],
    [{ token: 'x', platform: 'tv' }, 'platform'],
    [{ token: '{"endpoint":"https://fcm.googleapis.com/x"}', platform: 'web' }, 'token'],
    [{ token: '{', platform: 'web' }, 'token'],
  ])('are refused as %j', async (body, field) => {
    const service = await anyService()
    const { token } = await service.register()
    const answer = await service.call('POST', tokens, { token, body })
    expect([answer.status, Object.keys(answer.body.error.details)]).toEqual([400, [field]])
  })

  test('of browsers must point to a push service', async () => {
    await using service = await startService()
    const ada = await service.register()
    const push = startPushService(await webPushKey(service), createTestClock())
    const subscription = await push.subscribe()
    const at = (endpoint: string) =>
      registerDevice(service, ada, JSON.stringify({ ...subscription, endpoint }), 'web')
    expect((await at('https://fcm.googleapis.com/fcm/send/abc')).status).toBe(201)
    for (const endpoint of [
      subscription.endpoint,
      'http://fcm.googleapis.com/fcm/send/abc',
      'https://evilfcm.googleapis.com.example.com/x',
      'https://169.254.169.254/latest/meta-data',
    ]) {
      const { status, body } = await at(endpoint)
      expect([endpoint, status, Object.keys(body.error.details)]).toEqual([
        endpoint,
        400,
        ['token'],
      ])
    }
    await push[Symbol.asyncDispose]()
  })
})

const webPushKey = async (service: TestService) =>
  (await service.call('GET', '/v1/notifications/web-push-key')).body.public_key as string

describe('the key of Web Push', () => {
  test('needs no token, is a point on P-256, and stays', async () => {
    await using service = await startService()
    const [first, second] = [await webPushKey(service), await webPushKey(service)]
    expect(Buffer.from(first, 'base64url')).toHaveLength(65)
    expect(second).toBe(first)
  })
})

function countJobs({ sqlite }: TestService, which: string): number {
  const counted = sqlite.query<{ n: number }, []>(`SELECT count(*) AS n FROM outbox WHERE ${which}`)
  return counted.get()?.n ?? 0
}

/** A service with fakes of FCM and of a push service, and a user with devices. */
async function startPushing(options: Parameters<typeof startService>[0] = {}) {
  const clock = createTestClock()
  const google = startGoogle(clock)
  const service = await startService({
    clock,
    isAllowedPushEndpoint: (endpoint) => endpoint.startsWith('http://127.0.0.1'),
    ...options,
    environment: {
      FCM_SERVICE_ACCOUNT: google.keyFile,
      FCM_URL: google.url,
      ...options.environment,
    },
  })
  const push = startPushService(await webPushKey(service), clock)
  const { token: key } = await service.issueKey()
  const ada = await service.register('ada')
  return {
    clock,
    google,
    push,
    service,
    ada,
    notify: (body: object) =>
      service.call('POST', '/v1/service/notifications', {
        token: key,
        body: { user_id: ada.id, type: 'payment_captured', ...body },
      }),
    /** Advances the clock until a condition holds. */
    until: (holds: () => boolean, stepMilliseconds = 100) =>
      waitFor(() => {
        if (holds()) return true
        clock.advance(stepMilliseconds)
        return false
      }, String(holds)),
    /** Runs all due jobs. */
    settle: () =>
      waitFor(() => {
        clock.advance(500)
        return countJobs(service, `run_at <= ${clock.now()}`) === 0
      }, 'jobs that are due'),
    waiting: () => countJobs(service, "kind LIKE '%push'"),
    async [Symbol.asyncDispose]() {
      await push[Symbol.asyncDispose]()
      await google[Symbol.asyncDispose]()
      await service[Symbol.asyncDispose]()
    },
  }
}

describe('a notification', () => {
  test('is pushed to every device by its driver', async () => {
    await using all = await startPushing()
    const { service, ada, google, push, notify, until } = all
    await registerDevice(service, ada, 'phone', 'ios')
    await registerDevice(service, ada, 'tablet', 'android')
    await registerDevice(service, ada, JSON.stringify(await push.subscribe()), 'web')
    const data = { amount: '12.50', currency: 'EUR' }
    const { body } = await notify({ data })
    const [{ id }] = body.data
    await until(() => google.sends.length === 2 && push.pushed.length === 1)
    const expected = {
      notification: { title: 'Payment received', body: 'You received 12.50 EUR.' },
      data: { ...data, notification_id: id, type: 'payment_captured' },
    }
    const messages = google.sends.map(({ message }) => message) as { token: string }[]
    expect(messages.sort((a, b) => (a.token < b.token ? -1 : 1))).toEqual([
      expect.objectContaining({ token: 'phone', ...expected }),
      expect.objectContaining({ token: 'tablet', ...expected }),
    ])
    const [pushed] = push.pushed
    expect(pushed?.payload).toEqual({
      ...expected.notification,
      data: expected.data,
      badge: 1,
      tag: id,
    })
    await until(() => all.waiting() === 0)
    expect(google.grants).toHaveLength(1)
    expect(
      service.log().match(/"debug","message":"push sent","kind":"(fcm|web_push)"/g),
    ).toHaveLength(3)
  })

  test.each([
    ['call_incoming', '45s', 'HIGH'],
    ['call_missed', '86400s', 'NORMAL'],
    ['payment_captured', '259200s', 'NORMAL'],
    ['support_reply', '604800s', 'HIGH'],
  ])('of type %s expires after %s and has priority %s', async (type, ttl, priority) => {
    await using all = await startPushing()
    const { service, ada, google, clock, notify, until } = all
    await registerDevice(service, ada, 'tablet')
    const { body } = await notify({ type })
    clock.advance(500)
    await until(() => google.sends.length === 1, 0)
    const collapse_key = body.data[0].id
    expect(google.sends[0]?.message).toMatchObject({ android: { ttl, priority, collapse_key } })
  })

  test('is not pushed where push is switched off', async () => {
    await using all = await startPushing()
    const { service, ada, google, notify, settle } = all
    await registerDevice(service, ada, 'tablet')
    const off = { token: ada.token, body: { payment_captured: { push: false } } }
    await service.call('PUT', '/v1/notifications/preferences', off)
    await notify({})
    await settle()
    expect([google.sends, all.waiting()]).toEqual([[], 0])
  })

  test('is not pushed after it was read', async () => {
    await using all = await startPushing()
    const { service, ada, google, clock, notify, until, settle } = all
    await registerDevice(service, ada, 'tablet')
    google.respondFcm({ status: 503 })
    await notify({})
    await until(() => google.sends.length === 1)
    await service.call('PUT', '/v1/notifications/read-all', ada)
    await settle()
    clock.advance(60_000)
    await settle()
    expect([google.sends.length, all.waiting()]).toEqual([1, 0])
  })

  test('is retried after a failure, not before the time that the service gives', async () => {
    await using all = await startPushing()
    const { service, ada, google, clock, notify, until } = all
    await registerDevice(service, ada, 'tablet')
    google.respondFcm({ status: 503, headers: { 'retry-after': '120' } })
    await notify({})
    await until(() => google.sends.length === 1, 100)
    const failedAt = clock.now()
    await until(() => google.sends.length === 2, 2_000)
    expect(clock.now() - failedAt).toBeGreaterThanOrEqual(119_000)
    await until(() => all.waiting() === 0)
  })

  test('deletes a token that the service does not know, and no other', async () => {
    await using all = await startPushing()
    const { service, ada, google, push, notify, until, settle } = all
    await registerDevice(service, ada, 'phone', 'ios')
    const fcmError = (errorCode: string) => ({
      error: {
        status: 'NOT_FOUND',
        details: [{ '@type': 'type.googleapis.com/google.firebase.fcm.v1.FcmError', errorCode }],
      },
    })
    google.respondFcm({ status: 400, body: fcmError('INVALID_ARGUMENT') })
    await notify({})
    await until(() => google.sends.length === 1)
    await settle()
    expect(await devicesOf(service, ada)).toHaveLength(1)
    google.respondFcm({ status: 404, body: fcmError('UNREGISTERED') })
    await registerDevice(service, ada, JSON.stringify(await push.subscribe()), 'web')
    push.respond({ status: 410 })
    await notify({})
    await until(() => google.sends.length === 2 && push.pushed.length === 1)
    await settle()
    expect(await devicesOf(service, ada)).toEqual([])
  })

  test('that is too late for its type is not pushed', async () => {
    await using all = await startPushing()
    const { service, ada, google, clock, notify, settle } = all
    await registerDevice(service, ada, 'tablet')
    google.respondFcm({ status: 503, headers: { 'retry-after': '60' } })
    await notify({ type: 'call_incoming' })
    await settle()
    clock.advance(60_000)
    await settle()
    expect([google.sends.length, all.waiting()]).toEqual([1, 0])
  })

  test('for a hanging service blocks no other', async () => {
    await using mails = await startMailServer()
    await using all = await startPushing({ environment: { SMTP_URL: mails.url } })
    const { service, ada, google, push, notify, until } = all
    const devicesOf = async (token: string) => {
      for (let n = 0; n < 24; n++) {
        await registerDevice(service, { token }, JSON.stringify(await push.subscribe()), 'web')
      }
    }
    push.respond(...Array(60).fill('hang'))
    await devicesOf(ada.token)
    await registerDevice(service, ada, 'tablet')
    await notify({})
    await until(() => google.sends.length === 1 && push.pushed.length === 16)
    const bob = await service.register('bob')
    await devicesOf(bob.token)
    await notify({ user_id: bob.id })
    await notify({ type: 'broadcast' })
    const newcomer = await service.register('newcomer')
    await mails.next(newcomer.email) // which goes out at once
    await until(() => google.sends.length === 2)
    expect(push.pushed).toHaveLength(16)
  })

  test('of an incoming call does not wait behind a broadcast', async () => {
    await using all = await startPushing()
    const { service, ada, google, notify, until } = all
    await registerDevice(service, ada, 'tablet')
    google.respondFcm(...Array(16).fill('hang'))
    for (let n = 0; n < 40; n++) await notify({ type: 'broadcast' })
    await until(() => google.sends.length === 16)
    const { body } = await notify({ type: 'call_incoming' })
    await until(() => google.sends.length === 17)
    expect(google.sends[16]?.message).toMatchObject({
      data: { notification_id: body.data[0].id, type: 'call_incoming' },
    })
  })

  test('that a service refuses leaves nothing behind, neither do reserved words', async () => {
    await using all = await startPushing()
    const { service, ada, google, notify, until } = all
    await registerDevice(service, ada, 'tablet')
    google.respondFcm({ status: 400, body: {} })
    await notify({ data: { from: 'x', google_key: 'y', camelCase: 'z' } })
    await until(() => all.waiting() === 0)
    const { data } = (google.sends[0]?.message as { data: object } | undefined) ?? { data: {} }
    expect(Object.keys(data).sort()).toEqual(['camelCase', 'notification_id', 'type'])
    expect(service.log()).not.toContain('given up')
  })

  testAtLength('that hangs does not delay the shutdown', async () => {
    await using all = await startPushing()
    const { service, ada, google, notify, until } = all
    await registerDevice(service, ada, 'tablet')
    google.respondFcm('hang')
    await notify({})
    await until(() => google.sends.length === 1)
    await service.stop()
    // Otherwise the attempt would have timed out.
    using sqlite = new Database(join(service.directory, 'hostline.db'))
    expect(sqlite.query('SELECT last_error FROM outbox').values()).toEqual([
      [expect.stringContaining('aborted')],
    ])
  })
})

describe('a restart in the middle of pushing', () => {
  type Sent = { token: string; android: { notification: { tag: string } } }

  /** Pushes one notification to twenty devices, stops the server halfway and starts it again. */
  async function restartWith(signal: 'SIGKILL' | 'SIGTERM') {
    using directory = temporaryDirectory()
    await using google = startGoogle(systemClock)
    const environment = { FCM_SERVICE_ACCOUNT: google.keyFile, FCM_URL: google.url }
    const options = { dataDir: directory.path, environment }
    const first = await startServer(options)
    const { a: ada } = await meet(first.base)
    for (let n = 0; n < 20; n++) {
      const body = { token: `device-${n}`, platform: 'android' }
      await call(first.base, 'POST', tokens, { token: ada.token, body })
    }
    const command = 'service-key create --name payments --scope notifications'
    const made = await hostline(command.split(' '), directory.path)
    const token = /key: (\S+)/.exec(made.out)?.[1] ?? ''
    google.respondFcm({ status: 503 }, { status: 503 })
    if (signal === 'SIGKILL') google.respondFcm('hang', 'hang')
    const body = { user_id: ada.id, type: 'payment_captured' }
    await call(first.base, 'POST', '/v1/service/notifications', { token, body })
    await waitFor(() => google.sends.length >= 6)
    await first.kill(signal)
    await using _second = await startServer(options)
    const sent = () => google.sends.map(({ message }) => message as Sent)
    const devices = () => new Set(sent().map(({ token }) => token)).size
    await waitFor(() => devices() === 20)
    return { sent: sent() }
  }

  test.each(['SIGKILL', 'SIGTERM'] as const)(
    'by %s: every device gets the push, and none shows it twice',
    async (signal) => {
      const { sent } = await restartWith(signal)
      expect(new Set(sent.map(({ token }) => token)).size).toBe(20)
      // A repeated push replaces the first on the device.
      expect(new Set(sent.map(({ android }) => android.notification.tag)).size).toBe(1)
      // Only pushes in flight at the kill are sent twice; two failed and were retried.
      expect(sent.length).toBeLessThanOrEqual(signal === 'SIGKILL' ? 42 : 22)
    },
  )
})

describe('a chat message', () => {
  type Shown = { notification: { body: string } }

  const say = async (all: Awaited<ReturnType<typeof startPushing>>, text: string) => {
    const bob = await all.service.register('bob')
    const conversationId = await all.service.openConversation(bob, all.ada)
    await all.service.say(bob, conversationId, text)
    return conversationId
  }

  test('to a user without a socket is pushed, shortened, with its conversation as collapse key', async () => {
    await using all = await startPushing()
    const { service, ada, google, until } = all
    await registerDevice(service, ada, 'tablet')
    const conversation_id = await say(all, 'x'.repeat(500))
    await until(() => google.sends.length === 1)
    expect(google.sends[0]?.message).toMatchObject({
      token: 'tablet',
      notification: { title: 'bob', body: `${'x'.repeat(239)}…` },
      data: { conversation_id, type: 'chat_message' },
      android: { collapse_key: conversation_id, priority: 'HIGH' },
    })
  })

  test('followed by a newer one is not pushed, and never shown after it', async () => {
    await using all = await startPushing()
    const { service, ada, google, notify, until, settle } = all
    await registerDevice(service, ada, 'tablet')
    const bob = await service.register('bob')
    const conversationId = await service.openConversation(bob, ada)
    const answer = Promise.withResolvers<{ status: number }>()
    google.respondFcm(answer.promise)
    await service.say(bob, conversationId, 'one')
    await until(() => google.sends.length === 1)
    for (const text of ['two', 'three']) await service.say(bob, conversationId, text)
    // A message without a collapse key is not held back.
    await notify({ body: 'paid' })
    await until(() => google.sends.length > 1)
    answer.resolve({ status: 200 })
    await settle()
    const bodies = google.sends.map(({ message }) => (message as Shown).notification.body)
    expect(bodies).toEqual(['one', 'paid', 'three'])
  })

  test('is not pushed to a user who has read it meanwhile', async () => {
    await using all = await startPushing()
    const { service, ada, google, clock, until, settle } = all
    await registerDevice(service, ada, 'tablet')
    google.respondFcm({ status: 503 })
    const conversationId = await say(all, 'hello')
    await until(() => google.sends.length === 1)
    await service.call('PUT', `/v1/chat/conversations/${conversationId}/read`, ada)
    await settle()
    clock.advance(60_000)
    await settle()
    expect([google.sends.length, all.waiting()]).toEqual([1, 0])
  })

  test('shown by a socket is pushed when it is unread after 30 s, only the newest one', async () => {
    await using all = await startPushing({ listen: true })
    const { service, ada, google, clock, until, settle } = all
    await registerDevice(service, ada, 'tablet')
    const bob = await service.register('bob')
    const conversationId = await service.openConversation(bob, ada)
    const socket = await service.connect(ada)
    for (const text of ['one', 'two']) await service.say(bob, conversationId, text)
    clock.advance(29_000)
    await socket.settled()
    expect([google.sends, all.waiting()]).toEqual([[], 1])
    await service.say(bob, conversationId, 'three')
    clock.advance(1_500)
    await until(() => google.sends.length === 1)
    await service.say(bob, conversationId, 'four')
    clock.advance(31_000)
    await until(() => google.sends.length === 2)
    await settle()
    const bodies = google.sends.map(({ message }) => (message as Shown).notification.body)
    expect(bodies).toEqual(['three', 'four'])
    socket.close()
  })

  test('in a burst is pushed once; a message sent after others were read waits its own 30 s', async () => {
    await using all = await startPushing({ listen: true })
    const { service, ada, google, clock, until, settle } = all
    await registerDevice(service, ada, 'tablet')
    const bob = await service.register('bob')
    const conversation_id = await service.openConversation(bob, ada)
    const socket = await service.connect(ada)
    await Promise.all(
      Array.from({ length: 20 }, (_, n) => service.say(bob, conversation_id, `burst ${n}`)),
    )
    clock.advance(31_000)
    await until(() => google.sends.length > 0)
    await settle()
    expect(google.sends).toHaveLength(1)

    await service.say(bob, conversation_id, 'read')
    socket.send({ type: 'read', conversation_id })
    clock.advance(29_000)
    await service.say(bob, conversation_id, 'not read')
    clock.advance(2_000)
    await settle()
    expect([google.sends.length, all.waiting()]).toEqual([1, 1])
    clock.advance(29_000)
    await until(() => google.sends.length === 2)
    socket.close()
  })

  test('shown by a socket and read is not pushed', async () => {
    await using all = await startPushing({ listen: true })
    const { service, ada, google, clock, settle } = all
    await registerDevice(service, ada, 'tablet')
    const socket = await service.connect(ada)
    const conversation_id = await say(all, 'hello')
    await socket.next('new_message')
    socket.send({ type: 'read', conversation_id })
    await socket.settled()
    clock.advance(31_000)
    await settle()
    expect([google.sends, all.waiting()]).toEqual([[], 0])
  })

  test.each([
    ['muted the conversation', 'PUT', (conversation: string) => `${conversation}/mute`],
    ['blocked its sender', 'PUT', (_: string, bob: string) => `/v1/users/blocks/${bob}`],
  ])('is not pushed to a user who has %s since', async (_, method, path) => {
    await using all = await startPushing({ listen: true })
    const { service, ada, google, clock, settle } = all
    await registerDevice(service, ada, 'tablet')
    const bob = await service.register('bob')
    const conversationId = await service.openConversation(bob, ada)
    const socket = await service.connect(ada)
    await service.say(bob, conversationId, 'while a socket is open')
    const at = path(`/v1/chat/conversations/${conversationId}`, bob.id)
    expect((await service.call(method, at, { token: ada.token })).status).toBe(204)
    clock.advance(31_000)
    await settle()
    socket.close()
    await socket.closed
    await service.say(bob, conversationId, 'after it')
    await settle()
    expect([google.sends, all.waiting()]).toEqual([[], 0])
  })

  test('that was removed is not pushed: the one before it is', async () => {
    await using all = await startPushing({ listen: true })
    const { service, ada, google, clock, until } = all
    await registerDevice(service, ada, 'tablet')
    const bob = await service.register('bob')
    const conversationId = await service.openConversation(bob, ada)
    const socket = await service.connect(ada)
    await service.say(bob, conversationId, 'meant')
    const { body: slip } = await service.say(bob, conversationId, 'slip')
    const path = `/v1/chat/conversations/${conversationId}/messages/${slip.id}`
    await service.call('DELETE', path, { token: bob.token })
    clock.advance(31_000)
    await until(() => google.sends.length === 1)
    expect(google.sends[0]?.message).toMatchObject({ notification: { body: 'meant' } })
    socket.close()
  })

  test('that is removed before its push succeeds makes way for an earlier one, unless that was pushed', async () => {
    await using all = await startPushing({ listen: true })
    const { service, ada, google, clock, until, settle } = all
    await registerDevice(service, ada, 'tablet')
    const bob = await service.register('bob')
    const conversationId = await service.openConversation(bob, ada)
    const bodies = () => google.sends.map(({ message }) => (message as Shown).notification.body)
    const slip = async () => {
      const { body } = await service.say(bob, conversationId, 'slip')
      const path = `/v1/chat/conversations/${conversationId}/messages/${body.id}`
      return () => service.call('DELETE', path, { token: bob.token })
    }
    const socket = await service.connect(ada)
    await service.say(bob, conversationId, 'meant')
    const remove = await slip()
    google.respondFcm({ status: 503 })
    clock.advance(31_000)
    await until(() => google.sends.length === 1)
    await remove()
    await settle()
    clock.advance(60_000)
    await until(() => google.sends.length === 2)
    expect(bodies()).toEqual(['slip', 'meant'])
    socket.close()
    await until(() => !service.hub.isOnline(ada.id))
    const removeAgain = await slip()
    google.respondFcm({ status: 503 })
    await until(() => google.sends.length === 3)
    await removeAgain()
    await settle()
    clock.advance(60_000)
    await until(() => all.waiting() === 0)
    expect(bodies()).toEqual(['slip', 'meant', 'slip'])
  })

  test('has the unread messages and notifications of the user as its badge', async () => {
    await using all = await startPushing()
    const { service, ada, google, notify, until } = all
    const registration = { token: 'phone', platform: 'ios' }
    await service.call('POST', '/v1/notifications/push-tokens', {
      token: ada.token,
      body: registration,
    })
    const badges = () =>
      google.sends.map(
        ({ message }) => (message as { apns: { payload: { aps: object } } }).apns.payload.aps,
      )
    await notify({ body: 'paid' })
    await until(() => google.sends.length === 1)
    const conversationId = await say(all, 'one')
    await until(() => google.sends.length === 2)
    const cid = await service.register('cid')
    await service.say(cid, await service.openConversation(cid, ada), 'two')
    await until(() => google.sends.length === 3)
    expect(badges().map((aps) => (aps as { badge: number }).badge)).toEqual([1, 2, 3])
    await service.call('PUT', `/v1/chat/conversations/${conversationId}/read`, ada)
    await notify({ body: 'paid again' })
    await until(() => google.sends.length === 4)
    expect(badges().at(-1)).toMatchObject({ badge: 3 })
  })

  test('is not pushed to users who opted out', async () => {
    await using all = await startPushing()
    const { service, ada, google, settle } = all
    await registerDevice(service, ada, 'tablet')
    const path = '/v1/notifications/preferences'
    const body = { chat_message: { push: false } }
    const { body: changed } = await service.call('PUT', path, { token: ada.token, body })
    expect(changed.chat_message).toEqual({ push: false })
    await say(all, 'hello')
    await settle()
    expect(google.sends).toEqual([])
  })

  test('with an unnamed file is described in the language of its reader', async () => {
    await using all = await startPushing()
    const { service, ada, google, until } = all
    await registerDevice(service, ada, 'tablet')
    await service.call('PATCH', '/v1/users/me', { token: ada.token, body: { locale: 'de' } })
    const bob = await service.register('bob')
    const path = `/v1/chat/conversations/${await service.openConversation(bob, ada)}/messages`
    const body = { type: 'file', body: ' ', file_url: 'https://files.example.com/1' }
    await service.call('POST', path, { token: bob.token, body })
    await until(() => google.sends.length === 1)
    expect(google.sends[0]?.message).toMatchObject({ notification: { body: texts.de.push.file } })
  })
})

describe('the channels of a notification are independent', () => {
  const choose = (all: Awaited<ReturnType<typeof startPushing>>, broadcast: object) =>
    all.service.call('PUT', '/v1/notifications/preferences', {
      token: all.ada.token,
      body: { broadcast },
    })
  const shown = async ({ service, ada }: Awaited<ReturnType<typeof startPushing>>) => [
    (await service.call('GET', '/v1/notifications', ada)).body.pagination.total,
    (await service.call('GET', '/v1/notifications/unread-count', ada)).body.count,
  ]

  test('one that is hidden in the app is pushed, without a row and a frame, once for one key', async () => {
    await using all = await startPushing({ listen: true })
    const { service, ada, google, notify, until, settle } = all
    await registerDevice(service, ada, 'tablet')
    await choose(all, { in_app: false, push: true, email: false })
    const socket = await service.connect(ada, '&events=notification')
    const event = { type: 'broadcast', body: 'only pushed', dedupe_key: 'k' }
    expect((await notify(event)).body).toEqual({ data: [], duplicates: 0, muted: 0 })
    expect((await notify(event)).body).toEqual({ data: [], duplicates: 1, muted: 0 })
    await until(() => google.sends.length === 1)
    await service.call('PUT', '/v1/notifications/read-all', ada)
    await settle()
    await socket.settled()
    expect(google.sends).toHaveLength(1)
    expect([await shown(all), socket.frames]).toEqual([[0, 0], []])
  })

  test('one with mail only is mailed', async () => {
    await using mails = await startMailServer()
    await using all = await startPushing({ environment: { SMTP_URL: mails.url } })
    const { clock, notify, ada } = all
    await mails.next(ada.email) // the verification of her address
    await choose(all, { in_app: false, push: false, email: true })
    await notify({ type: 'broadcast', title: 'News', body: 'only mailed' })
    clock.advance(200_000)
    expect((await mails.next(ada.email)).text).toContain('only mailed')
    expect(await shown(all)).toEqual([0, 0])
  })

  test('one with all three off is dropped', async () => {
    await using all = await startPushing()
    await choose(all, { in_app: false, push: false, email: false })
    const { body } = await all.notify({ type: 'broadcast', body: 'nothing' })
    expect(body).toEqual({ data: [], duplicates: 0, muted: 1 })
    expect(all.service.sqlite.query('SELECT 1 FROM notifications').all()).toEqual([])
  })
})

describe('mail about replies of support', () => {
  async function startDesk(environment: Record<string, string> = {}) {
    const mails = await startMailServer()
    const all = await startPushing({ environment: { SMTP_URL: mails.url, ...environment } })
    const { service, ada } = all
    await mails.next(ada.email) // the verification of her address
    const admin = await service.registerAs('admin', 'root')
    const body = { subject: 'Help', body: 'It is broken.' }
    const ticket = await service.call('POST', '/v1/support/tickets', { token: ada.token, body })
    const path = `/v1/admin/support/tickets/${ticket.body.id}/messages`
    return {
      ...all,
      toAda: () => mails.mails.filter(({ to }) => to === ada.email),
      answer: (text: string) =>
        service.call('POST', path, { token: admin.token, body: { body: text } }),
      async [Symbol.asyncDispose]() {
        await all[Symbol.asyncDispose]()
        await mails[Symbol.asyncDispose]()
      },
    }
  }

  test('is sent after three minutes, once for several replies', async () => {
    await using desk = await startDesk()
    const { clock, toAda, answer, settle, until } = desk
    await answer('Try <b>again</b>.')
    clock.advance(100_000)
    await answer('Or wait.')
    await settle()
    expect(toAda()).toEqual([])
    clock.advance(80_000)
    await until(() => toAda().length === 1)
    clock.advance(600_000)
    await settle()
    expect(toAda()).toHaveLength(1)
    const [mail] = toAda()
    expect(mail?.raw).toContain('Subject: Support has answered: Help (2)')
    expect(mail?.text).toContain('Try <b>again</b>.')
    expect(mail?.text).toContain('&lt;b&gt;again')
    expect(mail?.text).toContain('Or wait.')
  })

  test('is one mail for simultaneous replies, whatever else is unread', async () => {
    await using desk = await startDesk()
    const { clock, toAda, notify, answer, settle, until } = desk
    for (let n = 0; n < 60; n++) await notify({ type: 'follow_new' })
    for (const text of ['One.', 'Two.', 'Three.']) await answer(text)
    clock.advance(200_000)
    await until(() => toAda().length > 0)
    await settle()
    expect(toAda().map(({ raw }) => /^Subject: (.*)$/m.exec(raw)?.[1]?.trim())).toEqual([
      'Support has answered: Help (3)',
    ])
  })

  test('is not sent to a disabled user', async () => {
    await using desk = await startDesk()
    const { service, ada, clock, toAda, answer, settle } = desk
    await answer('Hello?')
    service.sqlite.run('UPDATE users SET disabled_at = 1 WHERE id = ?', [ada.id])
    clock.advance(200_000)
    await settle()
    expect(toAda()).toEqual([])
  })

  test('is not sent to users who have read the reply or opted out', async () => {
    await using desk = await startDesk()
    const { service, ada, clock, toAda, answer, settle } = desk
    await answer('Read at once.')
    await service.call('PUT', '/v1/notifications/read-all', ada)
    const off = { token: ada.token, body: { support_reply: { email: false } } }
    await service.call('PUT', '/v1/notifications/preferences', off)
    await answer('Not wanted.')
    clock.advance(200_000)
    await settle()
    expect(toAda()).toEqual([])
  })
})
