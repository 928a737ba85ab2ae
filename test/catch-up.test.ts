import { describe, expect, test } from 'bun:test'
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { readConfig } from '../src/config.ts'
import { createIds } from '../src/lib/ids.ts'
import { createCatchUp } from '../src/modules/chat/catch-up.ts'
import { createInboxStore } from '../src/modules/chat/inbox-store.ts'
import { openService } from '../src/serve.ts'
import { addFollowers } from './support/audience.ts'
import { createTestClock } from './support/clock.ts'
import { temporaryDirectory } from './support/directory.ts'
import { size, testAtLength } from './support/faults.ts'
import { type Person, startService, type TestService } from './support/service.ts'
import { shared } from './support/shared.ts'
import { stuckReader, type TestSocket } from './support/socket.ts'
import { watchRuns } from './support/statements.ts'
import { aWhile, waitFor } from './support/wait.ts'

const beginning = '0'.repeat(26)
const theEnd = `7${'Z'.repeat(25)}`

const anyService = shared(() =>
  startService({ listen: true, environment: { RATE_LIMIT_FRAMES: 'off' } }),
)

/** Two people who get messages from each other only. */
async function startPair() {
  const service = await anyService()
  return { service, ...(await service.pair()) }
}

async function sayMany(service: TestService, from: Person, conversationId: string, count: number) {
  const ids: string[] = []
  for (let n = 0; n < count; n++) {
    ids.push((await service.say(from, conversationId, `message ${n}`)).body.id)
  }
  return ids
}

const messageIds = ({ frames }: TestSocket) =>
  frames.filter(({ type }) => type === 'new_message').map(({ message }) => message.id)

describe('optional frames', () => {
  test('are not sent unless requested', async () => {
    const pair = await startPair()
    const { service, a, b, conversationId } = pair
    const [ada, other, bob] = [
      await service.connect(a),
      await service.connect(a),
      await service.connect(b),
    ]
    ada.send({ type: 'message', conversation_id: conversationId, body: 'hi', client_id: 'm1' })
    await bob.next('new_message')
    bob.send({ type: 'read', conversation_id: conversationId })
    for (const socket of [ada, other]) await socket.next('read_receipt')
    for (const socket of [ada, other, bob]) await socket.settled()
    const types = [ada, other, bob].map(({ frames }) => frames.map(({ type }) => type))
    expect(types).toEqual([['new_message'], ['new_message'], []])
  })

  test('ack answers the sending socket, also for a repeated message', async () => {
    const pair = await startPair()
    const { service, a, conversationId } = pair
    const ada = await service.connect(a, '&events=ack')
    const other = await service.connect(a, '&events=ack,read')
    const frame = { type: 'message', conversation_id: conversationId, body: 'hi', client_id: 'm1' }
    ada.send(frame)
    const { message } = await ada.next('new_message')
    expect(await ada.next('ack')).toEqual({ type: 'ack', client_id: 'm1', message })
    ada.send(frame)
    expect(await ada.next('ack')).toEqual({ type: 'ack', client_id: 'm1', message })
    await other.settled()
    expect(messageIds(ada)).toEqual([])
    expect(other.frames.map(({ type }) => type)).toEqual(['new_message'])
  })

  test('with ack only the sender’s own sockets get the key of a message', async () => {
    const pair = await startPair()
    const { service, a, b, conversationId } = pair
    const sockets = [
      await service.connect(a, '&events=ack'),
      await service.connect(a, '&events=read,ack'),
      await service.connect(a, '&events=read'),
      await service.connect(a),
      await service.connect(b, '&events=ack'),
    ]
    const path = `/v1/chat/conversations/${conversationId}/messages`
    const send = async (body: object) =>
      (await service.call('POST', path, { token: a.token, body })).body
    const message = await send({ body: 'keyed', client_id: 'm1' })
    const bare = { type: 'new_message', message }
    const keyed = { ...bare, client_id: 'm1' }
    const shown = []
    for (const socket of sockets) shown.push(await socket.next('new_message'))
    expect(shown).toEqual([keyed, keyed, bare, bare, bare])
    const other = { type: 'new_message', message: await send({ body: 'without a key' }) }
    for (const socket of sockets) expect(await socket.next('new_message')).toEqual(other)
  })

  test('conversation_read reaches the other devices of the reader', async () => {
    const pair = await startPair()
    const { service, a, b, conversationId } = pair
    await service.say(a, conversationId, 'hi')
    const [phone, laptop] = [
      await service.connect(b, '&events=read'),
      await service.connect(b, '&events=read'),
    ]
    phone.send({ type: 'read', conversation_id: conversationId })
    const read = { type: 'conversation_read', conversation_id: conversationId, unread_count: 0 }
    expect(await laptop.next('conversation_read')).toEqual(read)
    await phone.settled()
    expect(phone.frames).toEqual([])
    await service.call('PUT', `/v1/chat/conversations/${conversationId}/read`, { token: b.token })
    expect(await phone.next('conversation_read')).toEqual(read)
  })

  test.each([
    ['&events=ack,presence', 'events'],
    ['&since=yesterday', 'since'],
    ['&since=', 'since'],
  ])('%s is refused before the upgrade', async (query, field) => {
    const pair = await startPair()
    const { service, a } = pair
    const answer = await service.call('GET', `/v1/chat/ws?token=${a.token}${query}`)
    expect([answer.status, Object.keys(answer.body.error.details)]).toEqual([400, [field]])
    const stranger = await service.call('GET', `/v1/chat/ws?token=x${query}`)
    expect(stranger.status).toBe(401)
  })
})

describe('catching up over the socket', () => {
  test('delivers missed messages, own ones included, in order, before live messages', async () => {
    const pair = await startPair()
    const { service, a, b, conversationId } = pair
    const ids = await sayMany(service, a, conversationId, 250)
    ids.push(...(await sayMany(service, b, conversationId, 3)))
    const bob = await service.connect(b, `&since=${ids[9]}`)
    const live = (await service.say(a, conversationId, 'live')).body.id
    await waitFor(() => messageIds(bob).at(-1) === live)
    expect(messageIds(bob)).toEqual([...ids.slice(10), live])
  })

  test('delivers each message with the same fields as a live one', async () => {
    const pair = await startPair()
    const { service, a, b, conversationId } = pair
    const live = await service.connect(b)
    await service.say(a, conversationId, 'hi')
    const replayed = await service.connect(b, `&since=${beginning}`)
    expect(await replayed.next('new_message')).toEqual(await live.next('new_message'))
  })

  test('includes the key of own messages when ack was requested', async () => {
    const pair = await startPair()
    const { service, a, b, conversationId } = pair
    const path = `/v1/chat/conversations/${conversationId}/messages`
    for (const { token } of [a, b]) {
      await service.call('POST', path, { token, body: { body: 'hi', client_id: 'm1' } })
    }
    const shown = []
    for (const events of ['&events=ack', '']) {
      const socket = await service.connect(a, `${events}&since=${beginning}`)
      const [own, received] = [await socket.next('new_message'), await socket.next('new_message')]
      expect([own.message.sender_id, received.message.sender_id]).toEqual([a.id, b.id])
      shown.push([own.client_id, 'client_id' in received])
    }
    expect(shown).toEqual([
      ['m1', false],
      [undefined, false],
    ])
  })

  test('delays live frames until the replay is complete', async () => {
    const pair = await startPair()
    const { service, a, b, conversationId } = pair
    await sayMany(service, a, conversationId, 150)
    const ada = await service.connect(a, `&since=${beginning}`)
    await service.call('PUT', `/v1/chat/conversations/${conversationId}/read`, { token: b.token })
    await ada.next('read_receipt')
    expect(messageIds(ada)).toHaveLength(150)
  })

  test('sends a message only once it is on the disk, after the frames of earlier commits', async () => {
    let disk = Promise.resolve()
    await using service = await startService({ listen: true, sync: () => disk })
    const { a, b, conversationId } = await service.pair()
    const path = `/v1/chat/conversations/${conversationId}/read`
    const since = (await service.say(a, conversationId, 'one')).body.id
    const end = Promise.withResolvers<void>()
    disk = end.promise
    const reading = service.call('PUT', path, { token: b.token })
    await waitFor(
      () => service.sqlite.query('SELECT sum(unread_count) n FROM inboxes').values()[0]?.[0] === 0,
    )
    const saying = service.say(a, conversationId, 'two')
    await waitFor(() => service.sqlite.query('SELECT * FROM messages').values().length === 2)
    const ada = await service.connect(a, `&since=${since}`)
    await ada.settled()
    expect(ada.frames).toEqual([])
    end.resolve()
    await Promise.all([reading, saying])
    await waitFor(() => ada.frames.length === 2)
    expect(ada.frames.map(({ type }) => type)).toEqual(['read_receipt', 'new_message'])
  })

  test('after a message that a restore has undone tells so, and delivers all after the one before it', async () => {
    using directory = temporaryDirectory()
    const copy = join(directory.path, 'earlier.db')
    await using former = await startService()
    const { a, b, conversationId } = await former.pair()
    const kept = (await former.say(a, conversationId, 'kept')).body.id
    former.sqlite.run('VACUUM INTO ?', [copy])
    const since = (await former.say(a, conversationId, 'undone')).body.id
    await former.stop()
    const fill = (path: string) => copyFile(copy, join(path, 'hostline.db'))
    await using service = await startService({ listen: true, fill })
    await service.say(a, conversationId, 'later')
    const bob = await service.connect(b, `&since=${since}`)
    await service.say(a, conversationId, 'live')
    await waitFor(() => messageIds(bob).length === 2)
    expect(bob.frames[0]).toEqual({ type: 'resync', newest_message_id: kept })
    expect(bob.frames.slice(1).map(({ message }) => message.body)).toEqual(['later', 'live'])
  })

  test('from the position of an empty conversation, or of nobody’s, delivers what came since', async () => {
    const { service, a, b, conversationId } = await startPair()
    await service.say(a, conversationId, 'first')
    for (const since of [conversationId, '0'.repeat(26)]) {
      const bob = await service.connect(b, `&since=${since}`)
      await waitFor(() => bob.frames.length > 0)
      expect(bob.frames.map(({ message }) => message?.body)).toEqual(['first'])
    }
  })

  test('from a position beyond all messages delivers live messages at once', async () => {
    const pair = await startPair()
    const { service, a, b, conversationId } = pair
    await service.say(a, conversationId, 'before')
    const bob = await service.connect(b, `&since=${theEnd}`)
    await bob.next('resync')
    await service.say(a, conversationId, 'after')
    expect((await bob.next('new_message')).message.body).toBe('after')
  })

  test('runs at the pace of the reader, and delivers messages sent meanwhile once', async () => {
    const pair = await startPair()
    const { service, a, b, conversationId } = pair
    const send = () => service.say(a, conversationId, 'x'.repeat(5_000))
    const before = await Promise.all(Array.from({ length: 600 }, send))
    const bob = await service.connect(b, `&since=${beginning}`)
    const meanwhile = await Promise.all(Array.from({ length: 50 }, send))
    const ids = [...before, ...meanwhile].map(({ body }) => body.id).sort()
    await waitFor(() => messageIds(bob).at(-1) === ids.at(-1))
    expect(messageIds(bob)).toEqual(ids)
  })

  testAtLength('runs twice at a time for each user: a third one waits', async () => {
    const pair = await startPair()
    const { service, a, b, conversationId } = pair
    // An unverified user may store 5 MB of text a day, which is too little here.
    service.sqlite.run('UPDATE users SET email_verified = 1')
    const send = () => service.say(a, conversationId, 'x'.repeat(5_000))
    await Promise.all(Array.from({ length: 2_000 }, send))
    const path = `/v1/chat/ws?token=${b.token}&since=${beginning}`
    const stuck = [await stuckReader(service.base, path), await stuckReader(service.base, path)]
    const third = await service.connect(b, `&since=${beginning}`)
    const other = await service.connect(a, `&since=${beginning}`)
    await waitFor(() => messageIds(other).length === 2_000)
    expect(messageIds(third)).toEqual([])
    stuck[0]?.destroy()
    await waitFor(() => messageIds(third).length === 2_000)
    stuck[1]?.destroy()
  })

  test('does not return the copies of a broadcast to the host', async () => {
    await using service = await startService({ listen: true })
    const [host, fan] = [await service.registerAs('host'), await service.register()]
    const { token } = await service.issueKey()
    await service.call('PUT', `/v1/service/follows/${host.id}/${fan.id}`, { token })
    const broadcast = { token: host.token, body: { body: 'hello' } }
    await service.call('POST', '/v1/chat/broadcast', broadcast)
    const [own, theirs] = [
      await service.connect(host, `&since=${beginning}`),
      await service.connect(fan, `&since=${beginning}`),
    ]
    expect((await theirs.next('new_message')).message.body).toBe('hello')
    await own.settled()
    expect(own.frames).toEqual([])
  })
})

describe('catching up over REST', () => {
  const page = async (service: TestService, { token }: Person, query: string) =>
    (await service.call('GET', `/v1/chat/messages?${query}`, { token })).body

  test('pages messages received and sent after a message, oldest first', async () => {
    const pair = await startPair()
    const { service, a, b, conversationId } = pair
    const ids = await sayMany(service, a, conversationId, 5)
    ids.push(...(await sayMany(service, b, conversationId, 2)))
    const first = await page(service, b, `since=${ids[1]}&limit=3`)
    expect(first.pagination).toEqual({ cursor: expect.any(String), has_more: true, limit: 3 })
    const { cursor } = first.pagination
    const second = await page(service, b, `since=${ids[1]}&limit=3&cursor=${cursor}`)
    expect(second.pagination).toEqual({ cursor: null, has_more: false, limit: 3 })
    const found = [...first.data, ...second.data].map(({ id }: { id: string }) => id)
    expect(found).toEqual(ids.slice(2))
  })

  test('without since starts at the beginning, and shows keys of one’s own messages only', async () => {
    const pair = await startPair()
    const { service, a, b, conversationId } = pair
    const sent = await service.say(a, conversationId, 'hi')
    const stranger = await service.register()
    expect(await page(service, b, '')).toEqual({
      data: [sent.body],
      pagination: { cursor: null, has_more: false, limit: 50 },
    })
    expect((await page(service, stranger, '')).data).toEqual([])
  })

  test.each(['since=x', 'since=', 'limit=0', 'limit=x', 'cursor=x', 'since=1&since=2'])(
    'refuses ?%s',
    async (query) => {
      await using service = await startService()
      const { token } = await service.register()
      const { status, body } = await service.call('GET', `/v1/chat/messages?${query}`, { token })
      expect([status, Object.keys(body.error.details)]).toEqual([400, [query.split('=')[0] ?? '']])
    },
  )
})

test('a page of the catch-up reads only its own messages, however many are missed', async () => {
  await using service = await startService()
  const bob = await service.register()
  const { list } = createCatchUp(createInboxStore(drizzle(service.sqlite)), () => true)
  let runs = 0
  watchRuns(() => runs++)
  async function countWith(conversations: number) {
    for (let n = 0; n < conversations; n++) {
      const sender = await service.register()
      await sayMany(service, sender, await service.openConversation(sender, bob), 3)
    }
    runs = 0
    const page = list(bob.id, beginning, { form: 'cursor', limit: 2, cursor: undefined })
    expect(page.rows.map(({ body }) => body)).toEqual(['message 0', 'message 1'])
    return runs
  }
  expect(await countWith(2)).toBe(await countWith(8))
})

describe('too many missed messages', () => {
  /** Inserts messages directly: there are too many to send. */
  function addMessages(
    { sqlite }: TestService,
    conversationId: string,
    from: Person,
    count: number,
  ) {
    const newId = createIds({ now: Date.now, every: () => () => {} })
    const insert = sqlite.prepare(
      "INSERT INTO messages (conversation_id, seq, id, sender_id, type, body, created_at) VALUES (?, ?, ?, ?, 'text', 'x', 0)",
    )
    const ids = Array.from({ length: count }, newId)
    sqlite.transaction(() => {
      for (const [index, id] of ids.entries()) insert.run(conversationId, index + 1, id, from.id)
      sqlite.run('UPDATE conversations SET last_seq = ? WHERE id = ?', [count, conversationId])
      sqlite.run('UPDATE participants SET last_activity_id = ? WHERE conversation_id = ?', [
        ids.at(-1) ?? '',
        conversationId,
      ])
    })()
    return ids
  }

  test('cause a resync frame on the socket, before live messages, and a 409 over REST', async () => {
    const pair = await startPair()
    const { service, a, b, conversationId } = pair
    const ids = addMessages(service, conversationId, a, 10_001)
    const bob = await service.connect(b, `&since=${beginning}`)
    await bob.next('resync')
    const live = (await service.say(a, conversationId, 'live')).body.id
    expect((await bob.next('new_message')).message.id).toBe(live)
    await bob.settled()
    expect(bob.frames).toEqual([])
    const missed = async (since: string | undefined) =>
      service.call('GET', `/v1/chat/messages?since=${since}&limit=100`, { token: b.token })
    expect((await missed(beginning)).body.error.code).toBe('conflict')
    expect((await missed(beginning)).status).toBe(409)
    const rest = await missed(ids[9])
    expect([rest.status, rest.body.data[0].id]).toEqual([200, ids[10]])
  })

  test('that cannot be read end the connection, so that the client tries again', async () => {
    const { service, a, b, conversationId } = await startPair()
    const { id } = (await service.say(a, conversationId, 'hello')).body
    service.sqlite.run("UPDATE messages SET attachments = '{' WHERE id = ?", [id])
    const bob = await service.connect(b, `&since=${beginning}`)
    expect(await bob.closed).toBe(1006)
    service.sqlite.run('UPDATE messages SET attachments = NULL WHERE id = ?', [id])
    const again = await service.connect(b, `&since=${beginning}`)
    expect((await again.next('new_message')).message.id).toBe(id)
  })

  test('include more than a thousand conversations', async () => {
    await using service = await startService()
    const host = await service.register()
    const fans = addFollowers(service.sqlite, host.id, 1_001)
    const insert = service.sqlite.prepare(
      'INSERT INTO conversations (id, user_a, user_b, created_at) VALUES (?, ?, ?, 0)',
    )
    const join = service.sqlite.prepare(
      'INSERT INTO participants (user_id, conversation_id, other_user_id, last_activity_id) VALUES (?, ?, ?, ?)',
    )
    const path = `/v1/chat/messages?since=${beginning}`
    const status = async () => (await service.call('GET', path, { token: host.token })).status
    for (const [index, id] of fans.entries()) {
      insert.run(id, ...([host.id, id].sort() as [string, string]))
      join.run(host.id, id, id, id)
      if (index === 999) expect(await status()).toBe(200)
    }
    expect(await status()).toBe(409)
  })
})

describe('ids', () => {
  test('are greater than those of an earlier process, even when the clock was set back', () => {
    const clock = createTestClock()
    const before = createIds(clock)
    const newest = [before(), before()].at(-1) ?? ''
    clock.advance(-3_600_000)
    const after = createIds(clock, newest)
    const [first, second] = [after(), after()]
    expect([newest < first, first < second]).toEqual([true, true])
  })

  test('of messages stay in order across a restart', async () => {
    const clock = createTestClock()
    await using service = await startService({ clock })
    const { a, conversationId } = await service.pair()
    const old = (await service.say(a, conversationId, 'before')).body.id
    await service.stop()
    clock.advance(-60_000)
    const config = readConfig({ DATA_DIR: service.directory }, false)
    const silent = { debug() {}, info() {}, warn() {}, error() {} }
    const again = await openService(config, silent, () => {}, { clock })
    const path = `http://localhost/v1/chat/conversations/${conversationId}/messages`
    const headers = { authorization: `Bearer ${a.token}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ body: 'after' })
    const answer = await again.app.handle(new Request(path, { method: 'POST', headers, body }))
    const { id } = (await answer.json()) as { id: string }
    await again.close()
    expect(id > old).toBe(true)
  })
})

// Devices connect and disconnect at random while messages are sent; each must get all of them once, in order.
test.each([1, 2, 3].slice(0, size(3, 3, 1)))(
  'random disconnects of several devices lose and duplicate nothing (run %i)',
  async () => {
    const pair = await startPair()
    const { service, a, b, conversationId } = pair
    const c = await service.register()
    const second = await service.openConversation(c, b)
    const acknowledged: string[] = []
    let isOver = false

    const sender = async (from: Person, conversation: string) => {
      for (let n = 0; n < 150; n++) {
        const { status, body } = await service.say(from, conversation, `${from.id} ${n}`)
        expect(status).toBe(201)
        acknowledged.push(body.id)
      }
    }
    const device = async () => {
      const got: string[] = []
      const takeFrom = (socket: TestSocket) => {
        got.push(...messageIds(socket))
        socket.frames.length = 0
      }
      while (!isOver) {
        const socket = await service.connect(b, `&since=${got.at(-1) ?? beginning}`)
        await aWhile(12)
        socket.close()
        takeFrom(socket) // what arrives after this line is lost to the device
        socket.frames.push = () => 0
      }
      const socket = await service.connect(b, `&since=${got.at(-1) ?? beginning}`)
      await waitFor(() => {
        takeFrom(socket)
        return got.length >= acknowledged.length
      }, 'every message')
      await socket.settled()
      takeFrom(socket)
      return got
    }
    const devices = [device(), device(), device(), device()]
    await Promise.all([
      sender(a, conversationId),
      sender(a, conversationId),
      sender(b, conversationId),
      sender(c, second),
    ])
    isOver = true
    acknowledged.sort()
    expect(new Set(acknowledged).size).toBe(600)
    for (const got of await Promise.all(devices)) expect(got).toEqual(acknowledged)
  },
)
