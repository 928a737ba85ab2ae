import type { Database, SQLQueryBindings, Statement } from 'bun:sqlite'
import {
  and,
  asc,
  count,
  desc,
  eq,
  getTableColumns,
  getTableName,
  gt,
  inArray,
  is,
  lt,
  type Placeholder,
  type SQL,
  sql,
} from 'drizzle-orm'
import { type SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { lazy } from '../lib/lazy.ts'
import { type Listing, type ListRange, listByPosition } from '../lib/list-range.ts'
import type { Orm } from './open.ts'

const chunkSize = 200

export const lazyStatements =
  (sqlite: Database) =>
  <Row, Args extends SQLQueryBindings[] = SQLQueryBindings[]>(text: string) =>
    lazy(() => sqlite.prepare<Row, Args>(text))

/** Columns, by default all of a table, for a plain SELECT, each under its key in `schema.ts`. bun:sqlite then returns the row
 *  type, without mapping. Only for texts and integers. */
export function selectList(from: SQLiteTable | Record<string, SQLiteColumn>): string {
  return Object.entries(is(from, SQLiteTable) ? getTableColumns(from) : from)
    .map(([key, { name }]) => `"${name}" AS "${key}"`)
    .join(', ')
}

/** A prepared INSERT of whole rows in plain SQL: three times as fast as the ORM's. */
export function prepareInsert<T extends SQLiteTable>(sqlite: Database, table: T) {
  const columns = Object.entries(getTableColumns(table))
  const names = columns.map(([, column]) => `"${column.name}"`)
  const statement: Statement = sqlite.prepare(
    `INSERT INTO ${getTableName(table)} (${names}) VALUES (${names.map(() => '?')})`,
  )
  return (row: T['$inferSelect']) => {
    const values = columns.map(([key, column]) => {
      const value = row[key] ?? null
      return value === null ? null : column.mapToDriverValue(value)
    })
    statement.run(...(values as SQLQueryBindings[])) // what the columns store
  }
}

/** The statements about one row of a table, by its id. */
export function rowsOf<T extends SQLiteTable & { id: SQLiteColumn }>(orm: Orm, table: T) {
  type Row = T['$inferSelect']
  const rows: SQLiteTable = table
  const isOne = (id: string | Placeholder) => eq(table.id, id)
  const byId = lazy(() =>
    orm
      .select()
      .from(rows)
      .where(isOne(sql.placeholder('id')))
      .prepare(),
  )
  return {
    insert: (row: T['$inferInsert']): Row => orm.insert(table).values(row).returning().get(),
    find: (id: string): Row | undefined => byId().get({ id }),
    /** Undefined fields keep their value. */
    update: (id: string, changes: { [K in keyof Row]?: Row[K] | undefined }): Row =>
      orm.update(rows).set(changes).where(isOne(id)).returning().get(),
    delete: (id: string): Row | undefined => orm.delete(table).where(isOne(id)).returning().get(),
  }
}

export const countRows = (orm: Orm, table: SQLiteTable, which?: SQL): number =>
  orm.select({ n: count() }).from(table).where(which).get()?.n ?? 0

/** Like `countRows`, but reads no more than `most` rows. */
export function countUpTo(most: number, orm: Orm, table: SQLiteTable, which?: SQL): number {
  const some = orm
    .select({ one: sql`1`.as('one') })
    .from(table)
    .where(which)
  return orm.select({ n: count() }).from(some.limit(most).as('some')).get()?.n ?? 0
}

/** The texts of one column in the rows that match; `sorted` by it, or in the order in which SQLite reads them. */
export function listColumn(
  orm: Orm,
  column: SQLiteColumn,
  which: SQL | undefined,
  { limit = -1, sorted = false }: { limit?: number | undefined; sorted?: boolean } = {},
): string[] {
  const rows = orm.select({ value: sql<string>`${column}` }).from<SQLiteTable>(column.table)
  const found = rows.where(which).limit(limit)
  return (sorted ? found.orderBy(asc(column)) : found).all().map(({ value }) => value)
}

export const hasRow = (orm: Orm, table: SQLiteTable, which: SQL | undefined): boolean =>
  orm.select({ one: sql`1` }).from(table).where(which).limit(1).get() !== undefined

/** @param key identifies a row among those that match
 *  @returns the keys of the deleted ones */
export function deleteSome(
  orm: Orm,
  key: SQLiteColumn,
  which: SQL | undefined,
  limit: number,
): string[] {
  const some = sql`SELECT ${key} FROM ${key.table} WHERE ${which} LIMIT ${limit}`
  const deleted = orm.all<{ key: string }>(
    sql`DELETE FROM ${key.table} WHERE ${which} AND ${key} IN (${some}) RETURNING ${key} AS key`,
  )
  return deleted.map((row) => row.key)
}

export function eachOf<T extends SQLiteTable, K extends keyof T['$inferSelect'] & string>(
  orm: Orm,
  table: T,
  key: K,
  which?: SQL,
): Generator<T['$inferSelect'], undefined> {
  const column = getTableColumns(table)[key] as SQLiteColumn // the keys of a row are those of the columns
  return eachRow((last, limit) => {
    const next = and(which, gt(column, last?.[key] ?? ''))
    return orm.select().from<SQLiteTable>(table).where(next).orderBy(column).limit(limit).all()
  })
}

/** Reads rows in small chunks, each after the last row of the previous one, so that the caller may pause between rows. */
export function* eachRow<Row>(
  read: (last: Row | undefined, limit: number) => Row[],
): Generator<Row, undefined> {
  let chunk: Row[] = []
  do {
    chunk = read(chunk.at(-1), chunkSize)
    yield* chunk
  } while (chunk.length === chunkSize)
}

type IdList<Row> = {
  /** Stored in the cursors, so that another list refuses them; by default the name of the table. */
  name?: string
  id: SQLiteColumn
  which?: SQL | undefined
  order?: 'newest' | 'oldest'
  /** Replaces reading whole rows of the table; leaves none out, or a page would lack them. */
  select?: (which: SQL | undefined) => { orderBy: (order: SQL) => { all: () => Row[] } }
  /** Replaces counting the rows of the table. */
  count?: () => number
}

export function listById<Row extends { id: string }>(
  orm: Orm,
  range: ListRange,
  { id, which, order = 'newest', select, ...given }: IdList<Row>,
): Listing<Row> {
  const [sorted, beyond] = order === 'newest' ? [desc(id), lt] : [asc(id), gt]
  return listByPosition(range, {
    name: getTableName(id.table),
    count: () => countRows(orm, id.table, which),
    ...given,
    position: (row) => row.id,
    list({ limit, offset, before }) {
      const next = and(which, before === undefined ? undefined : beyond(id, before))
      const columns = select ? { id } : getTableColumns(id.table)
      const rows = orm.select(columns).from<SQLiteTable>(id.table).where(next)
      const page = rows.orderBy(sorted).limit(limit).offset(offset)
      if (!select) return page.all() as Row[] // the rows of the table
      // The rows that a page skips are not joined.
      const shown = select(and(which, inArray(id, page)))
      return shown.orderBy(sorted).all()
    },
  })
}
