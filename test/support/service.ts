import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig } from '../../src/config.ts'
import { listenForCommands } from '../../src/http/command-socket.ts'
import { createLog } from '../../src/lib/log.ts'
import type { Replica } from '../../src/replication/replication.ts'
import { openService, type Substitutes, serve } from '../../src/serve.ts'
import { createDeclared } from './declared.ts'
import { memoryFolder, temporaryDirectory } from './directory.ts'
import { TestSocket } from './socket.ts'
import { waitFor } from './wait.ts'

type Options = Substitutes & {
  /** Replaces the one that ships to a bucket; not together with `listen`. */
  replica?: Replica
  environment?: Record<string, string>
  /** Listen on a free port instead of answering in-process. */
  listen?: boolean
  /** A data directory to keep; without a database it gets an empty one. */
  dataDir?: string
  /** Fills the data directory before the service opens it. */
  fill?: (directory: string) => Promise<unknown>
}

const limitsOff = {
  MIN_FREE_MB: '0',
  RATE_LIMIT_LOGIN: 'off',
  RATE_LIMIT_REGISTER: 'off',
  RATE_LIMIT_USER: 'off',
  RATE_LIMIT_ANONYMOUS: 'off',
}

// biome-ignore lint/suspicious/noExplicitAny: answers are judged by the assertions on them
type Body = any
export type Answer = { status: number; headers: Headers; body: Body }
type Call = { token?: string | undefined; body?: unknown; headers?: Record<string, string> }
export type Person = { id: string; email: string; token: string; refreshToken: string }

export type TestService = Awaited<ReturnType<typeof startService>>

/** A service over a database of its own, with cheap password hashes and by default without rate limits. */
export async function startService(options: Options = {}) {
  const { environment = {}, listen = false, fill, dataDir, ...substitutes } = options
  const directory = dataDir === undefined ? temporaryDirectory(memoryFolder()) : lasting(dataDir)
  const made = await madeTemplate()
  const database = join(directory.path, 'hostline.db')
  if (!existsSync(database)) writeFileSync(database, made.database)
  await fill?.(directory.path)
  const logged: string[] = []
  const config = readConfig(
    { ...limitsOff, HOST: '127.0.0.1', PORT: '0', DATA_DIR: directory.path, ...environment },
    false,
  )
  const log = createLog({
    level: 'debug',
    format: 'json',
    now: Date.now,
    write: (line) => logged.push(line),
  })
  const cheap = {
    passwordCost: { memoryKibibytes: 64, iterations: 1 },
    metricsSharedMilliseconds: 0,
    ...substitutes,
  }
  const running = listen ? await serve(config, log, cheap) : undefined
  const service = running?.service ?? (await openService(config, log, rethrow, cheap))
  const commands = running ? undefined : listenForCommands(service.app, directory.path)
  const base = running ? `http://127.0.0.1:${running.port}` : 'http://localhost'
  let names = 0
  let stopped = false
  const trusted = new Set<string>()
  let trustedAt = Number.NEGATIVE_INFINITY

  async function request(path: string, init: RequestInit = {}): Promise<Response> {
    keepTrust()
    return running ? fetch(base + path, init) : service.app.handle(new Request(base + path, init))
  }

  async function call(method: string, path: string, options: Call = {}) {
    const answer = await request(path, initOf(method, options))
    made.mustBeDeclared(method, path, answer)
    return readAnswer(answer)
  }

  /** In-process, which costs a fraction of a request over the network. */
  const callInProcess = async (method: string, path: string, options: Call = {}) => {
    keepTrust()
    return readAnswer(await service.app.handle(new Request(base + path, initOf(method, options))))
  }

  async function register(name = `person${++names}`, address = name): Promise<Person> {
    const email = `${address}@example.com`
    const body = { email, password: 'correct horse', display_name: name }
    const answer = await call('POST', '/v1/auth/register', { body })
    return personOf(answer)
  }

  async function login(email: string): Promise<Person> {
    return personOf(
      await call('POST', '/v1/auth/login', { body: { email, password: 'correct horse' } }),
    )
  }

  async function openConversation(a: { token: string }, b: { id: string }): Promise<string> {
    const body = { user_id: b.id }
    // On a busy machine the bucket may answer too late.
    const opened = await waitFor(async () => {
      const answer = await call('POST', '/v1/chat/conversations', { token: a.token, body })
      return answer.status === 503 ? undefined : answer
    }, 'the conversation')
    return opened.body.id
  }

  async function say(from: Person, conversationId: string, text: string) {
    const path = `/v1/chat/conversations/${conversationId}/messages`
    return call('POST', path, { token: from.token, body: { body: text } })
  }

  /** Registers a user with a role and a verified address. An admin's session counts as confirmed. */
  async function registerAs(role: string, name?: string, address?: string): Promise<Person> {
    const person = await register(name, address)
    const { sqlite } = service.connection
    const change = 'UPDATE users SET role = ?, email_verified = 1 WHERE id = ?'
    sqlite.run(change, [role, person.id])
    if (role === 'admin') trust(person)
    return person
  }

  /** Confirms all sessions of a user, whatever the clock does later. */
  function trust({ id }: { id: string }) {
    const sessions = service.connection.sqlite.query<{ id: string }, [string]>(
      'SELECT id FROM sessions WHERE user_id = ?',
    )
    for (const session of sessions.all(id)) trusted.add(session.id)
    trustedAt = Number.NEGATIVE_INFINITY
    keepTrust()
  }

  function keepTrust() {
    const now = service.core.clock.now()
    if (trusted.size === 0 || (now >= trustedAt && now < trustedAt + 60_000)) return
    trustedAt = now
    service.connection.sqlite.run(
      'UPDATE sessions SET confirmed_at = ? WHERE id IN (SELECT value FROM json_each(?))',
      [now, JSON.stringify([...trusted])],
    )
  }

  /** Confirms a session with the password. */
  function confirm({ token }: { token: string }): Promise<Answer> {
    return call('POST', '/v1/auth/confirm', { token, body: { password: 'correct horse' } })
  }

  /** A service key; without scopes it may do everything. */
  async function issueKey(scopes = ['all']): Promise<{ id: string; token: string }> {
    const { token } = await registerAs('admin')
    const body = { name: 'payments', scopes }
    const answer = await call('POST', '/v1/admin/service-keys', { token, body })
    return { id: answer.body.id, token: answer.body.key }
  }

  async function stop() {
    if (stopped) return
    stopped = true
    await commands?.stop()
    await (running ? running.stop() : service.close())
  }

  return {
    base,
    directory: directory.path,
    hub: service.core.hub,
    write: service.core.write,
    events: service.core.events,
    accounts: service.accounts,
    app: service.app,
    sqlite: service.connection.sqlite,
    log: () => logged.join(''),
    /** The lines of the log so far. */
    logged,
    request,
    call,
    callInProcess,
    register,
    registerAs,
    trust,
    confirm,
    issueKey,
    login,
    openConversation,
    say,
    /** Two people and their conversation. */
    async pair() {
      const [a, b] = [await register(), await register()]
      return { a, b, conversationId: await openConversation(a, b) }
    },
    connect: (person: { token: string }, query = '') =>
      TestSocket.open(`${base.replace('http', 'ws')}/v1/chat/ws?token=${person.token}${query}`),
    stop,
    async [Symbol.asyncDispose]() {
      await stop()
      directory[Symbol.dispose]()
    },
  }
}

function lasting(path: string) {
  mkdirSync(path, { recursive: true })
  return { path, [Symbol.dispose]() {} }
}

const initOf = (method: string, { token, body, headers }: Call): RequestInit => ({
  method,
  headers: {
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...headers,
  },
  ...(body !== undefined && { body: JSON.stringify(body) }),
})

export async function readAnswer(answer: Response): Promise<Answer> {
  const text = await answer.text()
  const isJson = answer.headers.get('content-type')?.includes('json')
  return {
    status: answer.status,
    headers: answer.headers,
    body: isJson && text ? JSON.parse(text) : text,
  }
}

function personOf({ status, body }: Answer): Person {
  if (status !== 200 && status !== 201) throw new Error(`${status} ${JSON.stringify(body)}`)
  const { user, access_token: token, refresh_token: refreshToken } = body
  return { id: user.id, email: user.email, token, refreshToken }
}

// The framework collects garbage after compiling an application; with hundreds of them that takes a third of the time.
const collect = Bun.gc
Bun.gc = (isForced) => (isForced ? collect(isForced) : 0)

// Generating RSA keys takes most of a start: they are generated once, in a database that each service starts with. The
// API description is shared, too.
let template: ReturnType<typeof makeTemplate> | undefined

function madeTemplate() {
  template ??= makeTemplate()
  return template
}

async function makeTemplate() {
  using directory = temporaryDirectory()
  const log = createLog({ level: 'error', format: 'json', now: Date.now, write: () => {} })
  const service = await openService(readConfig({ DATA_DIR: directory.path }, false), log, rethrow)
  const description = await service.app.handle(new Request('http://localhost/v1/openapi.json'))
  await service.close()
  const database = readFileSync(join(directory.path, 'hostline.db'))
  return { database, mustBeDeclared: createDeclared(await description.json()) }
}

function rethrow(error: unknown): never {
  throw error
}
