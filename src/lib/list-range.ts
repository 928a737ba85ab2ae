import { type Static, type TSchema, type TString, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { invalidField } from './errors.ts'
import { parseJson } from './text.ts'

type PageRange = { form: 'page'; page: number; perPage: number; offset: number }
export type CursorRange = { form: 'cursor'; limit: number; cursor: string | undefined }
export type ListRange = PageRange | CursorRange

/** The result for a range. `cursor` is null at the end of the list. */
type CursorListing<T> = { form: 'cursor'; rows: T[]; cursor: string | null }
export type Listing<T> = { form: 'page'; rows: T[]; total: number } | CursorListing<T>

export type RowRange<P = string> = { limit: number; offset: number; before?: P | undefined }

type Reader<T, S extends TSchema> = {
  /** Stored in the cursors, so that another list refuses them. */
  name: string
  /** The schema of a position; a text by default. */
  shape?: S
  list: (rows: RowRange<Static<S>>) => T[]
  count: () => number
  position: (row: T) => Static<S>
}

export function listByPosition<T, S extends TSchema = TString>(
  range: ListRange,
  reader: Reader<T, S>,
): Listing<T> {
  const { name, shape = Type.String(), list, count, position } = reader
  if (range.form === 'page') {
    const { perPage: limit, offset } = range
    const total = count()
    return { form: 'page', rows: offset < total ? list({ limit, offset }) : [], total }
  }
  const { limit, cursor } = range
  const content = Type.Tuple([Type.Literal(name), shape])
  const before = cursor === undefined ? undefined : decodeCursor(cursor, content)[1]
  const rows = list({ limit: limit + 1, offset: 0, before })
  return cutAtLimit(rows, limit, (row) => [name, position(row)])
}

type NumberedReader<T> = {
  name: string
  first?: number
  last: number
  /** Rows with `after` < number ≤ `until`, newest first. */
  list: (after: number, until: number) => T[]
  numberOf: (row: T) => number
}

/** Reads a range of a numbered list, newest first. A page reads only its own rows, however far back it is. */
export function listByNumber<T>(range: ListRange, reader: NumberedReader<T>): Listing<T> {
  const { name, first = 1, last, list, numberOf } = reader
  return listByPosition(range, {
    name,
    shape: Type.Integer({ minimum: 1 }),
    list({ limit, offset, before = last + 1 }) {
      // A restore may have undone the rows before a cursor.
      const until = Math.min(before - 1, last) - offset
      return list(until - limit, until)
    },
    count: () => last - first + 1,
    position: numberOf,
  })
}

/** The content of a cursor: the name of the list, then the position. */
type Position = readonly [string, ...unknown[]]

/** Cuts `rows`, which must include one row beyond `limit` if there is one, and creates the cursor of the next page. */
export function cutAtLimit<T>(
  rows: T[],
  limit: number,
  position: (row: T) => Position,
): CursorListing<T> {
  const kept = rows.slice(0, limit)
  const last = kept.at(-1)
  const cursor = last !== undefined && rows.length > limit ? encodeCursor(position(last)) : null
  return { form: 'cursor', rows: kept, cursor }
}

/** Cursors are opaque to clients but not secret.
 *  @throws validation_error when the text is no cursor of this list */
export function decodeCursor<T extends TSchema>(text: string, shape: T): Static<T> {
  const value = contentOf(text)
  if (!Value.Check(shape, value)) throw invalidField('cursor', 'cursor')
  return value
}

export function isCursor(text: string): boolean {
  return Array.isArray(contentOf(text))
}

function encodeCursor(position: Position): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url')
}

const contentOf = (cursor: string) => parseJson(Buffer.from(cursor, 'base64url').toString())
