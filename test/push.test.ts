import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { systemClock } from '../src/lib/clock.ts'
import { texts } from '../src/lib/i18n.ts'
import { quietFor } from '../src/lib/quiet-hours.ts'
import { createTestClock } from './support/clock.ts'
import { hostline } from './support/command.ts'
import { temporaryDirectory } from './support/directory.ts'
import { testAtLength } from './support/faults.ts'
import { startMailServer } from './support/mail.ts'
import { call, meet, startServer } from './support/process.ts'
import { startGoogle, startPushService } from './support/push-services.ts'
import { type Person, startService, type TestService } from './support/service.ts'
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
    const service = await anyService()
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
    const service = await anyService()
    const ada = await service.register()
    const again = () => registerDevice(service, ada, 'device-1')
    const answers = await Promise.all([again(), again(), again()])
    const later = await registerDevice(service, ada, 'device-1', 'web')
    expect(new Set([...answers, later].map(({ body }) => body.id)).size).toBe(1)
    expect(await devicesOf(service, ada)).toEqual([later.body])
    expect(later.body.platform).toBe('web')
  })

  test('move with a new id to another user who registers them', async () => {
    const service = await anyService()
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
    const service = await anyService()
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

  test('end 180 days after the login, as its session does', async () => {
    const service = await anyService()
    const ada = await service.register()
    await registerDevice(service, ada, 'device-1')
    const age = (milliseconds: number) =>
      service.sqlite.run('UPDATE sessions SET created_at = created_at - ? WHERE user_id = ?', [
        milliseconds,
        ada.id,
      ])
    age(180 * 86_400_000 - 60_000)
    expect(await devicesOf(service, ada)).toHaveLength(1)
    age(60_000)
    expect(await devicesOf(service, ada)).toEqual([])
  })

  test('end with the session that registered them, and take no room on a page', async () => {
    const service = await anyService()
    const phone = await service.register()
    const laptop = await service.login(phone.email)
    const kept = await registerDevice(service, laptop, 'laptop')
    await registerDevice(service, phone, 'phone')
    const body = { refresh_token: phone.refreshToken }
    await service.call('POST', '/v1/auth/logout', { token: phone.token, body })
    const page = await service.call('GET', `${tokens}?per_page=1`, laptop)
    expect([page.body.data, page.body.pagination.total]).toEqual([[kept.body], 1])
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
    const service = await anyService()
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
    const service = await anyService()
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
  return {
    ...pushesTo(await service.register('ada'), { clock, google, push, service, key }),
    async [Symbol.asyncDispose]() {
      await push[Symbol.asyncDispose]()
      await google[Symbol.asyncDispose]()
      await service[Symbol.asyncDispose]()
    },
  }
}

type Fakes = {
  clock: ReturnType<typeof createTestClock>
  google: ReturnType<typeof startGoogle>
  push: ReturnType<typeof startPushService>
  service: TestService
  key: string
}
type Pushing = ReturnType<typeof pushesTo>

function pushesTo(ada: Person, { clock, google, push, service, key }: Fakes) {
  return {
    clock,
    google,
    push,
    service,
    ada,
    key,
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
  }
}

const anyPushing = shared(() => startPushing())
const anyListening = shared(() => startPushing({ listen: true }))

/** A service of several tests with another Ada. Nothing is waiting, and what was pushed before is forgotten. */
async function newAda(of: () => Promise<Pushing> = anyPushing) {
  const all = await of()
  await all.settle()
  expect(all.waiting()).toBe(0)
  for (const list of [all.google.sends, all.google.grants, all.push.pushed]) list.length = 0
  return pushesTo(await all.service.register(), all)
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
    const all = await newAda()
    const { service, ada, google, clock, notify, until } = all
    await registerDevice(service, ada, 'tablet')
    const { body } = await notify({ type })
    clock.advance(500)
    await until(() => google.sends.length === 1, 0)
    const collapse_key = body.data[0].id
    expect(google.sends[0]?.message).toMatchObject({ android: { ttl, priority, collapse_key } })
  })

  test('carries the page that it leads to: its ticket, its own, or the one that the platform names', async () => {
    await using all = await startPushing()
    const { service, ada, google, notify, until } = all
    await registerDevice(service, ada, 'phone')
    const { token } = await service.registerAs('admin')
    const set = (links: object) =>
      service.call('PATCH', '/v1/admin/settings', { token, body: { links } })
    const home = 'rooms://home'
    await set({ home })
    await notify({})
    await until(() => google.sends.length === 1)
    await set({ home, ticket: 'rooms://help/{id}', notification: 'rooms://news/{id}' })
    const { body } = await notify({})
    await notify({ type: 'support_reply', data: { ticket_id: ada.id } })
    await notify({ data: { link: 'rooms://offer' } })
    const hidden = { token: ada.token, body: { broadcast: { in_app: false } } }
    await service.call('PUT', '/v1/notifications/preferences', hidden)
    await notify({ type: 'broadcast' })
    await until(() => google.sends.length === 5)
    const sent = google.sends.map(
      ({ message }) => (message as { data: { link: string } }).data.link,
    )
    expect(sent.sort()).toEqual([
      `rooms://help/${ada.id}`,
      home,
      home,
      `rooms://news/${body.data[0].id}`,
      'rooms://offer',
    ])
  })

  test('is not pushed where push is switched off', async () => {
    const all = await newAda()
    const { service, ada, google, notify, settle } = all
    await registerDevice(service, ada, 'tablet')
    const off = { token: ada.token, body: { payment_captured: { push: false } } }
    await service.call('PUT', '/v1/notifications/preferences', off)
    await notify({})
    await settle()
    expect([google.sends, all.waiting()]).toEqual([[], 0])
  })

  test('is not pushed after it was read', async () => {
    const all = await newAda()
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
    const all = await newAda()
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

  test('is in the list of deliveries with its outcome, and a wrong configuration is a warning', async () => {
    await using all = await startPushing()
    const { service, ada, google, clock, notify, until, settle } = all
    const { email } = await service.registerAs('admin')
    await registerDevice(service, ada, 'phone', 'ios')
    await service.sqlite.run('DELETE FROM deliveries')
    const mismatch = {
      error: {
        details: [
          {
            '@type': 'type.googleapis.com/google.firebase.fcm.v1.FcmError',
            errorCode: 'SENDER_ID_MISMATCH',
          },
        ],
      },
    }
    google.respondFcm({ status: 503 }, { status: 200 }, { status: 403, body: mismatch })
    await notify({})
    await until(() => google.sends.length === 2, 1_000)
    await notify({ type: 'payout_failed' })
    await settle()
    google.respondGrant({ status: 400, body: { error_description: 'Invalid JWT Signature.' } })
    clock.advance(3_700_000)
    await notify({ type: 'call_missed' })
    await until(() => service.log().includes('Invalid JWT Signature.'))
    const admin = await service.login(email)
    const path = `/v1/admin/users/${ada.id}/deliveries`
    const get = async () => {
      const { body } = await service.call('GET', path, { token: admin.token })
      return body.data.filter(({ channel }: { channel: string }) => channel === 'push')
    }
    const short = ({ kind, state, attempts, answer }: Record<string, unknown>) =>
      [kind, state, attempts, answer] as const
    await waitFor(async () => (await get()).length === 3)
    const entry = (text: string) =>
      expect.stringMatching(new RegExp(`^FCM_SERVICE_ACCOUNT: .*${text}`))
    expect((await get()).map(short)).toEqual([
      ['call_missed', 'waiting', 1, entry('Invalid JWT Signature')],
      ['payout_failed', 'failed', 1, entry('SENDER_ID_MISMATCH')],
      ['payment_captured', 'sent', 2, null],
    ])
    const warned = service.logged.filter((line) =>
      line.includes('"warn","message":"pushes to apps'),
    )
    expect(warned).toHaveLength(2)
    const { body } = await service.call('GET', '/v1/admin/system', { token: admin.token })
    expect(body.warnings).toContainEqual({
      code: 'push_failing',
      message: expect.stringContaining('Pushes fail: FCM_SERVICE_ACCOUNT: '),
    })
    const { out } = await hostline(['check'], service.directory)
    expect(out).toMatch(/warn {3}delivery by push: .*FCM_SERVICE_ACCOUNT: /)
  })

  test('that is no longer needed, or has no service set up, is listed as skipped', async () => {
    await using all = await startPushing({ environment: { FCM_SERVICE_ACCOUNT: '' } })
    const { service, ada, push, notify, clock, until, settle } = all
    await registerDevice(service, ada, 'phone', 'ios')
    await notify({})
    await settle()
    await registerDevice(service, ada, JSON.stringify(await push.subscribe()), 'web')
    push.respond({ status: 503 })
    const { body } = await notify({ type: 'payout_failed' })
    const states = () =>
      service.sqlite
        .query("SELECT kind, state, answer FROM deliveries WHERE channel = 'push' ORDER BY id")
        .values()
    await until(() => states().some(([, state]) => state === 'waiting'))
    const read = `/v1/notifications/${body.data[0].id}/read`
    await service.call('PUT', read, { token: ada.token })
    clock.advance(60_000)
    await settle()
    expect(states()).toEqual([
      ['payment_captured', 'skipped', 'FCM_SERVICE_ACCOUNT is not set'],
      ['payout_failed', 'skipped', 'FCM_SERVICE_ACCOUNT is not set'],
      ['payout_failed', 'skipped', expect.stringContaining('503')],
    ])
  })

  test('that is too late for its type is not pushed', async () => {
    const all = await newAda()
    const { service, ada, google, clock, notify, settle } = all
    await registerDevice(service, ada, 'tablet')
    google.respondFcm({ status: 503, headers: { 'retry-after': '60' } })
    await notify({ type: 'call_incoming' })
    await settle()
    clock.advance(60_000)
    await settle()
    expect([google.sends.length, all.waiting()]).toEqual([1, 0])
  })

  test.each(['active', 'missed', 'ended'])(
    'of a call that is %s by then is not pushed',
    async (state) => {
      const all = await newAda()
      const { service, ada, google, clock, settle } = all
      await registerDevice(service, ada, 'tablet')
      const guest = await service.register()
      const report = (state: string) =>
        service.call('PUT', `/v1/service/calls/${guest.id}`, {
          token: all.key,
          body: { host_id: ada.id, guest_id: guest.id, state },
        })
      google.respondFcm({ status: 503, headers: { 'retry-after': '10' } })
      await report('ringing')
      await settle()
      await report(state)
      clock.advance(10_000)
      await settle()
      const types = google.sends.map(
        ({ message }) => (message as { data: { type: string } }).data.type,
      )
      expect(types).toEqual(['call_incoming', ...(state === 'missed' ? ['call_missed'] : [])])
      expect(all.waiting()).toBe(0)
    },
  )

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
    const reserved = { from: 'x', message_type: 'x', google_key: 'x', gcm: 'x', type: 'x' }
    await notify({ data: { ...reserved, camelCase: 'z' } })
    await until(() => all.waiting() === 0)
    const { data } = (google.sends[0]?.message as { data: object } | undefined) ?? { data: {} }
    expect(data).toEqual({
      camelCase: 'z',
      notification_id: expect.any(String),
      type: 'payment_captured',
    })
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

describe('quiet hours', () => {
  const path = '/v1/users/me/quiet-hours'
  /** Noon in UTC of a day to come: the clock of the tests must not run back behind the tokens. */
  const nextNoon = () => new Date().setUTCHours(36, 0, 0, 0)

  async function startQuiet(all: Pushing) {
    await registerDevice(all.service, all.ada, 'phone')
    await beQuiet(all)
    return all
  }
  /** Sets quiet hours from an hour ago until in an hour. */
  async function beQuiet({ service, ada, clock }: Pushing) {
    const time = (later: number) => new Date(clock.now() + later).toISOString().slice(11, 16)
    const body = { from: time(-3_600_000), to: time(3_600_000), time_zone: 'UTC' }
    const { token } = await service.login(ada.email)
    const answer = await service.call('PUT', path, { token, body })
    expect([answer.status, answer.body.quiet_hours]).toEqual([200, body])
  }
  const end = async ({ clock, settle }: Pushing) => {
    clock.advance(3_600_000)
    await settle()
    await settle()
  }
  const titles = ({ google }: Pushing) =>
    google.sends.map(({ message }) => (message as { data: { type: string } }).data.type)

  test('hold one push back until they end, and then it comes as it would have', async () => {
    const all = await startQuiet(await newAda())
    await all.notify({ data: { amount: '12.50', currency: 'EUR' } })
    await all.settle()
    expect(titles(all)).toEqual([])
    await end(all)
    const [{ message } = { message: {} }] = all.google.sends
    expect(message).toMatchObject({ notification: { body: 'You received 12.50 EUR.' } })
    expect([titles(all), all.waiting()]).toEqual([['payment_captured'], 0])
  })

  test('make one push of several', async () => {
    const all = await startQuiet(await newAda())
    const bob = await all.service.register()
    const talk = await all.service.openConversation(bob, all.ada)
    await all.notify({})
    for (const text of ['one', 'two']) await all.service.say(bob, talk, text)
    await all.settle()
    await end(all)
    expect(all.google.sends.map(({ message }) => message)).toMatchObject([
      {
        notification: { title: 'localhost', body: 'Unread messages and notifications: 3' },
        data: { type: 'summary' },
      },
    ])
    expect(all.waiting()).toBe(0)
  })

  test.each([
    [{ links: { home: 'rooms://home' }, app_url: 'https://app.example.com/' }, 'rooms://home'],
    [{ app_url: 'https://app.example.com/' }, 'https://app.example.com/'],
  ])('make one push of several that leads, with %j, to %s', async (settings, link) => {
    await using all = await startPushing()
    await startQuiet(all)
    const { token } = await all.service.registerAs('admin')
    await all.service.call('PATCH', '/v1/admin/settings', { token, body: settings })
    for (let n = 0; n < 2; n++) await all.notify({})
    await all.settle()
    await end(all)
    expect(all.google.sends.map(({ message }) => message)).toMatchObject([
      { data: { type: 'summary', link } },
    ])
  })

  test('push nothing that was read before they end', async () => {
    const all = await startQuiet(await newAda())
    const { service, ada } = all
    const bob = await service.register()
    const talk = await service.openConversation(bob, ada)
    await all.notify({})
    await service.say(bob, talk, 'one')
    await all.settle()
    expect(all.waiting()).toBe(1)
    const read = await service.call('PUT', '/v1/notifications/read-all', ada)
    const alsoRead = await service.call('PUT', `/v1/chat/conversations/${talk}/read`, ada)
    await end(all)
    expect([read.status, alsoRead.status, titles(all), all.waiting()]).toEqual([204, 204, [], 0])
  })

  test('push the only one of several that is still unread, whatever else is', async () => {
    const all = await startQuiet(await newAda())
    const { service, ada } = all
    const [bob, eve] = [await service.register(), await service.register()]
    const talks = [
      await service.openConversation(bob, ada),
      await service.openConversation(eve, ada),
    ] as const
    await service.say(bob, talks[0], 'read')
    await service.say(eve, talks[1], 'unread')
    await all.settle()
    await service.call('PUT', `/v1/chat/conversations/${talks[0]}/read`, ada)
    await end(all)
    expect(all.google.sends.map(({ message }) => message)).toMatchObject([
      { notification: { body: 'unread' }, data: { conversation_id: talks[1] } },
    ])
  })

  test('push nothing when all of several were read, whatever else is unread', async () => {
    const all = await startQuiet(await newAda())
    const { service, ada } = all
    await all.notify({ type: 'call_missed' })
    for (const person of [await service.register(), await service.register()]) {
      const talk = await service.openConversation(person, ada)
      await service.say(person, talk, 'hello')
      await all.settle()
      await service.call('PUT', `/v1/chat/conversations/${talk}/read`, ada)
    }
    await end(all)
    expect([titles(all), all.waiting()]).toEqual([['call_missed'], 0])
  })

  test('make one push of several that are hidden in the app', async () => {
    const all = await startQuiet(await newAda())
    const change = { payment_captured: { in_app: false } }
    const { token } = all.ada
    await all.service.call('PUT', '/v1/notifications/preferences', { token, body: change })
    for (const title of ['First', 'Second']) await all.notify({ title })
    await all.settle()
    await end(all)
    expect(all.google.sends.map(({ message }) => message)).toMatchObject([
      { notification: { body: 'Unread messages and notifications: 2' } },
    ])
  })

  test('push nothing of a type that was switched off meanwhile', async () => {
    const all = await startQuiet(await newAda())
    const bob = await all.service.register()
    const talk = await all.service.openConversation(bob, all.ada)
    await all.notify({})
    await all.service.say(bob, talk, 'hello')
    await all.settle()
    const body = { chat_message: { push: false }, payment_captured: { push: false } }
    const { token } = all.ada
    await all.service.call('PUT', '/v1/notifications/preferences', { token, body })
    await end(all)
    expect(titles(all)).toEqual([])
  })

  test('make mails wait, and one of several', async () => {
    await using mail = await startMailServer()
    await using all = await startPushing({ environment: { SMTP_URL: mail.url } })
    const { service, ada, clock } = all
    const time = (later: number) => new Date(clock.now() + later).toISOString().slice(11, 16)
    const body = { from: time(-3_600_000), to: time(3_600_000), time_zone: 'UTC' }
    await service.call('PUT', path, { token: ada.token, body })
    const change = { payment_captured: { email: true }, call_missed: { email: true } }
    await service.call('PUT', '/v1/notifications/preferences', { token: ada.token, body: change })
    for (const title of ['First', 'Second']) await all.notify({ title })
    clock.advance(200_000)
    await all.settle()
    await all.notify({ title: 'A call', type: 'call_missed' })
    clock.advance(200_000)
    await all.settle()
    const subjects = () =>
      mail.mails.flatMap(({ raw, to }) =>
        to === ada.email ? /^Subject: (.*)$/m.exec(raw)?.[1] : [],
      )
    const news = () => subjects().filter((subject) => !subject?.includes('address'))
    expect(news()).toEqual(['A call'])
    await end(all)
    expect(news()).toEqual(['A call', 'First (2)'])
  })

  test('hold several messages of one conversation back as one, with the newest', async () => {
    const all = await startQuiet(await newAda())
    const bob = await all.service.register()
    const talk = await all.service.openConversation(bob, all.ada)
    for (const text of ['one', 'two']) {
      await all.service.say(bob, talk, text)
      await all.settle()
    }
    await end(all)
    expect(all.google.sends.map(({ message }) => message)).toMatchObject([
      { notification: { body: 'two' }, data: { type: 'chat_message', conversation_id: talk } },
    ])
  })

  test('make one push of several although the push service fails at first', async () => {
    const all = await startQuiet(await newAda())
    for (let n = 0; n < 2; n++) await all.notify({})
    await all.settle()
    all.google.respondFcm({ status: 503 })
    await end(all)
    all.clock.advance(60_000)
    await all.settle()
    expect([titles(all), all.waiting()]).toEqual([['summary', 'summary'], 0])
  })

  test('hold what comes while the push of several is on its way, when they begin again', async () => {
    await using all = await startPushing()
    await startQuiet(all)
    for (let n = 0; n < 2; n++) await all.notify({})
    await all.settle()
    const { promise, resolve } = Promise.withResolvers<{ status: number; body: object }>()
    all.google.respondFcm(promise)
    all.clock.advance(3_600_000)
    await all.until(() => all.google.sends.length === 1)
    await beQuiet(all)
    await all.notify({ title: 'Late' })
    const held = all.service.sqlite.query<{ n: number }, []>(
      'SELECT json_array_length(held_push) AS n FROM push_tokens',
    )
    await all.until(() => held.get()?.n === 3)
    resolve({ status: 200, body: { name: 'm' } })
    await all.settle()
    expect(titles(all)).toEqual(['summary'])
    await end(all)
    expect([titles(all), all.waiting()]).toEqual([['summary', 'payment_captured'], 0])
  })

  test('push after a night, although an admin has discarded the push of the one before', async () => {
    await using all = await startPushing()
    await startQuiet(all)
    const { service, clock } = all
    await all.notify({})
    await all.settle()
    const { token } = await service.registerAs('admin')
    const { body } = await service.call('GET', '/v1/admin/jobs', { token })
    const [{ id }] = body.data.filter(({ kind }: { kind: string }) => kind === 'held_push')
    expect((await service.call('DELETE', `/v1/admin/jobs/${id}`, { token })).status).toBe(204)
    await end(all)
    expect(titles(all)).toEqual([])
    clock.advance(23 * 3_600_000)
    await all.notify({})
    await all.settle()
    await end(all)
    expect([titles(all), all.waiting()]).toEqual([['summary'], 0])
  })

  test('push after a night, although the device was logged out at the end of the one before', async () => {
    const all = await startQuiet(await newAda())
    const { service, ada, clock } = all
    await all.notify({})
    await all.settle()
    const { token, refreshToken } = ada
    await service.call('POST', '/v1/auth/logout', {
      token,
      body: { refresh_token: refreshToken },
    })
    await end(all)
    expect([titles(all), all.waiting()]).toEqual([[], 0])
    const again = await service.login(ada.email)
    await registerDevice(service, again, 'phone')
    clock.advance(22 * 3_600_000)
    await all.notify({})
    await all.settle()
    await end(all)
    await end(all)
    expect(titles(all)).toEqual(['payment_captured'])
  })

  test('push and mail nothing about a person who was blocked meanwhile', async () => {
    await using mail = await startMailServer()
    await using all = await startPushing({ environment: { SMTP_URL: mail.url } })
    const { service, key, clock } = all
    const [host, guest] = [await service.registerAs('host'), await service.register('guest')]
    await registerDevice(service, host, 'phone')
    const body = { follow_new: { email: true } }
    await service.call('PUT', '/v1/notifications/preferences', { token: host.token, body })
    all.google.respondFcm({ status: 503 })
    await service.call('PUT', `/v1/service/follows/${host.id}/${guest.id}`, { token: key })
    await all.until(() => all.google.sends.length === 1)
    // Otherwise its next attempt would count from the later time.
    await waitFor(() => countJobs(service, 'attempts = 1') === 1, 'the failure to be stored')
    await service.call('PUT', `/v1/users/blocks/${guest.id}`, { token: host.token })
    clock.advance(200_000)
    await all.settle()
    const left = countJobs(service, "kind IN ('notification_push', 'notification_mail')")
    const about = mail.mails.filter(({ text }) => text.includes('follows'))
    expect([all.google.sends.length, about, left]).toEqual([1, [], 0])
  })

  test('do not hold calls back', async () => {
    const all = await startQuiet(await newAda())
    for (const type of ['call_incoming', 'call_missed']) await all.notify({ type })
    await all.settle()
    expect(titles(all).sort()).toEqual(['call_incoming', 'call_missed'])
  })

  test('give what they hold to the new token of a device', async () => {
    const all = await startQuiet(await newAda())
    await all.notify({})
    await all.settle()
    await registerDevice(all.service, all.ada, 'phone, restored')
    await all.settle()
    expect(titles(all)).toEqual([])
    await end(all)
    expect(all.google.sends.map(({ message }) => message)).toMatchObject([
      { token: 'phone, restored', data: { type: 'payment_captured' } },
    ])
    expect(all.waiting()).toBe(0)
  })

  test('survive a restart and hold on while they are prolonged', async () => {
    await using directory = temporaryDirectory()
    const clock = createTestClock(nextNoon())
    const google = startGoogle(clock)
    const options = {
      clock,
      dataDir: directory.path,
      environment: { FCM_SERVICE_ACCOUNT: google.keyFile, FCM_URL: google.url },
    }
    const run = (service: TestService, ms: number) => {
      clock.advance(ms)
      return waitFor(() => {
        clock.advance(500)
        return countJobs(service, `run_at <= ${clock.now()}`) === 0
      }, 'jobs that are due')
    }
    const hours = { from: '11:00', to: '13:00', time_zone: 'UTC' }
    {
      await using service = await startService(options)
      const { a, b, conversationId } = await service.pair()
      await registerDevice(service, b, 'phone')
      await service.call('PUT', path, { token: b.token, body: hours })
      await service.say(a, conversationId, 'one')
      await run(service, 0)
      await service.call('PUT', path, { token: b.token, body: { ...hours, to: '13:10' } })
    }
    await using service = await startService(options)
    await run(service, 3_600_000)
    expect(google.sends).toEqual([])
    await run(service, 600_000)
    await run(service, 0)
    expect(google.sends).toHaveLength(1)
    await google[Symbol.asyncDispose]()
  })

  test.each([
    [{ to: '22:00' }, { to: 'must differ from the beginning' }],
    [{ from: '24:00' }, { from: 'must be a time of day such as 22:00' }],
    [{ to: '7:30' }, { to: 'must be a time of day such as 22:00' }],
    ...['+01:00', 'Mars/Olympus', '', 'x'.repeat(1_000)].map(
      (time_zone) =>
        [{ time_zone }, { time_zone: 'must be an IANA time zone such as Europe/Berlin' }] as const,
    ),
  ])('are refused with %j', async (wrong, details) => {
    const service = await anyService()
    const { token } = await service.register()
    const body = { from: '22:00', to: '07:30', time_zone: 'Europe/Berlin', ...wrong }
    const answer = await service.call('PUT', path, { token, body })
    expect([answer.status, answer.body.error.details]).toEqual([400, details])
  })

  test('are shown in the own profile and the export, cleared, and gone with the account', async () => {
    const service = await anyService()
    const { token, id } = await service.register()
    const body = { from: '22:00', to: '07:30', time_zone: 'Europe/Berlin' }
    await service.call('PUT', path, { token, body })
    const exported = await service.call('GET', '/v1/users/me/export', { token })
    expect(JSON.stringify(exported.body)).toContain(JSON.stringify(body))
    const cleared = await service.call('DELETE', path, { token })
    const { body: profile } = await service.call('GET', '/v1/users/me', { token })
    expect([cleared.status, profile.quiet_hours]).toEqual([204, null])
    await service.call('PUT', path, { token, body })
    await service.call('DELETE', '/v1/users/me', { token, body: { password: 'correct horse' } })
    const row = service.sqlite.query('SELECT quiet_hours FROM users WHERE id = ?').get(id)
    expect(row).toEqual({ quiet_hours: null })
  })

  test.each([
    ['2026-01-15T22:30:00Z', { from: '23:00', to: '07:00', time_zone: 'Europe/Berlin' }, 7.5],
    ['2026-01-15T21:59:59Z', { from: '23:00', to: '07:00', time_zone: 'Europe/Berlin' }, 0],
    ['2026-01-16T06:00:00Z', { from: '23:00', to: '07:00', time_zone: 'Europe/Berlin' }, 0],
    ['2026-01-16T05:59:30Z', { from: '23:00', to: '07:00', time_zone: 'Europe/Berlin' }, 1 / 120],
    ['2026-03-28T22:00:00Z', { from: '23:00', to: '07:00', time_zone: 'Europe/Berlin' }, 7],
    ['2026-10-24T21:00:00Z', { from: '23:00', to: '07:00', time_zone: 'Europe/Berlin' }, 9],
    ['2026-06-01T12:00:00Z', { from: '09:00', to: '17:00', time_zone: 'UTC' }, 5],
    ['2026-06-01T12:00:00Z', { from: '17:00', to: '09:00', time_zone: 'UTC' }, 0],
    ['2026-06-01T00:10:00Z', { from: '05:30', to: '06:00', time_zone: 'Asia/Kathmandu' }, 1 / 12],
  ])('at %s with %j last %d more hours', (at, hours, left) => {
    expect(quietFor(hours, Date.parse(at)) / 3_600_000).toBeCloseTo(left, 6)
  })

  // Each skips or repeats an hour in the two days: at night, at midnight, or half an hour of it.
  test.each([
    ['Europe/Berlin', '2027-03-27'],
    ['Europe/Berlin', '2027-10-30'],
    ['America/New_York', '2027-03-13'],
    ['America/New_York', '2027-11-06'],
    ['Africa/Cairo', '2027-04-29'],
    ['Australia/Lord_Howe', '2027-10-02'],
  ])('in %s around %s end with the first minute that is not quiet', (time_zone, day) => {
    const format = new Intl.DateTimeFormat('en-GB', {
      timeZone: time_zone,
      hour: '2-digit',
      minute: '2-digit',
    })
    const start = Date.parse(`${day}T00:00Z`)
    const clocks = Array.from({ length: 3 * 1_440 }, (_, n) => format.format(start + n * 60_000))
    for (const [from, to] of [
      ['22:00', '07:00'],
      ['22:00', '02:00'],
      ['22:30', '02:30'],
      ['23:00', '00:00'],
      ['20:00', '00:30'],
      ['01:30', '02:15'],
      ['09:00', '17:00'],
      ['09:30', '09:00'],
    ] as const) {
      const isQuiet = (clock = '') =>
        from < to ? clock >= from && clock < to : clock >= from || clock < to
      const left: [clock: string | undefined, minutes: number][] = []
      const expected: typeof left = []
      for (let n = 0; n < 2 * 1_440; n += 7) {
        left.push([clocks[n], quietFor({ from, to, time_zone }, start + n * 60_000) / 60_000])
        let end = n
        while (isQuiet(clocks[end])) end++
        expected.push([clocks[n], end - n])
      }
      expect([from, to, left]).toEqual([from, to, expected])
    }
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

  testAtLength.each(['SIGKILL', 'SIGTERM'] as const)(
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

  const say = async (all: Pushing, text: string) => {
    const bob = await all.service.register('bob', `bob-of-${all.ada.id}`)
    const conversationId = await all.service.openConversation(bob, all.ada)
    await all.service.say(bob, conversationId, text)
    return conversationId
  }

  test.each(['x', '👍'])(
    'of many %s to a user without a socket is pushed, shortened, with its conversation as collapse key',
    async (letter) => {
      const all = await newAda()
      const { service, ada, google, until } = all
      await registerDevice(service, ada, 'tablet')
      const conversation_id = await say(all, letter.repeat(500))
      await until(() => google.sends.length === 1)
      expect(google.sends[0]?.message).toMatchObject({
        token: 'tablet',
        notification: { title: 'bob', body: `${letter.repeat(239)}…` },
        data: {
          conversation_id,
          message_id: expect.any(String),
          sender_id: expect.any(String),
          type: 'chat_message',
        },
        android: {
          collapse_key: conversation_id,
          priority: 'HIGH',
          notification: { channel_id: 'chat_message' },
        },
      })
    },
  )

  test.each([
    ['sender', 'bob', true],
    ['none', 'localhost', false],
  ])('says with push_content %s only “%s”, and where to read it', async (level, title, isNamed) => {
    await using all = await startPushing()
    const { service, ada, google, until } = all
    await registerDevice(service, ada, 'tablet')
    const { token } = await service.registerAs('admin')
    const links = { conversation: 'rooms://chat/{id}' }
    const body = { push_content: level, links }
    await service.call('PATCH', '/v1/admin/settings', { token, body })
    const id = await say(all, 'a secret')
    await until(() => google.sends.length === 1)
    const { message } = google.sends[0] ?? {}
    expect(message).toMatchObject({
      notification: { title, body: 'New message.' },
      data: { conversation_id: id, link: `rooms://chat/${id}` },
    })
    const text = JSON.stringify(message)
    expect(text).not.toContain('a secret')
    expect(text.includes('sender_id')).toBe(isNamed)
  })

  test('followed by a newer one is not pushed, and never shown after it', async () => {
    const all = await newAda()
    const { service, ada, google, notify, until, settle } = all
    await registerDevice(service, ada, 'tablet')
    const bob = await service.register()
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
    const all = await newAda()
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
    const all = await newAda(anyListening)
    const { service, ada, google, clock, until, settle } = all
    await registerDevice(service, ada, 'tablet')
    const bob = await service.register()
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

  test('shown by a socket is pushed after 30 s also when the clock was set back', async () => {
    await using all = await startPushing({ listen: true })
    const { service, ada, google, clock, until } = all
    await registerDevice(service, ada, 'tablet')
    const bob = await service.register()
    const conversationId = await service.openConversation(bob, ada)
    const socket = await service.connect(ada)
    clock.advance(600_000)
    await service.say(bob, conversationId, 'ahead')
    clock.setBack(600_000)
    await service.say(bob, conversationId, 'now')
    clock.advance(31_000)
    await until(() => google.sends.length === 1)
    expect(google.sends).toMatchObject([{ message: { notification: { body: 'now' } } }])
    socket.close()
  })

  test('in a burst is pushed once; a message sent after others were read waits its own 30 s', async () => {
    const all = await newAda(anyListening)
    const { service, ada, google, clock, until, settle } = all
    await registerDevice(service, ada, 'tablet')
    const bob = await service.register()
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
    const all = await newAda(anyListening)
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
    const all = await newAda(anyListening)
    const { service, ada, google, clock, settle } = all
    await registerDevice(service, ada, 'tablet')
    const bob = await service.register()
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

  test('is not pushed while its conversation is archived', async () => {
    const all = await newAda(anyListening)
    const { service, ada, google, clock, settle, until } = all
    await registerDevice(service, ada, 'tablet')
    const bob = await service.register()
    const conversationId = await service.openConversation(bob, ada)
    const socket = await service.connect(ada)
    await service.say(bob, conversationId, 'while a socket is open')
    const at = `/v1/chat/conversations/${conversationId}/archive`
    expect((await service.call('PUT', at, { token: ada.token })).status).toBe(204)
    clock.advance(31_000)
    await settle()
    expect([google.sends, all.waiting()]).toEqual([[], 0])
    socket.close()
    await socket.closed
    await service.say(bob, conversationId, 'after it')
    await until(() => google.sends.length === 1)
    expect(google.sends[0]?.message).toMatchObject({ notification: { body: 'after it' } })
  })

  test('that was removed is not pushed: the one before it is', async () => {
    const all = await newAda(anyListening)
    const { service, ada, google, clock, until } = all
    await registerDevice(service, ada, 'tablet')
    const bob = await service.register()
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
    const all = await newAda(anyListening)
    const { service, ada, google, clock, until, settle } = all
    await registerDevice(service, ada, 'tablet')
    const bob = await service.register()
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
    const all = await newAda()
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
    const cid = await service.register()
    await service.say(cid, await service.openConversation(cid, ada), 'two')
    await until(() => google.sends.length === 3)
    expect(badges().map((aps) => (aps as { badge: number }).badge)).toEqual([1, 2, 3])
    await service.call('PUT', `/v1/chat/conversations/${conversationId}/read`, ada)
    await notify({ body: 'paid again' })
    await until(() => google.sends.length === 4)
    expect(badges().at(-1)).toMatchObject({ badge: 3 })
  })

  test('is not pushed to users who opted out', async () => {
    const all = await newAda()
    const { service, ada, google, settle } = all
    await registerDevice(service, ada, 'tablet')
    const path = '/v1/notifications/preferences'
    const body = { chat_message: { push: false } }
    const { body: changed } = await service.call('PUT', path, { token: ada.token, body })
    expect(changed.chat_message).toEqual({ push: false, email: true })
    await say(all, 'hello')
    await settle()
    expect(google.sends).toEqual([])
  })

  test('from the platform is pushed to both people with `unread: true` alone, also over a block', async () => {
    const all = await newAda()
    const { service, ada, google, until, settle } = all
    const bob = await service.register()
    for (const person of [ada, bob]) await registerDevice(service, person, `of ${person.id}`)
    const conversation_id = await service.openConversation(bob, ada)
    await service.call('PUT', `/v1/users/blocks/${bob.id}`, ada)
    const post = (body: string, unread: boolean) =>
      service.call('POST', '/v1/service/messages', {
        token: all.key,
        body: { conversation_id, body, unread },
      })
    await post('Quiet', false)
    await settle()
    expect(google.sends).toEqual([])
    await post('Moved to 15:00', true)
    await until(() => google.sends.length === 2)
    const sent = google.sends.map(({ message }) => message)
    for (const { id } of [ada, bob]) {
      expect(sent).toContainEqual(
        expect.objectContaining({
          token: `of ${id}`,
          notification: { title: 'localhost', body: 'Moved to 15:00' },
        }),
      )
    }
  })

  test('from the platform is pushed although an unread one of a person who was blocked since is newer', async () => {
    const all = await newAda(anyListening)
    const { service, ada, google, clock, until } = all
    await registerDevice(service, ada, 'tablet')
    const bob = await service.register()
    const conversation_id = await service.openConversation(bob, ada)
    const socket = await service.connect(ada)
    const notice = { conversation_id, body: 'Moved to 15:00', unread: true }
    await service.call('POST', '/v1/service/messages', { token: all.key, body: notice })
    await service.say(bob, conversation_id, 'hello')
    await service.call('PUT', `/v1/users/blocks/${bob.id}`, ada)
    clock.advance(31_000)
    await until(() => google.sends.length === 1)
    const bodies = google.sends.map(({ message }) => (message as Shown).notification.body)
    expect(bodies).toEqual(['Moved to 15:00'])
    socket.close()
  })

  test('with an unnamed file is described in the language of its reader', async () => {
    const all = await newAda()
    const { service, ada, google, until } = all
    await registerDevice(service, ada, 'tablet')
    await service.call('PATCH', '/v1/users/me', { token: ada.token, body: { locale: 'de' } })
    const bob = await service.register()
    const path = `/v1/chat/conversations/${await service.openConversation(bob, ada)}/messages`
    const body = { type: 'file', body: ' ', file_url: 'https://files.example.com/1' }
    await service.call('POST', path, { token: bob.token, body })
    await until(() => google.sends.length === 1)
    expect(google.sends[0]?.message).toMatchObject({ notification: { body: texts.de.push.file } })
  })
})

describe('the channels of a notification are independent', () => {
  const choose = (all: Pushing, broadcast: object) =>
    all.service.call('PUT', '/v1/notifications/preferences', {
      token: all.ada.token,
      body: { broadcast },
    })
  const shown = async ({ service, ada }: Pushing) => [
    (await service.call('GET', '/v1/notifications', ada)).body.pagination.total,
    (await service.call('GET', '/v1/notifications/unread-count', ada)).body.count,
  ]

  test('one that is hidden in the app is pushed, without a row and a frame, once for one key', async () => {
    const all = await newAda(anyListening)
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

  test('one of the platform has the channel `custom` on Android, and is mailed to those who want it', async () => {
    await using mails = await startMailServer()
    await using all = await startPushing({ environment: { SMTP_URL: mails.url } })
    const { service, clock, notify, ada, google, until } = all
    await mails.next(ada.email) // the verification of her address
    await registerDevice(service, ada, 'tablet')
    await service.call('PUT', '/v1/notifications/preferences', {
      token: ada.token,
      body: { 'custom.booking_moved': { email: true } },
    })
    await notify({ type: 'custom.booking_moved', title: 'Moved', body: 'Now at 15:00' })
    const pushed = service.sqlite.query("SELECT kind FROM deliveries WHERE channel = 'push'")
    await until(() => pushed.all().length === 1)
    expect(pushed.all()).toEqual([{ kind: 'custom.booking_moved' }])
    expect(google.sends[0]?.message).toMatchObject({
      android: { ttl: '259200s', notification: { channel_id: 'custom' } },
    })
    clock.advance(200_000)
    const { text = '' } = await mails.next(ada.email)
    expect(text).toContain('Now at 15:00')
    const [, preferences = ''] = /this: \S+?(\/mail-preferences\S+)/.exec(text) ?? []
    expect((await service.call('GET', preferences)).body).toContain('booking moved')
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
  async function startDesk() {
    const mails = await startMailServer()
    const all = await startPushing({ environment: { SMTP_URL: mails.url } })
    return {
      ...(await openTicket(all, mails)),
      async [Symbol.asyncDispose]() {
        await all[Symbol.asyncDispose]()
        await mails[Symbol.asyncDispose]()
      },
    }
  }

  const anyDesk = shared(startDesk)

  /** A ticket of another Ada. */
  async function newTicket() {
    const { mails, ...all } = await anyDesk()
    return openTicket(await newAda(async () => all), mails)
  }

  async function openTicket(all: Pushing, mails: Awaited<ReturnType<typeof startMailServer>>) {
    const { service, ada } = all
    await mails.next(ada.email) // the verification of her address
    const admin = await service.registerAs('admin')
    const body = { subject: 'Help', body: 'It is broken.' }
    const ticket = await service.call('POST', '/v1/support/tickets', { token: ada.token, body })
    const path = `/v1/admin/support/tickets/${ticket.body.id}/messages`
    return {
      ...all,
      mails,
      ticketId: ticket.body.id,
      setLinks: (links: object) =>
        service.call('PATCH', '/v1/admin/settings', { token: admin.token, body: { links } }),
      toAda: () => mails.mails.filter(({ to }) => to === ada.email),
      answer: (text: string) =>
        service.call('POST', path, { token: admin.token, body: { body: text } }),
    }
  }

  test('is sent after three minutes, once for several replies', async () => {
    const desk = await newTicket()
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

  test('leads to the ticket, also for several replies; more than one ticket to the first page', async () => {
    await using desk = await startDesk()
    const { ada, ticketId, clock, toAda, answer, notify, until, settle } = desk
    await desk.setLinks({ ticket: 'rooms://help/{id}', home: 'rooms://home' })
    for (const text of ['One.', 'Two.']) await answer(text)
    clock.advance(200_000)
    await until(() => toAda().length === 1)
    await settle()
    await answer('Three.')
    await notify({ type: 'support_reply', data: { ticket_id: ada.id } })
    clock.advance(200_000)
    await until(() => toAda().length === 2)
    const buttons = toAda().map(({ text }) => /rooms:\/\/\S+/.exec(text)?.[0])
    expect(buttons).toEqual([`rooms://help/${ticketId}`, 'rooms://home'])
  })

  test('shows no name of a person as a link', async () => {
    const desk = await newTicket()
    const { service, ada, clock, toAda, notify, until } = desk
    const eve = await service.register()
    await service.call('PUT', '/v1/notifications/preferences', {
      token: ada.token,
      body: { follow_new: { email: true } },
    })
    const data = { follower_id: eve.id, follower_name: 'Win at evil.com/x' }
    await notify({ type: 'follow_new', data })
    clock.advance(200_000)
    await until(() => toAda().length === 1)
    const [mail] = toAda()
    expect(mail?.text).toContain('Win at evil com x follows you now.')
    expect(mail?.raw).not.toContain('evil.com')
  })

  test('is one mail for simultaneous replies, whatever else is unread', async () => {
    const desk = await newTicket()
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
    const desk = await newTicket()
    const { service, ada, clock, toAda, answer, settle } = desk
    await answer('Hello?')
    service.sqlite.run('UPDATE users SET disabled_at = 1 WHERE id = ?', [ada.id])
    clock.advance(200_000)
    await settle()
    expect(toAda()).toEqual([])
  })

  test('is not sent to users who have read the reply or opted out', async () => {
    const desk = await newTicket()
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
