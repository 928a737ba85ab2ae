import { expect, test } from 'bun:test'
import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
} from 'node:crypto'
import { createTestClock } from './support/clock.ts'
import { type Person, startService, type TestService } from './support/service.ts'
import { shared } from './support/shared.ts'

const anyService = shared(() => startService())

type Json = Record<string, unknown>

const encode = (value: Json) => Buffer.from(JSON.stringify(value)).toString('base64url')

function read(token: string): [Json, Json] {
  const [header = '', payload = ''] = token.split('.')
  const parse = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString())
  return [parse(header), parse(payload)]
}

function signed(header: Json, payload: Json, key: KeyObject, hash = 'RSA-SHA256') {
  const input = `${encode(header)}.${encode(payload)}`
  const pss = header['alg'] === 'PS256' ? { padding: 6, saltLength: 32 } : {}
  return `${input}.${sign(hash, Buffer.from(input), { key, ...pss }).toString('base64url')}`
}

/** The service's own signing key, as only a reader of the database file has it. */
function ownKey(service: TestService) {
  const row = service.sqlite
    .query<{ private_key: string }, []>(
      "SELECT private_key FROM signing_keys WHERE state = 'active'",
    )
    .get()
  return createPrivateKey(row?.private_key ?? '')
}

async function statusOf(service: TestService, token: string) {
  return (await service.call('GET', '/v1/chat/conversations', { token })).status
}

const rsaKey = (modulusLength: number) => generateKeyPairSync('rsa', { modulusLength }).privateKey
const strangersKey = rsaKey(2_048)

type Attack = (header: Json, payload: Json, service: TestService, person: Person) => string

const forgeries: [string, Attack][] = [
  ['alg none', (header, payload) => `${encode({ ...header, alg: 'none' })}.${encode(payload)}.`],
  [
    'alg none with a signature',
    (header, payload, service) => signed({ ...header, alg: 'none' }, payload, ownKey(service)),
  ],
  [
    'HS256 with the public key as the secret',
    (header, payload, service) => {
      const pem = createPublicKey(ownKey(service)).export({ type: 'spki', format: 'pem' })
      const input = `${encode({ ...header, alg: 'HS256' })}.${encode(payload)}`
      return `${input}.${createHmac('sha256', pem).update(input).digest('base64url')}`
    },
  ],
  [
    'PS256 with the right key',
    (header, payload, service) => signed({ ...header, alg: 'PS256' }, payload, ownKey(service)),
  ],
  [
    'RS512 with the right key',
    (header, payload, service) =>
      signed({ ...header, alg: 'RS512' }, payload, ownKey(service), 'RSA-SHA512'),
  ],
  ["a stranger's key", (header, payload) => signed(header, payload, strangersKey)],
  [
    'an x5u',
    (header, payload) =>
      signed({ ...header, x5u: 'https://evil.example/cert' }, payload, strangersKey),
  ],
  ['a smaller key', (header, payload) => signed(header, payload, rsaKey(1_024))],
  ['a larger key', (header, payload) => signed(header, payload, rsaKey(3_072))],
  ['no kid', ({ kid: _, ...header }, payload, service) => signed(header, payload, ownKey(service))],
  [
    'an unknown kid',
    (header, payload, service) => signed({ ...header, kid: 'x' }, payload, ownKey(service)),
  ],
  [
    'a path as kid',
    (header, payload, service) =>
      signed({ ...header, kid: '../../etc/passwd' }, payload, ownKey(service)),
  ],
  [
    'SQL as kid',
    (header, payload, service) =>
      signed({ ...header, kid: "' OR '1'='1" }, payload, ownKey(service)),
  ],
  [
    '__proto__ as kid',
    (header, payload, service) => signed({ ...header, kid: '__proto__' }, payload, ownKey(service)),
  ],
  [
    '10 KB of kid',
    (header, payload, service) =>
      signed({ ...header, kid: 'k'.repeat(10_240) }, payload, ownKey(service)),
  ],
  [
    'its own jwk',
    (header, payload) => {
      const jwk = createPublicKey(strangersKey).export({ format: 'jwk' })
      return signed({ ...header, jwk }, payload, strangersKey)
    },
  ],
  [
    'a jku',
    (header, payload) =>
      signed({ ...header, jku: 'https://evil.example/jwks' }, payload, strangersKey),
  ],
  [
    'a critical extension',
    (header, payload, service) =>
      signed({ ...header, crit: ['x'], x: 1 }, payload, ownKey(service)),
  ],
  [
    'another typ',
    (header, payload, service) => signed({ ...header, typ: 'JWT' }, payload, ownKey(service)),
  ],
  [
    'another audience',
    (header, payload, service) =>
      signed(header, { ...payload, aud: 'https://other.example' }, ownKey(service)),
  ],
  [
    'no audience',
    (header, { aud: _, ...payload }, service) => signed(header, payload, ownKey(service)),
  ],
  ['no iat', (header, { iat: _, ...payload }, service) => signed(header, payload, ownKey(service))],
  [
    'an iat of a quarter of an hour ago',
    (header, payload, service) =>
      signed(header, { ...payload, iat: Number(payload['iat']) - 906 }, ownKey(service)),
  ],
  [
    'an iat in the future',
    (header, payload, service) =>
      signed(header, { ...payload, iat: Number(payload['iat']) + 3_600 }, ownKey(service)),
  ],
  ['no exp', (header, { exp: _, ...payload }, service) => signed(header, payload, ownKey(service))],
  [
    'exp as text',
    (header, payload, service) =>
      signed(header, { ...payload, exp: `${payload['exp']}` }, ownKey(service)),
  ],
  [
    'exp in the past',
    (header, payload, service) =>
      signed(header, { ...payload, exp: Number(payload['iat']) - 6 }, ownKey(service)),
  ],
  [
    'nbf in the future',
    (header, payload, service) =>
      signed(header, { ...payload, nbf: Number(payload['exp']) }, ownKey(service)),
  ],
  [
    'another issuer',
    (header, payload, service) =>
      signed(header, { ...payload, iss: 'evil.example' }, ownKey(service)),
  ],
  [
    'no issuer',
    (header, { iss: _, ...payload }, service) => signed(header, payload, ownKey(service)),
  ],
  ['no sub', (header, { sub: _, ...payload }, service) => signed(header, payload, ownKey(service))],
  [
    'an unknown sub',
    (header, payload, service) =>
      signed(header, { ...payload, sub: '01ARZ3NDEKTSV4RRFFQ69G5FAV' }, ownKey(service)),
  ],
  [
    'sub as a list',
    (header, payload, service) =>
      signed(header, { ...payload, sub: [payload['sub']] }, ownKey(service)),
  ],
  ['no sid', (header, { sid: _, ...payload }, service) => signed(header, payload, ownKey(service))],
  [
    'an unknown sid',
    (header, payload, service) =>
      signed(header, { ...payload, sid: '01ARZ3NDEKTSV4RRFFQ69G5FAV' }, ownKey(service)),
  ],
  [
    'a changed payload',
    (header, payload, _, { token }) =>
      `${encode(header)}.${encode({ ...payload, role: 'admin' })}.${token.split('.')[2]}`,
  ],
  ['a cut signature', (_header, _payload, _service, { token }) => token.slice(0, -8)],
  ['a fourth part', (_header, _payload, _service, { token }) => `${token}.x`],
  ['a refresh token', (_header, _payload, _service, { refreshToken }) => refreshToken],
]

test.each(forgeries)('a token with %s is refused', async (_, forge) => {
  const service = await anyService()
  const person = await service.register()
  const [header, payload] = read(person.token)
  expect(await statusOf(service, signed(header, payload, ownKey(service)))).toBe(200)
  expect(await statusOf(service, forge(header, payload, service, person))).toBe(401)
})

test('a token has its type and its user', async () => {
  const environment = { PUBLIC_URL: 'https://chat.example.com' }
  await using service = await startService({ environment })
  const [header, payload] = read((await service.register()).token)
  expect(header).toEqual({ alg: 'RS256', typ: 'at+jwt', kid: expect.any(String) })
  expect(payload).toMatchObject({ iss: 'chat.example.com', aud: 'chat.example.com' })
  expect(Number(payload['exp']) - Number(payload['iat'])).toBe(900)
})

test('a signed expiry in ten years is worth no more than a quarter of an hour', async () => {
  const clock = createTestClock()
  await using service = await startService({ clock, listen: true })
  const [header, payload] = read((await service.register()).token)
  const exp = Number(payload['exp']) + 10 * 365 * 86_400
  const forged = signed(header, { ...payload, exp }, ownKey(service))
  expect(await statusOf(service, forged)).toBe(200)
  const socket = await service.connect({ token: forged })
  clock.advance(906_000)
  expect(await statusOf(service, forged)).toBe(401)
  clock.advance(30_000)
  expect(await socket.closed).toBe(4401)
})

test('a token with the session of another user is refused', async () => {
  const service = await anyService()
  const [ada, bob] = [await service.register(), await service.register()]
  const [header, payload] = read(ada.token)
  const sid = read(bob.token)[1]['sid']
  expect(await statusOf(service, signed(header, { ...payload, sid }, ownKey(service)))).toBe(401)
})

test('a token expires after 900 s, with 5 s of tolerance for clocks', async () => {
  const clock = createTestClock()
  await using service = await startService({ clock })
  const { token } = await service.register()
  clock.advance(903_000)
  expect(await statusOf(service, token)).toBe(200)
  clock.advance(3_000)
  expect(await statusOf(service, token)).toBe(401)
})

test('a demoted admin loses the admin routes at once, despite the role in the token', async () => {
  const service = await anyService()
  const { id, email } = await service.register()
  service.sqlite.run("UPDATE users SET role = 'admin' WHERE id = ?", [id])
  const { token } = await service.login(email)
  const statusOfAdmin = async () => (await service.call('GET', '/v1/admin/users', { token })).status
  expect(await statusOfAdmin()).toBe(200)
  service.sqlite.run("UPDATE users SET role = 'user' WHERE id = ?", [id])
  expect(await statusOfAdmin()).toBe(403)
})

test('the role in a token is ignored: the database decides', async () => {
  const service = await anyService()
  const { token, id } = await service.register()
  const [header, payload] = read(token)
  const claimed = signed(header, { ...payload, role: 'admin' }, ownKey(service))
  expect(await statusOf(service, claimed)).toBe(200)
  expect((await service.call('GET', '/v1/admin/users', { token: claimed })).status).toBe(403)
  const row = service.sqlite.query<{ role: string }, [string]>(
    'SELECT role FROM users WHERE id = ?',
  )
  expect(row.get(id)?.role).toBe('user')
})

test.each(['Basic YTpi', 'Bearer', 'Bearer ', 'Bearer a b', 'bearer\tx', 'Token x'])(
  'the header "%s" is no token',
  async (authorization) => {
    const service = await anyService()
    const answer = await service.call('GET', '/v1/chat/conversations', {
      headers: { authorization },
    })
    expect(answer.status).toBe(401)
  },
)

test('the public keys are at both URLs, cacheable, without a private member', async () => {
  const service = await anyService()
  const { token } = await service.register()
  const [header] = read(token)
  for (const path of ['/.well-known/jwks.json', '/v1/.well-known/jwks.json']) {
    const { status, headers, body } = await service.call('GET', path)
    expect([status, headers.get('cache-control')]).toEqual([200, 'public, max-age=600'])
    const key = {
      kty: 'RSA',
      use: 'sig',
      alg: 'RS256',
      e: 'AQAB',
      n: expect.any(String),
      kid: expect.any(String),
    }
    expect(body).toEqual({ keys: [key, key] })
    expect(body.keys.map(({ kid }: { kid: string }) => kid)).toContain(header['kid'])
    expect(Buffer.from(body.keys[0].n, 'base64url').length * 8).toBeGreaterThanOrEqual(2_048)
  }
})

test('the first start creates an active and a next key', async () => {
  const service = await anyService()
  const rows = service.sqlite.query('SELECT state FROM signing_keys ORDER BY state').all()
  expect(rows).toEqual([{ state: 'active' }, { state: 'next' }])
})
