import { inArray, lt, sql } from 'drizzle-orm'
import type { Orm } from '../db/client.ts'
import { oneTimeTokens, refreshTokens, sessions } from '../db/schema.ts'
import type { Write } from '../db/writer.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'

const hour = 3_600_000
const sessionMilliseconds = 31 * 24 * hour
/** Rows in one transaction: short enough for the loop. */
const part = 500

type MaintenanceOptions = { orm: Orm; write: Write; clock: Clock; log: Log }

/** Deletes what has expired, once an hour, in small parts.
 *  @returns how to stop */
export function startMaintenance({ orm, write, clock, log }: MaintenanceOptions): () => void {
  let isStopped = false

  // A table's expired rows by their key; a session whose last use is longer ago than any token lives.
  const deletions = [
    () => {
      const { hash, expiresAt } = refreshTokens
      const old = orm
        .select({ hash })
        .from(refreshTokens)
        .where(lt(expiresAt, clock.now()))
        .limit(part)
      return orm.delete(refreshTokens).where(inArray(hash, old)).returning({ n: sql`1` }).all()
        .length
    },
    () => {
      const { hash, expiresAt } = oneTimeTokens
      const old = orm
        .select({ hash })
        .from(oneTimeTokens)
        .where(lt(expiresAt, clock.now()))
        .limit(part)
      return orm.delete(oneTimeTokens).where(inArray(hash, old)).returning({ n: sql`1` }).all()
        .length
    },
    () => {
      const { id, lastUsedAt } = sessions
      const before = clock.now() - sessionMilliseconds
      const old = orm.select({ id }).from(sessions).where(lt(lastUsedAt, before)).limit(part)
      return orm.delete(sessions).where(inArray(id, old)).returning({ n: sql`1` }).all().length
    },
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
