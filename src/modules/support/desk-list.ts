import { Type } from '@sinclair/typebox'
import { cutAtLimit, decodeCursor, type Listing, type ListRange } from '../../lib/list-range.ts'
import type { DeskItem, DeskStore, TicketFilter } from './desk-store.ts'
import { matchOf, type SearchStore } from './search-store.ts'

export type DeskList = ReturnType<typeof createDeskList>

/** Choice: nobody turns pages further; counting more would cost more the more tickets there are. */
const mostCounted = 200

const queuePosition = Type.Tuple([Type.Integer(), Type.Integer()])
const searchPosition = Type.Tuple([Type.Integer()])

/** The tickets of everybody, for the desk (decisions 7): its queue, or what a search finds. */
export function createDeskList({ desk, search }: { desk: DeskStore; search: SearchStore }) {
  function queue(filter: TicketFilter, range: ListRange): Listing<DeskItem> {
    const { total, first } = desk.plan(filter)
    if (range.form === 'page') {
      const limit = Math.min(range.perPage, total - range.offset)
      const rows = limit > 0 ? desk.list(filter, first, nearer(range.offset, limit, total)) : []
      return { form: 'page', rows, total }
    }
    const { cursor, limit } = range
    const before = cursor === undefined ? undefined : queuePlace(cursor)
    // There are no more than `total`: asking for more would walk to the end of the index.
    const most = Math.min(limit + 1, total)
    const rows = most > 0 ? desk.list(filter, first, { limit: most, offset: 0, before }) : []
    return cutAtLimit(rows, limit, (row) => [row.queueKey, row.n])
  }

  // Choice: newest ticket first, so that a page ends the walk along the index; pages by number end with what is
  // counted, the cursor form goes on.
  function find(match: string, range: ListRange): Listing<DeskItem> {
    if (range.form === 'page') {
      const { offset, perPage } = range
      const all = search.list(match, { limit: mostCounted })
      const rows = desk.listByNumber(all.slice(offset, offset + perPage))
      return { form: 'page', rows, total: all.length }
    }
    const { cursor, limit } = range
    const before = cursor === undefined ? undefined : decodeCursor(cursor, searchPosition)[0]
    const ns = search.list(match, { limit: limit + 1, before })
    return cutAtLimit(desk.listByNumber(ns), limit, (row) => [row.n])
  }

  return {
    /** Without `q` who waits longest comes first, then what changed last; with it the newest ticket. */
    list(filter: TicketFilter, q: string | undefined, range: ListRange): Listing<DeskItem> {
      if (q === undefined || q.trim() === '') return queue(filter, range)
      const match = matchOf(q, filter)
      if (match !== undefined) return find(match, range)
      if (range.form === 'page') return { form: 'page', rows: [], total: 0 }
      return { form: 'cursor', rows: [], cursor: null }
    },
  }
}

/** Where a page is counted from: the nearer end of the list. */
function nearer(offset: number, limit: number, total: number) {
  const fromEnd = total - offset - limit
  return fromEnd < offset ? { limit, offset: fromEnd, reversed: true } : { limit, offset }
}

function queuePlace(cursor: string) {
  const [queueKey, n] = decodeCursor(cursor, queuePosition)
  return { queueKey, n }
}
