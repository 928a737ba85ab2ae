import { afterAll, describe, expect, test } from 'bun:test'
import { damageOf } from './support/recount.ts'
import { type Person, startService } from './support/service.ts'
import type { TestSocket } from './support/socket.ts'

const service = await startService({ listen: true })
const key = await service.issueKey(['all', 'messages_as'])
const timid = await service.issueKey(['all'])
afterAll(() => service[Symbol.asyncDispose]())

const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
const refusalOf = ({ status, headers }: { status: number; headers: Headers }) => [
  status,
  headers.get('x-error-reason'),
]
const feed = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  service.call(method, `/v1/service${path}`, { token: key.token, body, headers })
const as = ({ token }: Person, method: string, path: string, body?: unknown) =>
  service.call(method, path, { token, body })
const read = ({ token }: Person, path: string) => service.call('GET', path, { token })
const item = async (person: Person, id: string) =>
  (await read(person, `/v1/chat/conversations/${id}`)).body
const badge = async (person: Person) => (await read(person, '/v1/chat/unread-count')).body.count

async function pairWithSockets() {
  const pair = await service.pair()
  const sockets = [
    await service.connect(pair.a, '&events=changes'),
    await service.connect(pair.b, '&events=changes'),
  ] as const
  return { ...pair, sockets }
}

describe('a notice', () => {
  test('reaches both people as a message of nobody, with the data of the platform', async () => {
    const { a, b, conversationId, sockets } = await pairWithSockets()
    const data = { booking_id: 'b-204', starts_at: '15:00', seats: [1, 2] }
    const answer = await feed('POST', '/messages', {
      conversation_id: conversationId,
      body: 'Moved to 15:00',
      data,
    })
    const notice = {
      id: expect.any(String),
      conversation_id: conversationId,
      sender_id: null,
      body: 'Moved to 15:00',
      type: 'notice',
      file_url: null,
      file_name: null,
      file_size: null,
      file_type: null,
      created_at: time,
      data,
      unread: false,
    }
    expect([answer.status, answer.body]).toEqual([201, notice])
    for (const [n, person] of [a, b].entries()) {
      expect((await sockets[n]?.next('new_message'))?.message).toEqual(answer.body)
      const list = await read(person, `/v1/chat/conversations/${conversationId}/messages`)
      expect(list.body.data).toEqual([answer.body])
      const missed = await read(person, '/v1/chat/messages?since=01JZ0000000000000000000000')
      expect(missed.body.data).toEqual([answer.body])
      const exported = await read(person, '/v1/users/me/export')
      expect(exported.body.messages).toEqual([answer.body])
      expect(await item(person, conversationId)).toMatchObject({
        unread_count: 0,
        last_message: { id: answer.body.id, body: 'Moved to 15:00', type: 'notice' },
      })
    }
    for (const socket of sockets) socket.close()
  })

  test('counts as unread for both with `unread: true`, until each reads it', async () => {
    const { a, b, conversationId } = await service.pair()
    const place = { conversation_id: conversationId, body: 'Paid' }
    await feed('POST', '/messages', place)
    await feed('POST', '/messages', { ...place, unread: true })
    await service.say(a, conversationId, 'hello')
    await feed('POST', '/messages', place)
    const unread = async () => [
      [(await item(a, conversationId)).unread_count, await badge(a)],
      [(await item(b, conversationId)).unread_count, await badge(b)],
    ]
    expect(await unread()).toEqual([
      [1, 1],
      [2, 2],
    ])
    const messages = await read(b, `/v1/chat/conversations/${conversationId}/messages`)
    const upTo = { message_id: messages.body.data[2].id }
    await as(b, 'PUT', `/v1/chat/conversations/${conversationId}/read`, upTo)
    expect((await unread())[1]).toEqual([1, 1])
    await as(a, 'PUT', `/v1/chat/conversations/${conversationId}/read`)
    await as(b, 'PUT', `/v1/chat/conversations/${conversationId}/read`)
    expect(await unread()).toEqual([
      [0, 0],
      [0, 0],
    ])
  })

  test('opens the conversation of two people, named by id or external id', async () => {
    const { a, b } = await service.pair()
    service.sqlite.run('UPDATE users SET external_id = ? WHERE id = ?', [`crm/${a.id}`, a.id])
    const c = await service.register()
    const { body } = await feed('POST', '/messages', {
      user_ids: [`ext:crm/${a.id}`, c.id],
      body: 'Booked',
    })
    const { participants, ...rest } = (await feed('GET', `/conversations/${body.conversation_id}`))
      .body
    expect(rest).toEqual({
      id: body.conversation_id,
      state: 'open',
      data: null,
      created_at: time,
    })
    expect(participants).toContainEqual({
      id: a.id,
      display_name: expect.any(String),
      external_id: `crm/${a.id}`,
    })
    expect(participants).toContainEqual({ id: c.id, display_name: expect.any(String) })
    expect((await item(c, body.conversation_id)).participant.external_id).toBe(`crm/${a.id}`)
    const made = await feed('POST', '/conversations', { user_ids: [c.id, `ext:crm/${a.id}`] })
    expect([made.status, made.body.id]).toEqual([201, body.conversation_id])
    expect((await feed('POST', '/conversations', { user_ids: [b.id, c.id] })).body.id).not.toBe(
      body.conversation_id,
    )
  })

  test('is posted once for a key; other content is a conflict', async () => {
    const { conversationId } = await service.pair()
    const headers = { 'x-idempotency-key': `booking-${conversationId}` }
    const notice = {
      conversation_id: conversationId,
      body: 'Moved',
      data: { at: 15, on: 'Monday' },
    }
    const first = await feed('POST', '/messages', notice, headers)
    const reordered = { ...notice, data: { on: 'Monday', at: 15 } }
    const again = await feed('POST', '/messages', reordered, headers)
    expect([again.status, again.body]).toEqual([201, first.body])
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    for (const change of [{ body: 'Other' }, { data: { at: 16 } }, { unread: true }]) {
      const other = await feed('POST', '/messages', { ...notice, ...change }, headers)
      expect(refusalOf(other)).toEqual([409, 'idempotency_mismatch'])
    }
  })

  test('passes blocks, and a removed or disabled person hinders none', async () => {
    const { a, b, conversationId } = await service.pair()
    await as(a, 'PUT', `/v1/users/blocks/${b.id}`)
    const notice = { conversation_id: conversationId, body: 'Cancelled' }
    expect((await feed('POST', '/messages', notice)).status).toBe(201)
    const c = await service.register()
    await as(c, 'PUT', `/v1/users/blocks/${a.id}`)
    expect((await feed('POST', '/messages', { user_ids: [a.id, c.id], body: 'x' })).status).toBe(
      201,
    )
    await as(b, 'DELETE', '/v1/users/me', { password: 'correct horse' })
    expect((await feed('POST', '/messages', notice)).status).toBe(201)
    const { body } = await read(a, `/v1/chat/conversations/${conversationId}/messages`)
    expect(body.data).toHaveLength(2)
    const shown = await feed('GET', `/conversations/${conversationId}`)
    const gone = { id: b.id, display_name: 'Deleted user' }
    expect([shown.status, shown.body.participants]).toMatchObject([200, [{ id: a.id }, gone]])
  })

  test('is removed by the platform or an admin alone, stays a notice, and counts no more', async () => {
    const { a, b, conversationId, sockets } = await pairWithSockets()
    const place = { conversation_id: conversationId, body: 'Paid', data: { n: 1 }, unread: true }
    const [one, two] = [
      await feed('POST', '/messages', place),
      await feed('POST', '/messages', place),
    ]
    const path = `/v1/chat/conversations/${conversationId}/messages`
    const own = await as(a, 'DELETE', `${path}/${one.body.id}`)
    expect(refusalOf(own)).toEqual([403, 'not_participant'])
    await as(b, 'PUT', `/v1/chat/conversations/${conversationId}/read`, { message_id: one.body.id })
    for (const _ of ['once', 'again']) {
      expect((await feed('DELETE', `/messages/${one.body.id}`)).status).toBe(204)
    }
    const removals = 'SELECT action, actor_type FROM audit_log WHERE target_id = ?'
    expect(service.sqlite.query(removals).values(one.body.id)).toEqual([
      ['message_removed', 'service_key'],
    ])
    const root = await service.registerAs('admin')
    await as(root, 'DELETE', `/v1/admin/messages/${two.body.id}`)
    expect([await badge(a), await badge(b)]).toEqual([0, 0])
    const { data: _, ...left } = { ...one.body, body: '', deleted_at: time }
    expect((await read(a, path)).body.data[1]).toEqual(left)
    for (const socket of sockets) {
      expect((await socket.next('message_deleted')).message_id).toBe(one.body.id)
      socket.close()
    }
    const said = await service.say(a, conversationId, 'mine')
    expect(refusalOf(await feed('DELETE', `/messages/${said.body.id}`))).toEqual([
      403,
      'not_participant',
    ])
    expect((await feed('DELETE', `/messages/${conversationId}`)).status).toBe(404)
    expect(damageOf(service.sqlite)).toEqual([])
  })

  test('cannot be reported, and stands in the excerpt of a report', async () => {
    const { a, b, conversationId } = await service.pair()
    const notice = await feed('POST', '/messages', { conversation_id: conversationId, body: 'N' })
    const said = await service.say(b, conversationId, 'rude')
    const refused = await as(a, 'POST', '/v1/reports', {
      message_id: notice.body.id,
      reason: 'spam',
    })
    expect([refused.status, refused.body.error.details]).toEqual([
      400,
      { message_id: 'must be a message of a person' },
    ])
    const report = { message_id: said.body.id, reason: 'harassment' }
    const { body } = await as(a, 'POST', '/v1/reports', report)
    const root = await service.registerAs('admin')
    const shown = await read(root, `/v1/admin/reports/${body.id}`)
    expect(shown.body.messages).toEqual([notice.body, said.body])
  })

  const nowhere = '01ARZ3NDEKTSV4RRFFQ69G5FAV'
  test.each([
    [{ body: 'x' }, 400, 'conversation_id'],
    [{ body: 'x', conversation_id: nowhere, user_ids: [nowhere, nowhere] }, 400, 'conversation_id'],
    [{ body: 'x', conversation_id: nowhere }, 404, undefined],
    [{ body: 'x', conversation_id: 'nonsense' }, 404, undefined],
    [{ body: 'x', user_ids: ['a', nowhere] }, 400, 'user_ids.0'],
    [{ body: 'x', user_ids: ['ext:nobody', nowhere] }, 400, 'user_ids.0,user_ids.1'],
    [{ body: 'x', user_ids: [nowhere] }, 400, 'user_ids'],
    [{ body: ' ', conversation_id: nowhere }, 400, 'body'],
    [{ body: 'x', conversation_id: nowhere, data: 'text' }, 400, 'data'],
    [{ body: 'x', conversation_id: nowhere, data: [1] }, 400, 'data'],
    [{ body: 'x', conversation_id: nowhere, data: { a: 'x'.repeat(4_090) } }, 400, 'data'],
    [{ body: 'x', conversation_id: nowhere, unread: 'yes' }, 400, 'unread'],
  ])('%j is refused', async (body, status, fields) => {
    const answer = await feed('POST', '/messages', body)
    const details = Object.keys(answer.body.error.details ?? {}).sort()
    expect([answer.status, details.join() || undefined]).toEqual([status, fields])
  })

  test('has up to 4 KiB of data', async () => {
    const [a, b] = [await service.register(), await service.register()]
    const most = { a: 'x'.repeat(4_096 - '{"a":""}'.length) }
    const body = { user_ids: [a.id, b.id], body: 'x', data: most }
    expect((await feed('POST', '/messages', body)).status).toBe(201)
  })

  test('with oneself is refused', async () => {
    const a = await service.register()
    const { status, body } = await feed('POST', '/messages', { user_ids: [a.id, a.id], body: 'x' })
    expect([status, body.error.details]).toEqual([400, { 'user_ids.1': 'must be another user' }])
  })
})

describe('a message in the name of a participant', () => {
  test('is one of theirs, with data, and needs a scope of its own', async () => {
    const { a, b, conversationId } = await service.pair()
    const body = { conversation_id: conversationId, body: 'Hi', from: a.id, data: { n: 1 } }
    const headers = { 'x-idempotency-key': `as-${conversationId}` }
    const refused = await service.call('POST', '/v1/service/messages', { ...timid, body })
    expect(refusalOf(refused)).toEqual([403, 'scope_required'])
    expect(refused.body.error.message).toContain('messages_as')
    const sent = await feed('POST', '/messages', body, headers)
    expect(sent.body).toMatchObject({ sender_id: a.id, type: 'text', body: 'Hi', data: { n: 1 } })
    expect((await feed('POST', '/messages', body, headers)).body).toEqual(sent.body)
    expect([await badge(a), await badge(b)]).toEqual([0, 1])
    const audited = service.sqlite
      .query('SELECT action, actor_type FROM audit_log WHERE target_id = ?')
      .all(sent.body.id)
    expect(audited).toEqual([{ action: 'message_sent_as', actor_type: 'service_key' }])
  })

  test.each<[string, (root: Person, person: Person) => Promise<{ status: number }>]>([
    ['disabled', (root, { id }) => as(root, 'PATCH', `/v1/admin/users/${id}`, { disabled: true })],
    ['an admin', (root, { id }) => as(root, 'PATCH', `/v1/admin/users/${id}`, { role: 'admin' })],
    ['removed', (_, it) => as(it, 'DELETE', '/v1/users/me', { password: 'correct horse' })],
  ])('is answered again when they are %s by then', async (_, change) => {
    const { a, b, conversationId } = await service.pair()
    const root = await service.registerAs('admin')
    const notice = { user_ids: [a.id, b.id], body: 'Hi' }
    const body = { conversation_id: conversationId, body: 'Hi', from: a.id }
    const sendAll = () =>
      Promise.all(
        [body, { ...notice, from: a.id }, notice].map((message, n) =>
          feed('POST', '/messages', message, { 'x-idempotency-key': `${n}-${conversationId}` }),
        ),
      )
    const first = await sendAll()
    expect((await change(root, a)).status).toBeLessThan(300)
    const again = await sendAll()
    expect(again.map((answer) => [answer.status, answer.body])).toEqual(
      first.map((answer) => [201, answer.body]),
    )
    expect((await feed('POST', '/messages', body)).status).toBeGreaterThanOrEqual(400)
  })

  test('follows the rules for theirs', async () => {
    const { a, b, conversationId } = await service.pair()
    const c = await service.register()
    const body = { conversation_id: conversationId, body: 'Hi', from: c.id }
    const refused = await feed('POST', '/messages', body)
    expect([refused.status, refused.body.error.details]).toEqual([
      400,
      { from: 'must be one of the two people' },
    ])
    const root = await service.registerAs('admin')
    const [gone, off] = [await service.register(), await service.register()]
    for (const person of [gone, off]) {
      const conversation_id = await service.openConversation(a, person)
      if (person === gone) await as(gone, 'DELETE', '/v1/users/me', { password: 'correct horse' })
      else await as(root, 'PATCH', `/v1/admin/users/${off.id}`, { disabled: true })
      const inTheirName = { conversation_id, body: 'Hi', from: person.id }
      const { status, body } = await feed('POST', '/messages', inTheirName)
      expect([status, body.error?.details]).toEqual([400, { from: 'must be an existing user' }])
      expect((await item(a, conversation_id)).last_message).toBe(null)
    }
    const withRoot = await service.openConversation(a, root)
    const inItsName = { ...body, conversation_id: withRoot, from: root.id }
    expect(refusalOf(await feed('POST', '/messages', inItsName))).toEqual([403, 'role_required'])
    await as(b, 'PUT', `/v1/users/blocks/${a.id}`)
    expect(refusalOf(await feed('POST', '/messages', { ...body, from: a.id }))).toEqual([
      403,
      'blocked',
    ])
  })
})

describe('the state of a conversation', () => {
  test('read-only refuses every sender, while reading and notices go on', async () => {
    const { a, b, conversationId } = await service.pair()
    const path = `/conversations/${conversationId}`
    const closed = await feed('PATCH', path, { state: 'read_only' })
    expect([closed.status, closed.body.state]).toEqual([200, 'read_only'])
    expect(refusalOf(await service.say(a, conversationId, 'x'))).toEqual([403, 'read_only'])
    const socket = await service.connect(b)
    socket.send({ type: 'message', conversation_id: conversationId, body: 'x' })
    expect(await socket.next('error')).toMatchObject({ reason: 'read_only' })
    socket.close()
    const message = { conversation_id: conversationId, body: 'x' }
    const inName = await feed('POST', '/messages', { ...message, from: a.id })
    expect(refusalOf(inName)).toEqual([403, 'read_only'])
    expect((await feed('POST', '/messages', { ...message, unread: true })).status).toBe(201)
    expect((await as(b, 'PUT', `/v1/chat${path}/read`)).status).toBe(204)
    expect(await badge(b)).toBe(0)
    await feed('PATCH', path, { state: 'open' })
    expect((await service.say(a, conversationId, 'x')).status).toBe(201)
  })

  test('is not written to by a broadcast either', async () => {
    const host = await service.registerAs('host')
    const fans = [await service.register(), await service.register()]
    for (const { id } of fans) await feed('PUT', `/follows/${host.id}/${id}`)
    const closed = await service.openConversation(host, fans[0] ?? host)
    await feed('PATCH', `/conversations/${closed}`, { state: 'read_only' })
    const sent = await as(host, 'POST', '/v1/chat/broadcast', { body: 'News' })
    expect(sent.body).toMatchObject({ recipients_count: 1, status: 'completed' })
    expect((await item(host, closed)).last_message).toBe(null)
  })

  test('and its data are shown to both at once, in lists and exports', async () => {
    const { a, b, conversationId, sockets } = await pairWithSockets()
    const data = { booking_id: 'b-1', until: '2026-12-01' }
    const patch = (body: object) => feed('PATCH', `/conversations/${conversationId}`, body)
    expect((await patch({ data, state: 'read_only' })).body).toMatchObject({ data })
    for (const [n, person] of [a, b].entries()) {
      const { conversation } = (await sockets[n]?.next('conversation_updated')) ?? {}
      expect(conversation).toEqual(await item(person, conversationId))
      expect(conversation).toMatchObject({
        data,
        state: 'read_only',
        may_send: false,
        may_send_reason: 'read_only',
      })
      const list = await read(person, '/v1/chat/conversations')
      expect(list.body.data[0]).toEqual(conversation)
      const exported = await read(person, '/v1/users/me/export')
      expect(exported.body.conversations[0]).toMatchObject({ data, state: 'read_only' })
    }
    expect((await patch({ state: 'open' })).body).toMatchObject({ data, state: 'open' })
    await patch({ state: 'open' })
    expect((await patch({ data: null })).body).toMatchObject({ data: null, state: 'open' })
    for (const socket of sockets) {
      await socket.settled()
      const updates = socket.frames.filter(({ type }) => type === 'conversation_updated')
      expect(updates.map(({ conversation }) => [conversation.state, conversation.data])).toEqual([
        ['open', data],
        ['open', null],
      ])
      socket.close()
    }
  })

  test.each([
    [{ state: 'closed' }, 'state'],
    [{ data: 'text' }, 'data'],
    [{ data: { a: 'x'.repeat(4_096) } }, 'data'],
    [{ data: { a: [{ b: '\ud800' }] } }, 'data'],
    [{ data: { '\u0000': 1 } }, 'data'],
    [{ state: null }, 'body'],
  ])('%j is refused', async (body, field) => {
    const { conversationId } = await service.pair()
    const answer = await feed('PATCH', `/conversations/${conversationId}`, body)
    expect([answer.status, Object.keys(answer.body.error.details)]).toEqual([400, [field]])
  })

  test('of an unknown conversation is a 404', async () => {
    for (const method of ['GET', 'PATCH']) {
      const body = method === 'GET' ? undefined : { state: 'open' }
      const answer = await feed(method, '/conversations/x', body)
      expect(answer.status).toBe(404)
    }
  })
})

describe('whether one may send', () => {
  const reasonOf = async (person: Person, id: string) => {
    const { may_send, may_send_reason } = await item(person, id)
    expect(may_send).toBe(may_send_reason === null)
    return may_send_reason
  }

  test('is shown for one conversation, with the first reason', async () => {
    const { a, b, conversationId } = await service.pair()
    expect(await reasonOf(a, conversationId)).toBe(null)
    await feed('PATCH', `/conversations/${conversationId}`, { state: 'read_only' })
    expect(await reasonOf(a, conversationId)).toBe('read_only')
    await as(b, 'PUT', `/v1/users/blocks/${a.id}`)
    expect(await reasonOf(a, conversationId)).toBe('blocked')
    await as(b, 'DELETE', '/v1/users/me', { password: 'correct horse' })
    expect(await reasonOf(a, conversationId)).toBe('recipient_gone')
    expect(refusalOf(await service.say(a, conversationId, 'x'))).toEqual([403, 'recipient_gone'])
  })

  const reasonsAt = (sockets: readonly TestSocket[]) =>
    Promise.all(
      sockets.map(async (socket) => {
        const { conversation } = await socket.next('conversation_updated')
        return conversation.may_send_reason
      }),
    )

  test('changes for both when the first of them blocks, and when the last unblocks', async () => {
    const { a, b, sockets } = await pairWithSockets()
    await as(a, 'DELETE', `/v1/users/blocks/${b.id}`)
    await as(a, 'PUT', `/v1/users/blocks/${b.id}`)
    expect(await reasonsAt(sockets)).toEqual(['blocked', 'blocked'])
    await as(b, 'PUT', `/v1/users/blocks/${a.id}`)
    await as(a, 'DELETE', `/v1/users/blocks/${b.id}`)
    await as(b, 'DELETE', `/v1/users/blocks/${a.id}`)
    expect(await reasonsAt(sockets)).toEqual([null, null])
    for (const socket of sockets) socket.close()
  })

  test('changes for everybody who talks with a person that is disabled, enabled or removed', async () => {
    const person = await service.register()
    const others = await Promise.all([service.register(), service.register()])
    const sockets: TestSocket[] = []
    for (const other of others) {
      await service.openConversation(person, other)
      sockets.push(await service.connect(other, '&events=changes'))
    }
    const user = `/users/${person.id}`
    await feed('PATCH', user, { disabled: true })
    expect(await reasonsAt(sockets)).toEqual(['recipient_gone', 'recipient_gone'])
    await feed('PATCH', user, { disabled: false })
    expect(await reasonsAt(sockets)).toEqual([null, null])
    await feed('DELETE', user)
    for (const socket of sockets) {
      const { conversation } = await socket.next('conversation_updated')
      expect(conversation).toMatchObject({
        participant: { id: person.id, display_name: 'Deleted user' },
        may_send_reason: 'recipient_gone',
      })
      await socket.settled()
      expect(socket.frames).toEqual([])
      socket.close()
    }
  })

  test('follows the calls of the two, where messages need one', async () => {
    await using strict = await startService({
      listen: true,
      environment: { CHAT_REQUIRE_ACTIVE_CALL: 'true' },
    })
    const { token } = await strict.issueKey()
    const { a, b, conversationId } = await strict.pair()
    const root = await strict.registerAs('admin')
    const withRoot = await strict.openConversation(a, root)
    const socket = await strict.connect(b, '&events=changes')
    const shown = async (id: string, person: Person) =>
      (await strict.call('GET', `/v1/chat/conversations/${id}`, person)).body.may_send_reason
    expect(await shown(conversationId, a)).toBe('no_active_call')
    expect([await shown(withRoot, a), await shown(withRoot, root)]).toEqual([
      'no_active_call',
      null,
    ])
    for (const [state, reason] of [
      ['active', null],
      ['ended', 'no_active_call'],
    ]) {
      const body = { state, host_id: a.id, guest_id: b.id }
      await strict.call('PUT', '/v1/service/calls/c-1', { token, body })
      const { conversation } = await socket.next('conversation_updated')
      expect(conversation).toMatchObject({ id: conversationId, may_send_reason: reason })
      expect(await shown(conversationId, b)).toBe(reason)
    }
    const notice = { conversation_id: conversationId, body: 'The call took 24 minutes' }
    const posted = await strict.call('POST', '/v1/service/messages', { token, body: notice })
    expect(posted.status).toBe(201)
  })

  test('is for the two people alone', async () => {
    const { conversationId } = await service.pair()
    const c = await service.register()
    const path = `/v1/chat/conversations/${conversationId}`
    expect(refusalOf(await read(c, path))).toEqual([403, 'not_participant'])
    expect((await read(c, '/v1/chat/conversations/x')).status).toBe(404)
  })
})
