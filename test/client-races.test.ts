import { expect, test } from 'bun:test'
import { createClient, memoryStorage } from '../client/src/client.ts'
import { linkSignals } from '../client/src/waiting.ts'
import { ada, bob, clientsOfFile, pageStorage, refusalOf, sessionKey } from './support/clients.ts'
import { refusal } from './support/fault-proxy.ts'
import { createTestTimers } from './support/timers.ts'
import { waitFor, waitOut } from './support/wait.ts'

const { startChat } = clientsOfFile()

// Races between operations of a client.

/** Delays the next response to a path. */
function hold(proxy: Awaited<ReturnType<typeof startChat>>['proxy'], path: string) {
  const asked = Promise.withResolvers<void>()
  const released = Promise.withResolvers<Response | undefined>()
  proxy.onNext(path, async (forward) => {
    asked.resolve()
    return (await released.promise) ?? forward()
  })
  return { asked: asked.promise, release: released.resolve }
}

test('requests of one user are never sent with the token of the next', async () => {
  await using chat = await startChat()
  const { client, proxy, timers } = chat
  proxy.onNext('/v1/support/tickets', () => refusal(429, 'rate_limited', { 'retry-after': '5' }))
  const asking = refusalOf(client.tickets.create({ subject: 'private', body: 'of Ada' }))
  await waitFor(() => timers.waiting().includes(5_000))
  await client.logout()
  await client.register({ ...bob, email: 'next@example.com' })
  timers.advance(5_000)
  expect(await asking).toMatchObject({ name: 'SessionEndedError' })
  expect((await client.tickets.list()).data).toEqual([])
})

test('a slow logout does not end the next session', async () => {
  await using chat = await startChat()
  const { client, proxy } = chat
  const { asked, release } = hold(proxy, '/v1/auth/logout')
  const leaving = client.logout()
  await asked
  await client.register({ ...bob, email: 'next@example.com' })
  release(undefined)
  await leaving
  expect(client.user()?.email).toBe('next@example.com')
  expect((await client.account.get()).email).toBe('next@example.com')
})

test('a reload before the service has processed the logout does not resume the session', async () => {
  const storage = pageStorage()
  await using chat = await startChat({ storage })
  const { client, proxy } = chat
  const { asked, release } = hold(proxy, '/v1/auth/logout')
  const leaving = client.logout()
  await asked
  expect(chat.create().restore()).toBeUndefined()
  release(undefined)
  await leaving
})

test('connecting again while the channel waits for the network waits for the same opening', async () => {
  await using chat = await startChat()
  const { client, proxy, timers } = chat
  await client.connect()
  proxy.cut(1001)
  await waitFor(() => client.status() === 'waiting')
  const statuses: string[] = []
  const again = client.connect().then(() => statuses.push(client.status()))
  timers.advance(500)
  await again
  expect(statuses).toEqual(['open'])
})

test('a closed client stays closed', async () => {
  const storage = pageStorage()
  await using chat = await startChat({ storage })
  const { client, timers } = chat
  client.close()
  const closed = { name: 'ClosedError' }
  expect(await refusalOf(client.connect())).toMatchObject(closed)
  expect(() => client.restore()).toThrow('the client is closed')
  expect(await refusalOf(client.login(ada))).toMatchObject(closed)
  expect(timers.waiting()).toEqual([])
  expect(storage.get(sessionKey)).toContain(chat.user.id)
})

test('a lock that another tab never releases blocks neither an abort nor a renewal for ever', async () => {
  const refused = {
    request: async () => Promise.reject(new Error('the wait for the lock was over')),
  }
  const hung = { request: () => new Promise<never>(() => {}) }
  await using chat = await startChat({ locks: refused })
  const waiting = chat.create({ storage: memoryStorage(), locks: hung })
  await waiting.login(ada)
  chat.advance(15 * 60_000)
  expect((await chat.client.account.get()).id).toBe(chat.user.id)
  const controller = new AbortController()
  const asking = refusalOf(waiting.request('GET /v1/users/me', { signal: controller.signal }))
  controller.abort(new Error('gone'))
  expect(await asking).toMatchObject({ name: 'AbortError', cause: new Error('gone') })
})

test('a full storage keeps its messages', async () => {
  const storage = pageStorage()
  let room = true
  const set = (key: string, value: string) => {
    if (!room) throw new Error('full')
    storage.set(key, value)
  }
  await using chat = await startChat({ storage: { ...storage, set } })
  chat.proxy.control.isOffline = true
  void chat.client.send(chat.conversationId, { body: 'kept' })
  room = false
  void chat.client.send(chat.conversationId, { body: 'sent from here alone' })
  expect(storage.get(`outbox.${chat.user.id}`)).toContain('kept')
})

test('a tab whose clock was set back renews the session for the other tabs, too', async () => {
  const storage = pageStorage()
  await using chat = await startChat({ storage })
  const other = chat.create({ timers: createTestTimers(chat.timers.now() - 3_600_000) })
  other.restore()
  const unauthorized = () => refusal(401, 'unauthorized')
  chat.proxy.onNext('/v1/users/me', unauthorized)
  await other.account.get()
  chat.proxy.onNext('/v1/users/me', unauthorized)
  await chat.client.account.get()
  expect([chat.proxy.count('POST', '/v1/auth/refresh'), chat.endings()]).toEqual([1, 0])
})

test('services that share a storage do not see each other’s sessions', async () => {
  const storage = memoryStorage()
  await using chat = await startChat({ storage })
  const elsewhere = createClient({ baseUrl: 'http://elsewhere.test', storage })
  expect([chat.create().restore()?.id, elsewhere.restore()]).toEqual([chat.user.id, undefined])
})

test('messages wait while a proxy answers in place of the service', async () => {
  await using chat = await startChat()
  const { client, proxy, timers } = chat
  for (let n = 0; n < 6; n++) {
    proxy.onNext(chat.messagesPath, () => new Response('<h1>Not found', { status: 404 }))
  }
  const sending = client.send(chat.conversationId, { body: 'hello' })
  for (let n = 1; n <= 6; n++) {
    await waitFor(() => proxy.count('POST', chat.messagesPath) === n && timers.waiting().length > 0)
    timers.advance(30_000)
  }
  expect((await sending).body).toBe('hello')
})

test('a message with its own key is sent once, even by another client', async () => {
  await using chat = await startChat()
  const { client, conversationId } = chat
  const draft = { body: 'answer', client_id: 'answer-1' }
  const both = [client.send(conversationId, draft), client.send(conversationId, draft)]
  const [one, same] = await Promise.all(both)
  const later = await chat
    .create()
    .login(ada)
    .then(() => client.send(conversationId, draft))
  expect([same, later]).toEqual([one, one])
  expect(await chat.stored()).toHaveLength(1)
})

test('a logout also ends a newer session of the same user from another tab', async () => {
  const storage = pageStorage()
  await using chat = await startChat({ storage })
  const other = chat.create()
  other.restore()
  await other.logout()
  await other.login(ada)
  await chat.client.logout()
  expect([chat.client.user(), storage.get(sessionKey)]).toEqual([undefined, undefined])
})

test('the channel position of one user is not used for the next', async () => {
  await using chat = await startChat()
  const { client, proxy } = chat
  await chat.say('of Ada')
  await client.connect()
  client.disconnect()
  await client.logout()
  await client.register({ ...bob, email: 'next@example.com' })
  await client.connect()
  expect(proxy.upgrades.at(-1)?.query).not.toHaveProperty('since')
  expect(client.newestMessageId()).toBe('0'.repeat(26))
})

test('a channel refused without a logged-in user is closed for good', async () => {
  await using chat = await startChat()
  const { client, proxy, timers } = chat
  proxy.control.refusesUpgrades = true
  void client.connect()
  await waitFor(() => client.status() === 'waiting')
  await client.logout()
  expect(await refusalOf(client.connect())).toMatchObject({ name: 'SessionEndedError' })
  expect(timers.waiting()).toEqual([])
})

test('a login and a logout in another tab are noticed at once', async () => {
  const storage = pageStorage()
  await using chat = await startChat({ storage })
  const [tab, network] = [chat.create({ network: new EventTarget() }), chat.network]
  const ended: unknown[] = []
  chat.client.on('session_ended', ({ user }) => ended.push(user?.display_name))
  tab.restore()
  await tab.register({ ...bob, email: 'rob@example.com' })
  network.dispatchEvent(new Event('storage'))
  expect([ended, chat.client.user()]).toEqual([['Bob'], undefined])
  expect(chat.client.restore()?.display_name).toBe('Bob')
  // A page that Back brings back has got no other event.
  void chat.client.connect()
  await tab.login(ada)
  network.dispatchEvent(new Event('pageshow'))
  chat.client.restore()
  await tab.logout()
  network.dispatchEvent(new Event('storage'))
  expect(ended).toEqual(['Bob', 'Ada', undefined])
})

test('handlers are called once, or not any more', async () => {
  await using chat = await startChat()
  const { client } = chat
  const heard: string[] = []
  const removed = () => heard.push('removed')
  client.once('status', ({ status }) => heard.push(status))
  client.on('status', removed)
  client.off('status', removed)
  await client.connect()
  expect(heard).toEqual(['connecting'])
})

test('progress that comes after the end of an upload starts no timer', async () => {
  const deadline = linkSignals([], 1)
  deadline.release()
  deadline.start()
  await waitOut(20)
  expect(deadline.isOver()).toBe(false)
})
