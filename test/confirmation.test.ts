import { afterAll, expect, test } from 'bun:test'
import { describedRoutes } from '../src/http/route-table.ts'
import { codeOf } from './support/authenticator.ts'
import { createTestClock } from './support/clock.ts'
import { type Answer, type Person, startService } from './support/service.ts'
import { waitFor } from './support/wait.ts'

const clock = createTestClock()
const minute = 60_000
const password = 'correct horse'
const service = await startService({ clock })
afterAll(() => service[Symbol.asyncDispose]())

const refused = [403, 'confirm_required']
const resultOf = ({ status, headers }: Answer) =>
  status < 300 ? status : [status, headers.get('x-error-reason')]

type Action = { route: string; body?: object }

const webhook = { url: 'https://hooks.example.com/', events: ['user.created'] }
const news = { title: 'News', body: 'For you.' }
const ofAdmins: Action[] = [
  { route: 'PATCH /v1/admin/users/:id', body: { role: 'host' } },
  { route: 'DELETE /v1/admin/users/:id' },
  { route: 'DELETE /v1/admin/users/:id/sessions' },
  { route: 'DELETE /v1/admin/users/:id/totp' },
  { route: 'POST /v1/admin/users/:id/purge' },
  { route: 'PATCH /v1/admin/settings', body: { platform_name: 'Ours' } },
  { route: 'POST /v1/admin/service-keys', body: { name: 'k', scopes: ['calls'] } },
  { route: 'DELETE /v1/admin/service-keys/:id' },
  { route: 'POST /v1/admin/webhooks', body: webhook },
  { route: 'PATCH /v1/admin/webhooks/:id', body: { url: webhook.url } },
  { route: 'POST /v1/admin/webhooks/:id/secret' },
  { route: 'POST /v1/admin/notifications', body: { audience: 'all', ...news } },
]
const ofOwners: Action[] = [
  { route: 'POST /v1/auth/email/change', body: { new_email: 'new@example.org' } },
  { route: 'POST /v1/auth/password/change', body: { new_password: 'brand new horse' } },
  { route: 'POST /v1/auth/totp' },
  { route: 'POST /v1/auth/totp/recovery-codes', body: { code: '123456' } },
  { route: 'DELETE /v1/auth/totp', body: { code: '123456' } },
  { route: 'DELETE /v1/users/me', body: {} },
]

/** An admin who has logged in without a confirmation. */
async function admin() {
  const { email } = await service.registerAs('admin')
  return service.login(email)
}

async function act({ token }: { token: string }, { route, body }: Action) {
  const [method = '', path = ''] = route.replace(':id', 'x').split(' ')
  return resultOf(await service.call(method, path, { token, body }))
}

test('exactly these operations require a recent confirmation', () => {
  const asking = describedRoutes(service.app).filter(({ confirm }) => confirm)
  const asked = [...ofAdmins, ...ofOwners].map(({ route }) => route)
  expect(asking.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(asked.sort())
})

test.each(ofAdmins)(
  '$route accepts a confirmation in this session; a login does not count',
  async (action) => {
    const root = await admin()
    expect(await act(root, action)).toEqual(refused)
    await service.confirm(await service.login(root.email))
    expect(await act(root, action)).toEqual(refused)
    expect((await service.confirm(root)).status).toBe(204)
    expect(await act(root, action)).not.toEqual(refused)
    clock.advance(10 * minute)
    expect(await act(root, action)).not.toEqual(refused)
    clock.advance(1)
    expect(await act(root, action)).toEqual(refused)
  },
)

test('broadcasts to some users need no confirmation', async () => {
  const root = await admin()
  const some = [
    { audience: 'role', role: 'host', ...news },
    { audience: 'users', user_ids: [root.id], ...news },
  ]
  for (const body of some)
    expect(await act(root, { route: 'POST /v1/admin/notifications', body })).toBe(201)
})

test.each(ofOwners)('$route accepts the password or a confirmation', async (action) => {
  const ada = await service.register()
  const { route, body } = action
  const field = route.includes('password/change') ? 'current_password' : 'password'
  for (const absent of [undefined, null]) {
    expect(await act(ada, { route, body: { ...body, [field]: absent } })).toEqual(refused)
  }
  const wrong = await act(ada, { route, body: { ...body, [field]: 'wrong horse' } })
  await service.confirm(ada)
  const stillWrong = await act(ada, { route, body: { ...body, [field]: 'wrong horse' } })
  // These users have no factor.
  const needsFactor = body !== undefined && 'code' in body
  const unproved = needsFactor ? [404, null] : [401, null]
  expect([wrong, stillWrong]).toEqual([unproved, unproved])
  const done = route === 'POST /v1/auth/totp' ? 200 : 204
  expect(await act(ada, action)).toEqual(needsFactor ? [404, null] : done)
})

test('removing a second factor needs a confirmation within five minutes', async () => {
  const ada = await service.register()
  await service.confirm(ada)
  clock.advance(5 * minute)
  expect(await act(ada, { route: 'POST /v1/auth/totp' })).toBe(200)
  clock.advance(1)
  expect(await act(ada, { route: 'POST /v1/auth/totp' })).toEqual(refused)
  expect(await act(ada, { route: 'DELETE /v1/users/me', body: {} })).toBe(204)
})

test('a confirmation from before the clock was set back does not count', async () => {
  const ada = await service.register()
  clock.advance(14 * minute)
  expect((await service.confirm(ada)).status).toBe(204)
  clock.setBack(14 * minute)
  const action = { route: 'DELETE /v1/users/me', body: {} }
  expect(await act(ada, action)).toEqual(refused)
  await service.confirm(ada)
  expect(await act(ada, action)).toBe(204)
})

/** Enables a second factor. */
async function enrol(ada: Person) {
  const call = async (path: string, body: object) =>
    (await service.call('POST', `/v1/auth/${path}`, { token: ada.token, body })).body
  const { secret } = await call('totp', { password })
  const { recovery_codes } = await call('totp/confirm', { code: codeOf(secret, clock.now()) })
  clock.advance(minute / 2)
  return { codes: recovery_codes as string[], code: () => codeOf(secret, clock.now()) }
}

test('a code alone confirms, and a refreshed session stays confirmed', async () => {
  const ada = await service.register()
  const { code, codes } = await enrol(ada)
  const prove = (body: object) =>
    service.call('POST', '/v1/auth/confirm', { token: ada.token, body })
  expect((await prove({ code: code() })).status).toBe(204)
  const body = { refresh_token: ada.refreshToken }
  const renewed = (await service.call('POST', '/v1/auth/refresh', { body })).body.access_token
  const removal = { route: 'DELETE /v1/auth/totp', body: { code: codes[0] } }
  expect(await act({ token: renewed }, removal)).toBe(204)
})

test('a session opened by the platform cannot confirm; service keys need no confirmation', async () => {
  const key = await service.issueKey(['users', 'sessions'])
  const as = (method: string, path: string, body: object = {}) =>
    service.call(method, `/v1/service/users${path}`, { token: key.token, body })
  const made = await as('POST', '', { email: 'crm@example.com', external_id: 'crm-1' })
  const { access_token: token } = (await as('POST', '/ext:crm-1/sessions')).body
  expect(await act({ token }, { route: 'DELETE /v1/users/me', body: {} })).toEqual(refused)
  const prove = (body: object) => service.call('POST', '/v1/auth/confirm', { token, body })
  expect((await prove({ password: '' })).status).toBe(401)
  expect((await prove({ code: '123456' })).status).toBe(401)
  expect([made.status, (await as('PATCH', '/ext:crm-1', { role: 'host' })).status]).toEqual([
    201, 200,
  ])
})

/** Subjects of the mails to an address, which are logged without a mail server. */
async function mailsTo(email: string, count: number) {
  const subjects = () =>
    service
      .log()
      .split('\n')
      .filter((line) => line.includes(email) && /factor/.test(line)).length
  await waitFor(() => {
    clock.advance(500)
    return subjects() >= count
  }, `${count} mails to ${email}`)
  return subjects()
}

test('the owner gets a mail when a factor is added or removed, at a verified address only', async () => {
  const [ada, bob] = [await service.register(), await service.register()]
  service.sqlite.run('UPDATE users SET email_verified = 1 WHERE id = ?', [ada.id])
  for (const person of [bob, ada]) {
    const { code, codes } = await enrol(person)
    const body = { password, code: codes[0] }
    expect(code()).toBeString()
    expect(await act(person, { route: 'DELETE /v1/auth/totp', body })).toBe(204)
  }
  expect(await mailsTo(ada.email, 2)).toBe(2)
  expect(await mailsTo(bob.email, 0)).toBe(0)
})

test('an admin removes a lost factor: audited, mailed, and once', async () => {
  const [root, ada] = [await service.registerAs('admin'), await service.register()]
  service.sqlite.run('UPDATE users SET email_verified = 1 WHERE id = ?', [ada.id])
  await enrol(ada)
  const { token } = root
  const take = (id: string) => service.call('DELETE', `/v1/admin/users/${id}/totp`, { token })
  const rows = () => {
    const query = `/v1/admin/audit-log?target_id=${ada.id}&action=totp_disabled`
    return service.call('GET', query, { token })
  }
  for (let n = 0; n < 2; n++) expect((await take(ada.id)).status).toBe(204)
  expect((await rows()).body.data).toMatchObject([{ actor: { type: 'user', id: root.id } }])
  expect((await service.login(ada.email)).id).toBe(ada.id)
  expect(await mailsTo(ada.email, 2)).toBe(2)
  expect((await take('01ARZ3NDEKTSV4RRFFQ69G5FAV')).status).toBe(404)
})
