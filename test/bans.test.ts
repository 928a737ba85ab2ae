import { heapStats } from 'bun:jsc'
import { afterAll, describe, expect, spyOn, test } from 'bun:test'
import { Hmac } from 'node:crypto'
import { hour } from '../src/lib/clock.ts'
import { createTestClock } from './support/clock.ts'
import { hostline } from './support/command.ts'
import { startService } from './support/service.ts'
import { watchRuns } from './support/statements.ts'
import { waitFor } from './support/wait.ts'

const clock = createTestClock()
const environment = { TRUSTED_PROXIES: '127.0.0.1,192.0.2.200' }
const service = await startService({ clock, listen: true, environment })
afterAll(() => service[Symbol.asyncDispose]())
const root = await service.registerAs('admin', 'root')
const asRoot = (method: string, path: string, body?: object) =>
  service.call(method, path, { token: root.token, body })
const bans = '/v1/admin/bans'
const password = 'correct horse'

/** @returns the status and reason of a request from an address */
async function from(ip: string, path: string, body: object) {
  const headers = { 'x-forwarded-for': ip }
  const { status, headers: answered } = await service.call('POST', `/v1/auth/${path}`, {
    headers,
    body,
  })
  return [status, answered.get('x-error-reason')]
}
const banned = [403, 'banned']
const register = (email: string, ip = '203.0.113.1') =>
  from(ip, 'register', { email, password, display_name: 'x' })
const login = (email: string, ip = '203.0.113.1') => from(ip, 'login', { email, password })

describe('a ban', () => {
  test('of a mail domain covers its subdomains, registration, login and a new address', async () => {
    const ada = await service.register('ada')
    await register('old@mail.spam.example')
    const { status, body } = await asRoot('POST', bans, {
      kind: 'mail_domain',
      value: 'Spam.example',
      reason: 'wave',
    })
    expect([status, body]).toEqual([
      201,
      {
        id: expect.any(String),
        kind: 'mail_domain',
        value: 'spam.example',
        reason: 'wave',
        created_at: expect.any(String),
        until: null,
      },
    ])
    for (const email of ['new@spam.example', 'new@mail.SPAM.example']) {
      expect(await register(email)).toEqual(banned)
    }
    expect(await login('old@mail.spam.example')).toEqual(banned)
    const { token } = await service.issueKey(['users'])
    const given = { token, body: { email: 'given@spam.example' } }
    expect((await service.call('POST', '/v1/service/users', given)).status).toBe(201)
    expect(await register('new@notspam.example')).toEqual([201, null])
    const change = await service.call('POST', '/v1/auth/email/change', {
      token: ada.token,
      body: { new_email: 'ada@spam.example', password },
    })
    expect([change.status, change.headers.get('x-error-reason')]).toEqual(banned)
  })

  test('that is repeated stands in the audit log once', async () => {
    const ban = { kind: 'mail_domain', value: 'twice.example' }
    for (const reason of ['wave', 'wave', 'other']) await asRoot('POST', bans, { ...ban, reason })
    const { body } = await asRoot('GET', `${bans}?kind=mail_domain&value=${ban.value}`)
    expect(body.data).toMatchObject([{ reason: 'other' }])
    const audited = await asRoot('GET', `/v1/admin/audit-log?target_id=${body.data[0].id}`)
    expect(audited.body.data).toMatchObject([{ action: 'ban_added' }, { action: 'ban_added' }])
  })

  test('of an address keeps only its hash, and its sessions cannot be refreshed', async () => {
    const mallory = await service.register('mallory')
    const { body } = await asRoot('POST', bans, { kind: 'address', value: 'Mallory@example.com' })
    expect(body).toMatchObject({ kind: 'address', value: null })
    const stored = JSON.stringify(service.sqlite.query('SELECT * FROM bans').all())
    const logged = JSON.stringify(
      service.sqlite.query("SELECT * FROM audit_log WHERE action = 'ban_added'").all(),
    )
    expect(`${stored}${logged}`).not.toContain('mallory')
    expect([await register('mallory@example.com'), await login('mallory@example.com')]).toEqual([
      banned,
      banned,
    ])
    const refresh = { refresh_token: mallory.refreshToken }
    expect(await from('203.0.113.1', 'refresh', refresh)).toEqual([401, null])
    const me = await service.call('GET', '/v1/users/me', { token: mallory.token })
    expect(me.status).toBe(401)
    const found = await asRoot('GET', `${bans}?kind=address&value=mallory@example.com`)
    expect(found.body.data).toMatchObject([{ id: body.id }])
    const withoutKind = await asRoot('GET', `${bans}?value=mallory@example.com`)
    expect(withoutKind.body.error.details).toEqual({ kind: 'is required' })
    const byPlatform = await service.call('POST', `/v1/service/users/${mallory.id}/sessions`, {
      token: (await service.issueKey(['sessions'])).token,
    })
    expect([byPlatform.status, byPlatform.headers.get('x-error-reason')]).toEqual(banned)
    expect((await asRoot('DELETE', `${bans}/${body.id}`)).status).toBe(204)
    expect((await asRoot('DELETE', `${bans}/${body.id}`)).status).toBe(404)
    expect(await login('mallory@example.com')).toEqual([200, null])
  })

  test('of the network of the platform’s server ends no session of people elsewhere, and stops no login', async () => {
    const { token } = await service.issueKey(['sessions'])
    const { id } = await service.register()
    const open = () =>
      service.call('POST', `/v1/service/users/${id}/sessions`, {
        token,
        headers: { 'x-forwarded-for': '198.19.9.7' },
      })
    const first = await open()
    const ban = await asRoot('POST', bans, { kind: 'network', value: '198.19.9.0/24' })
    expect(ban.status).toBe(201)
    const me = await service.call('GET', '/v1/users/me', { token: first.body.access_token })
    expect([me.status, (await open()).status]).toEqual([200, 201])
    const refresh = { refresh_token: first.body.refresh_token }
    expect(await from('198.19.9.8', 'refresh', refresh)).toEqual([401, null])
    await asRoot('DELETE', `${bans}/${ban.body.id}`)
  })

  test('costs a login no hash for each banned address', async () => {
    const added = Array.from({ length: 20 }, (_, n) =>
      asRoot('POST', bans, { kind: 'address', value: `banned-${n}@example.com` }),
    )
    for (const { status } of await Promise.all(added)) expect(status).toBe(201)
    using hashes = spyOn(Hmac.prototype, 'update')
    expect(await login('root@example.com')).toEqual([200, null])
    const hashed = hashes.mock.calls.filter(([text]) => text === 'root@example.com')
    // Before and after the password is checked.
    expect(hashed).toHaveLength(2)
  })

  test.each([
    ['198.51.100.0/24', '198.51.100.9', '198.51.101.9'],
    ['2001:db8:1::/48', '2001:db8:1:2::3', '2001:db8:2::3'],
    ['::ffff:198.18.7.0/120', '198.18.7.8', '198.18.8.8'],
  ])(
    'of the network %s ends its sessions and their sockets, and no others',
    async (value, inside, outside) => {
      const headers = (ip: string) => ({ 'x-forwarded-for': ip })
      const tokenFrom = async (ip: string) => {
        const body = { email: `net${ip.length}${ip.replace(/\W/g, '')}@example.com`, password }
        const answer = await service.call('POST', '/v1/auth/register', {
          body,
          headers: headers(ip),
        })
        return answer.body.access_token as string
      }
      const [lost, kept] = [await tokenFrom(inside), await tokenFrom(outside)]
      const [closing, open] = [
        await service.connect({ token: lost }),
        await service.connect({ token: kept }),
      ]
      expect((await asRoot('POST', bans, { kind: 'network', value })).status).toBe(201)
      expect(await closing.closed).toBe(4403)
      const statusOf = async (token: string) =>
        (await service.call('GET', '/v1/users/me', { token })).status
      expect([await statusOf(lost), await statusOf(kept)]).toEqual([401, 200])
      expect(await login('root@example.com', inside)).toEqual(banned)
      const demo = await service.call('POST', '/demo/people', {
        body: { subject: 'x', body: 'x', answer: 'x' },
        headers: headers(inside),
      })
      expect([demo.status, demo.headers.get('x-error-reason')]).toEqual(banned)
      const guests = service.sqlite.query("SELECT 1 FROM users WHERE email LIKE '%.invalid'")
      expect(guests.get()).toBeNull()
      expect(await login('root@example.com', outside)).toEqual([200, null])
      open.close()
    },
  )

  test('holds for a login and a registration whose password is being hashed', async () => {
    let [released, waiting] = [Promise.resolve(), 0]
    const turn = async (password: string) => {
      waiting++
      await released
      return password
    }
    const hasher = {
      hash: async (password: string) => `$argon2id$${await turn(password)}`,
      verify: async (password: string, hash: string) => hash.endsWith(`$${await turn(password)}`),
    } as never
    const passwordCost = { memoryKibibytes: 64, iterations: 1, hasher }
    await using slow = await startService({ clock, environment, listen: true, passwordCost })
    const [{ token }, { email }] = [await slow.registerAs('admin'), await slow.register()]
    const headers = { 'x-forwarded-for': '198.51.100.9' }
    const { promise, resolve: goOn } = Promise.withResolvers<void>()
    released = promise
    waiting = 0
    const running = ['login', 'register'].map((path) =>
      slow.call('POST', `/v1/auth/${path}`, {
        headers,
        body: { email: path === 'login' ? email : 'new@example.com', password },
      }),
    )
    await waitFor(() => waiting > 0)
    const body = { kind: 'network', value: '198.51.100.0/24' }
    expect((await slow.call('POST', bans, { token, body })).status).toBe(201)
    goOn()
    const reasons = (await Promise.all(running)).map(({ headers: answered }) =>
      answered.get('x-error-reason'),
    )
    expect(reasons).toEqual(['banned', 'banned'])
  })

  test('that has ended takes no memory', async () => {
    const clock = createTestClock()
    await using service = await startService({ clock })
    const { token, email } = await service.registerAs('admin')
    const until = new Date(clock.now() + hour).toISOString()
    const add = async (value: string, by = token) => {
      const body = { kind: 'mail_domain', value, until: by === token ? until : null }
      expect((await service.call('POST', bans, { token: by, body })).status).toBe(201)
    }
    const functions = () => {
      Bun.gc(true)
      return heapStats().objectTypeCounts['Function'] ?? 0
    }
    for (let n = 0; n < 300; n++) await add(`spam${n}.example`)
    const full = functions()
    clock.advance(2 * hour)
    const { token: later } = await service.login(email)
    await add('last.example', later)
    await waitFor(() => functions() < full - 200)
  })

  test('ends by itself, and a repeated one changes reason and end', async () => {
    const until = new Date(clock.now() + 3_600_000).toISOString()
    const value = 'brief.example'
    const first = await asRoot('POST', bans, { kind: 'mail_domain', value, reason: 'a' })
    const second = await asRoot('POST', bans, { kind: 'mail_domain', value, reason: 'b', until })
    expect(second.body).toEqual({ ...first.body, reason: 'b', until })
    expect(await register('x@brief.example')).toEqual(banned)
    clock.advance(3_600_000)
    expect(await register('x@brief.example')).toEqual([201, null])
  })

  const noNetwork = 'must be a network such as 192.0.2.0/24, at most a /8 or an IPv6 /16'

  test.each([
    [
      { kind: 'mail_domain', value: 'not a domain' },
      'value',
      'must be a domain such as spam.example',
    ],
    [{ kind: 'address', value: 'nobody' }, 'value', 'must be a valid e-mail address'],
    [{ kind: 'network', value: '10.0.0.0/33' }, 'value', noNetwork],
    [{ kind: 'network', value: '64.0.0.0/7' }, 'value', noNetwork],
    [{ kind: 'network', value: '2000::/15' }, 'value', noNetwork],
    [{ kind: 'network', value: '192.88.99.7/24' }, 'value', 'must not cover an admin'],
    [
      { kind: 'network', value: '192.0.2.128/25' },
      'value',
      'must not contain your own address, this machine or a proxy',
    ],
    [
      { kind: 'network', value: '127.0.0.0/8' },
      'value',
      'must not contain your own address, this machine or a proxy',
    ],
    [
      { kind: 'network', value: '::1' },
      'value',
      'must not contain your own address, this machine or a proxy',
    ],
    [{ kind: 'address', value: 'Root@example.com' }, 'value', 'must not cover an admin'],
    [{ kind: 'mail_domain', value: 'example.com' }, 'value', 'must not cover an admin'],
    [
      { kind: 'mail_domain', value: 'a.example', until: '2020-01-01T00:00:00Z' },
      'until',
      'must be in the future',
    ],
  ])('is refused: %j', async (body, field, problem) => {
    expect(await login('root@example.com', '192.88.99.1')).toEqual([200, null])
    const { token } = await service.login('root@example.com')
    const answer = await service.call('POST', bans, { token, body })
    expect([answer.status, answer.body.error.details]).toEqual([400, { [field]: problem }])
  })
})

test('commands ban, show people and their sessions, log them out, and read the audit log', async () => {
  const run = async (line: string) => (await hostline(line.split(' '), service.directory)).out
  const carol = await service.register('carol')
  expect(await run('ban add network 192.0.3.77/24 --reason flood')).toBe(
    'network 192.0.3.77/24 is banned',
  )
  expect(await run('ban list')).toMatch(/network\t192\.0\.3\.0\/24\tflood\t/)
  expect(await run('ban remove network 192.0.3.0/24')).toBe(
    'network 192.0.3.0/24 is no longer banned',
  )
  const again = await hostline('ban remove network 192.0.3.0/24'.split(' '), service.directory)
  expect(again).toMatchObject({ exitCode: 1, err: 'hostline: network 192.0.3.0/24 is not banned' })
  const show = async () => JSON.parse(await run('user show carol@example.com --json'))
  await waitFor(async () => {
    clock.advance(500)
    return (await show()).deliveries.length === 1
  })
  // Without a mail server.
  const written = { state: 'skipped', answer: 'written to the log: SMTP_URL is not set' }
  expect(await show()).toMatchObject({ id: carol.id, deliveries: [written] })
  for (const name of ['carol@example.com', carol.id]) {
    expect(await run(`user show ${name}`)).toContain('email\tcarol@example.com')
  }
  expect(JSON.parse(await run('user sessions carol@example.com --json'))).toMatchObject([
    { ip: '127.0.0.1' },
  ])
  expect(await run('user logout carol@example.com')).toContain('logged out on every device')
  expect((await service.call('GET', '/v1/users/me', { token: carol.token })).status).toBe(401)
  const since = new Date(clock.now() - 1_000).toISOString()
  const about = JSON.parse(await run(`audit --user carol@example.com --since ${since} --json`))
  expect(about.map(({ action }: { action: string }) => action)).toEqual([
    'user_registered',
    'sessions_viewed',
    'session_ended',
  ])
  expect(await run('audit --action ban_removed')).toMatch(
    /ban_removed\ttype=command_line id=\S+\ttype=ban id=\w+\t–\tkind=network value=192\.0\.3\.0\/24/,
  )
  // The log names removed people by their id.
  await run('user purge carol@example.com')
  expect(await run(`audit --user ${carol.id}`)).toContain('purge_requested')
  const checked = JSON.parse(await run('check --json'))
  expect(checked).toContainEqual({ subject: 'TLS', state: 'ok', message: 'off' })
})

/** Gives a new person 20,000 sessions from one address, and logs the admin in again. */
async function manySessions(of: { name: string; prefix: string; ip: string; revokedAt?: number }) {
  const { id } = await service.register(of.name)
  Object.assign(root, await service.login(root.email))
  service.trust(root)
  service.sqlite.run(
    `WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
     INSERT INTO sessions (id, user_id, ip, created_at, last_used_at, revoked_at)
     SELECT printf('%s%025d', ?3, i), ?1, ?4, ?2, ?2, ?5 FROM n`,
    [id, clock.now(), of.prefix, of.ip, of.revokedAt ?? null],
  )
}

test('a ban of a network that is removed while it ends sessions ends no more', async () => {
  await manySessions({ name: 'spared', prefix: 'Y', ip: '192.0.6.1' })
  let removing: ReturnType<typeof asRoot> | undefined
  using _ = spyOn(service.hub, 'closeSession').mockImplementationOnce(() => {
    removing = asRoot('GET', bans).then(({ body }) =>
      asRoot('DELETE', `${bans}/${body.data[0].id}`),
    )
  })
  expect((await asRoot('POST', bans, { kind: 'network', value: '192.0.6.0/24' })).status).toBe(201)
  expect((await removing)?.status).toBe(204)
  const left = "SELECT count(*) AS n FROM sessions WHERE id LIKE 'Y%' AND revoked_at IS NULL"
  expect(service.sqlite.query<{ n: number }, []>(left).get()?.n).toBeGreaterThan(1_000)
})

test('a ban of a network passes over ended sessions in short writes', async () => {
  await manySessions({ name: 'ended', prefix: 'Z', ip: '192.0.5.1', revokedAt: clock.now() })
  let [transactions, isOver] = [0, false]
  using _ = { [Symbol.dispose]: () => (isOver = true) }
  watchRuns(() => {
    if (!isOver && !service.sqlite.inTransaction) transactions++
  })
  const network = { kind: 'network', value: '192.0.5.0/24' }
  expect((await asRoot('POST', bans, network)).status).toBe(201)
  expect(transactions).toBeGreaterThan(20)
})
