import { afterAll, expect, test } from 'bun:test'
import { describedRoutes } from '../src/http/route-table.ts'
import { startService } from './support/service.ts'

// Rules that hold for every route there is, also for those that come later.

const service = await startService({ environment: { RATE_LIMIT_ANONYMOUS: '100000/1m' } })
afterAll(() => service[Symbol.asyncDispose]())
const routes = describedRoutes(service.app)
const at = (path: string) => path.replace(/:\w+/g, 'x')

test.each(routes)(
  '$method $path: access $access, limit $limit',
  async ({ method, path, access, limit }) => {
    await using own = await startService({
      environment: {
        RATE_LIMIT_ANONYMOUS: '100/1m',
        RATE_LIMIT_LOGIN: '100/1m',
        RATE_LIMIT_REGISTER: '100/1m',
      },
    })
    const { status, headers, body } = await own.call(method, at(path))
    expect(headers.get('x-request-id')).toHaveLength(26)
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.has('x-ratelimit-limit')).toBe(limit !== 'none')
    if (access !== 'public') expect([status, body.error.code]).toEqual([401, 'unauthorized'])
  },
)

test('nothing is open that is not meant to be', () => {
  const open = routes.filter(({ access }) => access === 'public').map(({ path }) => path)
  expect(open.sort()).toEqual([
    '/',
    '/.well-known/jwks.json',
    '/assets/account.css',
    '/assets/account.js',
    '/healthz',
    '/metrics',
    '/readyz',
    '/reset-password',
    '/set-up',
    '/v1/.well-known/jwks.json',
    '/v1/asyncapi.json',
    '/v1/auth/login',
    '/v1/auth/password/forgot',
    '/v1/auth/password/reset',
    '/v1/auth/refresh',
    '/v1/auth/register',
    '/v1/auth/set-up',
    '/v1/auth/verify-email',
    '/v1/avatars/:hue/:file',
    '/v1/openapi.json',
    '/verify-email',
  ])
})

test.each(routes.filter(({ access }) => access === 'admin'))(
  '$method $path is for admins alone',
  async ({ method, path }) => {
    const { token } = await service.register()
    const { status, body } = await service.call(method, at(path), { token })
    expect([status, body.error.code]).toEqual([403, 'forbidden'])
  },
)
