import { type Static, Type } from '@sinclair/typebox'
import type { AuditRow } from '../../db/audit-trail.ts'
import { type Job, jobStates } from '../../jobs/outbox.ts'
import { isoTime } from '../../lib/clock.ts'
import { Nullable, OneOf, Timestamp } from '../../lib/fields.ts'
import type { System } from './system.ts'

const NullableText = Nullable(Type.String())
const Party = Type.Object({ type: NullableText, id: NullableText })

export const AuditEntry = Type.Object(
  {
    id: Type.String(),
    at: Timestamp,
    action: Type.String(),
    actor: Party,
    target: Party,
    ip: NullableText,
    details: Nullable(Type.Record(Type.String(), Type.String())),
  },
  { title: 'AuditEntry' },
)

export function auditEntryView(row: AuditRow): Static<typeof AuditEntry> {
  return {
    id: row.id,
    at: isoTime(row.at),
    action: row.action,
    actor: { type: row.actorType, id: row.actorId },
    target: { type: row.targetType, id: row.targetId },
    ip: row.ip,
    details: row.details === null ? null : JSON.parse(row.details),
  }
}

export const JobState = OneOf(jobStates)

export const JobItem = Type.Object(
  {
    id: Type.String(),
    kind: Type.String(),
    state: JobState,
    attempts: Type.Integer(),
    last_error: Nullable(
      Type.String({ description: 'Why it failed last; e-mail addresses are masked.' }),
    ),
    run_at: Timestamp,
  },
  { title: 'Job' },
)

export function jobView(row: Job): Static<typeof JobItem> {
  return {
    id: row.id,
    kind: row.kind,
    state: row.deadAt === null ? 'waiting' : 'dead',
    attempts: row.attempts,
    last_error: row.lastError,
    run_at: isoTime(row.runAt),
  }
}

const NullableTime = Nullable(Timestamp)
const Latency = Nullable(Type.Number({ description: 'Milliseconds, right to a fifth.' }))

const Minute = Type.Object(
  {
    at: Timestamp,
    requests: Type.Integer(),
    failed: Type.Integer({ description: 'Answered with 5xx.' }),
    frames: Type.Integer({ description: 'Frames of clients.' }),
    p50_ms: Latency,
    p99_ms: Latency,
  },
  { title: 'Minute' },
)

const Deliveries = Type.Object(
  {
    configured: Type.Boolean(),
    last_sent_at: NullableTime,
    last_failed_at: NullableTime,
    last_error: NullableText,
  },
  { title: 'Deliveries', description: 'Since the start.' },
)

export const SystemState = Type.Object(
  {
    version: Type.String(),
    started_at: Timestamp,
    uptime_seconds: Type.Integer(),
    database_bytes: Type.Integer(),
    wal_bytes: Type.Integer(),
    free_disk_bytes: Type.Integer(),
    sockets: Type.Integer(),
    socket_users: Type.Integer(),
    last_hour: Type.Array(Minute),
    outbox: Type.Array(
      Type.Object({ kind: Type.String(), state: JobState, count: Type.Integer() }),
    ),
    mail: Deliveries,
    push: Deliveries,
    webhooks: Type.Object({
      total: Type.Integer(),
      disabled: Type.Integer(),
      failing: Type.Integer({ description: 'Nothing has been delivered since the last failure.' }),
    }),
    last_backup_at: NullableTime,
    warnings: Type.Array(Type.Object({ code: Type.String(), message: Type.String() })),
  },
  { title: 'System' },
)

export function systemView(state: ReturnType<System>): Static<typeof SystemState> {
  const { startedAt, now, storage, hub } = state
  return {
    version: state.version,
    started_at: isoTime(startedAt),
    uptime_seconds: Math.floor((now - startedAt) / 1_000),
    database_bytes: storage.databaseBytes,
    wal_bytes: storage.walBytes,
    free_disk_bytes: storage.freeBytes,
    sockets: hub.sockets,
    socket_users: hub.users,
    last_hour: state.minutes.map(({ at, p50, p99, ...minute }) => ({
      at: isoTime(at),
      ...minute,
      p50_ms: p50,
      p99_ms: p99,
    })),
    outbox: state.outbox,
    mail: deliveriesView(state.mail),
    push: deliveriesView(state.push),
    webhooks: state.webhooks,
    last_backup_at: timeOrNull(state.lastBackupAt),
    warnings: state.warnings,
  }
}

function deliveriesView({ isSetUp, sentAt, failure }: ReturnType<System>['mail']) {
  return {
    configured: isSetUp,
    last_sent_at: timeOrNull(sentAt),
    last_failed_at: timeOrNull(failure?.at),
    last_error: failure?.reason ?? null,
  }
}

const timeOrNull = (time: number | undefined) => (time === undefined ? null : isoTime(time))
