import { cpSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { executable } from './executable.ts'
import { waitFor } from './wait.ts'

type Options = {
  /** The command to run; by default the executable of the sources. */
  command?: string[]
  /** Without a database it gets the executable's prepared one: generating keys takes most of a first start. */
  dataDir?: string
  cwd?: string
  environment?: Record<string, string>
}

export type ServerProcess = Awaited<ReturnType<typeof startServer>>

/** A server in a process of its own, on a free port, without rate limits. */
export async function startServer(options: Options = {}) {
  const { dataDir, cwd, environment } = options
  const command = options.command ?? [await readyToStart(dataDir)]
  const child = Bun.spawn(command, {
    ...(cwd !== undefined && { cwd }),
    env: {
      PATH: process.env['PATH'] ?? '',
      PORT: '0',
      HOST: '127.0.0.1',
      LOG_FORMAT: 'json',
      ...(dataDir !== undefined && { DATA_DIR: dataDir }),
      MIN_FREE_MB: '0',
      RATE_LIMIT_LOGIN: 'off',
      RATE_LIMIT_REGISTER: 'off',
      RATE_LIMIT_USER: 'off',
      RATE_LIMIT_ANONYMOUS: 'off',
      RATE_LIMIT_FRAMES: 'off',
      ...environment,
    },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  let output = ''
  const ended = Promise.withResolvers<number>()
  const port = await new Promise<number>((resolve, reject) => {
    const out = collect(child.stdout, (text) => {
      output += text
      const found = /listens on [^:]+:(\d+)/.exec(output)
      if (found) resolve(Number(found[1]))
    })
    const errors = collect(child.stderr, (text) => {
      output += text
    })
    ended.resolve(Promise.all([child.exited, out, errors]).then(([code]) => code))
    void ended.promise.then((code) => reject(new Error(`the server ended with ${code}: ${output}`)))
  })
  const { promise: exited } = ended

  return {
    base: `http://127.0.0.1:${port}`,
    output: () => output,
    pid: child.pid,
    /** Resolves when the output is whole. */
    exited,
    kill: (signal: 'SIGKILL' | 'SIGTERM') => {
      child.kill(signal)
      return exited
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await child.exited
    },
  }
}

async function readyToStart(dataDir: string | undefined): Promise<string> {
  const { path, emptyData } = await executable()
  if (dataDir !== undefined && !existsSync(join(dataDir, 'hostline.db'))) {
    cpSync(emptyData, dataDir, { recursive: true })
  }
  return path
}

/** For programs that need a port number: below the range from which the kernel assigns ports meanwhile. */
export async function freePort(): Promise<number> {
  const port = 10_000 + Math.floor(Math.random() * 20_000)
  try {
    await Bun.serve({ port, hostname: '127.0.0.1', fetch: () => new Response() }).stop(true)
    return port
  } catch {
    return freePort()
  }
}

export async function collect(stream: ReadableStream<Uint8Array>, take: (text: string) => void) {
  const decoder = new TextDecoder()
  for await (const chunk of stream) take(decoder.decode(chunk, { stream: true }))
}

export type Visitor = { id: string; email: string; token: string; refreshToken: string }

const json = { 'content-type': 'application/json' }

type Call = { token?: string; body?: unknown; headers?: Record<string, string> }

/** Sends a request to a server and reads its response: JSON, or the text of a proxy. */
export async function call(
  base: string,
  method: string,
  path: string,
  { token, body, headers = {} }: Call = {},
) {
  const answer = await fetch(base + path, {
    method,
    headers: {
      ...json,
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  const isJson = answer.headers.get('content-type')?.includes('json')
  // biome-ignore lint/suspicious/noExplicitAny: answers are judged by the assertions on them
  const parsed = (isJson && text !== '' ? JSON.parse(text) : text || undefined) as any
  return { status: answer.status, headers: answer.headers, body: parsed }
}

/** Repeats a request as clients do: on a busy machine a leader with a short lease refuses writes for moments, and a proxy
 *  may find no leader. */
export const served = (request: () => ReturnType<typeof call>) =>
  waitFor(async () => {
    const answer = await request()
    return answer.status < 502 ? answer : undefined
  }, 'an answer of a leader')

/** Two registered people and their conversation. */
export async function meet(base: string) {
  const [a, b] = await Promise.all([register(base, 'ada'), register(base, 'bob')])
  const open = { token: a.token, body: { user_id: b.id } }
  const opened = await served(() => call(base, 'POST', '/v1/chat/conversations', open))
  return { a, b, conversationId: opened.body.id as string }
}

async function register(base: string, name: string): Promise<Visitor> {
  const email = `${name}@example.com`
  const enter = (how: 'register' | 'login') =>
    served(() =>
      call(base, 'POST', `/v1/auth/${how}`, { body: { email, password: 'correct horse' } }),
    )
  const registered = await enter('register')
  // A refused registration may be stored.
  const { body } = registered.status === 409 ? await enter('login') : registered
  return {
    id: body.user.id,
    email,
    token: body.access_token,
    refreshToken: body.refresh_token,
  }
}

/** Every message of a conversation, newest first. */
export async function allMessages(base: string, conversationId: string, token: string) {
  const found: Array<{ id: string; body: string }> = []
  let query = 'limit=100'
  for (let cursor: string | null = ''; cursor !== null; query = `limit=100&cursor=${cursor}`) {
    const path = `/v1/chat/conversations/${conversationId}/messages?${query}`
    const { body } = await served(() => call(base, 'GET', path, { token }))
    found.push(...body.data)
    cursor = body.pagination.cursor
  }
  return found
}
