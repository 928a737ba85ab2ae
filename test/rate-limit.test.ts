import { describe, expect, test } from 'bun:test'
import { createRateLimiter } from '../src/http/rate-limit.ts'
import { clientIp, ipGroup, parseNetwork } from '../src/lib/ip-network.ts'
import { SlidingWindow } from '../src/lib/limits.ts'
import { createTestClock } from './support/clock.ts'
import { startService } from './support/service.ts'
import { waitFor } from './support/wait.ts'

const tenPerMinute = { count: 10, windowMilliseconds: 60_000 }

describe('a sliding window', () => {
  test('never lets more than N requests through in any window', () => {
    const window = new SlidingWindow()
    const taken: number[] = []
    let now = 0
    let seed = 7
    for (let n = 0; n < 5_000; n++) {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
      now += seed % 9_000
      if (window.take(tenPerMinute, now)) taken.push(now)
    }
    const most = taken.map((end) => taken.filter((at) => at > end - 60_000 && at <= end).length)
    expect(Math.max(...most)).toBe(10)
  })

  test('counts later times as now when the clock is set back', () => {
    const window = new SlidingWindow()
    for (let n = 0; n < 10; n++) window.take(tenPerMinute, 3_600_000)
    expect(window.take(tenPerMinute, 0)).toBe(false)
    expect(window.take(tenPerMinute, 60_000)).toBe(true)
  })

  test('does not count refused requests', () => {
    const window = new SlidingWindow()
    for (let n = 0; n < 10; n++) expect(window.take(tenPerMinute, 0)).toBe(true)
    for (let at = 0; at < 60_000; at += 1_000) expect(window.take(tenPerMinute, at)).toBe(false)
    expect(window.take(tenPerMinute, 60_000)).toBe(true)
  })
})

test('the memory of the limiter is bounded: the least recently used key is evicted', () => {
  const limiter = createRateLimiter(() => 0, 2)
  const take = (key: string) => limiter.take(key, tenPerMinute)?.remaining
  expect([take('a'), take('b'), take('a'), take('c'), take('a'), take('b')]).toEqual([
    9, 9, 8, 9, 7, 9,
  ])
})

describe('the headers', () => {
  test('show the limit, what remains, and when the oldest request leaves the window', async () => {
    const clock = createTestClock(1_800_000_000_000)
    await using service = await startService({
      clock,
      environment: { RATE_LIMIT_ANONYMOUS: '2/1m' },
    })
    const get = async () => {
      const { status, headers } = await service.call('GET', '/.well-known/jwks.json')
      const names = [
        'x-ratelimit-limit',
        'x-ratelimit-remaining',
        'x-ratelimit-reset',
        'retry-after',
      ]
      return [status, ...names.map((name) => headers.get(name))]
    }
    expect(await get()).toEqual([200, '2', '1', '1800000060', null])
    clock.advance(30_000)
    expect(await get()).toEqual([200, '2', '0', '1800000060', null])
    clock.advance(29_500)
    expect(await get()).toEqual([429, '2', '0', '1800000060', '1'])
    clock.advance(500)
    expect(await get()).toEqual([200, '2', '0', '1800000090', null])
  })

  test('are absent when the limit is off', async () => {
    await using service = await startService()
    const { headers } = await service.call('GET', '/.well-known/jwks.json')
    expect(headers.has('x-ratelimit-limit')).toBe(false)
    expect(headers.has('x-request-id')).toBe(true)
  })
})

describe('the limit of a request', () => {
  const environment = {
    RATE_LIMIT_LOGIN: '2/15m',
    RATE_LIMIT_REGISTER: '3/1h',
    RATE_LIMIT_USER: '4/1m',
    RATE_LIMIT_ANONYMOUS: '5/1m',
  }
  const body = { email: 'nobody@example.com', password: 'wrong horse' }
  const newcomer = { email: 'new@example.com', password: 'correct horse' }

  test('logins and registrations have one each, failed ones count, a token changes nothing', async () => {
    await using service = await startService({ environment })
    const { token } = await service.register()
    const limitOf = async (method: string, path: string, call = {}) =>
      Number((await service.call(method, path, call)).headers.get('x-ratelimit-limit'))
    expect(await limitOf('POST', '/v1/auth/login', { body, token })).toBe(2)
    expect(await limitOf('POST', '/v1/auth/register', { body: newcomer, token })).toBe(3)
    expect(await limitOf('GET', '/v1/chat/conversations', { token })).toBe(4)
    expect(await limitOf('GET', '/nope', { token })).toBe(4)
    expect(await limitOf('GET', '/v1/chat/conversations', { token: 'forged' })).toBe(5)
    expect(await limitOf('POST', '/v1/auth/refresh', { body: {} })).toBe(5)
    expect(await limitOf('GET', '/v1/auth/login')).toBe(5)
    await service.call('POST', '/v1/auth/login', { body })
    expect((await service.call('POST', '/v1/auth/login', { body })).status).toBe(429)
  })

  test('each user has one, shared by their devices', async () => {
    await using service = await startService({ environment })
    const [ada, bob] = [await service.register('ada'), await service.register('bob')]
    const phone = await service.login(ada.email)
    const get = async (token: string) =>
      (await service.call('GET', '/v1/chat/conversations', { token })).status
    for (const { token } of [ada, ada, phone, phone]) expect(await get(token)).toBe(200)
    expect([await get(ada.token), await get(bob.token)]).toEqual([429, 200])
  })

  test('health, pictures and the start page have none', async () => {
    await using service = await startService({ environment: { RATE_LIMIT_ANONYMOUS: '1/1m' } })
    for (const path of ['/healthz', '/readyz', '/v1/avatars/1/A.svg', '/', '/healthz']) {
      const { status, headers } = await service.call('GET', path)
      expect([status, headers.has('x-ratelimit-limit')]).toEqual([200, false])
    }
  })

  test.each([
    ['/v1/auth/login', { email: 'a@example.com' }, body, 2],
    ['/v1/auth/register', { email: 'a', password: 'x' }, newcomer, 3],
  ])('invalid bodies for %s are ordinary requests', async (path, invalid, valid, limit) => {
    await using service = await startService({ environment })
    const post = (body: object) => service.call('POST', path, { body })
    const shown = ({ status, headers }: Awaited<ReturnType<typeof post>>) => [
      status,
      ...['limit', 'remaining'].map((name) => Number(headers.get(`x-ratelimit-${name}`))),
    ]
    for (const left of [4, 3, 2]) expect(shown(await post(invalid))).toEqual([400, 5, left])
    const malformed = { method: 'POST', body: '{', headers: { 'content-type': 'application/json' } }
    expect((await service.request(path, malformed)).headers.get('x-ratelimit-remaining')).toBe('1')
    const { headers } = await post(valid)
    expect(headers.get('x-ratelimit-remaining')).toBe(String(limit - 1))
    expect(shown(await post(invalid))).toEqual([400, 5, 0])
    expect(shown(await post(invalid))).toEqual([429, 5, 0])
  })

  test('an invalid body that arrives after the window gives back no later attempt', async () => {
    const clock = createTestClock()
    await using service = await startService({ clock, environment: { RATE_LIMIT_LOGIN: '2/1m' } })
    const logIn = async () => (await service.call('POST', '/v1/auth/login', { body })).status
    const { promise: end, resolve } = Promise.withResolvers<void>()
    const slow = Array.from({ length: 2 }, () =>
      service.request('/v1/auth/login', {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'transfer-encoding': 'chunked' },
        body: new ReadableStream({ pull: (controller) => end.then(() => controller.close()) }),
      }),
    )
    await waitFor(async () => (await logIn()) === 429, 'both to count')
    clock.advance(60_000)
    expect([await logIn(), await logIn(), await logIn()]).toEqual([401, 401, 429])
    resolve()
    expect((await Promise.all(slow)).map(({ status }) => status)).toEqual([400, 400])
    expect(await logIn()).toBe(429)
  })

  test('a refused request says when to try again, in every language', async () => {
    await using service = await startService({ environment })
    for (const _ of [1, 2]) await service.call('POST', '/v1/auth/login', { body })
    const said = async (locale: string) => {
      const headers = { 'accept-language': locale }
      return (await service.call('POST', '/v1/auth/login', { body, headers })).body.error.message
    }
    expect(await said('en')).toBe('Too many requests. Please try again in 15 minutes.')
    expect(await said('de')).toBe(
      'Zu viele Anfragen. Bitte versuchen Sie es in 15 Minuten noch einmal.',
    )
    expect(await said('pt')).toBe('Demasiados pedidos. Tente novamente dentro de 15 minutos.')
  })

  test('the defaults are those of the contract', async () => {
    const defaults = Object.fromEntries(Object.keys(environment).map((name) => [name, '']))
    await using service = await startService({ environment: defaults })
    const limits = await Promise.all([
      service.call('POST', '/v1/auth/login', { body }),
      service.call('POST', '/v1/auth/register', { body: newcomer }),
      service.call('GET', '/nope'),
      service.call('GET', '/nope', { token: (await service.register()).token }),
    ])
    expect(limits.map(({ headers }) => headers.get('x-ratelimit-limit'))).toEqual([
      '5',
      '3',
      '30',
      '100',
    ])
  })
})

describe('logins and registrations from IPv6', () => {
  const environment = {
    TRUSTED_PROXIES: '127.0.0.0/8',
    RATE_LIMIT_LOGIN: '1/15m',
    RATE_LIMIT_REGISTER: '1/1h',
    RATE_LIMIT_ANONYMOUS: '1/1m',
  }
  let people = 0

  test.each([
    ['/v1/auth/login', 21, 429],
    ['/v1/auth/register', 21, 429],
    ['/v1/auth/refresh', 21, 400],
  ])(
    '%s: a /48 has 20 times the limit of a /64, the request %d is answered with %d',
    async (path, _, last) => {
      const clock = createTestClock()
      await using service = await startService({ listen: true, clock, environment })
      const from = async (address: string) => {
        const headers = { 'x-forwarded-for': address }
        const email = `a${++people}@example.com`
        const body = path.endsWith('refresh') ? {} : { email, password: 'wrong horse' }
        const answer = await service.call('POST', path, { body, headers })
        const status = answer.status === 429 ? 429 : 400
        return [status, answer.headers.get('x-ratelimit-remaining')]
      }
      for (let n = 1; n <= 20; n++) expect(await from(`2001:db8:1:${n}::1`)).toEqual([400, '0'])
      expect(await from('2001:db8:1:ffff::1')).toEqual([last, '0'])
      expect(await from('2001:db8:2::1')).toEqual([400, '0'])
      expect(await from('2001:db8:2::2')).toEqual([429, '0'])
      expect(await from('192.0.2.1')).toEqual([400, '0'])
      // Requests refused for the /48 do not count for the /64.
      clock.advance(3_600_000)
      expect(await from('2001:db8:1:ffff::1')).toEqual([400, '0'])
    },
  )
})

test.each([
  ['off', null],
  ['100/1m', '100'],
])(
  'a refusal by another rule says that nothing remains; the own limit is %s',
  async (rule, limit) => {
    await using service = await startService({ environment: { RATE_LIMIT_USER: rule } })
    const { token } = await service.register()
    const { status, headers } = await service.call('POST', '/v1/auth/verify-email/resend', {
      token,
    })
    expect([status, headers.get('x-ratelimit-remaining')]).toEqual([429, '0'])
    expect(headers.get('x-ratelimit-limit')).toBe(limit)
  },
)

describe('the address of a client', () => {
  const trusted = ['10.0.0.0/8', '::1', 'fd00::/8'].map(parseNetwork)

  test.each([
    ['203.0.113.7', null, '203.0.113.7'],
    ['203.0.113.7', '1.2.3.4', '203.0.113.7'],
    ['10.0.0.1', null, '10.0.0.1'],
    ['10.0.0.1', '203.0.113.7', '203.0.113.7'],
    ['10.0.0.1', '1.2.3.4, 203.0.113.7', '203.0.113.7'],
    ['10.0.0.1', '203.0.113.7, 10.0.0.9, 10.1.1.1', '203.0.113.7'],
    ['10.0.0.1', '10.0.0.5', '10.0.0.5'],
    ['10.0.0.1', '1.2.3.4, nonsense', '10.0.0.1'],
    ['10.0.0.1', '203.0.113.7:4711', '203.0.113.7'],
    ['::ffff:10.0.0.1', '::ffff:203.0.113.7', '203.0.113.7'],
    ['::1', '[2001:db8::7]:443', '2001:db8::7'],
    [undefined, '1.2.3.4', 'unknown'],
  ])('peer %s, forwarded for %s: %s', (peer, forwarded, address) => {
    expect(clientIp(peer, forwarded, trusted)).toBe(address)
  })

  test('IPv6 addresses share a limit by /64', () => {
    expect(ipGroup('2001:db8:1:2:3:4:5:6')).toBe(ipGroup('2001:db8:1:2:ffff::1'))
    expect(ipGroup('2001:db8:1:3::1')).not.toBe(ipGroup('2001:db8:1:2::1'))
    expect(ipGroup('203.0.113.7')).toBe('203.0.113.7')
  })

  test('decides the limit behind a trusted proxy only', async () => {
    const from = async (environment: Record<string, string>) => {
      await using service = await startService({
        listen: true,
        environment: { RATE_LIMIT_ANONYMOUS: '1/1m', ...environment },
      })
      const get = async (address: string) =>
        (await service.call('GET', '/nope', { headers: { 'x-forwarded-for': address } })).status
      return [await get('203.0.113.1'), await get('203.0.113.2'), await get('203.0.113.1')]
    }
    expect(await from({ TRUSTED_PROXIES: '127.0.0.0/8' })).toEqual([404, 404, 429])
    expect(await from({})).toEqual([404, 429, 429])
  })
})
