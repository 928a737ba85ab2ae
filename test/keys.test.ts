import { expect, test } from 'bun:test'
import { run } from '../src/cli/run.ts'
import { createTestClock } from './support/clock.ts'
import { startService, type TestService } from './support/service.ts'

async function rotate(service: TestService, ...args: string[]) {
  const err: string[] = []
  const exitCode = await run(['keys', 'rotate', ...args], {
    environment: { DATA_DIR: service.directory },
    isInteractive: false,
    out() {},
    err: (line) => err.push(line),
    readStdin: async () => '',
  })
  return { exitCode, err: err.join('\n') }
}

const kidOf = (token: string) =>
  JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).kid
const published = async (service: TestService): Promise<string[]> =>
  (await service.call('GET', '/.well-known/jwks.json')).body.keys.map(
    ({ kid }: { kid: string }) => kid,
  )

test('a key that has not been published for an hour is not used yet, unless it must be', async () => {
  await using service = await startService()
  const refused = await rotate(service)
  expect(refused).toMatchObject({
    exitCode: 1,
    err: expect.stringContaining('has not been published for an hour'),
  })
  expect(await rotate(service, '--now')).toEqual({ exitCode: 0, err: '' })
})

test('a running server goes over to the next key, and nobody is logged out', async () => {
  const clock = createTestClock()
  await using service = await startService({ clock })
  const ada = await service.register()
  const [before] = [await published(service)]
  const next = before.find((kid) => kid !== kidOf(ada.token))
  expect((await rotate(service, '--now')).exitCode).toBe(0)
  const deadline = Date.now() + 2_000
  while ((await published(service)).length < 3 && Date.now() < deadline) {
    clock.advance(1_000)
    await Bun.sleep(10)
  }
  expect(await published(service)).toHaveLength(3)
  expect((await service.call('GET', '/v1/users/me', { token: ada.token })).status).toBe(200)
  const body = { refresh_token: ada.refreshToken }
  const renewed = (await service.call('POST', '/v1/auth/refresh', { body })).body.access_token
  expect(kidOf(renewed)).toBe(next)
  expect((await service.call('GET', '/v1/users/me', { token: renewed })).status).toBe(200)
})

test('a retired key stays published for 75 minutes and is then worth nothing', async () => {
  const clock = createTestClock()
  await using service = await startService({ clock })
  const ada = await service.register()
  await rotate(service, '--now')
  clock.advance(1_000)
  await Bun.sleep(50)
  expect(await published(service)).toContain(kidOf(ada.token))
  clock.advance(76 * 60_000)
  expect(await published(service)).not.toContain(kidOf(ada.token))
})

test('the rotation is in the audit log', async () => {
  await using service = await startService()
  await rotate(service, '--now')
  const rows = service.sqlite.query('SELECT action, actor_type, target_type FROM audit_log').all()
  expect(rows).toEqual([{ action: 'keys_rotated', actor_type: 'command_line', target_type: 'key' }])
})
