import { describe, expect, test } from 'bun:test'
import { once } from 'node:events'
import { connect } from 'node:net'
import { temporaryDirectory } from './support/directory.ts'
import { readAnswer, startService } from './support/service.ts'
import { shared } from './support/shared.ts'
import { openUpgrade } from './support/socket.ts'
import { tools } from './support/tools.ts'
import { waitFor } from './support/wait.ts'

const anyService = shared(() => startService())
const listening = shared(() => startService({ listen: true }))

const credentials = { email: 'ada@example.com', password: 'correct horse' }
const json = { 'content-type': 'application/json' }

/** Sends raw bytes and reads head and body of the response. */
async function raw(base: string, text: string) {
  const { hostname, port } = new URL(base)
  const socket = connect(Number(port), hostname)
  socket.write(text)
  const answer = await new Promise<string>((resolve) => {
    let got = ''
    const finish = () => resolve(got)
    socket.on('data', (data) => {
      got += data
      if (/\r\n\r\n[\s\S]*\}$/.test(got)) finish()
    })
    socket.on('close', finish)
  })
  socket.destroy()
  const [head = '', body = ''] = answer.split('\r\n\r\n')
  return { status: Number(head.split(' ')[1]), head: head.toLowerCase(), body }
}

describe('every answer', () => {
  test.each([
    ['a success', 'GET', '/.well-known/jwks.json'],
    ['a missing path', 'GET', '/nope'],
    ['a wrong method', 'DELETE', '/v1/auth/login'],
    ['a missing token', 'GET', '/v1/chat/conversations'],
    ['a malformed body', 'POST', '/v1/auth/login'],
  ])('carries a request id and the limits: %s', async (_, method, path) => {
    await using service = await startService({
      environment: { RATE_LIMIT_ANONYMOUS: '30/1m', RATE_LIMIT_LOGIN: '5/15m' },
    })
    const { headers } = await service.call(method, path)
    expect(headers.get('x-request-id')).toMatch(/^[0-9A-HJKMNP-TV-Z]{26}$/)
    for (const name of ['limit', 'remaining', 'reset']) {
      expect(headers.get(`x-ratelimit-${name}`)).toMatch(/^\d+$/)
    }
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none'; frame-ancestors 'none'",
    )
  })

  test.each([
    ['https://chat.example.com', 'max-age=31536000'],
    ['http://chat.example.com', null],
  ])('of %s has Strict-Transport-Security %j', async (PUBLIC_URL, policy) => {
    await using service = await startService({ listen: true, environment: { PUBLIC_URL } })
    for (const path of ['/', '/nope', '/v1/chat/conversations']) {
      const { headers } = await service.call('GET', path)
      expect(headers.get('strict-transport-security')).toBe(policy)
    }
    const { token } = await service.register()
    const socket = openUpgrade(service.base, `/v1/chat/ws?token=${token}`)
    const [head] = await once(socket, 'data')
    expect(String(head)).toStartWith('HTTP/1.1 101')
    expect(/strict-transport-security: /i.test(head)).toBe(policy !== null)
    socket.destroy()
  })

  test('ignores the client’s request id', async () => {
    const service = await anyService()
    const { headers } = await service.call('GET', '/healthz', {
      headers: { 'x-request-id': 'mine' },
    })
    expect(headers.get('x-request-id')).not.toBe('mine')
  })

  test('HEAD is answered like GET, without a body', async () => {
    const service = await listening()
    const { status, body } = await service.call('HEAD', '/healthz')
    expect([status, body]).toEqual([200, ''])
  })
})

describe('the path', () => {
  test.each([['a'], [''], ['a b'], ['[::'], ['x:y:z']])(
    'with the Host %j is refused',
    async (host) => {
      const service = await listening()
      const { status, body } = await raw(
        service.base,
        `GET /zzz/v1/chat/conversations HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
      )
      expect([400, 404]).toContain(status)
      if (body !== '') expect(JSON.parse(body).error.code).toMatch(/^(validation_error|not_found)$/)
    },
  )

  test.each([
    '/v1/chat/conversations/',
    '//v1/chat/conversations',
    '/V1/chat/conversations',
    '/v1/chat/conversations%00',
    '/v1/chat/conversations;x=1',
    '/v1%2Fchat%2Fconversations',
  ])('%s is no other name of a route', async (path) => {
    const service = await listening()
    const { token } = await service.register()
    const { status, body } = await raw(
      service.base,
      `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`,
    )
    expect([400, 404]).toContain(status)
    expect(JSON.parse(body).error.details).toSatisfy(
      (details) => details === null || 'host' in details,
    )
  })
})

test.each(['/v1/chat/../chat/conversations', '/x/%2e%2e/v1/chat/conversations'])(
  '%s is normalised before any check: it does not bypass the token',
  async (path) => {
    const service = await listening()
    const { token } = await service.register()
    const get = (authorization: string) =>
      raw(
        service.base,
        `GET ${path} HTTP/1.1\r\nHost: x\r\n${authorization}Connection: close\r\n\r\n`,
      )
    expect((await get('')).status).toBe(401)
    expect((await get(`Authorization: Bearer ${token}\r\n`)).status).toBe(200)
  },
)

describe('the order of checks', () => {
  const large = 'x'.repeat(64 * 1_024)

  test('a body that is too large is refused before the limit, the path and the token', async () => {
    await using service = await startService({ environment: { RATE_LIMIT_ANONYMOUS: '1/1m' } })
    await service.call('GET', '/nope')
    for (const path of ['/nope', '/v1/chat/conversations', '/v1/auth/login']) {
      const answer = await service.request(path, {
        method: 'POST',
        body: `"${large}"`,
        headers: { ...json, 'content-length': '65538' },
      })
      expect(await readAnswer(answer)).toMatchObject({
        status: 413,
        body: {
          error: { code: 'validation_error', details: { body: 'must not be larger than 64 KiB' } },
        },
      })
    }
  })

  test('a request refused before the limit still shows the limit, and does not count', async () => {
    await using service = await startService({
      listen: true,
      environment: { RATE_LIMIT_ANONYMOUS: '7/1m' },
    })
    const long = `POST /v1/zz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 70000\r\n\r\n`
    const { status, head } = await raw(service.base, long)
    expect(status).toBe(413)
    expect(head).toContain(
      'x-ratelimit-limit: 7\r\nx-ratelimit-remaining: 7\r\nx-ratelimit-reset: ',
    )
  })

  test('a refusal does not wait for a streamed body, and a request counts before its body has arrived', async () => {
    await using service = await startService({
      listen: true,
      environment: { RATE_LIMIT_ANONYMOUS: '2/1m', RATE_LIMIT_LOGIN: '1/1m' },
    })
    const head = (path: string) =>
      `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`
    const answerTo = async (path: string) => (await raw(service.base, head(path))).status
    const { hostname, port } = new URL(service.base)
    const slow = connect(Number(port), hostname)
    slow.write(`${head('/v1/auth/login')}1\r\n{\r\n`)
    await waitFor(async () => (await answerTo('/v1/auth/login')) === 429, 'the slow login to count')
    expect(await answerTo('/v1/chat/conversations')).toBe(401)
    expect(await answerTo('/nope')).toBe(404)
    expect(await answerTo('/nope')).toBe(429)
    slow.destroy()
  })

  test('the limit is checked before the path, the path before the token', async () => {
    await using service = await startService({ environment: { RATE_LIMIT_ANONYMOUS: '1/1m' } })
    expect((await service.call('GET', '/nope')).status).toBe(404)
    expect((await service.call('GET', '/nope')).status).toBe(429)
  })

  test('the token is checked before the content type, the content type before the fields', async () => {
    const service = await anyService()
    const { token } = await service.register()
    const post = (headers: Record<string, string>, body: string) =>
      service.request('/v1/chat/conversations', { method: 'POST', headers, body }).then(readAnswer)
    const authorization = `Bearer ${token}`
    expect((await post({ 'content-type': 'text/plain' }, '{')).status).toBe(401)
    const plain = await post({ authorization, 'content-type': 'text/plain' }, '{')
    expect(plain.body.error.details).toEqual({ body: 'must be sent as application/json' })
    const broken = await post({ authorization, ...json }, '{')
    expect(broken.body.error.details).toEqual({ body: 'must be valid JSON' })
    const empty = await post({ authorization, ...json }, '{}')
    expect(empty.body.error.details).toEqual({ user_id: 'is required' })
  })

  test('the fields are checked before the object', async () => {
    const service = await anyService()
    const { token } = await service.register()
    const path = '/v1/chat/conversations/01ARZ3NDEKTSV4RRFFQ69G5FAV/messages'
    expect((await service.call('POST', path, { token, body: {} })).status).toBe(400)
    expect((await service.call('POST', path, { token, body: { body: 'x' } })).status).toBe(404)
  })
})

describe('all wrong query parameters are named', () => {
  const page = { page: 'must be at least 1' }
  const cursor = { cursor: 'is not a cursor of this list' }
  const since = { since: 'must be a valid identifier' }

  test.each([
    [
      '/v1/notifications?page=0&per_page=x&unread=maybe&limit=-1&cursor=x',
      {
        ...page,
        ...cursor,
        per_page: 'must be a whole number',
        unread: 'must be true or false',
        limit: 'must be at least 1',
      },
    ],
    [
      '/v1/chat/messages?limit=x&since=zz&cursor=x',
      { limit: 'must be a whole number', ...since, ...cursor },
    ],
    [
      '/v1/chat/ws?events=ack,news&since=zz',
      { events: expect.stringContaining('one of: ready, ack'), ...since },
    ],
    ['/v1/chat/ws?events=ack&events=read', { events: 'must be given only once' }],
    ['/v1/admin/users?q=a&q=b&page=0', { q: 'must be given only once', ...page }],
    [
      '/v1/admin/support/tickets?page=0&status=late&assignee_id=you&user_id=1&__proto__=1&__proto__=2',
      {
        ...page,
        status: expect.stringContaining('one of: open'),
        assignee_id: 'must be a valid identifier',
        user_id: 'must be a valid identifier',
        ['__proto__']: 'must be given only once',
      },
    ],
  ])('%s', async (path, details) => {
    const service = await anyService()
    const { token } = await service.registerAs('admin')
    const { status, body } = await service.call('GET', path, { token })
    expect([status, body.error.details]).toEqual([400, details])
  })
})

describe('bodies', () => {
  const withAda = shared(async () => {
    const service = await startService()
    await service.register('ada')
    return service
  })

  test.each([
    ['application/json; charset=utf-8', 200],
    ['APPLICATION/JSON', 200],
    ['application/x-www-form-urlencoded', 400],
    ['multipart/form-data; boundary=x', 400],
    ['text/plain', 400],
    ['application/json-patch+json', 400],
  ])('of the type %s are answered with %d', async (type, status) => {
    const service = await withAda()
    const body = JSON.stringify(credentials)
    const headers = { 'content-type': type }
    const answer = await service.request('/v1/auth/login', { method: 'POST', headers, body })
    expect(answer.status).toBe(status)
  })

  test.each([
    ['cut off', '{"email":'],
    ['deep', '['.repeat(60_000)],
    ['deeply nested', `${'['.repeat(30_000)}${']'.repeat(30_000)}`],
    ['nested too deeply', `{"email":${'['.repeat(16)}${']'.repeat(16)}}`],
    ['not UTF-8', new Uint8Array([0x22, 0xff, 0xfe, 0x22])],
    ['empty', ''],
  ])('that are %s are refused', async (_, body) => {
    const service = await anyService()
    const answer = await readAnswer(
      await service.request('/v1/auth/login', { method: 'POST', headers: json, body }),
    )
    expect([answer.status, Object.keys(answer.body.error.details)]).toEqual([400, ['body']])
  })

  test.each([
    ['brackets in texts', '[['.repeat(100)],
    ['escaped quotes in texts', '"\\"['.repeat(100)],
    ['a very long text', 'x'.repeat(64_000)],
  ])('with %s are read correctly', async (_, email) => {
    const service = await anyService()
    const body = { email, password: 'x' }
    expect((await service.call('POST', '/v1/auth/login', { body })).status).toBe(401)
  })

  test('with __proto__ or constructor change nothing', async () => {
    const service = await anyService()
    const body =
      '{"email":"a@b.co","password":"long enough","__proto__":{"role":"admin"},"constructor":{}}'
    const answer = await readAnswer(
      await service.request('/v1/auth/register', { method: 'POST', headers: json, body }),
    )
    expect([answer.status, answer.body.user.role]).toEqual([201, 'user'])
    expect(({} as { role?: string }).role).toBeUndefined()
  })

  test('are measured while they stream in', async () => {
    const service = await listening()
    const chunk = `2000\r\n${'x'.repeat(0x2000)}\r\n`
    const request = `POST /v1/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`
    const large = await raw(service.base, `${request}${chunk.repeat(9)}0\r\n\r\n`)
    expect([large.status, JSON.parse(large.body).error.code]).toEqual([413, 'validation_error'])
    const text = JSON.stringify(credentials)
    const small = await raw(
      service.base,
      `${request}${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`,
    )
    expect([small.status, JSON.parse(small.body).error.code]).toEqual([401, 'invalid_credentials'])
  })

  test.each([
    ['JSON', '/v1/chat/conversations', 'application/json'],
    ['the form of an upload', '/v1/files', 'multipart/form-data; boundary=x'],
  ])('of single bytes let others have a turn after each: %s', async (_, path, type) => {
    const service = await anyService()
    const { token } = await service.register()
    const read: number[] = []
    let turns = 0
    const turn = () => void (++turns && read.length < 100 && setImmediate(turn))
    const body = new ReadableStream({
      pull(controller) {
        if (read.push(turns) < 100) controller.enqueue(new Uint8Array(1))
        else controller.close()
      },
    })
    turn()
    const headers = { 'content-type': type, authorization: `Bearer ${token}` }
    const answer = await service.request(path, { method: 'POST', headers, body })
    expect(answer.status).toBe(400)
    expect(new Set(read).size).toBeGreaterThan(90)
  })

  test('declared too large are refused without being read', async () => {
    const service = await listening()
    const { status, body, head } = await raw(
      service.base,
      `POST /v1/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9999999999\r\n\r\n{`,
    )
    expect([status, JSON.parse(body).error.code]).toEqual([413, 'validation_error'])
    expect(head).toContain('x-request-id: ')
  })

  test.each(['Content-Length: 9', 'Transfer-Encoding: chunked'])(
    'that break off are the mistake of the client (%s)',
    async (length) => {
      await using service = await startService({ listen: true })
      const { token } = await service.register()
      const { hostname, port } = new URL(service.base)
      const socket = connect(Number(port), hostname)
      socket.end(
        `POST /v1/chat/conversations HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n${length}\r\n\r\n2\r\n{"`,
      )
      await waitFor(() => service.log().includes('"status":400'), 'the refusal')
      expect(service.log()).not.toContain('a request failed')
      socket.destroy()
    },
  )
})

describe('languages', () => {
  test.each([
    ['de', 'Die Anfrage ist ungültig.', 'fehlt'],
    ['es-MX,es;q=0.9', 'La solicitud no es válida.', 'es obligatorio'],
    ['fr-CA', 'La requête n’est pas valide.', 'est obligatoire'],
    ['ja, pt;q=0.5, en;q=0.1', 'O pedido não é válido.', 'é obrigatório'],
    ['en;q=0.1, de;q=0.9', 'Die Anfrage ist ungültig.', 'fehlt'],
    ['de;q=0, fr;q=0.1', 'La requête n’est pas valide.', 'est obligatoire'],
    ['de;q=0, *', 'The request is not valid.', 'is required'],
    ['en;q=0, *', 'Die Anfrage ist ungültig.', 'fehlt'],
    ['*, en;q=0, de;q=0', 'La solicitud no es válida.', 'es obligatorio'],
    ['*;q=0.1, fr;q=0.5', 'La requête n’est pas valide.', 'est obligatoire'],
    ['ja', 'The request is not valid.', 'is required'],
    ['*', 'The request is not valid.', 'is required'],
    [';;;,q=,', 'The request is not valid.', 'is required'],
  ])('%j selects the language, also of field errors', async (language, message, required) => {
    const service = await anyService()
    const headers = { 'accept-language': language }
    const { body } = await service.call('POST', '/v1/auth/login', { headers, body: { email: 'x' } })
    expect(body.error).toEqual({
      code: 'validation_error',
      message,
      details: { password: required },
    })
  })
})

describe('internal errors', () => {
  test('are answered with 500 without details; the log has the request id', async () => {
    await using service = await startService()
    const { token } = (await service.pair()).a
    service.sqlite.run('ALTER TABLE participants RENAME TO hidden')
    const answer = await service.call('GET', '/v1/chat/conversations', { token })
    expect([answer.status, answer.body]).toEqual([
      500,
      {
        error: {
          code: 'internal_error',
          message: 'Something went wrong on our side.',
          details: null,
        },
      },
    ])
    expect(service.log()).toContain(answer.headers.get('x-request-id') ?? '?')
    expect(service.log()).toContain('no such table')
  })
})

describe('browsers of other origins', () => {
  const environment = { CORS_ORIGINS: 'https://app.example.com' }
  const withOrigins = shared(() => startService({ environment }))

  test('on the list may send requests and read responses', async () => {
    await using service = await startService({ environment })
    const headers = { origin: 'https://app.example.com', 'access-control-request-method': 'POST' }
    const preflight = await service.call('OPTIONS', '/v1/auth/login', { headers })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-headers')).toContain('X-Idempotency-Key')
    expect(preflight.headers.get('access-control-allow-origin')).toBe('https://app.example.com')
    expect(preflight.headers.get('access-control-allow-headers')).toContain('Authorization')
    const { origin } = headers
    const answer = await service.call('GET', '/healthz', { headers: { origin } })
    expect(answer.headers.get('access-control-allow-origin')).toBe(origin)
    expect(answer.headers.get('access-control-expose-headers')).toContain('X-Request-ID')
    expect(answer.headers.get('access-control-allow-credentials')).toBeNull()
  })

  test.each([
    'https://app.example.com.evil.example',
    'https://evil.example/https://app.example.com',
    'http://app.example.com',
    'https://APP.example.com',
    'null',
  ])('such as %s get no CORS headers', async (origin) => {
    const service = await withOrigins()
    const headers = { origin, 'access-control-request-method': 'POST' }
    const preflight = await service.call('OPTIONS', '/v1/auth/login', { headers })
    expect(preflight.headers.get('access-control-allow-origin')).toBeNull()
    const answer = await service.call('GET', '/healthz', { headers: { origin } })
    expect(answer.headers.get('access-control-allow-origin')).toBeNull()
    expect(answer.headers.get('vary')).toBe('Origin')
  })

  test('preflights count against no limit', async () => {
    await using service = await startService({
      environment: { ...environment, RATE_LIMIT_ANONYMOUS: '1/1m' },
    })
    const headers = { origin: 'https://app.example.com', 'access-control-request-method': 'POST' }
    for (let n = 0; n < 3; n++) {
      expect((await service.call('OPTIONS', '/v1/auth/login', { headers })).status).toBe(204)
    }
  })
})

const { openssl } = tools

test.skipIf(!openssl)('TLS of the server is 1.2 with forward secrecy, or newer', async () => {
  using directory = temporaryDirectory()
  const run = (command: string) =>
    Bun.spawn([openssl ?? '', ...command.split(' ')], { cwd: directory.path, stderr: 'ignore' })
  const made = '-x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -keyout key -out cert'
  await run(`req ${made}`).exited
  const environment = { TLS_CERT: `${directory.path}/cert`, TLS_KEY: `${directory.path}/key` }
  await using service = await startService({ listen: true, environment })
  const { host } = new URL(service.base)
  const suite = async (offer: string) => {
    const { stdout } = run(`s_client -connect ${host} ${offer}`)
    return /New, .* Cipher is (.*)/.exec(await new Response(stdout).text())?.[1]
  }
  expect(await suite('-tls1_3')).toStartWith('TLS_AES_')
  for (const good of ['ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-RSA-CHACHA20-POLY1305']) {
    expect(await suite(`-tls1_2 -cipher ${good}`)).toBe(good)
  }
  for (const bad of ['AES128-GCM-SHA256', 'AES256-SHA', 'ECDHE-RSA-AES128-SHA']) {
    expect(await suite(`-tls1_2 -cipher ${bad}`)).toBe('(NONE)')
  }
  expect(await suite('-tls1_1 -cipher ALL@SECLEVEL=0')).toBe('(NONE)')
})

test('the start page has a strict content security policy', async () => {
  const service = await anyService()
  const { status, headers, body } = await service.call('GET', '/')
  expect(status).toBe(200)
  expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(headers.get('content-security-policy')).toStartWith("default-src 'none';")
  expect(body.match(/<script[^>]*>/g)).toEqual([expect.stringContaining(' src="/assets/theme-')])
})
