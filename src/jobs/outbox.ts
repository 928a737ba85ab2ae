import { sql } from 'drizzle-orm'
import type { Orm } from '../db/client.ts'
import { outbox } from '../db/schema.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'

/** What can be due later, by kind. Payloads name things and hold no secrets: tokens are made when a job runs. */
export type OutboxJobs = {
  verification_mail: { user_id: string; email: string }
}

export type Outbox = {
  /** Notes a job, inside the transaction that makes it due. */
  add<K extends keyof OutboxJobs>(kind: K, payload: OutboxJobs[K]): void
}

export function createOutbox(orm: Orm, newId: NewId, clock: Clock): Outbox {
  const insert = orm
    .insert(outbox)
    .values({
      id: sql.placeholder('id'),
      kind: sql.placeholder('kind'),
      payload: sql.placeholder('payload'),
      createdAt: sql.placeholder('now'),
      runAt: sql.placeholder('now'),
    })
    .prepare()

  return {
    add: (kind, payload) => {
      insert.run({ id: newId(), kind, payload, now: clock.now() })
    },
  }
}
