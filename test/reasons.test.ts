import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createAuditTrail } from '../src/db/audit-trail.ts'
import { openToInspect } from '../src/db/open.ts'
import { AppError, type ErrorKind, errors } from '../src/lib/errors.ts'
import { locales, texts } from '../src/lib/i18n.ts'
import { findRefusedOrigin } from '../src/modules/operator/system.ts'
import { createTestClock } from './support/clock.ts'
import { startService } from './support/service.ts'
import { shared } from './support/shared.ts'
import { waitFor } from './support/wait.ts'

/** For tests that concern only people of their own. */
const anyService = shared(() => startService())

const kinds = Object.keys(errors) as ErrorKind[]

test('docs/reasons.md has a row for each status, code and reason, in the order of the status, and no other', () => {
  const given = readFileSync(join(import.meta.dir, '../docs/reasons.md'), 'utf8')
  const rows = given.split('\n').filter((line) => /^\| \d/.test(line))
  const cells = rows.map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
  const known = kinds.map((kind) => {
    const { status, code, reason } = new AppError(kind)
    return [`${status}`, `\`${code}\``, reason === undefined ? '–' : `\`${reason}\``].join(' ')
  })
  const described = cells.map((row) => row.slice(0, 3).join(' '))
  expect(described.toSorted()).toEqual([...new Set(known)].toSorted())
  expect(cells.map(([status]) => status)).toEqual(cells.map(([status]) => status).toSorted())
  for (const row of cells) expect(row).toEqual(Array(5).fill(expect.stringMatching(/./)))
})

test('every 403 and 409 and every 401 for a token has a reason, and every 429 except that of a rate limit', () => {
  const silent = kinds.filter((kind) => {
    const { status, code, reason } = new AppError(kind)
    return ([403, 409, 429].includes(status) || code === 'unauthorized') && reason === undefined
  })
  expect(silent).toEqual(['rate_limited'])
})

test.each(locales)('each error has a sentence of its own in %s', (locale) => {
  const sentences = kinds.map((kind) => texts[locale].errors[kind])
  expect(new Set(sentences).size).toBe(kinds.length)
  for (const sentence of sentences) expect(sentence).toMatch(/^\p{Lu}.+\.$/u)
})

test('a refusal over REST has a reason, in the language of the request', async () => {
  const service = await anyService()
  const { token } = await service.register()
  const shown = []
  for (const locale of locales) {
    const headers = { 'accept-language': locale }
    const answer = await service.call('GET', '/v1/admin/users', { token, headers })
    expect([answer.status, answer.headers.get('x-error-reason')]).toEqual([403, 'role_required'])
    shown.push(answer.body.error)
  }
  const codeOf = { code: 'forbidden', details: null }
  expect(shown).toEqual(
    locales.map((locale) => ({ ...codeOf, message: texts[locale].errors.role_required })),
  )
})

test('a response that is no refusal, or whose code says enough, has no reason', async () => {
  const service = await anyService()
  const { token } = await service.register()
  const fine = await service.call('GET', '/v1/users/me', { token })
  const missing = await service.call('GET', '/v1/support/tickets/x', { token })
  expect([fine.status, missing.status]).toEqual([200, 404])
  for (const { headers } of [fine, missing]) expect(headers.has('x-error-reason')).toBe(false)
})

test('the reasons distinguish a host without a verified address from a user who is no host', async () => {
  const service = await anyService()
  const [host, guest] = [await service.registerAs('host'), await service.register()]
  service.sqlite.run('UPDATE users SET email_verified = 0 WHERE id = ?', [host.id])
  const reasonOf = async (token: string) =>
    (
      await service.call('POST', '/v1/chat/broadcast', { token, body: { body: 'hello' } })
    ).headers.get('x-error-reason')
  expect(await reasonOf(host.token)).toBe('email_not_verified')
  expect(await reasonOf(guest.token)).toBe('role_required')
})

test.each(locales)('a key without the scope learns which one is missing in %s', async (locale) => {
  const service = await anyService()
  const { token } = await service.issueKey(['calls'])
  const headers = { 'accept-language': locale }
  const refusal = async (method: string, path: string) => {
    const answer = await service.call(method, `/v1/service/${path}`, { token, headers })
    const { message } = answer.body.error
    return [answer.status, answer.headers.get('x-error-reason'), message]
  }
  const missing = (scope: string) => [
    403,
    'scope_required',
    texts[locale].errors.scope_required.replace('{value}', scope),
  ]
  expect(await refusal('GET', 'users/x')).toEqual(missing('users'))
  expect(await refusal('POST', 'users/x/sessions')).toEqual(missing('sessions'))
  expect(missing('users')[2]).toContain('users')
})

test('a refused frame has a reason beside its error', async () => {
  await using service = await startService({ listen: true })
  const { conversationId } = await service.pair()
  const stranger = await service.register()
  const socket = await service.connect(stranger)
  socket.send({ type: 'message', conversation_id: conversationId, body: 'hello' })
  expect(await socket.next('error')).toEqual({
    type: 'error',
    error: { code: 'forbidden', message: texts.en.errors.not_participant, details: null },
    reason: 'not_participant',
    request: { type: 'message', conversation_id: conversationId },
  })
  socket.send({ type: 'message', conversation_id: 'x', body: 'hello' })
  expect(await socket.next('error')).not.toHaveProperty('reason')
})

test('pages of other origins may read the reason', async () => {
  const origin = 'https://app.example.com'
  await using service = await startService({ environment: { CORS_ORIGINS: origin } })
  const { headers } = await service.call('GET', '/v1/users/me', { headers: { origin } })
  expect(headers.get('access-control-expose-headers')).toContain('X-Error-Reason')
})

test('the description has the roles or the scope, and the reasons of each operation', async () => {
  const service = await anyService()
  const { body: document } = await service.call('GET', '/v1/openapi.json')
  const reasonsOf = (
    operation: { 'x-error-reasons': Record<string, string[]> },
    status: '403' | '409',
  ) => operation['x-error-reasons'][status]
  const { paths } = document
  const broadcast = paths['/v1/chat/broadcast'].post
  expect([broadcast['x-roles'], reasonsOf(broadcast, '403'), reasonsOf(broadcast, '409')]).toEqual([
    ['host', 'admin'],
    ['quota_exceeded', 'role_required', 'email_not_verified'],
    ['idempotency_mismatch'],
  ])
  const feed = paths['/v1/service/users/{id}'].get
  expect([feed['x-scope'], reasonsOf(feed, '403')]).toEqual(['users', ['scope_required']])
  expect(feed.description).toStartWith('Needs a service key with the scope `users`.')
  expect(paths['/v1/admin/users'].get['x-roles']).toEqual(['admin'])
  expect(JSON.stringify(document)).not.toContain('{value}')
})

describe('a refused token', () => {
  const dead = `e30.${Buffer.from('{"exp":1}').toString('base64url')}.x`
  const cases: [path: string, authorization: string | undefined, reason: string][] = [
    ['/v1/users/me', undefined, 'token_missing'],
    ['/v1/users/me', 'Basic YTpi', 'token_missing'],
    ['/v1/users/me', 'Bearer x y', 'token_missing'],
    ['/v1/users/me', 'Bearer x', 'token_invalid'],
    ['/v1/users/me', 'bearer  x', 'token_invalid'],
    ['/v1/users/me', `Bearer ${dead}`, 'token_expired'],
    ['/v1/users/me', `Bearer sk_${'x'.repeat(43)}`, 'wrong_kind_of_token'],
    ['/v1/users/me', `Bearer rt_${'x'.repeat(43)}`, 'wrong_kind_of_token'],
    ['/v1/service/users/x', undefined, 'token_missing'],
    ['/v1/service/users/x', `Bearer ${dead}`, 'wrong_kind_of_token'],
    ['/v1/service/users/x', `Bearer sk_${'x'.repeat(43)}`, 'token_invalid'],
    ['/v1/chat/ws', undefined, 'token_missing'],
    ['/v1/chat/ws', `Bearer ${dead}`, 'token_expired'],
  ]

  test.each(cases)(
    'for %s as %p says why, also in WWW-Authenticate',
    async (path, given, reason) => {
      const service = await anyService()
      const headers = given === undefined ? {} : { authorization: given }
      const answer = await service.call('GET', path, { headers })
      const shown = ['x-error-reason', 'www-authenticate'].map((name) => answer.headers.get(name))
      const text = texts.en.errors[reason as ErrorKind]
      const challenge = `Bearer error="invalid_token", error_description="${text}"`
      expect([answer.status, answer.body.error.code, ...shown]).toEqual([
        401,
        'unauthorized',
        reason,
        reason === 'token_missing' ? 'Bearer' : challenge,
      ])
    },
  )

  test('of an ended session says so; a wrong password is no challenge', async () => {
    const service = await anyService()
    const ada = await service.register()
    const body = { refresh_token: ada.refreshToken }
    await service.call('POST', '/v1/auth/logout', { token: ada.token, body })
    const ended = await service.call('GET', '/v1/users/me', { token: ada.token })
    expect([ended.status, ended.headers.get('x-error-reason')]).toEqual([401, 'session_ended'])
    const wrong = { email: ada.email, password: 'wrong horse' }
    const login = await service.call('POST', '/v1/auth/login', { body: wrong })
    expect([login.status, login.headers.get('www-authenticate')]).toEqual([401, null])
  })
})

test('a known path with another method is a 404 that names the methods', async () => {
  const service = await anyService()
  const missing = async (method: string, path: string) => {
    const { status, headers, body } = await service.call(method, path)
    return [status, body.error.code, headers.get('x-error-reason'), headers.get('allow')]
  }
  const wrong = [404, 'not_found', 'method_not_allowed']
  expect(await missing('GET', '/v1/auth/login')).toEqual([...wrong, 'POST'])
  expect(await missing('POST', '/v1/users/me')).toEqual([...wrong, 'GET, PATCH, DELETE'])
  expect(await missing('PUT', '/v1/support/tickets/x')).toEqual([...wrong, 'GET'])
  expect(await missing('DELETE', '/v1/operator/users')).toEqual([404, 'not_found', null, null])
  expect(await missing('GET', '/v1/nothing')).toEqual([404, 'not_found', null, null])
})

test('a page of an origin that is not allowed is logged once an hour, and shown to the operator', async () => {
  const clock = createTestClock()
  await using service = await startService({
    clock,
    environment: { CORS_ORIGINS: 'https://app.example.com' },
  })
  const from = (origin: string) => service.call('GET', '/v1/users/me', { headers: { origin } })
  const logged = () => service.logged.filter((line) => line.includes('CORS_ORIGINS')).length
  for (const origin of ['https://app.example.com', 'null']) await from(origin)
  expect(logged()).toBe(0)
  for (const _ of [1, 2]) await from('http://localhost:5173')
  expect(logged()).toBe(1)
  clock.advance(3_600_000)
  await from('http://localhost:5173')
  expect(logged()).toBe(2)
  for (let n = 0; n < 30; n++) await from(`https://${n}.example.com`)
  expect(logged()).toBe(11)
  const root = await service.registerAs('admin')
  const { warnings } = (await service.call('GET', '/v1/admin/system', root)).body
  const { message } = warnings.find(({ code }: { code: string }) => code === 'origin_refused')
  expect(message).toContain('https://8.example.com')
})

test('an own page under another name than the public one is not taken for a refused one', async () => {
  await using service = await startService()
  const own = { origin: 'http://192.0.2.1:3000', host: '192.0.2.1:3000' }
  await service.call('GET', '/v1/users/me', { headers: own })
  expect(service.logged.filter((line) => line.includes('CORS_ORIGINS'))).toEqual([])
})

test('a refused origin is no warning once it is allowed, or after a day', async () => {
  const clock = createTestClock()
  await using service = await startService({
    clock,
    environment: { CORS_ORIGINS: 'https://app.example.com' },
  })
  await service.call('GET', '/v1/users/me', { headers: { origin: 'https://a.example' } })
  const database = openToInspect(service.directory)
  const found = (corsOrigins: string[]) =>
    findRefusedOrigin(createAuditTrail(database.orm, String, clock), { corsOrigins })
  await waitFor(() => found(['https://b.example']) === 'https://a.example')
  expect(found(['https://a.example'])).toBeUndefined()
  clock.advance(86_400_001)
  expect(found([])).toBeUndefined()
  database.close()
})
