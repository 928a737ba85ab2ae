import { isAbsolute, resolve } from 'node:path'
import * as read from './config-values.ts'
import { requestLogModes } from './http/request-log.ts'
import { day } from './lib/clock.ts'
import { StartError } from './lib/errors.ts'
import { logLevels } from './lib/log.ts'
import type { Bucket } from './outside/bucket.ts'
import { publicPushServices } from './outside/push/subscription.ts'

const megabyte = 1_000_000

/** An entry that has a default. `parse` throws a reason that completes "NAME must …". */
const entry = <T>(fallback: string, parse: (text: string) => T) => ({
  fallback,
  parse,
  isSecret: false,
})

const optional = <T>(parse: (text: string) => T) =>
  entry('', (text) => (text === '' ? undefined : parse(text)))

/** Entries that may contain a password or a key, even by mistake; their value is never shown. */
const secretEntry = <T>(fallback: string, parse: (text: string) => T) => ({
  ...entry(fallback, parse),
  isSecret: true,
})
const secret = <T>(parse: (text: string) => T) => ({ ...optional(parse), isSecret: true })

/** Every entry of the configuration. The README says what each means; a test compares names, order and defaults. */
export const entries = {
  PORT: entry('3000', read.wholeNumber(0, 65_535)),
  HOST: entry('0.0.0.0', read.nonEmpty),
  PUBLIC_URL: secret(read.publicUrl),
  DATA_DIR: entry('./data', (text) => (isAbsolute(text) ? text : resolve(read.nonEmpty(text)))),
  SMTP_URL: secret(read.smtpUrl),
  SMTP_INSECURE: entry('false', read.trueOrFalse),
  MAIL_FROM: optional(read.sender),
  TRUSTED_PROXIES: entry('', read.list(read.network)),
  CORS_ORIGINS: secretEntry('', read.list(read.origin)),
  TLS_CERT: secret(read.pemFile),
  TLS_KEY: secret(read.pemFile),
  METRICS_TOKEN: secret(read.nonEmpty),
  RATE_LIMIT_LOGIN: entry('5/15m', read.rateLimit),
  RATE_LIMIT_REGISTER: entry('3/1h', read.rateLimit),
  RATE_LIMIT_USER: entry('100/1m', read.rateLimit),
  RATE_LIMIT_ANONYMOUS: entry('30/1m', read.rateLimit),
  RATE_LIMIT_SERVICE: entry('6000/1m', read.rateLimit),
  RATE_LIMIT_FRAMES: entry('10/1s', read.rateLimit),
  REGISTRATION: entry('open', read.oneOf(['open', 'off'])),
  CHAT_REQUIRE_ACTIVE_CALL: entry('false', read.trueOrFalse),
  FCM_SERVICE_ACCOUNT: secret(read.serviceAccount),
  FCM_URL: secretEntry('https://fcm.googleapis.com', read.baseUrl),
  WEB_PUSH_HOSTS: entry(publicPushServices.join(','), read.list(read.hostSuffix)),
  FILES_MAX_MB: entry('25', read.wholeNumber(1, 10_000)),
  FILES_QUOTA_MB: entry('500', read.wholeNumber(0, 100_000_000)),
  MIN_FREE_MB: entry('1000', read.wholeNumber(0, 1_000_000_000)),
  FILES_S3_URL: secret(read.bucket),
  BACKUP_S3_URL: secret(read.bucket),
  REPLICA_S3_URL: secret(read.bucket),
  REPLICA_ACK: entry('disk', read.oneOf(['disk', 'bucket'])),
  REPLICA_PUTS: entry('10', read.wholeNumber(1, 1_000)),
  REPLICA_PAIR: entry('false', read.trueOrFalse),
  REPLICA_LEASE: entry('10', read.wholeNumber(1, 300)),
  REPLICA_KEEP: entry('7', read.wholeNumber(1, 3_650)),
  REPLICA_DRILL: entry('on', read.oneOf(['on', 'off'])),
  WEBHOOK_PRIVATE: entry('false', read.trueOrFalse),
  SUPPORT_REOPEN_DAYS: entry('14', read.wholeNumber(0, 3_650)),
  SUPPORT_AUTOCLOSE_DAYS: entry('7', read.wholeNumber(0, 3_650)),
  SUPPORT_INBOX: optional(read.emailAddress),
  DEMO: optional(read.trueOrFalse),
  ADMIN_TOTP: entry('optional', read.oneOf(['optional', 'required'])),
  AUDIT_DAYS: entry('365', read.wholeNumber(30, 36_500)),
  LOG_REQUESTS: entry('errors', read.oneOf(requestLogModes)),
  LOG_ADDRESSES: entry('on', read.oneOf(['on', 'off'])),
  LOG_LEVEL: entry('info', read.oneOf(logLevels)),
  LOG_FORMAT: optional(read.oneOf(['pretty', 'json'])),
}

type Values = { [K in keyof typeof entries]: ReturnType<(typeof entries)[K]['parse']> }
export type Environment = Record<string, string | undefined>

export type Config = ReturnType<typeof configOf>

/** An empty value counts as absent.
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
    host: values.HOST.replace(/^\[(.*)]$/, '$1'),
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
      bucket: values.FILES_S3_URL ?? filesWithin(values.REPLICA_S3_URL),
    }),
    backupBucket: values.BACKUP_S3_URL,
    replica: values.REPLICA_S3_URL && {
      bucket: values.REPLICA_S3_URL,
      ack: values.REPLICA_ACK,
      pair: values.REPLICA_PAIR,
      putsPerSecond: values.REPLICA_PUTS,
      leaseMilliseconds: values.REPLICA_LEASE * 1_000,
      keepMilliseconds: values.REPLICA_KEEP * day,
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

function filesWithin(bucket: Bucket | undefined): Bucket | undefined {
  return bucket && { ...bucket, prefix: `${bucket.prefix}/files`.replace(/^\//, '') }
}
