import { describe, expect, test } from 'bun:test'
import { createTestClock } from './support/clock.ts'
import { testAtLength } from './support/faults.ts'
import { startService, type TestService } from './support/service.ts'
import { shared } from './support/shared.ts'
import { handshake, openUpgrade, stuckReader, TestSocket } from './support/socket.ts'
import { waitFor } from './support/wait.ts'

const unknownId = '01ARZ3NDEKTSV4RRFFQ69G5FAV'
const framesOff = { RATE_LIMIT_FRAMES: 'off' }

const anyService = shared(() => startService({ listen: true }))
const forPages = shared(() => {
  const PUBLIC_URL = 'https://chat.example.com'
  const environment = { CORS_ORIGINS: 'https://app.example.com', PUBLIC_URL }
  return startService({ listen: true, environment })
})

/** The clock only moves on. */
const clocked = shared(async () => {
  const clock = createTestClock()
  return Object.assign(await startService({ listen: true, clock }), { clock })
})

/** Two people in a conversation, on a service of their own if options are given. */
async function startPair(options?: Parameters<typeof startService>[0]) {
  const service = options ? await startService({ listen: true, ...options }) : await anyService()
  const pair = await meetOn(service)
  return {
    ...pair,
    async [Symbol.asyncDispose]() {
      pair[Symbol.dispose]()
      if (options) await service[Symbol.asyncDispose]()
    },
  }
}

/** Two more people on the service with a clock. */
async function meetWithClock() {
  const service = await clocked()
  return { ...(await meetOn(service)), clock: service.clock }
}

async function meetOn(service: TestService) {
  const { a, b, conversationId } = await service.pair()
  const [ada, bob] = [await service.connect(a), await service.connect(b)]
  const [asAda, asBob] = [
    { ...a, socket: ada },
    { ...b, socket: bob },
  ]
  return {
    service,
    ada: asAda,
    bob: asBob,
    conversationId,
    [Symbol.dispose]() {
      for (const socket of [ada, bob]) socket.close()
    },
  }
}

describe('the handshake', () => {
  test.each([
    ['the query', (token: string) => ({ query: `?token=${token}`, protocols: [] })],
    ['a subprotocol', (token: string) => ({ protocols: ['hostline.v1', `bearer.${token}`] })],
    ['a subprotocol alone', (token: string) => ({ protocols: [`bearer.${token}`] })],
  ])('takes the token from %s', async (_, offer) => {
    const service = await anyService()
    const { token } = await service.register()
    const { query = '', protocols }: { query?: string; protocols: string[] } = offer(token)
    const url = `${service.base.replace('http', 'ws')}/v1/chat/ws${query}`
    const socket = await TestSocket.open(url, protocols)
    expect(socket.protocol).toBe(protocols[0] ?? '')
    await socket.settled()
  })

  test('takes the token from the Authorization header', async () => {
    const service = await anyService()
    const { token } = await service.register()
    const head = await upgrade(service.base, '/v1/chat/ws', { authorization: `Bearer ${token}` })
    expect(head).toStartWith('HTTP/1.1 101')
  })

  test.each([
    ['https://app.example.com', 101],
    ['https://chat.example.com', 101],
    [undefined, 101],
    ['https://evil.example', 403],
    ['http://app.example.com', 403],
    ['null', 403],
  ])(
    'from a page of %s is answered with %d when CORS_ORIGINS names another',
    async (origin, status) => {
      const service = await forPages()
      const { token, id } = await service.register()
      const path = `/v1/chat/ws?token=${token}`
      const head = await upgrade(service.base, path, { ...(origin !== undefined && { origin }) })
      expect(head).toStartWith(`HTTP/1.1 ${status}`)
      expect(service.hub.isOnline(id)).toBe(status === 101)
    },
  )

  test('from any page is accepted without CORS_ORIGINS', async () => {
    const service = await anyService()
    const { token } = await service.register()
    const path = `/v1/chat/ws?token=${token}`
    const head = await upgrade(service.base, path, { origin: 'https://app.example.com' })
    expect(head).toStartWith('HTTP/1.1 101')
  })

  test('is refused with an HTTP 401 and the error body', async () => {
    const service = await anyService()
    const { token } = await service.register()
    const tampered = `${token.slice(0, -4)}AAAA`
    const queries = [
      '',
      '?token=',
      '?token=nonsense',
      `?token=${tampered}`,
      `?token=${token}&token=${token}`,
    ]
    for (const query of queries) {
      const answer = await fetch(`${service.base}/v1/chat/ws${query}`, { headers: handshake })
      expect(answer.status).toBe(401)
      expect(answer.headers.get('x-request-id')).toHaveLength(26)
      expect(await answer.json()).toMatchObject({ error: { code: 'unauthorized', details: null } })
    }
  })

  test('a plain GET gets 401 without a token and 400 with one', async () => {
    const service = await anyService()
    const { token } = await service.register()
    expect((await service.call('GET', '/v1/chat/ws')).status).toBe(401)
    const plain = await service.call('GET', `/v1/chat/ws?token=${token}`)
    expect(plain.status).toBe(400)
    expect(plain.body.error.details).toEqual({
      body: 'this address accepts only WebSocket connections',
    })
  })

  test('the 101 carries a request id and the limits, and counts as one request of the user', async () => {
    await using service = await startService({
      listen: true,
      environment: { RATE_LIMIT_USER: '9/1m' },
    })
    const { token } = await service.register()
    const head = await upgrade(service.base, `/v1/chat/ws?token=${token}`)
    expect(head).toStartWith('HTTP/1.1 101')
    expect(head.toLowerCase()).toContain('x-request-id: ')
    expect(head.toLowerCase()).toContain('x-ratelimit-limit: 9\r\nx-ratelimit-remaining: 8\r\n')
  })

  test('another version of the protocol is refused as everything is', async () => {
    const service = await anyService()
    const { token } = await service.register()
    const path = `/v1/chat/ws?token=${token}`
    const answer = await upgrade(service.base, path, { 'Sec-WebSocket-Version': '8' })
    expect(answer).toStartWith('HTTP/1.1 400')
    expect(answer).toContain('this address accepts only WebSocket connections')
  })

  test('the token appears in no log line', async () => {
    const service = await anyService()
    const { token } = await service.register()
    await (await service.connect({ token })).settled()
    await fetch(`${service.base}/v1/chat/ws?token=${token}`)
    expect(service.log()).not.toContain(token)
  })
})

describe('messages', () => {
  test('reach every open socket of both users, with every field', async () => {
    await using chat = await startPair()
    const { service, ada, bob, conversationId } = chat
    const phone = await service.connect(ada)
    ada.socket.send({ type: 'message', conversation_id: conversationId, body: 'hello' })
    const frame = await bob.socket.next('new_message')
    expect(frame).toEqual({
      type: 'new_message',
      message: {
        id: expect.any(String),
        conversation_id: conversationId,
        sender_id: ada.id,
        body: 'hello',
        type: 'text',
        file_url: null,
        file_name: null,
        file_size: null,
        file_type: null,
        created_at: expect.any(String),
      },
    })
    expect(await ada.socket.next('new_message')).toEqual(frame)
    expect(await phone.next('new_message')).toEqual(frame)
  })

  test('sent over REST arrive as frames, and a repeated one does not', async () => {
    await using chat = await startPair()
    const { service, ada, bob, conversationId } = chat
    const path = `/v1/chat/conversations/${conversationId}/messages`
    const call = { token: ada.token, body: { body: 'once', client_id: 'k' } }
    const { body } = await service.call('POST', path, call)
    expect((await bob.socket.next('new_message')).message).toEqual(body)
    await service.call('POST', path, call)
    await bob.socket.settled()
    expect(bob.socket.frames).toEqual([])
  })

  test('sent in parallel over REST and two sockets with one key are stored once', async () => {
    await using chat = await startPair()
    const { service, ada, bob, conversationId } = chat
    const other = await service.connect(ada, '&events=ack')
    const about = { conversation_id: conversationId, body: 'once', client_id: 'k' }
    for (let n = 0; n < 5; n++) {
      ada.socket.send({ type: 'message', ...about })
      other.send({ type: 'message', ...about })
    }
    const path = `/v1/chat/conversations/${conversationId}/messages`
    const body = { body: 'once', client_id: 'k' }
    const sends = Array.from({ length: 5 }, () => service.call('POST', path, { ...ada, body }))
    const ids = (await Promise.all(sends)).map((answer) => answer.body.id)
    for (let n = 0; n < 5; n++) ids.push((await other.next('ack')).message.id)
    await ada.socket.settled()
    await bob.socket.settled()
    expect(new Set(ids).size).toBe(1)
    const received = bob.socket.frames.filter(({ type }) => type === 'new_message')
    expect(received.map(({ message }) => message.id)).toEqual([ids[0]])
  })

  test('of one connection keep their order', async () => {
    await using chat = await startPair({ environment: framesOff })
    const { ada, bob, conversationId } = chat
    for (let n = 0; n < 300; n++) {
      ada.socket.send({ type: 'message', conversation_id: conversationId, body: `${n}` })
    }
    const got: string[] = []
    while (got.length < 300) got.push((await bob.socket.next('new_message')).message.body)
    expect(got).toEqual(Array.from({ length: 300 }, (_, n) => `${n}`))
  })

  test('may be files', async () => {
    await using chat = await startPair()
    const { ada, bob, conversationId } = chat
    const file = {
      file_url: 'https://f.example.com/a',
      file_name: 'a',
      file_size: 3,
      file_type: 'a/b',
    }
    const frame = {
      type: 'message',
      conversation_id: conversationId,
      body: '',
      message_type: 'file',
    }
    ada.socket.send({ ...frame, ...file })
    expect((await bob.socket.next('new_message')).message).toMatchObject({ type: 'file', ...file })
  })

  test('reach no other user', async () => {
    await using chat = await startPair()
    const { service, ada, bob, conversationId } = chat
    const eve = await service.connect(await service.register('eve'))
    ada.socket.send({ type: 'message', conversation_id: conversationId, body: 'between us' })
    await bob.socket.next('new_message')
    await eve.settled()
    expect(eve.frames).toEqual([])
  })
})

describe('typing and reading', () => {
  test('typing reaches the other user only', async () => {
    await using chat = await startPair()
    const { ada, bob, conversationId } = chat
    ada.socket.send({ type: 'typing', conversation_id: conversationId })
    expect(await bob.socket.next('typing')).toEqual({
      type: 'typing',
      conversation_id: conversationId,
      user_id: ada.id,
    })
    await ada.socket.settled()
    expect(ada.socket.frames).toEqual([])
  })

  test('typing is limited to a burst of 5, then one in 2 s', async () => {
    using chat = await meetWithClock()
    const { clock, ada, bob, conversationId } = chat
    const type = async (times: number) => {
      for (let n = 0; n < times; n++)
        ada.socket.send({ type: 'typing', conversation_id: conversationId })
      await ada.socket.settled()
      await bob.socket.settled()
      return bob.socket.frames.splice(0).length
    }
    expect(await type(8)).toBe(5)
    clock.advance(2_000)
    expect(await type(3)).toBe(1)
  })

  test('a pong follows the refusal of a mark that cannot be stored', async () => {
    await using chat = await startPair()
    const { ada, bob, conversationId, service } = chat
    await service.say(bob, conversationId, 'hello')
    await ada.socket.next('new_message')
    const failure = "BEGIN SELECT RAISE(ABORT, 'no marks'); END"
    service.sqlite.run(`CREATE TRIGGER t BEFORE UPDATE ON participants ${failure}`)
    ada.socket.send({ type: 'read', conversation_id: conversationId })
    await ada.socket.settled()
    service.sqlite.run('DROP TRIGGER t')
    expect(ada.socket.frames).toMatchObject([{ type: 'error', request: { type: 'read' } }])
  })

  test.each(['frame', 'REST'])(
    'a read by %s sends the other user a receipt and clears the count',
    async (by) => {
      await using chat = await startPair()
      const { service, ada, bob, conversationId } = chat
      await service.say(ada, conversationId, 'hello')
      if (by === 'frame') bob.socket.send({ type: 'read', conversation_id: conversationId })
      else
        await service.call('PUT', `/v1/chat/conversations/${conversationId}/read`, {
          token: bob.token,
        })
      expect(await ada.socket.next('read_receipt')).toEqual({
        type: 'read_receipt',
        conversation_id: conversationId,
        user_id: bob.id,
      })
      const list = await service.call('GET', '/v1/chat/conversations', { token: bob.token })
      expect(list.body.data[0].unread_count).toBe(0)
      await bob.socket.settled()
      expect(bob.socket.frames.map(({ type }) => type)).toEqual(['new_message'])
    },
  )
})

describe('errors', () => {
  test.each([
    ['{bad json', { body: 'must be valid JSON' }, {}],
    ['42', { body: 'must be an object' }, {}],
    ['null', { body: 'must be an object' }, {}],
    ['[]', { body: 'must be an object' }, {}],
    [{ body: 'x' }, { type: 'is required' }, {}],
    [
      { type: 'shout' },
      { type: 'must be one of: message, typing, read, viewing, auth, ping' },
      { type: 'shout' },
    ],
    [
      { type: '__proto__' },
      { type: 'must be one of: message, typing, read, viewing, auth, ping' },
      { type: '__proto__' },
    ],
    [{ type: 'message', body: 'x' }, { conversation_id: 'is required' }, { type: 'message' }],
    [{ type: 'typing' }, { conversation_id: 'is required' }, { type: 'typing' }],
    [
      { type: 'message', conversation_id: 'c', body: '\u2800', client_id: 'k' },
      { body: 'must not be empty' },
      { type: 'message', conversation_id: 'c', client_id: 'k' },
    ],
  ])(
    '%j gets a validation_error frame and the socket stays open',
    async (frame, details, request) => {
      await using chat = await startPair()
      chat.ada.socket.send(frame)
      expect(await chat.ada.socket.next('error')).toEqual({
        type: 'error',
        error: { code: 'validation_error', message: 'The request is not valid.', details },
        request,
      })
      await chat.ada.socket.settled()
    },
  )

  test('a binary frame is malformed', async () => {
    await using chat = await startPair()
    chat.ada.socket.sendBinary(new TextEncoder().encode('{"type":"ping"}'))
    expect((await chat.ada.socket.next('error')).error.code).toBe('validation_error')
  })

  test.each(['message', 'typing', 'read'])(
    '%s of another conversation is forbidden or not found',
    async (type) => {
      await using chat = await startPair()
      const { service, ada } = chat
      const others = await service.pair()
      const about = async (conversation_id: string) => {
        ada.socket.send({ type, conversation_id, body: 'x' })
        return (await ada.socket.next('error')).error.code
      }
      expect(await about(others.conversationId)).toBe('forbidden')
      expect(await about(unknownId)).toBe('not_found')
      expect(await about('not-an-id')).toBe('not_found')
    },
  )

  test('are in the language of the upgrade request', async () => {
    const service = await anyService()
    const { token } = await service.register()
    const url = `${service.base.replace('http', 'ws')}/v1/chat/ws?token=${token}`
    const socket = new WebSocket(url, { headers: { 'accept-language': 'de' } } as never)
    const message = new Promise<string>((resolve) => {
      socket.onmessage = ({ data }) => resolve(JSON.parse(data).error.message)
    })
    socket.onopen = () => socket.send('?')
    expect(await message).toBe('Die Anfrage ist ungültig.')
  })

  test('20 malformed frames in a minute close with 4400', async () => {
    const clock = createTestClock()
    await using chat = await startPair({ environment: framesOff, clock })
    const { socket } = chat.ada
    for (let n = 0; n < 19; n++) socket.send('{')
    clock.advance(0)
    await socket.settled()
    clock.advance(60_001)
    for (let n = 0; n < 19; n++) socket.send('{')
    await socket.settled()
    socket.send('{')
    expect(await socket.closed).toBe(4400)
  })
})

describe('limits', () => {
  test('all sockets of a user together send three times the frames of one, however often they reconnect', async () => {
    const service = await clocked()
    const ada = await service.register()
    const accepted = async () => {
      const sockets = await Promise.all(Array.from({ length: 10 }, () => service.connect(ada)))
      for (const socket of sockets) for (let n = 0; n < 30; n++) socket.send({ type: 'ping' })
      await waitFor(() => sockets.every(({ frames }) => frames.length === 30))
      for (const socket of sockets) socket.close()
      return sockets.flatMap(({ frames }) => frames).filter(({ type }) => type === 'pong').length
    }
    expect(await accepted()).toBe(90)
    expect(await accepted()).toBe(0)
    service.clock.advance(1_001)
    expect(await accepted()).toBe(30)
  })

  test('30 frames at once, then 10 a second: more get rate_limited with retry_after', async () => {
    using chat = await meetWithClock()
    const { clock } = chat
    const { socket } = chat.ada
    for (let n = 0; n < 31; n++) socket.send({ type: 'ping' })
    const refusal = await socket.next('error')
    expect(refusal).toMatchObject({
      error: { code: 'rate_limited', details: null },
      retry_after: 1,
      request: { type: 'ping' },
    })
    expect(socket.frames.filter(({ type }) => type === 'pong')).toHaveLength(30)
    socket.frames.length = 0
    clock.advance(1_000)
    for (let n = 0; n < 10; n++) socket.send({ type: 'ping' })
    for (let n = 0; n < 10; n++) await socket.next('pong')
  })

  test('50 refused frames within 60 s close with 4429', async () => {
    using chat = await meetWithClock()
    const { socket } = chat.ada
    for (let n = 0; n < 79; n++) socket.send({ type: 'ping' })
    for (let n = 0; n < 49; n++) await socket.next('error')
    socket.send({ type: 'ping' })
    expect(await socket.closed).toBe(4429)
  })

  test('a frame above 64 KiB closes with 1009', async () => {
    await using chat = await startPair()
    chat.ada.socket.send('x'.repeat(64 * 1_024 + 1))
    expect(await chat.ada.socket.closed).toBe(1009)
  })

  test('the 51st socket of a user closes the oldest with 4409', async () => {
    await using service = await startService({ listen: true })
    const person = await service.register()
    const sockets: TestSocket[] = []
    for (let n = 0; n < 51; n++) sockets.push(await service.connect(person))
    expect(await sockets[0]?.closed).toBe(4409)
    await sockets[1]?.settled()
    expect(service.hub.stats().sockets).toBe(50)
  })

  test('a slow reader loses typing frames first', async () => {
    const clock = createTestClock()
    await using chat = await startPair({ environment: framesOff, clock })
    const { service, ada, bob, conversationId } = chat
    bob.socket.close()
    const stuck = await stuckReader(service.base, `/v1/chat/ws?token=${bob.token}`)
    const about = { conversation_id: conversationId }
    for (let round = 0; round < 400 && service.hub.stats().dropped === 0; round++) {
      for (let n = 0; n < 5; n++) {
        ada.socket.send({ type: 'message', ...about, body: '\u{1F600}'.repeat(5_000) })
        await ada.socket.next('new_message')
      }
      clock.advance(2_000)
      ada.socket.send({ type: 'typing', ...about })
      await ada.socket.settled()
    }
    expect(service.hub.stats()).toMatchObject({ dropped: 1, sockets: 2, users: 2 })
    stuck.destroy()
  })

  /** Sockets of a user that read nothing. */
  async function startStuck(count: number) {
    const clock = createTestClock()
    const service = await startService({ listen: true, clock })
    const { id, token } = await service.register()
    const path = `/v1/chat/ws?token=${token}`
    const sockets = await Promise.all(
      Array.from({ length: count }, () => stuckReader(service.base, path)),
    )
    const frame = { type: 'test', text: 'x'.repeat(100_000) }
    return {
      ...service,
      clock,
      sockets,
      send: () => service.hub.send([id], frame),
      async [Symbol.asyncDispose]() {
        for (const socket of sockets) socket.destroy()
        await service[Symbol.asyncDispose]()
      },
    }
  }

  test('the unread bytes of all sockets together are bounded: the slowest are dropped', async () => {
    await using stuck = await startStuck(50)
    let most = 0
    for (let n = 0; n < 1_000 && stuck.hub.stats().sockets === 50; n++) {
      stuck.send()
      most = Math.max(most, stuck.hub.stats().unsentBytes)
    }
    expect(most).toBeGreaterThan(16 * 1_048_576)
    expect(most).toBeLessThanOrEqual(32 * 1_048_576)
    expect(stuck.hub.stats().sockets).toBeGreaterThan(40)
  })

  test('a reader that reads none of its pending bytes for ten seconds is dropped', async () => {
    await using stuck = await startStuck(1)
    stuck.clock.advance(60_000)
    expect(stuck.hub.stats().sockets).toBe(1)
    while (stuck.hub.stats().unsentBytes === 0) stuck.send()
    stuck.clock.advance(9_000)
    expect(stuck.hub.stats().sockets).toBe(1)
    stuck.clock.advance(1_000)
    expect(stuck.hub.stats()).toMatchObject({ sockets: 0, unsentBytes: 0 })
  })

  test('a reader that reads its pending bytes within ten seconds stays', async () => {
    await using stuck = await startStuck(1)
    while (stuck.hub.stats().unsentBytes === 0) stuck.send()
    stuck.clock.advance(9_000)
    stuck.sockets[0]?.resume()
    await waitFor(() => stuck.hub.stats().unsentBytes === 0)
    stuck.clock.advance(1_000)
    expect(stuck.hub.stats().sockets).toBe(1)
  })

  testAtLength(
    '50 replays of a user wait for two that stand still; a further one is told to resync',
    async () => {
      await using service = await startService({ listen: true, clock: createTestClock() })
      const [ada, bob] = [await service.registerAs('user'), await service.register()]
      const conversationId = await service.openConversation(ada, bob)
      for (let n = 0; n < 500; n++)
        await service.say(ada, conversationId, '\u{1F600}'.repeat(5_000))
      const query = `&since=${'0'.repeat(26)}`
      const path = `/v1/chat/ws?token=${bob.token}${query}`
      const stuck = [await stuckReader(service.base, path), await stuckReader(service.base, path)]
      await waitFor(() => service.hub.stats().unsentBytes > 2 * 64 * 1_024)
      for (let n = 0; n < 50; n++) (await service.connect(bob, query)).close()
      const last = await service.connect(bob, query)
      expect((await last.next('resync'))['newest_message_id']).toHaveLength(26)
      for (const socket of stuck) socket.destroy()
    },
  )

  testAtLength('a silent socket is pinged before proxies cut it after 30 seconds', async () => {
    await using service = await startService({ listen: true })
    const { token } = await service.register()
    const socket = openUpgrade(service.base, `/v1/chat/ws?token=${token}`)
    const nextChunk = () => new Promise<Buffer>((resolve) => socket.once('data', resolve))
    expect(String(await nextChunk())).toStartWith('HTTP/1.1 101')
    const openedAt = performance.now()
    const ping = await nextChunk()
    expect([ping[0], performance.now() - openedAt < 30_000]).toEqual([0x89, true])
    socket.destroy()
  })

  test('a reader that does not read is dropped, and delays no other', async () => {
    await using chat = await startPair({ environment: framesOff })
    const { service, bob } = chat
    const stuck = await stuckReader(service.base, `/v1/chat/ws?token=${bob.token}`)
    const before = service.hub.stats().sockets
    const frame = { type: 'test', text: 'x'.repeat(20_000) }
    for (let n = 0; n < 1_000 && service.hub.stats().sockets === before; n++) {
      service.hub.send([bob.id], frame)
      await bob.socket.next('test')
    }
    expect(service.hub.stats().sockets).toBe(before - 1)
    stuck.destroy()
  })
})

describe('the token of a connection', () => {
  test('closes it with 4401 thirty seconds after it expired', async () => {
    using chat = await meetWithClock()
    const { clock } = chat
    clock.advance(929_000)
    await chat.ada.socket.settled()
    clock.advance(2_000)
    expect(await chat.ada.socket.closed).toBe(4401)
  })

  test('can be renewed by an auth frame', async () => {
    using chat = await meetWithClock()
    const { clock, service, ada, bob } = chat
    clock.advance(800_000)
    const body = { refresh_token: ada.refreshToken }
    const { access_token } = (await service.call('POST', '/v1/auth/refresh', { body })).body
    await service.call('GET', '/v1/chat/conversations', { token: access_token })
    ada.socket.send({ type: 'auth', token: access_token })
    await ada.socket.settled()
    clock.advance(200_000)
    expect(await bob.socket.closed).toBe(4401)
    await ada.socket.settled()
  })

  test('of another user, or none, is refused and changes nothing', async () => {
    await using chat = await startPair()
    const { ada, bob } = chat
    const other = await chat.service.login(ada.email)
    const body = { refresh_token: other.refreshToken }
    await chat.service.call('POST', '/v1/auth/logout', { token: other.token, body })
    for (const [token, reason] of [
      [bob.token, 'token_invalid'],
      ['nonsense', 'token_invalid'],
      ['', 'token_missing'],
      [ada.refreshToken, 'wrong_kind_of_token'],
      [other.token, 'session_ended'],
    ]) {
      ada.socket.send({ type: 'auth', token })
      expect(await ada.socket.next('error')).toMatchObject({
        error: { code: 'unauthorized' },
        reason,
        request: { type: 'auth' },
      })
    }
    await ada.socket.settled()
  })

  test('logout closes only the sockets of that session with 4403', async () => {
    await using chat = await startPair()
    const { service, ada } = chat
    const phone = await service.login(ada.email)
    const sockets = [await service.connect(phone), await service.connect(ada)]
    // The second socket changes to the session of the phone.
    for (const socket of sockets) socket.send({ type: 'auth', token: phone.token })
    for (const socket of sockets) await socket.settled()
    const body = { refresh_token: ada.refreshToken }
    await service.call('POST', '/v1/auth/logout', { token: ada.token, body })
    expect(await ada.socket.closed).toBe(4403)
    for (const socket of sockets) await socket.settled()
  })

  test('a reused refresh token closes the sockets of its family', async () => {
    using chat = await meetWithClock()
    const { clock, service, ada } = chat
    const body = { refresh_token: ada.refreshToken }
    await service.call('POST', '/v1/auth/refresh', { body })
    clock.advance(11_000)
    await service.call('POST', '/v1/auth/refresh', { body })
    expect(await ada.socket.closed).toBe(4403)
  })
})

test('a shutdown answers accepted requests and closes every socket with 1001', async () => {
  await using chat = await startPair({ environment: framesOff })
  const { service, ada, bob, conversationId } = chat
  for (let n = 0; n < 20; n++) {
    ada.socket.send({ type: 'message', conversation_id: conversationId, body: `${n}` })
  }
  await bob.socket.next('new_message')
  await service.stop()
  expect([await ada.socket.closed, await bob.socket.closed]).toEqual([1001, 1001])
  expect(ada.socket.frames.filter(({ type }) => type === 'new_message')).toHaveLength(20)
})

test('a shutdown waits for requests and frames whose writes are not on the disk yet, and takes no more', async () => {
  let release: (() => void) | undefined
  let hold = false
  const sync = (real: () => Promise<void>) =>
    hold ? new Promise<void>((resolve) => (release = resolve)) : real()
  const clock = createTestClock()
  await using service = await startService({ listen: true, sync, clock })
  const { a, conversationId } = await service.pair()
  const [ada, late] = [await service.connect(a), await service.connect(a)]
  hold = true
  const sending = service.say(a, conversationId, 'last words')
  const frame = (body: string) => ({ type: 'message', conversation_id: conversationId, body })
  ada.send(frame('by frame'))
  // Another write may be waiting for the disk.
  const messages = service.sqlite.query('SELECT body FROM messages ORDER BY body')
  await waitFor(() => release && messages.all().length === 2, 'the messages')
  const stopping = service.stop()
  late.send(frame('too late'))
  expect((await service.call('GET', '/readyz')).status).toBe(503)
  await expect(service.connect(a)).rejects.toThrow()
  expect(messages.values()).toEqual([['by frame'], ['last words']])
  hold = false
  release?.()
  expect((await sending).status).toBe(201)
  expect(await ada.closed).toBe(1001)
  expect(ada.frames.map(({ message }) => message?.body)).toContain('by frame')
  await stopping
  expect(clock.intervals()).toBe(0)
})

/** The response head of an upgrade request. */
async function upgrade(base: string, path: string, more: Record<string, string> = {}) {
  const socket = openUpgrade(base, path, more)
  const head = await new Promise<string>((resolve) =>
    socket.once('data', (data) => resolve(String(data))),
  )
  socket.destroy()
  return head
}

/** A client that upgrades and then never reads again. */
