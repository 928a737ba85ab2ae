import {
  and,
  asc,
  between,
  count,
  desc,
  eq,
  gt,
  inArray,
  isNotNull,
  isNull,
  lt,
  lte,
  not,
  or,
  type SQL,
  sql,
} from 'drizzle-orm'
import type { Orm } from '../db/open.ts'
import { outbox } from '../db/schema.ts'
import { lazy } from '../db/statements.ts'
import type { AfterCommit } from '../db/writer.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { RowRange } from '../lib/list-range.ts'
import type { NotificationType } from '../lib/vocabulary.ts'

/** Somebody, unless they have another address by then; null where nobody has the one that was given. */
export type AccountMail = { user_id: string | null; address_hash: string }

/** What can be due later, by kind. Payloads name things and hold no secrets: tokens are made when a job runs. */
export type OutboxJobs = {
  verification_mail: AccountMail
  /** Without `ip` somebody else has asked for it. */
  password_reset_mail: AccountMail & { ip?: string }
  password_changed_mail: AccountMail
  /** To an address that somebody wants to have: `address_hash` is its own. */
  email_change_mail: AccountMail
  /** To the address that somebody had before. */
  email_changed_mail: AccountMail
  erasure: { user_id: string }
  broadcast: { broadcast_id: string }
  support_inbox_mail: { ticket_id: string }
  assignee_mail: { ticket_id: string }
  announcement: { announcement_id: string }
  notification: {
    user_id: string
    type: NotificationType
    title?: string
    body?: string
    data: Record<string, string>
  }
  notification_mail: { user_id: string; notification_id: string }
  /** Urgent pushes have their own queue: they expire within a minute. */
  urgent_push: { user_id: string; push_token_id: string; notification_id: string }
  notification_push: { user_id: string; push_token_id: string; notification_id: string }
  message_push: { user_id: string; push_token_id: string; conversation_id: string; seq: number }
  /** The bytes of a file whose row is gone. */
  file_removal: { key: string }
  unread_push: { user_id: string; conversation_id: string }
}

export type JobKind = keyof OutboxJobs
export type Job = typeof outbox.$inferSelect

export const jobStates = ['waiting', 'dead'] as const
export type JobState = (typeof jobStates)[number]

/** The state of the queue, for `hostline check` and metrics. Counts stop at 10,000; age is in milliseconds. */
export type OutboxStats = { waiting: number; dead: number; oldestAge: number }

// Metrics are read often, and must not make a long queue longer.
const countedAtMost = 10_000
const erasedAtOnce = 500

export type Outbox = ReturnType<typeof createOutbox>

type OutboxCore = { orm: Orm; newId: NewId; clock: Clock; afterCommit: AfterCommit }

const inState = (state: JobState | undefined): SQL | undefined =>
  state && (state === 'dead' ? isNotNull(outbox.deadAt) : isNull(outbox.deadAt))

/** The only queue: rows that are written in the transaction that makes them due. Every function is SQL. */
export function createOutbox({ orm, newId, clock, afterCommit }: OutboxCore) {
  let onAdded = (_runAt: number) => {}
  const insert = lazy(() =>
    orm
      .insert(outbox)
      .values({
        id: sql.placeholder('id'),
        kind: sql.placeholder('kind'),
        payload: sql.placeholder('payload'),
        createdAt: sql.placeholder('now'),
        runAt: sql.placeholder('runAt'),
      })
      .prepare(),
  )
  const due = lazy(() =>
    orm
      .select({ id: outbox.id })
      .from(outbox)
      .where(
        and(
          eq(outbox.kind, sql.placeholder('kind')),
          eq(outbox.lane, ''),
          isNull(outbox.deadAt),
          lte(outbox.runAt, sql.placeholder('now')),
          or(isNull(outbox.leasedUntil), lt(outbox.leasedUntil, sql.placeholder('now'))),
        ),
      )
      .orderBy(asc(outbox.runAt), asc(outbox.id))
      .limit(sql.placeholder('limit'))
      .prepare(),
  )
  // The index begins with the kind: the first of each kind is one step in it.
  const firstAfter = lazy(() =>
    orm
      .select({ kind: outbox.kind, runAt: outbox.runAt })
      .from(outbox)
      .where(and(isNull(outbox.deadAt), gt(outbox.kind, sql.placeholder('kind'))))
      .orderBy(asc(outbox.kind), asc(outbox.lane), asc(outbox.runAt))
      .limit(1)
      .prepare(),
  )

  function countSome(which: SQL): number {
    const some = orm
      .select({ one: sql`1`.as('one') })
      .from(outbox)
      .where(which)
      .limit(countedAtMost)
      .as('some')
    return orm.select({ n: count() }).from(some).get()?.n ?? 0
  }

  /** When the first waiting job is or was due, ms since the epoch; Infinity for an empty queue. */
  function firstRunAt(): number {
    let first = Number.POSITIVE_INFINITY
    for (let row = firstAfter().get({ kind: '' }); row; row = firstAfter().get(row)) {
      first = Math.min(first, row.runAt)
    }
    return first
  }

  function update(id: string, changes: Partial<Job> | { attempts: SQL }) {
    orm
      .update(outbox)
      .set({ leasedUntil: null, ...changes })
      .where(eq(outbox.id, id))
      .run()
  }

  return {
    /** Adds a job, for now or for later. */
    add<K extends JobKind>(kind: K, payload: OutboxJobs[K], delayMilliseconds = 0): void {
      const now = clock.now()
      const runAt = now + delayMilliseconds
      insert().run({ id: newId(), kind, payload, now, runAt })
      afterCommit(() => onAdded(runAt))
    },
    /** Calls `listener` with the due time of each job that this process adds. */
    subscribe(listener: (runAt: number) => void): void {
      onAdded = listener
    },
    firstRunAt,
    /** Ids of due jobs of a kind, the longest due first. */
    listDue: (kind: JobKind, limit: number): string[] =>
      due()
        .all({ kind, now: clock.now(), limit })
        .map(({ id }) => id),
    /** Takes jobs for `leaseMilliseconds`; each take is an attempt. */
    claim(ids: string[], leaseMilliseconds: number): Job[] {
      return orm
        .update(outbox)
        .set({
          leasedUntil: clock.now() + leaseMilliseconds,
          attempts: sql`${outbox.attempts} + 1`,
        })
        .where(inArray(outbox.id, ids))
        .returning()
        .all()
    },
    delete(id: string): void {
      orm.delete(outbox).where(eq(outbox.id, id)).run()
    },
    find: (id: string): Job | undefined => orm.select().from(outbox).where(eq(outbox.id, id)).get(),
    /** Newest first. */
    list(state: JobState | undefined, { limit, offset, before }: RowRange): Job[] {
      return orm
        .select()
        .from(outbox)
        .where(and(inState(state), before === undefined ? undefined : lt(outbox.id, before)))
        .orderBy(desc(outbox.id))
        .limit(limit)
        .offset(offset)
        .all()
    },
    count: (state: JobState | undefined): number =>
      orm.select({ n: count() }).from(outbox).where(inState(state)).get()?.n ?? 0,
    /** Ids of jobs that were given up at `until` (ms since the epoch) or before. */
    listDead: (until: number, limit: number): string[] =>
      orm
        .select({ id: outbox.id })
        .from(outbox)
        .where(lte(outbox.deadAt, until))
        .limit(limit)
        .all()
        .map(({ id }) => id),
    /** The job is due now, as if it had never run. */
    retry(id: string): void {
      const now = clock.now()
      update(id, { runAt: now, attempts: 0, deadAt: null })
      afterCommit(() => onAdded(now))
    },
    /** The job is not done and is due again after a while; this take was no attempt. */
    requeue: (id: string, delayMilliseconds: number): void =>
      update(id, {
        runAt: clock.now() + delayMilliseconds,
        attempts: sql`${outbox.attempts} - 1`,
      }),
    /** The job failed and is due again at `runAt`. */
    postpone: (id: string, runAt: number, lastError: string): void =>
      update(id, { runAt, lastError }),
    /** The job is given up and stays to be seen. */
    markDead: (id: string, lastError: string): void =>
      update(id, { deadAt: clock.now(), lastError }),
    /** Releases what a process held that died. */
    releaseAll(): void {
      orm.update(outbox).set({ leasedUntil: null }).where(isNotNull(outbox.leasedUntil)).run()
    },
    /** The clock was set back: what waits is due that much earlier. */
    moveBack(milliseconds: number): void {
      orm
        .update(outbox)
        .set({ runAt: sql`${outbox.runAt} - ${milliseconds}` })
        .where(isNull(outbox.deadAt))
        .run()
    },
    /** Removes what is due for somebody who is gone, in pieces. */
    *erase(userId: string): Generator<() => void> {
      const of = sql`json_extract(${outbox.payload}, '$.user_id') = ${userId}`
      let after = ''
      for (;;) {
        const ids = orm
          .select({ id: outbox.id })
          .from(outbox)
          .where(gt(outbox.id, after))
          .orderBy(asc(outbox.id))
          .limit(erasedAtOnce)
          .all()
        const [first, last] = [ids[0]?.id, ids.at(-1)?.id]
        if (first === undefined || last === undefined) return
        after = last
        const which = and(between(outbox.id, first, last), of, not(eq(outbox.kind, 'erasure')))
        yield () => orm.delete(outbox).where(which).run()
      }
    },
    /** By kind and state, those that there are. */
    countByKind: (): { kind: string; state: JobState; count: number }[] =>
      jobStates.flatMap((state) =>
        orm
          .select({ kind: outbox.kind, count: count() })
          .from(outbox)
          .where(inState(state))
          .groupBy(outbox.kind)
          .all()
          .map((row) => ({ ...row, state })),
      ),
    stats(): OutboxStats {
      const now = clock.now()
      return {
        waiting: countSome(isNull(outbox.deadAt)),
        dead: countSome(isNotNull(outbox.deadAt)),
        oldestAge: Math.max(0, now - firstRunAt()),
      }
    },
  }
}
