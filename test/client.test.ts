import { describe, expect, test } from 'bun:test'
import { ApiError, memoryStorage, webStorage } from '../client/client.ts'
import { refusal } from './support/chat-stand-in.ts'
import {
  ada,
  bob,
  endOtherSessions,
  refusalOf,
  startLoggedIn,
  startPair,
  startReal,
} from './support/clients.ts'
import { until } from './support/timers.ts'

const expiry = 15 * 60_000
const sessionKey = 'hostline.session'

describe('the session', () => {
  test('begins with a registration and a login, and both tell who it is', async () => {
    await using real = await startReal()
    const registered = await real.client.register(ada)
    const again = real.create()
    expect(await again.login(ada)).toEqual(registered)
    expect(await again.me()).toMatchObject({ ...registered, locale: 'en' })
    expect(again.user()).toEqual(registered)
  })

  test('goes on after a reload, from the browser’s storage', async () => {
    await using real = await startReal()
    const values = new Map<string, string>()
    const storage = webStorage({
      getItem: (key) => values.get(key) ?? null,
      setItem: (key, value) => values.set(key, value),
      removeItem: (key) => values.delete(key),
    })
    const user = await real.create({ storage }).register(ada)
    const reloaded = real.create({ storage })
    expect(reloaded.restore()).toEqual(user)
    expect((await reloaded.me()).id).toBe(user.id)
    expect(real.create().restore()).toBeUndefined()
  })

  test('is renewed once for ten requests at a time when the token is about to expire', async () => {
    await using real = await startReal()
    await real.client.register(ada)
    real.advance(expiry - 30_000)
    await Promise.all(Array.from({ length: 10 }, () => real.client.me()))
    expect(real.network.count('POST /v1/auth/refresh')).toBe(1)
    expect(real.network.count('GET /v1/users/me')).toBe(10)
  })

  test('is renewed once for ten requests at a time whose token is refused', async () => {
    await using real = await startReal()
    const storage = memoryStorage()
    await real.create({ storage }).register(ada)
    const stored = JSON.parse(storage.get(sessionKey) ?? '')
    storage.set(sessionKey, JSON.stringify({ ...stored, accessToken: 'not.a.token' }))
    const client = real.create({ storage })
    client.restore()
    await Promise.all(Array.from({ length: 10 }, () => client.me()))
    expect(real.network.count('POST /v1/auth/refresh')).toBe(1)
    expect(real.endings()).toBe(0)
  })

  test('ends once, for the requests of the moment too, when the service refuses to renew it', async () => {
    await using real = await startReal()
    const storage = memoryStorage()
    await real.create({ storage }).register(ada)
    await real.client.login(ada)
    await endOtherSessions(real.client)
    const restored = real.create({ storage })
    restored.restore()
    const refused = Promise.all([refusalOf(restored.me()), refusalOf(restored.me())])
    await until(() => real.timers.waiting().includes(1_000))
    real.advance(1_000)
    expect(await refused).toMatchObject([{ code: 'unauthorized' }, { code: 'unauthorized' }])
    expect(real.endings()).toBe(1)
    expect([restored.user(), storage.get(sessionKey)]).toEqual([undefined, undefined])
  })

  test('outlives a network that fails while it is to be renewed', async () => {
    await using real = await startReal()
    await real.client.register(ada)
    real.advance(expiry)
    real.network.control.isOffline = true
    expect(await refusalOf(real.client.me())).toBeInstanceOf(TypeError)
    real.network.control.isOffline = false
    expect(await real.client.me()).toMatchObject({ email: ada.email })
    expect(real.endings()).toBe(0)
  })

  test('is shared by two tabs: what one renewed, the other uses', async () => {
    await using real = await startReal()
    const storage = memoryStorage()
    const [one, other] = [real.create({ storage }), real.create({ storage })]
    await one.register(ada)
    other.restore()
    real.advance(expiry)
    await one.me()
    await other.me()
    expect(real.network.count('POST /v1/auth/refresh')).toBe(1)
  })

  test('is renewed by one tab at a time where the browser has locks', async () => {
    await using real = await startReal()
    const storage = memoryStorage()
    const locks = createLocks()
    const [one, other] = [real.create({ storage, locks }), real.create({ storage, locks })]
    await one.register(ada)
    other.restore()
    real.advance(expiry)
    await Promise.all([one.me(), other.me()])
    expect(real.network.count('POST /v1/auth/refresh')).toBe(1)
    expect(real.endings()).toBe(0)
  })

  test('of another person in another tab is not taken up', async () => {
    await using real = await startReal()
    const storage = memoryStorage()
    const [one, other] = [real.create({ storage }), real.create({ storage })]
    await one.register(ada)
    await other.register(bob)
    real.advance(expiry)
    expect(await refusalOf(one.me())).toMatchObject({ code: 'unauthorized' })
    expect((await other.me()).email).toBe(bob.email)
    expect(real.endings()).toBe(1)
  })

  test('ends for good with a logout, which is no surprise to the page', async () => {
    await using real = await startReal()
    const storage = memoryStorage()
    const client = real.create({ storage })
    await client.register(ada)
    const { accessToken } = JSON.parse(storage.get(sessionKey) ?? '')
    await client.logout()
    expect(storage.get(sessionKey)).toBeUndefined()
    expect(await refusalOf(client.me())).toMatchObject({ code: 'unauthorized' })
    const answer = await real.service.call('GET', '/v1/users/me', { token: accessToken })
    expect([answer.status, real.endings()]).toEqual([401, 0])
  })
})

describe('a session in a tight spot', () => {
  test('uses a token to its end while it cannot be renewed, and no longer', async () => {
    await using chat = await startLoggedIn()
    const { standIn, client, timers } = chat
    const unavailable = () => refusal(503, 'internal_error')
    timers.advance(expiry - 30_000)
    standIn.failNext('/v1/auth/refresh', unavailable)
    expect((await client.me()).id).toBe('U1')
    timers.advance(30_000)
    standIn.failNext('/v1/auth/refresh', unavailable)
    expect(await refusalOf(client.me())).toMatchObject({ status: 503 })
    expect(chat.endings()).toBe(0)
  })

  test('renews once for refusals that come one after another', async () => {
    await using chat = await startLoggedIn()
    const { standIn, client } = chat
    const late = Promise.withResolvers<Response>()
    standIn.failNext('/v1/users/me', () => late.promise)
    const first = client.me()
    await until(() => standIn.count('GET', '/v1/users/me') === 1)
    standIn.failNext('/v1/users/me', () => refusal(401, 'unauthorized'))
    await client.me()
    late.resolve(refusal(401, 'unauthorized'))
    await first
    expect(standIn.count('POST', '/v1/auth/refresh')).toBe(1)
    expect(standIn.requests.at(-1)?.token).toBe('Bearer a.b.2')
  })

  test('is not brought back by a renewal that ends after the logout', async () => {
    const storage = memoryStorage()
    await using chat = await startLoggedIn({ storage })
    const { standIn, client } = chat
    const late = Promise.withResolvers<Response>()
    standIn.failNext('/v1/users/me', () => refusal(401, 'unauthorized'))
    standIn.failNext('/v1/auth/refresh', () => late.promise)
    const asking = refusalOf(client.me())
    await until(() => standIn.count('POST', '/v1/auth/refresh') === 1)
    await client.logout()
    late.resolve(Response.json({ access_token: 'x', refresh_token: 'rt_x', expires_in: 900 }))
    expect(await asking).toMatchObject({ code: 'unauthorized' })
    expect([client.user(), storage.get(sessionKey)]).toEqual([undefined, undefined])
  })

  test('follows a tab that was faster, where the browser has no locks', async () => {
    const storage = memoryStorage()
    await using chat = await startLoggedIn({ storage })
    const { standIn, client, timers } = chat
    standIn.failNext('/v1/users/me', () => refusal(401, 'unauthorized'))
    standIn.failNext('/v1/auth/refresh', () => {
      const stored = JSON.parse(storage.get(sessionKey) ?? '')
      const expiresAt = timers.now() + expiry + 1
      const others = { ...stored, accessToken: 'a.b.9', refreshToken: 'rt_9', expiresAt }
      storage.set(sessionKey, JSON.stringify(others))
      return refusal(401, 'invalid_token')
    })
    await client.me()
    expect([standIn.requests.at(-1)?.token, chat.endings()]).toEqual(['Bearer a.b.9', 0])
  })

  test('follows a tab whose tokens are seen only a moment later', async () => {
    const storage = memoryStorage()
    await using chat = await startLoggedIn({ storage })
    const { standIn, client, timers } = chat
    standIn.failNext('/v1/users/me', () => refusal(401, 'unauthorized'))
    standIn.failNext('/v1/auth/refresh', () => refusal(401, 'invalid_token'))
    const asking = client.me()
    await until(() => timers.waiting().includes(1_000))
    const stored = JSON.parse(storage.get(sessionKey) ?? '')
    const others = { ...stored, accessToken: 'a.b.9', refreshToken: 'rt_9' }
    storage.set(sessionKey, JSON.stringify({ ...others, expiresAt: timers.now() + 2 * expiry }))
    timers.advance(1_000)
    await asking
    expect([standIn.requests.at(-1)?.token, chat.endings()]).toEqual(['Bearer a.b.9', 0])
  })

  test('is gone for all tabs after a logout, whoever renewed it last', async () => {
    const storage = memoryStorage()
    await using chat = await startLoggedIn({ storage })
    const { standIn, client, timers, create } = chat
    const other = create()
    other.restore()
    timers.advance(1)
    standIn.failNext('/v1/users/me', () => refusal(401, 'unauthorized'))
    await other.me()
    await client.logout()
    expect(storage.get(sessionKey)).toBeUndefined()
  })

  test('is gone after a logout that the service no longer understands', async () => {
    await using chat = await startLoggedIn()
    const { standIn, client } = chat
    standIn.failNext('/v1/auth/logout', () => refusal(401, 'unauthorized'))
    standIn.failNext('/v1/auth/refresh', () => refusal(401, 'invalid_token'))
    await client.logout()
    expect(client.user()).toBeUndefined()
  })
})

/** Locks as browsers have them, for one name. */
function createLocks() {
  let last: Promise<unknown> = Promise.resolve()
  return {
    request<T>(_: string, work: () => Promise<T>): Promise<T> {
      const mine = last.then(work)
      last = mine.catch(() => {})
      return mine
    },
  }
}

describe('REST', () => {
  test('lists conversations and messages, by page and all of them', async () => {
    await using pair = await startPair()
    const { one, other, conversation } = pair
    const sent = []
    for (const body of ['1', '2', '3']) sent.push(await one.send(conversation.id, { body }))
    const all = await Array.fromAsync(other.messages.each(conversation.id, { pageSize: 2 }))
    expect(all).toEqual(sent.toReversed())
    const page = await other.messages.list(conversation.id, { page: 2, perPage: 2 })
    expect([page.data, page.pagination.total]).toEqual([sent.slice(0, 1), 3])
    const { data } = await other.conversations.list()
    expect(data).toMatchObject([{ id: conversation.id, unread_count: 3 }])
    await other.conversations.markRead(conversation.id)
    const read = await Array.fromAsync(other.conversations.each())
    expect(read).toMatchObject([{ id: conversation.id, unread_count: 0 }])
  })

  test('sends a message with the same client_id once', async () => {
    await using pair = await startPair()
    const { one, conversation } = pair
    const send = () => one.messages.send(conversation.id, { body: 'hello', client_id: 'k' })
    expect(await send()).toEqual(await send())
  })

  test('shows a refusal as an error with all that the service said', async () => {
    await using pair = await startPair()
    const error = await refusalOf(pair.one.conversations.open('nobody'))
    expect(error).toBeInstanceOf(ApiError)
    expect(error).toMatchObject({
      status: 400,
      code: 'validation_error',
      message: expect.stringMatching(/./),
      details: { user_id: expect.any(String) },
      retryAfterSeconds: undefined,
      requestId: expect.stringMatching(/^[0-9A-Z]{26}$/),
    })
  })

  test('waits as long as it is asked to for what may be repeated, and for nothing else', async () => {
    await using chat = await startLoggedIn()
    const { standIn, client, timers } = chat
    const busy = () => refusal(429, 'rate_limited', { 'retry-after': '7' })
    for (const path of ['/v1/users/me', '/v1/chat/conversations']) standIn.failNext(path, busy)
    const me = client.me()
    await until(() => timers.waiting().includes(7_000))
    timers.advance(7_000)
    expect((await me).id).toBe('U1')
    expect(await refusalOf(client.conversations.open('U2'))).toMatchObject({ retryAfterSeconds: 7 })
    expect(standIn.count('POST', '/v1/chat/conversations')).toBe(1)
  })

  test('does not wait longer than half a minute, nor for what is aborted', async () => {
    await using chat = await startLoggedIn()
    const { standIn, client, timers } = chat
    standIn.failNext('/v1/users/me', () => refusal(503, 'internal_error', { 'retry-after': '31' }))
    expect(await refusalOf(client.me())).toMatchObject({ status: 503, retryAfterSeconds: 31 })
    standIn.failNext('/v1/users/me', () => refusal(429, 'rate_limited', { 'retry-after': '5' }))
    const controller = new AbortController()
    const aborted = refusalOf(client.request('GET', '/v1/users/me', { signal: controller.signal }))
    await until(() => timers.waiting().includes(5_000))
    controller.abort(new Error('gone'))
    expect(await aborted).toEqual(new Error('gone'))
    expect(timers.waiting()).toEqual([])
  })

  test('makes an error of an answer that the service did not write', async () => {
    await using chat = await startLoggedIn()
    chat.standIn.failNext('/v1/users/me', () => new Response('<h1>Bad gateway', { status: 502 }))
    expect(await refusalOf(chat.client.me())).toMatchObject({
      status: 502,
      code: 'internal_error',
      message: 'HTTP 502',
    })
  })

  test('catches up after a message, oldest first, over all conversations', async () => {
    await using pair = await startPair()
    const { one, other, conversation } = pair
    const sent = []
    for (const from of [one, other, one, one])
      sent.push(await from.send(conversation.id, { body: 'x' }))
    const [first, ...later] = sent
    const missed = other.messages.since(first?.id ?? '', { pageSize: 2 })
    expect(await Array.fromAsync(missed)).toEqual(later)
  })

  test('sends a broadcast once and tells how far it has come', async () => {
    await using pair = await startPair()
    const role = "UPDATE users SET role = 'host', email_verified = 1 WHERE id = ?"
    pair.service.sqlite.run(role, [pair.users.one.id])
    const send = () => pair.one.broadcasts.send({ body: 'news', client_id: 'k' })
    const sent = await send()
    expect(sent).toMatchObject({ body: 'news', recipients_count: 0, status: 'completed' })
    expect(await send()).toEqual(sent)
    expect(await pair.one.broadcasts.get(sent.id)).toEqual({ ...sent, delivered_count: 0 })
  })
})
