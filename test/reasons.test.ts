import { expect, test } from 'bun:test'
import { AppError, type ErrorKind, errors } from '../src/lib/errors.ts'
import { locales, texts } from '../src/lib/i18n.ts'
import { startService } from './support/service.ts'

const kinds = Object.keys(errors) as ErrorKind[]

test('every 403 and 409 has a reason, and every 429 except that of a rate limit', () => {
  const silent = kinds.filter((kind) => {
    const { status, reason } = new AppError(kind)
    return [403, 409, 429].includes(status) && reason === undefined
  })
  expect(silent).toEqual(['rate_limited'])
})

test.each(locales)('each error has a sentence of its own in %s', (locale) => {
  const sentences = kinds.map((kind) => texts[locale].errors[kind])
  expect(new Set(sentences).size).toBe(kinds.length)
  for (const sentence of sentences) expect(sentence).toMatch(/^\p{Lu}.+\.$/u)
})

test('a refusal over REST has a reason, in the language of the request', async () => {
  await using service = await startService()
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
  await using service = await startService()
  const { token } = await service.register()
  const fine = await service.call('GET', '/v1/users/me', { token })
  const missing = await service.call('GET', '/v1/support/tickets/x', { token })
  expect([fine.status, missing.status]).toEqual([200, 404])
  for (const { headers } of [fine, missing]) expect(headers.has('x-error-reason')).toBe(false)
})

test('the reasons distinguish a host without a verified address from a user who is no host', async () => {
  await using service = await startService()
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
  await using service = await startService()
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
  await using service = await startService()
  const { body: document } = await service.call('GET', '/v1/openapi.json')
  const reasonsOf = (operation: { responses: Record<string, { $ref: string }> }, status: string) =>
    document.components.responses[operation.responses[status]?.$ref.split('/').at(-1) ?? '']
      ?.headers['X-Error-Reason']?.schema.enum
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
