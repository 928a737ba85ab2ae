import { afterAll, expect, test } from 'bun:test'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import Ajv from 'ajv'
import addFormats from 'ajv-formats'
import { dependencies, version } from '../package.json' with { type: 'json' }
import { clientScript, clientTypes, stateScript } from '../scripts/build-client.ts'
import { createSbom } from '../scripts/sbom.ts'
import { makeCertificate } from './support/certificate.ts'
import { temporaryDirectory } from './support/directory.ts'
import { executable as built } from './support/executable.ts'
import { testAtLength } from './support/faults.ts'
import { allMessages, call, freePort, meet, startServer } from './support/process.ts'
import { TestSocket } from './support/socket.ts'
import { tools } from './support/tools.ts'

const project = join(import.meta.dir, '..')
const workshop = temporaryDirectory()
const { path: executable, inputs, emptyData } = await built()
afterAll(() => workshop[Symbol.dispose]())

function emptyFolder(name: string) {
  const path = join(workshop.path, name)
  mkdirSync(path)
  return path
}

/** With the data of a first start: generating keys takes most of one. */
function usedFolder(name: string) {
  const path = emptyFolder(name)
  cpSync(emptyData, join(path, 'data'), { recursive: true })
  return path
}

function command(cwd: string, ...args: string[]) {
  const { exitCode, stdout, stderr } = Bun.spawnSync([executable, ...args], { cwd, env: {} })
  return { exitCode, out: stdout.toString().trim(), err: stderr.toString().trim() }
}

test('two people register and talk over both transports, and everything survives a restart', async () => {
  const cwd = emptyFolder('served')
  const first = await startServer({ command: [executable], cwd })
  const people = await meet(first.base)
  const { a, b, conversationId } = people
  const socketOf = (token: string) =>
    TestSocket.open(`${first.base.replace('http', 'ws')}/v1/chat/ws?token=${token}`)
  const [ada, bob] = [await socketOf(a.token), await socketOf(b.token)]
  const path = `/v1/chat/conversations/${conversationId}/messages`
  const overRest = await call(first.base, 'POST', path, {
    token: a.token,
    body: { body: 'by REST' },
  })
  expect(overRest.status).toBe(201)
  const guessable = { email: 'c@example.com', password: 'password123' }
  expect((await call(first.base, 'POST', '/v1/auth/register', { body: guessable })).status).toBe(
    400,
  )
  expect((await bob.next('new_message')).message).toEqual(overRest.body)
  bob.send({ type: 'message', conversation_id: conversationId, body: 'by frame' })
  await ada.next('new_message')
  expect((await ada.next('new_message')).message.body).toBe('by frame')

  expect(await first.kill('SIGTERM')).toBe(0)
  expect([await ada.closed, await bob.closed]).toEqual([1001, 1001])
  expect(readdirSync(cwd)).toEqual(['data'])
  expect(readdirSync(join(cwd, 'data')).sort()).toEqual(['hostline.db', 'hostline.lock'])

  await using second = await startServer({ command: [executable], cwd })
  expect((await call(second.base, 'GET', '/healthz')).status).toBe(200)
  const left = await allMessages(second.base, conversationId, a.token)
  expect(left.map(({ body }) => body)).toEqual(['by frame', 'by REST'])
  expect((await call(second.base, 'GET', '/v1/openapi.json')).status).toBe(200)
})

testAtLength('keeps its WAL short: the checkpoint worker is in the executable', async () => {
  await using server = await startServer({ command: [executable], cwd: usedFolder('worker') })
  const { a, conversationId } = await meet(server.base)
  const path = `/v1/chat/conversations/${conversationId}/messages`
  for (let n = 0; n < 20; n++) {
    const burst = Array.from({ length: 50 }, () =>
      call(server.base, 'POST', path, { token: a.token, body: { body: `message ${n}` } }),
    )
    expect((await Promise.all(burst)).every(({ status }) => status === 201)).toBe(true)
  }
  expect(server.output()).not.toContain('checkpoint')
  expect(await server.kill('SIGTERM')).toBe(0)
})

testAtLength('commands work in it', async () => {
  const cwd = usedFolder('commands')
  const server = await startServer({ command: [executable], cwd })
  await server.kill('SIGTERM')
  expect(command(cwd, 'version')).toMatchObject({
    exitCode: 0,
    out: expect.stringMatching(/^\d+\.\d+\.\d+\+[0-9a-f]{7,40}(-dirty)?$/),
  })
  expect(command(cwd, 'user', 'create', '--email', 'a@b.co', '--role', 'admin').exitCode).toBe(0)
  expect(command(cwd, 'user', 'list').out).toContain('a@b.co')
  expect(command(cwd, 'check')).toMatchObject({ exitCode: 0 })
  expect(JSON.parse(command(cwd, 'openapi').out).openapi).toBe('3.1.0')
  expect(command(cwd, 'nonsense').exitCode).toBe(2)
})

// At the end of a process Bun checkpoints what it has not closed, and commits of the server fail meanwhile.
test('a check does not shorten the wal of a running server', async () => {
  const cwd = usedFolder('checked')
  await using server = await startServer({ command: [executable], cwd })
  await meet(server.base)
  const size = () => statSync(join(cwd, 'data', 'hostline.db-wal')).size
  const before = size()
  expect(command(cwd, 'check').exitCode).toBe(0)
  // The server's jobs may still write.
  expect([before > 0, size() >= before]).toEqual([true, true])
})

testAtLength('the image is built from what its context has', () => {
  const cwd = emptyFolder('context')
  const shell = (script: string, PATH = process.env['PATH']) => {
    const env = { ...process.env, PATH }
    const { exitCode, stderr } = Bun.spawnSync(['/bin/sh', '-c', script], { cwd, env })
    if (exitCode !== 0) throw new Error(`${script}: ${stderr}`)
  }
  const linesOf = (name: string) => readFileSync(join(project, name), 'utf8').split('\n')
  shell(
    `cd '${project}' && git ls-files -z | tar -c --null -T - --ignore-failed-read | tar -x -C '${cwd}'`,
  )
  for (const pattern of linesOf('.dockerignore').filter(Boolean)) {
    const ignored = [...new Bun.Glob(pattern).scanSync({ cwd, onlyFiles: false })]
    for (const name of ignored) rmSync(join(cwd, name), { recursive: true, force: true })
  }
  mkdirSync(join(cwd, 'bin'))
  symlinkSync(process.execPath, join(cwd, 'bin/bun'))
  const commands = linesOf('Dockerfile').flatMap((line) => /^RUN (bun .*)/.exec(line)?.[1] ?? [])
  expect(commands).toHaveLength(2)
  // They need nothing else, not even git.
  for (const one of commands) shell(one, join(cwd, 'bin'))
  const { stdout } = Bun.spawnSync([join(cwd, 'dist/hostline'), 'version'])
  expect(stdout.toString().trim()).toBe(version)
})

testAtLength('serves the client with its types and a service worker', async () => {
  await using server = await startServer({ command: [executable], cwd: usedFolder('client') })
  const read = async (path: string) => (await fetch(server.base + path)).text()
  expect(await read('/client.js')).toBe(clientScript())
  expect(await read('/state.js')).toBe(stateScript())
  expect(await read('/client.d.ts')).toBe(clientTypes())
  const archive = Bun.gunzipSync(
    await (await fetch(`${server.base}/hostline-client.tgz`)).arrayBuffer(),
  )
  expect(Buffer.from(archive).includes('package/client.js.map')).toBe(true)
  expect(await read('/service-worker.js')).toContain('showNotification')
})

test('ignores files in its working directory', () => {
  const cwd = emptyFolder('trap')
  writeFileSync(join(cwd, '.env'), 'PORT=nonsense\n')
  writeFileSync(join(cwd, 'bunfig.toml'), 'preload = ["./evil.ts"]\n')
  writeFileSync(join(cwd, 'evil.ts'), 'process.exit(66)\n')
  expect(command(cwd, 'check').out).toContain('ok     configuration')
})

test('a taken port is reported in one line, and the process exits', async () => {
  await using first = await startServer({ command: [executable], cwd: usedFolder('first') })
  const { port } = new URL(first.base)
  const environment = { PORT: port }
  const second = await startServer({
    command: [executable],
    cwd: usedFolder('second'),
    environment,
  }).catch(({ message }: Error) => message)
  expect(second).toMatch(/ended with 1: hostline: cannot listen on 127\.0\.0\.1:\d+: .*in use/)
})

test('openapi leaves nothing behind when its reader closes early', () => {
  const TMPDIR = emptyFolder('temporary')
  const shell = ['sh', '-c', `"${executable}" openapi | head -n 1`]
  const { stdout } = Bun.spawnSync(shell, { env: { PATH: process.env['PATH'] ?? '', TMPDIR } })
  expect([stdout.toString(), readdirSync(TMPDIR)]).toEqual(['{\n', []])
})

test.skipIf(!existsSync('/dev/full'))('an output that the disk does not take fails', () => {
  const shell = ['sh', '-c', `"${executable}" help > /dev/full`]
  const { exitCode, stderr } = Bun.spawnSync(shell, { env: {} })
  expect([exitCode, stderr.toString()]).toEqual([
    1,
    expect.stringMatching(/^hostline: the output cannot be written: ENOSPC.*\n$/),
  ])
})

test('it serves on when the reader of its log is gone', async () => {
  const port = await freePort()
  const env = { HOST: '127.0.0.1', PORT: `${port}`, LOG_REQUESTS: 'all' }
  await using server = Bun.spawn([executable], { cwd: usedFolder('unread'), env, stdout: 'pipe' })
  const reader = server.stdout.getReader()
  await reader.read()
  await reader.cancel()
  for (let n = 0; n < 5; n++) {
    expect(await call(`http://127.0.0.1:${port}`, 'GET', '/v1/users/me')).toMatchObject({
      status: 401,
    })
  }
  server.kill('SIGTERM')
  expect(await server.exited).toBe(0)
})

test('the sources start on an empty directory, too', async () => {
  const command = ['bun', join(project, 'src/main.ts')]
  const dataDir = emptyFolder('from sources')
  await using server = await startServer({ command, dataDir })
  expect((await call(server.base, 'GET', '/healthz')).status).toBe(200)
  expect(await server.kill('SIGTERM')).toBe(0)
  expect(readdirSync(dataDir).sort()).toEqual(['hostline.db', 'hostline.lock'])
})

test('nothing else is built beside it', async () => {
  const { path } = await built()
  expect(readdirSync(dirname(path)).sort()).toEqual(['data', 'hostline', 'inputs.json'])
})

const { openssl } = tools

test.skipIf(!openssl)('serves https and wss with a certificate of its own', async () => {
  const cwd = usedFolder('tls')
  const { cert, key } = await makeCertificate(cwd)
  const environment = { TLS_CERT: cert, TLS_KEY: key }
  await using server = await startServer({ command: [executable], cwd, environment })
  const base = server.base.replace('http:', 'https:')
  const { port } = new URL(base)
  const asked = Bun.spawnSync([executable, 'health'], {
    env: { ...environment, PORT: port, DATA_DIR: cwd, HTTPS_PROXY: 'http://127.0.0.1:1' },
  })
  expect([asked.exitCode, asked.stdout.toString()]).toEqual([
    0,
    expect.stringMatching(/^ok: https/),
  ])
  const tls = { rejectUnauthorized: false }
  const registered = await fetch(`${base}/v1/auth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: 'ada@example.com', password: 'correct horse' }),
    tls,
  })
  const { access_token } = (await registered.json()) as { access_token: string }
  const url = `${base.replace('https', 'wss')}/v1/chat/ws?token=${access_token}`
  const socket = new WebSocket(url, { tls } as never)
  await new Promise((resolve, reject) => {
    socket.onopen = resolve
    socket.onerror = reject
  })
  socket.close()
})

test('its SBOM is valid CycloneDX 1.6 and lists every bundled package', () => {
  const schemas = join(project, 'node_modules/@cyclonedx/cyclonedx-library/res/schema')
  const [specification, ...others] = ['bom-1.6', 'spdx', 'jsf-0.82'].map((name) => ({
    ...JSON.parse(readFileSync(join(schemas, `${name}.SNAPSHOT.schema.json`), 'utf8')),
    $id: `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json`,
  }))
  const ajv = new Ajv({ strict: false, allErrors: true, schemas: others })
  addFormats(ajv)
  for (const format of ['iri-reference', 'idn-email']) ajv.addFormat(format, true)
  const sbom = createSbom(inputs)
  const isValid = ajv.validate(specification, sbom)
  expect([isValid, ajv.errors]).toEqual([true, null])
  expect(ajv.validate(specification, { ...sbom, components: [{}] })).toBe(false)
  const names = sbom.components.map(({ name }) => name)
  expect(names).toEqual(expect.arrayContaining(['bun', ...Object.keys(dependencies)]))
  expect(names).not.toContain('typescript')
})
