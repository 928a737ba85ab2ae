import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { generate } from '../bench/growth/generate.ts'
import { rareWord } from '../bench/growth/support-fill.ts'
import { wordAt } from '../bench/growth/vocabulary.ts'
import { type Connection, openForServer } from '../src/db/open.ts'
import { ticketMessages, tickets } from '../src/db/schema.ts'
import type { ListRange } from '../src/lib/list-range.ts'
import { createDeskList, type DeskList } from '../src/modules/support/desk-list.ts'
import { createDeskStore, type TicketFilter } from '../src/modules/support/desk-store.ts'
import { createSearchStore } from '../src/modules/support/search-store.ts'
import { temporaryDirectory } from './support/directory.ts'

/** Of several hundred tickets at random, what reading every one of them finds. */
describe('a search finds what reading every ticket finds', () => {
  const directory = temporaryDirectory()
  let connection: Connection
  let desk: DeskList
  let ada = ''
  let root = ''

  beforeAll(async () => {
    const { people } = await generate(directory.path, 0.002, 'support')
    ada = people[0] ?? ''
    root = people[5] ?? ''
    connection = openForServer(directory.path)
    const { orm } = connection
    desk = createDeskList({ desk: createDeskStore(orm), search: createSearchStore(orm) })
  })
  afterAll(() => {
    connection.close()
    directory[Symbol.dispose]()
  })

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
  const filters = (): TicketFilter[] => [
    {},
    { status: 'in_progress' },
    { priority: 'urgent' },
    { category: 'other' },
    { assigneeId: null },
    { assigneeId: root },
    { userId: ada },
    { status: 'open', assigneeId: root },
    { status: 'closed', priority: 'low', category: 'billing', assigneeId: null },
    { userId: ada, status: 'resolved' },
  ]

  test.each(queries)('for %p, with every filter, by number and by cursor', (q) => {
    for (const filter of filters()) {
      const expected = findByReading(q, filter)
      const page: ListRange = { form: 'page', page: 2, perPage: 30, offset: 30 }
      expect(desk.list(filter, q, page)).toMatchObject({
        rows: expected.slice(30, 60).map((id) => ({ id })),
        total: Math.min(200, expected.length),
      })
      expect(walk(q, filter)).toEqual(expected)
    }
  })

  test('more than is counted', () => {
    expect(findByReading(frequent, {}).length).toBeGreaterThan(200)
    expect(findByReading(rareWord.word, { userId: ada }).length).toBeGreaterThan(0)
  })

  function findByReading(q: string, filter: TicketFilter): string[] {
    const { orm } = connection
    const wordsOf = Map.groupBy(orm.select().from(ticketMessages).all(), (row) => row.ticketId)
    const sought = q.split(' ')
    const beginning = sought.pop() ?? ''
    return orm
      .select()
      .from(tickets)
      .all()
      .filter((row) =>
        Object.entries(filter).every(([name, value]) => row[name as keyof TicketFilter] === value),
      )
      .filter(({ id, subject }) => {
        const texts = [subject, ...(wordsOf.get(id) ?? []).map(({ body }) => body)]
        const words = texts.flatMap((text) => text.split(' '))
        return (
          sought.every((word) => words.includes(word)) &&
          words.some((word) => word.startsWith(beginning))
        )
      })
      .map(({ id }) => id)
      .sort()
      .reverse()
  }

  function walk(q: string, filter: TicketFilter): string[] {
    const found: string[] = []
    let cursor: string | null | undefined
    do {
      const part = desk.list(filter, q, { form: 'cursor', limit: 17, cursor: cursor ?? undefined })
      found.push(...part.rows.map(({ id }) => id))
      cursor = part.form === 'cursor' ? part.cursor : null
    } while (cursor !== null)
    return found
  }
})
