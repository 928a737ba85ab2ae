import { type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { CheckedText, described, Flag, Schema } from '../api/fields.ts'
import { problem } from '../lib/errors.ts'
import { type CursorRange, isCursor, type Listing, type ListRange } from '../lib/list-range.ts'

const usualPageSize = 20
const largestPage = 100

export const cursorQuery = {
  limit: Type.Integer({
    minimum: 1,
    description: 'The page size in the cursor form; selects that form.',
  }),
  cursor: CheckedText((text) => (isCursor(text) ? undefined : problem('cursor')), {
    description: '`pagination.cursor` of the previous page.',
  }),
}

/** Pages by number, or a cursor form that stays stable while rows arrive. */
export const listQuery = (defaultSize = usualPageSize) => ({
  page: Type.Integer({ minimum: 1, default: 1, description: 'The number of the page.' }),
  per_page: Type.Integer({
    minimum: 1,
    default: defaultSize,
    description: `Values above ${largestPage} count as ${largestPage}.`,
  }),
  ...cursorQuery,
})

type Query = Record<string, string>

/** The pipeline has checked the query against `listQuery`. */
export function listRange(query: Query, defaultSize = usualPageSize): ListRange {
  const { page = 1, per_page = defaultSize, limit, cursor } = query
  if (limit !== undefined || cursor !== undefined) return cursorRange(query, defaultSize)
  const perPage = Math.min(Number(per_page), largestPage)
  const offset = Math.min((Number(page) - 1) * perPage, Number.MAX_SAFE_INTEGER)
  return { form: 'page', page: Number(page), perPage, offset }
}

export function cursorRange({ limit, cursor }: Query, defaultSize: number): CursorRange {
  return { form: 'cursor', limit: Math.min(Number(limit ?? defaultSize), largestPage), cursor }
}

export function pageOf<Row, View>(
  query: Query,
  list: (range: ListRange) => Listing<Row>,
  view: (row: Row) => View,
  size?: number,
) {
  const range = listRange(query, size)
  return listAnswer(range, list(range), view)
}

export function listAnswer<Row, View>(
  range: ListRange,
  listing: Listing<Row>,
  view: (row: Row) => View,
) {
  const data = listing.rows.map(view)
  if (listing.form === 'page' && range.form === 'page') {
    const { total } = listing
    const { page, perPage } = range
    const pagination = { page, per_page: perPage, total, total_pages: Math.ceil(total / perPage) }
    return { success: true, data, pagination }
  }
  const cursor = listing.form === 'cursor' ? listing.cursor : null
  const limit = range.form === 'cursor' ? range.limit : range.perPage
  return { data, pagination: { cursor, has_more: cursor !== null, limit } }
}

const Pagination = Schema(
  'Pagination',
  {
    page: Type.Integer(),
    per_page: described(Type.Integer(), 'The size of a page.'),
    total: described(Type.Integer(), 'All entries, on every page.'),
    total_pages: described(Type.Integer(), 'The number of pages.'),
  },
  { examples: [{ page: 1, per_page: 20, total: 1, total_pages: 1 }] },
)

const CursorPagination = Schema(
  'CursorPagination',
  {
    cursor: described(
      Type.Union([Type.String(), Type.Null()]),
      'For the next request; null at the end.',
    ),
    has_more: Flag('Whether there is a next page.'),
    limit: described(Type.Integer(), 'The size of a page.'),
  },
  { examples: [{ cursor: null, has_more: false, limit: 20 }] },
)

export const CursorListOf = <T extends TSchema>(item: T, more: TProperties = {}) =>
  Schema(`${listName(item)}CursorPage`, {
    data: Type.Array(item),
    pagination: CursorPagination,
    ...more,
  })

export const ListOf = <T extends TSchema>(item: T, more: TProperties = {}) =>
  Type.Union(
    [
      Schema(`${listName(item)}Page`, {
        success: Type.Literal(true),
        data: Type.Array(item),
        pagination: Pagination,
        ...more,
      }),
      CursorListOf(item, more),
    ],
    { title: `${listName(item)}List` },
  )

/** For example Ticket for TicketListItem. */
const listName = ({ title = '' }: TSchema) => title.replace(/ListItem$/, '')
