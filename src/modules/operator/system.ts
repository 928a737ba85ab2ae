import type { Config } from '../../config.ts'
import type { Core } from '../../core.ts'
import type { DeliveryState } from '../../outside/delivery-state.ts'
import type { ReplicaStats } from '../../replication/replication.ts'
import type { RequestHistory } from './request-history.ts'

const backupDueMilliseconds = 2 * 86_400_000
const replicaLagMilliseconds = 60_000

/** Live state of the parts of the process. */
export type Vitals = {
  version: string
  /** Milliseconds since the epoch. */
  startedAt: number
  storage: () => { databaseBytes: number; walBytes: number; freeBytes: number }
  history: RequestHistory
  mail: DeliveryState
  push: DeliveryState
  webhooks: () => { total: number; disabled: number; failing: number }
  /** Undefined without a bucket. */
  replica: (() => ReplicaStats) | undefined
}

export type SystemParts = { vitals: Vitals; countAdminsWithoutTotp: () => number }

export type System = ReturnType<typeof createSystem>

/** The state of the whole service, for operators. */
export function createSystem(core: Core, { vitals, countAdminsWithoutTotp }: SystemParts) {
  const { config, hub, outbox, audit, clock } = core
  const { version, startedAt, storage, history, mail, push, webhooks } = vitals
  const isRecent = (time = Number.NEGATIVE_INFINITY) => clock.now() - time <= backupDueMilliseconds
  return () => {
    const lastBackupAt = audit.findLatest('backup_made')?.at
    const replica = vitals.replica?.()
    return {
      version,
      startedAt,
      now: clock.now(),
      storage: storage(),
      hub: hub.stats(),
      minutes: history.list(),
      outbox: outbox.countByKind(),
      mail: { isSetUp: config.smtpUrl !== undefined, ...mail.read() },
      push: { isSetUp: config.fcm !== undefined, ...push.read() },
      webhooks: webhooks(),
      replica: replicaOf(config, replica),
      lastBackupAt,
      warnings: warningsOf(config, {
        isBackedUp: isRecent(lastBackupAt) || isRecent(replica?.snapshotAt),
        isReplicaLate: (replica?.lagMilliseconds ?? 0) > replicaLagMilliseconds,
        isSnapshotMissing: replica !== undefined && !isRecent(replica.snapshotAt),
        isTotpMissing: countAdminsWithoutTotp() > 0,
      }),
    }
  }
}

function replicaOf({ replica: settings }: Config, stats: ReplicaStats | undefined) {
  return settings && stats && { ...stats, ack: settings.ack, isStandbyAllowed: settings.pair }
}

type State = {
  isBackedUp: boolean
  isReplicaLate: boolean
  isSnapshotMissing: boolean
  isTotpMissing: boolean
}

function warningsOf(config: Config, state: State) {
  const warnings = [
    {
      code: 'no_smtp',
      holds: config.smtpUrl === undefined,
      message: 'Mails are written to the log instead of being sent: set SMTP_URL.',
    },
    {
      code: 'public_url_http',
      holds: !config.publicUrl.startsWith('https:'),
      message: 'PUBLIC_URL is not https: passwords and tokens can be read in transit.',
    },
    {
      code: 'no_admin_totp',
      holds: state.isTotpMissing,
      message: 'An admin logs in with only a password: see POST /v1/auth/totp and ADMIN_TOTP.',
    },
    {
      code: 'no_backup',
      holds: !state.isBackedUp,
      message: 'No backup was made within two days: run hostline backup every day.',
    },
    {
      code: 'replica_lag',
      holds: state.isReplicaLate,
      message:
        'The bucket lacks changes that are older than a minute: see the log for failed requests.',
    },
    {
      code: 'replica_no_snapshot',
      holds: state.isSnapshotMissing,
      message: 'No snapshot has reached the bucket within two days, so a restore takes longer.',
    },
  ]
  return warnings.filter(({ holds }) => holds).map(({ code, message }) => ({ code, message }))
}
