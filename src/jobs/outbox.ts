import {
  and,
  asc,
  count,
  eq,
  gt,
  inArray,
  isNotNull,
  isNull,
  lt,
  lte,
  or,
  type SQL,
  sql,
} from 'drizzle-orm'
import type { Orm } from '../db/client.ts'
import { outbox } from '../db/schema.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { NotificationType } from '../lib/vocabulary.ts'

/** What can be due later, by kind. Payloads name things and hold no secrets: tokens are made when a job runs. */
export type OutboxJobs = {
  verification_mail: { user_id: string; email: string }
  password_reset_mail: { user_id: string; email: string }
  password_changed_mail: { user_id: string; email: string }
  broadcast: { broadcast_id: string }
  support_inbox_mail: { ticket_id: string }
  announcement: { announcement_id: string }
  notification: {
    user_id: string
    type: NotificationType
    title?: string
    body?: string
    data: Record<string, string>
  }
  notification_mail: { user_id: string; notification_id: string }
  /** For what is of no use a minute later. */
  urgent_push: { user_id: string; push_token_id: string; notification_id: string }
  notification_push: { user_id: string; push_token_id: string; notification_id: string }
  message_push: { user_id: string; push_token_id: string; conversation_id: string; seq: number }
}

export type JobKind = keyof OutboxJobs
export type Job = typeof outbox.$inferSelect

/** How the queue stands: for `hostline check` and whoever watches. Counts go up to 10,000, age is in milliseconds. */
export type OutboxStats = { waiting: number; dead: number; oldestAge: number }

// Whoever watches asks often, and must not make a long queue longer.
const countedAtMost = 10_000

export type Outbox = ReturnType<typeof createOutbox>

/** The only queue: rows that are written in the transaction that makes them due. Every function is SQL. */
export function createOutbox(orm: Orm, newId: NewId, clock: Clock) {
  const insert = orm
    .insert(outbox)
    .values({
      id: sql.placeholder('id'),
      kind: sql.placeholder('kind'),
      payload: sql.placeholder('payload'),
      createdAt: sql.placeholder('now'),
      runAt: sql.placeholder('runAt'),
    })
    .prepare()
  const due = orm
    .select({ id: outbox.id })
    .from(outbox)
    .where(
      and(
        eq(outbox.kind, sql.placeholder('kind')),
        isNull(outbox.deadAt),
        lte(outbox.runAt, sql.placeholder('now')),
        or(isNull(outbox.leasedUntil), lt(outbox.leasedUntil, sql.placeholder('now'))),
      ),
    )
    .orderBy(asc(outbox.runAt), asc(outbox.id))
    .limit(sql.placeholder('limit'))
    .prepare()
  const waiting = countSome(isNull(outbox.deadAt))
  const dead = countSome(isNotNull(outbox.deadAt))
  // The index begins with the kind: the oldest of each kind is one step in it.
  const firstAfter = orm
    .select({ kind: outbox.kind, runAt: outbox.runAt })
    .from(outbox)
    .where(and(isNull(outbox.deadAt), gt(outbox.kind, sql.placeholder('kind'))))
    .orderBy(asc(outbox.kind), asc(outbox.runAt))
    .limit(1)
    .prepare()

  function countSome(which: SQL) {
    const some = orm
      .select({ one: sql`1`.as('one') })
      .from(outbox)
      .where(which)
      .limit(countedAtMost)
      .as('some')
    return orm.select({ n: count() }).from(some).prepare()
  }

  return {
    /** Notes a job, for now or for later. */
    add<K extends JobKind>(kind: K, payload: OutboxJobs[K], delayMilliseconds = 0): void {
      const now = clock.now()
      insert.run({ id: newId(), kind, payload, now, runAt: now + delayMilliseconds })
    },
    /** Ids of due jobs of a kind, the longest due first; cheap, for polling. */
    listDue: (kind: JobKind, limit: number): string[] =>
      due.all({ kind, now: clock.now(), limit }).map(({ id }) => id),
    /** Takes jobs for `leaseMilliseconds`; each take is an attempt. */
    claim(ids: string[], leaseMilliseconds: number): Job[] {
      const now = clock.now()
      return orm
        .update(outbox)
        .set({ leasedUntil: now + leaseMilliseconds, attempts: sql`${outbox.attempts} + 1` })
        .where(inArray(outbox.id, ids))
        .returning()
        .all()
    },
    /** The job is done. */
    finish(id: string): void {
      orm.delete(outbox).where(eq(outbox.id, id)).run()
    },
    /** The job is not done and is due again after a while; this take was no attempt. */
    requeue(id: string, delayMilliseconds: number): void {
      const runAt = clock.now() + delayMilliseconds
      const attempts = sql`${outbox.attempts} - 1`
      const changes = { runAt, leasedUntil: null, attempts }
      orm.update(outbox).set(changes).where(eq(outbox.id, id)).run()
    },
    /** The job failed and is due again at `runAt`. */
    postpone(id: string, runAt: number, lastError: string): void {
      orm.update(outbox).set({ runAt, leasedUntil: null, lastError }).where(eq(outbox.id, id)).run()
    },
    /** The job is given up and stays to be seen. */
    bury(id: string, lastError: string): void {
      const deadAt = clock.now()
      orm
        .update(outbox)
        .set({ deadAt, leasedUntil: null, lastError })
        .where(eq(outbox.id, id))
        .run()
    },
    /** Lets go of what a process held that died. */
    releaseAll(): void {
      orm.update(outbox).set({ leasedUntil: null }).where(isNotNull(outbox.leasedUntil)).run()
    },
    stats(): OutboxStats {
      const now = clock.now()
      let oldest = now
      for (let first = firstAfter.get({ kind: '' }); first; first = firstAfter.get(first)) {
        oldest = Math.min(oldest, first.runAt)
      }
      return {
        waiting: waiting.get()?.n ?? 0,
        dead: dead.get()?.n ?? 0,
        oldestAge: now - oldest,
      }
    },
  }
}
