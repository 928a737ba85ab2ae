import { heapStats } from 'bun:jsc'
import { expect, test } from 'bun:test'
import { asyncStorage, type ClientEvents, createClient } from '../client/src/client.ts'
import { createDelivery } from '../client/src/delivery.ts'
import { NetworkError } from '../client/src/errors.ts'
import { openThread } from '../client/src/state.ts'
import { ada, bob, clientsOfFile, pageStorage, refusalOf } from './support/clients.ts'
import { hang, networkError, refusal } from './support/fault-proxy.ts'
import { createTestTimers } from './support/timers.ts'
import { waitFor } from './support/wait.ts'

const { startChat, startClients, startPair } = clientsOfFile()

const longestPause = 30_000
const unavailable = () => refusal(503, 'internal_error')

/** Ada with an open channel. */
async function startOpen(options: Parameters<typeof startChat>[0] = {}) {
  const chat = await startChat(options)
  await chat.client.connect()
  const send = (body: string) => chat.client.send(chat.conversationId, { body })
  /** Drops the next message frame and answers it with an error frame. */
  const refuseNext = (code: string, more: object = {}) =>
    chat.proxy.onNextFrame('toServer', 'message', (_, { type, client_id }) => {
      const error = { code, message: code, details: null }
      chat.proxy.push({ type: 'error', error, request: { type, client_id }, ...more })
    })
  return { ...chat, send, refuseNext }
}

test('sends over the open channel and resolves with the stored message', async () => {
  await using chat = await startOpen()
  const { proxy, conversationId } = chat
  const file = { type: 'file', file_url: 'https://example.com/a.png' } as const
  const message = await chat.client.send(conversationId, { body: 'look', ...file })
  expect([message]).toEqual(await chat.stored())
  expect(proxy.frames.toServer).toEqual([
    {
      type: 'message',
      conversation_id: conversationId,
      body: 'look',
      message_type: 'file',
      file_url: file.file_url,
      client_id: expect.stringMatching(/^[0-9a-z]{20,40}$/),
    },
  ])
  expect(proxy.count('POST', chat.messagesPath)).toBe(0)
})

test('sends over REST when there is no channel', async () => {
  await using pair = await startPair()
  const { one, other, conversation } = pair
  const sent = await one.send(conversation.id, { body: 'hello' })
  expect((await other.messages.list(conversation.id)).data).toEqual([sent])
})

test('gets acknowledgements over the channel, without REST', async () => {
  await using chat = await startOpen()
  const bodies = ['1', '2', '3']
  const sent = await Promise.all(bodies.map(chat.send))
  expect(await chat.stored()).toEqual(sent)
  expect(sent.map(({ body }) => body)).toEqual(bodies)
  expect(chat.proxy.count('POST', chat.messagesPath)).toBe(0)
})

test('repeats an unacknowledged message over REST with the same key', async () => {
  await using chat = await startOpen()
  const { proxy, timers } = chat
  proxy.onNextFrame('toClient', 'ack', () => {})
  const sending = chat.send('hello')
  await waitFor(() => proxy.frames.toClient.some(({ type }) => type === 'ack'))
  timers.advance(10_000)
  expect([await sending]).toEqual(await chat.stored())
  const [asked] = proxy.requests.slice(-1)
  expect(asked?.body).toEqual({ body: 'hello', client_id: proxy.frames.toServer[0].client_id })
})

test('sends messages waiting for the network as soon as a channel is open', async () => {
  await using chat = await startChat()
  const { proxy, client, timers, conversationId } = chat
  proxy.onNext(chat.messagesPath, unavailable)
  const sending = client.send(conversationId, { body: 'hello' })
  await waitFor(() => timers.waiting().includes(500))
  void client.connect()
  expect((await sending).body).toBe('hello')
  expect(proxy.frames.toServer).toMatchObject([{ type: 'message' }])
})

test('that fails for weeks leaves nothing of its tries in memory', async () => {
  const timers = createTestTimers()
  const fail = () => Promise.reject(new NetworkError('offline'))
  const platform = { timers, random: () => 1 }
  const delivery = createDelivery(platform, { sendFrame: () => false, post: fail, reply: fail })
  const stop = new AbortController()
  const queued = { client_id: 'a', conversation_id: 'b', message: { body: 'hello' } }
  const sending = delivery.deliver(queued, stop.signal)
  async function countPromisesAfter(tries: number) {
    for (let n = 0; n < tries; n++) {
      await new Promise(setImmediate)
      timers.advance(longestPause)
    }
    Bun.gc(true)
    return heapStats().objectTypeCounts['Promise'] ?? 0
  }
  const before = await countPromisesAfter(20)
  expect((await countPromisesAfter(400)) - before).toBeLessThan(200)
  stop.abort(new Error('over'))
  expect(sending).rejects.toThrow('over')
})

test('keeps the order of a conversation through a lost connection, and stores each message once', async () => {
  await using chat = await startOpen()
  const { proxy, client, timers, messagesPath } = chat
  proxy.onNextFrame('toClient', 'ack', () => {
    proxy.onNext(messagesPath, unavailable)
    proxy.cut(1001)
  })
  const sent = Promise.all(['1', '2', '3'].map(chat.send))
  const waitingForRetry = () => timers.waiting().filter((pause) => pause === 500)
  await waitFor(() => waitingForRetry().length === 2) // the channel and the message
  expect(proxy.count('POST', messagesPath)).toBe(1)
  timers.advance(longestPause)
  expect((await sent).map(({ body }) => body)).toEqual(['1', '2', '3'])
  expect((await chat.stored()).map(({ body }) => body)).toEqual(['1', '2', '3'])
  expect(client.pending()).toEqual([])
})

test('stores a message once although the REST response was lost', async () => {
  await using chat = await startChat()
  const { proxy, client, timers, conversationId, messagesPath } = chat
  proxy.onNext(messagesPath, async (forward) => {
    await forward()
    return networkError()
  })
  const sending = client.send(conversationId, { body: 'hello' })
  await waitFor(() => timers.waiting().includes(500))
  expect(await chat.stored()).toMatchObject([{ body: 'hello' }])
  timers.advance(500)
  expect([await sending]).toEqual(await chat.stored())
  expect(proxy.count('POST', messagesPath)).toBe(2)
})

test('does not let one conversation wait for another', async () => {
  await using chat = await startOpen()
  const { proxy, client } = chat
  const carol = await chat.service.register('carol')
  const { id: stuckId } = await client.conversations.open(carol.id)
  proxy.onNextFrame('toServer', 'message', () => {})
  const stuck = client.send(stuckId, { body: '1' })
  expect((await chat.send('2')).body).toBe('2')
  expect(client.pending()).toMatchObject([{ conversation_id: stuckId, sent: expect.anything() }])
  chat.timers.advance(10_000)
  expect((await stuck).body).toBe('1')
})

test.each([
  ['rate_limited', { retry_after: 3 }, 3_000],
  ['rate_limited', {}, 500],
  ['internal_error', { retry_after: 1 }, 1_000],
  ['internal_error', {}, 500],
])('retries after %s %j', async (code, more, pause) => {
  await using chat = await startOpen()
  const { timers } = chat
  chat.refuseNext(code, more)
  const sending = chat.send('hello')
  await waitFor(() => timers.waiting().includes(pause))
  timers.advance(pause)
  expect((await sending).body).toBe('hello')
  const { toServer } = chat.proxy.frames
  expect(toServer).toHaveLength(2)
  expect(toServer[1]).toEqual(toServer[0])
})

test('gives up a message that repeatedly makes the service fail, and continues with the next', async () => {
  await using chat = await startOpen()
  const { timers } = chat
  for (let round = 0; round < 5; round++) chat.refuseNext('internal_error')
  const [poison, next] = [refusalOf(chat.send('1')), chat.send('2')]
  for (const pause of [500, 1_000, 2_000, 4_000]) {
    await waitFor(() => timers.waiting().includes(pause))
    timers.advance(pause)
  }
  expect(await poison).toMatchObject({ name: 'ApiError', code: 'internal_error' })
  expect((await next).body).toBe('2')
})

test('does not give up a message while the service asks for time', async () => {
  await using chat = await startOpen()
  const { timers } = chat
  for (let round = 0; round < 6; round++) chat.refuseNext('internal_error', { retry_after: 2 })
  const sending = chat.send('hello')
  for (let round = 0; round < 6; round++) {
    await waitFor(() => timers.waiting().includes(2_000))
    timers.advance(2_000)
  }
  expect((await sending).body).toBe('hello')
})

test('reports a refusal, drops the message and continues with the next', async () => {
  await using chat = await startOpen({ storage: pageStorage() })
  chat.refuseNext('forbidden')
  const [refused, next] = [refusalOf(chat.send('1')), chat.send('2')]
  expect(await refused).toMatchObject({ name: 'ApiError', code: 'forbidden', status: undefined })
  expect((await next).body).toBe('2')
  expect(chat.client.pending()).toEqual([])
})

test('reports a refusal that arrives over the channel', async () => {
  await using chat = await startOpen()
  expect(await refusalOf(chat.send(' '))).toMatchObject({
    name: 'ApiError',
    code: 'validation_error',
    details: { body: expect.any(String) },
  })
  expect(chat.proxy.count('POST', chat.messagesPath)).toBe(0)
})

test('sends messages queued by the previous page, in order and once', async () => {
  const storage = pageStorage()
  await using chat = await startChat({ storage })
  const { proxy, client, create, conversationId, messagesPath, user } = chat
  proxy.onNext(messagesPath, hang)
  const lost = ['1', '2'].map((body) => client.send(conversationId, { body }))
  await waitFor(() => proxy.count('POST', messagesPath) === 1)
  const reloaded = create()
  expect(reloaded.restore()).toEqual(user)
  expect(reloaded.restore()).toEqual(user)
  const pending = reloaded.pending()
  expect(pending.map((it) => it.conversation_id && it.message.body)).toEqual(['1', '2'])
  const sent = await Promise.all(pending.map((it) => it.sent))
  expect(sent).toEqual(await chat.stored())
  expect(proxy.count('POST', messagesPath)).toBe(3)
  const outboxKey = `outbox.${user.id}`
  expect([storage.get(outboxKey), reloaded.pending(), lost.length]).toEqual([undefined, [], 2])
})

test.each([undefined, 'guests'])(
  'keeps session and messages in an asynchronous storage, with the key %s',
  async (storageKey) => {
    const values = new Map<string, string>([['of another library', 'x']])
    const area = {
      getAllKeys: async () => [...values.keys()],
      getItem: async (key: string) => values.get(key) ?? null,
      setItem: async (key: string, value: string) => void values.set(key, value),
      removeItem: async (key: string) => void values.delete(key),
    }
    const page = async () => ({ storage: await asyncStorage(area), storageKey })
    await using chat = await startChat(await page())
    chat.proxy.control.isOffline = true
    void chat.client.send(chat.conversationId, { body: 'kept' }).catch(() => {})
    await waitFor(() => values.size === 3)
    chat.client.close()
    const reloaded = chat.create(await page())
    expect(reloaded.restore()?.id).toBe(chat.user.id)
    expect(reloaded.pending()).toMatchObject([{ message: { body: 'kept' } }])
  },
)

test('a service below a path is refused at once, with an example', () => {
  expect(() => createClient({ baseUrl: 'https://chat.example.com/v1' })).toThrow(
    'like https://chat.example.com, without a path',
  )
})

test('keeps messages for the same user’s next login, and sends none as another user', async () => {
  await using all = await startClients({ storage: pageStorage() })
  const { client, proxy } = all
  const users = [await client.register(bob), await client.register(ada)]
  const conversation = await client.conversations.open(users[0]?.id ?? '')
  const path = `/v1/chat/conversations/${conversation.id}/messages`
  proxy.control.isOffline = true
  const sending = refusalOf(client.send(conversation.id, { body: 'later' }))
  await waitFor(() => proxy.count('POST', path) === 1)
  proxy.control.isOffline = false
  await client.login(bob)
  expect(await sending).toMatchObject({ name: 'SessionEndedError' })
  expect(client.pending()).toEqual([])
  expect((await client.messages.list(conversation.id)).data).toEqual([])
  await client.login(ada)
  const [left] = await Promise.all(client.pending().map((it) => it.sent))
  expect(left).toMatchObject({ body: 'later', sender_id: users[1]?.id })
})

test.each(['toServer', 'toClient'] as const)(
  'sends nothing as the next user (lost %s)',
  async (direction) => {
    await using chat = await startOpen({ storage: pageStorage() })
    const { proxy, client, messagesPath } = chat
    const lost = Promise.withResolvers<unknown>()
    const type = direction === 'toServer' ? 'message' : 'ack'
    proxy.onNextFrame(direction, type, () => lost.resolve(undefined))
    const sending = refusalOf(chat.send('from Ada'))
    await lost.promise
    await client.login(bob)
    expect(await sending).toMatchObject({ name: 'SessionEndedError' })
    const senders = (await chat.stored()).map(({ sender_id }) => sender_id)
    expect(senders).toEqual(direction === 'toServer' ? [] : [chat.user.id])
    expect(proxy.count('POST', messagesPath)).toBe(0)
  },
)

test('sends nothing as the next user after waiting for Retry-After', async () => {
  await using chat = await startChat({ storage: pageStorage() })
  const { proxy, client, timers, conversationId, messagesPath } = chat
  proxy.onNext(messagesPath, () => refusal(429, 'rate_limited', { 'retry-after': '7' }))
  const sending = refusalOf(client.send(conversationId, { body: 'from Ada' }))
  await waitFor(() => timers.waiting().includes(7_000))
  await client.login(bob)
  timers.advance(7_000)
  expect(await sending).toMatchObject({ name: 'SessionEndedError' })
  expect(await chat.stored()).toEqual([])
  expect(proxy.count('POST', messagesPath)).toBe(1)
})

test('drops unsent messages on logout', async () => {
  const storage = pageStorage()
  await using chat = await startChat({ storage })
  const { proxy, client, messagesPath } = chat
  const outboxKey = `outbox.${chat.user.id}`
  proxy.onNext(messagesPath, unavailable)
  const sending = refusalOf(client.send(chat.conversationId, { body: 'secret' }))
  await waitFor(() => proxy.count('POST', messagesPath) === 1)
  expect(storage.get(outboxKey)).toContain('secret')
  await client.logout()
  expect(await sending).toMatchObject({ name: 'SessionEndedError' })
  expect(storage.get(outboxKey)).toBeUndefined()
})

test('works with a full storage', async () => {
  const full = () => {
    throw new Error('quota exceeded')
  }
  await using chat = await startChat({ storage: { get: () => null, set: full, remove: full } })
  const { client, user } = chat
  expect((await client.send(chat.conversationId, { body: 'hello' })).body).toBe('hello')
  chat.timers.advance(15 * 60_000)
  expect((await client.account.get()).id).toBe(user.id)
  expect([chat.proxy.count('POST', '/v1/auth/refresh'), chat.endings()]).toEqual([1, 0])
})

test('marks a busy conversation as read with few frames and no request', async () => {
  await using chat = await startChat()
  const { client, proxy, conversationId, service, friend } = chat
  await client.connect()
  const marks: Promise<void>[] = []
  client.on('new_message', ({ message }) => {
    marks.push(client.conversations.markRead(conversationId, message.id))
  })
  for (let n = 0; n < 150; n += 10) {
    await Promise.all(Array.from({ length: 10 }, () => service.say(friend, conversationId, 'x')))
  }
  await waitFor(() => marks.length === 150)
  chat.timers.advance(1_000)
  await Promise.all(marks)
  const reads = proxy.frames.toServer.filter(({ type }) => type === 'read')
  expect(reads.length).toBeLessThan(4)
  expect(proxy.count('PUT', `/v1/chat/conversations/${conversationId}/read`)).toBe(0)
  expect(await client.conversations.unreadCount()).toEqual({ count: 0 })
})

test('keeps read marks for the network, also across a reload', async () => {
  const storage = pageStorage()
  await using chat = await startChat({ storage })
  const { client, proxy, conversationId, create, user } = chat
  const message = await chat.say('read me')
  proxy.control.isOffline = true
  void client.conversations.markRead(conversationId, message.id).catch(() => {})
  expect(JSON.parse(storage.get(`reads.${user.id}`) ?? '')).toEqual({
    [conversationId]: message.id,
  })
  client.close()
  proxy.control.isOffline = false
  const reloaded = create()
  reloaded.restore()
  await waitFor(() => storage.get(`reads.${user.id}`) === undefined)
  expect(await reloaded.conversations.unreadCount()).toEqual({ count: 0 })
})

test('many conversations are marked one after another, and a mark that the channel refuses by a request', async () => {
  await using chat = await startChat()
  const { client, proxy, service, user } = chat
  const ids: string[] = []
  for (const name of ['carl', 'dora', 'emil']) {
    const sender = await service.register(name)
    const id = await service.openConversation(sender, user)
    await service.say(sender, id, 'hello')
    ids.push(id)
  }
  await client.connect()
  const reads = () => proxy.frames.toServer.filter(({ type }) => type === 'read').length
  const error = { code: 'rate_limited', message: 'Too many.', details: null }
  proxy.onNextFrame('toServer', 'read', (_, { type }) =>
    proxy.push({ type: 'error', error, request: { type }, retry_after: 1 }),
  )
  const marks = ids.map((id) => client.conversations.markRead(id))
  await marks[0]
  const rests = () => chat.timers.waiting().some((pause) => pause > 0 && pause <= 300)
  await waitFor(rests)
  expect([reads(), proxy.count('PUT', `/v1/chat/conversations/${ids[0]}/read`)]).toEqual([1, 1])
  for (const mark of marks.slice(1)) {
    await waitFor(rests)
    chat.timers.advance(300)
    await mark
  }
  expect(reads()).toBe(3)
  expect(await client.conversations.unreadCount()).toEqual({ count: 0 })
})

test('after a reload no mark covers what nobody has seen', async () => {
  const storage = pageStorage()
  await using chat = await startChat({ storage })
  const { client, proxy, conversationId, create } = chat
  await chat.say('seen')
  const thread = openThread(client, conversationId)
  await waitFor(() => thread.getSnapshot().items.length === 1)
  proxy.control.isOffline = true
  void thread.markRead().catch(() => {})
  void client.conversations.markRead(conversationId).catch(() => {})
  thread.close()
  client.close()
  for (const body of ['unseen', 'too']) await chat.say(body)
  proxy.control.isOffline = false
  const reloaded = create()
  reloaded.restore()
  await waitFor(() => storage.get(`reads.${chat.user.id}`) === undefined)
  expect(await reloaded.conversations.unreadCount()).toEqual({ count: 2 })
})

test('the mark of another tab does not replace a further one that waits', async () => {
  const storage = pageStorage()
  await using chat = await startChat({ storage })
  const { client, proxy, conversationId, create, user } = chat
  const [first, second] = [await chat.say('first'), await chat.say('second')]
  const other = create()
  other.restore()
  const stored = () => JSON.parse(storage.get(`reads.${user.id}`) ?? '{}')[conversationId]
  // The tab is closed before its mark is through.
  proxy.onNext(`/v1/chat/conversations/${conversationId}/read`, hang)
  void client.conversations.markRead(conversationId, second.id).catch(() => {})
  await waitFor(() => proxy.count('PUT', `/v1/chat/conversations/${conversationId}/read`) === 1)
  await other.conversations.markRead(conversationId, first.id)
  expect(stored()).toBe(second.id)
  client.close()
  const reloaded = create()
  reloaded.restore()
  await waitFor(() => stored() === undefined)
  expect(await reloaded.conversations.unreadCount()).toEqual({ count: 0 })
})

test('a refused mark is reported, and not tried again', async () => {
  await using chat = await startChat()
  const mark = chat.client.conversations.markRead('01ARZ3NDEKTSV4RRFFQ69G5FAV')
  expect(await refusalOf(mark)).toMatchObject({ name: 'ApiError', code: 'not_found' })
})

test('uploads a file once there is a network, and sends it in order, with an event for each change', async () => {
  await using chat = await startChat()
  const { client, proxy, conversationId } = chat
  const waiting: number[] = []
  client.on('outbox', ({ pending }) => waiting.push(pending.length))
  proxy.control.isOffline = true
  const file = client.sendFile(conversationId, new Blob(['plan']), {
    name: 'plan.txt',
    body: 'Here',
  })
  const text = client.send(conversationId, { body: 'after it' })
  await waitFor(() => proxy.count('POST', '/v1/files') === 1)
  await waitFor(() => chat.timers.waiting().includes(500))
  expect(client.pending().map((it) => it.conversation_id && it.message.file_name)).toEqual([
    'plan.txt',
    undefined,
  ])
  proxy.control.isOffline = false
  client.check()
  await client.connect()
  expect(await file).toMatchObject({
    type: 'file',
    body: 'Here',
    file_name: 'plan.txt',
    file_size: 4,
  })
  expect(await text).toMatchObject({ body: 'after it' })
  expect((await chat.stored()).map(({ body }) => body)).toEqual(['Here', 'after it'])
  await waitFor(() => waiting.length === 4)
  expect(waiting).toEqual([1, 2, 1, 0])
})

test('uploads a refused file again, and sends it with a new key', async () => {
  await using chat = await startChat()
  const { client, proxy, conversationId } = chat
  const refused = Promise.withResolvers<ClientEvents['message_refused']>()
  client.once('message_refused', refused.resolve)
  proxy.onNext('/v1/files', () => refusal(403, 'forbidden'))
  const bytes = new Blob(['plan'])
  expect(await refusalOf(client.sendFile(conversationId, bytes))).toMatchObject({
    code: 'forbidden',
  })
  const { queued, retry } = await refused.promise
  const sending = retry()
  expect(client.pending()[0]?.client_id).not.toBe(queued.client_id)
  expect(await sending).toMatchObject({ type: 'file', file_size: 4 })
})

test('refuses a file that is gone, and sends the next message', async () => {
  await using chat = await startChat()
  const { client, proxy, conversationId } = chat
  const gone = Object.assign(new Blob(['plan']), {
    slice: () => gone,
    arrayBuffer: () => Promise.reject(new DOMException('gone', 'NotFoundError')),
  })
  proxy.onNext('/v1/files', networkError)
  const file = client.sendFile(conversationId, gone)
  const text = client.send(conversationId, { body: 'after it' })
  expect(await refusalOf(file)).toMatchObject({ name: 'NotFoundError' })
  expect(await text).toMatchObject({ body: 'after it' })
})

test('drops a message whose signal is aborted, and sends the next', async () => {
  await using chat = await startChat()
  const { client, proxy, conversationId, messagesPath } = chat
  proxy.onNext(messagesPath, hang)
  const controller = new AbortController()
  const unwanted = client.send(conversationId, { body: 'no' }, { signal: controller.signal })
  const wanted = client.send(conversationId, { body: 'yes' })
  await waitFor(() => proxy.count('POST', messagesPath) === 1)
  controller.abort('changed my mind')
  expect(await refusalOf(unwanted)).toMatchObject({ name: 'AbortError', cause: 'changed my mind' })
  expect(await wanted).toMatchObject({ body: 'yes' })
  expect((await chat.stored()).map(({ body }) => body)).toEqual(['yes'])
})

test('sends a reply to a ticket once, also after a reload', async () => {
  const storage = pageStorage()
  await using chat = await startChat({ storage })
  const { client, proxy, create } = chat
  const ticket = await client.tickets.create({ subject: 'Help', body: 'It is broken.' })
  const path = `/v1/support/tickets/${ticket.id}/messages`
  proxy.onNext(path, async (forward) => {
    await forward()
    return hang()
  })
  void client.reply(ticket.id, { body: 'Still broken.' }).catch(() => {})
  await waitFor(() => proxy.count('POST', path) === 1)
  client.close()
  const reloaded = create()
  reloaded.restore()
  const [reply] = reloaded.pending()
  expect(await reply?.sent).toMatchObject({ body: 'Still broken.', is_admin: false })
  const { messages } = await reloaded.tickets.get(ticket.id)
  expect(messages.map(({ body }) => body)).toEqual(['It is broken.', 'Still broken.'])
  expect(reloaded.pending()).toEqual([])
})

test('gives up a message that JSON cannot hold', async () => {
  await using chat = await startChat()
  const body = 10n as unknown as string
  const sent = chat.client.send(chat.conversationId, { body })
  expect(await refusalOf(sent)).toBeInstanceOf(TypeError)
})
