import { type TSchema, Type } from '@sinclair/typebox'
import { AppError, type FieldProblems, problem } from '../lib/errors.ts'
import type { CursorRange, Listing, ListRange } from '../lib/list-range.ts'

const largestPage = 100

/** The query of a list that has the cursor form alone. */
export const cursorQuery = {
  limit: Type.Integer({ minimum: 1, description: 'Starts the cursor form: its page size.' }),
  cursor: Type.String({ description: '`pagination.cursor` of the page before.' }),
}

/** The query of every list, for the API description: pages by number, or a cursor form that stays stable while rows
 *  arrive. `listRange` reads it: it judges all parameters at once, and what Elysia makes of integers in a query is not
 *  what the contract says. */
export const listQuery = (defaultSize: number) => ({
  page: Type.Integer({ minimum: 1, default: 1 }),
  per_page: Type.Integer({
    minimum: 1,
    default: defaultSize,
    description: `Above ${largestPage} is served as ${largestPage}.`,
  }),
  ...cursorQuery,
})

type ListParameter = keyof ReturnType<typeof listQuery>

/** Which part of a list a query asks for.
 *  @throws validation_error naming each bad parameter */
export function listRange(query: Record<string, unknown>, defaultSize: number): ListRange {
  const { page, perPage, limit, cursor } = readParameters(query, defaultSize)
  if (query['limit'] === undefined && cursor === undefined) {
    const offset = Math.min((page - 1) * perPage, Number.MAX_SAFE_INTEGER)
    return { form: 'page', page, perPage, offset }
  }
  return { form: 'cursor', limit, cursor }
}

/** The same for a list that has the cursor form alone. */
export function cursorRange(query: Record<string, unknown>, defaultSize: number): CursorRange {
  const { limit, cursor } = readParameters(
    { limit: query['limit'], cursor: query['cursor'] },
    defaultSize,
  )
  return { form: 'cursor', limit, cursor }
}

function readParameters(query: Record<string, unknown>, defaultSize: number) {
  const problems: FieldProblems = {}
  const read = (name: ListParameter, fallback: number) => {
    const value = query[name]
    if (value === undefined) return fallback
    const number =
      typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : Number.NaN
    if (Number.isNaN(number)) problems[name] = problem('not_an_integer')
    else if (number < 1) problems[name] = problem('too_small', 1)
    return number
  }
  const page = read('page', 1)
  const perPage = Math.min(read('per_page', defaultSize), largestPage)
  const limit = Math.min(read('limit', defaultSize), largestPage)
  const cursor = query['cursor']
  const isCursor = cursor === undefined || typeof cursor === 'string'
  if (!isCursor) problems['cursor'] = problem('cursor')
  if (!isCursor || Object.keys(problems).length > 0)
    throw new AppError('validation_error', { details: problems })
  return { page, perPage, limit, cursor }
}

/** The envelope of a list in the form that was asked for. */
export function envelope<Row, View>(
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
      { title: 'Pagination' },
    ),
  })

/** What a list that has the cursor form alone answers. */
export const CursorListOf = <T extends TSchema>(item: T) =>
  Type.Object({
    data: Type.Array(item),
    pagination: Type.Object(
      {
        cursor: Type.Union([Type.String(), Type.Null()]),
        has_more: Type.Boolean(),
        limit: Type.Integer(),
      },
      { title: 'CursorPagination' },
    ),
  })

/** What a list endpoint answers: the page form, or the cursor form when the query asks for it. */
export const ListOf = <T extends TSchema>(item: T) =>
  Type.Union([PageEnvelope(item), CursorListOf(item)])
