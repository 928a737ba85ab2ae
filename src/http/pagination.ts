import { type TSchema, Type } from '@sinclair/typebox'
import { CheckedText } from '../api/fields.ts'
import { problem } from '../lib/errors.ts'
import { type CursorRange, isCursor, type Listing, type ListRange } from '../lib/list-range.ts'

const largestPage = 100

/** The query of a list that has only the cursor form. */
export const cursorQuery = {
  limit: Type.Integer({
    minimum: 1,
    description: 'The page size in the cursor form; selects that form.',
  }),
  cursor: CheckedText((text) => (isCursor(text) ? undefined : problem('cursor')), {
    description: '`pagination.cursor` of the previous page.',
  }),
}

/** The query of every list, for the API description: pages by number, or a cursor form that stays stable while rows
 *  arrive. */
export const listQuery = (defaultSize: number) => ({
  page: Type.Integer({ minimum: 1, default: 1 }),
  per_page: Type.Integer({
    minimum: 1,
    default: defaultSize,
    description: `Values above ${largestPage} count as ${largestPage}.`,
  }),
  ...cursorQuery,
})

type Query = Record<string, string>

/** The range of a list query. The pipeline has checked the query against `listQuery`. */
export function listRange(query: Query, defaultSize: number): ListRange {
  const { page = 1, per_page = defaultSize, limit, cursor } = query
  if (limit !== undefined || cursor !== undefined) return cursorRange(query, defaultSize)
  const perPage = Math.min(Number(per_page), largestPage)
  const offset = Math.min((Number(page) - 1) * perPage, Number.MAX_SAFE_INTEGER)
  return { form: 'page', page: Number(page), perPage, offset }
}

/** The same for a list that has only the cursor form. */
export function cursorRange({ limit, cursor }: Query, defaultSize: number): CursorRange {
  return { form: 'cursor', limit: Math.min(Number(limit ?? defaultSize), largestPage), cursor }
}

/** The response of a list. Its size is bounded by the page size and the largest row. */
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

const PageEnvelope = <T extends TSchema>(item: T) =>
  Type.Object({
    success: Type.Literal(true),
    data: Type.Array(item),
    pagination: Type.Object(
      {
        page: Type.Integer(),
        per_page: Type.Integer(),
        total: Type.Integer(),
        total_pages: Type.Integer(),
      },
      {
        title: 'Pagination',
        examples: [{ page: 1, per_page: 20, total: 1, total_pages: 1 }],
      },
    ),
  })

/** The response of a list that has only the cursor form. */
export const CursorListOf = <T extends TSchema>(item: T) =>
  Type.Object({
    data: Type.Array(item),
    pagination: Type.Object(
      {
        cursor: Type.Union([Type.String(), Type.Null()]),
        has_more: Type.Boolean(),
        limit: Type.Integer(),
      },
      { title: 'CursorPagination', examples: [{ cursor: null, has_more: false, limit: 20 }] },
    ),
  })

/** The response of a list in the page form, or in the cursor form if the query has `limit` or `cursor`. */
export const ListOf = <T extends TSchema>(item: T) =>
  Type.Union([PageEnvelope(item), CursorListOf(item)])
