import { type Static, Type } from '@sinclair/typebox'
import { Nullable, OneOf, Rarely, Sample, Timestamp } from '../../api/fields.ts'
import { samples } from '../../api/samples.ts'
import type { AuditRow } from '../../db/audit-trail.ts'
import { type Job, jobStates } from '../../jobs/outbox.ts'
import { isoTime, timeOrNull } from '../../lib/clock.ts'
import type { System } from './system.ts'

const Party = (type: string, id: string) =>
  Type.Object({ type: Nullable(Sample(type)), id: Nullable(Sample(id)) })

export const AuditEntry = Type.Object(
  {
    id: Sample(samples.recordId),
    at: Timestamp,
    action: Sample('role_changed'),
    actor: Party('user', samples.admin.id),
    target: Party('user', samples.host.id),
    ip: Nullable(Sample('203.0.113.7')),
    details: Nullable(
      Type.Record(Type.String(), Type.String(), { examples: [{ from: 'user', to: 'host' }] }),
    ),
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
    id: Sample(samples.recordId),
    kind: Sample('verification_mail'),
    state: JobState,
    attempts: Type.Integer({ examples: [2] }),
    last_error: Nullable(
      Sample('connect ECONNREFUSED 203.0.113.25:587', {
        description: 'The reason of the last failure, with e-mail addresses masked.',
      }),
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
const Latency = (milliseconds: number) =>
  Nullable(
    Type.Number({ description: 'Milliseconds, accurate to 20 %.', examples: [milliseconds] }),
  )
const Count = (example: number) => Type.Integer({ examples: [example] })

const Minute = Type.Object(
  {
    at: Timestamp,
    requests: Count(1_260),
    failed: Type.Integer({ description: 'Responses with 5xx.', examples: [0] }),
    frames: Type.Integer({ description: 'Frames from clients.', examples: [310] }),
    p50_ms: Latency(1.2),
    p99_ms: Latency(9.6),
  },
  { title: 'Minute' },
)

const Deliveries = Type.Object(
  {
    configured: Type.Boolean({ examples: [true] }),
    last_sent_at: NullableTime,
    last_failed_at: Rarely(Timestamp),
    last_error: Rarely(Type.String()),
  },
  { title: 'Deliveries', description: 'The last success and failure since the start.' },
)

const Replication = Type.Object(
  {
    role: OneOf(['leader', 'standby']),
    ack: OneOf(['disk', 'bucket']),
    standby_allowed: Type.Boolean({
      description: 'Whether a standby may take over.',
      examples: [true],
    }),
    epoch: Nullable(Count(2), { description: 'Increases each time a node becomes the leader.' }),
    position: Nullable(Count(48_213), {
      description: 'The position of the newest stored log entry.',
    }),
    lag_seconds: Type.Number({
      description: 'The age of the oldest change that is not in the bucket yet.',
      examples: [0.4],
    }),
    last_stored_at: NullableTime,
    last_snapshot_at: NullableTime,
    failures: Type.Integer({
      description: 'Failed requests to the bucket since the start.',
      examples: [0],
    }),
    last_failed_at: Rarely(Timestamp),
    last_error: Rarely(Type.String()),
  },
  { title: 'Replication' },
)

export const SystemState = Type.Object(
  {
    version: Sample('1.0.0'),
    started_at: Timestamp,
    uptime_seconds: Count(86_400),
    database_bytes: Count(48_234_496),
    wal_bytes: Count(1_318_400),
    free_disk_bytes: Count(21_474_836_480),
    sockets: Count(42),
    socket_users: Count(37),
    last_hour: Type.Array(Minute),
    outbox: Type.Array(
      Type.Object({ kind: Sample('verification_mail'), state: JobState, count: Count(1) }),
    ),
    mail: Deliveries,
    push: Deliveries,
    webhooks: Type.Object({
      total: Count(2),
      disabled: Count(0),
      failing: Type.Integer({
        description:
          'Enabled webhooks to which nothing has been delivered since their last failure.',
        examples: [0],
      }),
    }),
    replication: Nullable(Replication, { description: 'Null without a bucket.' }),
    last_backup_at: NullableTime,
    warnings: Type.Array(
      Type.Object({
        code: Sample('no_backup'),
        message: Sample('No backup was made within two days: run hostline backup every day.'),
      }),
    ),
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
    replication: replicationView(state.replica),
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

function replicationView(replica: ReturnType<System>['replica']) {
  if (!replica) return null
  const { role, ack, place, lagMilliseconds, storedAt, snapshotAt, failure } = replica
  return {
    role,
    ack,
    standby_allowed: replica.isStandbyAllowed,
    epoch: place?.epoch ?? null,
    position: place?.position ?? null,
    lag_seconds: Math.round(lagMilliseconds / 100) / 10,
    last_stored_at: timeOrNull(storedAt),
    last_snapshot_at: timeOrNull(snapshotAt),
    failures: replica.failures,
    last_failed_at: timeOrNull(failure?.at),
    last_error: failure?.reason ?? null,
  }
}
