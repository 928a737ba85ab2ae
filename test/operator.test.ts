import { describe, expect, test } from 'bun:test'
import { cpSync } from 'node:fs'
import { ulid } from 'ulid'
import type { FileStorage } from '../src/files/storage.ts'
import { createRequestHistory } from '../src/modules/operator/request-history.ts'
import { createTestClock } from './support/clock.ts'
import { hostline } from './support/command.ts'
import { insertDeadJob } from './support/dead-job.ts'
import { upload } from './support/files.ts'
import { startMailServer } from './support/mail.ts'
import { startService, type TestService } from './support/service.ts'
import { recordStatements } from './support/statements.ts'
import { waitFor } from './support/wait.ts'

const day = 86_400_000
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/)
const command = (line: string, { directory }: TestService) => hostline(line.split(' '), directory)
const audited = ({ sqlite }: TestService, action: string) =>
  sqlite.query('SELECT actor_type, target_id FROM audit_log WHERE action = ?').values(action)

describe('jobs', () => {
  test('are listed by state, retried and discarded by admins', async () => {
    const clock = createTestClock()
    await using service = await startService({ clock })
    const { token } = await service.registerAs('admin')
    const id = insertDeadJob(service.sqlite)
    const jobs = async (query: string) =>
      (await service.call('GET', `/v1/admin/jobs?${query}`, { token })).body
    const dead = {
      id,
      kind: 'assignee_mail',
      state: 'dead',
      attempts: 12,
      last_error: 'the server said no',
      run_at: time,
      subject: { type: 'ticket', id: 'none', name: null },
    }
    expect((await jobs('state=dead')).data).toEqual([dead])
    expect((await jobs('state=dead')).pagination.total).toBe(1)
    const later = insertDeadJob(service.sqlite)
    service.sqlite.run('UPDATE outbox SET dead_at = NULL, run_at = run_at + ? WHERE id = ?', [
      day,
      later,
    ])
    const waiting = (await jobs('state=waiting&limit=10')).data
    expect(waiting).toContainEqual(expect.objectContaining({ id: later, state: 'waiting' }))
    expect(waiting).not.toContainEqual(expect.objectContaining({ id }))
    await service.call('DELETE', `/v1/admin/jobs/${later}`, { token })
    expect((await jobs('state=ill')).error.details).toEqual({ state: expect.any(String) })

    const retried = await service.call('POST', `/v1/admin/jobs/${id}/retry`, { token })
    expect(retried.body).toEqual({ ...dead, state: 'waiting', attempts: 0 })
    await waitFor(async () => (await jobs('')).pagination.total === 0, 'the job is done')

    const other = insertDeadJob(service.sqlite)
    expect((await service.call('DELETE', `/v1/admin/jobs/${other}`, { token })).status).toBe(204)
    for (const [method, path] of [
      ['DELETE', other],
      ['POST', `${other}/retry`],
      ['DELETE', 'nonsense'],
    ] as const) {
      expect((await service.call(method, `/v1/admin/jobs/${path}`, { token })).status).toBe(404)
    }
    expect(audited(service, 'job_retried')).toEqual([['user', id]])
    expect(audited(service, 'job_discarded')).toEqual([
      ['user', later],
      ['user', other],
    ])
  })

  test('say whom they are for', async () => {
    await using service = await startService({ clock: createTestClock() })
    const { token, id } = await service.registerAs('admin', 'root')
    const job = insertDeadJob(service.sqlite)
    service.sqlite.run(`UPDATE outbox SET payload = json_object('user_id', ?) WHERE id = ?`, [
      id,
      job,
    ])
    const { body } = await service.call('GET', '/v1/admin/jobs?state=dead', { token })
    expect(body.data[0].subject).toEqual({ type: 'user', id, name: 'root' })
  })

  test('are listed, retried and discarded on the command line', async () => {
    const clock = createTestClock()
    await using service = await startService({ clock })
    const [first, second] = [insertDeadJob(service.sqlite), insertDeadJob(service.sqlite)]
    const listed = await command('jobs list --dead --json', service)
    expect(JSON.parse(listed.out).map(({ id }: { id: string }) => id)).toEqual([second, first])
    expect((await command('jobs list', service)).out).toContain(`${first}\tassignee_mail\tdead\t12`)
    expect((await command('jobs retry nonsense', service)).err).toBe(
      'hostline: there is no job nonsense',
    )
    expect((await command(`jobs retry ${first}`, service)).out).toBe(`${first} is due again`)
    expect((await command('jobs discard --all', service)).out).toBe('1 job is discarded')
    await waitFor(() => {
      clock.advance(1_000)
      return service.sqlite.query('SELECT 1 FROM outbox').get() === null
    }, 'the running server has done the other')
    expect(audited(service, 'job_discarded')).toEqual([['command_line', second]])
  })

  test.each(['retry', 'discard'])('that are gone do not stop %s --all', async (action) => {
    await using service = await startService({ clock: createTestClock() })
    for (let n = 0; n < 3; n++) insertDeadJob(service.sqlite)
    service.sqlite.run(`CREATE TRIGGER quicker AFTER INSERT ON audit_log
      BEGIN DELETE FROM outbox WHERE id = (SELECT min(id) FROM outbox WHERE dead_at NOT NULL); END`)
    const { out, exitCode } = await command(`jobs ${action} --all`, service)
    expect([exitCode, out]).toMatchObject([0, expect.stringMatching(/^2 jobs are /)])
  })

  test('that fail again while all are retried are retried once', async () => {
    const clock = createTestClock(Date.now() + day)
    await using service = await startService({ clock })
    for (let n = 0; n < 450; n++) insertDeadJob(service.sqlite)
    expect((await command('jobs retry --all', service)).out).toBe('450 jobs are due again')
    expect((await command('jobs retry --all', service)).out).toBe('0 jobs are due again')
  })
})

describe('the audit log', () => {
  async function openLog() {
    const service = await startService()
    const root = await service.registerAs('admin', 'root')
    const ada = await service.register('ada')
    await service.call('PATCH', `/v1/admin/users/${ada.id}`, {
      token: root.token,
      body: { disabled: true },
    })
    const search = async (query: string) =>
      (await service.call('GET', `/v1/admin/audit-log?${query}`, { token: root.token })).body
    return { service, root, ada, search, [Symbol.asyncDispose]: service[Symbol.asyncDispose] }
  }
  type Row = { action: string; at: string }
  const actions = ({ data }: { data: Row[] }) => data.map(({ action }) => action)

  test('is searched along the condition with the fewest entries', async () => {
    const statements = recordStatements()
    await using log = await openLog()
    const { service, root, ada, search } = log
    const usedIndex = async (query: string) => {
      expect(actions(await search(`${query}&limit=5`))).toEqual(['user_disabled'])
      const list = [...statements].findLast((sql) => /from "audit_log" where .* limit/.test(sql))
      const plan = service.sqlite.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${list}`).all()
      return /INDEX (\w+)/.exec(plan[0]?.detail ?? '')?.[1]
    }
    const byRoot = `actor_id=${root.id}&action=user_disabled`
    expect(await usedIndex(byRoot)).toBe('audit_log_actor')
    expect(await usedIndex(`${byRoot}&target_id=${ada.id}`)).toBe('audit_log_target_id')
    service.sqlite.run(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20001)
       INSERT INTO audit_log (id, at, action, actor_type, actor_id)
       SELECT printf('00%024d', i), 0, 'user_enabled', 'user', ? FROM n`,
      [root.id],
    )
    expect(await usedIndex(byRoot)).toBe('audit_log_action')
  })

  test('is searched by action, actor, target and time', async () => {
    await using log = await openLog()
    const { search, root, ada } = log
    expect(actions(await search('action=user_disabled'))).toEqual(['user_disabled'])
    expect(actions(await search(`actor_id=${root.id.toLowerCase()}`))).toEqual([
      'user_disabled',
      'user_registered',
    ])
    expect(actions(await search(`target_id=${ada.id}&action=user_registered`))).toEqual([
      'user_registered',
    ])
    const all = await search('')
    const [{ at }] = all.data
    expect((await search(`from=${at}`)).pagination.total).toBeGreaterThan(0)
    expect((await search(`to=${all.data.at(-1).at}`)).data).toEqual([])
    const past = '1970-01-01T00:00:00Z'
    expect((await search(`from=${past}&to=9999-12-31T00:00:00Z`)).data).toEqual(all.data)
    expect((await search('from=yesterday')).error.details).toEqual({ from: expect.any(String) })
  })

  test('is searched by the time of its entries also after the clock took local time for UTC', async () => {
    const clock = createTestClock()
    await using service = await startService({ clock })
    const root = await service.registerAs('admin', 'root')
    clock.advance(14 * 3_600_000)
    await service.login(root.email)
    clock.setBack(14 * 3_600_000)
    const ada = await service.register('ada')
    const to = new Date(clock.now() + 1).toISOString()
    const path = `/v1/admin/audit-log?to=${to}&target_id=${ada.id}`
    const { body } = await service.call('GET', path, { token: root.token })
    expect(actions(body)).toEqual(['user_registered'])
  })

  test('names the users, as long as their accounts exist', async () => {
    await using log = await openLog()
    const { search, root, ada, service } = log
    const [entry] = (await search('action=user_disabled')).data
    expect(entry.actor).toEqual({ type: 'user', id: root.id, name: 'root' })
    expect(entry.target).toEqual({ type: 'user', id: ada.id, name: 'ada' })
    await service.call('DELETE', `/v1/admin/users/${ada.id}`, { token: root.token })
    const [after] = (await search('action=user_disabled')).data
    expect(after.target).toEqual({ type: 'user', id: ada.id, name: null })
  })

  test('keeps the filter in its cursor', async () => {
    await using log = await openLog()
    const first = await log.search('action=user_registered&limit=1')
    const { cursor } = first.pagination
    const next = await log.search(`action=user_registered&limit=1&cursor=${cursor}`)
    expect(actions(next)).toEqual(['user_registered'])
    expect(next.data).not.toEqual(first.data)
    expect(next.pagination.has_more).toBe(false)
  })

  test('is kept for AUDIT_DAYS and never for less than a month', async () => {
    const clock = createTestClock()
    await using service = await startService({ clock, environment: { AUDIT_DAYS: '40' } })
    const insert = (id: string, daysAgo: number) =>
      service.sqlite.run(
        "INSERT INTO audit_log (id, at, action, actor_type) VALUES (?, ?, 'old', 'system')",
        [id, Date.now() - daysAgo * day],
      )
    insert('01', 41)
    insert('02', 39)
    insert('03', 1)
    const left = () =>
      service.sqlite.query("SELECT id FROM audit_log WHERE action = 'old'").values()
    clock.advance(3_600_000)
    await waitFor(() => left().length === 2)
    expect(left()).toEqual([['02'], ['03']])
    expect(() => service.sqlite.run("DELETE FROM audit_log WHERE id = '03'")).toThrow('append-only')
  })

  test('is pruned at start, too', async () => {
    await using first = await startService()
    const old = Date.now() - 400 * day
    first.sqlite.run(
      "INSERT INTO audit_log (id, at, action, actor_type) VALUES (?, ?, 'old', 'system')",
      [ulid(old), old],
    )
    await first.stop()
    const fill = async (to: string) => cpSync(first.directory, to, { recursive: true })
    await using second = await startService({ fill })
    await waitFor(
      () => second.sqlite.query("SELECT 1 FROM audit_log WHERE action = 'old'").get() === null,
    )
  })
})

describe('the system', () => {
  test('is shown to admins: sizes, traffic, deliveries, warnings', async () => {
    const clock = createTestClock()
    await using mail = await startMailServer()
    const environment = { SMTP_URL: mail.url, PUBLIC_URL: 'https://chat.example.com' }
    await using service = await startService({ listen: true, clock, environment })
    const root = await service.registerAs('admin')
    await service.register('ada')
    const waiting = service.sqlite.query('SELECT 1 FROM outbox')
    await waitFor(() => waiting.get() === null, 'the mails to be sent')
    const socket = await service.connect(root)
    insertDeadJob(service.sqlite)
    await service.call('GET', '/v1/users/me', { token: root.token })
    clock.advance(60_000)
    const { status, body } = await service.call('GET', '/v1/admin/system', { token: root.token })
    expect(status).toBe(200)
    expect(body).toEqual({
      version: expect.stringMatching(/^\d/),
      started_at: time,
      uptime_seconds: 60,
      database_bytes: expect.any(Number),
      wal_bytes: expect.any(Number),
      free_disk_bytes: expect.any(Number),
      sockets: 1,
      socket_users: 1,
      last_hour: [expect.objectContaining({ at: time, failed: 0, frames: 0 })],
      outbox: [{ kind: 'assignee_mail', state: 'dead', count: 1 }],
      mail: { configured: true, last_sent_at: time, last_failed_at: null, last_error: null },
      push: { configured: false, last_sent_at: null, last_failed_at: null, last_error: null },
      webhooks: { total: 0, disabled: 0, failing: 0, dropped: 0 },
      replication: null,
      last_backup_at: null,
      warnings: [
        { code: 'no_admin_totp', message: expect.any(String) },
        { code: 'dead_jobs', message: expect.any(String) },
        { code: 'no_backup', message: expect.any(String) },
      ],
    })
    const [minute] = body.last_hour
    expect(minute.requests).toBeGreaterThanOrEqual(2)
    expect(minute.p99_ms).toBeGreaterThanOrEqual(minute.p50_ms)
    expect(minute.p50_ms).toBeGreaterThan(0)
    socket.close()
  })

  test('has the median and the 99th percentile of each minute', () => {
    const clock = createTestClock(0)
    const history = createRequestHistory(clock)
    for (let n = 0; n <= 100; n++) history.countRequest(200, n)
    clock.advance(60_000)
    history.countFrame()
    clock.advance(60_000)
    const [busy, quiet] = history.list()
    expect(Math.abs((busy?.p50 ?? 0) - 50)).toBeLessThan(0.5)
    expect(Math.abs((busy?.p99 ?? 0) - 99)).toBeLessThan(1)
    expect([quiet?.p50, quiet?.p99]).toEqual([null, null])
    clock.advance(60 * 60_000)
    expect(history.list()).toEqual([expect.objectContaining({ at: 120_000 })])
  })

  test('counts in the present minute after the clock was set back', () => {
    const clock = createTestClock(3_600_000)
    const history = createRequestHistory(clock)
    clock.setBack(600_000)
    history.countRequest(200, 1)
    clock.advance(60_000)
    expect(history.list()).toContainEqual(expect.objectContaining({ at: 3_000_000, requests: 1 }))
  })

  test('warns of missing settings', async () => {
    await using service = await startService()
    const { token } = await service.registerAs('admin')
    const { body } = await service.call('GET', '/v1/admin/system', { token })
    expect(body.warnings.map(({ code }: { code: string }) => code)).toEqual([
      'no_smtp',
      'public_url_http',
      'no_admin_totp',
      'no_backup',
    ])
  })
})

describe('admins', () => {
  async function openPeople(clock = createTestClock()) {
    const service = await startService({ clock })
    const [root, ada] = [await service.registerAs('admin'), await service.register('ada')]
    const ask = (method: string, path: string, body?: object) =>
      service.call(method, `/v1/admin/users/${ada.id}${path}`, { token: root.token, body })
    return { service, root, ada, ask, clock, [Symbol.asyncDispose]: service[Symbol.asyncDispose] }
  }

  test('see the sessions of a user and export their data', async () => {
    await using people = await openPeople()
    const { ask, ada, root, service } = people
    const { body } = await ask('GET', '/sessions')
    expect(body.data).toEqual([expect.objectContaining({ id: expect.any(String), current: false })])
    const ofAnotherList = Buffer.from('["users","x"]').toString('base64url')
    expect((await ask('GET', `/sessions?cursor=${ofAnotherList}`)).status).toBe(400)
    expect(
      service.sqlite
        .query("SELECT actor_id, target_id FROM audit_log WHERE action = 'sessions_viewed'")
        .values(),
    ).toEqual([[root.id, ada.id]])
    const exported = await ask('GET', '/export')
    expect(exported.headers.get('content-disposition')).toContain('attachment')
    expect(exported.body.user).toMatchObject({ id: ada.id, email: ada.email })
    expect(exported.body.sessions).toHaveLength(1)
    expect(
      service.sqlite
        .query("SELECT actor_id, target_id FROM audit_log WHERE action = 'data_exported'")
        .values(),
    ).toEqual([[root.id, ada.id]])
  })

  test('verify an address', async () => {
    await using people = await openPeople()
    const { body } = await people.ask('PATCH', '', { email_verified: true })
    expect([body.role, body.email_verified]).toEqual(['verified_user', true])
  })

  test('mail a user the link to a new password, one valid at a time, and none while disabled', async () => {
    await using people = await openPeople()
    const { ask, service, clock, root, ada } = people
    expect((await ask('POST', '/password-reset')).status).toBe(204)
    clock.advance(1_000)
    await waitFor(() => service.log().includes('/reset-password?'))
    const again = await ask('POST', '/password-reset')
    expect([again.status, again.headers.get('x-error-reason')]).toEqual([429, 'mail_throttled'])
    expect(audited(service, 'password_reset_requested')).toEqual([['user', ada.id]])
    expect(audited(service, 'password_reset_requested')).not.toEqual([['user', root.id]])
    const [, token] = /\/reset-password\?\S*#token=([\w-]+)/.exec(service.log()) ?? []
    for (const disabled of [true, false]) await ask('PATCH', '', { disabled })
    const { body } = await service.call('POST', '/v1/auth/password/reset', {
      body: { token, password: 'six red bicycles' },
    })
    expect(body.error.details).toEqual({ token: 'is not valid, has expired or was already used' })
    await ask('PATCH', '', { disabled: true })
    clock.advance(60_000)
    expect((await ask('POST', '/password-reset')).status).toBe(204)
    clock.advance(1_000)
    await waitFor(() => service.sqlite.query('SELECT 1 FROM outbox').get() === null)
    expect(service.log().match(/\/reset-password\?/g)).toHaveLength(1)
  })

  test('remove a user as the user could', async () => {
    await using people = await openPeople()
    const { ask, service, ada, root } = people
    expect((await ask('DELETE', '')).status).toBe(204)
    expect((await ask('GET', '')).status).toBe(404)
    expect((await service.call('GET', '/v1/users/me', { token: ada.token })).status).toBe(401)
    await service.register('ada') // the address is free again
    const own = await service.call('DELETE', `/v1/admin/users/${root.id}`, { token: root.token })
    expect([own.status, own.headers.get('x-error-reason')]).toEqual([409, 'last_admin'])
  })

  test('a reset says whether somebody gets the mail', async () => {
    await using mail = await startMailServer()
    await using service = await startService({ environment: { SMTP_URL: mail.url } })
    const { email } = await service.register('ada')
    const answer = await command(`user reset ${email}`, service)
    expect(answer).toMatchObject({ out: `${email} gets a link for a new password` })
    await command(`user disable ${email}`, service)
    const refused = await command(`user reset ${email}`, service)
    const err = `hostline: ${email} is disabled and gets no mail`
    expect(refused).toEqual({ exitCode: 1, out: '', err })
  })

  test('can do so on the command line, too', async () => {
    await using people = await openPeople()
    const { service, ada, clock } = people
    const device = { token: 'device', platform: 'ios' }
    await service.call('POST', '/v1/notifications/push-tokens', { token: ada.token, body: device })
    expect(await command('user reset ada@example.com', service)).toMatchObject({ exitCode: 0 })
    expect((await command('user reset ada@example.com', service)).err).toContain('try again later')
    clock.advance(1_000)
    await waitFor(() => service.log().includes('/reset-password?'))
    expect(await command('user delete ada@example.com', service)).toMatchObject({ exitCode: 0 })
    expect((await command('user delete ada@example.com', service)).err).toBe(
      'hostline: there is no account ada@example.com',
    )
    const kept = () => service.sqlite.query('SELECT 1 FROM push_tokens').get()
    await waitFor(() => {
      clock.advance(1_000)
      return kept() === null
    }, 'what the modules keep is gone')
    expect(audited(service, 'user_deleted')).toEqual([['command_line', ada.id]])
  })
})

describe('the request log', () => {
  type Line = Record<string, unknown>
  const lines = (service: TestService, message = 'request'): Line[] =>
    service
      .log()
      .split('\n')
      .filter((line) => line.includes(`"message":"${message}"`))
      .map((line) => JSON.parse(line))
  const wrongPassword = { body: { email: 'ada@example.com', password: 'wrong' } }

  test('shows what was refused, for whom and why, and leaves strangers out', async () => {
    await using service = await startService()
    const { token, id } = await service.register('ada')
    await service.call('GET', '/v1/users/me', { token })
    await service.call('GET', '/v1/users/me')
    await service.call('GET', '/nowhere')
    const denied = await service.call('GET', '/v1/admin/system', { token })
    await service.call('GET', '/nowhere', { token })
    await service.call('POST', '/v1/auth/login', wrongPassword)
    expect(lines(service)).toEqual([
      expect.objectContaining({
        level: 'info',
        request_id: denied.headers.get('x-request-id'),
        user: id,
        route: 'GET /v1/admin/system',
        status: 403,
        code: 'forbidden',
        reason: 'role_required',
        milliseconds: expect.any(Number),
      }),
      expect.objectContaining({ user: id, route: 'GET unknown', status: 404, code: 'not_found' }),
      expect.objectContaining({
        route: 'POST /v1/auth/login',
        status: 401,
        code: 'invalid_credentials',
      }),
    ])
    expect(service.log()).not.toContain(token)
  })

  test('counts refusals of strangers and 429s, in a line a minute', async () => {
    const clock = createTestClock()
    const environment = { RATE_LIMIT_USER: '3/1m', RATE_LIMIT_ANONYMOUS: '3/1m' }
    await using service = await startService({ clock, environment })
    const { token, id } = await service.register('ada')
    for (let n = 0; n < 500; n++) await service.call('GET', '/v1/openapi.json')
    for (let n = 0; n < 10; n++) await service.call('GET', '/v1/users/me', { token })
    await service.call('GET', '/v1/users/me')
    await service.call('POST', '/v1/auth/login', { body: {} })
    expect(lines(service)).toEqual([])
    clock.advance(60_000)
    expect(lines(service, 'requests refused')).toEqual([
      expect.objectContaining({
        counts: {
          '429 GET /v1/openapi.json': 497,
          '429 GET /v1/users/me': 1,
          '429 POST /v1/auth/login': 1,
        },
      }),
      expect.objectContaining({ user: id, counts: { '429 GET /v1/users/me': 7 } }),
    ])
    clock.advance(60_000)
    expect(lines(service, 'requests refused')).toHaveLength(2)
  })

  test('shows failures of strangers, up to 60 a minute, and one cause', async () => {
    const clock = createTestClock()
    const fileStorage: FileStorage = {
      write: async (_key, bytes) => void (await Array.fromAsync(bytes)),
      read: () => Promise.reject(new Error('the bucket is away')),
      delete: async () => {},
    }
    await using service = await startService({ clock, fileStorage })
    const { body } = await upload(service, await service.register(), 'text')
    const path = new URL(body.file_url).pathname
    for (let n = 0; n < 70; n++) expect((await service.call('GET', path)).status).toBe(503)
    expect(lines(service).map(({ status }) => status)).toEqual(Array(60).fill(503))
    expect(lines(service, 'a file cannot be stored or read')).toHaveLength(1)
    clock.advance(60_000)
    expect(service.log()).toContain('"counts":{"503 GET /v1/files/:id/:name":10}')
  })

  test('shows wrong passwords, up to 60 a minute', async () => {
    const clock = createTestClock()
    await using service = await startService({ clock })
    const guess = async (n: number) => {
      const body = { email: `nobody${n}@example.com`, password: 'wrong password' }
      await service.call('POST', '/v1/auth/login', { body })
    }
    for (let n = 0; n < 70; n++) await guess(n)
    expect(lines(service).map(({ code }) => code)).toEqual(Array(60).fill('invalid_credentials'))
    clock.advance(60_000)
    expect(service.log()).toContain('"counts":{"401 POST /v1/auth/login":10}')
    await guess(70)
    expect(lines(service)).toHaveLength(61)
    await service.call('GET', '/v1/users/me')
    await service.stop()
    expect(service.log()).toContain('"counts":{"401 GET /v1/users/me":1}')
  })

  test('names the service key', async () => {
    await using service = await startService()
    const key = await service.issueKey(['calls'])
    await service.call('GET', '/v1/service/users/x', { token: key.token })
    expect(lines(service)).toEqual([expect.objectContaining({ key: key.id, status: 403 })])
    expect(service.log()).not.toContain(key.token)
  })

  test.each([
    ['all', ['POST /v1/auth/register', 'GET /healthz', 'GET /v1/users/me']],
    ['off', []],
  ])('%s', async (mode, routes) => {
    await using service = await startService({ environment: { LOG_REQUESTS: mode } })
    await service.register('ada')
    await service.call('GET', '/healthz')
    await service.call('GET', '/v1/users/me')
    expect(lines(service).map(({ route }) => route)).toEqual(routes)
  })
})

test('sent mails are logged at debug level, without the address', async () => {
  await using mail = await startMailServer()
  await using service = await startService({ environment: { SMTP_URL: mail.url } })
  await service.register('ada')
  await waitFor(() => service.log().includes('"message":"mail sent"'))
  expect(service.log()).toContain('"level":"debug","message":"mail sent","subject":')
  expect(service.log()).not.toContain('ada@example.com')
})
