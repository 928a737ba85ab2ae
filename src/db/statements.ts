import type { Database, Statement } from 'bun:sqlite'
import { getTableColumns, getTableName, type Placeholder, sql } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'

const chunkSize = 200

/** The placeholders of an insert: one per column, under its key in `schema.ts`. */
export function placeholders<T extends SQLiteTable>(table: T) {
  const names = Object.keys(getTableColumns(table)).map((name) => [name, sql.placeholder(name)])
  return Object.fromEntries(names) as Record<keyof T['$inferInsert'], Placeholder>
}

/** The columns of a table for a plain SELECT, each under its key in `schema.ts`. What bun:sqlite returns is then the row
 *  type, without mapping. Only for tables of texts and integers. */
export function selectList(table: SQLiteTable): string {
  return Object.entries(getTableColumns(table))
    .map(([key, { name }]) => `"${name}" AS "${key}"`)
    .join(', ')
}

/** A prepared INSERT of whole rows in plain SQL: three times as fast as the ORM's. Used on the path of every message. */
export function prepareInsert<T extends SQLiteTable>(sqlite: Database, table: T) {
  type Row = T['$inferSelect'] & Record<string, string | number | null>
  const columns = Object.entries(getTableColumns(table))
  const names = columns.map(([, column]) => `"${column.name}"`)
  const keys = columns.map(([key]) => key)
  const statement: Statement = sqlite.prepare(
    `INSERT INTO ${getTableName(table)} (${names}) VALUES (${keys.map(() => '?')})`,
  )
  return (row: T['$inferSelect']) => {
    statement.run(...keys.map((key) => (row as Row)[key] ?? null))
  }
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

/** Builds and prepares a statement on its first use, to keep the start fast. */
export function lazy<T>(prepare: () => T): () => T {
  let prepared: T | undefined
  return () => {
    prepared ??= prepare()
    return prepared
  }
}
