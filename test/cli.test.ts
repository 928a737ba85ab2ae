import { Database } from 'bun:sqlite'
import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../src/lib/clock.ts'
import { createTestClock } from './support/clock.ts'
import { hostline as run } from './support/command.ts'
import { temporaryDirectory } from './support/directory.ts'
import { startGoogle } from './support/push-services.ts'
import { startService } from './support/service.ts'
import { waitFor } from './support/wait.ts'

const hostline = (line: string, dataDir: string, options: Parameters<typeof run>[2] = {}) =>
  run(line.split(' '), dataDir, options)
const empty = temporaryDirectory()
const silent = Bun.serve({ port: 0, fetch: () => new Promise<Response>(() => {}) })
// It times out after five seconds, so it runs beside the other tests.
const unanswered = hostline('health', empty.path, { environment: { PORT: String(silent.port) } })
afterAll(() => {
  silent.stop(true)
  empty[Symbol.dispose]()
})

test.each(['serve', 'standby', 'restore backup.db', 'backup backup.db', 'user list', 'check'])(
  '%s refuses to run with an SQLite that may lose commits',
  async (line) => {
    using directory = temporaryDirectory()
    for (const sqliteVersion of ['3.51.2', '3.9.0']) {
      expect(await hostline(line, directory.path, { sqliteVersion })).toEqual({
        exitCode: 1,
        out: '',
        err: `hostline: SQLite ${sqliteVersion} is too old: 3.53.0 or newer is required (docs/operations.md, Install)`,
      })
    }
    expect(readdirSync(directory.path)).toEqual([])
  },
)

test.each(['3.53.0', '3.60.0', '4.0.0'])('SQLite %s is recent enough', async (sqliteVersion) => {
  const { err } = await hostline('user list', empty.path, { sqliteVersion })
  expect(err).toContain('there is no database')
})

describe('usage', () => {
  test.each(['help', '--help', '-h'])('%s lists every command', async (line) => {
    const { exitCode, out } = await hostline(line, empty.path)
    expect(exitCode).toBe(0)
    for (const command of [
      'serve',
      'standby',
      'hand-over',
      'replica status',
      'restore s3',
      'user create',
      'keys list',
      'service-key create',
      'check',
      'health',
      'openapi',
      'version',
    ]) {
      expect(out).toContain(command)
    }
  })

  test.each([
    ['help user', 'user disable E', 'keys rotate'],
    ['user --help', 'user disable E', 'keys rotate'],
    ['keys rotate --help', 'keys rotate [--now]', 'user disable'],
  ])('%s shows that command only', async (line, expected, absent) => {
    const { exitCode, out } = await hostline(line, empty.path)
    expect(exitCode).toBe(0)
    expect(out).toContain(expected)
    expect(out).not.toContain(absent)
  })

  test('version is that of the package', async () => {
    const { version } = await Bun.file(join(import.meta.dir, '../package.json')).json()
    expect(await hostline('version', empty.path)).toEqual({ exitCode: 0, out: version, err: '' })
  })

  test.each([
    ['nonsense', 'there is no command "nonsense"'],
    ['constructor', 'there is no command "constructor"'],
    ['help constructor', 'there is no command "constructor"'],
    [
      'user',
      'user create, show, role, verify, disable, enable, sessions, logout, delete, purge, reset, totp-off or list',
    ],
    [
      'user dance',
      'user create, show, role, verify, disable, enable, sessions, logout, delete, purge, reset, totp-off or list',
    ],
    [
      'user constructor',
      'user create, show, role, verify, disable, enable, sessions, logout, delete, purge, reset, totp-off or list',
    ],
    ['jobs', 'jobs list, retry or discard'],
    ['version extra', 'extra'],
    ['jobs retry', 'jobs retry needs the id of a job, or --all'],
    ['jobs discard X --all', 'jobs discard needs the id of a job, or --all'],
    ['user create --role admin', 'user create needs --email and --role'],
    ['user create --email a@b.co', 'user create needs --email and --role'],
    ['user create --email a@b.co --role root', 'the role must be one of'],
    ['user create --email a@b.co --role admin --shiny', 'shiny'],
    ['user role a@b.co', 'the role must be one of'],
    ['user verify a', '"a" is not an e-mail address'],
    ['keys', 'keys list or rotate'],
    ['service-key', 'service-key create, list or revoke'],
    ['service-key create', 'service-key create needs --name'],
    ['service-key create --name a', 'service-key create needs --scope'],
    ['service-key create --name a --scope all --expires soon', '--expires takes days'],
    ['service-key revoke', 'service-key revoke needs the id'],
    ['service-key create --name a --scope money', 'the scope must be one of'],
    ['serve now', 'unexpected "now"'],
    ['backup . --fetch latest --keep 3', '--fetch makes no backup and takes no --keep'],
    ['restore s3 --list --at 2026-11-22T10:00:00Z', '--list restores nothing'],
    ['backup a.db --keep -1', "starting with a dash use '--keep=-XYZ'"],
  ])('%s is wrong usage: exit 2 and one line', async (line, reason) => {
    const { exitCode, err, out } = await hostline(line, empty.path)
    expect([exitCode, out]).toEqual([2, ''])
    expect(err).toStartWith('hostline: ')
    expect(err).toContain(reason)
    expect(err.split('\n')).toHaveLength(1)
  })

  test('an invalid configuration exits with 1', async () => {
    const { exitCode, err } = await hostline('serve', empty.path, { environment: { PORT: 'x' } })
    expect([exitCode, err]).toEqual([
      1,
      'hostline: PORT must be a whole number from 0 to 65535, not "x"',
    ])
  })
})

describe('accounts', () => {
  const created = 'user create --email Ada@Example.com --role admin --password-stdin'

  test('a user created by a command can log in, is verified and has the role', async () => {
    await using service = await startService()
    const made = await hostline(created, service.directory, { stdin: 'correct horse\nmore' })
    expect(made.exitCode).toBe(0)
    expect(made.out).toMatch(/^[0-9A-Z]{26}\tada@example\.com\tadmin$/)
    const body = { email: 'ada@example.com', password: 'correct horse' }
    const { user } = (await service.call('POST', '/v1/auth/login', { body })).body
    expect(user).toMatchObject({ role: 'admin', email_verified: true })
  })

  test('a password that is not UTF-8 is refused: no login could give it', async () => {
    const stdin = Buffer.from('correct hörse', 'latin1').toString()
    const { exitCode, err } = await hostline(created, empty.path, { stdin })
    expect([exitCode, err]).toEqual([1, 'hostline: the password is not text in UTF-8'])
  })

  test('without --password-stdin a password is generated and shown', async () => {
    await using service = await startService()
    const { out } = await hostline('user create --email a@b.co --role host', service.directory)
    const password = /password: (\S{24})$/.exec(out)?.[1]
    const login = await service.call('POST', '/v1/auth/login', {
      body: { email: 'a@b.co', password },
    })
    expect(login.body.user.role).toBe('host')
  })

  test.each([
    'user create --email a@b.co --role admin',
    'user list',
    'keys list',
    'service-key list',
  ])('%s creates no database and names the missing path', async (line) => {
    using directory = temporaryDirectory()
    const path = join(directory.path, 'mistyped')
    const { exitCode, err } = await hostline(line, path)
    expect([exitCode, err]).toEqual([
      1,
      `hostline: there is no database in ${path}: start the server once, or set DATA_DIR`,
    ])
    expect(existsSync(path)).toBe(false)
  })

  test('a command that only reads leaves the file as it is', async () => {
    using directory = temporaryDirectory()
    const service = await startService({ dataDir: directory.path })
    await service.register()
    await service.stop()
    const digest = async () =>
      Bun.hash(await Bun.file(join(directory.path, 'hostline.db')).arrayBuffer())
    const before = await digest()
    expect((await hostline('user list', directory.path)).exitCode).toBe(0)
    expect(await digest()).toBe(before)
  })

  test('a command leaves a database of another version unchanged', async () => {
    await using service = await startService()
    await service.stop()
    const path = join(service.directory, 'hostline.db')
    const setVersion = (version: number) => {
      using sqlite = new Database(path)
      sqlite.run(`PRAGMA user_version = ${version}`)
    }
    for (const [version, reason] of [
      [0, 'is empty or older than this hostline: start the server once'],
      [99, 'use a newer executable'],
    ] as const) {
      setVersion(version)
      const { exitCode, err } = await hostline('user list', service.directory)
      expect([exitCode, err]).toEqual([1, expect.stringContaining(reason)])
      using sqlite = new Database(path)
      expect(sqlite.query('PRAGMA user_version').values()).toEqual([[version]])
    }
  })

  test.each([
    ['short', 'the password must have at least 8 characters'],
    ['Football', 'the password must not be'],
    ['ada@example.com', 'the password must not be'],
  ])('the password %s is refused', async (stdin, reason) => {
    await using service = await startService()
    const { exitCode, err } = await hostline(created, service.directory, { stdin })
    expect([exitCode, err]).toEqual([1, expect.stringContaining(`hostline: ${reason}`)])
  })

  test('verify turns user into verified_user, and leaves a host unchanged', async () => {
    await using service = await startService()
    await service.register('ada')
    await service.register('bob')
    for (const line of [
      'user role bob@example.com host',
      'user verify ada@example.com',
      'user verify bob@example.com',
    ]) {
      expect(await hostline(line, service.directory)).toMatchObject({ exitCode: 0, err: '' })
    }
    const { out } = await hostline('user list', service.directory)
    const states = out.split('\n').map((line) => line.split('\t').slice(1, 4))
    expect(states).toEqual([
      ['email', 'role', 'state'],
      ['ada@example.com', 'verified_user', 'verified'],
      ['bob@example.com', 'host', 'verified'],
    ])
  })

  test('a user with a verified address is a verified_user, whichever role was set', async () => {
    await using service = await startService()
    await hostline('user create --email ada@example.com --role user', service.directory)
    expect((await hostline('user list', service.directory)).out).toContain('\tverified_user\t')
    await hostline('user role ada@example.com host', service.directory)
    await hostline('user role ada@example.com user', service.directory)
    expect((await hostline('user list', service.directory)).out).toContain('\tverified_user\t')
  })

  test('a disabled account can be enabled again', async () => {
    await using service = await startService()
    const { email } = await service.register('ada')
    await hostline('user disable ada@example.com', service.directory)
    expect(service.login(email)).rejects.toThrow('401')
    await hostline('user enable ada@example.com', service.directory)
    expect((await service.login(email)).email).toBe(email)
  })

  test('each command is in the audit log', async () => {
    await using service = await startService()
    const { id } = await service.register('ada')
    for (const act of [
      'role ada@example.com host',
      'verify ada@example.com',
      'disable ada@example.com',
    ]) {
      await hostline(`user ${act}`, service.directory)
    }
    const rows = service.sqlite
      .query(
        "SELECT action, actor_type, target_id, details FROM audit_log WHERE actor_type = 'command_line' ORDER BY id",
      )
      .all()
    const row = { actor_type: 'command_line', target_id: id, details: null }
    expect(rows).toEqual([
      { ...row, action: 'role_changed', details: '{"from":"user","to":"host"}' },
      { ...row, action: 'account_adopted' },
      { ...row, action: 'email_verified' },
      { ...row, action: 'user_disabled' },
    ])
  })

  test('a text with line breaks and tabs stays in its cell', async () => {
    await using service = await startService()
    const add = ['ban', 'add', 'mail_domain', 'x.org', '--reason', 'two\nlines\tand a tab']
    expect(await run(add, service.directory)).toMatchObject({ exitCode: 0, err: '' })
    const { out } = await hostline('ban list', service.directory)
    expect(out.split('\n')).toEqual([
      expect.anything(),
      expect.stringContaining('\tmail_domain\tx.org\ttwo lines and a tab\t'),
    ])
  })

  test.each([
    ['--user ', '"" is not an e-mail address (see: hostline help)'],
    ['--action ', 'the action must be one of account_adopted, '],
    ['--action login_faild', 'the action must be one of account_adopted, '],
  ])('the audit log with a wrong filter is refused, not empty: "%s"', async (filter, message) => {
    await using service = await startService()
    const { exitCode, out, err } = await hostline(`audit ${filter}`, service.directory)
    expect([exitCode, out, err]).toEqual([2, '', expect.stringContaining(`hostline: ${message}`)])
  })

  test.each([
    ['user disable ada@example.com', 401],
    ['user role ada@example.com host', 200],
  ])('a running server applies "%s", also to open sockets', async (line, status) => {
    await using service = await startService({ listen: true })
    const [ada, bob] = [await service.register('ada'), await service.register('bob')]
    const [socket, other] = [await service.connect(ada), await service.connect(bob)]
    await hostline(line, service.directory)
    const request = await service.call('GET', '/v1/chat/conversations', { token: ada.token })
    expect(request.status).toBe(status)
    expect(await socket.closed).toBe(4403)
    await other.settled()
  })

  test('a role change does not close sockets opened with the new role', async () => {
    const clock = createTestClock()
    await using service = await startService({ listen: true, clock })
    const ada = await service.register('ada')
    const before = await service.connect(ada)
    await hostline('user role ada@example.com host', service.directory)
    const after = await service.connect(ada)
    clock.advance(1_000)
    expect(await before.closed).toBe(4403)
    await after.settled()
    await hostline('user disable ada@example.com', service.directory)
    await hostline('user enable ada@example.com', service.directory)
    clock.advance(1_000)
    expect(await after.closed).toBe(4403)
  })

  test('a command closes only the sockets of the users it changed', async () => {
    await using service = await startService({ listen: true })
    const admin = await service.registerAs('admin')
    const [ada, bob, cleo] = [
      await service.register('ada'),
      await service.register('bob'),
      await service.register('cleo'),
    ]
    const first = await service.connect(ada)
    const path = `/v1/admin/users/${ada.id}`
    await service.call('PATCH', path, { token: admin.token, body: { role: 'host' } })
    expect(await first.closed).toBe(4403)
    const onBob = await service.connect(bob)
    await hostline('user role bob@example.com host', service.directory)
    expect(await onBob.closed).toBe(4403)

    const [again, bobAgain] = [await service.connect(ada), await service.connect(bob)]
    const onCleo = await service.connect(cleo)
    await hostline('user role cleo@example.com host', service.directory)
    expect(await onCleo.closed).toBe(4403)
    await again.settled()
    await bobAgain.settled()
  })
})

test('control characters that others send are escaped for the terminal and in the log', async () => {
  await using service = await startService()
  const { email } = await service.register()
  const headers = { 'user-agent': 'app\u009b2J', origin: 'https://app\u009b2J' }
  const body = { email, password: 'correct horse' }
  expect((await service.call('POST', '/v1/auth/login', { headers, body })).status).toBe(200)
  expect((await hostline(`user sessions ${email}`, service.directory)).out).toContain(
    'app\\u009b2J',
  )
  expect(service.log()).toContain('https://app\\u009b2J')
})

test('keys list shows the keys without their secret', async () => {
  await using service = await startService()
  const { exitCode, out } = await hostline('keys list', service.directory)
  expect(exitCode).toBe(0)
  expect(
    out
      .split('\n')
      .map((line) => line.split('\t')[1])
      .sort(),
  ).toEqual(['active', 'next', 'state'])
  const { out: forPrograms } = await hostline('keys list --json', service.directory)
  expect(JSON.parse(forPrograms)).toEqual([
    { kid: expect.any(String), state: expect.any(String), created_at: expect.any(String) },
    { kid: expect.any(String), state: expect.any(String), created_at: expect.any(String) },
  ])
  expect(out + forPrograms).not.toContain('PRIVATE')
})

describe('service keys', () => {
  test('are created beside a running server, work at once, and can be revoked', async () => {
    await using service = await startService()
    const { id } = await service.register()
    const line = 'service-key create --name payments --scope users,calls --scope follows'
    const made = await hostline(line, service.directory)
    const [, keyId = '', key = ''] =
      /^(\w{26})\tpayments\tfollows,calls,users\nkey: (sk_[\w-]{43})$/.exec(made.out) ?? []
    const status = async () =>
      (await service.call('GET', `/v1/service/users/${id}`, { token: key })).status
    expect(await status()).toBe(200) // the first use, at once
    expect((await hostline(`service-key revoke ${keyId}`, service.directory)).exitCode).toBe(0)
    await waitFor(async () => (await status()) === 401, 'the end of the key')
    const { out } = await hostline('service-key list', service.directory)
    const [names = '', row = ''] = out.split('\n')
    expect(names.split('\t')).toContain('revoked_at')
    expect(row).toMatch(
      new RegExp(`^${keyId}\tpayments\tfollows,calls,users\t\\S+Z\t–\t\\S+Z\t\\S+Z$`),
    )
    expect(out).not.toContain(key)
  })

  test('with the scope all may do everything, and revoking an unknown key fails', async () => {
    await using service = await startService()
    const { out } = await hostline('service-key create --name all --scope all', service.directory)
    expect(out).toContain('\tnotifications,follows,calls,users,messages\n')
    const missing = await hostline(
      'service-key revoke 01ARZ3NDEKTSV4RRFFQ69G5FAV',
      service.directory,
    )
    expect([missing.exitCode, missing.err]).toEqual([
      1,
      'hostline: there is no service key 01ARZ3NDEKTSV4RRFFQ69G5FAV',
    ])
  })
})

test('openapi prints the description that the server serves', async () => {
  const environment = {
    PUBLIC_URL: 'https://x.example',
    RATE_LIMIT_LOGIN: '7/15m',
    RATE_LIMIT_REGISTER: '3/1h',
    RATE_LIMIT_USER: '200/1m',
    RATE_LIMIT_ANONYMOUS: '30/1m',
  }
  await using service = await startService({ environment })
  const { out } = await hostline('openapi', empty.path, { environment })
  expect(JSON.parse(out)).toEqual((await service.call('GET', '/v1/openapi.json')).body)
})

describe('serve', () => {
  test.each(['10.255.255.1', 'nowhere.invalid'])(
    'reports in one line that HOST=%s is no address of this machine',
    async (HOST) => {
      using directory = temporaryDirectory()
      const environment = { HOST, PORT: '19999' }
      const { exitCode, err } = await hostline('serve', directory.path, { environment })
      expect([exitCode, err]).toEqual([
        1,
        `hostline: cannot listen on ${HOST}:19999: set HOST to an address of this machine, or to 0.0.0.0 for all`,
      ])
    },
  )
})

describe('check', () => {
  test('passes beside a running server', async () => {
    await using service = await startService()
    const { exitCode, out } = await hostline('check', service.directory)
    expect(out.split('\n').map((line) => line.slice(0, 6))).toEqual([
      ...Array(10).fill('ok    '),
      'warn  ', // no backup yet
      'warn  ', // no admin yet
      'ok    ',
    ])
    expect(exitCode).toBe(0)
  })

  test('finds misspelt settings', async () => {
    const environment = { SMTP_URI: 'smtp://secret@x' }
    const { out } = await hostline('check', empty.path, { environment })
    expect(out).toContain('warn   configuration: unknown entries: SMTP_URI (SMTP_URL?)\n')
  })

  test('warns of a public server without mail', async () => {
    const environment = { PUBLIC_URL: 'https://chat.example.com' }
    const { out } = await hostline('check', empty.path, { environment })
    expect(out).toContain('warn   mail: off: nobody gets a link without SMTP_URL\n')
    expect((await hostline('check', empty.path)).out).toContain(
      'ok     mail: off: mails are logged',
    )
  })

  test('finds no database before the first start, and creates none', async () => {
    const { exitCode, out } = await hostline('check', empty.path)
    expect([exitCode, out]).toEqual([
      1,
      expect.stringContaining(
        `FAILED database: there is no database in ${empty.path}: start the server once`,
      ),
    ])
    expect(readdirSync(empty.path)).toEqual([])
  })

  test('leaves the empty file of a first start on a full disk, and counts it as none', async () => {
    using directory = temporaryDirectory()
    const path = join(directory.path, 'hostline.db')
    writeFileSync(path, '')
    const { exitCode, out } = await hostline('check', directory.path)
    expect([exitCode, out]).toEqual([
      1,
      expect.stringContaining(`FAILED database: there is no database in ${directory.path}`),
    ])
    expect(Bun.file(path).size).toBe(0)
  })

  test('finds a corrupt database', async () => {
    using directory = temporaryDirectory()
    writeFileSync(join(directory.path, 'hostline.db'), 'no database'.repeat(1_000))
    const { exitCode, out, err } = await hostline('check', directory.path)
    expect(exitCode).toBe(1)
    expect(out).toContain('FAILED database')
    expect(err).toMatch(/^hostline: 1 of \d checks failed$/)
  })

  test('finds failed jobs, dropped events, and a mail server that cannot be reached', async () => {
    await using service = await startService()
    service.sqlite.run(
      "INSERT INTO outbox (id, kind, payload, created_at, run_at, dead_at) VALUES ('1', 'broadcast', '{}', 1, 1, 1)",
    )
    service.sqlite.run(
      "INSERT INTO audit_log (id, at, action, actor_type, details) VALUES ('1', ?, 'webhook_events_dropped', 'system', ?)",
      [Date.now(), JSON.stringify({ host: 'hooks.example.com' })],
    )
    const environment = { SMTP_URL: 'smtp://127.0.0.1:1' }
    const { exitCode, out } = await hostline('check', service.directory, { environment })
    expect(exitCode).toBe(1)
    expect(out).toContain('warn   webhooks: too many events wait for hooks.example.com')
    expect(out).toContain('FAILED outbox: 1 jobs were given up')
    expect(out).toContain('FAILED mail: ')
  })

  test('finds webhooks that get nothing', async () => {
    await using service = await startService()
    const url = 'https://hooks.example.com/'
    await hostline(`webhook create --url ${url} --events user.created`, service.directory)
    const webhooks = async () =>
      (await hostline('check', service.directory)).out.match(/.* webhooks: .*/)?.[0]
    expect(await webhooks()).toBeUndefined()
    service.sqlite.run('UPDATE webhooks SET failing_since = 1')
    expect(await webhooks()).toBe('warn   webhooks: 1 of 1 get nothing (see hostline webhook list)')
  })

  test('tests the service account of push', async () => {
    using directory = temporaryDirectory()
    await using google = startGoogle(systemClock)
    const environment = { FCM_SERVICE_ACCOUNT: google.keyFile }
    const push = async () => {
      const { out } = await hostline('check', directory.path, { environment })
      return out.split('\n').find((line) => line.includes('push to apps'))
    }
    expect(await push()).toBe('ok     push to apps: demo-project')
    google.respondGrant({ status: 401 })
    expect(await push()).toMatch(
      /^FAILED push to apps: FCM_SERVICE_ACCOUNT: no access token: 127.0.0.1:\d+ answered 401$/,
    )
  })

  test('finds rows that refer to missing ones', async () => {
    await using service = await startService()
    await service.pair()
    service.sqlite.run('PRAGMA foreign_keys = OFF')
    service.sqlite.run('DELETE FROM conversations')
    const { exitCode, out } = await hostline('check', service.directory)
    expect([exitCode, out]).toEqual([
      1,
      expect.stringContaining('FAILED database integrity: a row refers'),
    ])
  })
})

describe('health', () => {
  const ask = (port: number, environment: Record<string, string> = {}) =>
    hostline('health', empty.path, { environment: { PORT: String(port), ...environment } })

  test('asks the server on this machine, whatever address it listens on', async () => {
    await using service = await startService({ listen: true })
    const port = Number(new URL(service.base).port)
    for (const HOST of ['127.0.0.1', '0.0.0.0', 'localhost']) {
      const { exitCode, out, err } = await ask(port, { HOST })
      expect([exitCode, err]).toEqual([0, ''])
      expect(out).toMatch(/^ok: http:/)
    }
    await service.stop()
    const { exitCode, err } = await ask(port)
    expect([exitCode, err]).toEqual([1, expect.stringContaining('no response from http://')])
  })

  test('fails when the server is unhealthy', async () => {
    using other = Bun.serve({ port: 0, fetch: () => new Response('no', { status: 503 }) })
    const { exitCode, err } = await ask(other.port ?? 0)
    expect([exitCode, err]).toEqual([1, expect.stringContaining('/healthz responded with 503')])
  })

  test('fails without a response', async () => {
    const { exitCode, err } = await unanswered
    expect([exitCode, err]).toEqual([1, expect.stringContaining('no response from')])
  })
})
