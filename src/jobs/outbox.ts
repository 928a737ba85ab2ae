import {
  and,
  asc,
  between,
  count,
  desc,
  eq,
  gt,
  isNotNull,
  isNull,
  lt,
  lte,
  not,
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
import type { EventType } from '../lib/vocabulary.ts'

/** Somebody, unless they have another address by then; null where nobody has the one that was given. */
export type AccountMail = { user_id: string | null; address_hash: string }

/** What can be due later, by kind. Payloads name things and hold no secrets: tokens are made when a job runs. */
export type OutboxJobs = {
  verification_mail: AccountMail
  /** Without `ip` somebody else has asked for it. */
  password_reset_mail: AccountMail & { ip?: string }
  password_changed_mail: AccountMail
  totp_enabled_mail: AccountMail
  totp_disabled_mail: AccountMail
  /** To an address that somebody wants to have: `address_hash` is its own. */
  email_change_mail: AccountMail
  /** To the address that somebody had before. */
  email_changed_mail: AccountMail
  erasure: { user_id: string }
  broadcast: { broadcast_id: string }
  support_inbox_mail: { ticket_id: string }
  assignee_mail: { ticket_id: string }
  announcement: { announcement_id: string }
  notification_mail: { user_id: string; notification_id: string }
  /** Urgent pushes have their own queue: they expire within a minute. */
  urgent_push: { user_id: string; push_token_id: string; notification_id: string }
  notification_push: { user_id: string; push_token_id: string; notification_id: string }
  message_push: { user_id: string; push_token_id: string; conversation_id: string; seq: number }
  /** The bytes of a file whose row is gone. */
  file_removal: { key: string }
  unread_push: { user_id: string; conversation_id: string }
  /** To one endpoint. `event` names what has happened: its type, when it was, and ids. */
  webhook_delivery: { webhook_id: string; event: WebhookEvent }
}

export type WebhookEvent = { type: EventType; at: string } & Record<string, string>

export type JobKind = keyof OutboxJobs
export type Job = typeof outbox.$inferSelect

/** Jobs of one kind and lane wait for each other and for no others. Each endpoint of webhooks is a lane. */
export type Lane = { kind: string; lane: string }

const laneOf = (payload: OutboxJobs[JobKind]) => ('webhook_id' in payload ? payload.webhook_id : '')

export const jobStates = ['waiting', 'dead'] as const
export type JobState = (typeof jobStates)[number]

/** The state of the queue, for `hostline check` and metrics. Counts stop at 10,000; age is in milliseconds. */
export type OutboxStats = { waiting: number; dead: number; oldestAge: number }

type Head = Lane & { runAt: number }
type Added = Pick<Head, 'lane' | 'runAt'>
type Claimed = Pick<Job, 'id' | 'kind' | 'lane' | 'attempts'> & { payload: string }
export type ClaimedJob = Omit<Claimed, 'payload'> & { payload: unknown }
type NewJob<K extends JobKind> = { kind: K; payload: OutboxJobs[K]; delayMilliseconds?: number }

// Metrics are read often, and must not make a long queue longer.
const countedAtMost = 10_000
const erasedAtOnce = 500

export type Outbox = ReturnType<typeof createOutbox>

type OutboxCore = { orm: Orm; newId: NewId; clock: Clock; afterCommit: AfterCommit }

const inState = (state: JobState | undefined): SQL | undefined =>
  state && (state === 'dead' ? isNotNull(outbox.deadAt) : isNull(outbox.deadAt))

/** The only queue: rows that are written in the transaction that makes them due. Every function is SQL. */
export function createOutbox({ orm, newId, clock, afterCommit }: OutboxCore) {
  let onAdded = (_added: Added) => {}
  const sqlite = orm.$client
  const insert = lazy(() =>
    sqlite.prepare<unknown, [string, string, string, string, number, number]>(
      'INSERT INTO outbox (id, kind, lane, payload, created_at, run_at) VALUES (?, ?, ?, ?, ?, ?)',
    ),
  )
  const due = lazy(() =>
    sqlite.prepare<{ id: string }, [string, string, number, number, number]>(
      `SELECT id FROM outbox WHERE kind = ? AND lane = ? AND dead_at IS NULL AND run_at <= ?
         AND (leased_until IS NULL OR leased_until < ?) ORDER BY run_at, id LIMIT ?`,
    ),
  )
  // The index begins with kind and lane: each is one step in it. SQLite would walk through all jobs of a lane to get past
  // it if both were compared at once.
  const firstOfLaneAfter = lazy(() =>
    sqlite.prepare<Head, [string, string]>(
      `SELECT kind, lane, run_at AS runAt FROM outbox WHERE dead_at IS NULL AND kind = ? AND lane > ?
       ORDER BY lane, run_at LIMIT 1`,
    ),
  )
  const firstOfKindAfter = lazy(() =>
    sqlite.prepare<Head, [string]>(
      `SELECT kind, lane, run_at AS runAt FROM outbox WHERE dead_at IS NULL AND kind > ?
       ORDER BY kind, lane, run_at LIMIT 1`,
    ),
  )
  const claim = lazy(() =>
    sqlite.prepare<Claimed, [number, string]>(
      `UPDATE outbox SET leased_until = ?, attempts = attempts + 1 WHERE id = ?
       RETURNING id, kind, lane, payload, attempts`,
    ),
  )
  const remove = lazy(() => sqlite.prepare<unknown, [string]>('DELETE FROM outbox WHERE id = ?'))

  function countSome(which: SQL): number {
    const some = orm
      .select({ one: sql`1`.as('one') })
      .from(outbox)
      .where(which)
      .limit(countedAtMost)
      .as('some')
    return orm.select({ n: count() }).from(some).get()?.n ?? 0
  }

  /** The first job of each lane. */
  function* heads(): Generator<Head> {
    let head = firstOfKindAfter().get('')
    while (head) {
      yield head
      const { kind, lane } = head
      head = firstOfLaneAfter().get(kind, lane) ?? firstOfKindAfter().get(kind)
    }
  }

  function insertJob<K extends JobKind>(id: string, job: NewJob<K>) {
    const { kind, payload, delayMilliseconds = 0 } = job
    const now = clock.now()
    const runAt = now + delayMilliseconds
    const lane = laneOf(payload)
    insert().run(id, kind, lane, JSON.stringify(payload), now, runAt)
    afterCommit(() => onAdded({ lane, runAt }))
  }

  // Choice: what waits for somebody else's endpoint says nothing of this service.
  function oldestAge(now: number): number {
    const ages = [...heads()].map(({ lane, runAt }) => (lane === '' ? now - runAt : 0))
    return Math.max(0, ...ages)
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
      insertJob(newId(), { kind, payload, delayMilliseconds })
    },
    /** Adds a job that was done before, under the same id. */
    addAgain<K extends JobKind>(id: string, kind: K, payload: OutboxJobs[K]): void {
      insertJob(id, { kind, payload })
    },
    /** Calls `listener` for each job that this process adds. */
    subscribe(listener: (added: Added) => void): void {
      onAdded = listener
    },
    heads,
    /** Ids of due jobs of a lane, the longest due first. */
    listDue: ({ kind, lane }: Lane, limit: number): string[] => {
      const now = clock.now()
      return due()
        .all(kind, lane, now, now, limit)
        .map(({ id }) => id)
    },
    /** Takes jobs for `leaseMilliseconds`; each take is an attempt. */
    claim(ids: string[], leaseMilliseconds: number): ClaimedJob[] {
      const until = clock.now() + leaseMilliseconds
      return ids.flatMap((id) => {
        const job = claim().get(until, id)
        return job ? [{ ...job, payload: JSON.parse(job.payload) }] : []
      })
    },
    delete(id: string): void {
      remove().run(id)
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
      const runAt = clock.now()
      update(id, { runAt, attempts: 0, deadAt: null })
      afterCommit(() => onAdded({ lane: '', runAt }))
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
        oldestAge: oldestAge(now),
      }
    },
  }
}
