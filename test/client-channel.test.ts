import { describe, expect, test } from 'bun:test'
import type { Channel, ChannelEvents, Client } from '../client/client.ts'
import { closeCodes } from '../src/realtime/close-codes.ts'
import { refusal } from './support/chat-stand-in.ts'
import { bob, endOtherSessions, refusalOf, startLoggedIn, startPair } from './support/clients.ts'
import { until } from './support/timers.ts'

const expiry = 15 * 60_000
const longestPause = 30_000
const lowestId = '0'.repeat(26)

/** A channel that is open, and what it told of some kinds. */
async function openChannel(client: Client, options: Parameters<Client['connect']>[0] = {}) {
  const channel = client.connect(options)
  await until(() => channel.status() === 'open')
  return channel
}

function collect<Name extends keyof ChannelEvents>(channel: Channel, name: Name) {
  const heard: ChannelEvents[Name][] = []
  channel.on(name, (event) => heard.push(event))
  return heard
}

function bodiesOf(channel: Channel) {
  const bodies: string[] = []
  channel.on('new_message', ({ message }) => bodies.push(message.body))
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
    await until(() => messages.length + typing.length === 2)
    right.markRead(conversation.id)
    await until(() => receipts.length === 1)
    expect(messages).toEqual([{ type: 'new_message', message }])
    const conversation_id = conversation.id
    expect(typing).toEqual([{ type: 'typing', conversation_id, user_id: users.one.id }])
    expect(receipts).toEqual([{ type: 'read_receipt', conversation_id, user_id: users.other.id }])
  })

  test('goes on past the expiry of its token', async () => {
    await using pair = await startPair()
    const { one, other, conversation } = pair
    pair.advance(expiry - 80_000)
    const channel = await openChannel(other)
    const [bodies, statuses] = [bodiesOf(channel), collect(channel, 'status')]
    const isRenewed = () => pair.timers.waiting().some((pause) => pause > expiry / 2)
    for (let beat = 0; beat < 4; beat++) {
      pair.advance(30_000)
      await until(() => isRenewed() && pair.timers.waiting().includes(30_000))
    }
    expect(pair.network.count('POST /v1/auth/refresh')).toBe(1)
    await one.messages.send(conversation.id, { body: 'late' })
    await until(() => bodies.length === 1)
    expect([channel.status(), statuses]).toEqual(['open', []])
  })

  test.each([
    ['the server stops', closeCodes.goingAway],
    ['the token expired', closeCodes.tokenExpired],
    ['it flooded', closeCodes.tooManyFrames],
  ])('comes back when %s', async (_, code) => {
    await using pair = await startPair()
    const { one, other, conversation } = pair
    const channel = await openChannel(other)
    const [bodies, statuses] = [bodiesOf(channel), collect(channel, 'status')]
    pair.service.hub.closeAll(code)
    await until(() => channel.status() === 'waiting')
    pair.timers.advance(longestPause)
    await until(() => channel.status() === 'open')
    await one.messages.send(conversation.id, { body: 'again' })
    await until(() => bodies.length === 1)
    expect(statuses).toEqual([
      { status: 'waiting', code },
      { status: 'connecting' },
      { status: 'open' },
    ])
  })

  test('misses nothing and hears nothing twice, and other devices hear what was read', async () => {
    await using pair = await startPair()
    const { one, other, conversation } = pair
    const say = (body: string) => one.messages.send(conversation.id, { body })
    await say('known')
    const channel = await openChannel(other, { events: ['read'] })
    const [bodies, read] = [bodiesOf(channel), collect(channel, 'conversation_read')]
    pair.service.hub.closeAll(closeCodes.goingAway)
    await until(() => channel.status() === 'waiting')
    for (const body of ['1', '2', '3']) await say(body)
    pair.timers.advance(longestPause)
    await until(() => channel.status() === 'open')
    await say('4')
    await until(() => bodies.includes('4'))
    await other.conversations.markRead(conversation.id)
    await until(() => read.length === 1)
    expect(bodies).toEqual(['1', '2', '3', '4'])
  })

  test('ends with the session when access was taken away', async () => {
    await using pair = await startPair()
    const channel = await openChannel(pair.other)
    const elsewhere = pair.create()
    await elsewhere.login(bob)
    await endOtherSessions(elsewhere)
    await until(() => channel.status() === 'waiting')
    pair.timers.advance(longestPause)
    await until(() => channel.status() === 'closed')
    expect(pair.endings()).toBe(1)
  })
})

describe('a channel', () => {
  test('shows its token to no address, and asks for what the page wants', async () => {
    await using chat = await startLoggedIn()
    const message = chat.standIn.say('before')
    await openChannel(chat.client, { events: ['read', 'support'] })
    expect(chat.standIn.upgrades).toEqual([
      {
        path: '/v1/chat/ws',
        query: { events: 'ack,read,support', since: message.id },
        protocols: expect.stringMatching(/^hostline\.v1, ?bearer\.a\.b\.1$/),
      },
    ])
  })

  test('delivers what came while it was away, in order and once', async () => {
    await using chat = await startLoggedIn()
    const channel = await openChannel(chat.client)
    const bodies = bodiesOf(channel)
    chat.standIn.say('1')
    await until(() => bodies.length === 1)
    chat.standIn.close(1001)
    await until(() => channel.status() === 'waiting')
    chat.standIn.say('2')
    chat.standIn.say('3')
    chat.timers.advance(longestPause)
    await until(() => channel.status() === 'open')
    for (const message of chat.standIn.messages) chat.standIn.push({ type: 'new_message', message })
    chat.standIn.say('4')
    await until(() => bodies.includes('4'))
    expect(bodies).toEqual(['1', '2', '3', '4'])
  })

  test('misses nothing even when it is cut off before its first message', async () => {
    await using chat = await startLoggedIn()
    chat.standIn.say('known')
    const channel = await openChannel(chat.client)
    const bodies = bodiesOf(channel)
    chat.standIn.close(1001)
    await until(() => channel.status() === 'waiting')
    chat.standIn.say('missed')
    chat.timers.advance(longestPause)
    await until(() => bodies.length > 0)
    expect(bodies).toEqual(['missed'])
  })

  test('begins after the message that the page names', async () => {
    await using chat = await startLoggedIn()
    const [first] = [chat.standIn.say('1'), chat.standIn.say('2')]
    const channel = chat.client.connect({ since: first.id })
    const bodies = bodiesOf(channel)
    await until(() => bodies.length === 1)
    expect([bodies, channel.newestMessageId()]).toEqual([['2'], chat.standIn.messages[1]?.id])
  })

  test.each([4400, 4409])('stays away after %i', async (code) => {
    await using chat = await startLoggedIn()
    const channel = await openChannel(chat.client)
    const statuses = collect(channel, 'status')
    chat.standIn.close(code)
    await until(() => channel.status() === 'closed')
    chat.timers.advance(expiry)
    expect(statuses).toEqual([{ status: 'closed', code }])
    expect(chat.timers.waiting()).toEqual([])
  })

  test.each([
    [4401, 1, 0],
    [4403, 1, 0],
    [4429, 0, 10_000],
    [1009, 0, 0],
  ])(
    'after %i renews its token %i times and waits at least %i ms',
    async (code, renewals, floor) => {
      await using chat = await startLoggedIn()
      const channel = await openChannel(chat.client)
      chat.standIn.close(code)
      await until(() => channel.status() === 'waiting')
      expect(chat.timers.waiting()).toEqual([floor + 500])
      chat.timers.advance(floor + 500)
      await until(() => channel.status() === 'open')
      expect(chat.standIn.count('POST', '/v1/auth/refresh')).toBe(renewals)
      expect(chat.standIn.upgrades.at(-1)?.protocols).toEndWith(`a.b.${1 + renewals}`)
    },
  )

  test('waits longer from try to try, and tries at once when there is a network again', async () => {
    await using chat = await startLoggedIn()
    const channel = await openChannel(chat.client)
    chat.standIn.control.refusesUpgrades = true
    chat.standIn.close(1001)
    const pauses: (number | undefined)[] = []
    for (let round = 0; round < 7; round++) {
      await until(() => channel.status() === 'waiting')
      const [pause = 0] = chat.timers.waiting()
      pauses.push(pause)
      chat.timers.advance(pause)
    }
    expect(pauses).toEqual([500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000])
    await until(() => channel.status() === 'waiting')
    chat.standIn.control.refusesUpgrades = false
    chat.network.dispatchEvent(new Event('online'))
    await until(() => channel.status() === 'open')
    chat.timers.advance(10_000)
    chat.standIn.close(1001)
    await until(() => channel.status() === 'waiting')
    expect(chat.timers.waiting()).toEqual([500])
  })

  test('makes sure of its connection when the network changed', async () => {
    await using chat = await startLoggedIn()
    await openChannel(chat.client)
    chat.network.dispatchEvent(new Event('online'))
    await until(() => chat.standIn.frames.length === 1)
    expect(chat.standIn.frames).toEqual([{ type: 'ping' }])
  })

  test('does not wait forever for a connection that does not come about', async () => {
    await using chat = await startLoggedIn()
    chat.standIn.failNext('/v1/chat/ws', () => new Promise(() => {}))
    const channel = chat.client.connect()
    await until(() => chat.standIn.count('GET', `/v1/chat/ws?events=ack&since=${lowestId}`) === 1)
    chat.timers.advance(10_000)
    expect(channel.status()).toBe('waiting')
    channel.close()
    expect([channel.status(), chat.timers.waiting()]).toEqual(['closed', []])
  })

  test('takes the place of an earlier one', async () => {
    await using chat = await startLoggedIn()
    const [first, second] = [await openChannel(chat.client), await openChannel(chat.client)]
    expect([first.status(), second.status()]).toEqual(['closed', 'open'])
  })

  test('asks whether the session lives when it is refused, and ends with it', async () => {
    await using chat = await startLoggedIn()
    const channel = await openChannel(chat.client)
    const { standIn } = chat
    standIn.control.refusesUpgrades = true
    standIn.close(1001)
    await until(() => channel.status() === 'waiting')
    chat.timers.advance(500)
    await until(() => channel.status() === 'waiting')
    standIn.failNext('/v1/users/me', () => refusal(401, 'unauthorized'))
    standIn.failNext('/v1/auth/refresh', () => refusal(401, 'invalid_token'))
    chat.timers.advance(1_000)
    await until(() => channel.status() === 'closed')
    expect([chat.endings(), chat.client.user()]).toEqual([1, undefined])
  })

  test('notices a server that is gone without a word', async () => {
    await using chat = await startLoggedIn()
    const channel = await openChannel(chat.client)
    const statuses = collect(channel, 'status')
    chat.timers.advance(30_000)
    await until(() => chat.standIn.frames.length === 1)
    await until(() => chat.timers.waiting().includes(30_000))
    chat.standIn.control.answersPings = false
    chat.timers.advance(30_000)
    await until(() => chat.standIn.frames.length === 2)
    expect(statuses).toEqual([])
    chat.timers.advance(10_000)
    expect(statuses).toEqual([{ status: 'waiting', code: 1006 }])
    expect(chat.standIn.frames).toEqual([{ type: 'ping' }, { type: 'ping' }])
  })

  test('sends the token that a request renewed', async () => {
    await using chat = await startLoggedIn()
    await openChannel(chat.client)
    chat.standIn.failNext('/v1/users/me', () => refusal(401, 'unauthorized'))
    await chat.client.me()
    await until(() => chat.standIn.frames.length === 1)
    expect(chat.standIn.frames).toEqual([{ type: 'auth', token: 'a.b.2' }])
  })

  test('tells nothing to a handler that was taken away, nor after it was closed', async () => {
    await using chat = await startLoggedIn()
    const channel = await openChannel(chat.client)
    const [gone, kept] = [bodiesOf(channel), collect(channel, 'notification')]
    const taken: unknown[] = []
    channel.on('typing', (frame) => taken.push(frame))()
    const frame = { type: 'notification', notification: { id: 'N1' }, unread_count: 1 }
    for (const pushed of [{ type: 'typing' }, frame]) chat.standIn.push(pushed)
    await until(() => kept.length === 1)
    channel.close()
    chat.standIn.say('unheard')
    chat.timers.advance(expiry)
    expect([taken, kept, gone, channel.status()]).toEqual([[], [frame], [], 'closed'] as never)
    expect(channel.typing('c')).toBe(false)
  })

  test('ends with a logout', async () => {
    await using chat = await startLoggedIn()
    const channel = await openChannel(chat.client)
    await chat.client.logout()
    expect([channel.status(), chat.endings()]).toEqual(['closed', 0])
    expect(await refusalOf(chat.client.send('c', { body: 'x' }))).toMatchObject({
      name: 'SessionEndedError',
    })
  })
})
