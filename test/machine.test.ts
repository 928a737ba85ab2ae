import { dlopen, ptr } from 'bun:ffi'
import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '../src/cli/run.ts'
import { entries } from '../src/config.ts'
import { systemClock } from '../src/lib/clock.ts'
import { createMetrics } from '../src/metrics.ts'
import { makeCertificate } from './support/certificate.ts'
import { hostline } from './support/command.ts'
import { temporaryDirectory } from './support/directory.ts'
import { executable } from './support/executable.ts'
import { png } from './support/files.ts'
import { call, startServer } from './support/process.ts'
import { replicatedTo } from './support/replica.ts'
import { startService } from './support/service.ts'
import { tools } from './support/tools.ts'
import { waitFor } from './support/wait.ts'

/** A Unix datagram socket as systemd has it.
 *  @returns a function that takes the next message */
function receiver(address: string) {
  const { symbols } = dlopen('libc.so.6', {
    socket: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
    bind: { args: ['i32', 'ptr', 'u32'], returns: 'i32' },
    recv: { args: ['i32', 'ptr', 'u64', 'i32'], returns: 'i64' },
  })
  const socket = symbols.socket(1, 2, 0)
  const name = Buffer.concat([Buffer.from([1, 0]), Buffer.from(address.replace(/^@/, '\0'))])
  expect(symbols.bind(socket, ptr(name), name.length)).toBe(0)
  const buffer = Buffer.alloc(256)
  const withoutWaiting = 0x40
  return () =>
    waitFor(() => {
      const length = Number(symbols.recv(socket, ptr(buffer), buffer.length, withoutWaiting))
      return length > 0 ? buffer.toString('utf8', 0, length) : undefined
    }, 'a message')
}

describe.if(process.platform === 'linux')('under systemd', () => {
  test.each(['a path', 'an abstract name'])(
    'the server says when it is ready and that it lives, to %s',
    async (kind) => {
      using directory = temporaryDirectory()
      const path = join(directory.path, 'notify')
      const NOTIFY_SOCKET = kind === 'a path' ? path : `@${path}`
      const next = receiver(NOTIFY_SOCKET)
      const environment = { NOTIFY_SOCKET, WATCHDOG_USEC: '20000' }
      await using _ = await startServer({ dataDir: join(directory.path, 'data'), environment })
      expect([await next(), await next(), await next()]).toEqual([
        'READY=1',
        'WATCHDOG=1',
        'WATCHDOG=1',
      ])
    },
  )
})

test.skipIf(!tools.gcc)(
  'photos are taken where a sandbox forbids priorities, as the unit for systemd does',
  async () => {
    using directory = temporaryDirectory()
    const source = join(directory.path, 'sandbox.c')
    const LD_PRELOAD = join(directory.path, 'sandbox.so')
    writeFileSync(source, '#include <errno.h>\nint setpriority() { errno = EPERM; return -1; }')
    const command = [tools.gcc ?? '', '-shared', '-fPIC', '-o', LD_PRELOAD, source]
    expect(Bun.spawnSync(command).exitCode).toBe(0)
    await using server = await startServer({
      dataDir: join(directory.path, 'data'),
      environment: { LD_PRELOAD },
    })
    const body = { email: 'ada@example.com', password: 'correct horse' }
    const { access_token } = (await call(server.base, 'POST', '/v1/auth/register', { body })).body
    const answer = await fetch(`${server.base}/v1/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${access_token}`, 'content-type': 'image/png' },
      body: png,
    })
    expect([answer.status, await answer.json()]).toMatchObject([
      201,
      { placeholder: expect.any(String) },
    ])
  },
)

describe('--env-file', () => {
  using directory = temporaryDirectory()
  const file = join(directory.path, 'hostline.env')
  const check = async (content: string, shell: Record<string, string> = {}) => {
    using own = temporaryDirectory()
    const path = join(own.path, 'hostline.env')
    writeFileSync(path, content)
    const { out, err, exitCode } = await hostline(['check', '--env-file', path], own.path, {
      environment: shell,
    })
    return { out, err: err.replaceAll(path, 'FILE'), exitCode }
  }

  test.each([
    ['PUBLIC_URL=https://a.example', 'https://a.example'],
    ['PUBLIC_URL="https://b.example"', 'https://b.example'],
    ["# a comment\n; another\n\n PUBLIC_URL='https://c.example' ", 'https://c.example'],
    ['PUBLIC_URL=https://d.\\\nexample', 'https://d.example'],
    ['PUBLIC_URL=https://e.example\nDEMO=false', 'https://e.example'],
    [`FILE='{\n "key": "a\\n"\n}'\nPUBLIC_URL = https://f.example`, 'https://f.example'],
    [`FILE="a\n\\"b"\n# a \\\nPUBLIC_URL=https://g.example`, 'https://g.example'],
  ])('is read as systemd reads it: %j', async (content, expected) => {
    expect((await check(content)).out).toContain(`configuration: ${expected}`)
  })

  test('keeps an & that a shell would take for its own', async () => {
    const url = 's3://K:S@127.0.0.1:1/b?region=x&tls=off'
    expect((await check(`FILES_S3_URL=${url}`)).out).toContain('files: ')
    expect((await check(`FILES_S3_URL=${url}&x=1`)).err).toContain(
      'FILES_S3_URL must have no other',
    )
  })

  test('counts more than the shell, whose different entries are named without their values', async () => {
    const shell = { PUBLIC_URL: 'https://shell.example', SMTP_URL: 'smtp://secret@x', PORT: '1' }
    const { out, err } = await check('PUBLIC_URL=https://file.example\nPORT=1', shell)
    expect(out).toContain('configuration: https://file.example')
    expect(err).toContain('hostline: PUBLIC_URL of the shell differs from FILE, which counts')
    expect(err).toContain('hostline: SMTP_URL of the shell is not in FILE, which counts')
    expect(err).not.toMatch(/PORT|secret/)
  })

  test.skipIf(!tools.openssl)('names an authority that the command trusts, too', async () => {
    using own = temporaryDirectory()
    const { cert, key } = await makeCertificate(own.path)
    const tls = { cert: Bun.file(cert), key: Bun.file(key) }
    await using bucket = Bun.serve({ port: 0, tls, fetch: () => new Response('', { status: 403 }) })
    const path = join(own.path, 'hostline.env')
    const filesUrl = `s3://K:S@localhost:${bucket.port}/b`
    const check = async (content: string) => {
      writeFileSync(path, content)
      const command = [(await executable()).path, 'check', '--env-file', path]
      const env = { PATH: process.env['PATH'] ?? '', DATA_DIR: own.path }
      return await Bun.spawn(command, { env, stderr: 'pipe' }).stdout.text()
    }
    const authority = `NODE_EXTRA_CA_CERTS=${cert}`
    expect(await check(`FILES_S3_URL=${filesUrl}`)).toMatch(/FAILED files: .*certificate/)
    expect(await check(`FILES_S3_URL=${filesUrl}\n${authority}`)).toMatch(/FAILED files: .*403/)
  })

  test('with an authority of its own, Ctrl-C stops the server gracefully', async () => {
    using own = temporaryDirectory()
    const path = join(own.path, 'hostline.env')
    const directory = `DATA_DIR=${join(own.path, 'data')}`
    writeFileSync(path, `${directory}\nHOST=127.0.0.1\nPORT=0\nNODE_EXTRA_CA_CERTS=${path}`)
    let output = ''
    const decoder = new TextDecoder()
    const terminal = {
      data(_: Bun.Terminal, data: Uint8Array) {
        output += decoder.decode(data)
      },
    }
    const command = [(await executable()).path, '--env-file', path]
    await using server = Bun.spawn(command, { env: {}, terminal })
    await waitFor(() => output.includes('listens on'))
    server.terminal?.write('\u0003')
    expect([await server.exited, output]).toEqual([0, expect.stringMatching(/stopped\s*$/)])
  })

  test('takes its file also after an equals sign', async () => {
    using own = temporaryDirectory()
    const path = join(own.path, 'a=b.env')
    writeFileSync(path, 'PUBLIC_URL=https://f.example')
    const { out } = await hostline([`--env-file=${path}`, 'check'], own.path)
    expect(out).toContain('configuration: https://f.example')
  })

  test('that is missing or no such file ends the command with one line', async () => {
    expect(await hostline(['check', '--env-file', file], directory.path)).toMatchObject({
      exitCode: 2,
      err: expect.stringMatching(/^hostline: --env-file: ENOENT.*$/),
    })
    expect(await check('SMTP_URL smtp://secret')).toMatchObject({
      exitCode: 1,
      err: 'hostline: FILE: "SMTP_URL" is no assignment',
    })
  })
})

describe('the request log', () => {
  const sample = readFileSync(join(import.meta.dir, '../examples/fail2ban-filter.conf'), 'utf8')
  const ban = /^failregex = (.*)$/m.exec(sample)?.[1]
  const maxRetry = Number(/maxretry = (\d+)/.exec(sample)?.[1])
  const filter = new RegExp(String(ban).replace('<ADDR>', '(?<ip>[0-9a-fA-F:.]+)'))

  async function failLogin(environment: Record<string, string>) {
    await using service = await startService({ listen: true, environment })
    const ada = await service.register('ada')
    const headers = { 'x-forwarded-for': '2001:db8::7' }
    const body = { email: ada.email, password: 'wrong' }
    await service.call('POST', '/v1/auth/login', { body, headers })
    await service.call('GET', '/v1/users/me/none', { token: ada.token })
    return service.logged.filter((line) => line.includes('"message":"request"'))
  }

  test('has the address of the client, which the filter for fail2ban finds', async () => {
    const lines = await failLogin({ TRUSTED_PROXIES: '127.0.0.1' })
    expect(lines.map((line) => filter.exec(line)?.groups?.['ip'])).toEqual([
      '2001:db8::7',
      undefined,
    ])
    expect(lines.map((line) => JSON.parse(line).ip)).toEqual(['2001:db8::7', '127.0.0.1'])
  })

  test('has enough failed logins for fail2ban before the default limit refuses more', async () => {
    await using service = await startService({
      listen: true,
      environment: { RATE_LIMIT_LOGIN: entries.RATE_LIMIT_LOGIN.fallback },
    })
    const body = { email: 'ada@example.com', password: 'wrong' }
    for (let n = 0; n < 10; n++) await service.call('POST', '/v1/auth/login', { body })
    expect(service.logged.filter((line) => filter.test(line)).length).toBeGreaterThanOrEqual(
      maxRetry,
    )
  })

  test('has none with LOG_ADDRESSES=off', async () => {
    const lines = await failLogin({ TRUSTED_PROXIES: '127.0.0.1', LOG_ADDRESSES: 'off' })
    expect(lines).toHaveLength(2)
    expect(lines.join('')).not.toMatch(/2001:db8|127\.0\.0\.1/)
  })
})

test('metrics of a standby show the room on its disk and the end of its certificate', async () => {
  using directory = temporaryDirectory()
  const metrics = createMetrics('1', systemClock)
  const missing = { cert: join(directory.path, 'none.pem'), key: join(directory.path, 'none.key') }
  metrics.readMachine({ dataDir: directory.path, tls: missing })
  metrics.stop()
  const text = await metrics.text()
  expect(text).toMatch(/^hostline_disk_free_bytes \d{6,}$/m)
  expect(text).toContain('\nhostline_certificate_expiry_timestamp_seconds 0\n')
})

test('a command on a full disk says so in one line', async () => {
  await using service = await startService()
  const err: string[] = []
  const full = Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' })
  const exitCode = await run(
    ['user', 'create', '--email', 'a@b.co', '--role', 'admin', '--password-stdin'],
    {
      environment: { DATA_DIR: service.directory },
      isInteractive: false,
      out() {},
      err: (line) => err.push(line),
      readStdin: () => Promise.reject(full),
      yieldToOthers() {},
    },
  )
  expect([exitCode, err]).toEqual([1, ['hostline: the database cannot be used: the disk is full']])
})

test('a command whose change cannot be stored says why in one line', async () => {
  using directory = temporaryDirectory()
  await using service = await startService({ dataDir: directory.path })
  const index = "SELECT rootpage FROM sqlite_schema WHERE name = 'audit_log_actor'"
  const page = Number(service.sqlite.query(index).values()[0]?.[0])
  await service.stop()
  const path = join(directory.path, 'hostline.db')
  writeFileSync(path, readFileSync(path).fill(0xff, (page - 1) * 4_096, page * 4_096))
  const create = ['user', 'create', '--email', 'a@b.co', '--role', 'user']
  expect(await hostline(create, directory.path)).toEqual({
    exitCode: 1,
    out: '',
    err: expect.stringMatching(/^hostline: the database cannot be used: it is damaged: .*$/),
  })
})

test('a failure of the system ends a command with one line that names the file', async () => {
  using directory = temporaryDirectory()
  const { path } = await executable()
  const env = { TMPDIR: join(directory.path, 'none') }
  const command = Bun.spawnSync([path, 'openapi'], { cwd: directory.path, env })
  expect([command.exitCode, command.stderr.toString()]).toEqual([
    1,
    expect.stringMatching(/^hostline: ENOENT: [^\n]* '\S+\/none\/hostline-openapi-\w+'\n$/),
  ])
  writeFileSync(join(directory.path, 'replica.json'), '{')
  const environment = replicatedTo
  expect(await hostline(['replica', 'status'], directory.path, { environment })).toMatchObject({
    exitCode: 1,
    err: expect.stringMatching(/^hostline: cannot read \S+\/replica\.json: JSON Parse error: .*$/),
  })
})

test('a backup into a pipe is refused', async () => {
  using directory = temporaryDirectory()
  const { path, emptyData } = await executable()
  const pipe = join(directory.path, 'pipe')
  Bun.spawnSync(['mkfifo', pipe])
  const env = { DATA_DIR: emptyData, MIN_FREE_MB: '0' }
  const command = Bun.spawnSync([path, 'backup', pipe], { env, timeout: 30_000 })
  expect([command.exitCode, command.stderr.toString()]).toEqual([
    1,
    `hostline: ${pipe} exists and is not a backup: name another file\n`,
  ])
})

test.each(['restore backup.db', 'restore s3', 'replica verify'])(
  '%s without DATA_DIR makes no directory where one happens to stand',
  async (line) => {
    using directory = temporaryDirectory()
    const { path } = await executable()
    const where = { cwd: directory.path, env: replicatedTo }
    const command = Bun.spawnSync([path, ...line.split(' ')], where)
    expect([command.exitCode, command.stderr.toString()]).toEqual([
      1,
      `hostline: there is no ${join(directory.path, 'data')}: set DATA_DIR, or give --env-file\n`,
    ])
    expect(readdirSync(directory.path)).toEqual([])
  },
)

test('check warns while there is no admin', async () => {
  await using service = await startService()
  const admins = async () =>
    (await hostline(['check'], service.directory)).out
      .split('\n')
      .find((line) => line.includes(' admins'))
  expect(await admins()).toBe(
    'warn   admins: none: open the link that the next start prints, or run hostline user create',
  )
  await service.registerAs('admin')
  expect(await admins()).toBe('warn   admins: 1 without a second factor')
})
