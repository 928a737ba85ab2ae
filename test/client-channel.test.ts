import { describe, expect, test } from 'bun:test'
import { type Client, type ClientEvents, ClosedError } from '../client/src/client.ts'
import { closeCodes } from '../src/realtime/hub.ts'
import {
  ada,
  bob,
  clientsOfFile,
  pageStorage,
  refusalOf,
  storedSession,
} from './support/clients.ts'
import { hang, refusal } from './support/fault-proxy.ts'
import type { TestService } from './support/service.ts'
import { createTestTimers } from './support/timers.ts'
import { waitFor, waitOut } from './support/wait.ts'

const { startChat, startPair } = clientsOfFile()

const expiry = 15 * 60_000
const longestPause = 30_000

async function openChannel(client: Client, options: Parameters<Client['connect']>[0] = {}) {
  await client.connect(options)
  return client
}

function collect<Name extends keyof ClientEvents>(client: Client, name: Name) {
  const heard: ClientEvents[Name][] = []
  client.on(name, (event) => heard.push(event))
  return heard
}

function bodiesOf(client: Client) {
  const bodies: string[] = []
  client.on('new_message', ({ message }) => bodies.push(message.body))
  return bodies
}

describe('a channel to the service', () => {
  test('carries messages, typing and read receipts', async () => {
    await using pair = await startPair()
    const { one, other, conversation, users } = pair
    const [left, right] = [await openChannel(one), await openChannel(other)]
    const [messages, typing] = [collect(right, 'new_message'), collect(right, 'typing')]
    const receipts = collect(left, 'read_receipt')
    const message = await one.messages.send(conversation.id, { body: 'hello' })
    left.typing(conversation.id)
    await waitFor(() => messages.length + typing.length === 2)
    await right.conversations.markRead(conversation.id)
    await waitFor(() => receipts.length === 1)
    expect(messages).toEqual([{ type: 'new_message', message }])
    const conversation_id = conversation.id
    expect(typing).toEqual([{ type: 'typing', conversation_id, user_id: users.one.id }])
    expect(receipts).toEqual([{ type: 'read_receipt', conversation_id, user_id: users.other.id }])
  })

  test('outlives the expiry of its token', async () => {
    await using pair = await startPair()
    const { one, other, conversation } = pair
    pair.advance(expiry - 80_000)
    const channel = await openChannel(other)
    const [bodies, statuses] = [bodiesOf(channel), collect(channel, 'status')]
    const isRenewed = () => pair.timers.waiting().some((pause) => pause > expiry / 2)
    const pongs = () => pair.proxy.frames.toClient.filter(({ type }) => type === 'pong').length
    for (let beat = 1; beat <= 24; beat++) {
      // One more: until its pong the limit of a ping is not 5,000 ms away, as the next beat is.
      pair.advance(5_001)
      await waitFor(() => pongs() === beat && pair.timers.waiting().includes(5_000))
      // Now it is due, a minute before the end: the beats do not overtake its response.
      if (beat === 4) await waitFor(isRenewed)
    }
    expect(pair.proxy.count('POST', '/v1/auth/refresh')).toBe(1)
    await one.messages.send(conversation.id, { body: 'late' })
    await waitFor(() => bodies.length === 1)
    expect([channel.status(), statuses]).toEqual(['open', []])
  })

  test.each([
    ['the server stops', closeCodes.goingAway],
    ['the token expired', closeCodes.tokenExpired],
    ['it flooded', closeCodes.tooManyFrames],
  ])('reconnects when %s', async (_, code) => {
    await using pair = await startPair()
    const { one, other, conversation } = pair
    const channel = await openChannel(other)
    const [bodies, statuses] = [bodiesOf(channel), collect(channel, 'status')]
    pair.service.hub.closeAll(code)
    await waitFor(() => channel.status() === 'waiting')
    pair.timers.advance(longestPause)
    await waitFor(() => channel.status() === 'open')
    await one.messages.send(conversation.id, { body: 'again' })
    await waitFor(() => bodies.length === 1)
    expect(statuses).toEqual([
      { status: 'waiting', code },
      { status: 'connecting' },
      { status: 'open' },
    ])
  })

  test('misses and duplicates nothing, and other devices get read events', async () => {
    await using pair = await startPair()
    const { one, other, conversation } = pair
    const say = (body: string) => one.messages.send(conversation.id, { body })
    await say('known')
    const channel = await openChannel(other)
    const [bodies, read] = [bodiesOf(channel), collect(channel, 'conversation_read')]
    pair.service.hub.closeAll(closeCodes.goingAway)
    await waitFor(() => channel.status() === 'waiting')
    for (const body of ['1', '2', '3']) await say(body)
    pair.timers.advance(longestPause)
    await waitFor(() => channel.status() === 'open')
    await say('4')
    await waitFor(() => bodies.includes('4'))
    const second = pair.create()
    await second.login(bob)
    await second.conversations.markRead(conversation.id)
    await waitFor(() => read.length === 1)
    expect(bodies).toEqual(['1', '2', '3', '4'])
  })

  test('ends with the session when access is revoked', async () => {
    await using pair = await startPair()
    const channel = await openChannel(pair.other)
    await pair.endSessionsOf(bob)
    await waitFor(() => channel.status() === 'waiting')
    pair.timers.advance(longestPause)
    await waitFor(() => channel.status() === 'closed')
    expect(pair.endings()).toBe(1)
  })
})

describe('a channel', () => {
  test('keeps its token out of URLs, and requests all event groups', async () => {
    const storage = pageStorage()
    await using chat = await startChat({ storage })
    await openChannel(chat.client)
    expect(chat.proxy.upgrades).toEqual([
      {
        path: '/v1/chat/ws',
        query: { events: 'ready,ack,read,changes,notification,support' },
        protocols: expect.stringMatching(/^hostline\.v1, ?bearer\.[^ ,]+$/),
      },
    ])
    expect(chat.proxy.upgrades[0]?.protocols).toEndWith(storedSession(storage).accessToken)
  })

  test('delivers missed messages in order and once', async () => {
    await using chat = await startChat()
    const channel = await openChannel(chat.client)
    const bodies = bodiesOf(channel)
    await chat.say('1')
    await waitFor(() => bodies.length === 1)
    chat.proxy.cut(closeCodes.goingAway)
    await waitFor(() => channel.status() === 'waiting')
    await chat.say('2')
    await chat.say('3')
    chat.timers.advance(longestPause)
    await waitFor(() => chat.proxy.frames.toClient.length === 3)
    for (const frame of chat.proxy.frames.toClient) chat.proxy.push(frame)
    chat.proxy.onNextFrame('toClient', 'new_message', (forward) => {
      forward()
      forward()
    })
    await chat.say('4')
    await chat.say('5')
    await waitFor(() => bodies.includes('5'))
    expect(bodies).toEqual(['1', '2', '3', '4', '5'])
  })

  test('misses nothing even when it is cut off before its first message', async () => {
    await using chat = await startChat()
    await chat.say('known')
    const channel = await openChannel(chat.client)
    const bodies = bodiesOf(channel)
    chat.proxy.cut(closeCodes.goingAway)
    await waitFor(() => channel.status() === 'waiting')
    await chat.say('missed')
    chat.timers.advance(longestPause)
    await waitFor(() => bodies.length > 0)
    expect(bodies).toEqual(['missed'])
  })

  test('starts after the message named by the page', async () => {
    await using chat = await startChat()
    const [first, second] = [await chat.say('1'), await chat.say('2')]
    const channel = chat.client
    const bodies = bodiesOf(channel)
    void channel.connect({ since: first.id })
    await waitFor(() => bodies.length === 1)
    expect([bodies, channel.newestMessageId()]).toEqual([['2'], second.id])
  })

  test.each([4400, 4409])('stays closed after %i', async (code) => {
    await using chat = await startChat()
    const channel = await openChannel(chat.client)
    const statuses = collect(channel, 'status')
    chat.proxy.cut(code)
    await waitFor(() => channel.status() === 'closed')
    chat.timers.advance(expiry)
    expect(statuses).toEqual([{ status: 'closed', code }])
    expect(chat.timers.waiting()).toEqual([])
  })

  test.each([
    [4401, 1, 0],
    [4403, 1, 0],
    [4429, 0, 10_000],
    [1009, 0, 0],
    [1006, 0, 0],
  ])(
    'after %i renews its token %i times and waits at least %i ms',
    async (code, renewals, floor) => {
      const storage = pageStorage()
      await using chat = await startChat({ storage })
      const { accessToken: first } = storedSession(storage)
      const channel = await openChannel(chat.client)
      chat.proxy.cut(code)
      await waitFor(() => channel.status() === 'waiting')
      expect(chat.timers.waiting()).toEqual([floor + 500])
      chat.timers.advance(floor + 500)
      await waitFor(() => channel.status() === 'open')
      expect(chat.proxy.count('POST', '/v1/auth/refresh')).toBe(renewals)
      const { accessToken } = storedSession(storage)
      expect(accessToken !== first).toBe(renewals === 1)
      expect(chat.proxy.upgrades).toHaveLength(2)
      expect(chat.proxy.upgrades.at(-1)?.protocols).toEndWith(`bearer.${accessToken}`)
    },
  )

  test('backs off between tries, and retries at once when the network is back', async () => {
    await using chat = await startChat()
    const channel = await openChannel(chat.client)
    chat.proxy.control.refusesUpgrades = true
    chat.proxy.cut(closeCodes.goingAway)
    const pauses: (number | undefined)[] = []
    for (let round = 0; round < 7; round++) {
      await waitFor(() => channel.status() === 'waiting')
      const [pause = 0] = chat.timers.waiting()
      pauses.push(pause)
      chat.timers.advance(pause)
    }
    expect(pauses).toEqual([500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000])
    await waitFor(() => channel.status() === 'waiting')
    chat.proxy.control.refusesUpgrades = false
    chat.network.dispatchEvent(new Event('online'))
    await waitFor(() => channel.status() === 'open')
    chat.timers.advance(10_000)
    chat.proxy.cut(closeCodes.goingAway)
    await waitFor(() => channel.status() === 'waiting')
    expect(chat.timers.waiting()).toEqual([500])
  })

  test('backs off, too, when its connections do not last', async () => {
    await using chat = await startChat()
    const channel = await openChannel(chat.client)
    const pauses: (number | undefined)[] = []
    for (let round = 0; round < 3; round++) {
      chat.proxy.cut(closeCodes.goingAway)
      await waitFor(() => channel.status() === 'waiting')
      const [pause = 0] = chat.timers.waiting()
      pauses.push(pause)
      chat.timers.advance(pause)
      await waitFor(() => channel.status() === 'open')
    }
    expect(pauses).toEqual([500, 1_000, 2_000])
  })

  test('opens no connection after it was closed', async () => {
    await using chat = await startChat()
    chat.advance(expiry)
    const asked = Promise.withResolvers<() => void>()
    chat.proxy.onNext('/v1/auth/refresh', async (forward) => {
      await new Promise<void>((resolve) => asked.resolve(resolve))
      return forward()
    })
    const connected = refusalOf(chat.client.connect())
    const answer = await asked.promise
    chat.client.disconnect()
    answer()
    expect(await connected).toBeInstanceOf(ClosedError)
    await openChannel(chat.client)
    expect(chat.proxy.upgrades).toHaveLength(1)
  })

  test('checks its connection when the network has changed', async () => {
    await using chat = await startChat()
    await openChannel(chat.client)
    chat.network.dispatchEvent(new Event('online'))
    await waitFor(() => chat.proxy.frames.toClient.length === 1)
    expect(chat.proxy.frames).toEqual({
      toServer: [{ type: 'ping' }],
      toClient: [{ type: 'pong' }],
    })
  })

  test('gives up a connection that does not open in time', async () => {
    await using chat = await startChat()
    chat.proxy.onNext('/v1/chat/ws', hang)
    const channel = chat.client
    void channel.connect()
    await waitFor(() => chat.proxy.upgrades.length === 1)
    chat.timers.advance(10_000)
    expect(channel.status()).toBe('waiting')
    channel.disconnect()
    expect([channel.status(), chat.timers.waiting()]).toEqual(['closed', []])
  })

  test('opens without any request, knowing its position and what is unread', async () => {
    await using chat = await startChat()
    const newest = await chat.say('unread')
    const [counts, ready] = [
      collect(chat.client, 'unread_notifications'),
      collect(chat.client, 'ready'),
    ]
    await notify(chat.service, chat.user.id)
    const before = chat.proxy.requests.length
    await openChannel(chat.client)
    expect(chat.proxy.requests).toHaveLength(before)
    expect(chat.client.newestMessageId()).toBe(newest.id)
    expect([counts, ready]).toEqual([
      [{ count: 1 }],
      [{ type: 'ready', newest_message_id: newest.id, unread: { messages: 1, notifications: 1 } }],
    ])
    await chat.client.conversations.archive(chat.conversationId)
    const elsewhere = await chat.service.login(chat.user.email)
    const socket = await chat.service.connect(elsewhere, '&events=ready')
    expect(await socket.next('ready')).toMatchObject({
      newest_message_id: newest.id,
      unread: { messages: 0 },
    })
    socket.close()
  })

  test('goes on after a resync from the position that it names', async () => {
    await using chat = await startChat()
    const channel = await openChannel(chat.client)
    const [bodies, resyncs] = [bodiesOf(channel), collect(channel, 'resync')]
    chat.proxy.onNextFrame('toClient', 'new_message', () => {})
    const missed = await chat.say('missed')
    chat.proxy.push({ type: 'resync', newest_message_id: missed.id })
    await waitFor(() => resyncs.length === 1)
    expect([bodies, channel.newestMessageId()]).toEqual([[], missed.id])
    chat.proxy.cut(closeCodes.goingAway)
    await waitFor(() => channel.status() === 'waiting')
    await chat.say('next')
    chat.timers.advance(longestPause)
    await waitFor(() => bodies.length === 1)
    expect([bodies, resyncs.length]).toEqual([['next'], 1])
  })

  test('goes back to the position of a resync, and delivers what is after it', async () => {
    await using chat = await startChat()
    const channel = await openChannel(chat.client)
    const [bodies, resyncs] = [bodiesOf(channel), collect(channel, 'resync')]
    const { id } = await chat.say('undone')
    await waitFor(() => bodies.length === 1)
    chat.proxy.push({ type: 'resync', newest_message_id: '0'.repeat(26) })
    await waitFor(() => resyncs.length === 1)
    expect(channel.newestMessageId()).toBe('0'.repeat(26))
    chat.proxy.cut(closeCodes.goingAway)
    await waitFor(() => channel.status() === 'waiting')
    chat.timers.advance(longestPause)
    await waitFor(() => bodies.length === 2)
    expect([bodies, channel.newestMessageId()]).toEqual([['undone', 'undone'], id])
  })

  test('opens one connection, however often connect is called', async () => {
    await using chat = await startChat()
    await Promise.all([chat.client.connect(), chat.client.connect()])
    await chat.client.connect()
    expect(chat.proxy.upgrades).toHaveLength(1)
  })

  test('checks the session after a refusal, and ends with it', async () => {
    await using chat = await startChat()
    const channel = await openChannel(chat.client)
    chat.proxy.control.refusesUpgrades = true
    chat.proxy.cut(closeCodes.goingAway)
    await waitFor(() => channel.status() === 'waiting')
    chat.timers.advance(500)
    await waitFor(() => channel.status() === 'waiting')
    await chat.endSessionsOf(ada)
    chat.timers.advance(1_000)
    await waitFor(() => channel.status() === 'closed')
    expect([chat.endings(), chat.client.user()]).toEqual([1, undefined])
  })

  test('detects a server that vanished without a close', async () => {
    await using chat = await startChat()
    const channel = await openChannel(chat.client)
    const statuses = collect(channel, 'status')
    const { toServer } = chat.proxy.frames
    chat.timers.advance(5_001)
    await waitFor(() => toServer.length === 1)
    await waitFor(() => chat.proxy.frames.toClient.length === 1)
    await waitFor(() => chat.timers.waiting().filter((pause) => pause === 5_000).length === 1)
    chat.proxy.onNextFrame('toClient', 'pong', () => {})
    chat.timers.advance(5_000)
    await waitFor(() => toServer.length === 2)
    expect(statuses).toEqual([])
    chat.timers.advance(5_000)
    expect(statuses).toEqual([{ status: 'waiting', code: 1006 }])
    expect(toServer).toEqual([{ type: 'ping' }, { type: 'ping' }])
  })

  test('waits ten seconds for the answer to a mark, as the service may for its bucket', async () => {
    await using chat = await startChat()
    const { client, conversationId, proxy, timers } = chat
    const { id } = await chat.say('hello')
    const channel = await openChannel(client)
    const pong = Promise.withResolvers<() => void>()
    proxy.onNextFrame('toClient', 'pong', pong.resolve)
    const marking = client.conversations.markRead(conversationId, id)
    const forward = await pong.promise
    timers.advance(9_999)
    expect(channel.status()).toBe('open')
    forward()
    await marking
    expect(proxy.count('PUT', `/v1/chat/conversations/${conversationId}/read`)).toBe(0)
  })

  test('tries again after a connection died while two checks waited for it', async () => {
    await using chat = await startChat()
    const channel = await openChannel(chat.client)
    chat.proxy.onNextFrame('toClient', 'pong', () => {})
    channel.check()
    channel.check()
    chat.timers.advance(5_000)
    // A check that waits for ever in microtasks would let no timer run.
    await waitOut(0)
    expect(channel.status()).toBe('waiting')
    chat.timers.advance(longestPause)
    await waitFor(() => channel.status() === 'open')
  })

  test('stays open when the service refuses a ping: it works', async () => {
    await using chat = await startChat()
    const channel = await openChannel(chat.client)
    const error = { code: 'rate_limited', message: 'Too many.', details: null }
    chat.proxy.onNextFrame('toServer', 'ping', (_, { type }) =>
      chat.proxy.push({ type: 'error', error, request: { type }, retry_after: 1 }),
    )
    const refused = collect(channel, 'error')
    channel.check()
    await waitFor(() => refused.length === 1)
    chat.timers.advance(4_999)
    await waitFor(() => chat.proxy.frames.toServer.length === 1)
    chat.timers.advance(1)
    await waitFor(() => chat.proxy.frames.toServer.length === 2)
    expect(channel.status()).toBe('open')
  })

  test('sends one frame in two seconds, however many keys are pressed', async () => {
    await using chat = await startChat()
    const channel = await openChannel(chat.client)
    const typed = () => chat.proxy.frames.toServer.filter(({ type }) => type === 'typing').length
    const press = () => {
      for (let key = 0; key < 30; key++) expect(channel.typing(chat.conversationId)).toBe(true)
    }
    press()
    chat.timers.advance(1_999)
    press()
    await waitFor(() => typed() === 1)
    chat.timers.advance(1)
    press()
    await waitFor(() => typed() === 2)
    chat.timers.advance(-3_600_000) // somebody sets the clock right
    press()
    await waitFor(() => typed() === 3)
  })

  test('calls a handler of once no more after off', async () => {
    await using chat = await startChat()
    const called: string[] = []
    const handler = () => called.push('status')
    chat.client.once('status', handler)
    chat.client.off('status', handler)
    chat.client.once('status', () => called.push('once'))
    await chat.client.connect()
    expect(called).toEqual(['once'])
  })

  test('pings seldom while its page is hidden, and at once when it is shown', async () => {
    let isHidden = true
    await using chat = await startChat({ isHidden: () => isHidden })
    await openChannel(chat.client)
    const { toServer } = chat.proxy.frames
    chat.timers.advance(29_000)
    expect(toServer).toEqual([])
    isHidden = false
    chat.network.dispatchEvent(new Event('visibilitychange'))
    await waitFor(() => toServer.length === 1)
    expect(toServer).toEqual([{ type: 'ping' }])
  })

  test('tries again after an error without a close, which is how Node 22 reports a refused socket', async () => {
    class NodeSocket extends WebSocket {
      constructor(url: string, protocols: string[] = []) {
        super(url, protocols)
        Object.defineProperty(this, 'onclose', { writable: true })
      }
    }
    await using chat = await startChat({ WebSocket: NodeSocket })
    chat.proxy.onNext('/v1/chat/ws', () => refusal(503, 'internal_error'))
    const connected = chat.client.connect()
    await waitFor(() => chat.client.status() === 'waiting')
    chat.client.check()
    await connected
    expect(chat.client.status()).toBe('open')
  })

  test('tries again at once when the app asks for a check', async () => {
    await using chat = await startChat()
    const channel = await openChannel(chat.client)
    chat.proxy.cut(closeCodes.goingAway)
    await waitFor(() => channel.status() === 'waiting')
    channel.check()
    await waitFor(() => channel.status() === 'open')
  })

  test('sends a token renewed by a request to the connection', async () => {
    const storage = pageStorage()
    await using chat = await startChat({ storage })
    await openChannel(chat.client)
    const { accessToken: first } = storedSession(storage)
    chat.proxy.onNext('/v1/users/me', () => refusal(401, 'unauthorized'))
    await chat.client.account.get()
    const { toServer } = chat.proxy.frames
    await waitFor(() => toServer.length === 1)
    const { accessToken } = storedSession(storage)
    expect(accessToken).not.toBe(first)
    expect(toServer).toEqual([{ type: 'auth', token: accessToken }])
  })

  test('waits for no longer than timers can when the clock of the device was two months ahead', async () => {
    const { now, after, waiting } = createTestTimers()
    let ahead = 60 * 86_400_000
    await using chat = await startChat({ timers: { now: () => now() + ahead, after } })
    ahead = 0
    await openChannel(chat.client)
    expect(Math.max(...waiting())).toBeLessThan(2 ** 31)
  })

  test('calls no removed handler, and none after close', async () => {
    await using chat = await startChat()
    const { service, friend, conversationId, user, proxy } = chat
    const channel = await openChannel(chat.client)
    const [gone, kept] = [bodiesOf(channel), collect(channel, 'notification')]
    const taken: unknown[] = []
    channel.on('typing', (frame) => taken.push(frame))()
    const socket = await service.connect(friend)
    socket.send({ type: 'typing', conversation_id: conversationId })
    await waitFor(() => proxy.frames.toClient.length === 1)
    await notify(service, user.id)
    await waitFor(() => kept.length === 1)
    const late = Promise.withResolvers<() => void>()
    proxy.onNextFrame('toClient', 'new_message', late.resolve)
    await chat.say('unheard')
    const deliverLate = await late.promise
    channel.disconnect()
    deliverLate()
    await waitFor(() => proxy.openSockets() === 0)
    chat.timers.advance(expiry)
    const [typing, notification] = proxy.frames.toClient
    expect(typing).toMatchObject({ type: 'typing' })
    expect([taken, kept, gone, channel.status()]).toEqual([[], [notification], [], 'closed'])
    expect(channel.typing('c')).toBe(false)
  })

  test('ends with a logout', async () => {
    await using chat = await startChat()
    const channel = await openChannel(chat.client)
    await chat.client.logout()
    expect([channel.status(), chat.endings()]).toEqual(['closed', 0])
    expect(await refusalOf(chat.client.send('c', { body: 'x' }))).toMatchObject({
      name: 'SessionEndedError',
    })
  })
})

/** Reports a new follower over the service feed. */
async function notify(service: TestService, user_id: string) {
  const { token } = await service.issueKey()
  const body = { user_id, type: 'follow_new' }
  const answer = await service.call('POST', '/v1/service/notifications', { token, body })
  expect(answer.status).toBe(201)
}
