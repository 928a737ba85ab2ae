import { sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Config } from '../config.ts'
import type { Core } from '../core.ts'
import { inPieces } from '../db/pieces.ts'
import { auditLog, idempotencyKeys, outbox, textUsage } from '../db/schema.ts'
import { day, hour } from '../lib/clock.ts'
import { AppError } from '../lib/errors.ts'

const deletedPerWrite = 500

/** So that the first requests after a start are not delayed. */
const firstRunMilliseconds = 1_000

export type RetentionRule = {
  key: SQLiteColumn[]
  time: SQLiteColumn
  days: number
  which?: string
  everyMilliseconds?: number
  /** In the same transaction, with the first column of the row's key. */
  onDelete?: (id: string) => void
}

const rulesOf = ({ auditDays }: Config): RetentionRule[] => [
  { key: [textUsage.userId], time: textUsage.day, days: 2 },
  { key: [outbox.id], time: outbox.deadAt, days: 30 },
  { key: [idempotencyKeys.hash], time: idempotencyKeys.createdAt, days: 1 },
  // A trigger keeps what is 30 days old, to the second.
  { key: [auditLog.id], time: auditLog.at, days: Math.max(auditDays, 30.001) },
]

/** Soon after the start, then hourly or at the rule's interval.
 *  @returns the function that stops it */
export function startRetention(core: Core, ofModules: readonly RetentionRule[]): () => void {
  const { config, orm, write, clock, log } = core
  const all = [...ofModules, ...rulesOf(config)]
  const byInterval = Map.groupBy(all, ({ everyMilliseconds = hour }) => everyMilliseconds)
  let isStopped = false
  const options = { size: deletedPerWrite, isStopping: () => isStopped }

  function deleteSome({ key, time, days, which = 'TRUE', onDelete }: RetentionRule, limit: number) {
    const columns = sql.join(key, sql`, `)
    const old = sql`SELECT ${columns} FROM ${time.table}
      WHERE ${time} < ${clock.now() - days * day} AND ${sql.raw(which)} LIMIT ${limit}`
    const deleted = orm.all<{ id: string }>(
      sql`DELETE FROM ${time.table} WHERE (${columns}) IN (${old}) RETURNING ${key[0]} AS id`,
    )
    for (const { id } of deleted) onDelete?.(id)
    return deleted.length === limit || undefined
  }

  // A failing rule does not stop the others, unless nothing can be written.
  async function run(rules: readonly RetentionRule[]) {
    for (const rule of rules) if ((await apply(rule)) === 'unavailable') return
  }

  const apply = (rule: RetentionRule) =>
    inPieces(write, (limit) => deleteSome(rule, limit), options).catch((error: unknown) => {
      if (!isStopped) log.warn('retention failed and will be retried', { error })
      return error instanceof AppError ? error.kind : undefined
    })

  const stops = [...byInterval].map(([interval, rules]) =>
    clock.every(interval, () => void run(rules)),
  )
  const stopFirst = clock.every(firstRunMilliseconds, () => {
    stopFirst()
    for (const rules of byInterval.values()) void run(rules)
  })
  stops.push(stopFirst)
  return () => {
    isStopped = true
    for (const stop of stops) stop()
  }
}
