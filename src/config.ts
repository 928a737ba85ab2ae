import { isAbsolute, resolve } from 'node:path'
import * as read from './config-values.ts'
import { requestLogModes } from './http/request-log.ts'
import { StartError } from './lib/errors.ts'
import { logLevels } from './lib/log.ts'
import type { Bucket } from './outside/bucket.ts'
import { publicPushServices } from './outside/push/subscription.ts'

const megabyte = 1_000_000

/** An entry that has a default. `parse` throws a reason that completes "NAME must …". */
const entry = <T>(fallback: string, parse: (text: string) => T, doc: string) => ({
  fallback,
  parse,
  doc,
  shown: fallback || '–',
  isSecret: false,
})

/** An entry that may be absent; `shown` documents its default. */
const optional = <T>(parse: (text: string) => T, doc: string, shown = '–') => ({
  fallback: '',
  parse: (text: string) => (text === '' ? undefined : parse(text)),
  doc,
  shown,
  isSecret: false,
})

/** Entries that may contain a password or a key, even by mistake; their value is never shown. */
const secretEntry = <T>(...one: Parameters<typeof entry<T>>) => ({
  ...entry(...one),
  isSecret: true,
})
const secret = <T>(...one: Parameters<typeof optional<T>>) => ({
  ...optional(...one),
  isSecret: true,
})

/** Every entry of the configuration. A test compares them with the table in the README. */
export const entries = {
  PORT: entry('3000', read.wholeNumber(0, 65_535), 'Port to listen on; 0 picks a free one.'),
  HOST: entry('0.0.0.0', read.nonEmpty, 'Address to listen on.'),
  PUBLIC_URL: secret(
    read.publicUrl,
    'URL of the service for clients and in links; its host name is the issuer of tokens.',
    'http://localhost:PORT',
  ),
  DATA_DIR: entry(
    './data',
    (text) => (isAbsolute(text) ? text : resolve(read.nonEmpty(text))),
    'Directory of all persistent data.',
  ),
  SMTP_URL: secret(
    read.smtpUrl,
    'Mail server: `smtp://user:password@host:587` (STARTTLS) or `smtps://…`; without it, mails are written to the log.',
  ),
  SMTP_INSECURE: entry(
    'false',
    read.trueOrFalse,
    'Whether mails and the password may be sent to a mail server without TLS; one on this machine needs no TLS.',
  ),
  MAIL_FROM: optional(
    read.sender,
    'Sender of mails, such as `noreply@example.com`; its name is the setting `platform_name`.',
    'noreply@ the host of `PUBLIC_URL`',
  ),
  TRUSTED_PROXIES: entry(
    '',
    read.list(read.network),
    'CIDR blocks or addresses of proxies whose `X-Forwarded-For` is trusted, comma-separated.',
  ),
  CORS_ORIGINS: secretEntry(
    '',
    read.list(read.origin),
    'Exact origins of web pages that may call the API, comma-separated; if set, only they may open sockets.',
  ),
  TLS_CERT: secret(
    read.pemFile,
    'Certificate chain (PEM file) to serve https and wss without a proxy; with `TLS_KEY`.',
  ),
  TLS_KEY: secret(read.pemFile, 'Private key (PEM file) of `TLS_CERT`.'),
  METRICS_TOKEN: secret(
    read.nonEmpty,
    'Bearer token of `/metrics`; without it, only this machine may read them.',
  ),
  RATE_LIMIT_LOGIN: entry(
    '5/15m',
    read.rateLimit,
    'Logins per address: `N/window` (s, m, h) or `off`.',
  ),
  RATE_LIMIT_REGISTER: entry(
    '3/1h',
    read.rateLimit,
    'Registrations per address; `REGISTRATION=off` closes registration.',
  ),
  RATE_LIMIT_USER: entry('100/1m', read.rateLimit, 'Requests per user.'),
  RATE_LIMIT_ANONYMOUS: entry(
    '30/1m',
    read.rateLimit,
    'Requests without a valid token per address.',
  ),
  RATE_LIMIT_SERVICE: entry('6000/1m', read.rateLimit, 'Requests per service key.'),
  RATE_LIMIT_FRAMES: entry(
    '10/1s',
    read.rateLimit,
    'Frames of one socket; bursts may be three times as large.',
  ),
  REGISTRATION: entry(
    'open',
    read.oneOf(['open', 'off']),
    'Whether people may register themselves: `open` or `off`.',
  ),
  CHAT_REQUIRE_ACTIVE_CALL: entry(
    'false',
    read.trueOrFalse,
    'Whether two people may chat only during a call; broadcasts and admins are exempt.',
  ),
  FCM_SERVICE_ACCOUNT: secret(
    read.serviceAccount,
    'Push to apps: the JSON key file of a Firebase service account, as plain text, in base64, or its path.',
  ),
  FCM_URL: secretEntry(
    'https://fcm.googleapis.com',
    read.baseUrl,
    'Base address of FCM, before `/v1/projects/…`.',
  ),
  WEB_PUSH_HOSTS: entry(
    publicPushServices.join(','),
    read.list(read.hostSuffix),
    'Hosts of browsers’ push services, each including its subdomains, comma-separated.',
  ),
  FILES_MAX_MB: entry(
    '25',
    read.wholeNumber(1, 10_000),
    'Largest accepted file, in MB (1,000,000 bytes).',
  ),
  FILES_QUOTA_MB: entry(
    '500',
    read.wholeNumber(0, 100_000_000),
    'Storage for the files of one user, in MB; each file counts at least 16 KiB.',
  ),
  MIN_FREE_MB: entry(
    '1000',
    read.wholeNumber(0, 1_000_000_000),
    'Disk space that must stay free, in MB; with less, uploads and backups are refused; 0 is off.',
  ),
  FILES_S3_URL: secret(
    read.bucket,
    'Bucket of an S3-compatible store for files: `s3://KEY:SECRET@HOST[:PORT]/BUCKET[/PREFIX][?region=…&tls=off]`.',
    '`files/` in the bucket of `REPLICA_S3_URL`, else in `DATA_DIR`',
  ),
  BACKUP_S3_URL: secret(
    read.bucket,
    'Bucket that gets a copy of each dated backup (`hostline backup DIR`), in the form of `FILES_S3_URL`.',
  ),
  REPLICA_S3_URL: secret(
    read.bucket,
    'Bucket to which the database is replicated, in the form of `FILES_S3_URL`.',
  ),
  REPLICA_ACK: entry(
    'disk',
    read.oneOf(['disk', 'bucket']),
    'When a write is acknowledged: `disk` (the bucket gets it within a second) or `bucket` (the bucket has it).',
  ),
  REPLICA_PUTS: entry(
    '10',
    read.wholeNumber(1, 1_000),
    'Maximum number of objects per second with `REPLICA_ACK=bucket`; each is a request that costs money.',
  ),
  REPLICA_PAIR: entry(
    'false',
    read.trueOrFalse,
    'Whether a new log lets a standby take over; `replica init --pair` changes it.',
  ),
  REPLICA_LEASE: entry(
    '10',
    read.wholeNumber(1, 300),
    'Seconds without an entry of the leader until a standby takes over, in a new log; `replica init --lease` changes it.',
  ),
  REPLICA_KEEP: entry(
    '7',
    read.wholeNumber(1, 3_650),
    'Days for which any moment can be restored from the bucket.',
  ),
  REPLICA_DRILL: entry(
    'on',
    read.oneOf(['on', 'off']),
    'Whether the leader restores the bucket each week for a try, into a temporary directory in `DATA_DIR`.',
  ),
  WEBHOOK_PRIVATE: entry(
    'false',
    read.trueOrFalse,
    'Whether webhooks may use http and private addresses.',
  ),
  SUPPORT_REOPEN_DAYS: entry(
    '14',
    read.wholeNumber(0, 3_650),
    'Days for which an answer of its owner reopens a closed ticket; 0 is never.',
  ),
  SUPPORT_AUTOCLOSE_DAYS: entry(
    '7',
    read.wholeNumber(0, 3_650),
    'Days without a message until a resolved ticket is closed; 0 is never.',
  ),
  SUPPORT_INBOX: optional(
    read.emailAddress,
    'E-mail address for messages to unassigned tickets, with at most one mail in ten minutes.',
  ),
  DEMO: optional(
    read.trueOrFalse,
    'Whether the demo is served at `/demo`, and may invent 60 pairs of people an hour, each for a day.',
    '`true` unless `PUBLIC_URL` is https',
  ),
  ADMIN_TOTP: entry(
    'optional',
    read.oneOf(['optional', 'required']),
    'Whether admins need a second factor: `required` or `optional`.',
  ),
  AUDIT_DAYS: entry('365', read.wholeNumber(30, 36_500), 'Days for which the audit log is kept.'),
  LOG_REQUESTS: entry(
    'errors',
    read.oneOf(requestLogModes),
    'Which requests are logged: `errors` (refused or failed), `all`, `off`.',
  ),
  LOG_ADDRESSES: entry(
    'on',
    read.oneOf(['on', 'off']),
    'Whether a logged request shows the address of its client: `on` or `off`.',
  ),
  LOG_LEVEL: entry(
    'info',
    read.oneOf(logLevels),
    'Lowest level that is logged: debug, info, warn, error.',
  ),
  LOG_FORMAT: optional(
    read.oneOf(['pretty', 'json']),
    'Format of the log: pretty or json.',
    '`pretty` on a terminal, else `json`',
  ),
}

type Values = { [K in keyof typeof entries]: ReturnType<(typeof entries)[K]['parse']> }
export type Environment = Record<string, string | undefined>

export type Config = ReturnType<typeof configOf>

/** Reads the configuration; an empty value counts as absent.
 *  @throws StartError with one line per mistake */
export function readConfig(environment: Environment, isTerminal: boolean): Config {
  const mistakes: string[] = []
  const values: Record<string, unknown> = {}
  for (const [name, { fallback, parse, isSecret }] of Object.entries(entries)) {
    const text = environment[name] || fallback
    try {
      values[name] = parse(text)
    } catch (error) {
      mistakes.push(`${name} must ${(error as Error).message}${isSecret ? '' : `, not "${text}"`}`)
    }
  }
  if (Boolean(environment['TLS_CERT']) !== Boolean(environment['TLS_KEY'])) {
    mistakes.push('TLS_CERT and TLS_KEY must be set together')
  }
  if (values['REPLICA_ACK'] === 'bucket' && !environment['REPLICA_S3_URL']) {
    mistakes.push('REPLICA_ACK=bucket needs REPLICA_S3_URL')
  }
  if (mistakes.length > 0) throw new StartError(mistakes.join('\n'))
  return configOf(values as Values, isTerminal) // each value comes from the parser of its entry
}

/** Finds environment variables that look like misspelt entries, each with the probably intended entry. Two names match if
 *  they have the same letters (`SMPT_URL`), differ in one (`REPLCA_S3_URL`), or share more than the first word at the start
 *  (`FILES_MAX`). */
export function misspeltNames(environment: Environment): { name: string; meant: string }[] {
  const known = Object.keys(entries).map(spellingOf)
  const strange = Object.keys(environment).filter((name) => !Object.hasOwn(entries, name))
  return strange.map(spellingOf).flatMap((spelling) => {
    const { name, letters, sorted } = spelling
    const twisted = known.find((entry) => entry.sorted === sorted || isNear(entry, spelling))
    if (twisted) return [{ name, meant: twisted.name }]
    const shared = known.map((entry) => sharedLength(letters, entry.letters))
    const most = Math.max(...shared)
    const meant = known[shared.indexOf(most)]?.name ?? ''
    const [firstWord = ''] = meant.split('_')
    return most >= firstWord.length + sharedBeyondWord ? [{ name, meant }] : []
  })
}

// Letters after the first word: other programs use words such as LOG_ and MAIL_ too.
const sharedBeyondWord = 2

function spellingOf(name: string) {
  const letters = name.toUpperCase().replace(/[^A-Z]/g, '')
  const sorted = [...letters].sort().join('')
  return { name, letters, sorted, reversed: [...letters].reverse().join('') }
}
type Spelling = ReturnType<typeof spellingOf>

/** Whether a letter is missing, superfluous or wrong. Names of one word, such as `HOST`, resemble too many others. */
function isNear(entry: Spelling, given: Spelling): boolean {
  const atTheStart = sharedLength(entry.letters, given.letters)
  const atTheEnd = sharedLength(entry.reversed, given.reversed)
  const longer = Math.max(entry.letters.length, given.letters.length)
  return entry.name.includes('_') && atTheStart + atTheEnd >= longer - 1
}

function sharedLength(a: string, b: string): number {
  let length = 0
  while (length < a.length && a[length] === b[length]) length++
  return length
}

function configOf(values: Values, isTerminal: boolean) {
  const { TLS_CERT: cert, TLS_KEY: key, FCM_SERVICE_ACCOUNT: account, SMTP_URL } = values
  const publicUrl = values.PUBLIC_URL ?? `http://localhost:${values.PORT}`
  const { hostname } = new URL(publicUrl)
  return Object.freeze({
    port: values.PORT,
    host: values.HOST,
    /** Without a trailing slash. */
    publicUrl,
    /** The host name of the public URL, without port; the issuer of access tokens. */
    issuer: hostname,
    dataDir: values.DATA_DIR,
    smtpUrl: SMTP_URL && (values.SMTP_INSECURE ? SMTP_URL : read.requiringTls(SMTP_URL)),
    mailFrom: values.MAIL_FROM ?? `noreply@${hostname}`,
    trustedProxies: values.TRUSTED_PROXIES,
    corsOrigins: values.CORS_ORIGINS,
    metricsToken: values.METRICS_TOKEN,
    tls: cert !== undefined && key !== undefined ? { cert, key } : undefined,
    limits: Object.freeze({
      login: values.RATE_LIMIT_LOGIN,
      register: values.RATE_LIMIT_REGISTER,
      user: values.RATE_LIMIT_USER,
      anonymous: values.RATE_LIMIT_ANONYMOUS,
      service: values.RATE_LIMIT_SERVICE,
      frames: values.RATE_LIMIT_FRAMES,
    }),
    registration: values.REGISTRATION,
    chatRequiresActiveCall: values.CHAT_REQUIRE_ACTIVE_CALL,
    fcm: account && { account, baseUrl: values.FCM_URL },
    webPushHosts: values.WEB_PUSH_HOSTS,
    webhookPrivate: values.WEBHOOK_PRIVATE,
    support: Object.freeze({
      reopenDays: values.SUPPORT_REOPEN_DAYS,
      autocloseDays: values.SUPPORT_AUTOCLOSE_DAYS,
      inbox: values.SUPPORT_INBOX,
    }),
    minFreeBytes: values.MIN_FREE_MB * megabyte,
    files: Object.freeze({
      maxBytes: values.FILES_MAX_MB * megabyte,
      quotaBytes: values.FILES_QUOTA_MB * megabyte,
      /** Undefined for the data directory. */
      bucket: values.FILES_S3_URL ?? filesWithin(values.REPLICA_S3_URL),
    }),
    backupBucket: values.BACKUP_S3_URL,
    /** Undefined without a bucket to replicate to. */
    replica: values.REPLICA_S3_URL && {
      bucket: values.REPLICA_S3_URL,
      ack: values.REPLICA_ACK,
      pair: values.REPLICA_PAIR,
      putsPerSecond: values.REPLICA_PUTS,
      leaseMilliseconds: values.REPLICA_LEASE * 1_000,
      keepMilliseconds: values.REPLICA_KEEP * 86_400_000,
      hasDrill: values.REPLICA_DRILL === 'on',
    },
    demo: values.DEMO ?? !publicUrl.startsWith('https:'),
    adminTotp: values.ADMIN_TOTP,
    auditDays: values.AUDIT_DAYS,
    requestLog: { mode: values.LOG_REQUESTS, hasAddresses: values.LOG_ADDRESSES === 'on' },
    logLevel: values.LOG_LEVEL,
    logFormat: values.LOG_FORMAT ?? (isTerminal ? 'pretty' : 'json'),
  })
}

/** The files of people are kept beside the log. */
function filesWithin(bucket: Bucket | undefined): Bucket | undefined {
  return bucket && { ...bucket, prefix: `${bucket.prefix}/files`.replace(/^\//, '') }
}
