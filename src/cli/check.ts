import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, type Environment, misspeltNames, readConfig } from '../config.ts'
import { type AuditTrail, createAuditTrail } from '../db/audit-trail.ts'
import { integrityProblem } from '../db/backup.ts'
import { knownVersion, migrations, mustBeServable } from '../db/migrations.ts'
import { type Connection, isInUse, mustExist, openToInspect, replicaCopyFile } from '../db/open.ts'
import { tryBucket } from '../files/s3.ts'
import { expiryWarning, readCertificate } from '../http/certificate.ts'
import { createDeliveryStore } from '../jobs/delivery-store.ts'
import { createOutbox } from '../jobs/outbox.ts'
import { day, isoTime, systemClock } from '../lib/clock.ts'
import { failureMessage, StartError } from '../lib/errors.ts'
import { freeBytesAt } from '../lib/free-space.ts'
import type { Log } from '../lib/log.ts'
import { deliveryChannels } from '../lib/vocabulary.ts'
import { createFactorStore } from '../modules/accounts/sign-in/factor-store.ts'
import { createAccountStore } from '../modules/accounts/store.ts'
import { findRefusedOrigin } from '../modules/operator/system.ts'
import { createWebhookStore } from '../modules/webhooks/store.ts'
import { type Bucket, bucketText } from '../outside/bucket.ts'
import { trySmtp } from '../outside/mail/smtp.ts'
import { tryServiceAccount } from '../outside/push/service-account.ts'
import { findRange } from '../replication/follower.ts'
import { differenceOf, type Head, type Node, openNode } from '../replication/node.ts'
import { roleOf } from '../replication/replication.ts'
import { terminalLog } from './call.ts'
import { readJsonOption, type Terminal } from './terminal.ts'

const snapshotSubject = 'last snapshot'
const leastFreeBytes = 256 * 1_024 * 1_024
/** The difference of clocks that access tokens survive. */
const toleratedMilliseconds = 5_000

/** A problem fails the check, a warning does not. */
type Finding = {
  subject: string
  problem?: string | undefined
  warning?: string | undefined
  detail?: string
}

export async function check(args: string[], terminal: Terminal): Promise<void> {
  const isJson = readJsonOption(args)
  const config = readConfig(terminal.environment, terminal.isInteractive)
  const { files, backupBucket } = config
  const replica = await checkReplica(config, terminalLog(terminal))
  const hasSnapshot = replica.some(
    ({ subject, problem, warning }) => subject === snapshotSubject && !problem && !warning,
  )
  const findings = [
    checkConfiguration(config, terminal.environment),
    checkTls(config),
    await checkMail(config),
    await checkPush(config),
    files.bucket
      ? await checkBucket('files', files.bucket)
      : { subject: 'files', detail: 'in the data directory' },
    ...(backupBucket ? [await checkBucket('bucket for backups', backupBucket)] : []),
    ...replica,
    ...checkData(config, hasSnapshot),
  ]
  if (isJson) terminal.out(JSON.stringify(findings.map(reportOf), null, 2))
  else for (const finding of findings) terminal.out(lineOf(finding))
  const failed = findings.filter(({ problem }) => problem !== undefined)
  if (failed.length > 0)
    throw new StartError(`${failed.length} of ${findings.length} checks failed`)
}

function reportOf({ subject, problem, warning, detail = '' }: Finding) {
  if (problem !== undefined) return { subject, state: 'failed', message: problem }
  return { subject, state: warning === undefined ? 'ok' : 'warning', message: warning ?? detail }
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

async function checkMail({ smtpUrl, publicUrl }: Config): Promise<Finding> {
  const subject = 'mail'
  if (smtpUrl === undefined) {
    // The log then lacks the tokens of links.
    const isPublic = publicUrl.startsWith('https:')
    const warning = isPublic ? 'off: nobody gets a link without SMTP_URL' : undefined
    return { subject, detail: 'off: mails are logged', warning }
  }
  return { subject, detail: new URL(smtpUrl).host, problem: await failureMessage(trySmtp(smtpUrl)) }
}

async function checkPush({ fcm }: Config): Promise<Finding> {
  const subject = 'push to apps'
  if (!fcm) return { subject, detail: 'off: no FCM_SERVICE_ACCOUNT' }
  const problem = await failureMessage(tryServiceAccount(fcm.account, systemClock))
  return { subject, detail: fcm.account.projectId, problem }
}

async function checkBucket(subject: string, bucket: Bucket): Promise<Finding> {
  return { subject, detail: bucketText(bucket), problem: await failureMessage(tryBucket(bucket)) }
}

async function checkReplica({ replica, dataDir }: Config, log: Log): Promise<Finding[]> {
  const subject = 'replication'
  if (!replica) return [{ subject, detail: 'off' }]
  try {
    const node = openNode(dataDir, replica, log)
    const bucket = await checkReplicaBucket(node)
    const head = await node.findHead()
    if (!head) {
      const wasThere = node.identity.readNote() ?? node.identity.get().place
      const problem = 'the log is gone from the bucket: nothing can be restored'
      const warning = 'there is no log yet: the start of the server makes it'
      return [bucket, { subject, ...(wasThere ? { problem } : { warning }) }]
    }
    const copy = !node.hasDatabase() && node.hasCopy() ? [checkCopy(node)] : []
    return [bucket, checkLog(node, head), await checkSnapshot(node, head), ...copy]
  } catch (error) {
    return [{ subject, problem: (error as Error).message }]
  }
}

async function checkReplicaBucket({ bucket, settings }: Node): Promise<Finding> {
  const subject = 'replication bucket'
  const detail = bucketText(settings.bucket)
  if (await bucket.hasConditionalWrites()) return { subject, detail }
  return { subject, problem: `${detail} does not support conditional writes (If-None-Match)` }
}

function checkLog(own: Node, head: Head): Finding {
  const { settings } = own
  const { node, kind, pair, lease, at } = head.entry
  const role = isInUse(own.dataDir) ? 'leader' : roleOf(own, head)
  if (role instanceof StartError) {
    return { subject: 'replication', problem: `the server will not start: ${role.message}` }
  }
  const did = kind === 'release' ? 'released the lead' : 'wrote the newest entry'
  const detail = `${node} ${did} at ${isoTime(at)}`
  const age = Date.now() - at
  const finding = (warning?: string) => ({ subject: 'replication', detail, warning })
  if (age < -toleratedMilliseconds) {
    return finding(`${detail}, which is still to come: the clock of one machine is wrong`)
  }
  if (pair && age > 2 * lease) return finding(`${detail}, and no standby has taken over`)
  return finding(differenceOf(settings, head.entry))
}

async function checkSnapshot(node: Node, head: Head): Promise<Finding> {
  const subject = snapshotSubject
  const range = await findRange(node, head)
  if (range?.missing !== undefined) {
    const problem = `${range.missing} is missing: only what was before it can be restored`
    return { subject, problem }
  }
  const at = range?.snapshots.at(-1)?.modifiedAt
  if (at === undefined) return { subject, problem: 'none: nothing can be restored' }
  const detail = isoTime(at)
  return { subject, detail, warning: Date.now() - at > 2 * day ? detail : undefined }
}

/** A standby that does not know the version of the database cannot take over. */
function checkCopy({ copyPath }: Node): Finding {
  const subject = 'copy of the standby'
  try {
    mustBeServable(copyPath)
    return { subject, detail: 'can take over' }
  } catch (error) {
    return { subject, problem: (error as Error).message }
  }
}

function checkData(config: Config, hasSnapshot: boolean): Finding[] {
  const { dataDir: directory } = config
  try {
    mustExist(directory)
  } catch (error) {
    if (config.replica && existsSync(join(directory, replicaCopyFile))) {
      return [checkDisk(config), { subject: 'database', detail: 'the copy of a standby' }]
    }
    return [{ subject: 'database', problem: (error as Error).message }]
  }
  return [checkDisk(config), ...checkDatabase(directory, config, hasSnapshot)]
}

function checkDisk({ dataDir: directory, minFreeBytes }: Config): Finding {
  const free = freeBytesAt(directory)
  const detail = `${Math.floor(free / 1_000_000)} MB`
  const problem = free < Math.max(leastFreeBytes, minFreeBytes) ? `only ${detail} left` : undefined
  return { subject: 'free disk', detail, problem }
}

function checkDatabase(directory: string, config: Config, hasSnapshot: boolean): Finding[] {
  try {
    using connection = openToInspect(directory)
    const audit = createAuditTrail(connection.orm, () => '', systemClock)
    const version = knownVersion(connection.sqlite, connection.path)
    const problem = integrityProblem(connection.sqlite)
    const whole = { subject: 'database integrity', detail: 'whole', problem }
    const subject = 'database version'
    if (version < migrations.length) {
      const detail = `${version}: the next start migrates it to ${migrations.length}`
      return [whole, { subject, detail }]
    }
    return [
      whole,
      { subject, detail: String(version) },
      checkOutbox(connection),
      ...checkDeliveries(connection),
      ...checkWebhooks(connection, audit),
      checkBackup(audit, hasSnapshot),
      checkAdmins(connection),
      checkOrigins(audit, config),
    ]
  } catch (error) {
    return [{ subject: 'database', problem: (error as Error).message }]
  }
}

const backupDays = 2

function checkBackup(audit: AuditTrail, hasSnapshot: boolean): Finding {
  const subject = 'last backup'
  const at = audit.findLatest('backup_made')?.at
  const days = at === undefined ? Infinity : Math.floor((Date.now() - at) / day)
  const age = at === undefined ? 'none' : `${isoTime(at)}, ${days} days ago`
  if (days < backupDays) return { subject, detail: age }
  if (hasSnapshot) return { subject, detail: `${age}, but the bucket has a snapshot` }
  return { subject, warning: at === undefined ? 'none: run hostline backup every day' : age }
}

function checkOrigins(audit: AuditTrail, config: Config): Finding {
  const origin = findRefusedOrigin(audit, config)
  const warning =
    origin && `a page of ${origin} was refused: name it in CORS_ORIGINS if it is yours`
  return { subject: 'origins', detail: 'none was refused within a day', warning }
}

function checkAdmins({ orm }: Connection): Finding {
  const subject = 'admins'
  const warning = 'none: open the link that the next start prints, or run hostline user create'
  if (!createAccountStore(orm).hasAdmin()) return { subject, warning }
  const count = createFactorStore(orm).countAdminsWithout()
  const lacking = count > 0 ? `${count} without a second factor` : undefined
  return { subject, detail: 'all with a second factor', warning: lacking }
}

function checkDeliveries({ orm }: Connection): Finding[] {
  const log = createDeliveryStore(orm, systemClock)
  return deliveryChannels.flatMap((channel) => {
    const answer = log.findFailure(channel)
    const warning = `fails, the last time with: ${answer}`
    return answer === undefined ? [] : [{ subject: `delivery by ${channel}`, warning }]
  })
}

function checkWebhooks({ orm }: Connection, audit: AuditTrail): Finding[] {
  const subject = 'webhooks'
  const host = audit.findRecentDetails('webhook_events_dropped')?.['host']
  const dropping = `too many events wait for ${host}, so the oldest are dropped`
  if (host !== undefined) return [{ subject, warning: dropping }]
  const all = createWebhookStore(orm).listAll()
  const failing = all.filter(({ failingSince }) => failingSince !== null).length
  const warning = `${failing} of ${all.length} get nothing (see hostline webhook list)`
  return failing > 0 ? [{ subject, warning }] : []
}

function checkOutbox({ orm }: Connection): Finding {
  const core = { orm, newId: () => '', clock: systemClock, afterCommit: () => {} }
  const { waiting, dead } = createOutbox(core).stats()
  const problem = dead > 0 ? `${dead} jobs were given up (see the log)` : undefined
  return { subject: 'outbox', detail: `${waiting} waiting`, problem }
}
