import { describe, expect, test } from 'bun:test'
import { type Desk, day, desk, openDesk, own } from './support/desk.ts'
import type { Person } from './support/service.ts'
import { shared } from './support/shared.ts'
import { waitFor } from './support/wait.ts'

const anyDesk = shared(() => openDesk())
/** The same desk with an Ada and a Root of this test. */
const newPeople = async () => (await anyDesk()).withNewPeople()

const ulid = expect.stringMatching(/^[0-9A-HJKMNP-TV-Z]{26}$/)
const timestamp = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
const unknownId = '01ARZ3NDEKTSV4RRFFQ69G5FAV'
const iso = (time: number) => new Date(time).toISOString()

describe('opening a ticket', () => {
  test('answers 201 with the ticket and its first message', async () => {
    const d = await newPeople()
    const body = { subject: ' Refund ', body: '\n Where is it? ', category: 'billing' }
    const answer = await d.service.call('POST', own, {
      token: d.ada.token,
      body: { ...body, priority: 'high', status: 'closed', id: unknownId },
    })
    expect(answer.status).toBe(201)
    expect(answer.body).toEqual({
      id: ulid,
      subject: 'Refund',
      status: 'open',
      priority: 'high',
      category: 'billing',
      created_at: timestamp,
      updated_at: answer.body.created_at,
      messages: [
        { id: ulid, body: 'Where is it?', is_admin: false, created_at: answer.body.created_at },
      ],
    })
    expect(answer.body.id).not.toBe(unknownId)
  })

  test('has priority normal and category other by default', async () => {
    const d = await newPeople()
    expect(await d.open({ category: null })).toMatchObject({
      priority: 'normal',
      category: 'other',
    })
  })

  test.each([
    [{}, { subject: 'is required', body: 'is required' }],
    [
      { subject: '\u115f', body: '\n\u200b' },
      { subject: 'must not be empty', body: 'must not be empty' },
    ],
    [{ subject: 's'.repeat(201), body: 'b' }, { subject: 'must have at most 200 characters' }],
    [{ subject: 's', body: 'b'.repeat(10_001) }, { body: 'must have at most 10000 characters' }],
    [
      { subject: 's', body: 'b\0' },
      {
        body: 'must be well-formed Unicode without control characters other than tab and line breaks',
      },
    ],
    [{ subject: 5, body: 'b' }, { subject: 'must be a text' }],
    [
      { subject: 's', body: 'b', category: 'spam', priority: 'now' },
      {
        category: 'must be one of: billing, technical, account, other',
        priority: 'must be one of: low, normal, high, urgent',
      },
    ],
    [[], { body: 'must be an object' }],
  ])('refuses %j', async (body, details) => {
    const d = await anyDesk()
    const answer = await d.service.call('POST', own, { token: d.ada.token, body })
    expect([answer.status, answer.body.error.details]).toEqual([400, details])
  })

  test('accepts the maximum of code points, surrounding white space not counted', async () => {
    const d = await newPeople()
    const ticket = await d.open({
      subject: ` ${'🙂'.repeat(200)} `,
      body: ` ${'🙂'.repeat(10_000)} `,
    })
    expect([ticket.subject.length, ticket.messages[0].body.length]).toEqual([400, 20_000])
  })
})

describe('sending twice', () => {
  test('the same key and content opens one ticket, however it was changed meanwhile', async () => {
    const d = await newPeople()
    const call = { token: d.ada.token, body: { subject: 's', body: 'b', client_id: 'k' } }
    const first = await d.service.call('POST', own, call)
    await d.answer(first.body.id)
    await d.update(first.body.id, { priority: 'urgent', category: 'billing', status: 'resolved' })
    const again = await d.service.call('POST', own, call)
    expect([again.status, again.body]).toEqual([201, first.body])
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect((await d.list(`?user_id=${d.ada.id}`)).pagination.total).toBe(1)
  })

  test('the same key and content writes one message, from either side', async () => {
    const d = await newPeople()
    const { id } = await d.open()
    for (const [path, { token }] of [
      [`${own}/${id}/messages`, d.ada],
      [`${desk}/${id}/messages`, d.root],
    ] as const) {
      const headers = { 'x-idempotency-key': 'k' }
      const first = await d.service.call('POST', path, { token, headers, body: { body: 'b' } })
      const body = { body: ' b ', client_id: 'k' }
      const again = await d.service.call('POST', path, { token, body })
      expect([again.status, again.body]).toEqual([201, first.body])
      expect(again.headers.get('idempotent-replayed')).toBe('true')
    }
    expect((await d.show(id)).message_count).toBe(3)
  })

  test('20 parallel requests with one key open one ticket', async () => {
    const d = await newPeople()
    const opened = await Promise.all(Array.from({ length: 20 }, () => d.open({ client_id: 'k' })))
    expect(new Set(opened.map(({ id }) => id)).size).toBe(1)
  })

  test('the same key for something else is a conflict', async () => {
    const d = await newPeople()
    const first = await d.open({ client_id: 'k' })
    const other = await d.open()
    const post = async (path: string, body: object) =>
      (await d.service.call('POST', path, { token: d.ada.token, body })).status
    const ticket = { subject: 'Refund', body: 'Where is it?', client_id: 'k' }
    const message = { body: 'm', client_id: 'm' }
    expect([
      await post(own, { ...ticket, body: 'else' }),
      await post(own, { ...ticket, subject: 'else' }),
      await post(own, { ...ticket, category: 'billing' }),
      await post(own, { ...ticket, priority: 'low' }),
      await post(`${own}/${first.id}/messages`, { body: 'Where is it?', client_id: 'k' }),
      await post(`${own}/${first.id}/messages`, message),
      await post(`${own}/${first.id}/messages`, { ...message, body: 'else' }),
      await post(`${own}/${other.id}/messages`, message),
      await post(own, { ...ticket, client_id: 'm' }),
    ]).toEqual([409, 409, 409, 409, 409, 201, 409, 409, 409])
  })
})

describe('one’s own tickets', () => {
  test('are listed newest first, without messages and without those of others', async () => {
    const d = await newPeople()
    const bob = await d.service.register()
    const [first, , second] = [await d.open(), await d.open({}, bob), await d.open()]
    const { body } = await d.service.call('GET', own, { token: d.ada.token })
    const items = [second, first].map(({ messages: _, ...item }) => item)
    const pagination = { page: 1, per_page: 20, total: 2, total_pages: 1 }
    expect(body).toEqual({ success: true, data: items, pagination })
  })

  test('are complete over all pages, and by cursor each appears once while others arrive', async () => {
    const d = await newPeople()
    const ids: string[] = []
    for (let n = 0; n < 5; n++) ids.unshift((await d.open()).id)
    const page = async (query: string) =>
      (await d.service.call('GET', `${own}?${query}`, { token: d.ada.token })).body
    const idsOf = ({ data }: { data: { id: string }[] }) => data.map(({ id }) => id)
    expect(idsOf(await page('per_page=2&page=3'))).toEqual(ids.slice(4))
    const first = await page('limit=3')
    await d.open()
    const second = await page(`limit=3&cursor=${first.pagination.cursor}`)
    expect([...idsOf(first), ...idsOf(second)]).toEqual(ids)
    expect(second.pagination).toEqual({ cursor: null, has_more: false, limit: 3 })
  })

  test('are shown with every message, oldest first', async () => {
    const d = await newPeople()
    const { id, messages } = await d.open()
    const answered = await d.answer(id)
    const written = await d.write(id, '  Thanks. ')
    expect(written).toMatchObject({ status: 201 })
    expect(written.body).toEqual({
      id: ulid,
      body: 'Thanks.',
      is_admin: false,
      created_at: timestamp,
    })
    const { body } = await d.service.call('GET', `${own}/${id}`, { token: d.ada.token })
    const { author, ...answer } = answered.body
    expect(author).toEqual({ id: d.root.id, display_name: 'root' })
    expect(body.messages).toEqual([...messages, answer, written.body])
    expect(Object.keys(body).sort()).toEqual([
      'category',
      'created_at',
      'id',
      'messages',
      'priority',
      'status',
      'subject',
      'updated_at',
    ])
  })

  test.each([
    ['GET', ''],
    ['POST', '/messages'],
    ['POST', '/close'],
  ])(
    '%s /v1/support/tickets/:id%s: unknown 404, foreign 403, for admins too',
    async (method, rest) => {
      const d = await anyDesk()
      const { id } = await d.open()
      const body = rest === '/messages' ? { body: 'b' } : undefined
      const status = async (path: string, token: string) =>
        (await d.service.call(method, `${own}/${path}${rest}`, { token, body })).status
      expect([
        await status(unknownId, d.ada.token),
        await status('nonsense', d.ada.token),
        await status(id, d.root.token),
        await status(id.toLowerCase(), d.ada.token),
      ]).toEqual([404, 404, 403, method === 'POST' && body ? 201 : 200])
    },
  )
})

describe('closing and reopening', () => {
  test('closing returns the current ticket, also repeatedly', async () => {
    const d = await newPeople()
    const opened = await d.open()
    d.clock.advance(1_000)
    const closed = await d.close(opened.id)
    const changed = { status: 'closed', updated_at: iso(d.clock.now()) }
    expect([closed.status, closed.body]).toEqual([200, { ...opened, ...changed }])
    d.clock.advance(1_000)
    expect((await d.close(opened.id)).body).toEqual(closed.body)
    expect((await d.show(opened.id)).history).toHaveLength(1)
  })

  test.each([
    ['open', 'open', 0],
    ['in_progress', 'in_progress', 1],
    ['resolved', 'open', 2],
    ['closed', 'open', 2],
  ] as const)('a message on a ticket that is %s leaves it %s', async (before, after, changes) => {
    const d = await anyDesk()
    const { id } = await d.open()
    await d.update(id, { status: before })
    expect((await d.write(id, 'Still broken')).status).toBe(201)
    const { status, history } = await d.show(id)
    expect([status, history.length]).toEqual([after, changes])
    if (changes < 2) return
    const actor = { type: 'user', id: d.ada.id, display_name: 'ada' }
    const entry = { id: ulid, at: timestamp, field: 'status', from: before, to: 'open', actor }
    expect(history.at(-1)).toEqual(entry)
  })

  test.each([
    [14, 14, 201],
    [14, 15, 409],
    [0, 0, 409],
    [30, 29, 201],
  ])('with a window of %d days, %d days after closing it is %d', async (days, passed, status) => {
    await using d = await openDesk({ environment: { SUPPORT_REOPEN_DAYS: String(days) } })
    const { id } = await d.open()
    await d.close(id)
    d.clock.advance(passed * day)
    const again = await d.service.login(d.ada.email)
    expect((await d.write(id, 'Still broken', again)).status).toBe(status)
  })

  test('a message sent before is answered as before when the window is over', async () => {
    await using d = await openDesk()
    const { id } = await d.open()
    const body = { body: 'b', client_id: 'k' }
    const path = `${own}/${id}/messages`
    await d.service.call('POST', path, { token: d.ada.token, body })
    await d.close(id)
    d.clock.advance(20 * day)
    const { token } = await d.service.login(d.ada.email)
    expect((await d.service.call('POST', path, { token, body })).status).toBe(201)
    expect((await d.service.call('POST', path, { token, body: { body: 'c' } })).status).toBe(409)
  })
})

describe('a resolved ticket', () => {
  test('closes automatically after the days of silence, with an entry in its history', async () => {
    await using d = await openDesk()
    const { id } = await d.open()
    await d.update(id, { status: 'resolved' })
    d.clock.advance(6 * day)
    d.root.token = (await d.service.login(d.root.email)).token
    expect((await d.show(id)).status).toBe('resolved')
    // Nobody writes.
    await d.update(id, { priority: 'high' })
    d.clock.advance(day)
    d.root.token = (await d.service.login(d.root.email)).token
    const { status, history } = await d.show(id)
    expect([status, history.at(-1)]).toEqual([
      'closed',
      {
        id: ulid,
        at: iso(d.clock.now()),
        field: 'status',
        from: 'resolved',
        to: 'closed',
        actor: { type: 'system' },
      },
    ])
  })

  test.each([
    ['an answer of the desk', '7', 'resolved'],
    ['an answer of the owner', '7', 'open'],
    ['nothing, when it never closes,', '0', 'resolved'],
  ])('after %s stays unchanged', async (what, days, expected) => {
    await using d = await openDesk({ environment: { SUPPORT_AUTOCLOSE_DAYS: days } })
    const { id } = await d.open()
    await d.update(id, { status: 'resolved' })
    d.clock.advance(4 * day)
    const [ada, root] = [await d.service.login(d.ada.email), await d.service.login(d.root.email)]
    if (what.includes('desk')) await d.answer(id, {}, root)
    if (what.includes('owner')) await d.write(id, 'No', ada)
    d.clock.advance(4 * day)
    d.root.token = (await d.service.login(d.root.email)).token
    expect((await d.show(id)).status).toBe(expected)
  })

  test('with a simultaneous reply of the owner keeps the reply: it wins or reopens the ticket', async () => {
    await using d = await openDesk()
    const { id } = await d.open()
    await d.update(id, { status: 'resolved' })
    d.clock.advance(7 * day - 1)
    const ada = await d.service.login(d.ada.email)
    const root = await d.service.login(d.root.email)
    const written = d.write(id, 'Wait', ada)
    d.clock.advance(600_000)
    expect((await written).status).toBe(201)
    const { body } = await d.service.call('GET', `${desk}/${id}`, { token: root.token })
    expect([body.status, body.waiting_since]).toEqual(['open', timestamp])
  })

  test('closes together with hundreds of others', async () => {
    await using d = await openDesk()
    const ids = await Promise.all(Array.from({ length: 90 }, async () => (await d.open()).id))
    await Promise.all(ids.map((id) => d.update(id, { status: 'resolved' })))
    d.clock.advance(7 * day)
    const root = await d.service.login(d.root.email)
    const closed = async () => (await d.list('?status=closed', root)).pagination.total
    await waitFor(async () => (await closed()) === 90)
    expect((await d.list('?status=resolved', root)).pagination.total).toBe(0)
  })
})

describe('the desk', () => {
  test('lists the longest wait first, then the last change', async () => {
    await using d = await openDesk()
    const ids: string[] = []
    for (let n = 0; n < 5; n++) {
      ids.push((await d.open()).id)
      d.clock.advance(1_000)
    }
    const [a = '', b = '', c = '', x = '', y = ''] = ids
    await d.answer(b)
    d.clock.advance(1_000)
    await d.close(a)
    d.clock.advance(1_000)
    await d.answer(y)
    d.clock.advance(1_000)
    await d.write(y, 'And now?')
    const { data } = await d.list()
    expect(data.map(({ id }: { id: string }) => id)).toEqual([c, x, y, a, b])
  })

  test('lists the shortest wait first, if asked, in every form and with every filter', async () => {
    await using d = await openDesk()
    const ids: string[] = []
    for (let n = 0; n < 7; n++) {
      ids.push((await d.open()).id)
      d.clock.advance(1_000)
    }
    const [a = '', b = '', c = '', x = '', y = '', z = '', w = ''] = ids
    for (const act of [() => d.answer(b), () => d.close(a), () => d.close(z)]) {
      await act()
      d.clock.advance(1_000)
    }
    const idsOf = (page: { data: { id: string }[] }) => page.data.map(({ id }) => id)
    const order = 'order=shortest_waiting'
    const whole = [w, y, x, c, z, a, b]
    expect(idsOf(await d.list(`?${order}`))).toEqual(whole)
    expect(idsOf(await d.list('?order=longest_waiting'))).toEqual([c, x, y, w, z, a, b])
    expect(idsOf(await d.list(`?${order}&waiting=true`))).toEqual([w, y, x, c])
    expect(idsOf(await d.list(`?${order}&waiting=false`))).toEqual([z, a, b])
    expect(idsOf(await d.list(`?${order}&status=open,in_progress`))).toEqual([w, y, x, c, b])
    for (const size of [2, 3, 4]) {
      const numbered: string[] = []
      const byCursor: string[] = []
      let cursor = ''
      for (let page = 1; page <= Math.ceil(7 / size); page++) {
        numbered.push(...idsOf(await d.list(`?${order}&per_page=${size}&page=${page}`)))
        const next = await d.list(`?${order}&limit=${size}${cursor}`)
        byCursor.push(...idsOf(next))
        cursor = `&cursor=${next.pagination.cursor}`
      }
      expect([numbered, byCursor, cursor]).toEqual([whole, whole, '&cursor=null'])
    }
  })

  test('refuses a cursor of the other order, and an unknown order', async () => {
    const d = await newPeople()
    for (let n = 0; n < 3; n++) await d.open()
    const orders = ['longest_waiting', 'shortest_waiting']
    for (const [at, order] of orders.entries()) {
      const { cursor } = (await d.list(`?limit=1&order=${order}`)).pagination
      const details = { cursor: 'is not a cursor of this list' }
      const other = await d.list(`?limit=1&order=${orders[1 - at]}&cursor=${cursor}`)
      expect(other.error.details).toEqual(details)
    }
    const unknown = (await d.list('?order=subject')).error.details
    expect(unknown).toEqual({ order: 'must be one of: longest_waiting, shortest_waiting' })
  })

  test('shows owner, assignee, how long the owner has waited, and what was written last', async () => {
    await using d = await openDesk()
    const { messages, ...opened } = await d.open()
    const lastOf = ({ id, body, is_admin, created_at }: (typeof messages)[number]) => ({
      last_message: { id, body, is_admin, sent_at: created_at },
    })
    const avatar_url = expect.stringMatching(/^http:\/\/localhost:0\/v1\/avatars\/\d+\/A\.svg$/)
    const name = { id: d.ada.id, display_name: 'ada', locale: 'en' }
    const user = { ...name, avatar_url, email: 'ada@example.com' }
    const item = { ...opened, user, assignee: null, message_count: 1, first_response_at: null }
    expect((await d.list()).data).toEqual([
      { ...item, ...lastOf(messages[0]), waiting_since: opened.created_at },
    ])
    d.clock.advance(1_000)
    const answered = await d.answer(opened.id)
    expect((await d.list()).data).toEqual([
      {
        ...item,
        ...lastOf(answered.body),
        updated_at: answered.body.created_at,
        assignee: { id: d.root.id, display_name: 'root' },
        message_count: 2,
        waiting_since: null,
        first_response_at: answered.body.created_at,
      },
    ])
  })

  test('shows the first 200 characters of the last message', async () => {
    await using d = await openDesk()
    const { id } = await d.open()
    await d.write(id, `${'🙂'.repeat(199)}abc`)
    const last_message = { body: `${'🙂'.repeat(199)}a`, is_admin: false }
    expect((await d.list()).data).toMatchObject([{ last_message }])
    expect((await d.show(id)).last_message).toMatchObject(last_message)
  })

  test('by cursor shows each waiting ticket once while others arrive', async () => {
    await using d = await openDesk()
    const ids: string[] = []
    for (let n = 0; n < 5; n++) {
      ids.push((await d.open()).id)
      d.clock.advance(1_000)
    }
    const first = await d.list('?limit=2')
    await d.open()
    const second = await d.list(`?limit=2&cursor=${first.pagination.cursor}`)
    const third = await d.list(`?limit=1&cursor=${second.pagination.cursor}`)
    const seen = [first, second, third].flatMap(({ data }) => data.map((t: { id: string }) => t.id))
    expect(seen).toEqual(ids)
  })

  test('filters, alone and combined, have right totals', async () => {
    await using d = await openDesk()
    const bob = await d.service.register('bob')
    const urgent = await d.open({ priority: 'urgent', category: 'billing' })
    const mine = await d.open({ category: 'billing' }, bob)
    await d.answer(mine.id)
    const closed = await d.open({ category: 'technical' })
    await d.close(closed.id)
    const found = async (query: string) => {
      const { data, pagination } = await d.list(query)
      return [pagination.total, ...data.map(({ id }: { id: string }) => id)]
    }
    expect(await found('?status=open')).toEqual([2, urgent.id, mine.id])
    expect(await found('?priority=urgent')).toEqual([1, urgent.id])
    expect(await found('?category=billing&status=open')).toEqual([2, urgent.id, mine.id])
    expect(await found('?assignee_id=me')).toEqual([1, mine.id])
    expect(await found(`?assignee_id=${d.root.id}&status=closed`)).toEqual([0])
    expect(await found('?assignee_id=none')).toEqual([2, urgent.id, closed.id])
    expect(await found(`?user_id=${bob.id}`)).toEqual([1, mine.id])
    expect(await found(`?user_id=${d.ada.id}&status=closed`)).toEqual([1, closed.id])
    expect(await found(`?user_id=${unknownId}`)).toEqual([0])
    expect(await found('?status=resolved')).toEqual([0])
  })

  test('lists waiting tickets, or the others, in every form and with every other filter', async () => {
    await using d = await openDesk()
    const [first, answered, last] = [await d.open(), await d.open(), await d.open()]
    await d.answer(answered.id, { status: 'in_progress' })
    const ids = async (query: string) =>
      (await d.list(query)).data.map(({ id }: { id: string }) => id)
    for (const form of ['?per_page=10', '?limit=10', '?q=refund', `?user_id=${d.ada.id}`]) {
      expect((await ids(`${form}&waiting=true`)).sort()).toEqual([first.id, last.id])
      expect(await ids(`${form}&waiting=false`)).toEqual([answered.id])
      expect(await ids(`${form}&waiting=true&status=in_progress`)).toEqual([])
      expect(await ids(`${form}&waiting=false&assignee_id=me`)).toEqual([answered.id])
    }
    expect((await d.list('?waiting=true')).pagination.total).toBe(2)
    const { cursor } = (await d.list('?limit=1')).pagination
    expect(await ids(`?limit=10&waiting=false&cursor=${cursor}`)).toEqual([answered.id])
    await d.write(answered.id, 'Still nothing')
    expect((await d.list('?q=refund&waiting=true')).pagination.total).toBe(3)
  })

  test('finds a ticket by the end of its id, within the filter', async () => {
    const d = await newPeople()
    const [first] = [await d.open(), await d.open()]
    const ids = async (query: string) =>
      (await d.list(query)).data.map(({ id }: { id: string }) => id)
    const q = `?q=%23${first.id.slice(-6).toLowerCase()}`
    expect(await ids(q)).toEqual([first.id])
    expect(await ids(`${q}&status=open&limit=5`)).toEqual([first.id])
    expect(await ids(`${q}&status=closed`)).toEqual([])
    expect(await ids('?q=%23000000')).toEqual([])
  })

  test('shows several statuses in one order, each ticket once', async () => {
    await using d = await openDesk()
    const notClosed: string[] = []
    for (const status of ['open', 'resolved', 'closed', 'in_progress', 'open', 'closed']) {
      const { id } = await d.open()
      d.clock.advance(1_000)
      if (status !== 'open') await d.update(id, { status })
      if (status !== 'closed') notClosed.push(id)
    }
    const ids = async (query: string) =>
      (await d.list(query)).data.map(({ id }: { id: string }) => id)
    const expected = (await ids('')).filter((id: string) => notClosed.includes(id))
    const query = '?status=resolved,open,in_progress,open'
    expect(await ids(query)).toEqual(expected)
    expect([
      ...(await ids(`${query}&per_page=3`)),
      ...(await ids(`${query}&per_page=3&page=2`)),
    ]).toEqual(expected)
    expect((await d.list(query)).pagination.total).toBe(4)
    expect((await ids(`${query}&q=refund`)).sort()).toEqual(expected.toSorted())
  })

  test('counts what its views list', async () => {
    await using d = await openDesk()
    const eve = await d.hire('eve')
    const [a, b, c] = [await d.open(), await d.open(), await d.open()]
    for (const n of [1, 2]) await d.open({ subject: `${n}` })
    await d.update(a.id, { assignee_id: d.root.id, status: 'resolved' })
    await d.update(b.id, { assignee_id: d.root.id, status: 'closed' })
    await d.answer(c.id, { status: 'in_progress' }, eve)
    const path = '/v1/admin/support/counts'
    const { status, body } = await d.service.call('GET', path, { token: d.root.token })
    const views = {
      waiting: 'waiting=true',
      mine: 'assignee_id=me&status=open,in_progress,resolved',
      unassigned: 'assignee_id=none&status=open,in_progress,resolved',
      open: 'status=open',
      in_progress: 'status=in_progress',
      resolved: 'status=resolved',
      closed: 'status=closed',
      all: '',
    }
    const listed = Object.entries(views).map(async ([name, query]) => [
      name,
      (await d.list(`?${query}`)).pagination.total,
    ])
    expect([status, body]).toEqual([200, Object.fromEntries(await Promise.all(listed))])
    expect(body).toEqual({
      waiting: 2,
      mine: 1,
      unassigned: 2,
      open: 2,
      in_progress: 1,
      resolved: 1,
      closed: 1,
      all: 5,
    })
  })

  test.each([
    ['status=late', { status: 'must be one of: open, in_progress, resolved, closed' }],
    ['status=open,', { status: 'must be one of: open, in_progress, resolved, closed' }],
    ['waiting=yes', { waiting: 'must be true or false' }],
    [
      'priority=x&category=y',
      {
        priority: 'must be one of: low, normal, high, urgent',
        category: 'must be one of: billing, technical, account, other',
      },
    ],
    ['assignee_id=you', { assignee_id: 'must be a valid identifier' }],
    ['user_id=1', { user_id: 'must be a valid identifier' }],
    [`q=${'q'.repeat(201)}`, { q: 'must have at most 200 characters' }],
    [
      'q=a%00',
      {
        q: 'must be well-formed Unicode without control characters other than tab and line breaks',
      },
    ],
    ['page=0', { page: 'must be at least 1' }],
    ['cursor=x', { cursor: 'is not a cursor of this list' }],
  ])('refuses ?%s', async (query, details) => {
    const d = await anyDesk()
    const answer = await d.service.call('GET', `${desk}?${query}`, { token: d.root.token })
    expect([answer.status, answer.body.error.details]).toEqual([400, details])
  })

  test('shows a removed person without their address, and their ticket not as waiting', async () => {
    await using d = await openDesk()
    await d.open()
    await d.service.call('DELETE', '/v1/users/me', {
      token: d.ada.token,
      body: { password: 'correct horse' },
    })
    const { user, waiting_since, status } = (await d.list()).data[0]
    expect([user, waiting_since, status]).toEqual([
      {
        id: d.ada.id,
        display_name: 'Deleted user',
        avatar_url: expect.stringMatching(/DU\.svg$/),
        locale: 'en',
      },
      null,
      'open',
    ])
    const found = async (query: string) => (await d.list(query)).pagination.total
    expect([await found('?waiting=true'), await found('?q=refund&waiting=true')]).toEqual([0, 0])
    const { id } = (await d.list()).data[0]
    for (const status of ['closed', 'open']) await d.update(id, { status })
    expect((await d.list()).data[0]).toMatchObject({ status: 'open', waiting_since: null })
  })

  test('shows no tickets as waiting of a removed person with many of them', async () => {
    await using d = await openDesk()
    const [eve, other] = [await d.service.register('eve'), await d.open()]
    for (let n = 0; n < 60; n++) await d.open({ client_id: `${n}` }, eve)
    await d.service.call('DELETE', `/v1/admin/users/${eve.id}`, { token: d.root.token })
    const waiting = async () =>
      (await d.list('?waiting=true')).data.map(({ id }: { id: string }) => id)
    await waitFor(async () => (await waiting()).length < 2)
    expect(await waiting()).toEqual([other.id])
  })

  test('answers 404 for unknown tickets', async () => {
    const d = await newPeople()
    const statuses = [
      await d.update(unknownId, { status: 'open' }),
      await d.answer('nonsense'),
      await d.service.call('GET', `${desk}/${unknownId}`, { token: d.root.token }),
      await d.service.call('POST', `${desk}/${unknownId}/notes`, {
        token: d.root.token,
        body: { body: 'n' },
      }),
    ].map(({ status }) => status)
    expect(statuses).toEqual([404, 404, 404, 404])
  })
})

describe('changing a ticket', () => {
  test.each([
    ['open', 'in_progress'],
    ['in_progress', 'resolved'],
    ['resolved', 'open'],
    ['closed', 'in_progress'],
    ['open', 'closed'],
    ['closed', 'resolved'],
  ])('from %s to %s answers 200 with the full ticket', async (from, to) => {
    const d = await anyDesk()
    const { id } = await d.open()
    await d.update(id, { status: from })
    const changed = await d.update(id, { status: to })
    expect([changed.status, changed.body.status]).toEqual([200, to])
    expect(changed.body).toEqual(await d.show(id))
    expect(changed.body.history.at(-1)).toMatchObject({ field: 'status', from, to })
  })

  test('keeps its history: who changed what', async () => {
    const d = await newPeople()
    const { id } = await d.open()
    d.clock.advance(1_000)
    const { body } = await d.update(id, {
      status: 'in_progress',
      priority: 'high',
      category: 'billing',
      assigned_to: d.root.id,
    })
    const actor = { type: 'user', id: d.root.id, display_name: 'root' }
    const entry = { id: ulid, at: iso(d.clock.now()), actor }
    expect(body).toMatchObject({
      status: 'in_progress',
      priority: 'high',
      category: 'billing',
      updated_at: entry.at,
    })
    expect(body.history).toEqual([
      { ...entry, field: 'status', from: 'open', to: 'in_progress' },
      { ...entry, field: 'priority', from: 'normal', to: 'high' },
      { ...entry, field: 'category', from: 'other', to: 'billing' },
      { ...entry, field: 'assignee', from: null, to: d.root.id },
    ])
  })

  test('to its current state leaves no trace', async () => {
    const d = await newPeople()
    const { id } = await d.open()
    const before = await d.show(id)
    d.clock.advance(1_000)
    const same = { status: 'open', priority: 'normal', assignee_id: null }
    const { status, body } = await d.update(id, same)
    expect([status, body]).toEqual([200, before])
    const audited = `/v1/admin/audit-log?target_id=${id}`
    const { body: entries } = await d.service.call('GET', audited, { token: d.root.token })
    expect(entries.data).toEqual([])
  })

  test.each([[{}], [{ subject: 'x' }], [{ status: null, priority: null }]])(
    'to nothing, %j, is refused',
    async (body) => {
      const d = await anyDesk()
      const answer = await d.update((await d.open()).id, body)
      expect([answer.status, answer.body.error.details]).toEqual([
        400,
        { body: 'must name something to change' },
      ])
    },
  )

  test('assigns it to an admin, under either name, or to no one', async () => {
    const d = await newPeople()
    const eve = await d.hire('eve')
    const { id } = await d.open()
    const assignee = async (body: object) => (await d.update(id, body)).body.assignee
    expect(await assignee({ assigned_to: eve.id.toLowerCase() })).toEqual({
      id: eve.id,
      display_name: 'eve',
    })
    expect(await assignee({ assignee_id: null, assigned_to: eve.id })).toBeNull()
    expect((await assignee({ assignee_id: eve.id, assigned_to: d.root.id })).id).toBe(eve.id)
    expect(await assignee({ assigned_to: null })).toBeNull()
  })

  test('cannot assign it to a user who is no admin', async () => {
    const d = await newPeople()
    const eve = await d.hire('eve')
    d.service.sqlite.run('UPDATE users SET disabled_at = 1 WHERE id = ?', [eve.id])
    const { id } = await d.open()
    const refused = async (body: object) => {
      const answer = await d.update(id, body)
      return [answer.status, answer.body.error.details]
    }
    const problem = 'must be an admin'
    expect(await refused({ assignee_id: d.ada.id })).toEqual([400, { assignee_id: problem }])
    expect(await refused({ assigned_to: eve.id })).toEqual([400, { assigned_to: problem }])
    expect(await refused({ assigned_to: unknownId })).toEqual([400, { assigned_to: problem }])
    const malformed = { assignee_id: 'must be a valid identifier' }
    expect(await refused({ assignee_id: 'root', status: 'open' })).toEqual([400, malformed])
  })

  test('keeps an assignee who is no admin any more until it is reassigned', async () => {
    const d = await newPeople()
    const eve = await d.hire('eve')
    const { id } = await d.open()
    await d.update(id, { assignee_id: eve.id })
    d.service.sqlite.run("UPDATE users SET role = 'user' WHERE id = ?", [eve.id])
    const same = await d.update(id, { assignee_id: eve.id, priority: 'low' })
    expect([same.status, same.body.assignee.id]).toEqual([200, eve.id])
    expect((await d.update(id, { assignee_id: d.root.id })).body.assignee.id).toBe(d.root.id)
    expect((await d.update(id, { assignee_id: eve.id })).status).toBe(400)
  })

  test('by two admins at once keeps both changes, each in the history', async () => {
    const d = await newPeople()
    const eve = await d.hire('eve')
    const { id } = await d.open()
    await Promise.all([
      d.update(id, { status: 'in_progress' }),
      d.update(id, { priority: 'urgent' }, eve),
      d.update(id, { status: 'in_progress' }, eve),
    ])
    const { status, priority, history } = await d.show(id)
    expect([status, priority, history.length]).toEqual(['in_progress', 'urgent', 2])
  })
})

describe('replying', () => {
  test('returns 201 with the message, ends the waiting and assigns the ticket', async () => {
    const d = await newPeople()
    const { id } = await d.open()
    d.clock.advance(1_000)
    const { status, body } = await d.answer(id, { body: '  On its way. ' })
    expect(status).toBe(201)
    const at = iso(d.clock.now())
    expect(body).toEqual({
      id: ulid,
      body: 'On its way.',
      is_admin: true,
      created_at: at,
      author: { id: d.root.id, display_name: 'root' },
    })
    const shown = await d.show(id)
    expect(shown).toMatchObject({ waiting_since: null, first_response_at: at, status: 'open' })
    expect([shown.assignee.id, shown.history]).toEqual([
      d.root.id,
      [expect.objectContaining({ field: 'assignee', from: null, to: d.root.id })],
    ])
  })

  test('keeps the assignee and the time of the first response', async () => {
    const d = await newPeople()
    const eve = await d.hire('eve')
    const { id } = await d.open()
    const first = await d.answer(id)
    d.clock.advance(1_000)
    await d.answer(id, {}, eve)
    const { assignee, first_response_at } = await d.show(id)
    expect([assignee.id, first_response_at]).toEqual([d.root.id, first.body.created_at])
  })

  test('waiting begins with the first unanswered message', async () => {
    const d = await newPeople()
    const { id } = await d.open()
    await d.answer(id)
    d.clock.advance(1_000)
    const first = await d.write(id, 'And?')
    d.clock.advance(1_000)
    await d.write(id, 'Hello?')
    expect((await d.show(id)).waiting_since).toBe(first.body.created_at)
    await d.update(id, { status: 'resolved' })
    expect((await d.show(id)).waiting_since).toBeNull()
  })

  test('a ticket reopened by the desk continues to wait when its owner wrote last', async () => {
    const d = await newPeople()
    const { id, created_at } = await d.open()
    const reopened = async () => {
      await d.update(id, { status: 'closed' })
      await d.update(id, { status: 'in_progress' })
      return (await d.show(id)).waiting_since
    }
    expect(await reopened()).toBe(created_at)
    d.clock.advance(1_000)
    await d.write(id, 'Hello?')
    expect(await reopened()).toBe(created_at)
    await d.answer(id)
    expect(await reopened()).toBeNull()
    const next = await d.write(id, 'Thanks, but…')
    d.clock.advance(1_000)
    await d.write(id, 'Hello?')
    expect(await reopened()).toBe(next.body.created_at)
  })

  test('may change the status in the same request', async () => {
    const d = await newPeople()
    const { id } = await d.open()
    expect((await d.answer(id, { status: 'resolved' })).status).toBe(201)
    expect((await d.show(id)).status).toBe('resolved')
    expect((await d.answer(id, { status: 'gone' })).body.error.details).toEqual({
      status: 'must be one of: open, in_progress, resolved, closed',
    })
  })

  test('to a closed ticket leaves it closed by default, however long it was closed', async () => {
    await using d = await openDesk()
    const { id } = await d.open()
    await d.close(id)
    d.clock.advance(100 * day)
    d.root.token = (await d.service.login(d.root.email)).token
    expect((await d.answer(id)).status).toBe(201)
    expect((await d.show(id)).status).toBe('closed')
    // The days in which its owner may reopen it are over.
    const ada = await d.service.login(d.ada.email)
    expect((await d.write(id, 'Thank you', ada)).status).toBe(409)
    await d.answer(id, { status: 'in_progress' })
    expect((await d.show(id)).status).toBe('in_progress')
  })

  test('past an unseen message is a conflict, and writes nothing', async () => {
    const d = await newPeople()
    const { id, messages } = await d.open()
    const seen = { last_message_id: messages[0].id }
    const { body: newer } = await d.write(id, 'Found it!')
    expect((await d.answer(id, { ...seen, status: 'closed' })).status).toBe(409)
    expect(await d.show(id)).toMatchObject({ message_count: 2, status: 'open', assignee: null })
    expect((await d.answer(id, { last_message_id: newer.id.toLowerCase() })).status).toBe(201)
    const foreign = await d.answer(id, { last_message_id: unknownId })
    expect(foreign.body.error.details).toEqual({
      last_message_id: 'must be a message of this conversation',
    })
  })

  test('by two admins with the same last message lets one of them through', async () => {
    const d = await newPeople()
    const eve = await d.hire('eve')
    const { id, messages } = await d.open()
    const seen = { last_message_id: messages[0].id }
    const answers = await Promise.all([d.answer(id, seen), d.answer(id, seen, eve)])
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409])
  })

  test.each([
    [{ body: '\u3164' }, { body: 'must not be empty' }],
    [{ body: 'b'.repeat(10_001) }, { body: 'must have at most 10000 characters' }],
    [{ client_id: 'c'.repeat(65) }, { client_id: 'must have at most 64 characters' }],
    [{ last_message_id: 5 }, { last_message_id: 'must be a text' }],
  ])('with %j is refused', async (fields, details) => {
    const d = await anyDesk()
    const answer = await d.answer((await d.open()).id, fields)
    expect([answer.status, answer.body.error.details]).toEqual([400, details])
  })
})

describe('a ticket that the desk opens for a user', () => {
  const request = { subject: 'Your payout', body: 'The bank sent it back.', category: 'billing' }
  const create = (d: Desk, fields: object = {}, by = d.root) =>
    d.service.call('POST', desk, {
      token: by.token,
      body: { user_id: d.ada.id, ...request, ...fields },
    })

  test('has the message of the admin, is theirs to look after, and waits for its owner', async () => {
    const d = await newPeople()
    const answer = await create(d)
    expect([answer.status, answer.body]).toEqual([201, await d.show(answer.body.id)])
    const { id } = answer.body
    expect(answer.body).toMatchObject({
      subject: 'Your payout',
      status: 'in_progress',
      category: 'billing',
      priority: 'normal',
      user: { id: d.ada.id },
      assignee: { id: d.root.id },
      waiting_since: null,
      messages: [{ body: 'The bank sent it back.', is_admin: true, author: { id: d.root.id } }],
      history: [],
      first_response_at: null,
    })
    const shown = await d.service.call('GET', `${own}/${id}`, { token: d.ada.token })
    expect(shown.body.messages).toMatchObject([{ body: request.body, is_admin: true }])
    await d.write(id, 'To which account?')
    expect((await d.list('?waiting=true&assignee_id=me')).data).toMatchObject([{ id }])
    await d.answer(id)
    expect((await d.show(id)).first_response_at).toBe(iso(d.clock.now()))
  })

  test('notifies its owner, once', async () => {
    const d = await newPeople()
    const { body } = await create(d, { client_id: 'k' })
    expect((await create(d, { client_id: 'k' })).headers.get('idempotent-replayed')).toBe('true')
    const { data } = (await d.service.call('GET', '/v1/notifications', { token: d.ada.token })).body
    expect(data).toHaveLength(1)
    expect(data[0]).toMatchObject({
      type: 'support_reply',
      title: 'Support writes to you: Your payout',
      body: request.body,
      data: { ticket_id: body.id, message_id: body.messages[0].id },
    })
  })

  test('is opened once by a repeated request, however it was changed meanwhile', async () => {
    const d = await newPeople()
    const { body } = await create(d, { client_id: 'k' })
    await d.update(body.id, { category: 'technical', status: 'resolved', assignee_id: null })
    const again = await create(d, { client_id: 'k' })
    expect([again.status, again.body]).toEqual([201, await d.show(body.id)])
    expect((await d.list(`?user_id=${d.ada.id}`)).pagination.total).toBe(1)
  })

  test('is shown by a repeated request after its owner was removed', async () => {
    const d = await newPeople()
    const { body } = await create(d, { client_id: 'k' })
    const removal = { token: d.ada.token, body: { password: 'correct horse' } }
    expect((await d.service.call('DELETE', '/v1/users/me', removal)).status).toBe(204)
    const again = await create(d, { client_id: 'k' })
    expect([again.status, again.body.id]).toEqual([201, body.id])
    expect((await create(d)).body.error.details).toEqual({ user_id: 'must be an existing user' })
  })

  test('with a key that was used for something else is a conflict', async () => {
    const d = await newPeople()
    const eve = await d.service.register()
    await create(d, { client_id: 'k' })
    const ofRoot = { subject: request.subject, body: request.body, category: 'billing' }
    const { id } = await d.open({ ...ofRoot, client_id: 'own' }, d.root)
    const said = { body: 'more', client_id: 'said' }
    await d.service.call('POST', `${own}/${id}/messages`, { token: d.root.token, body: said })
    const refused = [
      await d.answer(id, said),
      await create(d, { client_id: 'k', subject: 'else' }),
      await create(d, { client_id: 'k', user_id: eve.id }),
      await create(d, { client_id: 'own', user_id: d.root.id }),
      await d.service.call('POST', own, {
        token: d.root.token,
        body: { ...ofRoot, client_id: 'k' },
      }),
    ]
    const outcomes = refused.map(({ status, headers }) => [status, headers.get('x-error-reason')])
    expect(outcomes).toEqual(refused.map(() => [409, 'idempotency_mismatch']))
  })

  test('counts neither for the tickets a day of its owner nor for their room', async () => {
    await using d = await openDesk({ ticketsPerDay: 1 })
    await create(d)
    await create(d)
    const opens = () =>
      d.service.call('POST', own, { token: d.ada.token, body: { subject: 's', body: 'b' } })
    expect([(await opens()).status, (await opens()).status]).toEqual([201, 429])
    expect((await create(d)).status).toBe(201)
  })

  test('is refused for nobody, for removed people, and to those who are no admin', async () => {
    await using d = await openDesk()
    const eve = await d.service.register('eve')
    await d.service.call('DELETE', `/v1/admin/users/${eve.id}`, { token: d.root.token })
    for (const user_id of [unknownId, eve.id]) {
      const { status, body } = await create(d, { user_id })
      expect([status, body.error.details]).toEqual([400, { user_id: 'must be an existing user' }])
    }
    expect((await create(d, {}, d.ada)).status).toBe(403)
    expect((await d.list()).data).toEqual([])
  })
})

describe('notes', () => {
  test('are visible to admins only, with their author, oldest first; they change nothing else', async () => {
    const d = await newPeople()
    const { id } = await d.open()
    const before = await d.show(id)
    const note = (body: unknown) =>
      d.service.call('POST', `${desk}/${id}/notes`, { token: d.root.token, body: { body } })
    const first = await note(' Careful. ')
    expect(first.status).toBe(201)
    const author = { id: d.root.id, display_name: 'root' }
    expect(first.body).toEqual({ id: ulid, body: 'Careful.', author, created_at: timestamp })
    const second = await note('Twice.')
    expect(await d.show(id)).toEqual({ ...before, notes: [first.body, second.body] })
    expect((await note('\u2800')).body.error.details).toEqual({ body: 'must not be empty' })
  })

  const listeningDesk = shared(() => openDesk({ listen: true }))

  /** A note of Root's, with calls for its address. */
  async function openNoted() {
    const d = await (await listeningDesk()).withNewPeople()
    const { id } = await d.open()
    const notes = `${desk}/${id}/notes`
    const { body: note } = await d.service.call('POST', notes, {
      token: d.root.token,
      body: { body: 'Careful.' },
    })
    const on = (by: Person, method: string, body?: object, at = `${notes}/${note.id}`) =>
      d.service.call(method, at, { token: by.token, body })
    return { ...d, id, note, on }
  }

  test('are changed and deleted by their author, seen at once by other desks', async () => {
    const d = await openNoted()
    const { id, note, on, root, ada } = d
    const eve = await d.hire('eve')
    const before = await d.show(id)
    const owner = await d.service.connect(ada, '&events=support')
    const other = await d.service.connect(eve, '&events=support')
    d.clock.advance(1_000)
    const edited = await on(root, 'PATCH', { body: ' Very careful. ' })
    const changed = { ...note, body: 'Very careful.', edited_at: timestamp }
    expect([edited.status, edited.body]).toEqual([200, changed])
    expect(Date.parse(edited.body.edited_at)).toBe(d.clock.now())
    const frame = await other.next('ticket_updated')
    const [ticket] = (await d.list(`?user_id=${ada.id}`)).data
    expect(frame).toEqual({ type: 'ticket_updated', ticket })
    d.clock.advance(1_000)
    expect((await on(root, 'PATCH', { body: 'Very careful.' })).body).toEqual(edited.body)
    expect(await d.show(id)).toEqual({ ...before, notes: [edited.body] })
    expect((await on(root, 'DELETE')).status).toBe(204)
    expect(await other.next('ticket_updated')).toEqual(frame)
    expect(await d.show(id)).toEqual({ ...before, notes: [] })
    expect([(await on(root, 'DELETE')).status, (await on(root, 'PATCH', note)).status]).toEqual([
      404, 404,
    ])
    await owner.settled()
    expect(owner.frames).toEqual([])
  })

  test('of others are refused, and of other tickets not found', async () => {
    const d = await openNoted()
    const { note, on, ada } = d
    const eve = await d.hire('eve')
    for (const [method, body] of [['PATCH', { body: 'b' }], ['DELETE']] as const) {
      const answers = [await on(eve, method, body), await on(ada, method, body)]
      expect(answers.map(({ status, body }) => [status, body.error.code])).toEqual([
        [403, 'forbidden'],
        [403, 'forbidden'],
      ])
      const elsewhere = `${desk}/${(await d.open()).id}/notes/${note.id}`
      expect((await on(d.root, method, body, elsewhere)).status).toBe(404)
    }
    expect((await on(d.root, 'PATCH', { body: ' ' })).body.error.details).toEqual({
      body: 'must not be empty',
    })
    expect((await d.show(d.id)).notes).toEqual([note])
  })

  test('of a removed author may be deleted by any admin, but not changed', async () => {
    const d = await openNoted()
    const { id, note, on, service, root } = d
    const eve = await d.hire('eve')
    const remaining = async () =>
      (await service.call('GET', `${desk}/${id}`, { token: eve.token })).body.notes
    const account = `/v1/admin/users/${root.id}`
    expect((await on(eve, 'DELETE')).status).toBe(403)
    expect((await on(eve, 'PATCH', { role: 'user' }, account)).status).toBe(200)
    expect((await on(eve, 'DELETE', undefined, account)).status).toBe(204)
    const author = { ...note.author, display_name: 'Deleted user' }
    expect(await remaining()).toEqual([{ ...note, author, author_removed: true }])
    expect((await on(eve, 'PATCH', { body: 'b' })).status).toBe(403)
    expect((await on(eve, 'DELETE')).status).toBe(204)
    expect(await remaining()).toEqual([])
  })

  test.each([{ role: 'user' }, { disabled: true }])(
    'of an author who is no longer an enabled admin may be deleted by any: %o',
    async (change) => {
      const { id, on, root, ...d } = await openNoted()
      const eve = await d.hire('eve')
      const account = `/v1/admin/users/${root.id}`
      expect((await on(eve, 'PATCH', change, account)).status).toBe(200)
      expect((await on(eve, 'PATCH', { body: 'b' })).status).toBe(403)
      expect((await on(eve, 'DELETE')).status).toBe(204)
      const { body } = await d.service.call('GET', `${desk}/${id}`, { token: eve.token })
      expect(body.notes).toEqual([])
    },
  )
})

describe('canned replies', () => {
  const path = '/v1/admin/support/canned-replies'

  test('are created, listed, changed and removed', async () => {
    await using d = await openDesk()
    const { token } = d.root
    const made = await d.service.call('POST', path, {
      token,
      body: { title: ' Hi ', body: ' Hello! ' },
    })
    const reply = { id: ulid, title: 'Hi', body: 'Hello!', locale: null }
    expect([made.status, made.body]).toEqual([201, reply])
    const at = `${path}/${made.body.id}`
    const change = { title: 'Greeting', locale: 'en' }
    const changed = await d.service.call('PATCH', at, { token, body: change })
    expect([changed.status, changed.body]).toEqual([200, { ...made.body, ...change }])
    const again = await d.service.call('PATCH', at, { token, body: { title: 'Greeting' } })
    expect(again.body).toEqual(changed.body)
    const ofAny = await d.service.call('PATCH', at, { token, body: { locale: null } })
    expect(ofAny.body.locale).toBe(null)
    const { body } = await d.service.call('GET', path, { token })
    const pagination = { page: 1, per_page: 20, total: 1, total_pages: 1 }
    expect(body).toEqual({ success: true, data: [ofAny.body], pagination })
    const removals = [
      await d.service.call('DELETE', at, { token }),
      await d.service.call('DELETE', at, { token }),
    ]
    expect(removals.map(({ status }) => status)).toEqual([204, 404])
  })

  test.each([
    ['POST', '', {}, { title: 'is required', body: 'is required' }],
    ['POST', '', { title: '\u00ad', body: 'b' }, { title: 'must not be empty' }],
    ['PATCH', `/${unknownId}`, { body: '\uffa0' }, { body: 'must not be empty' }],
    ['PATCH', `/${unknownId}`, { locale: 'xx' }, { locale: 'must be one of: en, de, es, fr, pt' }],
    ['PATCH', `/${unknownId}`, {}, { body: 'must name something to change' }],
    ['PATCH', `/${unknownId}`, { title: null }, { body: 'must name something to change' }],
  ])('%s …/canned-replies%s with %j is refused', async (method, at, body, details) => {
    const d = await anyDesk()
    const answer = await d.service.call(method, path + at, { token: d.root.token, body })
    expect([answer.status, answer.body.error.details]).toEqual([400, details])
  })

  test('that are not there are 404', async () => {
    const d = await newPeople()
    const { token } = d.root
    const change = { token, body: { title: 't' } }
    expect((await d.service.call('PATCH', `${path}/${unknownId}`, change)).status).toBe(404)
    expect((await d.service.call('DELETE', `${path}/nonsense`, { token })).status).toBe(404)
  })
})

describe('the operator', () => {
  test('without mail gets none', async () => {
    await using d = await openDesk()
    await d.open()
    const others = "SELECT DISTINCT kind FROM outbox WHERE kind <> 'verification_mail'"
    expect(d.service.sqlite.query(others).all()).toEqual([])
  })
})

test('the own export has the own tickets with their messages, and nothing of the desk', async () => {
  const d = await newPeople()
  const { id } = await d.open()
  await d.answer(id)
  await d.open({}, await d.service.register())
  const { body } = await d.service.call('GET', '/v1/users/me/export', { token: d.ada.token })
  const shown = await d.service.call('GET', `${own}/${id}`, { token: d.ada.token })
  expect(body.tickets).toEqual([shown.body])
})

test.each([
  ['a status', "UPDATE tickets SET status = 'late'"],
  ['a priority', "UPDATE tickets SET priority = 'now'"],
  ['a category', "UPDATE tickets SET category = 'spam'"],
  ['a queue position that contradicts its times', 'UPDATE tickets SET queue_key = 1'],
  ['a resolution time on an open ticket', 'UPDATE tickets SET settled_at = 1'],
  [
    'a settled ticket that waits',
    "UPDATE tickets SET status = 'closed', settled_at = 1, waiting_since = 2, queue_key = 2",
  ],
  ['an unknown assignee', "UPDATE tickets SET assignee_id = 'nobody'"],
  ['a message without a ticket', "UPDATE ticket_messages SET ticket_id = 'nowhere'"],
  ['a change of an unknown field', "UPDATE ticket_history SET field = 'subject'"],
])('the database rejects %s', async (_, sql) => {
  const d = await anyDesk()
  await d.answer((await d.open()).id)
  expect(() => d.service.sqlite.run(sql)).toThrow(/constraint failed/)
})
