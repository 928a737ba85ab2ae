import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { addressOf, admins, cast, type Landmarks, password } from '../bench/growth/dataset.ts'
import { generate } from '../bench/growth/generate.ts'
import { rareWord } from '../bench/growth/support-fill.ts'
import { wordAt } from '../bench/growth/vocabulary.ts'
import { desk } from './support/desk.ts'
import { startService, type TestService } from './support/service.ts'

type Filter = Partial<
  Record<'status' | 'priority' | 'category' | 'assignee_id' | 'user_id' | 'waiting', string>
>
type Ticket = Record<keyof Filter, string | null> & { id: string; text: string; place: number }

/** Compares searches in several hundred random tickets with a scan of all of them. */
describe('the search finds the same as reading every ticket', () => {
  let service: TestService
  let landmarks: Landmarks
  let token = ''
  let tickets: Ticket[] = []

  beforeAll(async () => {
    const fill = async (directory: string) => {
      landmarks = await generate(directory, 0.002, 'support')
    }
    service = await startService({ fill })
    const [admin = 'root'] = admins
    const body = { email: addressOf(cast.indexOf(admin)), password }
    token = (await service.call('POST', '/v1/auth/login', { body })).body.access_token
    await addNotes()
    tickets = service.sqlite
      .query<Ticket, []>(
        `SELECT id, status, priority, category, assignee_id, user_id,
           iif(waiting_since IS NULL, 'false', 'true') AS waiting,
           coalesce(waiting_since, 1e15 - updated_at) AS place, subject || ' ' || (
           SELECT group_concat(body, ' ') FROM (
             SELECT ticket_id, body FROM ticket_messages UNION ALL SELECT ticket_id, body FROM ticket_notes
           ) WHERE ticket_id = tickets.id
         ) AS text FROM tickets ORDER BY n DESC`,
      )
      .all()
  })
  afterAll(() => service[Symbol.asyncDispose]())

  /** Notes of which some are changed and some deleted, each with words that are rare and words that are frequent. */
  async function addNotes() {
    const { data } = await list(wordAt(80), {}, { limit: '60' })
    for (const [n, { id }] of data.entries()) {
      const path = `${desk}/${id}/notes`
      const body = { body: `${wordAt(n * 20)} ${rareWord.word}` }
      const note = (await service.call('POST', path, { token, body })).body
      const at = `${path}/${note.id}`
      if (n % 3 === 1) await service.call('DELETE', at, { token })
      if (n % 3 === 2) await service.call('PATCH', at, { token, body: { body: wordAt(500) } })
    }
  }

  const frequent = wordAt(10)
  const queries = [
    frequent,
    wordAt(80),
    wordAt(500),
    rareWord.word,
    frequent.slice(0, 2),
    wordAt(80).slice(0, 3),
    wordAt(85),
    wordAt(85).slice(0, -1),
    `${frequent} ${wordAt(20)}`,
    `${wordAt(80)} ${frequent} ${wordAt(5).slice(0, 2)}`,
    `${frequent.slice(0, 3)} ${wordAt(20)}`,
    `${frequent} nothing`,
  ]
  const filters = (): Filter[] => {
    const [ada = '', , , , , root = ''] = landmarks.people
    return [
      {},
      { status: 'in_progress' },
      { priority: 'urgent' },
      { category: 'other' },
      { assignee_id: 'none' },
      { assignee_id: root },
      { user_id: ada },
      { status: 'open', assignee_id: root },
      { status: 'closed', priority: 'low', category: 'billing', assignee_id: 'none' },
      { user_id: ada, status: 'resolved' },
      { status: 'closed,open' },
      { status: 'open,in_progress,resolved', assignee_id: 'none' },
      { user_id: ada, status: 'open,resolved' },
      { waiting: 'true' },
      { waiting: 'true', assignee_id: root },
      { waiting: 'false', status: 'open,in_progress' },
      { user_id: ada, waiting: 'false', priority: 'low' },
    ]
  }

  test.each(queries)('for %p, with every filter, by number and by cursor', async (q) => {
    for (const filter of filters()) {
      const expected = findByReading(q, filter)
      const { data, pagination } = await list(q, filter, { page: '2', per_page: '30' })
      expect(data.map(({ id }) => id)).toEqual(expected.slice(30, 60))
      expect(pagination.total).toBe(Math.min(200, expected.length))
      expect(await walk(q, filter)).toEqual(expected)
    }
  })

  test('without words in the order of the desk, with every filter, by number and by cursor', async () => {
    for (const filter of filters()) {
      const expected = tickets
        .filter((ticket) => passes(ticket, filter))
        .reverse()
        .sort((a, b) => a.place - b.place)
        .map(({ id }) => id)
      const { data, pagination } = await list('', filter, { page: '2', per_page: '30' })
      expect(data.map(({ id }) => id)).toEqual(expected.slice(30, 60))
      expect(pagination.total).toBe(expected.length)
      expect(await walk('', filter)).toEqual(expected)
    }
  })

  test('for more matches than are counted', () => {
    const [ada = ''] = landmarks.people
    expect(findByReading(frequent, {}).length).toBeGreaterThan(200)
    expect(findByReading(rareWord.word, { user_id: ada }).length).toBeGreaterThan(0)
  })

  function findByReading(q: string, filter: Filter): string[] {
    const sought = q.split(' ')
    const beginning = sought.pop() ?? ''
    return tickets
      .filter((ticket) => passes(ticket, filter))
      .filter(({ text }) => {
        const words = text.split(' ')
        return (
          sought.every((word) => words.includes(word)) &&
          words.some((word) => word.startsWith(beginning))
        )
      })
      .map(({ id }) => id)
  }

  function passes(ticket: Ticket, filter: Filter): boolean {
    return Object.entries(filter).every(([name, values]) =>
      values.split(',').includes(ticket[name as keyof Filter] ?? 'none'),
    )
  }

  async function list(q: string, filter: Filter, range: Record<string, string>): Promise<List> {
    const query = new URLSearchParams({ q, ...filter, ...range })
    return (await service.call('GET', `${desk}?${query}`, { token })).body
  }

  async function walk(q: string, filter: Filter): Promise<string[]> {
    const found: string[] = []
    for (let cursor: string | null | undefined = ''; typeof cursor === 'string'; ) {
      const part: List = await list(q, filter, { limit: '17', ...(cursor && { cursor }) })
      found.push(...part.data.map(({ id }) => id))
      cursor = part.pagination.cursor
    }
    return found
  }
})

type List = { data: { id: string }[]; pagination: { total?: number; cursor?: string | null } }
