import { describe, expect, test } from 'bun:test'
import { createTestClock } from './support/clock.ts'
import { hostline } from './support/command.ts'
import { type Answer, type Person, startService, type TestService } from './support/service.ts'
import { shared } from './support/shared.ts'

type Body = Answer['body']

const anyService = shared(() => startService())

/** A service whose clock only moves on. */
const anyClocked = shared(async () => {
  const clock = createTestClock()
  const service = await startService({ clock })
  return { service, clock, [Symbol.asyncDispose]: () => service[Symbol.asyncDispose]() }
})

const credentials = { email: 'ada@example.com', password: 'correct horse' }
const ulid = expect.stringMatching(/^[0-9A-HJKMNP-TV-Z]{26}$/)
const timestamp = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
const unauthorized = { error: { code: 'unauthorized', message: expect.any(String), details: null } }
const invalidToken = {
  error: { code: 'invalid_token', message: expect.any(String), details: null },
}

function claimsOf(token: string) {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
}

function refresh(service: TestService, token: string, key?: string) {
  return service.call('POST', '/v1/auth/refresh', {
    body: { refresh_token: token },
    headers: key === undefined ? {} : { 'x-idempotency-key': key },
  })
}

/** True if the access token still works. */
async function hasAccess(service: TestService, { token }: { token: string }) {
  return (await service.call('GET', '/v1/chat/conversations', { token })).status === 200
}

describe('register', () => {
  test('answers 201 with the user and a token set', async () => {
    const service = await anyService()
    const body = { ...credentials, email: 'Ida@Example.com', display_name: '  Ada Lovelace ' }
    const answer = await service.call('POST', '/v1/auth/register', { body })
    expect(answer.status).toBe(201)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(answer.body).toEqual({
      user: {
        id: ulid,
        email: 'ida@example.com',
        display_name: 'Ada Lovelace',
        role: 'user',
        email_verified: false,
        created_at: timestamp,
      },
      access_token: expect.any(String),
      refresh_token: expect.stringMatching(/^rt_[\w-]{43}$/),
      expires_in: 900,
    })
  })

  test('signs RS256 tokens with the claims of the contract', async () => {
    await using service = await startService({
      environment: { PUBLIC_URL: 'https://api.example.com' },
    })
    const { id, token } = await service.register('ada')
    const header = JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString())
    expect(header).toEqual({ alg: 'RS256', typ: 'at+jwt', kid: expect.any(String) })
    const claims = claimsOf(token)
    expect(claims).toEqual({
      sub: id,
      email: 'ada@example.com',
      role: 'user',
      iat: expect.any(Number),
      exp: expect.any(Number),
      iss: 'api.example.com',
      aud: 'api.example.com',
      sid: ulid,
      jti: ulid,
    })
    expect(claims.exp - claims.iat).toBeWithin(899, 902)
  })

  test('takes the local part as the name when there is none', async () => {
    const service = await anyService()
    const asked = { ...credentials, email: 'eva@example.com' }
    const { body } = await service.call('POST', '/v1/auth/register', { body: asked })
    expect(body.user.display_name).toBe('eva')
  })

  test('ignores role, id and verification in the body', async () => {
    const service = await anyService()
    const id = '01ARZ3NDEKTSV4RRFFQ69G5FAV'
    const body = {
      ...credentials,
      email: 'ivy@example.com',
      role: 'admin',
      email_verified: true,
      id,
      is_admin: true,
    }
    const { user } = (await service.call('POST', '/v1/auth/register', { body })).body
    expect(user).toMatchObject({ role: 'user', email_verified: false })
    expect(user.id).not.toBe(id)
  })

  test('refuses an address that is taken, in any case', async () => {
    const service = await anyService()
    await service.register('nora')
    const body = { ...credentials, email: 'NORA@example.COM' }
    const answer = await service.call('POST', '/v1/auth/register', { body })
    expect(answer.status).toBe(409)
    expect(answer.body.error).toEqual({
      code: 'conflict',
      message: expect.any(String),
      details: null,
    })
  })

  test('two simultaneous registrations of an address create one account', async () => {
    const service = await anyService()
    const body = { ...credentials, email: 'sim@example.com' }
    const answers = await Promise.all(
      [1, 2, 3].map(() => service.call('POST', '/v1/auth/register', { body })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409])
  })

  test.each([
    [{}, ['email', 'password']],
    [{ ...credentials, email: 5 }, ['email']],
    [{ ...credentials, email: 'ada' }, ['email']],
    [{ ...credentials, email: 'ada@localhost' }, ['email']],
    [{ ...credentials, email: 'аda@example.com' }, ['email']],
    [{ ...credentials, email: `${'a'.repeat(250)}@example.com` }, ['email']],
    [{ ...credentials, password: 'short 7' }, ['password']],
    [{ ...credentials, password: 'p'.repeat(257) }, ['password']],
    [{ ...credentials, password: 'with a \0 in it' }, ['password']],
    [{ ...credentials, password: 'lone \ud800 surrogate' }, ['password']],
    [{ ...credentials, display_name: '' }, ['display_name']],
    [{ ...credentials, display_name: '   ' }, ['display_name']],
    [{ ...credentials, display_name: 'n'.repeat(81) }, ['display_name']],
    [{ ...credentials, display_name: 'two\nlines' }, ['display_name']],
    [{ ...credentials, display_name: '\u202eadmin' }, ['display_name']],
    [{ ...credentials, display_name: '\u3164' }, ['display_name']],
    [{ ...credentials, password: 'qwertyuiop' }, ['password']],
    [{ ...credentials, password: 'PassWord123' }, ['password']],
    [{ ...credentials, password: 'ada@example.com' }, ['password']],
    [{ email: 'Adalovelace@example.com', password: 'ADALOVELACE' }, ['password']],
    [{ ...credentials, password: 'ada lovelace', display_name: ' Ada Lovelace' }, ['password']],
    [{ email: 'x', password: 'iloveyou', display_name: '' }, ['display_name', 'email', 'password']],
    [{ ...credentials, password: { toString: 1 } }, ['password']],
    [{ email: 'x', password: 'y', display_name: 7 }, ['display_name', 'email', 'password']],
  ])('refuses %j and names each bad field', async (body, fields) => {
    const service = await anyService()
    const answer = await service.call('POST', '/v1/auth/register', { body })
    expect(answer.status).toBe(400)
    expect(answer.body.error.code).toBe('validation_error')
    expect(Object.keys(answer.body.error.details).sort()).toEqual(fields)
    expect(JSON.stringify(answer.body)).not.toContain('correct horse')
  })

  test('explains a refused password in the language of the request', async () => {
    const service = await anyService()
    const body = { ...credentials, password: 'Princess1' }
    const problemIn = async (language: string) => {
      const headers = { 'accept-language': language }
      const answer = await service.call('POST', '/v1/auth/register', { body, headers })
      return answer.body.error.details.password
    }
    expect(await problemIn('en')).toBe(
      'must not be one of the commonest passwords, nor your own address or name',
    )
    expect(await problemIn('fr')).toContain('mots de passe les plus courants')
  })

  test('counts the length of names and passwords in code points', async () => {
    const service = await anyService()
    const email = 'key@example.com'
    const body = { email, password: '🔑'.repeat(8), display_name: '🙂'.repeat(80) }
    expect((await service.call('POST', '/v1/auth/register', { body })).status).toBe(201)
  })

  test('queues the verification mail in the transaction of the account, and logs no secret', async () => {
    // The mail server cannot be reached, so the job stays in the queue.
    await using service = await startService({ environment: { SMTP_URL: 'smtp://127.0.0.1:1' } })
    const { id } = await service.register('ada')
    const jobs = service.sqlite.query('SELECT kind, payload FROM outbox').all()
    expect(jobs).toEqual([{ kind: 'verification_mail', payload: expect.stringContaining(id) }])
    expect(JSON.stringify(jobs)).not.toContain('ada@example.com')
  })
})

describe('login', () => {
  test('answers 200 with the user and a token set, for the address in any case', async () => {
    const service = await anyService()
    const { id } = await service.register('lena')
    const body = { ...credentials, email: 'LENA@EXAMPLE.com' }
    const answer = await service.call('POST', '/v1/auth/login', { body })
    expect(answer.status).toBe(200)
    expect(answer.body.user.id).toBe(id)
    expect(await hasAccess(service, { token: answer.body.access_token })).toBe(true)
  })

  const withAdaAndKate = shared(async () => {
    const service = await startService()
    await service.register('ada')
    await service.register('kate')
    return service
  })

  test.each([
    ['a wrong password', { ...credentials, password: 'wrong horse' }],
    ['an empty password', { ...credentials, password: '' }],
    ['an unknown address', { ...credentials, email: 'bob@example.com' }],
    ['no address at all', { ...credentials, email: '' }],
    ['a Kelvin sign for a k', { ...credentials, email: '\u212Aate@example.com' }],
  ])('answers %s with the same 401', async (_, body) => {
    const service = await withAdaAndKate()
    const answer = await service.call('POST', '/v1/auth/login', { body })
    expect(answer.status).toBe(401)
    expect(answer.body).toEqual({
      error: {
        code: 'invalid_credentials',
        message: 'The e-mail address or the password is wrong.',
        details: null,
      },
    })
  })

  test.each([
    [{ email: 'ada@example.com' }, { password: 'is required' }],
    [{ password: 'x' }, { email: 'is required' }],
    [
      { email: ['a'], password: 5 },
      { email: 'must be a text', password: 'must be a text' },
    ],
    ['text', { body: 'must be an object' }],
    [null, { body: 'must be an object' }],
  ])('refuses %j', async (body, details) => {
    const service = await anyService()
    const answer = await service.call('POST', '/v1/auth/login', { body })
    expect(answer.status).toBe(400)
    expect(answer.body.error.details).toEqual(details)
  })

  test('takes as long for an unknown address as for a wrong password', async () => {
    const costs: (string | undefined)[] = []
    const hasher = {
      hash: Bun.password.hash,
      verify(password: string, hash: string) {
        costs.push(/^.*(?=\$.*\$)/.exec(hash)?.[0])
        return Bun.password.verify(password, hash)
      },
    }
    const passwordCost = { memoryKibibytes: 64, iterations: 1, hasher }
    await using service = await startService({ passwordCost })
    await service.register('ada')
    for (const email of ['ada@example.com', 'bob@example.com']) {
      await service.call('POST', '/v1/auth/login', { body: { email, password: 'wrong horse' } })
    }
    expect(costs).toEqual(Array(2).fill('$argon2id$v=19$m=64,t=1,p=1'))
  })

  test('updates the last use of the session', async () => {
    const { service, clock } = await anyClocked()
    const { token, refreshToken } = await service.register()
    clock.advance(60_000)
    await refresh(service, refreshToken)
    const { data } = (await service.call('GET', '/v1/auth/sessions', { token })).body
    const [{ created_at, last_used_at }] = data
    expect(Date.parse(last_used_at) - Date.parse(created_at)).toBe(60_000)
  })

  test('refuses a disabled account with the same 401', async () => {
    const service = await anyService()
    const { id, email } = await service.register()
    service.sqlite.run('UPDATE users SET disabled_at = 1 WHERE id = ?', [id])
    const body = { ...credentials, email }
    const answer = await service.call('POST', '/v1/auth/login', { body })
    expect(answer.body.error.code).toBe('invalid_credentials')
  })

  test('rehashes the password when the hash parameters have changed', async () => {
    const service = await anyService()
    const { id, email } = await service.register()
    const old = await Bun.password.hash('correct horse', {
      algorithm: 'argon2id',
      memoryCost: 128,
      timeCost: 1,
    })
    service.sqlite.run('UPDATE users SET password_hash = ? WHERE id = ?', [old, id])
    await service.login(email)
    const stored = service.sqlite
      .query<{ h: string }, [string]>('SELECT password_hash h FROM users WHERE id = ?')
      .get(id)
    expect(stored?.h).toStartWith('$argon2id$v=19$m=64,t=1,p=1$')
    await service.login(email)
  })
})

test('spaces around an address, as typed by phone keyboards, are ignored', async () => {
  await using service = await startService()
  const post = (path: string, email: string) =>
    service.call('POST', path, { body: { email, password: credentials.password } })
  const registered = await post('/v1/auth/register', ' Ada@example.com ')
  expect([registered.status, registered.body.user?.email]).toEqual([201, 'ada@example.com'])
  expect((await post('/v1/auth/login', 'ada@example.com ')).status).toBe(200)
  expect((await post('/v1/auth/password/forgot', '\tada@example.com')).status).toBe(204)
  const mails = service.sqlite.query("SELECT 1 FROM sent_mails WHERE kind = 'reset_password'")
  expect(mails.all()).toHaveLength(1)
  const { token } = await service.issueKey()
  const found = await service.call('GET', '/v1/service/users?email=ada@example.com%20', { token })
  expect(found.body.data).toHaveLength(1)
  const change = { new_email: 'ada@example.com ', password: credentials.password }
  const same = { token: registered.body.access_token, body: change }
  const refused = await service.call('POST', '/v1/auth/email/change', same)
  expect(Object.keys(refused.body.error.details)).toEqual(['new_email'])
  const { exitCode } = await hostline(['user', 'verify', 'ada@example.com '], service.directory)
  expect(exitCode).toBe(0)
})

describe('refresh', () => {
  test('returns a new token set and invalidates the old token', async () => {
    const service = await anyService()
    const { refreshToken } = await service.register()
    const answer = await refresh(service, refreshToken)
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({
      access_token: expect.any(String),
      refresh_token: expect.stringMatching(/^rt_[\w-]{43}$/),
      expires_in: 900,
    })
    expect(await hasAccess(service, { token: answer.body.access_token })).toBe(true)
    expect((await refresh(service, refreshToken)).body).toEqual(invalidToken)
  })

  test('reusing the parent of the live token within 10 s revokes nothing: two tabs raced', async () => {
    const service = await anyService()
    const ada = await service.register()
    const next = await refresh(service, ada.refreshToken)
    expect((await refresh(service, ada.refreshToken)).status).toBe(401)
    expect((await refresh(service, next.body.refresh_token)).status).toBe(200)
    expect(await hasAccess(service, ada)).toBe(true)
  })

  test('reusing it later revokes the family and writes an audit row', async () => {
    const { service, clock } = await anyClocked()
    const ada = await service.register()
    const next = await refresh(service, ada.refreshToken)
    clock.advance(10_001)
    expect((await refresh(service, ada.refreshToken)).body).toEqual(invalidToken)
    expect((await refresh(service, next.body.refresh_token)).body).toEqual(invalidToken)
    expect(await hasAccess(service, ada)).toBe(false)
    const rows = service.sqlite.query('SELECT action, actor_id FROM audit_log').all()
    expect(rows).toContainEqual({ action: 'refresh_token_reused', actor_id: ada.id })
  })

  test('reusing a grandparent revokes the family at once', async () => {
    const service = await anyService()
    const ada = await service.register()
    const second = await refresh(service, ada.refreshToken)
    const third = await refresh(service, second.body.refresh_token)
    await refresh(service, ada.refreshToken)
    expect((await refresh(service, third.body.refresh_token)).status).toBe(401)
  })

  test('a stolen token family does not affect other devices', async () => {
    const { service, clock } = await anyClocked()
    const laptop = await service.register()
    const phone = await service.login(laptop.email)
    await refresh(service, laptop.refreshToken)
    clock.advance(60_000)
    await refresh(service, laptop.refreshToken)
    expect([await hasAccess(service, laptop), await hasAccess(service, phone)]).toEqual([
      false,
      true,
    ])
  })

  test('20 parallel refreshes of one token give one new token, and the session lives on', async () => {
    const service = await anyService()
    const { refreshToken } = await service.register()
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => refresh(service, refreshToken)),
    )
    const won = answers.filter(({ status }) => status === 200)
    expect(won).toHaveLength(1)
    expect((await refresh(service, won[0]?.body.refresh_token)).status).toBe(200)
  })

  test('a token expires after 30 days without use', async () => {
    const { service, clock } = await anyClocked()
    const { refreshToken } = await service.register()
    clock.advance(30 * 86_400_000)
    expect((await refresh(service, refreshToken)).body).toEqual(invalidToken)
  })

  test.each([[''], ['rt_unknown'], [`rt_${'A'.repeat(43)}`], ["rt_' OR 1=1 --"]])(
    'answers %j with 401 invalid_token',
    async (token) => {
      const service = await anyService()
      expect((await refresh(service, token)).body).toEqual(invalidToken)
    },
  )

  test('a refresh token is no bearer token, and an access token cannot be refreshed', async () => {
    const service = await anyService()
    const { token, refreshToken } = await service.register()
    expect(await hasAccess(service, { token: refreshToken })).toBe(false)
    expect((await refresh(service, token)).body).toEqual(invalidToken)
  })

  test('a disabled account gets no new tokens', async () => {
    const service = await anyService()
    const { id, refreshToken } = await service.register()
    service.sqlite.run('UPDATE users SET disabled_at = 1 WHERE id = ?', [id])
    expect((await refresh(service, refreshToken)).body).toEqual(invalidToken)
  })

  test('stores no token, only its SHA-256', async () => {
    const service = await anyService()
    const { refreshToken } = await service.register()
    const dump = JSON.stringify(service.sqlite.query('SELECT * FROM refresh_tokens').all())
    expect(dump).not.toContain(refreshToken)
    expect(dump).toContain(new Bun.CryptoHasher('sha256').update(refreshToken).digest('hex'))
  })
})

describe('refresh with an idempotency key', () => {
  const day = 86_400_000
  const renew = (service: TestService, token: string, key: string, agent = 'phone') =>
    service.call('POST', '/v1/auth/refresh', {
      body: { refresh_token: token },
      headers: { 'x-idempotency-key': key, 'user-agent': agent },
    })
  const reuses = ({ sqlite }: TestService, { id }: Person) =>
    sqlite
      .query("SELECT 1 FROM audit_log WHERE action = 'refresh_token_reused' AND actor_id = ?")
      .all(id)

  test('returns another successor for 24 hours to a client that lost the response', async () => {
    const { service, clock } = await anyClocked()
    const { refreshToken } = await service.register()
    const lost = await renew(service, refreshToken, 'k1')
    clock.advance(day - 1)
    const again = await renew(service, refreshToken, 'k1')
    expect([lost.status, again.status]).toEqual([200, 200])
    expect(again.body.refresh_token).not.toBe(lost.body.refresh_token)
    expect(await hasAccess(service, { token: again.body.access_token })).toBe(true)
    expect((await renew(service, again.body.refresh_token, 'k2')).status).toBe(200)
  })

  test('counts as reuse after 24 hours', async () => {
    const { service, clock } = await anyClocked()
    const ada = await service.register()
    const { refreshToken } = ada
    const lost = await renew(service, refreshToken, 'k1')
    clock.advance(day)
    expect((await renew(service, refreshToken, 'k1')).body).toEqual(invalidToken)
    expect((await renew(service, lost.body.refresh_token, 'k2')).body).toEqual(invalidToken)
    expect(reuses(service, ada)).toHaveLength(1)
  })

  test('reveals a copied token and key: use of the replaced successor is a reuse', async () => {
    const service = await anyService()
    const ada = await service.register()
    const own = await renew(service, ada.refreshToken, 'k1')
    const stolen = await renew(service, ada.refreshToken, 'k1')
    expect((await renew(service, own.body.refresh_token, 'k2')).body).toEqual(invalidToken)
    expect((await renew(service, stolen.body.refresh_token, 'k3')).body).toEqual(invalidToken)
    expect([await hasAccess(service, ada), reuses(service, ada).length]).toEqual([false, 1])
  })

  test('counts as reuse once the successor was used', async () => {
    const service = await anyService()
    const ada = await service.register()
    const own = await renew(service, ada.refreshToken, 'k1')
    await renew(service, own.body.refresh_token, 'k2')
    expect((await renew(service, ada.refreshToken, 'k1')).body).toEqual(invalidToken)
    expect([await hasAccess(service, ada), reuses(service, ada).length]).toEqual([false, 1])
  })

  test.each([
    ['another key', 'k2', 'phone'],
    ['another user agent', 'k1', 'laptop'],
  ])('%s counts as no key: nothing within 10 s, a reuse later', async (_, key, agent) => {
    const { service, clock } = await anyClocked()
    const ada = await service.register()
    await renew(service, ada.refreshToken, 'k1')
    expect((await renew(service, ada.refreshToken, key, agent)).body).toEqual(invalidToken)
    expect((await renew(service, ada.refreshToken, 'k1')).status).toBe(200)
    clock.advance(10_001)
    expect((await renew(service, ada.refreshToken, key, agent)).body).toEqual(invalidToken)
    expect([await hasAccess(service, ada), reuses(service, ada).length]).toEqual([false, 1])
  })

  test('sent 20 times at once leaves one valid successor', async () => {
    const service = await anyService()
    const { refreshToken } = await service.register()
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => renew(service, refreshToken, 'k1')),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(20)
    const last = await renew(service, refreshToken, 'k1')
    expect((await renew(service, last.body.refresh_token, 'k2')).status).toBe(200)
  })

  test.each<[string, (service: TestService, ada: Person, tokens: Body) => Promise<unknown>]>([
    [
      'logged out',
      (service, { token }, { refresh_token }) =>
        service.call('POST', '/v1/auth/logout', { token, body: { refresh_token } }),
    ],
    [
      'logged out everywhere',
      async (service, { id }) => {
        const { token } = await service.registerAs('admin')
        await service.call('DELETE', `/v1/admin/users/${id}/sessions`, { token })
      },
    ],
    [
      'disabled',
      async (service, { id }) => {
        const { token } = await service.registerAs('admin')
        const body = { disabled: true }
        await service.call('PATCH', `/v1/admin/users/${id}`, { token, body })
      },
    ],
    [
      'removed',
      (service, { token }) =>
        service.call('DELETE', '/v1/users/me', { token, body: { password: 'correct horse' } }),
    ],
  ])('answers 401 when the account was %s meanwhile', async (_, end) => {
    const service = await anyService()
    const ada = await service.register()
    const { body } = await refresh(service, ada.refreshToken, 'k1')
    await end(service, ada, body)
    expect((await refresh(service, ada.refreshToken, 'k1')).body).toEqual(invalidToken)
  })

  test('stores only the hash of the key', async () => {
    const service = await anyService()
    const { refreshToken } = await service.register()
    const { body } = await refresh(service, refreshToken, 'key of ada')
    const dump = JSON.stringify(service.sqlite.query('SELECT * FROM refresh_tokens').all())
    expect(dump).toContain(new Bun.CryptoHasher('sha256').update('key of ada').digest('hex'))
    for (const hidden of [body.access_token, body.refresh_token, refreshToken, 'key of ada']) {
      expect(dump).not.toContain(hidden)
    }
  })

  test.each(['', 'x'.repeat(65)])('refuses the key %j and uses nothing up', async (key) => {
    const service = await anyService()
    const { refreshToken } = await service.register()
    const answer = await refresh(service, refreshToken, key)
    const fields = Object.keys(answer.body.error.details)
    expect([answer.status, fields]).toEqual([400, ['X-Idempotency-Key']])
    expect((await refresh(service, refreshToken, 'x'.repeat(64))).status).toBe(200)
  })
})

describe('logout', () => {
  const logout = (service: TestService, person: Person, token: unknown = person.refreshToken) =>
    service.call('POST', '/v1/auth/logout', { token: person.token, body: { refresh_token: token } })

  test('ends the session: its refresh and access tokens stop working, other devices stay logged in', async () => {
    const service = await anyService()
    const laptop = await service.register()
    const phone = await service.login(laptop.email)
    const answer = await logout(service, laptop)
    expect([answer.status, answer.body]).toEqual([204, ''])
    expect((await refresh(service, laptop.refreshToken)).body).toEqual(invalidToken)
    expect([await hasAccess(service, laptop), await hasAccess(service, phone)]).toEqual([
      false,
      true,
    ])
  })

  test('of an ended session writes no second row into the audit log', async () => {
    const service = await anyService()
    const laptop = await service.register()
    const phone = await service.login(laptop.email)
    for (const _ of [1, 2]) {
      expect((await logout(service, phone, laptop.refreshToken)).status).toBe(204)
    }
    const rows = service.sqlite
      .query("SELECT 1 FROM audit_log WHERE action = 'logged_out' AND actor_id = ?")
      .all(laptop.id)
    expect(rows).toHaveLength(1)
  })

  test("another user's or an unknown token does nothing", async () => {
    const service = await anyService()
    const [ada, bob] = [await service.register(), await service.register()]
    expect((await logout(service, ada, bob.refreshToken)).status).toBe(204)
    expect((await logout(service, ada, 'rt_unknown')).status).toBe(204)
    expect([await hasAccess(service, ada), await hasAccess(service, bob)]).toEqual([true, true])
    expect((await refresh(service, bob.refreshToken)).status).toBe(200)
  })

  test('requires a bearer token first, then the field', async () => {
    const service = await anyService()
    const ada = await service.register()
    const anonymous = await service.call('POST', '/v1/auth/logout', { body: {} })
    expect([anonymous.status, anonymous.body]).toEqual([401, unauthorized])
    const empty = await service.call('POST', '/v1/auth/logout', { token: ada.token, body: {} })
    expect([empty.status, empty.body.error.details]).toEqual([
      400,
      { refresh_token: 'is required' },
    ])
  })
})

describe('the account of a token', () => {
  test('is locked out as soon as it is disabled or deleted', async () => {
    const service = await anyService()
    const [ada, bob] = [await service.register(), await service.register()]
    service.sqlite.run('UPDATE users SET disabled_at = 1 WHERE id = ?', [ada.id])
    service.sqlite.run('DELETE FROM users WHERE id = ?', [bob.id])
    expect([await hasAccess(service, ada), await hasAccess(service, bob)]).toEqual([false, false])
  })
})

describe('the generated picture', () => {
  test('shows initials, can be cached forever, and runs no script', async () => {
    const service = await anyService()
    const answer = await service.call('GET', '/v1/avatars/7/AL.svg')
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('image/svg+xml')
    expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    expect(answer.headers.get('content-security-policy')).toBe(
      "default-src 'none'; frame-ancestors 'none'",
    )
    expect(answer.body).toContain('>AL</text>')
  })

  test.each(['/v1/avatars/12/AL.svg', '/v1/avatars/1/%3Cscript%3E.svg', '/v1/avatars/1/A'])(
    '%s is not found',
    async (path) => {
      const service = await anyService()
      expect((await service.call('GET', path)).body.error.code).toBe('not_found')
    },
  )
})

test('SQL in any text is stored as text', async () => {
  await using service = await startService()
  const text = "'); DROP TABLE users; --"
  const { b, conversationId } = await service.pair()
  const body = { email: "o'hara@example.com", password: `${text} `, display_name: text }
  expect((await service.call('POST', '/v1/auth/register', { body })).body.user.display_name).toBe(
    text,
  )
  expect((await service.call('POST', '/v1/auth/login', { body })).status).toBe(200)
  expect((await service.say(b, conversationId, text)).body.body).toBe(text)
  expect(service.sqlite.query('SELECT count(*) n FROM users').get()).toEqual({ n: 3 })
})

test('no secret appears in the log', async () => {
  await using service = await startService({
    listen: true,
    environment: { SMTP_URL: 'smtp://127.0.0.1:1' },
  })
  const ada = await service.register('ada')
  const login = (password: string) =>
    service.call('POST', '/v1/auth/login', { body: { email: ada.email, password } })
  await login('a wrong password')
  await refresh(service, ada.refreshToken)
  await refresh(service, ada.refreshToken)
  await service.call('GET', `/v1/chat/ws?token=${ada.token}`)
  service.sqlite.run('ALTER TABLE users RENAME TO hidden')
  expect((await login('correct horse')).status).toBe(500)
  for (const secret of ['correct horse', 'a wrong password', ada.token, ada.refreshToken]) {
    expect(service.log()).not.toContain(secret)
  }
  service.sqlite.run('ALTER TABLE hidden RENAME TO users')
})
