import { sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Core } from '../core.ts'
import { inPieces } from '../db/pieces.ts'
import {
  auditLog,
  calls,
  files,
  notifications,
  oneTimeTokens,
  outbox,
  refreshTokens,
  removedMessages,
  reports,
  sentMails,
  sessions,
  textUsage,
  totpFactors,
  webhookDeliveries,
} from '../db/schema.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
/** Rows per write: a deletion is short. */
const deletedPerWrite = 500

/** The first requests after a start go before the first run. */
const firstRunMilliseconds = 1_000

type Rule = {
  key: SQLiteColumn[]
  time: SQLiteColumn
  days: number
  which?: string
  everyMilliseconds?: number
  /** Deletes related data in the same transaction; receives the first column of the row's key. */
  onDelete?: (id: string) => void
}

/** All but the newest hundred of each webhook. CROSS JOIN fixes SQLite's join order: few webhooks first, then their
 *  deliveries. */
const olderDeliveries = `SELECT webhook_id, delivery.id FROM webhooks
  CROSS JOIN webhook_deliveries AS delivery ON webhook_id = webhooks.id AND delivery.id <=
    (SELECT id FROM webhook_deliveries WHERE webhook_id = webhooks.id ORDER BY id DESC LIMIT 1 OFFSET 100)
  LIMIT ${deletedPerWrite}`

/** The retention of each kind of row, counted from `time`. */
const rulesOf = ({ config, outbox: jobs }: Core): readonly Rule[] => [
  { key: [refreshTokens.hash], time: refreshTokens.expiresAt, days: 0 },
  { key: [oneTimeTokens.hash], time: oneTimeTokens.expiresAt, days: 0 },
  // Longer than the lifetime of any token of an unused session.
  { key: [sessions.id], time: sessions.lastUsedAt, days: 31 },
  {
    key: [notifications.userId, notifications.id],
    time: notifications.createdAt,
    days: 90,
    which: 'read_at IS NOT NULL',
  },
  { key: [notifications.userId, notifications.id], time: notifications.createdAt, days: 180 },
  {
    key: [notifications.userId, notifications.id],
    time: notifications.createdAt,
    days: 7,
    which: 'in_app = 0',
  },
  { key: [sentMails.addressHash, sentMails.kind, sentMails.at], time: sentMails.at, days: 1 },
  { key: [textUsage.userId], time: textUsage.day, days: 2 },
  { key: [outbox.id], time: outbox.deadAt, days: 30 },
  // Reports about a call may arrive up to this late.
  { key: [calls.id], time: calls.updatedAt, days: 30 },
  { key: [reports.id], time: reports.resolvedAt, days: 365 },
  { key: [removedMessages.messageId], time: removedMessages.removedAt, days: 30 },
  {
    key: [webhookDeliveries.webhookId, webhookDeliveries.id],
    time: webhookDeliveries.attemptedAt,
    days: 30,
  },
  {
    key: [webhookDeliveries.webhookId, webhookDeliveries.id],
    time: webhookDeliveries.attemptedAt,
    days: 0,
    which: `(webhook_id, id) IN (${olderDeliveries})`,
    everyMilliseconds: minute,
  },
  { key: [auditLog.id], time: auditLog.at, days: config.auditDays },
  {
    key: [totpFactors.userId],
    time: totpFactors.createdAt,
    days: 1,
    which: 'confirmed_at IS NULL',
  },
  // Files without a use, and unfinished uploads.
  {
    key: [files.id],
    time: files.unusedSince,
    days: 1,
    onDelete: (id) => jobs.add('file_removal', { key: id }),
  },
]

/** Deletes expired rows in small chunks: soon after the start, and then hourly or at the rule's interval.
 *  @returns the function that stops it */
export function startRetention(core: Core): () => void {
  const { orm, write, clock, log } = core
  const byInterval = Map.groupBy(rulesOf(core), ({ everyMilliseconds = hour }) => everyMilliseconds)
  let isStopped = false
  const options = { size: deletedPerWrite, isStopping: () => isStopped }

  function deleteSome({ key, time, days, which = 'TRUE', onDelete }: Rule, limit: number) {
    const columns = sql.join(key, sql`, `)
    const old = sql`SELECT ${columns} FROM ${time.table}
      WHERE ${time} < ${clock.now() - days * day} AND ${sql.raw(which)} LIMIT ${limit}`
    const deleted = orm.all<{ id: string }>(
      sql`DELETE FROM ${time.table} WHERE (${columns}) IN (${old}) RETURNING ${key[0]} AS id`,
    )
    for (const { id } of deleted) onDelete?.(id)
    return deleted.length === limit || undefined
  }

  async function run(rules: readonly Rule[]) {
    for (const rule of rules) {
      await inPieces(write, (limit) => deleteSome(rule, limit), options)
    }
  }

  const start = (rules: readonly Rule[]) => {
    run(rules).catch((error: unknown) => {
      if (!isStopped) log.warn('retention failed and is tried again', { error })
    })
  }
  const stops = [...byInterval].map(([interval, rules]) =>
    clock.every(interval, () => start(rules)),
  )
  const stopFirst = clock.every(firstRunMilliseconds, () => {
    stopFirst()
    for (const rules of byInterval.values()) start(rules)
  })
  stops.push(stopFirst)
  return () => {
    isStopped = true
    for (const stop of stops) stop()
  }
}
