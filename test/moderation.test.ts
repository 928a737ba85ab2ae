import { describe, expect, test } from 'bun:test'
import { createTestClock } from './support/clock.ts'
import { type Person, startService, type TestService } from './support/service.ts'
import { shared } from './support/shared.ts'
import { waitFor } from './support/wait.ts'

const day = 86_400_000

/** Two people in a conversation, an admin, and functions for their requests. */
async function open(options: Parameters<typeof startService>[0] = {}) {
  const clock = createTestClock()
  const service = await startService({ clock, ...options })
  return { ...(await meet(service, clock)), [Symbol.asyncDispose]: service[Symbol.asyncDispose] }
}

const anyOpen = shared(() => open())
const anyListening = shared(() => open({ listen: true }))

/** Other people in a service of several tests. */
async function newPeople(of = anyOpen) {
  const { service, clock } = await of()
  return meet(service, clock)
}

async function meet(service: TestService, clock: ReturnType<typeof createTestClock>) {
  const { a: ada, b: bob, conversationId } = await service.pair()
  const root = await service.registerAs('admin')
  const as = (person: Person) => (method: string, path: string, body?: unknown) =>
    service.call(method, path, { token: person.token, body })
  const conversation = `/v1/chat/conversations/${conversationId}`
  const asAda = as(ada)
  const asBob = as(bob)
  return {
    service,
    clock,
    time: () => new Date(clock.now()).toISOString(),
    ada,
    bob,
    root,
    as,
    asAda,
    asBob,
    asRoot: as(root),
    conversationId,
    conversation,
    block: () => asAda('PUT', `/v1/users/blocks/${bob.id}`),
  }
}

const refusedAs = (answer: Awaited<ReturnType<TestService['call']>>) => [
  answer.status,
  answer.body?.error?.code,
  answer.headers.get('x-error-reason'),
]

/** The names and pictures of a user in all responses to another one. */
async function shownTo(ask: Awaited<ReturnType<typeof meet>>['asAda'], { id }: Person) {
  const { body: list } = await ask('GET', '/v1/chat/conversations')
  const { body: exported } = await ask('GET', '/v1/users/me/export')
  const { body: blocked } = await ask('GET', '/v1/users/blocks')
  const items = [...list.data, ...exported.conversations].map(({ participant }) => participant)
  for (const { user } of [...blocked.data, ...exported.blocks]) items.push(user)
  const { body: opened } = await ask('POST', '/v1/chat/conversations', { user_id: id })
  expect(opened.participant).toEqual({ id, display_name: items[0].display_name })
  return [...new Set(items.map((item) => `${item.display_name} ${item.avatar_url}`))]
}

describe('a block', () => {
  test('can be made and lifted repeatedly, and is listed for its maker', async () => {
    const it = await newPeople()
    const { asAda, asBob, bob, block } = it
    expect((await block()).status).toBe(204)
    const blockedAt = it.time()
    it.clock.advance(1_000)
    expect((await block()).status).toBe(204)
    const listed = await asAda('GET', '/v1/users/blocks')
    expect(listed.body).toEqual({
      success: true,
      data: [
        {
          user: {
            id: bob.id,
            display_name: expect.any(String),
            avatar_url: expect.stringContaining('/v1/avatars/'),
          },
          blocked_at: blockedAt,
        },
      ],
      pagination: { page: 1, per_page: 20, total: 1, total_pages: 1 },
    })
    expect((await asBob('GET', '/v1/users/blocks')).body.data).toEqual([])
    const back = () => asAda('DELETE', `/v1/users/blocks/${bob.id}`)
    expect([(await back()).status, (await back()).status]).toEqual([204, 204])
    expect((await asAda('GET', '/v1/users/blocks')).body.data).toEqual([])
    expect((await asBob('POST', `${it.conversation}/messages`, { body: 'Hi' })).status).toBe(201)
  })

  test('of oneself, of an unknown or of a removed user is refused', async () => {
    const it = await newPeople()
    const { ada, asAda } = it
    const gone = await it.service.register()
    await it.as(gone)('DELETE', '/v1/users/me', { password: 'correct horse' })
    const oneself = await asAda('PUT', `/v1/users/blocks/${ada.id}`)
    expect([oneself.status, Object.keys(oneself.body.error.details)]).toEqual([400, ['user_id']])
    for (const id of [gone.id, 'nobody', '01ARZ3NDEKTSV4RRFFQ69G5FAV']) {
      expect((await asAda('PUT', `/v1/users/blocks/${id}`)).status).toBe(404)
    }
    expect((await asAda('DELETE', '/v1/users/blocks/nobody')).status).toBe(404)
  })

  test('keeps both from sending, over REST and the socket, until both sides have lifted theirs', async () => {
    const it = await newPeople(anyListening)
    const { asAda, asBob, conversation, conversationId, block, ada, bob } = it
    await block()
    await asBob('PUT', `/v1/users/blocks/${ada.id}`)
    await asAda('DELETE', `/v1/users/blocks/${bob.id}`)
    for (const ask of [asAda, asBob]) {
      const answer = await ask('POST', `${conversation}/messages`, { body: 'Hi' })
      expect(refusedAs(answer)).toEqual([403, 'forbidden', 'blocked'])
    }
    const socket = await it.service.connect(ada)
    socket.send({ type: 'message', conversation_id: conversationId, body: 'Hi' })
    expect(await socket.next('error')).toMatchObject({
      reason: 'blocked',
      error: { code: 'forbidden' },
    })
    await asBob('DELETE', `/v1/users/blocks/${ada.id}`)
    expect((await asAda('POST', `${conversation}/messages`, { body: 'Hi' })).status).toBe(201)
    socket.close()
  })

  test('still allows repeated sends of earlier messages and reading', async () => {
    const it = await newPeople()
    const { asAda, conversation } = it
    const message = { body: 'Hi', client_id: 'one' }
    await asAda('POST', `${conversation}/messages`, message)
    await it.block()
    const again = await asAda('POST', `${conversation}/messages`, message)
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
    expect((await it.asBob('GET', `${conversation}/messages`)).body.data).toHaveLength(1)
  })

  test('returns an existing conversation, and creates no new one', async () => {
    const it = await newPeople()
    const eve = await it.service.register()
    const asEve = it.as(eve)
    await it.block()
    await asEve('PUT', `/v1/users/blocks/${it.ada.id}`)
    const [old, fresh] = [
      await it.asBob('POST', '/v1/chat/conversations', { user_id: it.ada.id }),
      await it.asAda('POST', '/v1/chat/conversations', { user_id: eve.id }),
    ]
    expect([old.status, old.body.id]).toEqual([201, it.conversationId])
    expect(refusedAs(fresh)).toEqual([403, 'forbidden', 'blocked'])
    expect((await it.asAda('GET', '/v1/chat/conversations')).body.pagination.total).toBe(1)
  })

  test('stops typing and receipts, and freezes read positions', async () => {
    const it = await newPeople(anyListening)
    const { asAda, asBob, conversation, conversationId } = it
    await asAda('POST', `${conversation}/messages`, { body: 'Hi' })
    await it.block()
    const [adas, bobs] = [await it.service.connect(it.ada), await it.service.connect(it.bob)]
    bobs.send({ type: 'typing', conversation_id: conversationId })
    bobs.send({ type: 'read', conversation_id: conversationId })
    expect((await asBob('PUT', `${conversation}/read`)).status).toBe(204)
    await bobs.settled()
    await adas.settled()
    expect([...adas.frames, ...bobs.frames]).toEqual([])
    expect((await asBob('GET', '/v1/chat/conversations')).body.data[0].unread_count).toBe(1)
    expect((await asAda('GET', '/v1/chat/conversations')).body.data[0]).toMatchObject({
      participant_read_up_to: null,
    })
    adas.close()
    bobs.close()
  })

  test('shows each side the name at the time of the block and a generated picture, until it ends', async () => {
    const it = await newPeople()
    const { asAda, asBob, ada, bob } = it
    const rename = (ask: typeof asAda, display_name: string) =>
      ask('PATCH', '/v1/users/me', { display_name, avatar_url: 'https://evil.example/a.png' })
    await rename(asBob, 'Bob')
    await it.block()
    await rename(asBob, 'I know where you live')
    const generated = [expect.stringMatching(/^Bob http:.*\/v1\/avatars\/\d+\/B.svg$/)]
    expect(await shownTo(asAda, bob)).toEqual(generated)
    await rename(asAda, 'Ada')
    await asBob('PUT', `/v1/users/blocks/${ada.id}`)
    expect(await shownTo(asBob, ada)).toEqual([expect.stringMatching(/^person\d+ http.*\.svg$/)])
    await asAda('DELETE', `/v1/users/blocks/${bob.id}`)
    expect(await shownTo(asAda, bob)).toEqual(generated)
    await asBob('DELETE', `/v1/users/blocks/${ada.id}`)
    const current = 'I know where you live https://evil.example/a.png'
    expect(await shownTo(asAda, bob)).toEqual([current])
  })

  test('hides a removal from the other side, unless an admin removes', async () => {
    const it = await newPeople(anyListening)
    const said = await Promise.all(
      [it.asBob, it.asBob].map((ask) => ask('POST', `${it.conversation}/messages`, { body: 'Hi' })),
    )
    const [first, second] = said.map(({ body }) => body.id)
    await it.block()
    const [adas, bobs] = await Promise.all(
      [it.ada, it.bob].map((person) => it.service.connect(person, '&events=changes')),
    )
    await it.asBob('DELETE', `${it.conversation}/messages/${first}`)
    expect(await bobs?.next('message_deleted')).toMatchObject({ message_id: first })
    await it.asRoot('DELETE', `/v1/admin/messages/${second}`)
    expect(await adas?.next('message_deleted')).toMatchObject({ message_id: second })
    expect(adas?.frames).toEqual([])
    for (const socket of [adas, bobs]) socket?.close()
  })

  test('excludes both from broadcasts and their count, in either direction', async () => {
    const it = await newPeople()
    const { service, as } = it
    const host = await service.registerAs('host')
    const { token } = await service.issueKey(['follows'])
    const fans = [it.ada, it.bob, await service.register()]
    const follower_ids = fans.map(({ id }) => id)
    await service.call('PUT', `/v1/service/follows/${host.id}`, { token, body: { follower_ids } })
    await as(host)('PUT', `/v1/users/blocks/${it.ada.id}`)
    await it.asBob('PUT', `/v1/users/blocks/${host.id}`)
    await it.asBob('PUT', `/v1/users/blocks/${it.root.id}`)
    const sent = await as(host)('POST', '/v1/chat/broadcast', { body: 'Live now' })
    expect(sent.body).toMatchObject({ recipients_count: 1, status: 'completed' })
    const progress = await as(host)('GET', `/v1/chat/broadcasts/${sent.body.id}`)
    expect(progress.body).toMatchObject({ recipients_count: 1, delivered_count: 1 })
    expect((await as(host)('GET', '/v1/chat/conversations')).body.pagination.total).toBe(1)
  })

  test('suppresses notifications of calls and follows', async () => {
    const it = await newPeople()
    const { service } = it
    const { token } = await service.issueKey()
    const host = await service.registerAs('host')
    await it.as(host)('PUT', `/v1/users/blocks/${it.ada.id}`)
    for (const [id, state] of [
      ['1', 'ringing'],
      ['2', 'missed'],
    ]) {
      const body = { state, host_id: host.id, guest_id: it.ada.id }
      const answer = await service.call('PUT', `/v1/service/calls/${id}`, { token, body })
      expect(answer.status).toBe(200)
    }
    for (const { id } of [it.ada, it.bob]) {
      await service.call('PUT', `/v1/service/follows/${host.id}/${id}`, { token })
    }
    const { body } = await it.as(host)('GET', '/v1/notifications')
    expect(body.data).toMatchObject([{ type: 'follow_new', data: { follower_id: it.bob.id } }])
    const answer = await service.call('POST', '/v1/service/notifications', {
      token,
      body: { user_id: host.id, type: 'call_incoming', data: { guest_id: it.ada.id } },
    })
    expect(answer.body).toEqual({ data: [], duplicates: 0, muted: 1 })
  })

  test('ends with the account of either side', async () => {
    await using it = await open()
    await it.block()
    await it.asBob('PUT', `/v1/users/blocks/${it.root.id}`)
    await it.asBob('DELETE', '/v1/users/me', { password: 'correct horse' })
    const left = it.service.sqlite.query('SELECT 1 FROM blocks')
    await waitFor(() => {
      it.clock.advance(500)
      return left.get() === null
    })
    expect((await it.asAda('GET', '/v1/users/blocks')).body.pagination.total).toBe(0)
  })
})

describe('a removed message', () => {
  test('keeps its place without its content, and shows the time of removal', async () => {
    const it = await newPeople()
    const { asAda, asBob, conversation } = it
    const file = {
      body: 'See this',
      type: 'file',
      file_url: 'https://files.example/cat.png',
      file_name: 'cat.png',
      file_size: 3,
      file_type: 'image/png',
    }
    const { body: sent } = await asAda('POST', `${conversation}/messages`, file)
    await asAda('POST', `${conversation}/messages`, { body: 'Hello' })
    it.clock.advance(1_000)
    const remove = () => asAda('DELETE', `${conversation}/messages/${sent.id}`)
    expect([(await remove()).status, (await remove()).status]).toEqual([204, 204])
    const { data } = (await asBob('GET', `${conversation}/messages`)).body
    expect(data[1]).toEqual({
      ...sent,
      body: '',
      type: 'text',
      file_url: null,
      file_name: null,
      file_size: null,
      file_type: null,
      deleted_at: it.time(),
    })
    expect(data[0]).not.toHaveProperty('deleted_at')
    expect((await asBob('GET', '/v1/chat/conversations')).body.data[0].unread_count).toBe(1)
    const kept = it.service.sqlite.query("SELECT 1 FROM messages WHERE body = 'See this'").get()
    expect(kept).toBeNull()
  })

  test('is removed by its sender only, and must belong to the conversation', async () => {
    const it = await newPeople()
    const { body: sent } = await it.asAda('POST', `${it.conversation}/messages`, { body: 'Hi' })
    const eve = await it.service.register()
    const other = await it.service.openConversation(it.ada, eve)
    const path = `${it.conversation}/messages`
    expect(refusedAs(await it.asBob('DELETE', `${path}/${sent.id}`))).toEqual([
      403,
      'forbidden',
      'not_participant',
    ])
    expect((await it.as(eve)('DELETE', `${path}/${sent.id}`)).status).toBe(403)
    const elsewhere = `/v1/chat/conversations/${other}/messages/${sent.id}`
    expect((await it.asAda('DELETE', elsewhere)).status).toBe(404)
    expect((await it.asAda('DELETE', `${path}/nothing`)).status).toBe(404)
  })

  test('is announced to sockets of both sides that requested changes, and to no others', async () => {
    const it = await newPeople(anyListening)
    const { asAda, conversation, conversationId } = it
    const { body: sent } = await asAda('POST', `${conversation}/messages`, { body: 'Hi' })
    const asking = await Promise.all(
      [it.ada, it.bob].map((person) => it.service.connect(person, '&events=changes')),
    )
    const plain = await it.service.connect(it.bob)
    await asAda('DELETE', `${conversation}/messages/${sent.id}`)
    const frame = {
      type: 'message_deleted',
      conversation_id: conversationId,
      message_id: sent.id,
    }
    for (const socket of asking) expect(await socket.next('message_deleted')).toEqual(frame)
    await plain.settled()
    expect(plain.frames).toEqual([])
    for (const socket of [...asking, plain]) socket.close()
  })

  test('is returned in its current state when it is sent again', async () => {
    const it = await newPeople()
    const message = { body: 'Hi', client_id: 'one' }
    const { body: sent } = await it.asAda('POST', `${it.conversation}/messages`, message)
    await it.asAda('DELETE', `${it.conversation}/messages/${sent.id}`)
    const again = await it.asAda('POST', `${it.conversation}/messages`, message)
    expect([again.status, again.body.id, again.body.body]).toEqual([201, sent.id, ''])
  })
})

describe('the read state', () => {
  test('shows the read position of the other side, which never moves back', async () => {
    const it = await newPeople(anyListening)
    const { asAda, asBob, conversation } = it
    const ids: string[] = []
    for (const body of ['one', 'two', 'three']) {
      ids.push((await asAda('POST', `${conversation}/messages`, { body })).body.id)
    }
    const [adas, bobs] = [
      await it.service.connect(it.ada),
      await it.service.connect(it.bob, '&events=read'),
    ]
    const read = (message_id?: string) => asBob('PUT', `${conversation}/read`, { message_id })
    const state = async () => [
      (await asBob('GET', '/v1/chat/conversations')).body.data[0].unread_count,
      (await asAda('GET', '/v1/chat/conversations')).body.data[0].participant_read_up_to,
    ]
    expect((await read(ids[1]?.toLowerCase())).status).toBe(204)
    expect(await state()).toEqual([1, ids[1]])
    expect(await adas.next('read_receipt')).toMatchObject({ message_id: ids[1] })
    expect(await bobs.next('conversation_read')).toMatchObject({ unread_count: 1 })
    await read(ids[0])
    expect(await state()).toEqual([1, ids[1]])
    bobs.send({ type: 'read', conversation_id: it.conversationId, message_id: ids[2] })
    expect(await adas.next('read_receipt')).toEqual({
      type: 'read_receipt',
      conversation_id: it.conversationId,
      user_id: it.bob.id,
    })
    expect(await state()).toEqual([0, ids[2]])
    adas.close()
    bobs.close()
  })

  test('accepts a message of the conversation only', async () => {
    const it = await newPeople()
    const eve = await it.service.register()
    const other = await it.service.openConversation(it.bob, eve)
    const { body: elsewhere } = await it.service.say(eve, other, 'Hi')
    for (const message_id of [elsewhere.id, 'x', 7]) {
      const { status, body } = await it.asBob('PUT', `${it.conversation}/read`, { message_id })
      expect([status, Object.keys(body.error.details)]).toEqual([400, ['message_id']])
    }
    expect((await it.asBob('PUT', `${it.conversation}/read`, {})).status).toBe(204)
  })
})

describe('mute', () => {
  test('is shown in the list until its end, and the badge keeps counting', async () => {
    await using it = await open()
    const { asBob, conversation, clock } = it
    const isMuted = async () =>
      (await asBob('GET', '/v1/chat/conversations')).body.data[0].muted as boolean
    const until = new Date(clock.now() + 60_000).toISOString()
    expect((await asBob('PUT', `${conversation}/mute`, { until })).status).toBe(204)
    expect(await isMuted()).toBe(true)
    await it.asAda('POST', `${conversation}/messages`, { body: 'Hi' })
    expect((await asBob('GET', '/v1/chat/unread-count')).body).toEqual({ count: 1 })
    clock.advance(60_000)
    expect(await isMuted()).toBe(false)
    expect((await asBob('PUT', `${conversation}/mute`)).status).toBe(204)
    clock.advance(1_000 * day)
    const renewed = await it.service.login(it.bob.email)
    const list = await it.as(renewed)('GET', '/v1/chat/conversations')
    expect(list.body.data[0].muted).toBe(true)
    await it.as(renewed)('DELETE', `${conversation}/mute`)
    const after = await it.as(renewed)('GET', '/v1/chat/conversations')
    expect(after.body.data[0].muted).toBe(false)
  })

  test('refuses a time in the past, and strangers', async () => {
    const it = await newPeople()
    const until = new Date(it.clock.now()).toISOString()
    const { status, body } = await it.asBob('PUT', `${it.conversation}/mute`, { until })
    expect([status, Object.keys(body.error.details)]).toEqual([400, ['until']])
    const asEve = it.as(await it.service.register())
    for (const method of ['PUT', 'DELETE']) {
      expect((await asEve(method, `${it.conversation}/mute`)).status).toBe(403)
    }
  })
})

describe('a report', () => {
  const reported = { reason: 'fraud', body: ' Wants money. ' }

  test('of a person or a message is stored, once while it is open', async () => {
    const it = await newPeople()
    const { body: said } = await it.asAda('POST', `${it.conversation}/messages`, { body: 'Pay me' })
    for (const target of [{ user_id: it.ada.id }, { message_id: said.id }]) {
      const first = await it.asBob('POST', '/v1/reports', { ...target, ...reported })
      expect([first.status, first.body]).toEqual([
        201,
        { id: expect.any(String), status: 'open', created_at: it.time() },
      ])
      it.clock.advance(1)
      const again = await it.asBob('POST', '/v1/reports', { ...target, reason: 'spam' })
      expect([again.status, again.body]).toEqual([201, first.body])
      await it.asRoot('PATCH', `/v1/admin/reports/${first.body.id}`, { status: 'resolved' })
      const later = await it.asBob('POST', '/v1/reports', { ...target, reason: 'spam' })
      expect(later.body.id).not.toBe(first.body.id)
    }
  })

  test('has one target that is not oneself', async () => {
    const it = await newPeople()
    const { body: own } = await it.asBob('POST', `${it.conversation}/messages`, { body: 'Hi' })
    const eve = await it.service.register()
    const foreign = await it.service.openConversation(it.ada, eve)
    const { body: unseen } = await it.service.say(eve, foreign, 'Secret')
    const cases: [target: object, status: number, fields?: string[]][] = [
      [{}, 400, ['user_id']],
      [{ user_id: it.ada.id, message_id: own.id }, 400, ['user_id']],
      [{ user_id: it.bob.id }, 400, ['user_id']],
      [{ message_id: own.id }, 400, ['message_id']],
      [{ user_id: 'x' }, 400, ['user_id']],
      [{ message_id: unseen.id }, 404],
      [{ user_id: '01ARZ3NDEKTSV4RRFFQ69G5FAV' }, 404],
      [{ message_id: '01ARZ3NDEKTSV4RRFFQ69G5FAV' }, 404],
      [{ user_id: it.ada.id, reason: 'ugly' }, 400, ['reason']],
      [{ user_id: it.ada.id, body: 'x'.repeat(2_001) }, 400, ['body']],
    ]
    for (const [target, status, fields] of cases) {
      const answer = await it.asBob('POST', '/v1/reports', { reason: 'spam', ...target })
      const details = answer.body.error.details
      expect([target, answer.status, details && Object.keys(details)]).toEqual([
        target,
        status,
        fields ?? null,
      ])
    }
  })

  test('shows the desk the surrounding messages as they were, until it is resolved', async () => {
    await using it = await open()
    const ids: string[] = []
    for (let n = 0; n < 50; n++) {
      const body = `message ${n}`
      ids.push((await it.asAda('POST', `${it.conversation}/messages`, { body })).body.id)
    }
    const body = { message_id: ids[25], ...reported }
    const { id } = (await it.asBob('POST', '/v1/reports', body)).body
    await it.asAda('DELETE', `${it.conversation}/messages/${ids[25]}`)
    const { body: shown } = await it.asRoot('GET', `/v1/admin/reports/${id}`)
    expect(shown).toEqual({
      id,
      reporter: { id: it.bob.id, display_name: expect.any(String) },
      reported: { id: it.ada.id, display_name: expect.any(String) },
      message_id: ids[25],
      reason: 'fraud',
      body: 'Wants money.',
      status: 'open',
      note: null,
      resolved_by_id: null,
      resolved_at: null,
      created_at: it.time(),
      messages: expect.any(Array),
    })
    const around = shown.messages.map((message: { body: string }) => message.body)
    expect(around).toEqual(Array.from({ length: 41 }, (_, n) => `message ${n + 5}`))
    const noted = { status: 'open', note: 'Asked them.' }
    const { body: still } = await it.asRoot('PATCH', `/v1/admin/reports/${id}`, noted)
    expect(still).toEqual({ ...shown, note: noted.note })
    const change = { status: 'resolved', note: 'Warned.' }
    const resolved = await it.asRoot('PATCH', `/v1/admin/reports/${id}`, change)
    expect(resolved.body).toMatchObject({
      ...change,
      resolved_by_id: it.root.id,
      resolved_at: it.time(),
      messages: null,
    })
    expect(it.service.sqlite.query('SELECT excerpt FROM reports').values()).toEqual([[null]])
    const actions = it.service.sqlite
      .query("SELECT action, actor_id, target_id FROM audit_log WHERE target_type = 'report'")
      .values()
    expect(actions).toEqual([
      ['report_viewed', it.root.id, id],
      ['report_changed', it.root.id, id],
      ['report_changed', it.root.id, id],
    ])
  })

  test('shows a message that its sender removed before, for 30 days and to the desk only', async () => {
    await using it = await open()
    const { asAda, asRoot, conversation } = it
    const { body: said } = await asAda('POST', `${conversation}/messages`, { body: 'Pay me' })
    const { body: plain } = await asAda('POST', `${conversation}/messages`, { body: 'Now' })
    await asAda('DELETE', `${conversation}/messages/${said.id}`)
    await asRoot('DELETE', `/v1/admin/messages/${plain.id}`)
    const pass = async (milliseconds: number) => {
      it.clock.advance(milliseconds)
      for (const person of [it.ada, it.bob, it.root]) {
        Object.assign(person, await it.service.login(person.email))
      }
    }
    await pass(30 * day - 1)
    const report = async (message_id: string) => {
      const { body } = await it.as(it.bob)('POST', '/v1/reports', { message_id, reason: 'fraud' })
      const { messages } = (await it.as(it.root)('GET', `/v1/admin/reports/${body.id}`)).body
      return messages.map((message: { body: string }) => message.body)
    }
    expect(await report(said.id)).toEqual(['Pay me', 'Now'])
    const listed = await it.as(it.bob)('GET', `${conversation}/messages`)
    const [exported, own] = [
      await it.as(it.bob)('GET', '/v1/users/me/export'),
      await it.as(it.ada)('GET', '/v1/users/me/export'),
    ]
    expect(JSON.stringify([listed.body, exported.body])).not.toContain('Pay me')
    expect(JSON.stringify(own.body.messages)).toContain('Pay me')
    const kept = it.service.sqlite.query('SELECT 1 FROM removed_messages')
    await pass(3_600_000)
    await waitFor(() => kept.get() === null)
    expect(await report(plain.id)).toEqual(['', ''])
  })

  test('is listed by status, and announced to admins with the support events', async () => {
    await using it = await open({ listen: true })
    const socket = await it.service.connect(it.root, '&events=support')
    const plain = await it.service.connect(it.bob, '&events=support')
    const body = { user_id: it.ada.id, reason: 'spam' }
    const { id } = (await it.asBob('POST', '/v1/reports', body)).body
    const { body: list } = await it.asRoot('GET', '/v1/admin/reports?status=open')
    expect(list.data.map((item: { id: string }) => item.id)).toEqual([id])
    expect(list.data[0]).not.toHaveProperty('messages')
    expect(await socket.next('report_created')).toEqual({
      type: 'report_created',
      report: list.data[0],
    })
    expect((await it.asRoot('GET', '/v1/admin/reports?status=resolved')).body.data).toEqual([])
    const about = async ({ id }: { id: string }) =>
      (await it.asRoot('GET', `/v1/admin/reports?reported_id=${id.toLowerCase()}`)).body.data
    expect(await about(it.ada)).toEqual(list.data)
    expect(await about(it.bob)).toEqual([])
    expect((await it.asRoot('GET', '/v1/admin/reports?status=new')).status).toBe(400)
    await plain.settled()
    expect(plain.frames).toEqual([])
    socket.close()
    plain.close()
  })

  test('is limited to twenty a day', async () => {
    const it = await newPeople()
    for (let n = 0; n < 20; n++) {
      const { id } = await it.service.register()
      const made = await it.asBob('POST', '/v1/reports', { user_id: id, reason: 'spam' })
      expect(made.status).toBe(201)
    }
    const body = { user_id: it.ada.id, reason: 'spam' }
    const answer = await it.asBob('POST', '/v1/reports', body)
    expect(refusedAs(answer)).toEqual([429, 'rate_limited', 'quota_exceeded'])
    expect(Number(answer.headers.get('retry-after'))).toBe(day / 1_000)
  })

  test('is not limited by reports of a time when the clock was ahead', async () => {
    const clock = createTestClock()
    await using service = await startService({ clock })
    const { token } = await service.register()
    const report = async () => {
      const body = { user_id: (await service.register()).id, reason: 'spam' }
      return (await service.call('POST', '/v1/reports', { token, body })).status
    }
    clock.advance(840_000)
    for (let n = 0; n < 20; n++) expect(await report()).toBe(201)
    expect(await report()).toBe(429)
    clock.setBack(840_000)
    expect(await report()).toBe(201)
  })

  test('needs a field to change', async () => {
    const it = await newPeople()
    const body = { user_id: it.ada.id, reason: 'spam' }
    const { id } = (await it.asBob('POST', '/v1/reports', body)).body
    const path = `/v1/admin/reports/${id}`
    expect((await it.asRoot('PATCH', path, {})).status).toBe(400)
    expect((await it.asRoot('PATCH', '/v1/admin/reports/x', { note: 'n' })).status).toBe(404)
    const resolved = { status: 'resolved', resolved_at: it.time(), resolved_by_id: it.root.id }
    for (const change of [{ status: 'resolved' }, { status: 'resolved' }, { note: 'n' }]) {
      expect((await it.asRoot('PATCH', path, change)).body).toMatchObject(resolved)
      it.clock.advance(1_000)
    }
    expect((await it.asRoot('PATCH', path, { status: 'open' })).body).toMatchObject({
      status: 'open',
      resolved_at: null,
      resolved_by_id: null,
    })
  })

  test('is not reopened beside a newer one of the same target', async () => {
    const it = await newPeople()
    const body = { user_id: it.ada.id, reason: 'spam' }
    const { id } = (await it.asBob('POST', '/v1/reports', body)).body
    await it.asRoot('PATCH', `/v1/admin/reports/${id}`, { status: 'resolved' })
    await it.asBob('POST', '/v1/reports', body)
    const again = await it.asRoot('PATCH', `/v1/admin/reports/${id}`, { status: 'open' })
    expect(refusedAs(again)).toEqual([409, 'conflict', 'report_open'])
  })

  test('is in the export of its author, and stays for the desk without their name', async () => {
    const it = await newPeople()
    const body = { user_id: it.ada.id, ...reported }
    const { id } = (await it.asBob('POST', '/v1/reports', body)).body
    await it.block()
    const exported = await it.asBob('GET', '/v1/users/me/export')
    expect(exported.body.reports).toEqual([
      {
        id,
        status: 'open',
        created_at: it.time(),
        user_id: it.ada.id,
        message_id: null,
        reason: 'fraud',
        body: 'Wants money.',
      },
    ])
    const adas = await it.asAda('GET', '/v1/users/me/export')
    expect(adas.body.blocks).toMatchObject([{ user: { id: it.bob.id } }])
    expect(adas.body.reports).toEqual([])
    await it.asBob('DELETE', '/v1/users/me', { password: 'correct horse' })
    const left = (await it.asRoot('GET', `/v1/admin/reports/${id}`)).body
    expect(left.body).toBe('Wants money.')
    expect(left.reporter.display_name).not.toContain('person')
  })
})

test('a report is kept for a year after its resolution', async () => {
  await using it = await open()
  const report = async (id: string) =>
    (await it.asBob('POST', '/v1/reports', { user_id: id, reason: 'spam' })).body.id
  const [resolved, still] = [await report(it.ada.id), await report(it.root.id)]
  await it.asRoot('PATCH', `/v1/admin/reports/${resolved}`, { status: 'resolved' })
  const left = it.service.sqlite.query<{ id: string }, []>('SELECT id FROM reports ORDER BY id')
  it.clock.advance(365 * day)
  it.clock.advance(3_600_000)
  await waitFor(() => left.all().length < 2)
  expect(left.all()).toEqual([{ id: still }])
})

test('an admin can remove any message, but cannot read conversations', async () => {
  const it = await newPeople()
  const { body: said } = await it.asAda('POST', `${it.conversation}/messages`, { body: 'Pay me' })
  expect((await it.asRoot('GET', `${it.conversation}/messages`)).status).toBe(403)
  expect((await it.asBob('DELETE', `/v1/admin/messages/${said.id}`)).status).toBe(403)
  expect((await it.asRoot('DELETE', `/v1/admin/messages/${said.id}`)).status).toBe(204)
  expect((await it.asRoot('DELETE', '/v1/admin/messages/nothing')).status).toBe(404)
  const { data } = (await it.asBob('GET', `${it.conversation}/messages`)).body
  expect(data).toMatchObject([{ id: said.id, body: '', deleted_at: it.time() }])
})
