import { afterAll, beforeAll, expect, test } from 'bun:test'
import { day } from '../src/lib/clock.ts'
import { createTestClock } from './support/clock.ts'
import { type Person, startService } from './support/service.ts'
import { waitFor } from './support/wait.ts'

const clock = createTestClock()
let service: Awaited<ReturnType<typeof startService>>
let ada: Person
let bob: Person
beforeAll(async () => {
  service = await startService({ clock })
  ada = await service.registerAs('admin', 'ada')
  bob = await service.registerAs('admin', 'bob')
})
afterAll(() => service[Symbol.asyncDispose]())

const create = ({ token }: Person, path: string, key: string, body: object) =>
  service.call('POST', path, { token, body, headers: { 'x-idempotency-key': key } })

const keys = '/v1/admin/service-keys'
const creations = [
  ['/v1/admin/support/canned-replies', { title: 'Hello', body: 'Hello {name}' }, { body: 'Hi' }],
  [
    '/v1/admin/webhooks',
    { url: 'https://hooks.example/a', events: ['user.created'] },
    { description: 'other' },
  ],
  [keys, { name: 'bookings', scopes: ['users'] }, { name: 'others' }],
] as const

test.each(creations)('a repeated creation at %s creates one thing', async (path, body, other) => {
  const first = await create(ada, path, 'k1', body)
  const repeated = await create(ada, path, 'k1', body)
  expect([repeated.status, repeated.body.id]).toEqual([201, first.body.id])
  expect(repeated.headers.get('idempotent-replayed')).toBe('true')
  expect(repeated.body.secret).toBe(first.body.secret)
  const mismatch = await create(ada, path, 'k1', { ...body, ...other })
  expect([mismatch.status, mismatch.headers.get('x-error-reason')]).toEqual([
    409,
    'idempotency_mismatch',
  ])
  const ids = [await create(bob, path, 'k1', body), await create(ada, path, 'k2', body)]
  expect(new Set([first, ...ids].map((answer) => answer.body.id)).size).toBe(3)
  const deleted = await service.call('DELETE', `${path}/${ids[1]?.body.id}`, { token: ada.token })
  expect(deleted.status).toBe(204)
})

test.each(creations)('what was deleted at %s is not created again', async (path, body) => {
  const first = await create(ada, path, 'gone', body)
  await service.call('DELETE', `${path}/${first.body.id}`, { token: ada.token })
  const repeated = await create(ada, path, 'gone', body)
  expect([repeated.status, repeated.headers.get('x-error-reason')]).toEqual([
    409,
    'idempotency_mismatch',
  ])
})

test('a repeated creation of a service key replaces its unused secret, and no used one', async () => {
  const body = { name: 'calls', scopes: ['calls'] }
  const [lost, known] = [await create(ada, keys, 'k3', body), await create(ada, keys, 'k3', body)]
  const use = ({ body: { key } }: typeof lost) =>
    service.call('GET', '/v1/service/calls', { token: key })
  expect([(await use(lost)).status, (await use(known)).status]).toEqual([401, 200])
  expect((await create(ada, keys, 'k3', body)).status).toBe(409)
  expect((await use(known)).status).toBe(200)
})

test('a key is kept for a day', async () => {
  const body = { title: 'Bye', body: 'Bye {name}' }
  const path = '/v1/admin/support/canned-replies'
  const first = await create(ada, path, 'k4', body)
  clock.advance(day + 3_600_000)
  const kept = service.sqlite.query('SELECT 1 FROM idempotency_keys')
  await waitFor(() => kept.get() === null)
  Object.assign(ada, await service.login(ada.email))
  service.trust(ada)
  expect((await create(ada, path, 'k4', body)).body.id).not.toBe(first.body.id)
})
