import { describe, expect, test } from 'bun:test'
import { createApi } from '../client/src/api.ts'
import { ApiError, webStorage } from '../client/src/client.ts'
import {
  ada,
  bob,
  clientsOfFile,
  pageStorage,
  refusalOf,
  sessionKey,
  storedSession,
} from './support/clients.ts'
import { hang, networkError, refusal } from './support/fault-proxy.ts'
import { waitFor } from './support/wait.ts'

const { startChat, startClients, startPair } = clientsOfFile()

type Helper = (...given: unknown[]) => Promise<unknown> | AsyncGenerator

const expiry = 15 * 60_000
const unauthorized = () => refusal(401, 'unauthorized')

describe('the session', () => {
  test('starts with a registration or a login, both of which return the user', async () => {
    await using all = await startClients()
    const registered = await all.client.register(ada)
    const again = all.create()
    expect(await again.login(ada)).toEqual(registered)
    expect(await again.account.get()).toMatchObject({ ...registered, locale: 'en' })
    expect(again.user()).toEqual(registered)
  })

  test('continues after a reload from the browser’s storage', async () => {
    await using all = await startClients()
    const values = new Map<string, string>()
    const storage = webStorage({
      getItem: (key) => values.get(key) ?? null,
      setItem: (key, value) => values.set(key, value),
      removeItem: (key) => values.delete(key),
    })
    const user = await all.create({ storage }).register(ada)
    const reloaded = all.create({ storage })
    expect(reloaded.restore()).toEqual(user)
    expect((await reloaded.account.get()).id).toBe(user.id)
    expect(all.create().restore()).toBeUndefined()
  })

  test('is renewed once for ten parallel requests when the token is about to expire', async () => {
    await using all = await startClients()
    await all.client.register(ada)
    all.advance(expiry - 30_000)
    await Promise.all(Array.from({ length: 10 }, () => all.client.account.get()))
    expect(all.proxy.count('POST', '/v1/auth/refresh')).toBe(1)
    expect(all.proxy.count('GET', '/v1/users/me')).toBe(10)
  })

  test('is renewed once for ten parallel requests with a refused token', async () => {
    await using all = await startClients()
    const storage = pageStorage()
    await all.create({ storage }).register(ada)
    const spoilt = { ...storedSession(storage), accessToken: 'not.a.token' }
    storage.set(sessionKey, JSON.stringify(spoilt))
    const client = all.create({ storage })
    client.restore()
    await Promise.all(Array.from({ length: 10 }, () => client.account.get()))
    expect(all.proxy.count('POST', '/v1/auth/refresh')).toBe(1)
    expect(all.endings()).toBe(0)
  })

  test('ends once, also for parallel requests, when the service refuses the renewal', async () => {
    await using all = await startClients()
    const storage = pageStorage()
    await all.create({ storage }).register(ada)
    await all.endSessionsOf(ada)
    const restored = all.create({ storage })
    restored.restore()
    const refused = Promise.all([
      refusalOf(restored.account.get()),
      refusalOf(restored.account.get()),
    ])
    expect(await refused).toMatchObject([
      { name: 'SessionEndedError' },
      { name: 'SessionEndedError' },
    ])
    expect(all.endings()).toBe(1)
    expect([restored.user(), storage.get(sessionKey)]).toEqual([undefined, undefined])
  })

  test('survives a network failure during the renewal', async () => {
    await using all = await startClients()
    await all.client.register(ada)
    all.advance(expiry)
    all.proxy.control.isOffline = true
    expect(await refusalOf(all.client.account.get())).toMatchObject({
      name: 'NetworkError',
      cause: expect.any(TypeError),
    })
    all.proxy.control.isOffline = false
    expect(await all.client.account.get()).toMatchObject({ email: ada.email })
    expect(all.endings()).toBe(0)
  })

  test('is shared by two tabs: each uses the tokens that the other has renewed', async () => {
    await using all = await startClients()
    const storage = pageStorage()
    const [one, other] = [all.create({ storage }), all.create({ storage })]
    await one.register(ada)
    other.restore()
    all.advance(expiry)
    await one.account.get()
    await other.account.get()
    expect(all.proxy.count('POST', '/v1/auth/refresh')).toBe(1)
  })

  test('is renewed by one tab at a time where the browser has locks', async () => {
    await using all = await startClients()
    const storage = pageStorage()
    const locks = createLocks()
    const network = new EventTarget()
    // The page hears of the other tab's tokens before its turn comes.
    const request: typeof locks.request = (name, options, work) =>
      locks.request(name, options, () => {
        network.dispatchEvent(new Event('storage'))
        return work()
      })
    const one = all.create({ storage, locks })
    const other = all.create({ storage, locks: { request }, network })
    await one.register(ada)
    other.restore()
    all.advance(expiry)
    await Promise.all([one.account.get(), other.account.get()])
    expect(all.proxy.count('POST', '/v1/auth/refresh')).toBe(1)
    expect(all.endings()).toBe(0)
  })

  test('of another user in another tab is not used', async () => {
    await using all = await startClients()
    const storage = pageStorage()
    const [one, other] = [all.create({ storage }), all.create({ storage })]
    await one.register(ada)
    await other.register(bob)
    all.advance(expiry)
    expect(await refusalOf(one.account.get())).toMatchObject({ name: 'SessionEndedError' })
    expect((await other.account.get()).email).toBe(bob.email)
    expect(all.endings()).toBe(1)
  })

  test('ends with a logout, without a session_ended event', async () => {
    await using all = await startClients()
    const storage = pageStorage()
    const client = all.create({ storage })
    await client.register(ada)
    const { accessToken } = storedSession(storage)
    await client.logout()
    expect(storage.get(sessionKey)).toBeUndefined()
    expect(await refusalOf(client.account.get())).toMatchObject({ code: 'unauthorized' })
    const answer = await all.service.call('GET', '/v1/users/me', { token: accessToken })
    expect([answer.status, all.endings()]).toEqual([401, 0])
  })
})

describe('a session under faults', () => {
  test('uses a token until it expires while it cannot be renewed', async () => {
    await using chat = await startChat()
    const { proxy, client, user } = chat
    const unavailable = () => refusal(503, 'internal_error')
    chat.advance(expiry - 30_000)
    proxy.onNext('/v1/auth/refresh', unavailable)
    expect((await client.account.get()).id).toBe(user.id)
    chat.advance(30_000)
    proxy.onNext('/v1/auth/refresh', unavailable)
    expect(await refusalOf(client.account.get())).toMatchObject({ status: 503 })
    expect(chat.endings()).toBe(0)
  })

  test('renews once for successive refusals', async () => {
    const storage = pageStorage()
    await using chat = await startChat({ storage })
    const { proxy, client } = chat
    const { accessToken } = storedSession(storage)
    const late = Promise.withResolvers<Response>()
    proxy.onNext('/v1/users/me', () => late.promise)
    const first = client.account.get()
    await waitFor(() => proxy.count('GET', '/v1/users/me') === 1)
    proxy.onNext('/v1/users/me', unauthorized)
    await client.account.get()
    late.resolve(unauthorized())
    await first
    expect(proxy.count('POST', '/v1/auth/refresh')).toBe(1)
    const renewed = storedSession(storage).accessToken
    expect(renewed).not.toBe(accessToken)
    expect(proxy.requests.at(-1)?.token).toBe(`Bearer ${renewed}`)
  })

  test('is not revived by a renewal that ends after the logout', async () => {
    const storage = pageStorage()
    await using chat = await startChat({ storage })
    const { proxy, client } = chat
    const loggedOut = Promise.withResolvers<void>()
    const renewals: number[] = []
    proxy.onNext('/v1/users/me', unauthorized)
    proxy.onNext('/v1/auth/refresh', async (forward) => {
      const answer = await forward()
      renewals.push(answer.status)
      await loggedOut.promise
      return answer
    })
    const asking = refusalOf(client.account.get())
    await waitFor(() => renewals.length === 1)
    await client.logout()
    loggedOut.resolve()
    expect(await asking).toMatchObject({ name: 'SessionEndedError' })
    expect([client.user(), storage.get(sessionKey)]).toEqual([undefined, undefined])
    expect(renewals).toEqual([200])
  })

  test.each([
    ['first', true],
    ['last', false],
  ])(
    'survives a simultaneous renewal by two tabs without locks (the waiting tab is served %s)',
    async (_, isFirst) => {
      const storage = pageStorage()
      await using chat = await startChat({ storage })
      const { proxy, client } = chat
      const other = chat.create()
      other.restore()
      proxy.onNext('/v1/users/me', unauthorized)
      proxy.onNext('/v1/auth/refresh', async (forward) => {
        const served = isFirst ? await forward() : undefined
        proxy.onNext('/v1/users/me', unauthorized)
        await other.account.get()
        return served ?? forward()
      })
      await client.account.get()
      for (const tab of [other, client, other]) {
        chat.advance(expiry)
        expect((await tab.account.get()).id).toBe(chat.user.id)
      }
      expect(chat.endings()).toBe(0)
    },
  )

  test('survives a lost renewal response for a day', async () => {
    const storage = pageStorage()
    await using chat = await startChat({ storage })
    const { proxy, client } = chat
    proxy.onNext('/v1/users/me', unauthorized)
    proxy.onNext('/v1/auth/refresh', async (forward) => {
      await forward()
      return networkError()
    })
    await refusalOf(client.account.get())
    chat.advance(86_000_000)
    expect((await client.account.get()).id).toBe(chat.user.id)
    expect([proxy.count('POST', '/v1/auth/refresh'), chat.endings()]).toEqual([2, 0])
  })

  test('has a new key for each renewal, so that use of a copied storage is detected', async () => {
    const storage = pageStorage()
    await using chat = await startChat({ storage })
    const { refreshToken, renewalKey } = storedSession(storage)
    chat.advance(expiry)
    await chat.client.account.get()
    expect(storedSession(storage).renewalKey).not.toBe(renewalKey)
    chat.advance(expiry)
    await chat.client.account.get()
    const stolen = {
      body: { refresh_token: refreshToken },
      headers: { 'x-idempotency-key': renewalKey },
    }
    expect((await chat.service.call('POST', '/v1/auth/refresh', stolen)).status).toBe(401)
    expect(await refusalOf(chat.client.account.get())).toMatchObject({ name: 'SessionEndedError' })
  })

  test('ends in all tabs on logout, whichever tab renewed it last', async () => {
    const storage = pageStorage()
    await using chat = await startChat({ storage })
    const { proxy, client, timers, create } = chat
    const other = create()
    other.restore()
    timers.advance(1)
    proxy.onNext('/v1/users/me', unauthorized)
    await other.account.get()
    await client.logout()
    expect(storage.get(sessionKey)).toBeUndefined()
  })

  test('ends at the service, too, on logout with an expired access token', async () => {
    await using chat = await startChat()
    chat.advance(expiry)
    await chat.client.logout()
    const { sqlite } = chat.service
    const ended = sqlite
      .query('SELECT revoked_at FROM sessions WHERE user_id = ?')
      .all(chat.user.id)
    expect(ended).toEqual([{ revoked_at: expect.any(Number) }])
  })

  test('ends locally even when the service does not understand the logout', async () => {
    await using chat = await startChat()
    await chat.endSessionsOf(ada)
    await chat.client.logout()
    expect(chat.proxy.requests.slice(-2)).toMatchObject([
      { path: '/v1/auth/logout' },
      { path: '/v1/auth/refresh' },
    ])
    expect(chat.client.user()).toBeUndefined()
  })
})

/** A lock with the semantics of navigator.locks. */
function createLocks() {
  let last: Promise<unknown> = Promise.resolve()
  return {
    request<T>(_: string, _options: object, work: () => Promise<T>): Promise<T> {
      const mine = last.then(work)
      last = mine.catch(() => {})
      return mine
    },
  }
}

describe('REST', () => {
  test('lists conversations and messages, by page and by iteration', async () => {
    await using pair = await startPair()
    const { one, other, conversation } = pair
    const sent = []
    for (const body of ['1', '2', '3']) sent.push(await one.send(conversation.id, { body }))
    const all = await Array.fromAsync(other.messages.each(conversation.id, { limit: 2 }))
    expect(all).toEqual(sent.toReversed())
    const page = await other.messages.list(conversation.id, { page: 2, per_page: 2 })
    expect([page.data, page.pagination.total]).toEqual([sent.slice(0, 1), 3])
    const { data } = await other.conversations.list()
    expect(data).toMatchObject([{ id: conversation.id, unread_count: 3 }])
    await other.conversations.markRead(conversation.id)
    const read = await Array.fromAsync(other.conversations.each())
    expect(read).toMatchObject([{ id: conversation.id, unread_count: 0 }])
  })

  test('sends a message with the same client_id once', async () => {
    await using pair = await startPair()
    const { one, other, conversation } = pair
    const send = () => one.messages.send(conversation.id, { body: 'hello', client_id: 'k' })
    const sent = await send()
    expect(await send()).toEqual(sent)
    expect((await other.messages.list(conversation.id)).data).toEqual([sent])
  })

  test('turns a refusal into an error with all fields of the response', async () => {
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

  test('returns errors in the language of the page', async () => {
    let language = 'de'
    await using all = await startClients({ language: () => language })
    const login = () => refusalOf(all.client.login({ ...ada, password: 'wrong' }))
    expect(await login()).toMatchObject({
      code: 'invalid_credentials',
      message: expect.stringContaining('Passwort'),
    })
    language = 'fr'
    expect(await login()).toMatchObject({ message: expect.stringContaining('mot de passe') })
  })

  test('waits for Retry-After before repeatable requests, and repeats no others', async () => {
    await using chat = await startChat()
    const { proxy, client, timers, user, friend } = chat
    const busy = () => refusal(429, 'rate_limited', { 'retry-after': '7' })
    for (const path of ['/v1/users/me', '/v1/chat/conversations']) proxy.onNext(path, busy)
    const me = client.account.get()
    await waitFor(() => timers.waiting().includes(7_000))
    timers.advance(7_000)
    expect((await me).id).toBe(user.id)
    const opening = refusalOf(client.conversations.open(friend.id))
    expect(await opening).toMatchObject({ retryAfterSeconds: 7 })
    expect(proxy.count('POST', '/v1/chat/conversations')).toBe(1)
    proxy.onNext('/v1/support/tickets', busy)
    const asking = client.request('POST /v1/support/tickets', {
      body: { subject: 'Help', body: 'It is broken.' },
      headers: { 'X-Idempotency-Key': 'help-1' },
    })
    await waitFor(() => timers.waiting().includes(7_000))
    timers.advance(7_000)
    expect((await asking).subject).toBe('Help')
  })

  test('waits half a minute at most, and stops when aborted', async () => {
    await using chat = await startChat()
    const { proxy, client, timers } = chat
    proxy.onNext('/v1/users/me', () => refusal(503, 'internal_error', { 'retry-after': '31' }))
    expect(await refusalOf(client.account.get())).toMatchObject({
      status: 503,
      retryAfterSeconds: 31,
    })
    proxy.onNext('/v1/users/me', () => refusal(429, 'rate_limited', { 'retry-after': '5' }))
    const controller = new AbortController()
    const aborted = refusalOf(client.request('GET /v1/users/me', { signal: controller.signal }))
    await waitFor(() => timers.waiting().includes(5_000))
    controller.abort(new Error('gone'))
    expect(await aborted).toMatchObject({ name: 'AbortError', cause: new Error('gone') })
    expect(timers.waiting()).toEqual([])
  })

  test('throws an error for a response that is not from the service', async () => {
    await using chat = await startChat()
    chat.proxy.onNext('/v1/users/me', () => new Response('<h1>Bad gateway', { status: 502 }))
    expect(await refusalOf(chat.client.account.get())).toMatchObject({
      name: 'NetworkError',
      message: 'HTTP 502, not from the service',
      status: 502,
    })
  })

  test('every helper takes options as its last argument', async () => {
    const sent: { signal?: AbortSignal | undefined }[] = []
    const { request: _, ...api } = createApi(async (request) => {
      sent.push(request)
      return { data: [], pagination: { cursor: null } }
    })
    const { signal } = new AbortController()
    const pushManager = { getSubscription: async () => null, subscribe: async () => ({}) }
    // A default value hides a parameter from `length`.
    async function takes(work: Helper, count: number) {
      sent.length = 0
      const answer = work(...Array(count).fill({ pushManager }), { signal })
      for await (const _ of Symbol.asyncIterator in answer ? answer : [await answer]);
      return sent.length > 0 && sent.every((request) => request.signal === signal)
    }
    const helpers = Object.entries({ ...api, root: { report: api.report } }).flatMap(
      ([group, functions]) =>
        Object.entries(functions).map(([name, work]) => [`${group}.${name}`, work] as const),
    )
    expect(helpers.length).toBeGreaterThan(50)
    for (const [name, work] of helpers) {
      const counts = [work.length - 1, work.length, work.length + 1].filter((count) => count >= 0)
      const taken = await Array.fromAsync(counts, (count) => takes(work, count))
      expect([name, taken.includes(true)]).toEqual([name, true])
    }
  })

  test('takes a signal, a timeout and no retry', async () => {
    await using chat = await startChat()
    const { proxy, client } = chat
    proxy.onNext('/v1/notifications', hang)
    expect(await refusalOf(client.notifications.list({}, { timeout: 20 }))).toMatchObject({
      name: 'TimeoutError',
    })
    const signal = AbortSignal.abort('left')
    expect(await refusalOf(client.conversations.list({}, { signal }))).toMatchObject({
      name: 'AbortError',
      cause: 'left',
    })
    proxy.onNext('/v1/users/me', () => refusal(429, 'rate_limited', { 'retry-after': '5' }))
    expect(await refusalOf(client.account.get({ retry: false }))).toMatchObject({ status: 429 })
    proxy.onNext('/v1/files', hang)
    const upload = client.files.upload(new Blob(['x']), { timeout: 20 })
    expect(await refusalOf(upload)).toMatchObject({ name: 'TimeoutError' })
    proxy.onNext('/v1/auth/logout', hang)
    expect(await refusalOf(client.logout({ timeout: 20 }))).toMatchObject({ name: 'TimeoutError' })
  })

  test('catches up after a message, oldest first, over all conversations', async () => {
    await using pair = await startPair()
    const { one, other, conversation } = pair
    const sent = []
    for (const from of [one, other, one, one])
      sent.push(await from.send(conversation.id, { body: 'x' }))
    const [first, ...later] = sent
    const missed = other.messages.since(first?.id ?? '')
    expect(await Array.fromAsync(missed)).toEqual(later)
  })

  test('sends a broadcast once and reads its progress', async () => {
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
