import {
  and,
  asc,
  between,
  count,
  desc,
  eq,
  gt,
  gte,
  inArray,
  lt,
  min,
  type SQL,
  sql,
} from 'drizzle-orm'
import { type Clock, day, hour } from '../lib/clock.ts'
import { throttled } from '../lib/errors.ts'
import { firstIdAt, type NewId } from '../lib/ids.ts'
import { lazy } from '../lib/lazy.ts'
import type { Listing, ListRange } from '../lib/list-range.ts'
import type { ActorType } from '../lib/vocabulary.ts'
import { isAddressHash, loadAddressHash } from './keyed-hash.ts'
import type { Orm } from './open.ts'
import { auditLog } from './schema.ts'
import { countUpTo, eachOf, listById, prepareInsert } from './statements.ts'

/** The actions of the log, each with the type of its target. Modules add theirs. */
export interface AuditActions {
  backup_made: never
  origin_refused: never
  retention_run: never
  setting_changed: 'setting'
}
export type AuditAction = keyof AuditActions

export type Actor = { type: ActorType; id?: string }
export type By = { actor: Actor; ip?: string }
export type ByUser = { actor: { type: 'user'; id: string }; ip: string }

export type AuditEntry = {
  action: AuditAction
  actor: Actor
  target?: { type: AuditActions[AuditAction]; id: string }
  ip?: string
  /** Never contains a secret: no token, no password, no hash of one. */
  details?: Record<string, string>
}

export type AuditRow = typeof auditLog.$inferSelect

export function onOneself(id: string, ip: string) {
  const user = { type: 'user', id } as const
  return { actor: user, target: user, ip }
}

/** Times in ms since the epoch; `from` is inclusive, `to` exclusive. */
export type AuditFilter = {
  action?: string | undefined
  actorId?: string | undefined
  targetId?: string | undefined
  from?: number | undefined
  to?: number | undefined
}

/** The largest difference between the time in a row's id and `at`. Ids rise even when the clock is set back: by up to 14
 *  hours where it took local time for UTC. */
const slackMilliseconds = day

// ULIDs order by time, so the primary key serves as the time index. The unary plus stops SQLite from choosing another one,
// and `at` is read only of the rows near the bounds: a count needs the index alone.
function during({ from, to }: AuditFilter): SQL | undefined {
  const { id, at } = auditLog
  const isFrom = (time: number) =>
    sql`(+${id} >= ${firstIdAt(time + slackMilliseconds)} OR +${at} >= ${time})`
  const isBefore = (time: number) =>
    sql`(+${id} < ${firstIdAt(time - slackMilliseconds)} OR +${at} < ${time})`
  return and(
    from === undefined
      ? undefined
      : and(gte(id, firstIdAt(from - slackMilliseconds)), isFrom(from)),
    to === undefined ? undefined : and(lt(id, firstIdAt(to + slackMilliseconds)), isBefore(to)),
  )
}

const limitPerHour = 5

/** Rows of a person or action that are read for a filter with several conditions. */
const fewRows = 20_000

export type AuditTrail = ReturnType<typeof createAuditTrail>

/** Each row is written in the transaction of the action that it records; triggers make the rows immutable. */
export function createAuditTrail(orm: Orm, newId: NewId, clock: Clock) {
  const insert = lazy(() => prepareInsert(orm.$client, auditLog))

  const hasFew = (condition: SQL): boolean =>
    countUpTo(fewRows + 1, orm, auditLog, condition) <= fewRows

  // SQLite does not know that an action has a million rows and a person ten. The first condition with few rows chooses the
  // index; a plus keeps SQLite from using another one.
  function matching(filter: AuditFilter): SQL | undefined {
    const { action, actorId, targetId } = filter
    const given = [
      targetId === undefined ? [] : { column: auditLog.targetId, value: targetId },
      actorId === undefined ? [] : { column: auditLog.actorId, value: actorId },
      action === undefined ? [] : { column: auditLog.action, value: action },
    ].flat()
    const best =
      given.length < 2 ? undefined : given.find(({ column, value }) => hasFew(eq(column, value)))
    const conditions = given.map((one) =>
      best && one !== best ? sql`+${one.column} = ${one.value}` : eq(one.column, one.value),
    )
    return and(...conditions, during(filter))
  }

  /** Computed from the rowids: they have no gaps, because only the oldest rows are deleted. */
  function countAll(): number {
    const end = (n: SQL<number>) => orm.select({ n }).from(auditLog).get()?.n ?? 0
    const last = end(sql`max(rowid)`)
    return last === 0 ? 0 : last - end(sql`min(rowid)`) + 1
  }

  return {
    record({ action, actor, target, ip, details }: AuditEntry): void {
      insert()({
        id: newId(),
        at: clock.now(),
        action,
        actorType: actor.type,
        actorId: actor.id ?? null,
        targetType: target?.type ?? null,
        targetId: target?.id ?? null,
        ip: ip ?? null,
        details: details ? JSON.stringify(details) : null,
      })
    },
    /** Limits an action on a user to 5 an hour, by its entries in the log.
     *  @throws quota_exceeded */
    mustHaveLeft(userId: string, action: AuditAction): void {
      const now = clock.now()
      // Later times are from before the clock was set back.
      const isRecent = between(auditLog.at, now - hour, now)
      const which = and(eq(auditLog.targetId, userId), eq(auditLog.action, action), isRecent)
      const entries = { times: count(), firstAt: min(auditLog.at) }
      const found = orm.select(entries).from(auditLog).where(which).get()
      if (!found || found.times < limitPerHour) return
      throw throttled('quota_exceeded', (found.firstAt ?? 0) + hour - now)
    },
    findLatest(action: AuditAction, targetIds?: readonly string[]): AuditRow | undefined {
      const some = targetIds && inArray(auditLog.targetId, [...targetIds])
      const which = and(eq(auditLog.action, action), some)
      return orm.select().from(auditLog).where(which).orderBy(desc(auditLog.id)).limit(1).get()
    },
    findRecentDetails(action: AuditAction): Record<string, string> | undefined {
      const row = this.findLatest(action)
      return row?.details && clock.now() - row.at <= day ? JSON.parse(row.details) : undefined
    },
    listAddresses(userId: string, actions: readonly AuditAction[], milliseconds: number): string[] {
      const { ip } = auditLog
      const since = gte(auditLog.at, clock.now() - milliseconds)
      const which = and(eq(auditLog.targetId, userId), inArray(auditLog.action, actions), since)
      const found = orm.selectDistinct({ ip }).from(auditLog).where(which).all()
      return found.flatMap((row) => row.ip ?? [])
    },
    eachBy: (userId: string, from: string) =>
      eachOf(orm, auditLog, 'id', and(eq(auditLog.actorId, userId), gte(auditLog.id, from))),
    /** Replaces addresses with keyed hashes, the only update that the triggers allow: the rows stay as evidence. */
    erase(userId: string, limit: number, after = ''): string | undefined {
      const hashAddress = loadAddressHash(orm)
      const next = and(eq(auditLog.actorId, userId), gt(auditLog.id, after))
      const found = orm.select().from(auditLog).where(next)
      const rows = found.orderBy(asc(auditLog.id)).limit(limit).all()
      for (const { id, ip, action } of rows) {
        const details = action === 'session_moved' ? { details: null } : {}
        // After a crash the job starts over and reads rows that are hashed already.
        const erased = { ip: ip && (isAddressHash(ip) ? ip : hashAddress(ip)), ...details }
        orm.update(auditLog).set(erased).where(eq(auditLog.id, id)).run()
      }
      return rows.at(-1)?.id
    },
    list(filter: AuditFilter, range: ListRange): Listing<AuditRow> {
      const which = matching(filter)
      return listById(orm, range, { id: auditLog.id, which, ...(!which && { count: countAll }) })
    },
  }
}
