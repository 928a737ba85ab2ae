import { inArray, lt, type SQL, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Orm } from '../db/client.ts'
import {
  calls,
  notifications,
  oneTimeTokens,
  outbox,
  refreshTokens,
  sessions,
} from '../db/schema.ts'
import type { Write } from '../db/writer.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'

const hour = 3_600_000
/** Longer than any token of an unused session lives. */
const sessionMilliseconds = 31 * 24 * hour
/** Longer than any report about a call can be late. */
const callMilliseconds = 30 * 24 * hour
const deadJobMilliseconds = 30 * 24 * hour
const readMilliseconds = 90 * 24 * hour
const unreadMilliseconds = 180 * 24 * hour
/** Rows in one transaction: short enough for the loop. */
const part = 500

type MaintenanceOptions = { orm: Orm; write: Write; clock: Clock; log: Log }

/** Deletes what has expired, once an hour, in small parts.
 *  @returns how to stop */
export function startMaintenance({ orm, write, clock, log }: MaintenanceOptions): () => void {
  let isStopped = false

  // Deletes some rows whose `time` lies further back than their lifetime.
  const deletion =
    (key: SQLiteColumn, time: SQLiteColumn, lifetimeMilliseconds = 0) =>
    () => {
      const { table } = key
      const isOver = lt(time, clock.now() - lifetimeMilliseconds)
      const old = orm.select({ key }).from(table).where(isOver).limit(part)
      return orm.delete(table).where(inArray(key, old)).returning({ key }).all().length
    }
  // The same for notifications, whose key is two columns.
  const notificationDeletion = (lifetimeMilliseconds: number, which: SQL) => () => {
    const old = sql`SELECT user_id, id FROM ${notifications}
      WHERE created_at < ${clock.now() - lifetimeMilliseconds} AND ${which} LIMIT ${part}`
    const own = sql`(${notifications.userId}, ${notifications.id}) IN (${old})`
    return orm.delete(notifications).where(own).returning({ id: notifications.id }).all().length
  }
  const deletions = [
    deletion(refreshTokens.hash, refreshTokens.expiresAt),
    deletion(oneTimeTokens.hash, oneTimeTokens.expiresAt),
    deletion(sessions.id, sessions.lastUsedAt, sessionMilliseconds),
    notificationDeletion(readMilliseconds, sql`read_at IS NOT NULL`),
    notificationDeletion(unreadMilliseconds, sql`TRUE`),
    deletion(outbox.id, outbox.deadAt, deadJobMilliseconds),
    deletion(calls.id, calls.updatedAt, callMilliseconds),
  ]

  async function run() {
    for (const remove of deletions) {
      while (!isStopped && (await write(remove)) === part);
    }
  }

  const stop = clock.every(hour, () => {
    run().catch((error: unknown) => log.warn('maintenance failed and is tried again', { error }))
  })
  return () => {
    isStopped = true
    stop()
  }
}
