import type { Database } from 'bun:sqlite'
import { monotonicFactory } from 'ulid'

const ulid = monotonicFactory()

/** A failed job for a ticket or user that does not exist: it succeeds as soon as it runs.
 *  @returns its id */
export function insertDeadJob(
  sqlite: Database,
  kind = 'assignee_mail',
  payload: object = { ticket_id: 'none' },
): string {
  const [id, now] = [ulid(), Date.now()]
  sqlite.run(
    `INSERT INTO outbox (id, kind, payload, created_at, run_at, attempts, dead_at, last_error)
     VALUES (?1, ?3, ?4, ?2, ?2, 12, ?2, 'the server said no')`,
    [id, now, kind, JSON.stringify(payload)],
  )
  return id
}
