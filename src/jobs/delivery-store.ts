import { eq } from 'drizzle-orm'
import type { Orm } from '../db/open.ts'
import { deliveries } from '../db/schema.ts'
import { deleteSome, eachOf, lazyStatements, listById } from '../db/statements.ts'
import { type Clock, day } from '../lib/clock.ts'
import { firstIdAt } from '../lib/ids.ts'
import type { Listing, ListRange } from '../lib/list-range.ts'
import { withoutAddresses } from '../lib/text.ts'
import type { DeliveryChannel } from '../lib/vocabulary.ts'
import type { RetentionRule } from './retention.ts'

export type DeliveryRow = typeof deliveries.$inferSelect
export type Delivered = { state: Exclude<DeliveryRow['state'], 'waiting'>; answer: string | null }
export type DeliveryStore = ReturnType<typeof createDeliveryStore>

const longestAnswer = 300
/** A busy or greylisting server accepts by then. */
const usualAttempts = 3
/** Failures are many while a service is down. */
const inspected = 1_000

export function createDeliveryStore(orm: Orm, clock: Clock) {
  const statement = lazyStatements(orm.$client)
  const upsert = statement(
    `INSERT INTO deliveries (user_id, id, channel, kind, state, attempts, answer, at)
     SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 FROM users WHERE id = ?1 AND deleted_at IS NULL
     ON CONFLICT DO UPDATE SET
       state = excluded.state, attempts = excluded.attempts, answer = excluded.answer, at = excluded.at`,
  )
  // The condition of the partial index, as it stands there: otherwise SQLite would not use it.
  const isFailing = "state IN ('waiting', 'failed')"
  const skip = statement(`UPDATE deliveries SET state = 'skipped' WHERE id = ? AND ${isFailing}`)
  const failing = statement<{ answer: string }, [string, string, number]>(
    `SELECT answer FROM
       (SELECT * FROM deliveries WHERE ${isFailing} AND id > ? ORDER BY id DESC LIMIT ${inspected})
     WHERE channel = ? AND (state = 'failed' OR attempts >= ?) LIMIT 1`,
  )
  const of = (userId: string) => eq(deliveries.userId, userId)

  return {
    /** Nothing is stored about a deleted user. */
    record({ userId, id, channel, kind, state, attempts, answer }: Omit<DeliveryRow, 'at'>): void {
      const text = answer && withoutAddresses(answer).slice(0, longestAnswer)
      upsert().run(userId, id, channel, kind, state, attempts, text, clock.now())
    },
    /** For a job that was discarded, or retried with nothing left to send. */
    skip(id: string): void {
      skip().run(id)
    },
    /** The answer to the newest delivery of the last day that fails, unless it failed only in passing. */
    findFailure(channel: DeliveryChannel): string | undefined {
      return failing().get(firstIdAt(clock.now() - day), channel, usualAttempts)?.answer
    },
    list: (userId: string, range: ListRange): Listing<DeliveryRow> =>
      listById(orm, range, { id: deliveries.id, which: of(userId) }),
    each: (userId: string) => eachOf(orm, deliveries, 'id', of(userId)),
    erase: (userId: string, limit: number): string | undefined =>
      deleteSome(orm, deliveries.id, of(userId), limit).at(-1),
  }
}

export const deliveryRetention: RetentionRule = {
  key: [deliveries.userId, deliveries.id],
  time: deliveries.at,
  days: 30,
}
