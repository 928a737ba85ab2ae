import { and, count, eq, gt, isNotNull, isNull, lte, not, type SQL, sql } from 'drizzle-orm'
import type { Orm } from '../db/open.ts'
import { outbox } from '../db/schema.ts'
import { countRows, countUpTo, lazyStatements, listById, listColumn } from '../db/statements.ts'
import type { AfterCommit } from '../db/writer.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { Listing, ListRange } from '../lib/list-range.ts'

/** The payloads of jobs, by kind; modules add theirs. They refer to rows by id and hold no secrets: tokens are made when a
 *  job runs. */
// biome-ignore lint/suspicious/noEmptyInterface: modules extend it
export interface OutboxJobs {}

export type JobKind = keyof OutboxJobs
export type Job = typeof outbox.$inferSelect

/** Jobs of one kind for one receiver: the id of a webhook, a push service, or '' for internal jobs. Each poll reads the
 *  first job of every queue, so there must be few receivers. */
export type QueueName = { kind: string; receiver: string }

export const jobStates = ['waiting', 'dead'] as const
export type JobState = (typeof jobStates)[number]

type Head = QueueName & { runAt: number }
type Added = Pick<Head, 'receiver' | 'runAt'>
type DueRow = Pick<Job, 'id' | 'kind' | 'receiver' | 'runAt' | 'attempts'> & { payload: string }
/** `attempts` includes the one that is due. */
export type DueJob = Omit<DueRow, 'payload'> & { payload: unknown }
/** Without `runAt` the job is given up. */
export type Failure = { reason: string; runAt: number | undefined }
type Dropping = { kept: number; limit: number; after: string }
type Hurrying = { since: number; last: string; limit: number }
type JobOptions = { id?: string; delayMilliseconds?: number; receiver?: string }

// Metrics are read often, and counting a long queue in full would delay its jobs further.
const countedAtMost = 10_000
const webhookKind = 'webhook_delivery'

export type Outbox = ReturnType<typeof createOutbox>

type OutboxCore = { orm: Orm; newId: NewId; clock: Clock; afterCommit: AfterCommit }

const inState = (state: JobState | undefined): SQL | undefined =>
  state && (state === 'dead' ? isNotNull(outbox.deadAt) : isNull(outbox.deadAt))

const idsOf = (rows: { id: string }[]): string[] => rows.map(({ id }) => id)

export function createOutbox({ orm, newId, clock, afterCommit }: OutboxCore) {
  let onAdded = (_added: Added) => {}
  const statement = lazyStatements(orm.$client)
  const insert = statement<unknown, [string, string, string, string, number, number]>(
    'INSERT INTO outbox (id, kind, receiver, payload, created_at, run_at) VALUES (?, ?, ?, ?, ?, ?)',
  )
  const due = statement<{ id: string }, [string, string, number, number]>(
    `SELECT id FROM outbox WHERE kind = ? AND receiver = ? AND dead_at IS NULL AND run_at <= ?
     ORDER BY run_at, id LIMIT ?`,
  )
  const dueById = statement<DueRow, [string, number]>(
    `SELECT id, kind, receiver, payload, run_at AS runAt, attempts + 1 AS attempts FROM outbox
     WHERE id = ? AND dead_at IS NULL AND run_at <= ?`,
  )
  // Two queries, each with one seek in the index on (kind, receiver). A single comparison of both columns would make SQLite
  // scan all jobs of a receiver.
  const firstOfReceiverAfter = statement<Head, [string, string]>(
    `SELECT kind, receiver, run_at AS runAt FROM outbox WHERE dead_at IS NULL AND kind = ? AND receiver > ?
     ORDER BY receiver, run_at LIMIT 1`,
  )
  const firstOfKindAfter = statement<Head, [string]>(
    `SELECT kind, receiver, run_at AS runAt FROM outbox WHERE dead_at IS NULL AND kind > ?
     ORDER BY kind, receiver, run_at LIMIT 1`,
  )
  const waitingIn = statement<{ n: number }, [string, string, number]>(
    `SELECT count(*) AS n FROM
       (SELECT 1 FROM outbox WHERE kind = ? AND receiver = ? AND dead_at IS NULL LIMIT ?)`,
  )
  // In the order of ids, because the jobs of a receiver that has too many are the oldest of all.
  const removeOldest = statement<{ id: string }, [string, string, string, number]>(
    `DELETE FROM outbox WHERE id IN
       (SELECT id FROM outbox WHERE +kind = ? AND +receiver = ? AND +dead_at IS NULL AND id > ?
        ORDER BY id LIMIT ?)
     RETURNING id`,
  )
  // Without conditions SQLite counts pages instead of rows.
  const counts = statement<{ all: number; dead: number }, []>(
    `SELECT (SELECT count(*) FROM outbox) AS "all",
       (SELECT count(*) FROM outbox WHERE dead_at IS NOT NULL) AS dead`,
  )
  const lastOfNext = statement<{ id: string | null }, [string, number]>(
    'SELECT max(id) AS id FROM (SELECT id FROM outbox WHERE id > ? ORDER BY id LIMIT ?)',
  )
  const setDue = statement<unknown, [number, string, string, string, string, number]>(
    `UPDATE outbox SET run_at = ?1, attempts = 0
     WHERE id > ?2 AND id <= ?3 AND +kind = ?4 AND +receiver = ?5 AND +dead_at IS NULL AND created_at >= ?6
       AND (run_at > ?1 OR attempts > 0)`,
  )
  const remove = statement<unknown, [string]>('DELETE FROM outbox WHERE id = ?')

  function countAll(state: JobState | undefined): number {
    const { all = 0, dead = 0 } = counts().get() ?? {}
    if (state === undefined) return all
    return state === 'dead' ? dead : all - dead
  }

  // Webhooks have the long queues, so the number of their jobs is what the other kinds leave.
  function countWaitingByKind() {
    const kinds = new Set(heads().map(({ kind }) => kind))
    const isLong = kinds.delete(webhookKind)
    const rows = [...kinds].map((kind) => ({
      kind,
      count: countRows(orm, outbox, and(eq(outbox.kind, kind), inState('waiting'))),
    }))
    const others = rows.reduce((sum, row) => sum + row.count, 0)
    return isLong ? [...rows, { kind: webhookKind, count: countAll('waiting') - others }] : rows
  }

  function countDeadByKind() {
    const kinds = orm.select({ kind: outbox.kind, count: count() }).from(outbox)
    return kinds.where(inState('dead')).groupBy(outbox.kind).all()
  }

  function* heads(): Generator<Head> {
    let head = firstOfKindAfter().get('')
    while (head) {
      yield head
      const { kind, receiver } = head
      head = firstOfReceiverAfter().get(kind, receiver) ?? firstOfKindAfter().get(kind)
    }
  }

  // Choice: webhook jobs do not count, because this server does not cause the backlog of a slow endpoint.
  function oldestAge(now: number): number {
    const counted = [...heads()].filter(({ kind }) => kind !== webhookKind)
    return Math.max(0, ...counted.map(({ runAt }) => now - runAt))
  }

  function update(id: string, changes: Partial<Job>) {
    orm.update(outbox).set(changes).where(eq(outbox.id, id)).run()
  }

  return {
    add<K extends JobKind>(
      kind: K,
      payload: OutboxJobs[K],
      { id = newId(), delayMilliseconds = 0, receiver = '' }: JobOptions = {},
    ): void {
      const now = clock.now()
      const runAt = now + delayMilliseconds
      insert().run(id, kind, receiver, JSON.stringify(payload), now, runAt)
      afterCommit(() => onAdded({ receiver, runAt }))
    },
    subscribe(listener: (added: Added) => void): void {
      onAdded = listener
    },
    heads,
    listDue: ({ kind, receiver }: QueueName, limit: number): string[] =>
      idsOf(due().all(kind, receiver, clock.now(), limit)),
    findDue(id: string): DueJob | undefined {
      const row = dueById().get(id, clock.now())
      return row ? { ...row, payload: JSON.parse(row.payload) } : undefined
    },
    delete(id: string): void {
      remove().run(id)
    },
    /** Deletes at most `limit`, so that `kept` stay.
     *  @param after the last job that was deleted before: no older one is looked for */
    dropOldest({ kind, receiver }: QueueName, { kept, limit, after }: Dropping): string[] {
      if (countAll('waiting') <= kept) return []
      const excess = (waitingIn().get(kind, receiver, kept + limit)?.n ?? 0) - kept
      if (excess <= 0) return []
      return idsOf(removeOldest().all(kind, receiver, after, excess)).sort()
    },
    find: (id: string): Job | undefined => orm.select().from(outbox).where(eq(outbox.id, id)).get(),
    list: (state: JobState | undefined, range: ListRange): Listing<Job> =>
      listById(orm, range, {
        name: 'jobs',
        id: outbox.id,
        which: inState(state),
        count: () => countAll(state),
      }),
    retry(id: string): void {
      const runAt = clock.now()
      update(id, { runAt, attempts: 0, deadAt: null })
      afterCommit(() => onAdded({ receiver: '', runAt }))
    },
    /** Begins a new series of attempts at jobs added since a time, among the next `limit` jobs after `last`.
     *  @returns the id of the last job examined, and how many of them wait or were tried; undefined when there is none */
    hurry({ kind, receiver }: QueueName, { since, last, limit }: Hurrying) {
      const end = lastOfNext().get(last, limit)?.id
      if (!end) return undefined
      const runAt = clock.now()
      const { changes } = setDue().run(runAt, last, end, kind, receiver, since)
      afterCommit(() => onAdded({ receiver, runAt }))
      return { last: end, count: changes }
    },
    updatePayload: (id: string, payload: OutboxJobs[JobKind]): void => update(id, { payload }),
    /** Counts no attempt. */
    requeue: (id: string, delayMilliseconds: number): void =>
      update(id, { runAt: clock.now() + delayMilliseconds }),
    fail: (id: string, attempts: number, { reason, runAt }: Failure): void =>
      update(id, {
        attempts,
        lastError: reason,
        ...(runAt === undefined ? { deadAt: clock.now() } : { runAt }),
      }),
    /** Deletes the jobs of a deleted user among the next `limit` jobs.
     *  @returns the id of the last job examined; undefined when there is none */
    erase(userId: string, limit: number, after = ''): string | undefined {
      const isLater = gt(outbox.id, after)
      const last = listColumn(orm, outbox.id, isLater, { limit, sorted: true }).at(-1)
      const isTheirs = sql`json_extract(${outbox.payload}, '$.user_id') = ${userId}`
      const isErasure = eq(outbox.kind, 'erasure')
      const which = and(isLater, lte(outbox.id, last ?? after), isTheirs, not(isErasure))
      orm.delete(outbox).where(which).run()
      return last
    },
    countByKind: (): { kind: string; state: JobState; count: number }[] => [
      ...countWaitingByKind().map((row) => ({ ...row, state: 'waiting' as const })),
      ...countDeadByKind().map((row) => ({ ...row, state: 'dead' as const })),
    ],
    stats: () => ({
      waiting: countUpTo(countedAtMost, orm, outbox, inState('waiting')),
      dead: countUpTo(countedAtMost, orm, outbox, inState('dead')),
      oldestAge: oldestAge(clock.now()),
    }),
  }
}
