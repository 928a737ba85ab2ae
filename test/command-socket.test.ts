import { expect, test } from 'bun:test'
import { cpSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { hostline } from './support/command.ts'
import { temporaryDirectory } from './support/directory.ts'
import { executable } from './support/executable.ts'
import { testAtLength } from './support/faults.ts'
import { startServer } from './support/process.ts'
import { startService } from './support/service.ts'
import { waitOut } from './support/wait.ts'

const run = (line: string, directory: string) => hostline(line.split(' '), directory)
const actors = "SELECT actor_type, actor_id FROM audit_log WHERE action = 'role_changed'"

test('only the owner of the data directory can open the socket, which is removed with the server', async () => {
  const before = process.umask()
  await using service = await startService()
  expect(process.umask()).toBe(before)
  const path = join(service.directory, 'hostline.sock')
  const { mode } = statSync(path)
  expect([statSync(path).isSocket(), mode & 0o777]).toEqual([true, 0o600])
  await service.stop()
  expect(statSync(path, { throwIfNoEntry: false })).toBeUndefined()
})

test.each([
  [{ SUDO_USER: 'ada', USER: 'root' }, 'ada'],
  [{ USER: 'ada', LOGNAME: 'ada' }, 'ada'],
  [{ LOGNAME: 'ada' }, 'ada'],
  [{}, `uid:${process.getuid?.()}`],
])('the audit log names the command line and its user: %j', async (environment, name) => {
  await using service = await startService()
  const { email } = await service.register()
  await hostline(['user', 'role', email, 'host'], service.directory, { environment })
  expect(service.sqlite.query(actors).values()).toEqual([['command_line', name]])
})

test('a request from the network never counts as a command', async () => {
  await using service = await startService({ listen: true })
  const headers = { 'x-operator': 'root' }
  const users = await service.call('GET', '/v1/admin/users', { headers })
  const keys = await service.call('GET', '/v1/operator/keys', { headers })
  expect([users.status, keys.status]).toEqual([401, 404])
})

test('without a server a command opens the directory and leaves its jobs to the server', async () => {
  await using service = await startService()
  const { email } = await service.register()
  await service.stop()
  const { out } = await run(`user reset ${email}`, service.directory)
  expect(out).toStartWith(`SMTP_URL is not set: the server only logs the mail to ${email}`)
  const jobs = await run('jobs list --json', service.directory)
  expect(JSON.parse(jobs.out)).toContainEqual(
    expect.objectContaining({ kind: 'password_reset_mail', state: 'waiting', attempts: 0 }),
  )
})

test('a command that fails in the server says where the cause is', async () => {
  await using service = await startService()
  const { email } = await service.register()
  service.sqlite.run('ALTER TABLE audit_log RENAME TO audit_elsewhere')
  const { err, exitCode } = await run(`user role ${email} host`, service.directory)
  expect(err).toMatch(/^hostline: .*\. The cause is in its log; `hostline check` may name it\.$/)
  expect(exitCode).toBe(1)
})

test('the socket of a killed server does not block the next one', async () => {
  using directory = temporaryDirectory()
  const dataDir = join(directory.path, 'data')
  await using killed = await startServer({ dataDir })
  expect((await run('keys list', dataDir)).exitCode).toBe(0)
  await killed.kill('SIGKILL')
  expect((await run('keys list', dataDir)).exitCode).toBe(0)
  await using _ = await startServer({ dataDir })
  expect((await run('keys list', dataDir)).exitCode).toBe(0)
})

test('the data directory may have a longer path than a socket allows', async () => {
  using directory = temporaryDirectory()
  const dataDir = join(directory.path, 'a'.repeat(100))
  await using _ = await startServer({ dataDir })
  expect((await run('keys list', dataDir)).exitCode).toBe(0)
})

testAtLength('a command beside a server that hangs says so', async () => {
  using directory = temporaryDirectory()
  await using server = await startServer({ dataDir: directory.path })
  process.kill(server.pid, 'SIGSTOP')
  const err = `hostline: another hostline is already running on ${directory.path}, and does not answer`
  expect(await run('user list', directory.path)).toEqual({ exitCode: 1, out: '', err })
})

testAtLength('a command waits for the answer of the server for as long as it takes', async () => {
  using directory = temporaryDirectory()
  const { path, emptyData } = await executable()
  cpSync(emptyData, directory.path, { recursive: true })
  const settings = { platform_name: 'Rooms' }
  using _ = Bun.serve({
    unix: join(directory.path, 'hostline.sock'),
    idleTimeout: 0 as never,
    async fetch({ url }) {
      if (!url.endsWith('/healthz')) await waitOut(12_000)
      return Response.json(settings)
    },
  })
  // In seconds, rounded up to eight.
  const env = { DATA_DIR: directory.path, BUN_CONFIG_HTTP_IDLE_TIMEOUT: '1' }
  const command = Bun.spawn([path, 'settings', 'list', '--json'], { env })
  expect(JSON.parse(await command.stdout.text())).toEqual(settings)
})
