import type { Config } from '../../config.ts'
import type { Core } from '../../core.ts'
import { day } from '../../lib/clock.ts'
import { deliveryChannels } from '../../lib/vocabulary.ts'
import type { DeliveryState } from '../../outside/delivery-state.ts'
import type { ReplicaStats } from '../../replication/replication.ts'
import { findRefusedOrigin } from './refused-origins.ts'
import type { RequestHistory } from './request-history.ts'

const backupDueMilliseconds = 2 * day
const replicaLagMilliseconds = 60_000

export type Vitals = {
  version: string
  startedAt: number
  storage: () => { databaseBytes: number; walBytes: number; freeBytes: number }
  history: RequestHistory
  mail: DeliveryState
  push: DeliveryState
  webhooks: () => {
    total: number
    disabled: number
    failing: number
    givenUp: number
    dropped: number
    dropping: string | undefined
  }
  /** Undefined without a bucket. */
  replica: (() => ReplicaStats) | undefined
}

export type SystemParts = { vitals: Vitals; countAdminsWithoutTotp: () => number }

export type System = ReturnType<typeof createSystem>

export function createSystem(core: Core, { vitals, countAdminsWithoutTotp }: SystemParts) {
  const { config, hub, outbox, deliveries, audit, clock } = core
  const { version, startedAt, storage, history, mail, push, webhooks } = vitals
  const isRecent = (time = Number.NEGATIVE_INFINITY) => clock.now() - time <= backupDueMilliseconds

  return () => {
    const lastBackupAt = audit.findLatest('backup_made')?.at
    const replica = vitals.replica?.()
    const jobs = outbox.countByKind()
    const { givenUp, dropping, ...webhookCounts } = webhooks()
    const refusedOrigin = findRefusedOrigin(audit, config)
    const [mailFailure, pushFailure] = deliveryChannels.map(deliveries.findFailure)
    const warnings: Warning[] = [
      [
        'no_smtp',
        config.smtpUrl === undefined,
        'Mails are written to the log instead of being sent: set SMTP_URL.',
      ],
      [
        'public_url_http',
        !config.publicUrl.startsWith('https:'),
        'PUBLIC_URL is not https: passwords and tokens can be read in transit.',
      ],
      [
        'no_admin_totp',
        countAdminsWithoutTotp() > 0,
        'An admin logs in with only a password: see POST /v1/auth/totp and ADMIN_TOTP.',
      ],
      ['mail_failing', mailFailure !== undefined, `Mails fail and are tried again: ${mailFailure}`],
      ['push_failing', pushFailure !== undefined, `Pushes fail: ${pushFailure}`],
      [
        'origin_refused',
        refusedOrigin !== undefined,
        `A page of ${refusedOrigin} was refused: name that origin in CORS_ORIGINS if it is yours.`,
      ],
      [
        'dead_jobs',
        jobs.some(({ state }) => state === 'dead'),
        'Jobs failed until they were given up: see GET /v1/admin/jobs?state=dead.',
      ],
      [
        'webhooks_failing',
        webhookCounts.failing + givenUp > 0,
        'Nothing reaches a webhook, or it was switched off after it had failed for days.',
      ],
      [
        'webhook_events_dropped',
        dropping !== undefined,
        `More than 100,000 events wait for ${dropping}: the oldest are dropped.`,
      ],
      [
        'no_backup',
        !isRecent(lastBackupAt) && !isRecent(replica?.snapshotAt),
        'No backup was made within two days: run hostline backup every day.',
      ],
      ...(replica ? replicaWarnings(replica, isRecent(replica.snapshotAt)) : []),
    ]
    return {
      version,
      startedAt,
      now: clock.now(),
      storage: storage(),
      hub: hub.stats(),
      minutes: history.list(),
      outbox: jobs,
      mail: { isSetUp: config.smtpUrl !== undefined, ...mail.read() },
      push: { isSetUp: config.fcm !== undefined, ...push.read() },
      webhooks: webhookCounts,
      replica: replicaOf(config, replica),
      lastBackupAt,
      warnings: warnings.flatMap(([code, holds, message]) => (holds ? [{ code, message }] : [])),
    }
  }
}

type Warning = [code: string, holds: boolean, message: string]

function replicaWarnings(replica: ReplicaStats, hasRecentSnapshot: boolean): Warning[] {
  const { lagMilliseconds, isRestorable, drillFailure } = replica
  return [
    [
      'replica_lag',
      lagMilliseconds > replicaLagMilliseconds,
      'The bucket lacks changes that are older than a minute: see the log for failed requests.',
    ],
    [
      'replica_unrestorable',
      !isRestorable,
      'Nothing can be restored from the bucket until the snapshot is there that is being taken.',
    ],
    [
      'replica_drill_failed',
      drillFailure !== undefined,
      `The bucket could not be restored for a try: ${drillFailure}`,
    ],
    [
      'replica_no_snapshot',
      isRestorable && !hasRecentSnapshot,
      'No snapshot has reached the bucket within two days, so a restore takes longer.',
    ],
  ]
}

function replicaOf({ replica: settings }: Config, stats: ReplicaStats | undefined) {
  const isStandbyAllowed = stats?.agreed?.pair ?? settings?.pair ?? false
  return settings && stats && { ...stats, ack: settings.ack, isStandbyAllowed }
}
