import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { migrate, migrations } from '../src/db/migrations.ts'
import type { Orm } from '../src/db/open.ts'
import { createDeskStore, type TicketFilter } from '../src/modules/support/desk-store.ts'
import { createSearchStore, matchOf } from '../src/modules/support/search-store.ts'
import { createTicketStore } from '../src/modules/support/store.ts'
import { openDesk } from './support/desk.ts'
import { shared } from './support/shared.ts'
import { waitFor } from './support/wait.ts'

describe('a search', () => {
  const withTicket = shared(async () => {
    const d = await openDesk()
    await d.open({ subject: 'Something', body: 'else' })
    const { id } = await d.open({ subject: 'Refund', body: 'Zurueck zum Café' })
    await d.answer(id, { body: 'naïve tracking number हिन्दी x\u0305y' })
    const path = `/v1/admin/support/tickets/${id}/notes`
    await d.service.call('POST', path, { token: d.root.token, body: { body: 'secret' } })
    return { ...d, id }
  })

  test.each([
    ['refund', 'a word of the subject', 1],
    ['zurueck', 'a word of the first message', 1],
    ['tracking', 'a word of an answer', 1],
    ['REFUND', 'whatever its case', 1],
    ['naive cafe', 'without the accents', 1],
    ['naïve CAFÉ', 'with the accents', 1],
    ['track', 'the beginning of the last word', 1],
    ['हिन्दी', 'a word with marks', 1],
    ['हिन', 'the beginning of a word with marks', 1],
    ['x\u0305y', 'a word with a mark that no letter has', 1],
    ['tracking refund naive', 'words of different messages', 1],
    ['"refund"', 'with quotation marks', 1],
    ['ref-und* (', 'with marks of a query language', 0],
    ['refund NOT tracking', 'with a word of a query language that is not there', 0],
    ['fund', 'the end of a word', 0],
    ['track refund', 'the beginning of another word than the last', 0],
    ['statusopen', 'a word of the index that is no text of the ticket', 0],
    ['secret', 'a word of a note', 1],
    ['secret refund naive', 'words of a note, the subject and an answer', 1],
    ['01', 'the beginning of an id', 0],
  ])('for %p (%s) finds %d', async (q, _, matches) => {
    const { id, list } = await withTicket()
    const { data } = await list(`?q=${encodeURIComponent(q)}`)
    expect(data.map((ticket: { id: string }) => ticket.id)).toEqual(matches === 1 ? [id] : [])
  })

  test.each(['!!!', '"', '*', '"" ""', '%', '😀', '-', "'; DROP TABLE tickets", '\u0301'])(
    'for %p is no error and finds nothing',
    async (q) => {
      const { list } = await withTicket()
      for (const form of ['', '&limit=5']) {
        const { data } = await list(`?q=${encodeURIComponent(q)}${form}`)
        expect(data).toEqual([])
      }
    },
  )

  test('finds the words of a note until it is changed or deleted', async () => {
    await using d = await openDesk()
    const { id } = await d.open()
    const call = (method: string, body?: object, at = '') =>
      d.service.call(method, `/v1/admin/support/tickets/${id}/notes${at}`, {
        token: d.root.token,
        body,
      })
    const foundBy = async (...words: string[]) => {
      const found = await Promise.all(words.map((word) => d.list(`?q=${word}`)))
      return found.map(({ pagination }) => pagination.total)
    }
    const words = ['lawyer', 'banker', 'refund', 'insists'] as const
    const note = (await call('POST', { body: 'Her lawyer called.' })).body
    await call('POST', { body: 'Her banker called.' })
    expect(await foundBy(...words)).toEqual([1, 1, 1, 0])
    await d.write(id, 'She insists.')
    expect(await foundBy(...words)).toEqual([1, 1, 1, 1])
    await call('PATCH', { body: 'Somebody called.' }, `/${note.id}`)
    expect(await foundBy(...words, 'somebody')).toEqual([0, 1, 1, 1, 1])
    await call('DELETE', undefined, `/${note.id}`)
    expect(await foundBy(...words, 'somebody')).toEqual([0, 1, 1, 1, 0])
  })

  test('finds the newest note beside many long messages and notes', async () => {
    await using d = await openDesk()
    const { id } = await d.open({ body: 'opening '.repeat(1_000) })
    const path = `/v1/admin/support/tickets/${id}/notes`
    for (const body of ['long '.repeat(2_000), 'newest']) {
      await d.service.call('POST', path, { token: d.root.token, body: { body } })
    }
    expect((await d.list('?q=opening%20newest')).pagination.total).toBe(1)
  })

  test('finds the notes of an older database', () => {
    using sqlite = new Database(':memory:')
    migrate(sqlite, 'memory', { steps: migrations.slice(0, 19) })
    sqlite.run(
      "INSERT INTO users (id, email, display_name, locale, role, password_hash, created_at) VALUES ('u', 'u@example.com', 'u', 'en', 'user', 'x', 1)",
    )
    addTickets(sqlite, 'u', 2)
    sqlite.run(
      "INSERT INTO ticket_notes SELECT 'note', id, 'u', 'Her lawyer called.', 1 FROM tickets WHERE n = 2",
    )
    migrate(sqlite, 'memory')
    const found = (word: string) => createSearchStore(drizzle(sqlite)).list(word, {}, { limit: 9 })
    expect([found('lawyer'), found('refund')]).toEqual([[2], [2, 1]])
  })

  test('for an empty text is no search', async () => {
    await using d = await openDesk()
    await d.open()
    expect((await d.list('?q=')).pagination.total).toBe(1)
    expect((await d.list('?q=%20')).pagination.total).toBe(1)
  })

  test('for an id finds its ticket', async () => {
    await using d = await openDesk()
    const [{ id }] = [await d.open(), await d.open()]
    expect((await d.list(`?q=${id.toLowerCase()}`)).data).toMatchObject([{ id }])
  })

  test.each(['𠮷田', 'Jo\u0308'])('for the short name %p finds its owner', async (q) => {
    const { service, open, list } = await withTicket()
    const owner = await service.register(q.normalize('NFC'), `short${[...q].length}`)
    const { id } = await open({}, owner)
    const { data } = await list(`?q=${encodeURIComponent(q)}`)
    expect(data.map((ticket: { id: string }) => ticket.id)).toEqual([id])
  })

  test('combines with every filter, also after changes', async () => {
    await using d = await openDesk()
    const bob = await d.service.register('bob')
    const mine = await d.open({ priority: 'urgent', category: 'billing' })
    await d.open({}, bob)
    await d.answer(mine.id, { status: 'in_progress' })
    const filters = [
      'status=in_progress',
      'priority=urgent',
      'category=billing',
      'assignee_id=me',
      `user_id=${d.ada.id}`,
      `status=in_progress&priority=urgent&category=billing&assignee_id=${d.root.id}`,
    ]
    for (const filter of filters) {
      const { data, pagination } = await d.list(`?q=refund&${filter}`)
      expect([filter, pagination.total, data[0].id]).toEqual([filter, 1, mine.id])
    }
    expect((await d.list('?q=refund&assignee_id=none')).pagination.total).toBe(1)
    await d.update(mine.id, { status: 'closed', assignee_id: null })
    expect((await d.list('?q=refund&status=in_progress')).pagination.total).toBe(0)
    expect((await d.list('?q=refund&assignee_id=none')).pagination.total).toBe(2)
  })

  test('shows the newest ticket first, page by page and by cursor', async () => {
    await using d = await openDesk()
    const ids: string[] = []
    for (let n = 0; n < 5; n++) ids.unshift((await d.open()).id)
    const idsOf = ({ data }: { data: { id: string }[] }) => data.map(({ id }) => id)
    expect(idsOf(await d.list('?q=refund&per_page=2&page=2'))).toEqual(ids.slice(2, 4))
    const first = await d.list('?q=refund&limit=3')
    await d.open()
    const second = await d.list(`?q=refund&limit=3&cursor=${first.pagination.cursor}`)
    expect([...idsOf(first), ...idsOf(second)]).toEqual(ids)
  })

  test('finds the first and the newest message of a very long ticket', async () => {
    await using d = await openDesk()
    const { id } = await d.open({ body: 'opening' })
    for (let n = 0; n < 130; n++) await d.write(id, `word${n}`)
    const found = async (q: string) => (await d.list(`?q=${q}`)).pagination.total
    expect([await found('opening'), await found('word129'), await found('word40')]).toEqual([
      1, 1, 1,
    ])
  })

  test('counts two hundred matches, where numbered pages end; cursors continue', async () => {
    await using d = await openDesk()
    addTickets(d.service.sqlite, d.ada.id, 220)
    const last = await d.list('?q=refund&per_page=100&page=2')
    expect([last.data.length, last.pagination.total]).toEqual([100, 200])
    expect((await d.list('?q=refund&per_page=100&page=3')).data).toEqual([])
    let seen = 0
    let cursor = ''
    do {
      const { data, pagination } = await d.list(`?q=refund&limit=100${cursor}`)
      seen += data.length
      cursor = pagination.cursor ? `&cursor=${pagination.cursor}` : ''
    } while (cursor)
    expect(seen).toBe(220)
  })
})

test('each numbered page of the queue matches the cursor form', async () => {
  await using d = await openDesk()
  addTickets(d.service.sqlite, d.ada.id, 95)
  const idsOf = ({ data }: { data: { id: string }[] }) => data.map(({ id }) => id)
  const filters = ['', '&status=open', '&priority=normal', '&assignee_id=none']
  for (const filter of [...filters, `&user_id=${d.ada.id}`, '&status=open&category=other']) {
    const all = idsOf(await d.list(`?limit=100${filter}`))
    const pages: string[] = []
    for (let page = 1; page <= 11; page++) {
      pages.push(...idsOf(await d.list(`?per_page=10&page=${page}${filter}`)))
    }
    expect(pages).toEqual(all)
  }
})

describe('a change of a ticket', () => {
  const actions: [string, (d: Desk, id: string) => Promise<unknown>][] = [
    ['answers it with another status', (d, id) => d.answer(id, { status: 'resolved' })],
    [
      'changes all that can be changed',
      (d, id) => d.update(id, { status: 'closed', priority: 'low', assignee_id: d.root.id }),
    ],
    ['closes it', (d, id) => d.close(id)],
    ['writes into it', (d, id) => d.write(id, 'And?')],
  ]

  test.each(actions)('that %s updates it once', async (_, act) => {
    await using d = await openDesk()
    const { sqlite } = d.service
    const { id } = await d.open()
    sqlite.run(`CREATE TEMP TABLE updates (n);
      CREATE TEMP TRIGGER count_updates AFTER UPDATE ON main.tickets
      BEGIN INSERT INTO updates VALUES (new.n); END`)
    await act(d, id)
    expect(sqlite.query('SELECT n FROM updates').all()).toEqual([{ n: 1 }])
  })

  test('leaves a short trail in the index, which stays correct', async () => {
    await using d = await openDesk()
    const { sqlite } = d.service
    const ids: string[] = []
    for (let n = 0; n < 30; n++) ids.push((await d.open()).id)
    for (const id of ids) await d.update(id, { priority: 'high' })
    const segments = sqlite.query('SELECT DISTINCT segid FROM ticket_search_idx')
    await waitFor(() => segments.all().length < 16)
    expect((await d.list('?q=refund&priority=high')).pagination.total).toBe(30)
    expect((await d.list('?q=refund&priority=normal')).pagination.total).toBe(0)
  })
})

describe('no list reads more rows than it shows', () => {
  /** The query plans of the statements that `work` runs. */
  function plansOf(work: (stores: ReturnType<typeof openStores>) => void) {
    using sqlite = new Database(':memory:')
    migrate(sqlite, 'memory')
    const statements: string[] = []
    const stores = openStores(drizzle(sqlite))
    const prepare = sqlite.prepare.bind(sqlite)
    const record = (text: string) => {
      statements.push(text)
      return prepare(text)
    }
    Object.assign(sqlite, { prepare: record, query: record })
    work(stores)
    return statements.flatMap((text) =>
      prepare<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${text}`)
        .all()
        .map(({ detail }) => detail)
        .filter((detail) => /ticket|TEMP|^SCAN(?! json_each)/.test(detail)),
    )
  }

  const openStores = (orm: Orm) => ({
    desk: createDeskStore(orm),
    search: createSearchStore(orm),
    store: createTicketStore(orm),
  })
  const page = { limit: 20, offset: 0 }
  const byNumber = 'SEARCH tickets USING INTEGER PRIMARY KEY (rowid=?)'
  const lastMessage = 'SEARCH ticket_messages USING PRIMARY KEY (ticket_id=? AND seq=?)'
  const rows = [byNumber, lastMessage]

  test.each([
    [{}, 'SCAN', 'tickets_queue'],
    [{ priority: 'low', category: 'other' }, 'SCAN', 'tickets_queue'],
    [{ statuses: ['open'], assigneeId: null }, 'SEARCH', 'tickets_queue_status (status=?)'],
    [{ statuses: ['open'], category: 'other' }, 'SEARCH', 'tickets_queue_status (status=?)'],
    [{ isWaiting: true }, 'SEARCH', 'tickets_queue (queue_key<?)'],
    [{ isWaiting: false }, 'SEARCH', 'tickets_queue (queue_key>?)'],
    [
      { isWaiting: true, statuses: ['open'] },
      'SEARCH',
      'tickets_queue_status (status=? AND queue_key<?)',
    ],
    [{ userId: 'x', isWaiting: true }, 'SEARCH', 'tickets_queue_user (user_id=? AND queue_key<?)'],
    [
      { userId: 'x', statuses: ['open'], priority: 'low', category: 'other', assigneeId: 'y' },
      'SEARCH',
      'tickets_queue_user (user_id=?)',
    ],
    [
      { statuses: ['open', 'in_progress'], assigneeId: 'x' },
      'SEARCH',
      'tickets_queue_assignee (assignee_id=?)',
    ],
  ] as const)('the queue filtered by %j walks along one index', (filter, step, index) => {
    const plan = plansOf(({ desk }) => desk.list(filter, page, 'longest_waiting'))
    expect(plan).toEqual([`${step} tickets USING COVERING INDEX ${index}`, ...rows])
  })

  test('the queue of several statuses is merged from the first tickets of each', () => {
    const plan = plansOf(({ desk }) =>
      desk.list({ statuses: ['open', 'in_progress'] }, page, 'longest_waiting'),
    )
    const walks = 'SEARCH tickets USING COVERING INDEX tickets_queue_status (status=?)'
    expect(plan).toEqual([walks, 'USE TEMP B-TREE FOR ORDER BY', ...rows])
  })

  test('the shortest waits are found by walking back along the same index', () => {
    const both = (index: string, found: string) => [
      `SEARCH tickets USING COVERING INDEX ${index} (${found}queue_key<?)`,
      `SEARCH tickets USING COVERING INDEX ${index} (${found}queue_key>?)`,
      ...rows,
    ]
    const planOf = (filter: TicketFilter) =>
      plansOf(({ desk }) => desk.list(filter, page, 'shortest_waiting'))
    expect(planOf({})).toEqual(both('tickets_queue', ''))
    expect(planOf({ statuses: ['open'] })).toEqual(both('tickets_queue_status', 'status=? AND '))
    expect(planOf({ assigneeId: 'x', statuses: ['open', 'in_progress'] })).toEqual(
      both('tickets_queue_assignee', 'assignee_id=? AND '),
    )
  })

  test.each([
    {},
    { isWaiting: true },
    { statuses: ['open'], assigneeId: null },
    { userId: 'x' },
    { userId: 'x', statuses: ['open', 'closed'] },
    { priority: 'low', category: 'other' },
  ] as const)('the total for %j is counted along an index', (filter) => {
    expect(plansOf(({ desk }) => desk.count(filter))).toEqual([
      expect.stringMatching(/^(SCAN|SEARCH) tickets USING COVERING INDEX /),
    ])
  })

  test('a search follows the order of the full-text index', () => {
    const match = matchOf('refund', () => []) ?? ''
    const filter = { statuses: ['open'], userId: 'x' } as const
    expect(plansOf(({ search }) => search.list(match, filter, { limit: 20 }))).toEqual([
      expect.stringMatching(/^SCAN ticket_search VIRTUAL TABLE INDEX \d+:.*M/),
      byNumber,
    ])
    expect(plansOf(({ desk }) => desk.listByNumber([1]))).toEqual(rows)
  })

  test('one’s own list and the tickets to close are index ranges', () => {
    const range = 'SEARCH tickets USING INDEX tickets_owner (user_id=? AND user_seq<?)'
    const page = { limit: 20, offset: 0 }
    expect(plansOf(({ store }) => store.listOfUser('x', page))).toEqual([range])
    expect(plansOf(({ store }) => store.countOfUser('x'))).toEqual([
      'SEARCH tickets USING COVERING INDEX tickets_owner (user_id=?)',
    ])
    const settled = 'SEARCH tickets USING INDEX tickets_settled_at (status=? AND settled_at<?)'
    expect(plansOf(({ store }) => store.listSilent(0, 20))).toEqual([settled])
    expect(plansOf(({ store }) => store.listOld(0, 1))).toEqual([settled])
  })
})

type Desk = Awaited<ReturnType<typeof openDesk>>

/** Inserts tickets directly, every third of them waiting. */
function addTickets(sqlite: Database, userId: string, count: number) {
  sqlite.transaction(() => {
    for (let n = 1; n <= count; n++) {
      const id = `01BX5ZZKBK${String(n).padStart(16, '0')}`
      const waiting = n % 3 === 0 ? n : null
      sqlite.run(
        "INSERT INTO tickets (id, user_id, user_seq, subject, status, priority, category, message_count, waiting_since, created_at, updated_at, queue_key) VALUES (?, ?, ?, 'Refund', 'open', 'normal', 'other', 0, ?, ?, ?, ?)",
        [id, userId, n, waiting, n, n, waiting ?? 2 ** 52 - n],
      )
      sqlite.run('INSERT INTO ticket_messages VALUES (?, 1, ?, ?, 0, ?, NULL, ?, NULL)', [
        id,
        id,
        userId,
        'Where is it?',
        n,
      ])
      sqlite.run('UPDATE tickets SET message_count = 1 WHERE id = ?', [id])
    }
  })()
}
