import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { DomainEvent } from '../src/lib/events.ts'
import { codeOf } from './support/authenticator.ts'
import { png, upload } from './support/files.ts'
import { startService, type TestService } from './support/service.ts'

let service: TestService
const events: DomainEvent[] = []
const taken = () => events.splice(0)

beforeAll(async () => {
  service = await startService()
  service.events.subscribe((event) => events.push(event))
})
afterAll(() => service[Symbol.asyncDispose]())

test('webhooks get new, changed and removed users, and pictures', async () => {
  const { id, token } = await service.register()
  const ids = { user_id: id }
  const avatar_url = 'https://example.com/a.png'
  expect(taken()).toEqual([{ type: 'user.created', ids }])
  await service.call('PATCH', '/v1/users/me', { token, body: { avatar_url } })
  expect(taken()).toEqual([{ type: 'user.updated', ids, fileUrl: avatar_url }])
  await service.call('PATCH', '/v1/users/me', { token, body: { avatar_url: null } })
  expect(taken()).toEqual([{ type: 'user.updated', ids, fileUrl: null }])
  await service.call('DELETE', '/v1/users/me', { token, body: { password: 'correct horse' } })
  expect(taken()).toEqual([{ type: 'user.deleted', ids }])
})

test('an admin’s change of a user is one event, an empty change none', async () => {
  const [admin, { id }] = [await service.registerAs('admin'), await service.register()]
  taken()
  const body = { email_verified: true, role: 'host', disabled: false }
  const change = () => service.call('PATCH', `/v1/admin/users/${id}`, { token: admin.token, body })
  await change()
  await change()
  expect(taken()).toEqual([{ type: 'user.updated', ids: { user_id: id } }])
  const audited = service.sqlite.query(
    'SELECT action FROM audit_log WHERE actor_id = ? AND target_id = ? ORDER BY id',
  )
  expect(audited.values(admin.id, id).flat()).toEqual([
    'account_adopted',
    'email_verified',
    'role_changed',
    'role_changed',
  ])
})

test('a picture that is lost with its file is an event', async () => {
  const { id, token } = await service.register()
  const { body: file } = await upload(service, { token }, png, { type: 'image/png' })
  const body = { avatar_url: file.file_url }
  await service.call('PATCH', '/v1/users/me', { token, body })
  taken()
  await service.call('DELETE', `/v1/files/${file.id}`, { token })
  expect(taken()).toEqual([{ type: 'user.updated', ids: { user_id: id }, fileUrl: null }])
})

test('a second factor is an event, on and off', async () => {
  const { id, token } = await service.register()
  const totp = (method: string, path: string, body: object) =>
    service.call(method, `/v1/auth/totp${path}`, { token, body })
  const password = 'correct horse'
  const { secret } = (await totp('POST', '', { password })).body
  taken()
  const ids = { user_id: id }
  const { body } = await totp('POST', '/confirm', { code: codeOf(secret, Date.now()) })
  expect(taken()).toEqual([{ type: 'user.updated', ids }])
  await totp('DELETE', '', { password, code: body.recovery_codes[0] })
  expect(taken()).toEqual([{ type: 'user.updated', ids }])
})

test('an event shows the user as the platform sees them, and nothing of a removed one', async () => {
  const { id, token } = await service.register()
  const admin = await service.registerAs('admin')
  const { eventData } = service.accounts
  const seen = await service.call('GET', `/v1/admin/users/${id}`, { token: admin.token })
  expect(eventData['user.created']({ user_id: id })).toEqual({ user: seen.body })
  await service.call('DELETE', '/v1/users/me', { token, body: { password: 'correct horse' } })
  expect(eventData['user.updated']({ user_id: id })).toBeUndefined()
})
