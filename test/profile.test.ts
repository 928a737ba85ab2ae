import { describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { type Person, startService, type TestService } from './support/service.ts'
import { shared } from './support/shared.ts'
import { waitFor, waitOut } from './support/wait.ts'

const anyService = shared(() => startService())

const timestamp = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

const me = (service: TestService, { token }: { token: string }) =>
  service.call('GET', '/v1/users/me', { token })
const patch = (service: TestService, { token }: Person, body: unknown) =>
  service.call('PATCH', '/v1/users/me', { token, body })
const sessionsOf = async (service: TestService, { token }: Person, query = '') =>
  (await service.call('GET', `/v1/auth/sessions${query}`, { token })).body

const anyWithAdmin = shared(() => startWithAdmin())

async function startWithAdmin() {
  const service = await startService()
  const admin = await service.registerAs('admin', 'admin')
  return { service, admin, [Symbol.asyncDispose]: () => service[Symbol.asyncDispose]() }
}

describe('the own profile', () => {
  test('is the user with picture and locale', async () => {
    const service = await anyService()
    const ada = await service.register('ada')
    expect((await me(service, ada)).body).toEqual({
      id: ada.id,
      email: 'ada@example.com',
      display_name: 'ada',
      role: 'user',
      email_verified: false,
      created_at: timestamp,
      avatar_url: expect.stringMatching(/^http:\/\/localhost:0\/v1\/avatars\/\d+\/A\.svg$/),
      locale: 'en',
      totp: false,
      email_bounced_at: null,
      quiet_hours: null,
    })
  })

  test('changes the given fields only', async () => {
    const service = await anyService()
    const ada = await service.register()
    const { body: before } = await me(service, ada)
    const avatar_url = 'https://pictures.example.com/ada.png'
    const changed = await patch(service, ada, {
      display_name: ' Ada L. ',
      avatar_url,
      locale: 'de',
    })
    const expected = { ...before, display_name: 'Ada L.', avatar_url, locale: 'de' }
    expect([changed.status, changed.body]).toEqual([200, expected])
    const refused = {
      role: 'admin',
      email: 'x@y.zz',
      email_verified: true,
      id: 'x',
      disabled: true,
    }
    const named = { ...refused, locale: 'de' }
    expect((await patch(service, ada, named)).body).toEqual(expected)
    expect((await patch(service, ada, refused)).status).toBe(400)
    const nulls = { display_name: null, avatar_url: null, locale: null }
    expect((await patch(service, ada, nulls)).body).toEqual({
      ...expected,
      avatar_url: expect.stringMatching(/\/AL\.svg$/),
    })
  })

  test.each([
    [{ locale: 'xx' }, { locale: 'must be one of: en, de, es, fr, pt' }],
    [{ display_name: ' ' }, { display_name: 'must not be empty' }],
    ...[
      'javascript:x',
      'https://ada:secret@pictures.example.com/',
      'https://ada@evil.example',
      'https://pictures.example.com/gpj.\u202ealoc.exe',
      'https://pictures.example.com/a\u200bb.png',
    ].map(
      (avatar_url) => [{ avatar_url }, { avatar_url: 'must be an http or https address' }] as const,
    ),
    [[], { body: 'must be an object' }],
  ])('refuses %j', async (body, details) => {
    const service = await anyService()
    const answer = await patch(service, await service.register(), body)
    expect([answer.status, answer.body.error.details]).toEqual([400, details])
  })

  test.each([
    '👨‍👩‍👧 Smith',
    '🏴‍☠️',
    '🏳️‍🌈',
    '👩🏽‍🚀',
    '🏃🏽‍♀️‍➡️',
    '👩‍❤️‍💋‍👨',
    '\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}',
    'Zoë O’Hara-李',
    'e\u0301',
  ])('accepts %j as a name', async (display_name) => {
    const service = await anyService()
    const { status, body } = await patch(service, await service.register(), { display_name })
    expect([status, body.display_name]).toEqual([200, display_name])
  })

  test.each([
    ['a new line', 'two\nlines'],
    ['a change of direction', 'gpj.\u202eexe'],
    ['a space without width', 'ad\u200bmin'],
    ['a joiner between letters', 'ad\u200dmin'],
    ['a joiner after an emoji', '🙂\u200d'],
    ['a soft hyphen', 'ad\u00admin'],
    ['tags that hide a text', '\u{1f3f4}\u{e0061}\u{e0062}\u{e007f}'],
  ])('refuses a name with %s', async (_, display_name) => {
    const service = await anyService()
    const answer = await patch(service, await service.register(), { display_name })
    const details = { display_name: 'must not contain control or format characters' }
    expect([answer.status, answer.body.error.details]).toEqual([400, details])
  })

  test.each(['\u3164', '\u2800\u2800', '\u0301', '\u200d'])(
    'refuses the invisible name %j',
    async (display_name) => {
      const service = await anyService()
      const answer = await patch(service, await service.register(), { display_name })
      const details = { display_name: 'must not be empty' }
      expect([answer.status, answer.body.error.details]).toEqual([400, details])
    },
  )

  test('each possible name has a picture with one letter', async () => {
    const service = await anyService()
    for (const display_name of ['ǰane ﬃx', 'ß', '李 小龙', '🙂', "<b>'&"]) {
      const person = await service.register()
      const { body } = await patch(service, person, { display_name })
      const picture = await service.call('GET', new URL(body.avatar_url).pathname)
      expect([display_name, picture.status]).toEqual([display_name, 200])
    }
  })
})

describe('sessions', () => {
  test('are listed with the current one marked, the newest login first', async () => {
    const service = await anyService()
    const laptop = await service.register()
    const phone = await service.login(laptop.email)
    const page = await sessionsOf(service, phone)
    expect(page).toEqual({
      success: true,
      data: [true, false].map((current) => ({
        id: expect.any(String),
        created_at: timestamp,
        last_used_at: timestamp,
        user_agent: null,
        ip: 'unknown',
        current,
      })),
      pagination: { page: 1, per_page: 20, total: 2, total_pages: 1 },
    })
    expect((await sessionsOf(service, laptop, '?limit=1')).pagination.has_more).toBe(true)
  })

  test('end one by one, at once and with their sockets', async () => {
    await using service = await startService({ listen: true })
    const laptop = await service.register('ada')
    const phone = await service.login(laptop.email)
    const socket = await service.connect(phone)
    const { data } = await sessionsOf(service, laptop)
    const other = data.find(({ current }: { current: boolean }) => !current)
    const end = (person: Person) =>
      service.call('DELETE', `/v1/auth/sessions/${other.id}`, { token: person.token })
    expect((await end(laptop)).status).toBe(204)
    expect(await socket.closed).toBe(4403)
    expect((await me(service, phone)).status).toBe(401)
    expect((await end(laptop)).status).toBe(404)
    expect((await sessionsOf(service, laptop)).data).toHaveLength(1)
  })

  test('an unknown one and that of another user are not found', async () => {
    const service = await anyService()
    const [ada, bob] = [await service.register(), await service.register()]
    const { id } = (await sessionsOf(service, bob)).data[0]
    for (const path of [id, 'x', '01ARZ3NDEKTSV4RRFFQ69G5FAV']) {
      const answer = await service.call('DELETE', `/v1/auth/sessions/${path}`, { token: ada.token })
      expect(answer.status).toBe(404)
    }
    expect((await me(service, bob)).status).toBe(200)
  })
})

describe('removing one’s account', () => {
  const leave = (service: TestService, { token }: Person, password: string) =>
    service.call('DELETE', '/v1/users/me', { token, body: { password } })

  test('removes all personal data; messages stay, shown as from a deleted user', async () => {
    await using service = await startService({ listen: true })
    const { a, b, conversationId } = await service.pair()
    await service.say(a, conversationId, 'remember me')
    const socket = await service.connect(a)
    expect((await leave(service, a, 'correct horse')).status).toBe(204)
    expect(await socket.closed).toBe(4403)
    expect((await me(service, a)).status).toBe(401)
    const { body } = await service.call('GET', '/v1/chat/conversations', { token: b.token })
    expect(body.data[0]).toMatchObject({
      participant: { id: a.id, display_name: 'Deleted user' },
      last_message: { body: 'remember me' },
    })
    const stored = JSON.stringify(
      service.sqlite.query('SELECT * FROM users WHERE id = ?').get(a.id),
    )
    expect(stored).not.toContain('person1')
    const squatter = { email: `${a.id.toLowerCase()}@deleted.invalid`, password: 'long enough' }
    await service.call('POST', '/v1/auth/register', { body: squatter })
    const login = (password: string, email = a.email) =>
      service.call('POST', '/v1/auth/login', { body: { email, password } })
    expect((await login('correct horse')).status).toBe(401)
    expect((await login('x', `deleted:${a.id}`)).status).toBe(401)
    expect((await service.register('person1')).id).not.toBe(a.id)
  })

  test('needs the password, and the last admin stays', async () => {
    const started = await anyWithAdmin()
    const { service, admin } = started
    expect((await leave(service, admin, 'wrong')).body.error.code).toBe('invalid_credentials')
    expect((await leave(service, admin, 'correct horse')).body.error.code).toBe('conflict')
    expect((await me(service, admin)).status).toBe(200)
  })
})

describe('administration', () => {
  test('changes roles, disables and enables, with immediate effect', async () => {
    const started = await anyWithAdmin()
    const { service, admin } = started
    const ada = await service.register()
    const change = (body: unknown) =>
      service.call('PATCH', `/v1/admin/users/${ada.id}`, { token: admin.token, body })
    expect((await change({ role: 'host' })).body).toMatchObject({ role: 'host', disabled: false })
    expect((await change({ disabled: true })).body.disabled).toBe(true)
    expect((await me(service, ada)).status).toBe(401)
    expect((await change({ role: null, disabled: true })).body).toMatchObject({
      role: 'host',
      disabled: true,
    })
    expect((await change({ disabled: false })).body.disabled).toBe(false)
    // Sessions from before the account was disabled stay ended.
    expect((await me(service, ada)).status).toBe(401)
    const body = { refresh_token: ada.refreshToken }
    expect((await service.call('POST', '/v1/auth/refresh', { body })).status).toBe(401)
    expect((await me(service, await service.login(ada.email))).body.role).toBe('host')
    expect((await change({ role: 'root' })).status).toBe(400)
    const shown = await service.call('GET', `/v1/admin/users/${ada.id}`, { token: admin.token })
    expect(shown.body).toMatchObject({ id: ada.id, email: ada.email, role: 'host' })
    const unknown = await service.call('GET', '/v1/admin/users/x', { token: admin.token })
    expect(unknown.status).toBe(404)
  })

  test('a request whose body arrives after access has ended is refused', async () => {
    await using service = await startService({ listen: true })
    const admin = await service.registerAs('admin', 'admin')
    const { hostname, port } = new URL(service.base)
    const socket = connect(Number(port), hostname)
    const text = JSON.stringify({ role: 'admin', disabled: false })
    socket.write(
      `PATCH /v1/admin/users/${admin.id} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${admin.token}\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\nConnection: close\r\n\r\n{`,
    )
    const { server } = service.app
    await waitFor(() => server?.pendingRequests === 1, 'the head of the request')
    await waitOut(40)
    service.sqlite.run("UPDATE users SET role = 'user' WHERE id = ?", [admin.id])
    socket.write(text.slice(1))
    let answer = ''
    for await (const chunk of socket) answer += String(chunk)
    expect(answer).toStartWith('HTTP/1.1 403')
    expect((await me(service, admin)).body.role).toBe('user')
  })

  test('the last admin cannot be demoted or disabled, also by themselves', async () => {
    const started = await anyWithAdmin()
    const { service, admin } = started
    for (const body of [{ role: 'user' }, { disabled: true }]) {
      const path = `/v1/admin/users/${admin.id}`
      const answer = await service.call('PATCH', path, { token: admin.token, body })
      expect([answer.status, answer.body.error.code]).toEqual([409, 'conflict'])
    }
  })

  test('ends every session of a user', async () => {
    const started = await anyWithAdmin()
    const { service, admin } = started
    const laptop = await service.register()
    const phone = await service.login(laptop.email)
    const path = `/v1/admin/users/${laptop.id}/sessions`
    expect((await service.call('DELETE', path, { token: admin.token })).status).toBe(204)
    const states = [await me(service, laptop), await me(service, phone), await me(service, admin)]
    expect(states.map(({ status }) => status)).toEqual([401, 401, 200])
  })

  test('reads the audit log, newest first and without secrets', async () => {
    await using started = await startWithAdmin()
    const { service, admin } = started
    const ada = await service.register('ada')
    await service.call('POST', '/v1/auth/login', {
      body: { email: ada.email, password: 'wrong horse' },
    })
    await service.login(ada.email)
    await service.call('PATCH', `/v1/admin/users/${ada.id}`, {
      token: admin.token,
      body: { role: 'host' },
    })
    await service.call('POST', '/v1/auth/logout', {
      token: ada.token,
      body: { refresh_token: ada.refreshToken },
    })
    const { body } = await service.call('GET', '/v1/admin/audit-log?per_page=5', {
      token: admin.token,
    })
    const own = { type: 'user', id: ada.id, name: 'ada' }
    const row = {
      id: expect.any(String),
      at: timestamp,
      ip: 'unknown',
      details: null,
      actor: own,
      target: own,
    }
    expect(body.data).toEqual([
      { ...row, action: 'logged_out' },
      {
        ...row,
        action: 'role_changed',
        actor: { type: 'user', id: admin.id, name: 'admin' },
        details: { from: 'user', to: 'host' },
      },
      { ...row, action: 'login_succeeded' },
      { ...row, action: 'login_failed' },
      { ...row, action: 'user_registered' },
    ])
    expect(body.pagination.total).toBe(6)
    const all = JSON.stringify(service.sqlite.query('SELECT * FROM audit_log').all())
    for (const secret of ['correct horse', 'wrong horse', ada.token, ada.refreshToken, 'argon2']) {
      expect(all).not.toContain(secret)
    }
  })

  test('no row of the audit log can be changed or deleted', async () => {
    const started = await anyWithAdmin()
    const { sqlite } = started.service
    for (const sql of ['DELETE FROM audit_log', "UPDATE audit_log SET action = 'x'"]) {
      expect(() => sqlite.run(sql)).toThrow('append-only')
    }
  })
})

describe('the first admin', () => {
  const form = { email: 'ops@example.com', password: 'correct horse' }

  test('is created once, with the token of the start', async () => {
    await using service = await startService()
    const token = await service.accounts.offerSetUp()
    const setUp = (body: object) => service.call('POST', '/v1/auth/set-up', { body })
    const made = await setUp({ ...form, token })
    expect(made.status).toBe(201)
    expect(made.body.user).toMatchObject({ role: 'admin', email_verified: true })
    expect((await setUp({ ...form, email: 'b@example.com', token })).status).toBe(400)
    expect(await service.accounts.offerSetUp()).toBeUndefined()
  })

  test('is not created once there is an admin', async () => {
    await using service = await startService()
    const token = await service.accounts.offerSetUp()
    await service.registerAs('admin')
    const { status, body } = await service.call('POST', '/v1/auth/set-up', {
      body: { ...form, token },
    })
    expect([status, Object.keys(body.error.details)]).toEqual([400, ['token']])
  })

  test('needs a token of this service, and a newer start invalidates older ones', async () => {
    await using service = await startService()
    const first = await service.accounts.offerSetUp()
    await service.accounts.offerSetUp()
    for (const token of ['', 'x', first]) {
      const answer = await service.call('POST', '/v1/auth/set-up', { body: { ...form, token } })
      expect([answer.status, Object.keys(answer.body.error.details)]).toEqual([400, ['token']])
    }
  })

  test('needs a password that is not easily guessed', async () => {
    await using service = await startService()
    const token = await service.accounts.offerSetUp()
    const setUp = (password: string) =>
      service.call('POST', '/v1/auth/set-up', { body: { ...form, password, token } })
    for (const password of ['12345678', 'OPS@example.com']) {
      const answer = await setUp(password)
      expect([answer.status, Object.keys(answer.body.error.details)]).toEqual([400, ['password']])
    }
    expect((await setUp(form.password)).status).toBe(201)
  })

  test('needs a valid name', async () => {
    await using service = await startService()
    const body = { ...form, display_name: 'ops\u202e', token: await service.accounts.offerSetUp() }
    const answer = await service.call('POST', '/v1/auth/set-up', { body })
    expect([answer.status, Object.keys(answer.body.error.details)]).toEqual([400, ['display_name']])
  })
})
