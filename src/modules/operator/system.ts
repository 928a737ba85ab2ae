import type { Config } from '../../config.ts'
import type { Core } from '../../core.ts'
import type { AuditTrail } from '../../db/audit-trail.ts'
import { day, isoTime, minute, timeOrNull } from '../../lib/clock.ts'
import { deliveryChannels } from '../../lib/vocabulary.ts'
import type { DeliveryState } from '../../outside/delivery-state.ts'
import type { ReplicaStats } from '../../replication/replication.ts'
import type { SystemState } from './model.ts'
import type { RequestHistory } from './request-history.ts'

const backupDueMilliseconds = 2 * day
const replicaLagMilliseconds = minute

export type Vitals = {
  version: string
  startedAt: number
  storage: () => { databaseBytes: number; walBytes: number; freeBytes: number }
  history: RequestHistory
  mail: DeliveryState
  push: DeliveryState
  webhooks: () => SystemState['webhooks'] & { givenUp: number; dropping: string | undefined }
  /** Undefined without a bucket. */
  replica: (() => ReplicaStats) | undefined
}

export type SystemParts = { vitals: Vitals; countAdminsWithoutTotp: () => number }

export type System = ReturnType<typeof createSystem>

export function createSystem(core: Core, { vitals, countAdminsWithoutTotp }: SystemParts) {
  const { config, hub, outbox, deliveries, audit, clock } = core
  const isRecent = (time = Number.NEGATIVE_INFINITY) => clock.now() - time <= backupDueMilliseconds

  return (): SystemState => {
    const lastBackupAt = audit.findLatest('backup_made')?.at
    const replica = vitals.replica?.()
    const jobs = outbox.countByKind()
    const { givenUp, dropping, ...webhooks } = vitals.webhooks()
    const refusedOrigin = findRefusedOrigin(audit, config)
    const [mailFailure, pushFailure] = deliveryChannels.map(deliveries.findFailure)
    const { databaseBytes, walBytes, freeBytes } = vitals.storage()
    const { sockets, users } = hub.stats()
    const warnings = {
      no_smtp:
        config.smtpUrl === undefined &&
        'Mails are written to the log instead of being sent: set SMTP_URL.',
      public_url_http:
        !config.publicUrl.startsWith('https:') &&
        'PUBLIC_URL is not https: passwords and tokens can be read in transit.',
      no_admin_totp:
        countAdminsWithoutTotp() > 0 &&
        'An admin logs in with only a password: see POST /v1/auth/totp and ADMIN_TOTP.',
      mail_failing: mailFailure !== undefined && `Mails fail and are tried again: ${mailFailure}`,
      push_failing: pushFailure !== undefined && `Pushes fail: ${pushFailure}`,
      origin_refused:
        refusedOrigin !== undefined &&
        `A page of ${refusedOrigin} was refused: name that origin in CORS_ORIGINS if it is yours.`,
      dead_jobs:
        jobs.some(({ state }) => state === 'dead') &&
        'Jobs failed until they were given up: see GET /v1/admin/jobs?state=dead.',
      webhooks_failing:
        webhooks.failing + givenUp > 0 &&
        'Nothing reaches a webhook, or it was switched off after it had failed for days.',
      webhook_events_dropped:
        dropping !== undefined &&
        `More than 100,000 events wait for ${dropping}: the oldest are dropped.`,
      no_backup:
        !isRecent(lastBackupAt) &&
        !isRecent(replica?.snapshotAt) &&
        'No backup was made within two days: run hostline backup every day.',
      ...(replica && replicaWarnings(replica, isRecent(replica.snapshotAt))),
    }
    return {
      version: vitals.version,
      started_at: isoTime(vitals.startedAt),
      uptime_seconds: Math.floor((clock.now() - vitals.startedAt) / 1_000),
      database_bytes: databaseBytes,
      wal_bytes: walBytes,
      free_disk_bytes: freeBytes,
      sockets,
      socket_users: users,
      last_hour: vitals.history.list().map(({ at, p50, p99, ...minute }) => ({
        at: isoTime(at),
        ...minute,
        p50_ms: p50,
        p99_ms: p99,
      })),
      outbox: jobs,
      mail: deliveriesView(config.smtpUrl !== undefined, vitals.mail),
      push: deliveriesView(config.fcm !== undefined, vitals.push),
      webhooks,
      replication: replicationView(config, replica),
      last_backup_at: timeOrNull(lastBackupAt),
      warnings: Object.entries(warnings).flatMap(([code, message]) =>
        message ? [{ code, message }] : [],
      ),
    }
  }
}

const replicaWarnings = (replica: ReplicaStats, hasRecentSnapshot: boolean) => ({
  replica_lag:
    replica.lagMilliseconds > replicaLagMilliseconds &&
    'The bucket lacks changes that are older than a minute: see the log for failed requests.',
  replica_unrestorable:
    !replica.isRestorable &&
    'Nothing can be restored from the bucket until the snapshot is there that is being taken.',
  replica_drill_failed:
    replica.drillFailure !== undefined &&
    `The bucket could not be restored for a try: ${replica.drillFailure}`,
  replica_no_snapshot:
    replica.isRestorable &&
    !hasRecentSnapshot &&
    'No snapshot has reached the bucket within two days, so a restore takes longer.',
})

function deliveriesView(configured: boolean, state: DeliveryState) {
  const { sentAt, failure } = state.read()
  return { configured, last_sent_at: timeOrNull(sentAt), ...failureView(failure) }
}

const failureView = (failure: { at: number; reason: string } | undefined) => ({
  last_failed_at: timeOrNull(failure?.at),
  last_error: failure?.reason ?? null,
})

function replicationView({ replica: settings }: Config, stats: ReplicaStats | undefined) {
  if (!settings || !stats) return null
  const { role, place, agreed, lagMilliseconds, failures } = stats
  return {
    role,
    ack: settings.ack,
    standby_allowed: agreed?.pair ?? settings.pair,
    epoch: place?.epoch ?? null,
    position: place?.position ?? null,
    lag_seconds: Math.round(lagMilliseconds / 100) / 10,
    last_stored_at: timeOrNull(stats.storedAt),
    last_snapshot_at: timeOrNull(stats.snapshotAt),
    failures,
    ...failureView(stats.failure),
  }
}

/** For `hostline check` and the console. */
export function noteRefusedOrigin({ log, write, audit }: Core, origin: string): void {
  const details = { origin: origin.slice(0, 200) }
  log.warn('a page of an origin that CORS_ORIGINS does not name was refused', details)
  // Not awaited: the log has it if this fails.
  write(() => audit.record({ action: 'origin_refused', actor: { type: 'system' }, details })).catch(
    () => {},
  )
}

/** Finds one that was refused within a day and is not allowed since. */
export function findRefusedOrigin(audit: AuditTrail, { corsOrigins }: Pick<Config, 'corsOrigins'>) {
  const origin = audit.findRecentDetails('origin_refused')?.['origin']
  return origin !== undefined && corsOrigins.includes(origin) ? undefined : origin
}
