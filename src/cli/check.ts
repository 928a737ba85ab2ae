import { type Config, type Environment, misspeltNames, readConfig } from '../config.ts'
import { createAuditTrail } from '../db/audit-trail.ts'
import { integrityProblem } from '../db/backup.ts'
import { migrations, versionOf } from '../db/migrations.ts'
import { type Connection, mustExist, openToInspect } from '../db/open.ts'
import { tryBucket } from '../files/s3.ts'
import { expiryWarning, readCertificate } from '../http/certificate.ts'
import { createOutbox } from '../jobs/outbox.ts'
import { isoTime, systemClock } from '../lib/clock.ts'
import { StartError } from '../lib/errors.ts'
import { freeBytesAt } from '../lib/free-space.ts'
import { createFactorStore } from '../modules/accounts/sign-in/factor-store.ts'
import { trySmtp } from '../outside/mail/smtp.ts'
import { tryServiceAccount } from '../outside/push/service-account.ts'
import { terminalLog } from './call.ts'
import { checkReplica, isStandbyMachine } from './check-replica.ts'
import { refuseArguments, type Terminal } from './terminal.ts'

const leastFreeBytes = 256 * 1_024 * 1_024

/** A problem fails the check, a warning does not. */
export type Finding = {
  subject: string
  problem?: string | undefined
  warning?: string | undefined
  detail?: string
}

/** `hostline check`: tests whether each part is ready for service; exit code 1 if one is not. */
export async function check(args: string[], terminal: Terminal): Promise<void> {
  refuseArguments(args)
  const config = readConfig(terminal.environment, terminal.isInteractive)
  const replica = await checkReplica(config, terminalLog(terminal))
  const findings = [
    checkConfiguration(config, terminal.environment),
    checkTls(config),
    await checkMail(config),
    await checkPush(config),
    await checkFiles(config),
    ...replica.findings,
    ...checkData(config, replica.hasSnapshot),
  ]
  for (const finding of findings) terminal.out(lineOf(finding))
  const failed = findings.filter(({ problem }) => problem !== undefined)
  if (failed.length > 0)
    throw new StartError(`${failed.length} of ${findings.length} checks failed`)
}

function lineOf({ subject, problem, warning, detail }: Finding): string {
  if (problem !== undefined) return `FAILED ${subject}: ${problem}`
  return warning === undefined ? `ok     ${subject}: ${detail}` : `warn   ${subject}: ${warning}`
}

function checkConfiguration({ publicUrl }: Config, environment: Environment): Finding {
  const unknown = misspeltNames(environment).map(({ name, meant }) => `${name} (${meant}?)`)
  const warning = unknown.length > 0 ? `unknown entries: ${unknown.join(', ')}` : undefined
  return { subject: 'configuration', detail: publicUrl, warning }
}

function checkTls({ tls }: Config): Finding {
  const subject = 'TLS'
  if (!tls) return { subject, detail: 'off' }
  try {
    const certificate = readCertificate(tls)
    const message = expiryWarning(certificate, Date.now())
    const hasExpired = certificate.endsAt <= Date.now()
    const detail = `${tls.cert}, until ${isoTime(certificate.endsAt)}`
    return { subject, detail, [hasExpired ? 'problem' : 'warning']: message }
  } catch (error) {
    return { subject, problem: (error as Error).message }
  }
}

async function checkMail({ smtpUrl }: Config): Promise<Finding> {
  if (smtpUrl === undefined) return { subject: 'mail', detail: 'off: mails are logged' }
  const reason = await trySmtp(smtpUrl)
  return { subject: 'mail', detail: new URL(smtpUrl).host, problem: reason }
}

async function checkPush({ fcm }: Config): Promise<Finding> {
  if (!fcm) return { subject: 'push to apps', detail: 'off: no FCM_SERVICE_ACCOUNT' }
  const { account } = fcm
  const reason = await tryServiceAccount(account, systemClock)
  return { subject: 'push to apps', detail: account.projectId, problem: reason }
}

async function checkFiles({ files: { bucket } }: Config): Promise<Finding> {
  const subject = 'files'
  if (!bucket) return { subject, detail: 'in the data directory' }
  const detail = `${new URL(bucket.endpoint).host}/${bucket.name}`
  return { subject, detail, problem: await tryBucket(bucket) }
}

function checkData(config: Config, hasSnapshot: boolean): Finding[] {
  const { dataDir: directory } = config
  try {
    mustExist(directory)
  } catch (error) {
    if (isStandbyMachine(config)) {
      return [checkDisk(config), { subject: 'database', detail: 'the copy of a standby' }]
    }
    return [{ subject: 'database', problem: (error as Error).message }]
  }
  return [checkDisk(config), ...checkDatabase(directory, hasSnapshot)]
}

function checkDisk({ dataDir: directory, minFreeBytes }: Config): Finding {
  const free = freeBytesAt(directory)
  const detail = `${Math.floor(free / 1_048_576)} MiB`
  const problem = free < Math.max(leastFreeBytes, minFreeBytes) ? `only ${detail} left` : undefined
  return { subject: 'free disk', detail, problem }
}

function checkDatabase(directory: string, hasSnapshot: boolean): Finding[] {
  let connection: Connection | undefined
  try {
    connection = openToInspect(directory)
    const version = versionOf(connection.sqlite)
    const isNewer = version > migrations.length
    return [
      {
        subject: 'database integrity',
        detail: 'whole',
        problem: integrityProblem(connection.sqlite),
      },
      {
        subject: 'database version',
        detail: String(version),
        problem: isNewer ? `${version} is newer than this executable` : undefined,
      },
      ...(version === migrations.length
        ? [checkOutbox(connection), checkBackup(connection, hasSnapshot), checkAdmins(connection)]
        : []),
    ]
  } catch (error) {
    return [{ subject: 'database', problem: (error as Error).message }]
  } finally {
    connection?.close()
  }
}

const dayMilliseconds = 86_400_000
const backupDays = 2

function checkBackup({ orm }: Connection, hasSnapshot: boolean): Finding {
  const subject = 'last backup'
  const at = createAuditTrail(orm, () => '', systemClock).findLatest('backup_made')?.at
  const days = at === undefined ? Infinity : Math.floor((Date.now() - at) / dayMilliseconds)
  const age = at === undefined ? 'none' : `${isoTime(at)}, ${days} days ago`
  if (days < backupDays) return { subject, detail: age }
  if (hasSnapshot) return { subject, detail: `${age}, but the bucket has a snapshot` }
  return { subject, warning: at === undefined ? 'none: run hostline backup every day' : age }
}

function checkAdmins({ orm }: Connection): Finding {
  const count = createFactorStore(orm).countAdminsWithout()
  const warning = `${count} without a second factor`
  return {
    subject: 'admins',
    detail: 'all with a second factor',
    warning: count > 0 ? warning : undefined,
  }
}

function checkOutbox({ orm }: Connection): Finding {
  const core = { orm, newId: () => '', clock: systemClock, afterCommit: () => {} }
  const { waiting, dead } = createOutbox(core).stats()
  return {
    subject: 'outbox',
    detail: `${waiting} waiting`,
    problem: dead > 0 ? `${dead} jobs were given up (see the log)` : undefined,
  }
}
