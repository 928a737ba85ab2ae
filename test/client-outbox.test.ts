import { expect, test } from 'bun:test'
import { memoryStorage } from '../client/client.ts'
import { refusal } from './support/chat-stand-in.ts'
import { ada, bob, refusalOf, startLoggedIn, startPair, startReal } from './support/clients.ts'
import { until } from './support/timers.ts'

const outboxKey = 'hostline.outbox.U1'
const longestPause = 30_000
const offline = () => refusal(503, 'internal_error')

/** Somebody with an open channel to the stand-in. */
async function startOpen(options: Parameters<typeof startLoggedIn>[0] = {}) {
  const chat = await startLoggedIn(options)
  const channel = chat.client.connect()
  await until(() => channel.status() === 'open')
  return { ...chat, channel }
}

const errorFrame = (code: string, client_id: string, more: object = {}) => ({
  type: 'error',
  error: { code, message: code, details: null },
  request: { type: 'message', client_id },
  ...more,
})

test('sends over the open channel and settles with the stored message', async () => {
  await using chat = await startOpen()
  const file = { type: 'file', file_url: 'https://example.com/a.png' } as const
  const message = await chat.client.send('c', { body: 'look', ...file })
  expect(message).toEqual(chat.standIn.messages[0] as never)
  expect(chat.standIn.frames).toEqual([
    {
      type: 'message',
      conversation_id: 'c',
      body: 'look',
      message_type: 'file',
      file_url: file.file_url,
      client_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    },
  ])
  expect(chat.standIn.count('POST', '/v1/chat/conversations/c/messages')).toBe(0)
})

test('sends over REST when there is no channel', async () => {
  await using pair = await startPair()
  const { one, other, conversation } = pair
  const sent = await one.send(conversation.id, { body: 'hello' })
  expect((await other.messages.list(conversation.id)).data).toEqual([sent])
})

test('has its messages acknowledged by the service, over the channel alone', async () => {
  await using pair = await startPair()
  const { one, other, conversation, network } = pair
  const channel = one.connect()
  await until(() => channel.status() === 'open')
  const bodies = ['1', '2', '3']
  const sent = await Promise.all(bodies.map((body) => one.send(conversation.id, { body })))
  expect((await other.messages.list(conversation.id)).data).toEqual(sent.toReversed())
  expect(sent.map(({ body }) => body)).toEqual(bodies)
  expect(network.count(`POST /v1/chat/conversations/${conversation.id}/messages`)).toBe(0)
})

test('sends over REST, as the same message, what nobody acknowledges over the channel', async () => {
  await using chat = await startOpen()
  const { standIn, client, timers } = chat
  standIn.control.acknowledges = false
  const sending = client.send('c', { body: 'hello' })
  await until(() => standIn.messages.length === 1)
  timers.advance(10_000)
  expect([await sending]).toEqual(standIn.messages)
  const [asked] = standIn.requests.slice(-1)
  expect(asked?.body).toEqual({ body: 'hello', client_id: standIn.frames[0].client_id })
})

test('sends what waits for the network as soon as a channel is open', async () => {
  await using chat = await startLoggedIn()
  const { standIn, client, timers } = chat
  standIn.failNext('/v1/chat/conversations/c/messages', offline)
  const sending = client.send('c', { body: 'hello' })
  await until(() => timers.waiting().includes(500))
  client.connect()
  expect((await sending).body).toBe('hello')
  expect(standIn.frames).toMatchObject([{ type: 'message' }])
})

test('keeps the order of a conversation through a lost connection, and stores each message once', async () => {
  await using chat = await startOpen()
  const { standIn, client, timers, channel } = chat
  const path = '/v1/chat/conversations/c/messages'
  standIn.failNextFrame((frame, socket) => {
    standIn.failNext(path, offline)
    standIn.store(frame.conversation_id, frame.body, frame.client_id)
    socket.close(1001)
  })
  const sent = Promise.all(['1', '2', '3'].map((body) => client.send('c', { body })))
  await until(() => standIn.count('POST', path) === 1)
  await until(() => channel.status() === 'waiting')
  timers.advance(longestPause)
  expect((await sent).map(({ body }) => body)).toEqual(['1', '2', '3'])
  expect(standIn.messages.map(({ body }) => body)).toEqual(['1', '2', '3'])
  expect(client.pending()).toEqual([])
})

test('does not let one conversation wait for another', async () => {
  await using chat = await startOpen()
  chat.standIn.failNextFrame(() => {})
  const stuck = chat.client.send('stuck', { body: '1' })
  expect((await chat.client.send('c', { body: '2' })).body).toBe('2')
  expect(chat.client.pending()).toMatchObject([
    { conversation_id: 'stuck', sent: expect.anything() },
  ])
  chat.timers.advance(10_000)
  expect((await stuck).body).toBe('1')
})

test.each([
  ['rate_limited', { retry_after: 3 }, 3_000],
  ['internal_error', { retry_after: 1 }, 1_000],
  ['internal_error', {}, 500],
])('tries again after %s %j', async (code, more, pause) => {
  await using chat = await startOpen()
  const { standIn, client, timers } = chat
  standIn.failNextFrame((frame) => standIn.push(errorFrame(code, frame.client_id, more)))
  const sending = client.send('c', { body: 'hello' })
  await until(() => timers.waiting().includes(pause))
  timers.advance(pause)
  expect((await sending).body).toBe('hello')
  const [first, second] = standIn.frames
  expect(second).toEqual(first)
})

test('gives up on a message that makes the service fail again and again, and goes on', async () => {
  await using chat = await startOpen()
  const { standIn, client, timers } = chat
  for (let round = 0; round < 5; round++) {
    standIn.failNextFrame(({ client_id }) => standIn.push(errorFrame('internal_error', client_id)))
  }
  const [poison, next] = [
    refusalOf(client.send('c', { body: '1' })),
    client.send('c', { body: '2' }),
  ]
  for (const pause of [500, 1_000, 2_000, 4_000]) {
    await until(() => timers.waiting().includes(pause))
    timers.advance(pause)
  }
  expect(await poison).toMatchObject({ name: 'ApiError', code: 'internal_error' })
  expect((await next).body).toBe('2')
})

test('tells a refusal, drops the message and goes on with the next', async () => {
  await using chat = await startOpen({ storage: memoryStorage() })
  const { standIn, client } = chat
  standIn.failNextFrame((frame) => standIn.push(errorFrame('forbidden', frame.client_id)))
  const [refused, next] = [
    refusalOf(client.send('c', { body: '1' })),
    client.send('c', { body: '2' }),
  ]
  expect(await refused).toMatchObject({ name: 'ApiError', code: 'forbidden', status: undefined })
  expect((await next).body).toBe('2')
  expect(client.pending()).toEqual([])
})

test('sends after a reload what the page before did not get through, in order and once', async () => {
  const storage = memoryStorage()
  await using chat = await startLoggedIn({ storage })
  const { standIn, client, create } = chat
  standIn.failNext('/v1/chat/conversations/c/messages', () => new Promise(() => {}))
  const lost = [client.send('c', { body: '1' }), client.send('c', { body: '2' })]
  await until(() => standIn.count('POST', '/v1/chat/conversations/c/messages') === 1)
  const reloaded = create()
  expect(reloaded.restore()).toEqual(reloaded.restore())
  const pending = reloaded.pending()
  expect(pending.map(({ message }) => message.body)).toEqual(['1', '2'])
  const sent = await Promise.all(pending.map((it) => it.sent))
  expect(sent).toEqual(standIn.messages)
  expect(standIn.count('POST', '/v1/chat/conversations/c/messages')).toBe(3)
  expect([storage.get(outboxKey), reloaded.pending(), lost.length]).toEqual([undefined, [], 2])
})

test('keeps messages for the next login of the same person, and sends none for another', async () => {
  await using real = await startReal({ storage: memoryStorage() })
  const { client, network } = real
  const users = [await client.register(bob), await client.register(ada)]
  const conversation = await client.conversations.open(users[0]?.id ?? '')
  network.control.isOffline = true
  const sending = refusalOf(client.send(conversation.id, { body: 'later' }))
  await until(() => network.count(`POST /v1/chat/conversations/${conversation.id}/messages`) === 1)
  network.control.isOffline = false
  await client.login(bob)
  expect(await sending).toMatchObject({ name: 'SessionEndedError' })
  expect(client.pending()).toEqual([])
  await client.login(ada)
  const [left] = await Promise.all(client.pending().map((it) => it.sent))
  expect(left).toMatchObject({ body: 'later', sender_id: users[1]?.id })
})

test('forgets unsent messages with a logout', async () => {
  const storage = memoryStorage()
  await using chat = await startLoggedIn({ storage })
  const { standIn, client } = chat
  standIn.failNext('/v1/chat/conversations/c/messages', offline)
  const sending = refusalOf(client.send('c', { body: 'secret' }))
  await until(() => standIn.count('POST', '/v1/chat/conversations/c/messages') === 1)
  expect(storage.get(outboxKey)).toContain('secret')
  await client.logout()
  expect(await sending).toMatchObject({ name: 'SessionEndedError' })
  expect(storage.get(outboxKey)).toBeUndefined()
})

test('works with a storage that is full', async () => {
  const full = () => {
    throw new Error('quota exceeded')
  }
  await using chat = await startLoggedIn({ storage: { get: () => null, set: full, remove: full } })
  expect((await chat.client.send('c', { body: 'hello' })).body).toBe('hello')
  chat.timers.advance(15 * 60_000)
  expect((await chat.client.me()).id).toBe('U1')
  expect([chat.standIn.count('POST', '/v1/auth/refresh'), chat.endings()]).toEqual([1, 0])
})
