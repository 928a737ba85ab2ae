import { describe, expect, test } from 'bun:test'
import { texts } from '../src/lib/i18n.ts'
import { roles } from '../src/lib/vocabulary.ts'
import type { Notification } from '../src/modules/notifications/model.ts'
import { textOf } from '../src/modules/notifications/notifier.ts'
import { createTestClock } from './support/clock.ts'
import { size } from './support/faults.ts'
import { createRandom } from './support/random.ts'
import { type Person, startService, type TestService } from './support/service.ts'
import { shared } from './support/shared.ts'
import { waitFor } from './support/wait.ts'

const anyFed = shared(() => startFed())
const listeningFed = shared(() => startFed({ listen: true }))

const unknownId = '01ARZ3NDEKTSV4RRFFQ69G5FAV'
const day = 24 * 3_600_000
const types = [
  'call_incoming',
  'call_missed',
  'payment_captured',
  'payout_completed',
  'payout_failed',
  'follow_new',
  'support_reply',
  'broadcast',
] as const

async function startFed(options: Parameters<typeof startService>[0] = {}) {
  const service = await startService(options)
  const { token: key } = await service.issueKey()
  return {
    ...feedOf(service, key, await service.register('ada')),
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  }
}

const feedOf = (service: TestService, key: string, ada: Person) => ({
  service,
  key,
  ada,
  notify: (body: object) =>
    service.call('POST', '/v1/service/notifications', {
      token: key,
      body: { user_id: ada.id, type: 'broadcast', ...body },
    }),
})

/** A shared service with an Ada of this test. */
async function newAda(shared = anyFed) {
  const { service, key } = await shared()
  return feedOf(service, key, await service.register())
}

const listOf = async (service: TestService, { token }: Person, query = '') =>
  (await service.call('GET', `/v1/notifications${query}`, { token })).body
const countOf = async (service: TestService, { token }: Person) =>
  (await service.call('GET', '/v1/notifications/unread-count', { token })).body.count
const readOne = (service: TestService, { token }: Person, id: string) =>
  service.call('PUT', `/v1/notifications/${id}/read`, { token })
const readAll = (service: TestService, { token }: Person) =>
  service.call('PUT', '/v1/notifications/read-all', { token })

describe('the list', () => {
  test('has the newest first, with every field, in pages', async () => {
    const fed = await newAda()
    const { service, ada, notify } = fed
    const data = { call_session_id: 'c-1' }
    await notify({ type: 'call_missed', title: ' First ', body: 'one', data })
    await notify({ title: 'Second', body: 'two' })
    expect(await listOf(service, ada)).toEqual({
      success: true,
      data: [
        expect.objectContaining({ title: 'Second', data: {} }),
        {
          id: expect.any(String),
          type: 'call_missed',
          title: 'First',
          body: 'one',
          data,
          read: false,
          created_at: expect.any(String),
        },
      ],
      pagination: { page: 1, per_page: 20, total: 2, total_pages: 1 },
    })
  })

  test('has only unread ones on request, with their own total', async () => {
    const fed = await newAda()
    const { service, ada, notify } = fed
    for (const title of ['a', 'b', 'c']) await notify({ title })
    const { data } = await listOf(service, ada)
    await readOne(service, ada, data[1].id)
    const unread = await listOf(service, ada, '?unread=true')
    expect(unread.data.map(({ title }: Notification) => title)).toEqual(['c', 'a'])
    expect(unread.pagination.total).toBe(2)
    expect((await listOf(service, ada, '?unread=false')).pagination.total).toBe(3)
    const refused = await service.call('GET', '/v1/notifications?unread=maybe', ada)
    expect([refused.status, Object.keys(refused.body.error.details)]).toEqual([400, ['unread']])
  })

  test('by cursor shows each once while others arrive', async () => {
    const fed = await newAda()
    const { service, ada, notify } = fed
    for (const title of ['a', 'b', 'c']) await notify({ title })
    const first = await listOf(service, ada, '?limit=2')
    await notify({ title: 'd' })
    const rest = await listOf(service, ada, `?limit=2&cursor=${first.pagination.cursor}`)
    const titles = [...first.data, ...rest.data].map(({ title }: Notification) => title)
    expect([titles, rest.pagination.has_more]).toEqual([['c', 'b', 'a'], false])
  })

  test('shows and marks only one’s own', async () => {
    const fed = await newAda()
    const { service, ada, notify } = fed
    const mallory = await service.register()
    const { body } = await notify({ title: 'for ada' })
    const [{ id }] = body.data
    expect((await listOf(service, mallory)).data).toEqual([])
    for (const wrong of [id, unknownId, 'nonsense']) {
      const { status, body: refusal } = await readOne(service, mallory, wrong)
      expect([status, refusal.error.code]).toEqual([404, 'not_found'])
    }
    expect(await countOf(service, ada)).toBe(1)
  })
})

test('reading one, repeating that, and reading all keeps the count right', async () => {
  const fed = await newAda()
  const { service, ada, notify } = fed
  for (const title of ['a', 'b', 'c']) await notify({ title })
  const [{ id }] = (await listOf(service, ada)).data
  expect([(await readOne(service, ada, id)).status, await countOf(service, ada)]).toEqual([204, 2])
  expect([(await readOne(service, ada, id)).status, await countOf(service, ada)]).toEqual([204, 2])
  expect([(await readAll(service, ada)).status, await countOf(service, ada)]).toEqual([204, 0])
  expect((await listOf(service, ada)).data.every(({ read }: Notification) => read)).toBe(true)
})

describe('the feed', () => {
  test('notifies several users, and names those it did not', async () => {
    const fed = await newAda()
    const { service, ada, key } = fed
    const bob = await service.register()
    await service.call('PUT', '/v1/notifications/preferences', {
      token: bob.token,
      body: { follow_new: { in_app: false, push: false } },
    })
    const body = { user_ids: [ada.id, bob.id, ada.id], type: 'follow_new', dedupe_key: 'f1' }
    const send = () => service.call('POST', '/v1/service/notifications', { token: key, body })
    const first = await send()
    expect([first.status, first.body]).toEqual([
      201,
      { data: [expect.objectContaining({ type: 'follow_new' })], duplicates: 0, muted: 1 },
    ])
    expect((await send()).body).toEqual({ ...first.body, duplicates: 1 })
    expect([await countOf(service, ada), await countOf(service, bob)]).toEqual([1, 0])
  })

  test('accepts a hundred users at once, with texts of any length', async () => {
    const fed = await newAda()
    const { service, ada, key } = fed
    const event = {
      type: 'broadcast',
      title: '\u{1F600}'.repeat(200),
      body: '\u{1F600}'.repeat(2_000),
    }
    const send = (count: number) =>
      service.call('POST', '/v1/service/notifications', {
        token: key,
        body: { ...event, user_ids: Array(count).fill(ada.id) },
      })
    expect((await send(100)).status).toBe(201)
    expect((await send(101)).status).toBe(400)
  })

  test('stores one of many parallel reports with one key, and one for each user', async () => {
    const fed = await newAda()
    const { service, ada, notify } = fed
    const bob = await service.register()
    const reports = Array.from({ length: 10 }, () => notify({ dedupe_key: 'once' }))
    const ids = (await Promise.all(reports)).map(({ body }) => body.data[0].id)
    expect(new Set(ids).size).toBe(1)
    await notify({ user_id: bob.id, dedupe_key: 'once' })
    expect([await countOf(service, ada), await countOf(service, bob)]).toEqual([1, 1])
  })

  test('reaches those of a list who exist, and names the others', async () => {
    const fed = await newAda()
    const { service, ada, key } = fed
    const unknown = [unknownId, 'ext:nobody', 'nonsense', 'ext:', '']
    const body = { user_ids: [ada.id, ...unknown], type: 'broadcast' }
    const answer = await service.call('POST', '/v1/service/notifications', { token: key, body })
    const { data, ...rest } = answer.body
    expect([answer.status, data.length, rest]).toEqual([
      201,
      1,
      { duplicates: 0, muted: 0, unknown },
    ])
    expect(await countOf(service, ada)).toBe(1)
  })

  test.each<[wrong: object, ...fields: string[]]>([
    [{ user_id: unknownId }, 'user_id'],
    [{ user_id: 'x' }, 'user_id'],
    [{ user_id: null }, 'user_id'],
    [{ user_ids: [] }, 'user_ids'],
    [{ user_ids: Array(101).fill(unknownId) }, 'user_ids'],
    [{ type: 'newsletter' }, 'type'],
    [{ title: '\u200b' }, 'title'],
    [{ title: 'x'.repeat(201) }, 'title'],
    [{ body: '\u3164' }, 'body'],
    [{ dedupe_key: '' }, 'dedupe_key'],
    [{ data: 'text' }, 'data'],
    [{ data: ['a'] }, 'data'],
    [{ user_ids: ['x', unknownId, 5] }, 'user_ids.2'],
    [{ user_id: undefined, user_ids: ['x'] }, 'user_ids.0'],
    [{ data: { amount: 12 } }, 'data.amount'],
    [{ data: { nested: {} } }, 'data.nested'],
    [{ data: { amount: '12,50', currency: 'euro' } }, 'data.amount', 'data.currency'],
    [{ data: { follower_id: 'nobody' } }, 'data.follower_id'],
    [{ data: { call_session_id: '' } }, 'data.call_session_id'],
    [{ data: { text: 'a\0b', fine: 'x' } }, 'data.text'],
    [{ data: { 'not a key': 'x' } }, 'data.not a key'],
    [{ data: { 'a/b~': 'x', 'c/d~': 1 } }, 'data.a/b~', 'data.c/d~'],
    [{ data: { '': 'x' } }, 'data.'],
    [{ data: { long: 'x'.repeat(2_048) } }, 'data'],
    [{ data: { toString: 'x', constructor: 1 } }, 'data.constructor'],
  ])('refuses %j', async (wrong, ...fields) => {
    const fed = await anyFed()
    const { status, body } = await fed.notify(wrong)
    expect([status, Object.keys(body.error.details).sort()]).toEqual([400, fields])
    expect(await countOf(fed.service, fed.ada)).toBe(0)
  })

  test('stores the ids in data in one form', async () => {
    const { ada, notify } = await newAda()
    const ids = { follower_id: ada.id, ticket_id: unknownId, message_id: unknownId }
    const lower = Object.entries(ids).map(([key, id]) => [key, id.toLowerCase()])
    const data = { ...Object.fromEntries(lower), note: 'abc' }
    expect((await notify({ data })).body.data[0].data).toEqual({ ...ids, note: 'abc' })
  })

  test('names at most a thousand errors of a body', async () => {
    const fed = await newAda()
    const data = Object.fromEntries(Array.from({ length: 2_000 }, (_, n) => [`key${n}`, n]))
    const { details } = (await fed.notify({ data })).body.error
    expect(details).toMatchObject({
      data: 'must have at most 2048 bytes',
      'data.key0': 'must be a text',
    })
    expect(Object.keys(details)).toHaveLength(1_001)
  })

  const germanFed = shared(async () => {
    const fed = await startFed()
    const body = { locale: 'de' }
    await fed.service.call('PATCH', '/v1/users/me', { token: fed.ada.token, body })
    return fed
  })

  test.each(types)('knows the type %s and writes it in the language of the user', async (type) => {
    const fed = await germanFed()
    const { service, ada, notify } = fed
    const data = { amount: '1234.50', currency: 'EUR', follower_name: 'Bob' }
    await notify({ type, data })
    const [shown] = (await listOf(service, ada)).data
    const written = { ...data, amount: '1.234,50' }
    expect(shown).toMatchObject({ type, data, ...textOf(texts.de.notifications[type], written) })
    expect(shown.title).not.toBe(texts.en.notifications[type].title)
  })

  test('leaves out an amount that it was not given', () => {
    const captured = texts.en.notifications.payment_captured
    expect(textOf(captured, { amount: '5', currency: 'EUR' }).body).toBe('You received 5 EUR.')
    expect(textOf(captured, { amount: '5' }).body).toBe('A payment was received.')
  })
})

describe('automatic notifications', () => {
  test('a ringing call and a missed one notify the host once', async () => {
    const fed = await newAda()
    const { service, key, ada } = fed
    const guest = await service.register('guest')
    const parties = { host_id: ada.id, guest_id: guest.id, guest_name: 'guest' }
    for (const [id, state] of [
      ['c1', 'ringing'],
      ['c1', 'ringing'],
      ['c1', 'missed'],
      ['c1', 'missed'],
      ['c1', 'ringing'],
      ['c2', 'active'],
      ['c2', 'ringing'],
    ]) {
      const body = { state, ...parties }
      await service.call('PUT', `/v1/service/calls/${id}`, { token: key, body })
    }
    const notified = (await listOf(service, ada)).data.map(({ type, data }: Notification) => [
      type,
      data,
    ])
    const data = { call_session_id: 'c1', guest_id: guest.id, guest_name: 'guest' }
    expect(notified).toEqual([
      ['call_missed', data],
      ['call_incoming', data],
    ])
    expect(await countOf(service, guest)).toBe(0)
  })

  test('the first follow notifies the host, an import does not', async () => {
    const fed = await newAda()
    const { service, key } = fed
    const [bob, cid] = [await service.register('bob'), await service.register()]
    const host = await service.registerAs('host')
    const path = `/v1/service/follows/${host.id}`
    for (const method of ['PUT', 'PUT', 'DELETE', 'PUT']) {
      await service.call(method, `${path}/${bob.id}`, { token: key })
    }
    await service.call('PUT', path, { token: key, body: { follower_ids: [cid.id] } })
    const { data } = await listOf(service, host)
    expect(data.map(({ type, data }: Notification) => [type, data])).toEqual([
      ['follow_new', { follower_id: bob.id, follower_name: 'bob' }],
    ])
  })

  test('a reply of support notifies the owner', async () => {
    const fed = await newAda()
    const { service, ada } = fed
    const admin = await service.registerAs('admin')
    const ticket = { subject: 'Help', body: 'It is broken.' }
    const opened = await service.call('POST', '/v1/support/tickets', {
      token: ada.token,
      body: ticket,
    })
    const path = `/v1/admin/support/tickets/${opened.body.id}/messages`
    const answer = { token: admin.token, body: { body: 'Try again.', client_id: 'r1' } }
    const replied = await service.call('POST', path, answer)
    await service.call('POST', path, answer) // sent again
    const { data } = await listOf(service, ada)
    expect(data).toEqual([
      expect.objectContaining({
        type: 'support_reply',
        title: 'Support has answered: Help',
        body: 'Try again.',
        data: { ticket_id: opened.body.id, message_id: replied.body.id },
      }),
    ])
  })
})

describe('frames', () => {
  test('announce new and read notifications to sockets that requested them', async () => {
    const fed = await newAda(listeningFed)
    const { service, ada, notify } = fed
    const [asked, silent] = [
      await service.connect(ada, '&events=notification'),
      await service.connect(ada),
    ]
    const { body } = await notify({ title: 'hello' })
    const [notification] = body.data
    const frame = { type: 'notification', notification, unread_count: 1 }
    expect(await asked.next('notification')).toEqual(frame)
    await notify({ title: 'again' })
    expect((await asked.next('notification')).unread_count).toBe(2)
    await readOne(service, ada, notification.id)
    const read = { type: 'notifications_read', unread_count: 1 }
    expect(await asked.next('notifications_read')).toEqual(read)
    await readAll(service, ada)
    expect((await asked.next('notifications_read')).unread_count).toBe(0)
    // Reading it again is no change.
    await readOne(service, ada, notification.id)
    await readAll(service, ada)
    for (const socket of [asked, silent]) {
      await socket.settled()
      expect(socket.frames).toEqual([])
    }
  })
})

describe('preferences', () => {
  const preferences = '/v1/notifications/preferences'
  const all = { in_app: true, push: true, email: false }

  test('have defaults, and a change keeps the others', async () => {
    const fed = await newAda()
    const { service, ada } = fed
    const { token } = ada
    const usual = Object.fromEntries(
      types.map((type) => [type, { ...all, email: type === 'support_reply' }]),
    )
    Object.assign(usual, { chat_message: { push: true, email: true } })
    expect((await service.call('GET', preferences, { token })).body).toEqual(usual)
    const body = { follow_new: { push: false }, broadcast: { in_app: false, email: true } }
    const changed = await service.call('PUT', preferences, { token, body })
    const expected = {
      ...usual,
      follow_new: { in_app: true, push: false, email: false },
      broadcast: { in_app: false, push: true, email: true },
    }
    expect([changed.status, changed.body]).toEqual([200, expected])
    await service.call('PUT', preferences, { token, body: { follow_new: { email: true } } })
    const { follow_new } = (await service.call('GET', preferences, { token })).body
    expect(follow_new).toEqual({ in_app: true, push: false, email: true })
  })

  test.each(['call_incoming', 'payout_failed', 'support_reply'])(
    '%s cannot be switched off in the app',
    async (type) => {
      const fed = await anyFed()
      const { service, ada } = fed
      const body = { [type]: { in_app: false }, broadcast: { in_app: false } }
      const answer = await service.call('PUT', preferences, { token: ada.token, body })
      expect([answer.status, Object.keys(answer.body.error.details)]).toEqual([
        400,
        [`${type}.in_app`],
      ])
      const { broadcast } = (await service.call('GET', preferences, ada)).body
      expect(broadcast).toEqual(all)
    },
  )

  test('of unknown types are kept unchanged', async () => {
    const fed = await newAda()
    const { token } = fed.ada
    const unknown = { future: null, newer: { in_app: 'x' } }
    const body = { ...unknown, broadcast: { push: false } }
    expect((await fed.service.call('PUT', preferences, { token, body })).status).toBe(200)
    const alone = await fed.service.call('PUT', preferences, { token, body: unknown })
    expect(alone.body.error.details).toEqual({ body: 'must name something to change' })
  })

  test.each<object>([
    { follow_new: {} },
    { follow_new: { foo: true }, 'custom.x': {} },
    { chat_message: { in_app: false } },
    { nonsense: { push: false }, broadcast: {} },
    { follow_new: { toString: false } },
  ])('%j names nothing to change', async (body) => {
    const fed = await newAda()
    const answer = await fed.service.call('PUT', preferences, { token: fed.ada.token, body })
    expect([answer.status, answer.body.error.details]).toEqual([
      400,
      { body: 'must name something to change' },
    ])
  })

  test('null leaves a type or a channel unchanged', async () => {
    const fed = await newAda()
    const { token } = fed.ada
    const put = async (body: object) =>
      (await fed.service.call('PUT', preferences, { token, body })).body
    const changed = await put({ broadcast: { in_app: false, email: true } })
    expect(await put({ broadcast: { in_app: null, email: null }, follow_new: null })).toEqual(
      changed,
    )
  })

  test.each([
    [{ broadcast: true }, { broadcast: 'must be an object' }],
    [
      { broadcast: { push: 'no' }, call_incoming: { push: 'no', email: 1 } },
      {
        'broadcast.push': 'must be true or false',
        'call_incoming.push': 'must be true or false',
        'call_incoming.email': 'must be true or false',
      },
    ],
  ])('%j is refused', async (body, details) => {
    const fed = await anyFed()
    const { token } = fed.ada
    const answer = await fed.service.call('PUT', preferences, { token, body })
    expect([answer.status, answer.body.error.details]).toEqual([400, details])
  })
})

describe('a type of the platform', () => {
  const preferences = '/v1/notifications/preferences'
  const type = 'custom.booking_moved'
  const moved = { type, title: 'Booking moved', body: 'Now at 15:00', data: { booking_id: 'b-1' } }

  test('is listed, counted, read, sent to sockets and exported like any other', async () => {
    const fed = await newAda(listeningFed)
    const { service, ada, notify } = fed
    const socket = await service.connect(ada, '&events=notification')
    const { status, body } = await notify(moved)
    const [notification] = body.data
    expect([status, notification]).toMatchObject([201, { ...moved, read: false }])
    expect((await socket.next('notification'))?.notification).toEqual(notification)
    expect((await listOf(service, ada)).data).toEqual([notification])
    expect(await countOf(service, ada)).toBe(1)
    expect((await readOne(service, ada, notification.id)).status).toBe(204)
    expect(await countOf(service, ada)).toBe(0)
    const { body: exported } = await service.call('GET', '/v1/users/me/export', ada)
    expect(exported.notifications).toEqual([{ ...notification, read: true }])
    socket.close()
  })

  test('has a preference of its own, at first that of a broadcast', async () => {
    const fed = await newAda()
    const { service, ada, notify } = fed
    const off = { in_app: false, push: false, email: false }
    const put = async (body: object) =>
      (await service.call('PUT', preferences, { token: ada.token, body })).body
    expect(Object.keys(await put({ broadcast: off }))).not.toContain(type)
    const changed = await put({ [type]: { push: false } })
    expect(changed[type]).toEqual({ in_app: true, push: false, email: false })
    expect((await notify(moved)).body).toMatchObject({ data: [{ type }], muted: 0 })
    expect((await put({ [type]: { in_app: false } }))[type]).toEqual(off)
    expect((await notify(moved)).body).toEqual({ data: [], duplicates: 0, muted: 1 })
    expect((await notify({ ...moved, type: 'custom.other' })).body.muted).toBe(0)
    const { body: exported } = await service.call('GET', '/v1/users/me/export', ada)
    expect(exported.notification_preferences[0][type]).toEqual(off)
  })

  test('is bounded in number for each person', async () => {
    const fed = await newAda()
    const { token } = fed.ada
    const many = Array.from({ length: 101 }, (_, n) => [`custom.t${n}`, { push: false }])
    const put = (body: object) => fed.service.call('PUT', preferences, { token, body })
    const { status, body } = await put(Object.fromEntries(many))
    expect([status, body.error.details]).toEqual([
      400,
      { 'custom.t0': 'would exceed the 100 types of the platform' },
    ])
    expect((await put(Object.fromEntries(many.slice(1)))).status).toBe(200)
    expect((await put(Object.fromEntries(many.slice(1)))).status).toBe(200)
  })

  test.each([
    [{ [type]: true }, { [type]: 'must be an object' }],
    [{ [type]: { push: 1 } }, { [`${type}.push`]: 'must be true or false' }],
    [{ [type]: null }, { body: 'must name something to change' }],
    [{ 'custom.Booking': { push: false } }, { body: 'must name something to change' }],
  ])('of preferences %j is refused', async (body, details) => {
    const { service, ada } = await anyFed()
    const answer = await service.call('PUT', preferences, { token: ada.token, body })
    expect([answer.status, answer.body.error.details]).toEqual([400, details])
  })

  test.each([
    [{ title: undefined }, { title: 'is required' }],
    [{ body: null }, { body: 'is required' }],
    [{ type: 'custom.' }, { type: expect.stringContaining('broadcast, ^custom') }],
    [{ type: `custom.${'a'.repeat(41)}` }, { type: expect.stringContaining('must be one of') }],
    [{ type: 'custom.a\n' }, { type: expect.stringContaining('must be one of') }],
  ])('with %j is refused', async (change, details) => {
    const { notify } = await anyFed()
    const answer = await notify({ ...moved, ...change })
    expect([answer.status, answer.body.error.details]).toEqual([400, details])
  })
})

describe('retention', () => {
  test('keeps a thousand for each user and deletes the oldest', async () => {
    const fed = await newAda()
    const { service, ada, notify } = fed
    for (let n = 0; n < 10; n++) await notify({ title: `n${n}` })
    await Promise.all(Array.from({ length: 995 }, () => notify({ title: 'later' })))
    const { data, pagination } = await listOf(service, ada, '?page=50&per_page=20')
    expect([pagination.total, data.at(-1).title]).toEqual([1_000, 'n5'])
    expect(await countOf(service, ada)).toBe(1_000)
  })

  test('keeps read ones for 90 days, unread ones for 180, and their dedupe_key as long', async () => {
    const clock = createTestClock()
    await using fed = await startFed({ clock })
    const { service, ada, notify } = fed
    const { body } = await notify({ title: 'read' })
    const again = async () => (await notify({ title: 'unread', dedupe_key: 'a' })).body.duplicates
    expect(await again()).toBe(0)
    await readOne(service, ada, body.data[0].id)
    const givenUp = 'SELECT id FROM outbox WHERE dead_at IS NOT NULL'
    // Failed jobs are deleted after the notifications in the same pass.
    const passLater = async (milliseconds: number) => {
      service.sqlite.run(
        "INSERT INTO outbox (id, kind, payload, created_at, run_at, dead_at) VALUES ('x', 'x', '{}', 0, 0, 0)",
      )
      clock.advance(milliseconds)
      await waitFor(() => service.sqlite.query(givenUp).get() === null)
    }
    const titlesAfter = async (days: number) => {
      await passLater(days * day)
      // The first may belong to a pass that began before.
      await passLater(day / 24)
      const person = await service.login(ada.email)
      return (await listOf(service, person)).data.map(({ title }: Notification) => title)
    }
    expect(await titlesAfter(89)).toEqual(['unread', 'read'])
    expect(await titlesAfter(2)).toEqual(['unread'])
    expect(await titlesAfter(88)).toEqual(['unread'])
    expect(await again()).toBe(1)
    expect(await titlesAfter(2)).toEqual([])
    expect(await again()).toBe(0)
  })

  test('has them in the export, and deletes them with the account', async () => {
    await using fed = await startFed()
    const { service, ada, notify } = fed
    const { body } = await notify({ title: 'mine' })
    const exported = await service.call('GET', '/v1/users/me/export', ada)
    expect(exported.body.notifications).toEqual(body.data)
    const leave = { token: ada.token, body: { password: 'correct horse' } }
    await service.call('DELETE', '/v1/users/me', leave)
    const count = service.sqlite.query<{ n: number }, []>('SELECT count(*) AS n FROM notifications')
    await waitFor(() => count.get()?.n === 0)
    expect((await notify({ title: 'too late' })).status).toBe(400)
  })
})

describe('an announcement of an admin', () => {
  async function startAdmin(fans = 0) {
    const fed = await startFed()
    const admin = await fed.service.registerAs('admin', 'root')
    const people: Person[] = []
    for (let n = 0; n < fans; n++) people.push(await fed.service.register())
    return {
      ...fed,
      admin,
      people,
      announce: (body: object) =>
        fed.service.call('POST', '/v1/admin/notifications', {
          token: admin.token,
          body: { audience: 'all', title: 'News', body: 'There is news.', ...body },
        }),
      completed(id: string, { token } = admin) {
        const path = `/v1/admin/notifications/${id}`
        return waitFor(async () => {
          const { body } = await fed.service.call('GET', path, { token })
          return body.status === 'completed' && body
        })
      },
    }
  }

  const anyAdmin = shared(() => startAdmin())

  test('reaches each user once, a small audience before the response', async () => {
    await using started = await startAdmin(3)
    const { service, ada, announce } = started
    const { status, body } = await announce({ data: { link: 'x' }, client_id: 'a1' })
    expect([status, body]).toEqual([
      201,
      { broadcast_id: expect.any(String), recipients_count: 6, status: 'completed' },
    ])
    const again = await announce({ data: { link: 'x' }, client_id: 'a1' })
    expect([again.body, again.headers.get('idempotent-replayed')]).toEqual([body, 'true'])
    for (const other of [
      { title: 'Else' },
      { data: { link: 'y' } },
      { audience: 'role', role: 'admin' },
      { audience: 'users', user_ids: [ada.id] },
    ]) {
      expect((await announce({ client_id: 'a1', ...other })).status).toBe(409)
    }
    const { data } = await listOf(service, ada)
    expect(data).toEqual([
      expect.objectContaining({
        type: 'broadcast',
        title: 'News',
        data: { link: 'x', broadcast_id: body.broadcast_id },
      }),
    ])
  })

  test('is repeated after one of its recipients was removed', async () => {
    await using started = await startAdmin(2)
    const { service, ada, people, announce } = started
    const [gone, other] = people as [Person, Person]
    const draft = { audience: 'users', user_ids: [ada.id, gone.id], client_id: 'a1' }
    const { body } = await announce(draft)
    const leave = { token: gone.token, body: { password: 'correct horse' } }
    await service.call('DELETE', '/v1/users/me', leave)
    const again = await announce(draft)
    expect([again.status, again.body]).toEqual([201, { ...body, unknown: [gone.id] }])
    const user_ids = [ada.id, gone.id, other.id]
    expect((await announce({ ...draft, user_ids })).status).toBe(409)
  })

  test('to many continues as a job, without users who are gone or opted out', async () => {
    await using started = await startAdmin(70)
    const { service, people, announce, completed } = started
    const [gone, muted] = people as [Person, Person]
    const leave = { token: gone.token, body: { password: 'correct horse' } }
    await service.call('DELETE', '/v1/users/me', leave)
    const body = { broadcast: { in_app: false, push: false } }
    await service.call('PUT', '/v1/notifications/preferences', { token: muted.token, body })
    const { body: begun } = await announce({})
    expect(begun).toMatchObject({ recipients_count: 72, status: 'processing' })
    const done = await completed(begun.broadcast_id)
    expect(done).toEqual({
      ...begun,
      status: 'completed',
      delivered_count: 71,
      audience: 'all',
      role: null,
      title: 'News',
      body: 'There is news.',
      sender: { id: started.admin.id, display_name: 'root' },
      created_at: expect.any(String),
      completed_at: expect.any(String),
    })
    const counts = 'SELECT count(*) AS n, count(DISTINCT user_id) AS people FROM notifications'
    expect(service.sqlite.query(counts).get()).toEqual({ n: 71, people: 71 })
  })

  test('keeps no name of a removed person whose id was written in lower case', async () => {
    await using started = await startAdmin(1)
    const { service, ada, people, announce } = started
    const [gone] = people as [Person]
    const data = { host_id: gone.id.toLowerCase(), host_name: 'gone' }
    await announce({ audience: 'users', user_ids: [ada.id], data })
    const leave = { token: gone.token, body: { password: 'correct horse' } }
    await service.call('DELETE', '/v1/users/me', leave)
    const shown = async () => (await listOf(service, ada)).data[0].data
    await waitFor(async () => !('host_name' in (await shown())))
    expect((await shown()).host_id).toBe(gone.id)
  })

  test('stops when its sender is no admin any more', async () => {
    await using started = await startAdmin(70)
    const { service, admin, announce, completed } = started
    const { body } = await announce({})
    service.sqlite.run("UPDATE users SET role = 'user' WHERE id = ?", [admin.id])
    const successor = await service.registerAs('admin', 'successor')
    const { delivered_count } = await completed(body.broadcast_id, successor)
    expect(delivered_count).toBeLessThan(70)
  })

  test('to several users of whom one is unknown reaches the others, and names that one', async () => {
    const started = await anyAdmin()
    const { service, announce } = started
    const { id } = await service.register()
    const body = { audience: 'users', user_ids: [id, unknownId], client_id: 'once' }
    for (const answer of [await announce(body), await announce(body)])
      expect([answer.status, answer.body]).toMatchObject([
        201,
        { recipients_count: 1, unknown: [unknownId] },
      ])
  })

  test('to a role or to named users reaches only them', async () => {
    await using started = await startAdmin(2)
    const { service, ada, admin, people, announce } = started
    const host = await service.registerAs('host', 'host')
    expect((await announce({ audience: 'role', role: 'host' })).body.recipients_count).toBe(1)
    const [one] = people as [Person]
    const user_ids = [one.id, one.id.toLowerCase(), ada.id]
    expect((await announce({ audience: 'users', user_ids })).body.recipients_count).toBe(2)
    const counts = []
    for (const person of [host, one, ada, admin]) counts.push(await countOf(service, person))
    expect(counts).toEqual([1, 1, 1, 0])
  })

  test('to all or to a role reaches as many as the user list counts without disabled ones', async () => {
    await using started = await startAdmin(3)
    const { service, admin, people, announce, completed } = started
    const [gone, banned] = people as [Person, Person]
    await service.registerAs('host')
    const change = (method: string, id: string, body?: object) =>
      service.call(method, `/v1/admin/users/${id}`, { token: admin.token, body })
    await change('DELETE', gone.id)
    await change('PATCH', banned.id, { disabled: true })
    for (const role of [undefined, ...roles]) {
      const path = `/v1/admin/users?disabled=false&per_page=1${role ? `&role=${role}` : ''}`
      const { total } = (await service.call('GET', path, admin)).body.pagination
      const { body } = await announce(role ? { audience: 'role', role } : {})
      const { delivered_count } = await completed(body.broadcast_id)
      expect([role, body.recipients_count, delivered_count]).toEqual([role, total, total])
    }
    const received = service.sqlite.query('SELECT 1 FROM notifications WHERE user_id = ?')
    expect(received.all(banned.id)).toEqual([])
  })

  test('is listed with its sender and progress, newest first', async () => {
    await using started = await startAdmin(70)
    const { service, ada, announce, completed } = started
    const admin = await service.registerAs('admin', 'eve')
    const sent = [
      await announce({ title: 'one' }),
      await announce({ title: 'two', audience: 'role', role: 'admin' }),
      await announce({ title: 'three', audience: 'users', user_ids: [ada.id] }),
    ].map(({ body }) => body.broadcast_id)
    const list = async (query: string) =>
      (await service.call('GET', `/v1/admin/notifications${query}`, admin)).body
    await completed(sent[0])
    const { data, pagination } = await list('')
    expect(data.map(({ title, role }: Record<string, string>) => [title, role])).toEqual([
      ['three', null],
      ['two', 'admin'],
      ['one', null],
    ])
    expect(data[2]).toEqual(await completed(sent[0]))
    expect(pagination.total).toBe(3)
    const { cursor } = (await list('?limit=2')).pagination
    expect((await list(`?limit=2&cursor=${cursor}`)).data).toEqual([data[2]])
    expect((await list('?page=2&per_page=2')).data).toEqual([data[2]])
  })

  test('stays in the history without the name of a removed sender', async () => {
    await using started = await startAdmin()
    const { service, admin, announce } = started
    await announce({})
    const { token } = await service.registerAs('admin', 'successor')
    await service.call('DELETE', `/v1/admin/users/${admin.id}`, { token })
    const { body } = await service.call('GET', '/v1/admin/notifications', { token })
    expect(body.data[0].sender).toEqual({ id: admin.id, display_name: 'Deleted user' })
  })

  test.each([
    [{ audience: 'some' }, 'audience'],
    [{ audience: 'role' }, 'role'],
    [{ audience: 'users' }, 'user_ids'],
    [{ audience: 'users', user_ids: [] }, 'user_ids'],
    [{ audience: 'users', user_ids: [unknownId] }, 'user_ids.0'],
    [{ audience: 'users', user_ids: [5] }, 'user_ids.0'],
    [{ title: '\u2800' }, 'title'],
    [{ body: '\ufeff\u200e' }, 'body'],
    [{ body: 'x'.repeat(2_001) }, 'body'],
    [{ data: { a: 1 } }, 'data.a'],
    [{ data: { host_id: 'ext:ada' } }, 'data.host_id'],
  ])('is refused with %j', async (wrong, field) => {
    const started = await anyAdmin()
    const { status, body } = await started.announce(wrong)
    expect([status, Object.keys(body.error.details)]).toEqual([400, [field]])
  })
})

test.each([21, 22, 23].slice(0, size(3, 3, 1)))(
  'the unread count is exact under random operations (seed %i)',
  async (seed) => {
    const fed = await newAda()
    const { service, key } = fed
    const random = createRandom(seed)
    const people = [fed.ada, await service.register(), await service.register()]
    const admin = await service.registerAs('admin')
    // The expected lists in the simplest form: newest first.
    const model = new Map(people.map(({ id }) => [id, [] as { id: string; read: boolean }[]]))
    const of = (person: Person) => model.get(person.id) ?? []
    const seenKeys = new Map<string, string>()
    const operations = [
      async (person: Person) => {
        const dedupe_key = random.next() < 0.5 ? `k${random.below(6)}` : undefined
        const body = { user_id: person.id, type: 'broadcast', dedupe_key }
        const made = await service.call('POST', '/v1/service/notifications', { token: key, body })
        const [{ id }] = made.body.data
        const known = dedupe_key && seenKeys.get(`${person.id} ${dedupe_key}`)
        if (known) expect(id).toBe(known)
        else of(person).unshift({ id, read: false })
        if (dedupe_key) seenKeys.set(`${person.id} ${dedupe_key}`, id)
      },
      async (person: Person) => {
        const own = of(person)
        if (own.length === 0) return
        const chosen = random.pick(own)
        await readOne(service, person, chosen.id)
        chosen.read = true
      },
      async (person: Person) => {
        if (random.next() < 0.7) return
        await readAll(service, person)
        for (const one of of(person)) one.read = true
      },
      async (person: Person) => {
        if (random.next() < 0.5) return
        const body = { audience: 'users', user_ids: [person.id], title: 't', body: 'b' }
        await service.call('POST', '/v1/admin/notifications', { token: admin.token, body })
        const [{ id }] = (await listOf(service, person)).data
        of(person).unshift({ id, read: false })
      },
    ]
    for (let step = 0; step < 250; step++) {
      await random.pick(operations)(random.pick(people))
      const looked = random.pick(people)
      const own = of(looked)
      expect(await countOf(service, looked)).toBe(own.filter(({ read }) => !read).length)
      const { data, pagination } = await listOf(service, looked, '?per_page=100')
      expect(pagination.total).toBe(own.length)
      const shown = data.map(({ id, read }: Notification) => ({ id, read }))
      expect(shown).toEqual(own.slice(0, 100))
    }
  },
)
