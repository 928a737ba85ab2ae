import type { Database } from 'bun:sqlite'
import { monotonicFactory } from 'ulid'

const ulid = monotonicFactory()

/** A failed job for a ticket that does not exist: it succeeds as soon as it runs.
 *  @returns its id */
export function insertDeadJob(sqlite: Database): string {
  const [id, now] = [ulid(), Date.now()]
  sqlite.run(
    `INSERT INTO outbox (id, kind, payload, created_at, run_at, attempts, dead_at, last_error)
     VALUES (?1, 'assignee_mail', '{"ticket_id":"none"}', ?2, ?2, 12, ?2, 'the server said no')`,
    [id, now],
  )
  return id
}
