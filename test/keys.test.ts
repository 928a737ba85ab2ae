import { expect, test } from 'bun:test'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import type { Core } from '../src/core.ts'
import { systemClock } from '../src/lib/clock.ts'
import { openKeyring } from '../src/modules/accounts/sign-in/keys.ts'
import { createAccessTokens } from '../src/modules/accounts/sign-in/tokens.ts'
import { createTestClock } from './support/clock.ts'
import { hostline } from './support/command.ts'
import { startService, type TestService } from './support/service.ts'
import { waitFor } from './support/wait.ts'

const rotate = (service: TestService, ...args: string[]) =>
  hostline(['keys', 'rotate', ...args], service.directory)
/** Makes the keys two hours old. */
const age = (service: TestService) =>
  service.sqlite.run('UPDATE signing_keys SET created_at = created_at - 7200000')
const kidOf = (token: string) =>
  JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).kid
const published = async (service: TestService): Promise<string[]> =>
  (await service.call('GET', '/.well-known/jwks.json')).body.keys.map(
    ({ kid }: { kid: string }) => kid,
  )

/** Resolves when the server has noticed the rotation. */
const threePublished = (service: TestService, clock: ReturnType<typeof createTestClock>) =>
  waitFor(async () => {
    clock.advance(1_000)
    return (await published(service)).length === 3
  }, 'the third key')

test('a key published for less than an hour is not used yet, unless it must be', async () => {
  await using service = await startService()
  const refused = await rotate(service)
  expect(refused).toMatchObject({
    exitCode: 1,
    err: expect.stringContaining('must first have been published for an hour'),
  })
  expect(await rotate(service, '--now')).toEqual({
    exitCode: 0,
    out: 'rotated: the old keys are withdrawn',
    err: '',
  })
})

test('a running server changes to the next key, and nobody is logged out', async () => {
  const clock = createTestClock()
  await using service = await startService({ clock })
  const ada = await service.register()
  const [before] = [await published(service)]
  const next = before.find((kid) => kid !== kidOf(ada.token))
  age(service)
  expect((await rotate(service)).exitCode).toBe(0)
  await threePublished(service, clock)
  expect((await service.call('GET', '/v1/users/me', { token: ada.token })).status).toBe(200)
  const body = { refresh_token: ada.refreshToken }
  const renewed = (await service.call('POST', '/v1/auth/refresh', { body })).body.access_token
  expect(kidOf(renewed)).toBe(next)
  expect((await service.call('GET', '/v1/users/me', { token: renewed })).status).toBe(200)
})

test('a retired key stays published for 75 minutes and is then refused', async () => {
  const clock = createTestClock()
  await using service = await startService({ clock })
  const ada = await service.register()
  age(service)
  await rotate(service)
  await threePublished(service, clock)
  expect(await published(service)).toContain(kidOf(ada.token))
  clock.advance(76 * 60_000)
  expect(await published(service)).not.toContain(kidOf(ada.token))
  const retired = service.sqlite.query(
    "SELECT kid, private_key = '' AS isForgotten FROM signing_keys WHERE state = 'retired'",
  )
  expect(retired.all()).toEqual([{ kid: kidOf(ada.token), isForgotten: 1 }])
  age(service)
  await rotate(service)
  await waitFor(() => !retired.values().flat().includes(kidOf(ada.token)))
})

test('the rotation is in the audit log', async () => {
  await using service = await startService()
  await rotate(service, '--now')
  const rows = service.sqlite.query('SELECT action, actor_type, target_type FROM audit_log').all()
  expect(rows).toEqual([{ action: 'keys_rotated', actor_type: 'command_line', target_type: 'key' }])
})

test('after a leak the old keys are withdrawn at once, with all tokens that they signed', async () => {
  const clock = createTestClock()
  await using service = await startService({ clock, listen: true })
  const ada = await service.register()
  const socket = await service.connect(ada)
  const me = (token: string) => service.call('GET', '/v1/users/me', { token })
  age(service)
  await rotate(service)
  await threePublished(service, clock)
  expect((await me(ada.token)).status).toBe(200)

  expect((await rotate(service, '--now')).exitCode).toBe(0)
  await waitFor(async () => {
    clock.advance(1_000)
    return (await me(ada.token)).status === 401
  }, 'the end of the token')
  expect(await published(service)).toHaveLength(2)
  expect(await published(service)).not.toContain(kidOf(ada.token))
  expect(await socket.closed).toBe(4401)
  const body = { refresh_token: ada.refreshToken }
  const renewed = await service.call('POST', '/v1/auth/refresh', { body })
  expect((await me(renewed.body.access_token)).status).toBe(200)
})

test('after the command nothing is signed with a withdrawn key', async () => {
  await using service = await startService()
  const ada = await service.register()
  await rotate(service, '--now')
  const { token } = await service.login(ada.email)
  expect(await published(service)).toContain(kidOf(token))
  expect(await published(service)).not.toContain(kidOf(ada.token))
  expect((await service.call('GET', '/v1/users/me', { token })).status).toBe(200)
})

test('a cached token is refused as soon as its key is no longer published', async () => {
  const clock = createTestClock()
  await using service = await startService({ clock })
  const ada = await service.register()
  const me = async () => (await service.call('GET', '/v1/users/me', { token: ada.token })).status
  expect(await me()).toBe(200)
  service.sqlite.run("UPDATE signing_keys SET kid = 'another' WHERE kid = ?", [kidOf(ada.token)])
  await hostline(['user', 'verify', ada.email], service.directory) // something to notice
  await waitFor(async () => {
    clock.advance(1_000)
    return (await me()) === 401
  }, 'the end of the token')
})

test('a token is refused whose key is withdrawn while its signature is checked', async () => {
  await using service = await startService()
  const { token } = await service.register()
  const parts = {
    orm: drizzle(service.sqlite),
    clock: systemClock,
    config: { issuer: 'localhost' },
  }
  const core = parts as unknown as Core // what is used
  const keyring = await openKeyring(core)
  let isWithdrawn = false
  const find = (kid: string) => (isWithdrawn ? undefined : keyring.find(kid))
  const checking = createAccessTokens(core, { ...keyring, find }).verify(token)
  isWithdrawn = true
  expect(await checking).toBeUndefined()
  isWithdrawn = false
  expect(await createAccessTokens(core, keyring).verify(token)).toBeDefined()
})
