import { describe, expect, test } from 'bun:test'
import { createTestClock } from './support/clock.ts'
import { damageOf } from './support/recount.ts'
import { type Person, startService, type TestService } from './support/service.ts'
import { shared } from './support/shared.ts'

const anyService = shared(() => startService())

const ulid = expect.stringMatching(/^[0-9A-HJKMNP-TV-Z]{26}$/)
const timestamp = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
const unknownId = '01ARZ3NDEKTSV4RRFFQ69G5FAV'
const picture = {
  file_url: 'https://files.example.com/a.png',
  file_name: 'a.png',
  file_size: 1_234,
  file_type: 'image/png',
}

function uuidOf(id: string) {
  const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
  const bits = [...id].reduce((sum, c) => sum * 32n + BigInt(alphabet.indexOf(c)), 0n)
  const hex = bits.toString(16).padStart(32, '0')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

describe('opening a conversation', () => {
  test('answers 201 with the conversation, from either side and again', async () => {
    const service = await anyService()
    const [ada, bob] = [await service.register('ada'), await service.register('bob')]
    const open = (from: typeof ada, to: typeof ada) =>
      service.call('POST', '/v1/chat/conversations', {
        token: from.token,
        body: { user_id: to.id },
      })
    const first = await open(ada, bob)
    expect(first.status).toBe(201)
    expect(first.body).toEqual({
      id: ulid,
      participant: { id: bob.id, display_name: 'bob' },
      unread_count: 0,
      created_at: timestamp,
    })
    expect(await open(ada, bob)).toMatchObject({ status: 201, body: first.body })
    const participant = { id: ada.id, display_name: 'ada' }
    expect((await open(bob, ada)).body).toEqual({ ...first.body, participant })
  })

  test('accepts the UUID form of an id, and both forms in either case', async () => {
    const service = await anyService()
    const [ada, bob] = [await service.register(), await service.register()]
    const ids = [bob.id, bob.id.toLowerCase(), uuidOf(bob.id), uuidOf(bob.id).toUpperCase()]
    const answers = await Promise.all(
      ids.map((user_id) =>
        service.call('POST', '/v1/chat/conversations', { token: ada.token, body: { user_id } }),
      ),
    )
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201])
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1)
  })

  test('by two people at once creates one conversation', async () => {
    const service = await anyService()
    const [ada, bob] = [await service.register(), await service.register()]
    const ids = await Promise.all([
      service.openConversation(ada, bob),
      service.openConversation(bob, ada),
      service.openConversation(ada, bob),
    ])
    expect(new Set(ids).size).toBe(1)
  })

  test.each([
    ['nobody', unknownId, 404, null],
    ['no id', 'someone', 400, { user_id: 'must be a valid identifier' }],
    [
      'an overflowing id',
      '8ZZZZZZZZZZZZZZZZZZZZZZZZZ',
      400,
      { user_id: 'must be a valid identifier' },
    ],
    ['a number', 5, 400, { user_id: 'must be a text' }],
    ['nothing', undefined, 400, { user_id: 'is required' }],
  ])('with %s is refused', async (_, user_id, status, details) => {
    const service = await anyService()
    const { token } = await service.register()
    const answer = await service.call('POST', '/v1/chat/conversations', {
      token,
      body: { user_id },
    })
    expect([answer.status, answer.body.error.details]).toEqual([status, details])
  })

  test('with oneself is refused', async () => {
    const service = await anyService()
    const { token, id: user_id } = await service.register()
    const answer = await service.call('POST', '/v1/chat/conversations', {
      token,
      body: { user_id },
    })
    expect(answer.body.error.details).toEqual({ user_id: 'must be another user' })
  })
})

describe('the conversation list', () => {
  test('shows an empty conversation to both', async () => {
    const service = await anyService()
    const { a, b, conversationId } = await service.pair()
    for (const [me, other] of [
      [a, b],
      [b, a],
    ] as const) {
      const { body } = await service.call('GET', '/v1/chat/conversations', { token: me.token })
      expect(body).toEqual({
        success: true,
        data: [
          {
            id: conversationId,
            participant: {
              id: other.id,
              display_name: expect.any(String),
              avatar_url: expect.stringMatching(/^http:\/\/localhost:0\/v1\/avatars\/\d+\/P\.svg$/),
            },
            last_message: null,
            unread_count: 0,
            participant_read_up_to: null,
            first_seq: 1,
            muted: false,
            archived: false,
            may_send: true,
            may_send_reason: null,
            state: 'open',
            data: null,
            updated_at: timestamp,
          },
        ],
        pagination: { page: 1, per_page: 20, total: 1, total_pages: 1 },
      })
    }
  })

  test('is sorted by most recent activity, which reading is not', async () => {
    const clock = createTestClock()
    await using service = await startService({ clock })
    const ada = await service.register('ada')
    const ids: string[] = []
    for (const name of ['bob', 'cleo', 'dan']) {
      clock.advance(1_000)
      ids.push(await service.openConversation(ada, await service.register(name)))
    }
    clock.advance(1_000)
    const sent = await service.say(ada, ids[0] ?? '', 'hello')
    clock.advance(1_000)
    await service.call('PUT', `/v1/chat/conversations/${ids[1]}/read`, { token: ada.token })
    const { body } = await service.call('GET', '/v1/chat/conversations', { token: ada.token })
    expect(body.data.map(({ id }: { id: string }) => id)).toEqual([ids[0], ids[2], ids[1]])
    expect(body.data[0].last_message).toEqual({
      id: sent.body.id,
      body: 'hello',
      type: 'text',
      sent_at: timestamp,
    })
    expect(body.data[0].updated_at).toBe(body.data[0].last_message.sent_at)
  })

  test('by cursor shows each conversation once while others move up', async () => {
    const clock = createTestClock()
    await using service = await startService({ clock })
    const ada = await service.register('ada')
    const ids: string[] = []
    for (let n = 0; n < 5; n++) {
      clock.advance(1_000)
      ids.unshift(await service.openConversation(ada, await service.register()))
    }
    const page = async (query: string) =>
      (await service.call('GET', `/v1/chat/conversations?${query}`, { token: ada.token })).body
    const first = await page('limit=2')
    expect(first.pagination).toEqual({ cursor: expect.any(String), has_more: true, limit: 2 })
    expect(first).not.toHaveProperty('success')
    await service.openConversation(ada, await service.register())
    clock.advance(1_000)
    await service.say(ada, ids[1] ?? '', 'moves up')
    const second = await page(`limit=2&cursor=${first.pagination.cursor}`)
    const third = await page(`limit=2&cursor=${second.pagination.cursor}`)
    const seen = [first, second, third].flatMap(({ data }) => data.map((c: { id: string }) => c.id))
    expect(seen).toEqual(ids)
    expect(third.pagination).toEqual({ cursor: null, has_more: false, limit: 2 })
  })

  test('leaves archived ones out, with the badge, until their next message', async () => {
    await using service = await startService()
    const [a, b, c] = [await service.register(), await service.register(), await service.register()]
    const [ab, ac] = [await service.openConversation(a, b), await service.openConversation(a, c)]
    for (const [from, id] of [
      [b, ab],
      [b, ab],
      [c, ac],
    ] as const)
      await service.say(from, id, 'hello')
    const archive = (method: string) =>
      service.call(method, `/v1/chat/conversations/${ab}/archive`, { token: a.token })
    const shown = async (query = '') => {
      const list = await service.call('GET', `/v1/chat/conversations${query}`, { token: a.token })
      const ids = list.body.data.map(({ id }: { id: string }) => id)
      expect(list.body.pagination.total).toBe(ids.length)
      return ids
    }
    const badge = async () =>
      (await service.call('GET', '/v1/chat/unread-count', { token: a.token })).body.count
    for (const _ of ['once', 'again']) expect((await archive('PUT')).status).toBe(204)
    expect([await shown(), await shown('?archived=true'), await badge()]).toEqual([[ac], [ab], 1])
    const exported = await service.call('GET', '/v1/users/me/export', { token: a.token })
    expect(exported.body.conversations.map(({ id }: { id: string }) => id)).toEqual([ab, ac])
    expect(
      (await service.call('GET', '/v1/chat/messages', { token: a.token })).body.data,
    ).toHaveLength(3)
    await service.call('PUT', `/v1/chat/conversations/${ab}/read`, { token: a.token })
    for (const _ of ['once', 'again']) expect((await archive('DELETE')).status).toBe(204)
    expect([await shown(), await badge()]).toEqual([[ac, ab], 1])
    await service.say(b, ab, 'hello')
    await archive('PUT')
    expect([await shown(), await badge()]).toEqual([[ac], 1])
    await service.say(b, ab, 'hello')
    expect([await shown(), await shown('?archived=true'), await badge()]).toEqual([[ab, ac], [], 3])
    expect(damageOf(service.sqlite)).toEqual([])
  })

  test('and other devices follow what one of them mutes or archives', async () => {
    await using service = await startService({ listen: true })
    const { a, b, conversationId } = await service.pair()
    const [own, other] = [
      await service.connect(a, '&events=changes'),
      await service.connect(b, '&events=changes'),
    ]
    const path = `/v1/chat/conversations/${conversationId}`
    for (const state of ['archive', 'mute']) {
      await service.call('PUT', `${path}/${state}`, { token: a.token })
    }
    const seen = async () => (await own.next('conversation_updated')).conversation
    expect(await seen()).toMatchObject({ id: conversationId, archived: true, muted: false })
    expect(await seen()).toMatchObject({ archived: true, muted: true })
    await other.settled()
    expect(other.frames).toEqual([])
    own.close()
    other.close()
    const c = await service.register()
    const refused = await service.call('PUT', `${path}/archive`, { token: c.token })
    expect(refused.status).toBe(403)
  })

  test('and every device of both follow what one of the two or the platform opens, once', async () => {
    await using service = await startService({ listen: true })
    const [a, b] = [await service.register(), await service.register()]
    const { token } = await service.issueKey()
    const platformOpens = (one: Person, other: Person) =>
      service.call('POST', '/v1/service/conversations', {
        token,
        body: { user_ids: [one.id, other.id] },
      })
    for (const open of [service.openConversation, platformOpens]) {
      const c = await service.register()
      const people = [a, a, c]
      const sockets = await Promise.all(people.map((it) => service.connect(it, '&events=changes')))
      await open(a, c)
      await open(c, a)
      await open(b, c)
      for (const [n, { token }] of people.slice(0, 2).entries()) {
        const { body } = await service.call('GET', '/v1/chat/conversations', { token })
        await sockets[n]?.settled()
        expect(sockets[n]?.frames).toEqual([
          { type: 'conversation_updated', conversation: body.data[0] },
        ])
      }
      await sockets[2]?.settled()
      expect(sockets[2]?.frames.map(({ conversation }) => conversation.participant.id)).toEqual([
        a.id,
        b.id,
      ])
      for (const socket of sockets) socket.close()
    }
  })

  test('never shows the conversations of others', async () => {
    const service = await anyService()
    const { a, conversationId } = await service.pair()
    await service.say(a, conversationId, 'between us')
    const eve = await service.register('eve')
    const { body } = await service.call('GET', '/v1/chat/conversations', { token: eve.token })
    expect(body).toMatchObject({ data: [], pagination: { total: 0, total_pages: 0 } })
  })
})

describe('sending', () => {
  test('answers 201 with the stored message', async () => {
    const service = await anyService()
    const { a, conversationId } = await service.pair()
    const text = '  as it came, 🙂 \n'
    const answer = await service.say(a, conversationId, text)
    expect(answer.status).toBe(201)
    expect(answer.body).toEqual({
      id: ulid,
      conversation_id: conversationId,
      sender_id: a.id,
      body: text,
      type: 'text',
      file_url: null,
      file_name: null,
      file_size: null,
      file_type: null,
      created_at: timestamp,
    })
  })

  test('a file keeps its four fields, and its body may be blank', async () => {
    const service = await anyService()
    const { a, conversationId } = await service.pair()
    const path = `/v1/chat/conversations/${conversationId}/messages`
    const body = { body: '\u200b', type: 'file', ...picture }
    const answer = await service.call('POST', path, { token: a.token, body })
    expect([answer.status, answer.body]).toEqual([201, expect.objectContaining(body)])
  })

  test('null counts as absent, so a response can be sent as a request', async () => {
    const service = await anyService()
    const { a, conversationId } = await service.pair()
    const { body: first } = await service.say(a, conversationId, 'hello')
    const path = `/v1/chat/conversations/${conversationId}/messages`
    const again = await service.call('POST', path, {
      token: a.token,
      body: { ...first, client_id: null },
    })
    expect([again.status, again.body.body, again.body.id !== first.id]).toEqual([
      201,
      'hello',
      true,
    ])
  })

  test('a text drops the fields of a file and fields that only the service sets', async () => {
    const service = await anyService()
    const { a, b, conversationId } = await service.pair()
    const path = `/v1/chat/conversations/${conversationId}/messages`
    const body = { body: 'hi', ...picture, sender_id: b.id, id: unknownId, created_at: 'never' }
    const { body: message } = await service.call('POST', path, { token: a.token, body })
    expect(message).toMatchObject({
      sender_id: a.id,
      file_url: null,
      file_size: null,
      file_type: null,
    })
    expect(message.id).not.toBe(unknownId)
  })

  test.each([
    [{}, { body: 'is required' }],
    [{ body: '' }, { body: 'must not be empty' }],
    [{ body: ' \n\t ' }, { body: 'must not be empty' }],
    [{ body: '\u200b\u3164' }, { body: 'must not be empty' }],
    [{ body: 'x'.repeat(5_001) }, { body: 'must have at most 5000 characters' }],
    [
      { body: 'a\0b' },
      {
        body: 'must be well-formed Unicode without control characters other than tab and line breaks',
      },
    ],
    [
      { body: 'a\udc00b' },
      {
        body: 'must be well-formed Unicode without control characters other than tab and line breaks',
      },
    ],
    [{ body: 'a', type: 'video' }, { type: 'must be one of: text, file' }],
    [{ body: '', type: 'file' }, { file_url: 'is required' }],
    [{ type: 'file' }, { body: 'is required', file_url: 'is required' }],
    ...[
      'javascript:alert(1)',
      'https://files.example.com@evil.example/a',
      'https://files.example.com/\u202egnp.exe',
      'https://files.example.com/\u2066a',
    ].map(
      (file_url) =>
        [
          { body: '', type: 'file', file_url },
          { file_url: 'must be an http or https address' },
        ] as const,
    ),
    [{ body: 'a', file_size: 1.5 }, { file_size: 'must be a whole number' }],
    [{ body: 'a', file_size: '5' }, { file_size: 'must be a whole number' }],
    [{ body: 'a', file_size: -1 }, { file_size: 'must be at least 0' }],
    [{ body: 'a', file_name: 'n'.repeat(256) }, { file_name: 'must have at most 255 characters' }],
    [
      { body: 'a', file_name: 'exe.\u202egnp' },
      { file_name: 'must not contain control or format characters' },
    ],
    [{ body: 'a', file_type: 'image' }, { file_type: 'must be a media type such as image/png' }],
    [{ body: 'a', client_id: '' }, { client_id: 'must not be empty' }],
    [{ body: 'a', client_id: 'c'.repeat(65) }, { client_id: 'must have at most 64 characters' }],
    [[], { body: 'must be an object' }],
  ])('refuses %j', async (body, details) => {
    const service = await anyService()
    const { a, conversationId } = await service.pair()
    const path = `/v1/chat/conversations/${conversationId}/messages`
    const answer = await service.call('POST', path, { token: a.token, body })
    expect([answer.status, answer.body.error.details]).toEqual([400, details])
  })

  test('accepts 5,000 code points of any plane', async () => {
    const service = await anyService()
    const { a, conversationId } = await service.pair()
    expect((await service.say(a, conversationId, '🙂'.repeat(5_000))).status).toBe(201)
  })
})

describe('idempotency', () => {
  test('the same key and content returns the first response and stores one message', async () => {
    const service = await anyService()
    const { a, conversationId } = await service.pair()
    const path = `/v1/chat/conversations/${conversationId}/messages`
    const call = { token: a.token, body: { body: 'once', client_id: 'k' } }
    const first = await service.call('POST', path, call)
    const again = await service.call('POST', path, call)
    expect(first.headers.has('idempotent-replayed')).toBe(false)
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect([again.status, again.body]).toEqual([201, first.body])
    expect((await service.call('GET', path, { token: a.token })).body.pagination.total).toBe(1)
  })

  test('20 parallel sends with one key store one message', async () => {
    const service = await anyService()
    const { a, conversationId } = await service.pair()
    const path = `/v1/chat/conversations/${conversationId}/messages`
    const body = { body: 'once', client_id: 'k' }
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => service.call('POST', path, { token: a.token, body })),
    )
    expect(new Set(answers.map((answer) => answer.body.id)).size).toBe(1)
    expect(answers.filter(({ headers }) => !headers.has('idempotent-replayed'))).toHaveLength(1)
  })

  test('client_id and X-Idempotency-Key are one key, and client_id wins', async () => {
    const service = await anyService()
    const { a, conversationId } = await service.pair()
    const path = `/v1/chat/conversations/${conversationId}/messages`
    const post = (body: object, key?: string) =>
      service.call('POST', path, {
        token: a.token,
        body,
        headers: key === undefined ? {} : { 'x-idempotency-key': key },
      })
    const first = await post({ body: 'once', client_id: 'k' }, 'other')
    expect((await post({ body: 'once' }, 'k')).body.id).toBe(first.body.id)
    expect((await post({ body: 'once' }, 'other')).body.id).not.toBe(first.body.id)
    const tooLong = await post({ body: 'once' }, 'k'.repeat(65))
    expect(tooLong.body.error.details).toEqual({
      'X-Idempotency-Key': 'must have at most 64 characters',
    })
  })

  test('other content or another conversation is a conflict; each sender has keys of their own', async () => {
    const service = await anyService()
    const { a, b, conversationId } = await service.pair()
    const elsewhere = await service.openConversation(a, await service.register())
    const post = (who: typeof a, id: string, body: object) =>
      service.call('POST', `/v1/chat/conversations/${id}/messages`, { token: who.token, body })
    await post(a, conversationId, { body: 'once', client_id: 'k' })
    const answers = [
      await post(a, conversationId, { body: 'twice', client_id: 'k' }),
      await post(a, conversationId, { body: 'once', client_id: 'k', type: 'file', ...picture }),
      await post(a, elsewhere, { body: 'once', client_id: 'k' }),
      await post(b, conversationId, { body: 'once', client_id: 'k' }),
    ]
    expect(answers.map(({ status }) => status)).toEqual([409, 409, 409, 201])
  })
})

describe('reading messages', () => {
  test('numbered pages are newest first, without gaps, and counted', async () => {
    const service = await anyService()
    const { a, b, conversationId } = await service.pair()
    for (let n = 1; n <= 7; n++) await service.say(n % 2 ? a : b, conversationId, `message ${n}`)
    const path = `/v1/chat/conversations/${conversationId}/messages`
    const page = async (query: string) => {
      const { body } = await service.call('GET', `${path}?${query}`, { token: b.token })
      return [body.data.map((m: { body: string }) => Number(m.body.slice(8))), body.pagination]
    }
    expect(await page('')).toEqual([
      [7, 6, 5, 4, 3, 2, 1],
      { page: 1, per_page: 50, total: 7, total_pages: 1 },
    ])
    expect(await page('per_page=3&page=2')).toEqual([
      [4, 3, 2],
      { page: 2, per_page: 3, total: 7, total_pages: 3 },
    ])
    expect(await page('per_page=3&page=3')).toEqual([
      [1],
      { page: 3, per_page: 3, total: 7, total_pages: 3 },
    ])
    expect(await page('per_page=3&page=4')).toEqual([
      [],
      { page: 4, per_page: 3, total: 7, total_pages: 3 },
    ])
    expect(await page('per_page=1000')).toMatchObject([{}, { per_page: 100 }])
    expect(await page('page=999999999999999')).toMatchObject([[], { total: 7 }])
  })

  test('by cursor no message is missed or duplicated while others arrive', async () => {
    const service = await anyService()
    const { a, conversationId } = await service.pair()
    for (let n = 1; n <= 5; n++) await service.say(a, conversationId, `${n}`)
    const seen: string[] = []
    let query = 'limit=2'
    for (let cursor: string | null = ''; cursor !== null; query = `limit=2&cursor=${cursor}`) {
      const path = `/v1/chat/conversations/${conversationId}/messages?${query}`
      const { body } = await service.call('GET', path, { token: a.token })
      seen.push(...body.data.map((m: { body: string }) => m.body))
      cursor = body.pagination.cursor
      await service.say(a, conversationId, 'new')
    }
    expect(seen).toEqual(['5', '4', '3', '2', '1'])
  })

  test('a cursor before messages that a restore has undone continues with the newest one left', async () => {
    const service = await anyService()
    const { a, conversationId } = await service.pair()
    for (let n = 1; n <= 7; n++) await service.say(a, conversationId, `${n}`)
    const path = `/v1/chat/conversations/${conversationId}/messages?limit=2`
    const page = async (more = '') =>
      (await service.call('GET', path + more, { token: a.token })).body
    const { cursor } = (await page()).pagination
    service.sqlite.run('DELETE FROM messages WHERE conversation_id = ? AND seq > 4', [
      conversationId,
    ])
    service.sqlite.run('UPDATE conversations SET last_seq = 4 WHERE id = ?', [conversationId])
    const { data, pagination } = await page(`&cursor=${cursor}`)
    expect(data.map(({ body }: { body: string }) => body)).toEqual(['4', '3'])
    expect(pagination.has_more).toBe(true)
  })

  test('numbers beyond any page are served as the last of the usual ones', async () => {
    const service = await anyService()
    const { a, conversationId } = await service.pair()
    await service.say(a, conversationId, 'one')
    const path = `/v1/chat/conversations/${conversationId}/messages`
    const huge = '9'.repeat(30)
    const lengths = [`page=${huge}`, `per_page=${huge}`, `page=${huge}&per_page=${huge}`].map(
      async (query) =>
        (await service.call('GET', `${path}?${query}`, { token: a.token })).body.data.length,
    )
    expect(await Promise.all(lengths)).toEqual([0, 1, 0])
    const { body } = await service.call('GET', `${path}?page=${'9'.repeat(400)}`, {
      token: a.token,
    })
    expect(body.error.details).toEqual({ page: 'must be a whole number' })
  })

  test.each([
    ['page=0', { page: 'must be at least 1' }],
    ['page=-1', { page: 'must be at least 1' }],
    ['page=1.5', { page: 'must be a whole number' }],
    ['page=0x10', { page: 'must be a whole number' }],
    ['page=1e1', { page: 'must be a whole number' }],
    ['page=', { page: 'must be a whole number' }],
    ['page=x&per_page=0', { page: 'must be a whole number', per_page: 'must be at least 1' }],
    ['limit=0', { limit: 'must be at least 1' }],
    ['cursor=nonsense', { cursor: 'is not a cursor of this list' }],
    [
      `cursor=${Buffer.from('["x"]').toString('base64url')}`,
      { cursor: 'is not a cursor of this list' },
    ],
  ])('?%s is refused', async (query, details) => {
    const service = await anyService()
    const { a, conversationId } = await service.pair()
    const path = `/v1/chat/conversations/${conversationId}/messages?${query}`
    const answer = await service.call('GET', path, { token: a.token })
    expect([answer.status, answer.body.error.details]).toEqual([400, details])
  })
})

describe('read positions', () => {
  async function unread(service: Awaited<ReturnType<typeof startService>>, token: string) {
    const { body } = await service.call('GET', '/v1/chat/conversations', { token })
    return body.data[0].unread_count
  }

  test('only messages of the other side count as unread, and sending does not mark as read', async () => {
    const service = await anyService()
    const { a, b, conversationId } = await service.pair()
    await service.say(a, conversationId, 'one')
    await service.say(a, conversationId, 'two')
    await service.say(b, conversationId, 'three')
    expect([await unread(service, a.token), await unread(service, b.token)]).toEqual([1, 2])
    const read = await service.call('PUT', `/v1/chat/conversations/${conversationId}/read`, {
      token: b.token,
    })
    expect([read.status, read.body]).toEqual([204, ''])
    expect([await unread(service, a.token), await unread(service, b.token)]).toEqual([1, 0])
    await service.say(a, conversationId, 'four')
    expect(await unread(service, b.token)).toBe(1)
  })

  test('a PUT without a body is accepted with and without a content type, and null names no message', async () => {
    const service = await anyService()
    const { a, conversationId } = await service.pair()
    const json = { headers: { 'content-type': 'application/json' } }
    for (const options of [{}, json, { body: { message_id: null } }]) {
      const path = `/v1/chat/conversations/${conversationId}/read`
      expect((await service.call('PUT', path, { token: a.token, ...options })).status).toBe(204)
    }
  })
})

test.each([
  ['GET', 'messages', undefined],
  ['POST', 'messages', { body: 'hi' }],
  ['PUT', 'read', undefined],
])(
  '%s …/%s answers 403 to strangers and 404 for unknown conversations',
  async (method, what, body) => {
    await using service = await startService()
    const { conversationId } = await service.pair()
    const { token } = await service.register('eve')
    const at = async (id: string) => {
      const answer = await service.call(method, `/v1/chat/conversations/${id}/${what}`, {
        token,
        body,
      })
      return [answer.status, answer.body.error.code]
    }
    expect(await at(conversationId)).toEqual([403, 'forbidden'])
    expect(await at(conversationId.toLowerCase())).toEqual([403, 'forbidden'])
    expect(await at(unknownId)).toEqual([404, 'not_found'])
    expect(await at('not-an-id')).toEqual([404, 'not_found'])
    expect(await at("'%20OR%201=1")).toEqual([404, 'not_found'])
  },
)

test('message ids rise in commit order', async () => {
  const clock = createTestClock()
  await using service = await startService({ clock })
  const { a, b, conversationId } = await service.pair()
  clock.advance(-5_000) // a clock that is set back must not reorder
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, n) => service.say(n % 2 ? a : b, conversationId, `${n}`)),
  )
  const rows = service.sqlite
    .query<{ id: string }, []>('SELECT id FROM messages ORDER BY seq')
    .all()
  const ids = rows.map(({ id }) => id)
  expect(ids).toEqual(ids.toSorted())
  expect(new Set(answers.map(({ body }) => body.id))).toEqual(new Set(ids))
})

describe('a missing account', () => {
  const gone: [string, (service: TestService, person: Person) => Promise<unknown>][] = [
    [
      'removed',
      (service, { token }) =>
        service.call('DELETE', '/v1/users/me', { token, body: { password: 'correct horse' } }),
    ],
    [
      'disabled',
      async (service, { id }) =>
        service.call('PATCH', `/v1/admin/users/${id}`, {
          token: (await service.registerAs('admin')).token,
          body: { disabled: true },
        }),
    ],
  ]

  test.each(gone)('that was %s gets no messages, over REST and the socket', async (_, leave) => {
    await using service = await startService({ listen: true })
    const { a, b, conversationId } = await service.pair()
    expect((await service.say(a, conversationId, 'hello')).status).toBe(201)
    await leave(service, b)
    const refused = await service.say(a, conversationId, 'are you there?')
    expect([refused.status, refused.headers.get('x-error-reason')]).toEqual([403, 'recipient_gone'])
    const socket = await service.connect(a)
    socket.send({ type: 'message', conversation_id: conversationId, body: 'hello?' })
    expect((await socket.next('error')).reason).toBe('recipient_gone')
    const path = `/v1/chat/conversations/${conversationId}/messages`
    const { body } = await service.call('GET', path, { token: a.token })
    expect(body.data).toHaveLength(1)
  })

  test('that was removed opens no conversation; with a disabled one the existing one is returned', async () => {
    await using service = await startService()
    const { a, b, conversationId } = await service.pair()
    const open = async () => {
      const body = { user_id: b.id }
      const answer = await service.call('POST', '/v1/chat/conversations', { token: a.token, body })
      return [answer.status, answer.body.id]
    }
    service.sqlite.run('UPDATE users SET disabled_at = 1 WHERE id = ?', [b.id])
    expect(await open()).toEqual([201, conversationId])
    service.sqlite.run('UPDATE users SET deleted_at = 1 WHERE id = ?', [b.id])
    expect(await open()).toEqual([404, undefined])
  })
})
