import { describe, expect, test } from 'bun:test'
import { createTestClock } from './support/clock.ts'
import { type Person, startService, type TestService } from './support/service.ts'
import { shared } from './support/shared.ts'

const withAllScopes = shared(() => startWithKey())

const unknownId = '01ARZ3NDEKTSV4RRFFQ69G5FAV'
const unauthorized = [401, 'unauthorized']
const codeOf = ({ status, body }: { status: number; body: { error?: { code: string } } }) => [
  status,
  body.error?.code,
]

async function startWithKey(scopes?: string[], options: Parameters<typeof startService>[0] = {}) {
  const service = await startService(options)
  return {
    ...(await withKey(service, scopes)),
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  }
}

async function withKey(service: TestService, scopes?: string[]) {
  const key = await service.issueKey(scopes)
  const feed = (method: string, path: string, body?: unknown) =>
    service.call(method, `/v1/service${path}`, { token: key.token, body })
  return { service, key, feed }
}

describe('service keys', () => {
  test('are shown once, stored hashed, listed without the key', async () => {
    await using service = await startService()
    const { token } = await service.registerAs('admin')
    const body = { name: '  payments  ', scopes: ['calls', 'follows'] }
    const made = await service.call('POST', '/v1/admin/service-keys', { token, body })
    const { key, ...shown } = made.body
    expect([made.status, key]).toEqual([201, expect.stringMatching(/^sk_[\w-]{43}$/)])
    expect(shown).toEqual({
      id: expect.any(String),
      name: 'payments',
      scopes: ['follows', 'calls'],
      created_at: expect.any(String),
      expires_at: null,
      last_used_at: null,
      revoked_at: null,
    })
    const list = await service.call('GET', '/v1/admin/service-keys', { token })
    expect(list.body.data).toEqual([shown])
    const stored = service.sqlite.query('SELECT * FROM service_keys').all()
    expect(JSON.stringify([stored, service.log()])).not.toContain(key)
  })

  test('may do what their scopes name; `all` is everything except sessions', async () => {
    const { service } = await withAllScopes()
    const { token } = await service.registerAs('admin')
    const make = async (scopes: string[]) =>
      (await service.call('POST', '/v1/admin/service-keys', { token, body: { name: 'a', scopes } }))
        .body.scopes
    const all = ['notifications', 'follows', 'calls', 'users', 'messages']
    expect(await make(['all'])).toEqual(all)
    expect(await make(['sessions', 'all'])).toEqual([...all, 'sessions'])
    expect(await make(['sessions'])).toEqual(['sessions'])
  })

  test.each([
    [{ name: '', scopes: ['all'] }, 'name'],
    [{ name: 'x'.repeat(81), scopes: ['all'] }, 'name'],
    [{ name: 'payments' }, 'scopes'],
    [{ name: 'payments', scopes: null }, 'scopes'],
    [{ name: 'payments', scopes: ['calls', 'everything'] }, 'scopes.1'],
    [{ name: 'payments', scopes: 'calls' }, 'scopes'],
    [{ name: 'payments', scopes: [] }, 'scopes'],
  ])('are refused as %j', async (body, field) => {
    const { service } = await withAllScopes()
    const { token } = await service.registerAs('admin')
    const answer = await service.call('POST', '/v1/admin/service-keys', { token, body })
    expect([answer.status, Object.keys(answer.body.error.details)]).toEqual([400, [field]])
  })

  test('open the feed only, which user tokens do not', async () => {
    const started = await withAllScopes()
    const { service, key } = started
    const { token, id } = await service.registerAs('admin', 'root')
    const path = `/v1/service/users/${id}`
    expect((await service.call('GET', path, { token: key.token })).status).toBe(200)
    for (const wrong of [token, undefined, `${key.token}x`, key.token.replace('sk_', 'sx_')]) {
      expect(codeOf(await service.call('GET', path, { token: wrong }))).toEqual(unauthorized)
    }
    for (const elsewhere of ['/v1/users/me', '/v1/chat/conversations', '/v1/admin/users']) {
      expect(codeOf(await service.call('GET', elsewhere, { token: key.token }))).toEqual(
        unauthorized,
      )
    }
  })

  test('may do exactly what their scopes allow', async () => {
    const { service } = await withAllScopes()
    const { feed } = await withKey(service, ['follows'])
    const [host, fan] = [await service.registerAs('host'), await service.register()]
    expect((await feed('PUT', `/follows/${host.id}/${fan.id}`)).status).toBe(204)
    const call = { state: 'active', host_id: host.id, guest_id: fan.id }
    expect(codeOf(await feed('PUT', '/calls/c1', call))).toEqual([403, 'forbidden'])
    expect(codeOf(await feed('GET', `/users/${host.id}`))).toEqual([403, 'forbidden'])
  })

  test('stop working at once when they are revoked; revoking twice works; an unknown one is not found', async () => {
    await using started = await startWithKey()
    const { service, key, feed } = started
    const { token, id } = await service.registerAs('admin')
    const revoke = (of: string) => service.call('DELETE', `/v1/admin/service-keys/${of}`, { token })
    expect((await feed('GET', `/users/${id}`)).status).toBe(200)
    expect([(await revoke(key.id)).status, (await revoke(key.id)).status]).toEqual([204, 204])
    expect(codeOf(await feed('GET', `/users/${id}`))).toEqual(unauthorized)
    expect(codeOf(await revoke(unknownId))).toEqual([404, 'not_found'])
    const { body } = await service.call('GET', '/v1/admin/service-keys', { token })
    expect(body.data[0].revoked_at).toBeString()
  })

  test('have a rate limit of their own, independent of users', async () => {
    await using started = await startWithKey(undefined, {
      environment: { RATE_LIMIT_SERVICE: '2/1m', RATE_LIMIT_ANONYMOUS: '1/1m' },
    })
    const { service, feed } = started
    const { id, token } = await service.register()
    const first = await feed('GET', `/users/${id}`)
    expect(first.headers.get('x-ratelimit-limit')).toBe('2')
    await feed('GET', `/users/${id}`)
    expect((await feed('GET', `/users/${id}`)).status).toBe(429)
    expect((await service.call('GET', '/v1/users/me', { token })).status).toBe(200)
    const guess = () => service.call('GET', `/v1/service/users/${id}`, { token: 'sk_no' })
    expect([(await guess()).status, (await guess()).status]).toEqual([401, 429])
  })

  test('show their last use, to the minute', async () => {
    const clock = createTestClock()
    await using started = await startWithKey(undefined, { clock })
    const { service, feed } = started
    const { token, id } = await service.registerAs('admin')
    const lastUsed = async () => {
      await service.call('PATCH', `/v1/admin/users/${id}`, { token, body: { role: 'admin' } }) // a later commit
      const { body } = await service.call('GET', '/v1/admin/service-keys', { token })
      return Date.parse(body.data[0].last_used_at)
    }
    const start = clock.now()
    await feed('GET', `/users/${id}`)
    expect(await lastUsed()).toBe(start)
    clock.advance(59_000)
    await feed('GET', `/users/${id}`)
    expect(await lastUsed()).toBe(start)
    clock.advance(1_000)
    await feed('GET', `/users/${id}`)
    expect(await lastUsed()).toBe(start + 60_000)
    // An hour ahead until now.
    clock.setBack(3_600_000)
    await feed('GET', `/users/${id}`)
    expect(await lastUsed()).toBe(clock.now())
  })

  test('are in the audit log: creation, use on accounts, revocation', async () => {
    await using started = await startWithKey()
    const { service, key, feed } = started
    const [admin, ada] = [await service.registerAs('admin'), await service.register()]
    await feed('PATCH', `/users/${ada.id}`, { role: 'host' })
    const { token } = admin
    await service.call('DELETE', `/v1/admin/service-keys/${key.id}`, { token })
    const { body } = await service.call('GET', '/v1/admin/audit-log', { token })
    const entries = body.data.map(({ action, actor, target }: Record<string, { id: string }>) => [
      action,
      actor?.id,
      target?.id,
    ])
    expect(entries).toContainEqual(['service_key_created', expect.any(String), key.id])
    expect(entries).toContainEqual(['role_changed', key.id, ada.id])
    expect(entries).toContainEqual(['service_key_revoked', admin.id, key.id])
  })
})

describe('follows', () => {
  const followers = (service: TestService, host: Person) =>
    service.sqlite
      .query<{ follower_count: number }, [string]>(
        'SELECT follower_count FROM audiences WHERE host_id = ?',
      )
      .get(host.id)?.follower_count ?? 0

  test('begin and end with 204, also when repeated', async () => {
    const started = await withAllScopes()
    const { service, feed } = started
    const [host, fan] = [await service.registerAs('host'), await service.register()]
    const path = `/follows/${host.id}/${fan.id}`
    const statuses = []
    for (const method of ['PUT', 'PUT', 'DELETE', 'DELETE', 'PUT']) {
      statuses.push([(await feed(method, path)).status, followers(service, host)])
    }
    expect(statuses).toEqual([
      [204, 1],
      [204, 1],
      [204, 0],
      [204, 0],
      [204, 1],
    ])
  })

  test('need two existing users', async () => {
    const started = await withAllScopes()
    const { service, feed } = started
    const { id } = await service.register()
    for (const path of [`${id}/${unknownId}`, `${unknownId}/${id}`, `${id}/nobody`]) {
      expect(codeOf(await feed('PUT', `/follows/${path}`))).toEqual([404, 'not_found'])
      expect(codeOf(await feed('DELETE', `/follows/${path}`))).toEqual([404, 'not_found'])
    }
    const own = await feed('PUT', `/follows/${id}/${id}`)
    expect([own.status, Object.keys(own.body.error.details)]).toEqual([400, ['follower_id']])
  })

  test.each(['guest', 'user', 'verified_user'])('of a %s are a conflict', async (role) => {
    const started = await withAllScopes()
    const { service, feed } = started
    const [nobody, fan] = [await service.registerAs(role), await service.register()]
    const one = await feed('PUT', `/follows/${nobody.id}/${fan.id}`)
    const many = await feed('PUT', `/follows/${nobody.id}`, { follower_ids: [fan.id] })
    for (const answer of [one, many]) {
      expect(codeOf(answer)).toEqual([409, 'conflict'])
      expect(answer.headers.get('x-error-reason')).toBe('not_a_host')
    }
    expect(followers(service, nobody)).toBe(0)
    expect((await feed('DELETE', `/follows/${nobody.id}/${fan.id}`)).status).toBe(204)
  })

  test('of an admin count, and stay when a host loses the role', async () => {
    const started = await withAllScopes()
    const { service, feed } = started
    const [admin, fan] = [await service.registerAs('admin'), await service.register()]
    const other = await service.register()
    const path = `/follows/${admin.id}/${fan.id}`
    expect((await feed('PUT', path)).status).toBe(204)
    const { token } = await service.registerAs('admin')
    const body = { role: 'user' }
    await service.call('PATCH', `/v1/admin/users/${admin.id}`, { token, body })
    expect([(await feed('PUT', path)).status, followers(service, admin)]).toEqual([204, 1])
    expect((await feed('PUT', `/follows/${admin.id}/${other.id}`)).status).toBe(409)
    expect((await feed('DELETE', path)).status).toBe(204)
    expect((await feed('PUT', path)).status).toBe(409)
  })

  test('are listed, ordered by id, by page and by cursor', async () => {
    const started = await withAllScopes()
    const { service, feed } = started
    const host = await service.registerAs('host')
    const fans = [await service.register(), await service.register(), await service.register()]
    await feed('PUT', `/follows/${host.id}`, { follower_ids: fans.map(({ id }) => id) })
    const ids = async (query: string) => {
      const { body } = await feed('GET', `/follows?host_id=${host.id}${query}`)
      return [body.data.map((row: { follower_id: string }) => row.follower_id), body.pagination]
    }
    const all = fans.map(({ id }) => id).sort()
    expect(await ids('')).toEqual([all, { page: 1, per_page: 20, total: 3, total_pages: 1 }])
    const [first, { cursor }] = await ids('&limit=2')
    expect([first, (await ids(`&cursor=${cursor}`))[0]]).toEqual([all.slice(0, 2), all.slice(2)])
    expect((await feed('GET', '/follows')).body.error.details).toEqual({ host_id: 'is required' })
    const wrong = (await feed('GET', '/follows?page=0')).body.error.details
    expect(Object.keys(wrong).sort()).toEqual(['host_id', 'page'])
    const { paths } = (await service.call('GET', '/v1/openapi.json')).body
    const required = paths['/v1/service/follows'].get.parameters.flatMap(
      (one: { name: string; required: boolean }) => (one.required ? one.name : []),
    )
    expect(required).toEqual(['host_id'])
    expect((await feed('GET', `/follows?host_id=${unknownId}`)).status).toBe(404)
  })

  test('are imported in bulk, with counts of new, existing and unknown ones', async () => {
    const started = await withAllScopes()
    const { service, feed } = started
    const [host, a, b] = [
      await service.registerAs('host'),
      await service.register(),
      await service.register(),
    ]
    const ids = [a.id, b.id, a.id, unknownId, 'nonsense', host.id]
    const unknown = [unknownId, 'nonsense', host.id]
    const importThem = () => feed('PUT', `/follows/${host.id}`, { follower_ids: ids })
    expect((await importThem()).body).toEqual({ added: 2, already: 1, unknown })
    expect((await importThem()).body).toEqual({ added: 0, already: 3, unknown })
    expect(followers(service, host)).toBe(2)
    const tooMany = { follower_ids: Array(1_001).fill(a.id) }
    expect((await feed('PUT', `/follows/${host.id}`, tooMany)).status).toBe(400)
    const numbers = await feed('PUT', `/follows/${host.id}`, { follower_ids: [a.id, 5] })
    expect(numbers.body.error.details).toEqual({ 'follower_ids.1': 'must be a text' })
    expect((await feed('PUT', `/follows/${unknownId}`, { follower_ids: [] })).status).toBe(404)
  })

  test('are counted once, also when another write of the same commit fails', async () => {
    const started = await withAllScopes()
    const { service, feed } = started
    const [host, fan] = [await service.registerAs('host'), await service.register()]
    const imported = feed('PUT', `/follows/${host.id}`, { follower_ids: [fan.id, unknownId] })
    const failing = Array.from({ length: 20 }, () =>
      feed('PUT', `/follows/${host.id}/${unknownId}`),
    )
    expect((await imported).body).toEqual({ added: 1, already: 0, unknown: [unknownId] })
    expect(new Set((await Promise.all(failing)).map(({ status }) => status))).toEqual(
      new Set([404]),
    )
  })

  test('end with the account of the follower', async () => {
    const started = await withAllScopes()
    const { service, feed } = started
    const [host, fan] = [await service.registerAs('host'), await service.register()]
    await feed('PUT', `/follows/${host.id}/${fan.id}`)
    const body = { password: 'correct horse' }
    await service.call('DELETE', '/v1/users/me', { token: fan.token, body })
    expect(followers(service, host)).toBe(0)
    expect((await feed('PUT', `/follows/${host.id}/${fan.id}`)).status).toBe(404)
    expect((await feed('DELETE', `/follows/${host.id}/${fan.id}`)).status).toBe(204)
  })
})

describe('calls', () => {
  const environment = { CHAT_REQUIRE_ACTIVE_CALL: 'true' }
  const anyWithCalls = shared(() => startWithKey(undefined, { environment }))

  async function startCalls(options: Parameters<typeof startService>[0] = {}) {
    const started = await startWithKey(undefined, { environment, ...options })
    return { ...(await callsIn(started)), [Symbol.asyncDispose]: started[Symbol.asyncDispose] }
  }

  /** Two people of this test and their calls, in a service of several tests. */
  const newCalls = async () => callsIn(await anyWithCalls())

  async function callsIn({ service, feed }: Awaited<ReturnType<typeof withKey>>) {
    const { a: host, b: guest, conversationId } = await service.pair()
    const parties = { host_id: host.id, guest_id: guest.id }
    const idOf = (name: string) => `${name}-${host.id}`
    return {
      service,
      feed,
      host,
      guest,
      conversationId,
      /** The id of a call between the two. */
      idOf,
      report: (state: string, name = 'call-1') =>
        feed('PUT', `/calls/${idOf(name)}`, { state, ...parties }),
      async maySend() {
        const answers = [
          await service.say(host, conversationId, 'hello'),
          await service.say(guest, conversationId, 'hello'),
        ]
        const statuses = answers.map(({ status }) => status)
        expect(statuses[0]).toBe(statuses[1])
        return statuses[0] === 201
      },
    }
  }

  test.each([
    [[], false],
    [['ringing'], false],
    [['ringing', 'active'], true],
    [['active', 'active'], true],
    [['active', 'ended'], false],
    [['active', 'ringing'], true],
    [['active', 'missed'], true],
    [['ended', 'active'], false],
    [['missed', 'active'], false],
    [['ended', 'ended', 'ringing', 'active'], false],
  ])('after %j two people may chat: %p', async (states, expected) => {
    const calls = await newCalls()
    for (const state of states) expect((await calls.report(state)).status).toBe(200)
    expect(await calls.maySend()).toBe(expected)
  })

  test('are listed, also by state', async () => {
    await using calls = await startCalls()
    await calls.report('active', 'call-2')
    await calls.report('ended', 'call-1')
    const ids = async (query: string) =>
      (await calls.feed('GET', `/calls${query}`)).body.data.map(
        (call: { call_session_id: string }) => call.call_session_id,
      )
    expect([await ids(''), await ids('?limit=1'), await ids('?state=active')]).toEqual([
      [calls.idOf('call-1'), calls.idOf('call-2')],
      [calls.idOf('call-1')],
      [calls.idOf('call-2')],
    ])
  })

  test('have ended wherever they are shown after they have lapsed', async () => {
    const clock = createTestClock()
    await using calls = await startCalls({ clock })
    await calls.report('active')
    const list = async (query: string) => (await calls.feed('GET', `/calls${query}`)).body.data
    const numbers = async () =>
      [await list('?state=active'), await list('?state=ended')].map(({ length }) => length)
    clock.advance(4 * 3_600_000 - 1)
    expect(await numbers()).toEqual([1, 0])
    clock.advance(1)
    expect(await numbers()).toEqual([0, 1])
    expect(await list('')).toMatchObject([{ state: 'ended' }])
    expect((await calls.report('active')).body.state).toBe('ended')
    const { token } = await calls.service.login(calls.host.email)
    const { body } = await calls.service.call('GET', '/v1/users/me/export', { token })
    expect(body.calls).toMatchObject([{ state: 'ended' }])
  })

  test('name the caller to the host', async () => {
    const calls = await newCalls()
    await calls.report('ringing')
    const { host, service } = calls
    const { body } = await service.call('GET', '/v1/notifications', { token: host.token })
    const { display_name } = (await service.call('GET', '/v1/users/me', calls.guest)).body
    expect(body.data[0]).toMatchObject({
      body: `${display_name} is waiting for you.`,
      data: { guest_name: display_name },
    })
  })

  test('return the current call', async () => {
    const calls = await newCalls()
    await calls.report('ended')
    expect((await calls.report('active')).body).toEqual({
      call_session_id: calls.idOf('call-1'),
      state: 'ended',
      host_id: calls.host.id,
      guest_id: calls.guest.id,
      updated_at: expect.any(String),
    })
  })

  test('expire four hours after they became active, even when that is repeated', async () => {
    const clock = createTestClock()
    await using calls = await startCalls({ clock })
    await calls.report('active')
    clock.advance(4 * 3_600_000 - 1_000)
    await calls.report('active')
    const { token } = await calls.service.login(calls.host.email)
    const body = { body: 'still here' }
    const path = `/v1/chat/conversations/${calls.conversationId}/messages`
    const send = () => calls.service.call('POST', path, { token, body })
    expect((await send()).status).toBe(201)
    clock.advance(1_000)
    expect(codeOf(await send())).toEqual([403, 'forbidden'])
  })

  test('are independent: one ends, another continues', async () => {
    const calls = await newCalls()
    await calls.report('active', 'one')
    await calls.report('active', 'two')
    await calls.report('ended', 'one')
    expect(await calls.maySend()).toBe(true)
    await calls.report('ended', 'two')
    expect(await calls.maySend()).toBe(false)
  })

  test('do not restrict admins; a repeated message is still answered after the call', async () => {
    const calls = await newCalls()
    const { service, host, guest, conversationId } = calls
    await calls.report('active')
    const path = `/v1/chat/conversations/${conversationId}/messages`
    const once = { token: host.token, body: { body: 'hello', client_id: 'm1' } }
    const first = await service.call('POST', path, once)
    await calls.report('ended')
    const again = await service.call('POST', path, once)
    expect([again.status, again.body]).toEqual([201, first.body])
    const admin = await service.registerAs('admin')
    const desk = await service.openConversation(admin, guest)
    expect((await service.say(admin, desk, 'hello')).status).toBe(201)
    expect((await service.say(guest, desk, 'hello')).status).toBe(403)
  })

  test('restrict the socket, too', async () => {
    await using calls = await startCalls({ listen: true })
    const socket = await calls.service.connect(calls.host)
    const { conversationId } = calls
    socket.send({ type: 'message', conversation_id: conversationId, body: 'hello' })
    expect((await socket.next('error')).error.code).toBe('forbidden')
    await calls.report('active')
    socket.send({ type: 'message', conversation_id: conversationId, body: 'hello' })
    expect((await socket.next('new_message')).message.body).toBe('hello')
  })

  test.each([
    ['an unknown state', { state: 'paused' }, ['state']],
    ['unknown people', { host_id: unknownId, guest_id: unknownId }, ['host_id', 'guest_id']],
    ['no id at all', { guest_id: 'nobody' }, ['guest_id']],
  ])('refuse %s', async (_, wrong, fields) => {
    const calls = await newCalls()
    const { host, guest, feed } = calls
    const body = { state: 'active', host_id: host.id, guest_id: guest.id, ...wrong }
    const answer = await feed('PUT', `/calls/${calls.idOf('c1')}`, body)
    expect([answer.status, Object.keys(answer.body.error.details)]).toEqual([400, fields])
  })

  test('keep their participants', async () => {
    const calls = await newCalls()
    const { service, host, feed } = calls
    await calls.report('active')
    const other = await service.register()
    const body = { state: 'ended', host_id: host.id, guest_id: other.id }
    expect(codeOf(await feed('PUT', `/calls/${calls.idOf('call-1')}`, body))).toEqual([
      409,
      'conflict',
    ])
    const oneself = { state: 'active', host_id: host.id, guest_id: host.id }
    expect((await feed('PUT', `/calls/${calls.idOf('c2')}`, oneself)).status).toBe(400)
    for (const id of ['x'.repeat(129), '%zz', '%00', '%0a']) {
      expect((await feed('PUT', `/calls/${id}`, body)).status).toBe(404)
    }
  })

  test('of a removed person end, by the former id and external id', async () => {
    const calls = await newCalls()
    const { service, host, guest, feed } = calls
    service.sqlite.run("UPDATE users SET external_id = 'crm-7' WHERE id = ?", [guest.id])
    for (const id of ['call-1', 'call-2']) await calls.report('active', id)
    expect((await feed('DELETE', `/users/${guest.id}`)).status).toBe(204)
    expect((await calls.report('ended')).body).toMatchObject({ state: 'ended' })
    const ended = { state: 'ended', host_id: host.id, guest_id: 'ext:crm-7' }
    expect((await feed('PUT', `/calls/${calls.idOf('call-2')}`, ended)).body).toMatchObject({
      state: 'ended',
      guest_id: guest.id,
    })
    expect((await feed('PUT', `/calls/${calls.idOf('call-3')}`, ended)).status).toBe(400)
    expect(
      codeOf(await feed('PUT', `/calls/${calls.idOf('call-2')}`, { ...ended, host_id: guest.id })),
    ).toEqual([400, 'validation_error'])
  })

  test('are not required unless configured', async () => {
    const { service } = await withAllScopes()
    const { a, conversationId } = await service.pair()
    expect((await service.say(a, conversationId, 'hello')).status).toBe(201)
  })
})

describe('accounts', () => {
  test('show and change the fields that the platform owns', async () => {
    const started = await withAllScopes()
    const { service, feed } = started
    const ada = await service.register('ada')
    const shown = await feed('GET', `/users/${ada.id}`)
    expect(shown.body).toEqual({
      id: ada.id,
      email: 'ada@example.com',
      display_name: 'ada',
      role: 'user',
      email_verified: false,
      created_at: expect.any(String),
      avatar_url: expect.any(String),
      locale: 'en',
      totp: false,
      email_bounced_at: null,
      quiet_hours: null,
      disabled: false,
      external_id: null,
    })
    const changes = {
      role: 'host',
      email_verified: true,
      display_name: ' Ada L. ',
      avatar_url: 'https://example.com/a.png',
    }
    const changed = await feed('PATCH', `/users/${ada.id}`, { ...changes, id: unknownId })
    expect(changed.body).toEqual({ ...shown.body, ...changes, display_name: 'Ada L.' })
  })

  test('are unchanged where a change is null', async () => {
    const started = await withAllScopes()
    const { id } = await started.service.register()
    const changes = { role: 'host', email_verified: true, display_name: 'Ada', disabled: true }
    const changed = await started.feed('PATCH', `/users/${id}`, changes)
    const nulls = { role: null, email_verified: null, display_name: 'Ada', disabled: null }
    const again = await started.feed('PATCH', `/users/${id}`, nulls)
    expect([again.status, again.body]).toEqual([200, changed.body])
  })

  test.each([
    [{ email_verified: true }, 'verified_user', true],
    [{ email_verified: true, role: 'host' }, 'host', true],
    [{ role: 'user', email_verified: true }, 'verified_user', true],
    [{ email_verified: false, role: 'host' }, 'host', false],
  ])('%j makes a %s', async (changes, role, email_verified) => {
    const started = await withAllScopes()
    const { id } = await started.service.register()
    const { body } = await started.feed('PATCH', `/users/${id}`, changes)
    expect(body).toMatchObject({ role, email_verified })
  })

  test('lose the role with the verified address', async () => {
    const started = await withAllScopes()
    const { id } = await started.service.registerAs('verified_user')
    const { body } = await started.feed('PATCH', `/users/${id}`, { email_verified: false })
    expect(body).toMatchObject({ role: 'user', email_verified: false })
  })

  test('are locked out at once, sockets too, but no admin', async () => {
    await using started = await startWithKey(undefined, { listen: true })
    const { service, feed } = started
    const ada = await service.register()
    const socket = await service.connect(ada)
    await feed('PATCH', `/users/${ada.id}`, { disabled: true })
    expect(await socket.closed).toBe(4403)
    expect((await service.call('GET', '/v1/users/me', { token: ada.token })).status).toBe(401)
    const { id } = service.sqlite
      .query<{ id: string }, []>("SELECT id FROM users WHERE role = 'admin'")
      .get() ?? { id: '' }
    expect(codeOf(await feed('PATCH', `/users/${id}`, { disabled: true }))).toEqual([
      403,
      'forbidden',
    ])
  })

  test.each([
    [{ role: 'king' }, 'role'],
    [{ email_verified: 'yes' }, 'email_verified'],
    [{ display_name: '' }, 'display_name'],
    [{ display_name: 'ad\u200bmin' }, 'display_name'],
    [{ avatar_url: 'ftp://example.com' }, 'avatar_url'],
    [{ disabled: 1 }, 'disabled'],
  ])('refuse %j', async (changes, field) => {
    const started = await withAllScopes()
    const { id } = await started.service.register()
    const { status, body } = await started.feed('PATCH', `/users/${id}`, changes)
    expect([status, Object.keys(body.error.details)]).toEqual([400, [field]])
    expect((await started.feed('GET', `/users/${unknownId}`)).status).toBe(404)
  })
})

describe('a service key', () => {
  const statusWith = async (service: TestService, token: string) =>
    (await service.call('GET', '/v1/service/users/x', { token })).status

  test('may have an expiry, after which it opens nothing', async () => {
    const clock = createTestClock()
    await using service = await startService({ clock })
    const { token } = await service.registerAs('admin')
    const expires_at = new Date(clock.now() + 60_000).toISOString()
    const body = { name: 'short', scopes: ['users'], expires_at }
    const made = await service.call('POST', '/v1/admin/service-keys', { token, body })
    expect([made.status, made.body.expires_at]).toEqual([201, expires_at])
    expect(await statusWith(service, made.body.key)).toBe(404)
    clock.advance(60_000)
    expect(await statusWith(service, made.body.key)).toBe(401)
    for (const wrong of ['tomorrow', '2099-02-29T00:00:00Z', '2099-04-31T00:00:00+01:00']) {
      const refused = await service.call('POST', '/v1/admin/service-keys', {
        token,
        body: { ...body, expires_at: wrong },
      })
      expect(refused.body.error?.details).toEqual({
        expires_at: 'must be an ISO 8601 time with a time zone',
      })
    }
    const past = await service.call('POST', '/v1/admin/service-keys', { token, body })
    expect(past.body.error?.details).toEqual({ expires_at: 'must be in the future' })
  })

  test('sets the roles of users and hosts, but creates no admins', async () => {
    const { service } = await withAllScopes()
    const [ada, key] = [await service.register(), await service.issueKey(['users'])]
    const give = (role: string, more = {}) =>
      service.call('PATCH', `/v1/service/users/${ada.id}`, {
        token: key.token,
        body: { role, ...more },
      })
    expect((await give('host')).body.role).toBe('host')
    const refused = await give('admin')
    expect([refused.status, refused.headers.get('x-error-reason')]).toEqual([403, 'role_required'])
    const unverified = await give('verified_user')
    expect([unverified.status, unverified.body.error.details]).toEqual([
      400,
      { role: 'requires a verified e-mail address' },
    ])
    expect((await give('verified_user', { email_verified: true })).body).toMatchObject({
      role: 'verified_user',
      email_verified: true,
    })
  })
})
