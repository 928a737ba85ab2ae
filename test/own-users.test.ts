import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { startService, type TestService } from './support/service.ts'

let service: TestService
let key: { token: string }
let logins: { token: string }
let names = 0

beforeAll(async () => {
  service = await startService()
  key = await service.issueKey()
  logins = await service.issueKey(['sessions'])
})
afterAll(() => service[Symbol.asyncDispose]())

const feed = (method: string, path: string, body?: unknown) =>
  service.call(method, `/v1/service${path}`, { token: key.token, body })
const refusalOf = ({ status, headers }: { status: number; headers: Headers }) => [
  status,
  headers.get('x-error-reason'),
]
/** Somebody whom the platform calls `external_id`. */
async function bring(external_id: string, more: object = {}) {
  const body = { email: `p${++names}@example.com`, external_id, ...more }
  return (await feed('POST', '/users', body)).body
}
const ext = (externalId: string) => encodeURIComponent(`ext:${externalId}`)

describe('people whom the platform brings along', () => {
  test('are as it says, and are logged', async () => {
    const answer = await feed('POST', '/users', {
      email: 'Ada@Example.com',
      display_name: ' Ada L. ',
      role: 'host',
      email_verified: true,
      external_id: 'crm/1',
      locale: 'de',
      avatar_url: 'https://example.com/a.png',
    })
    const ada = {
      id: expect.any(String),
      email: 'ada@example.com',
      display_name: 'Ada L.',
      role: 'host',
      email_verified: true,
      created_at: expect.any(String),
      avatar_url: 'https://example.com/a.png',
      locale: 'de',
      totp: false,
      email_bounced_at: null,
      disabled: false,
      external_id: 'crm/1',
    }
    expect([answer.status, answer.body]).toEqual([201, ada])
    expect((await feed('GET', `/users/${answer.body.id}`)).body).toEqual(answer.body)
    const row = service.sqlite
      .query('SELECT action, actor_type FROM audit_log WHERE target_id = ?')
      .all(answer.body.id)
    expect(row).toEqual([{ action: 'user_created', actor_type: 'service_key' }])
  })

  test('need nothing but an address, and have no password until they set one', async () => {
    const { status, body } = await feed('POST', '/users', { email: 'plain@example.com' })
    expect([status, body.display_name, body.role, body.locale]).toEqual([
      201,
      'plain',
      'user',
      'en',
    ])
    for (const password of ['', 'none', 'correct horse']) {
      const login = { body: { email: 'plain@example.com', password } }
      expect((await service.call('POST', '/v1/auth/login', login)).status).toBe(401)
    }
    const verified = await feed('POST', '/users', { email: 'v@example.com', email_verified: true })
    expect(verified.body.role).toBe('verified_user')
  })

  test('are made once: the same external id gives the first, an address that is taken 409', async () => {
    const first = await bring('once')
    const again = await feed('POST', '/users', { email: 'other@example.com', external_id: 'once' })
    expect([again.status, again.body]).toEqual([201, first])
    const taken = await feed('POST', '/users', { email: first.email, external_id: 'twice' })
    expect(refusalOf(taken)).toEqual([409, 'email_taken'])
  })

  test.each([
    [{ role: 'admin' }, 403, undefined],
    [{ role: 'verified_user' }, 400, 'role'],
    [{ external_id: '' }, 400, 'external_id'],
    [{ external_id: 'x'.repeat(129) }, 400, 'external_id'],
    [{ external_id: 'a\nb' }, 400, 'external_id'],
    [{ email: 'nobody' }, 400, 'email'],
    [{ locale: 'xx' }, 400, 'locale'],
  ])('%j is refused', async (wrong, status, field) => {
    const answer = await feed('POST', '/users', { email: `x${++names}@example.com`, ...wrong })
    expect([answer.status, Object.keys(answer.body.error.details ?? {})[0]]).toEqual([
      status,
      field,
    ])
  })

  test('are looked up by address, external id, or both', async () => {
    const bob = await bring('bob 7')
    const emailsOf = async (query: string) =>
      (await feed('GET', `/users?${query}`)).body.data.map(({ id }: { id: string }) => id)
    const pagination = { page: 1, per_page: 20, total: 1, total_pages: 1 }
    const found = await feed('GET', `/users?email=${bob.email.toUpperCase()}`)
    expect(found.body).toEqual({ success: true, data: [bob], pagination })
    expect(await emailsOf('external_id=bob%207')).toEqual([bob.id])
    expect(await emailsOf(`external_id=bob%207&email=${bob.email}`)).toEqual([bob.id])
    expect(await emailsOf('external_id=bob%207&email=somebody@example.com')).toEqual([])
    expect(await emailsOf('external_id=nobody')).toEqual([])
    expect(await emailsOf('external_id=bob%207&page=2')).toEqual([])
    const none = await feed('GET', '/users')
    expect([none.status, Object.keys(none.body.error.details)]).toEqual([400, ['email']])
  })

  test('get another external id, but not that of somebody else, and are never made admins', async () => {
    const [cleo, dan] = [await bring('cleo'), await bring('dan')]
    const patch = (body: object) => feed('PATCH', `/users/${cleo.id}`, body)
    expect((await patch({ external_id: 'cleo 2' })).body.external_id).toBe('cleo 2')
    expect((await patch({ display_name: 'C', external_id: null })).body.external_id).toBe('cleo 2')
    expect(refusalOf(await patch({ external_id: 'dan' }))).toEqual([409, 'external_id_taken'])
    expect(refusalOf(await patch({ role: 'admin' }))).toEqual([403, 'role_required'])
    expect((await feed('GET', `/users/${ext('dan')}`)).body.id).toBe(dan.id)
  })

  test('leave no external id behind', async () => {
    const gone = await bring('gone')
    const root = await service.registerAs('admin')
    await service.call('DELETE', `/v1/admin/users/${gone.id}`, { token: root.token })
    expect((await feed('GET', `/users/${ext('gone')}`)).status).toBe(404)
    expect((await bring('gone')).id).not.toBe(gone.id)
  })
})

describe('`ext:` and the external id', () => {
  test('names the person in paths, whatever is in it', async () => {
    for (const externalId of ['a/b?c#d', 'ext:ext', 'ä 100%', 'x'.repeat(128)]) {
      const { id } = await bring(externalId)
      expect((await feed('GET', `/users/${ext(externalId)}`)).body.id).toBe(id)
    }
    const { body } = await feed('PATCH', `/users/${ext('a/b?c#d')}`, { display_name: 'Found' })
    expect(body.display_name).toBe('Found')
    for (const unknown of [ext('nobody'), ext(''), ext('x'.repeat(129)), 'ext:%']) {
      expect((await feed('GET', `/users/${unknown}`)).status).toBe(404)
    }
  })

  test('names hosts, followers and guests', async () => {
    const [host, fan, guest] = [await bring('host'), await bring('fan'), await bring('guest')]
    await feed('PATCH', `/users/${host.id}`, { role: 'host' })
    expect((await feed('PUT', `/follows/${ext('host')}/${ext('fan')}`)).status).toBe(204)
    const follower_ids = ['ext:fan', 'ext:guest', 'ext:nobody', fan.id]
    const imported = await feed('PUT', `/follows/${ext('host')}`, { follower_ids })
    expect(imported.body).toEqual({ added: 1, already: 2, unknown: 1 })
    expect((await feed('DELETE', `/follows/${host.id}/${ext('fan')}`)).status).toBe(204)
    expect((await feed('PUT', `/follows/${ext('nobody')}/${ext('fan')}`)).status).toBe(404)
    const call = { state: 'active', host_id: 'ext:host', guest_id: 'ext:guest' }
    expect((await feed('PUT', '/calls/c1', call)).body).toMatchObject({
      host_id: host.id,
      guest_id: guest.id,
    })
    const stranger = await feed('PUT', '/calls/c2', { ...call, guest_id: 'ext:nobody' })
    expect(stranger.body.error.details).toEqual({ guest_id: 'must be an existing user' })
  })

  test('names whom to notify, and who is meant', async () => {
    const [erik, fay] = [await bring('erik'), await bring('fay')]
    const event = { type: 'call_missed', data: { guest_id: 'ext:fay' } }
    const one = await feed('POST', '/notifications', { ...event, user_id: 'ext:erik' })
    expect(one.body.data[0].data).toEqual({ guest_id: fay.id })
    const user_ids = ['ext:erik', erik.id, 'ext:fay']
    const many = await feed('POST', '/notifications', { ...event, user_ids })
    expect(many.body.data).toHaveLength(2)
    const details = async (body: object) =>
      (await feed('POST', '/notifications', { ...event, ...body })).body.error.details
    expect(await details({ user_id: 'ext:nobody' })).toEqual({
      user_id: 'must be an existing user',
    })
    expect(await details({ user_id: 'ext:' })).toEqual({ user_id: 'must be a valid identifier' })
    expect(await details({ user_id: erik.id, data: { guest_id: 'ext:nobody' } })).toEqual({
      'data.guest_id': 'must be an existing user',
    })
  })

  test('is no id anywhere else', async () => {
    await bring('elsewhere')
    const { token } = await service.registerAs('admin')
    const as = (method: string, path: string, body?: object) =>
      service.call(method, path, { token, body })
    expect((await as('GET', `/v1/admin/users/${ext('elsewhere')}`)).status).toBe(404)
    expect((await as('POST', '/v1/chat/conversations', { user_id: 'ext:elsewhere' })).status).toBe(
      400,
    )
    const news = { audience: 'users', user_ids: ['ext:elsewhere'], title: 't', body: 'b' }
    expect((await as('POST', '/v1/admin/notifications', news)).status).toBe(400)
  })
})

describe('sessions that the platform opens', () => {
  const open = (reference: string, token = logins.token) =>
    service.call('POST', `/v1/service/users/${reference}/sessions`, { token })

  test('log somebody in, who is then as anybody who has logged in', async () => {
    const gina = await bring('gina')
    const { status, body } = await open(ext('gina'))
    expect([status, body.user.id, body.expires_in]).toEqual([201, gina.id, 900])
    const me = await service.call('GET', '/v1/users/me', { token: body.access_token })
    expect(me.body.email).toBe(gina.email)
    const renewed = await service.call('POST', '/v1/auth/refresh', { body })
    expect(renewed.status).toBe(200)
    const audit = service.sqlite.query(
      "SELECT actor_type FROM audit_log WHERE action = 'session_opened' AND target_id = ?",
    )
    expect(audit.all(gina.id)).toEqual([{ actor_type: 'service_key' }])
  })

  test('end when somebody becomes an admin, who logs in as one', async () => {
    const { id } = await bring('later-admin')
    const opened = await service.call('POST', `/v1/service/users/${id}/sessions`, logins)
    const { access_token: token, refresh_token } = opened.body
    const root = await service.registerAs('admin')
    const role = { token: root.token, body: { role: 'admin' } }
    expect((await service.call('PATCH', `/v1/admin/users/${id}`, role)).status).toBe(200)
    expect((await service.call('GET', '/v1/admin/system', { token })).status).toBe(401)
    const renewed = await service.call('POST', '/v1/auth/refresh', { body: { refresh_token } })
    expect(renewed.status).toBe(401)
    expect(refusalOf(await feed('PATCH', `/users/${id}`, { role: 'admin' }))).toEqual([
      403,
      'role_required',
    ])
  })

  test('take a scope that `all` does not contain', async () => {
    const { id } = await bring('hugo')
    expect(refusalOf(await open(id, key.token))).toEqual([403, 'scope_required'])
    const other = await service.call('GET', `/v1/service/users/${id}`, { token: logins.token })
    expect(refusalOf(other)).toEqual([403, 'scope_required'])
  })

  test('are not for admins, nor for who is disabled, unknown or gone', async () => {
    const admin = await service.registerAs('admin')
    expect(refusalOf(await open(admin.id))).toEqual([403, 'role_required'])
    const { id } = await bring('ines')
    await feed('PATCH', `/users/${id}`, { disabled: true })
    expect(refusalOf(await open(id))).toEqual([403, 'recipient_gone'])
    await service.call('DELETE', `/v1/admin/users/${id}`, { token: admin.token })
    for (const nobody of [id, ext('ines'), 'x']) expect((await open(nobody)).status).toBe(404)
  })
})

test('the header is the `dedupe_key` of a notification that has none', async () => {
  const { id } = await bring('jo')
  const notify = (body: object, idempotency: string) =>
    service.call('POST', '/v1/service/notifications', {
      token: key.token,
      headers: { 'x-idempotency-key': idempotency },
      body: { user_id: id, type: 'broadcast', ...body },
    })
  expect((await notify({}, 'one')).body.duplicates).toBe(0)
  expect((await notify({}, 'one')).body.duplicates).toBe(1)
  expect((await notify({ dedupe_key: 'two' }, 'one')).body.duplicates).toBe(0)
  expect((await notify({ dedupe_key: 'one' }, 'three')).body.duplicates).toBe(1)
})
