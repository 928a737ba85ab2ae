import { isAbsolute, resolve } from 'node:path'
import {
  baseUrl,
  emailAddress,
  hostSuffix,
  list,
  network,
  nonEmpty,
  oneOf,
  optional,
  origin,
  publicUrl,
  rateLimit,
  sender,
  serviceAccount,
  smtpUrl,
  trueOrFalse,
  wholeNumber,
} from './config-values.ts'
import type { Network } from './http/client-ip.ts'
import type { RateLimits } from './http/pipeline.ts'
import type { RateLimit } from './http/rate-limit.ts'
import { StartError } from './lib/errors.ts'
import { type LogFormat, type LogLevel, logLevels } from './lib/log.ts'
import type { ServiceAccount } from './push/service-account.ts'
import { publicPushServices } from './push/subscription.ts'

/** How one entry is read. `parse` gets the text of the environment and throws a reason that completes "NAME must …". */
type Entry<T> = { fallback: string; shown?: string; parse: (text: string) => T; doc: string }

const entry = <T>(definition: Entry<T>) => definition

/** Every entry of the configuration (decisions 11); the table in the README is made from this one. */
export const entries = {
  PORT: entry({
    fallback: '3000',
    parse: wholeNumber(0, 65_535),
    doc: 'Port to listen on; 0 picks a free one.',
  }),
  HOST: entry({ fallback: '0.0.0.0', parse: nonEmpty, doc: 'Address to listen on.' }),
  PUBLIC_URL: entry({
    fallback: '',
    shown: 'http://localhost:PORT',
    parse: optional(publicUrl),
    doc: 'Where clients reach the service: links, and the issuer of tokens (its host name).',
  }),
  DATA_DIR: entry({
    fallback: './data',
    parse: (text) => (isAbsolute(text) ? text : resolve(nonEmpty(text))),
    doc: 'Directory of everything that must be kept.',
  }),
  SMTP_URL: entry({
    fallback: '',
    parse: optional(smtpUrl),
    doc: 'Mail server: `smtp://user:password@host:587` (STARTTLS) or `smtps://…`; without it mails are logged.',
  }),
  MAIL_FROM: entry({
    fallback: '',
    shown: 'hostline@ the host of `PUBLIC_URL`',
    parse: optional(sender),
    doc: 'Sender of mails, such as `Example <noreply@example.com>`.',
  }),
  TRUSTED_PROXIES: entry({
    fallback: '',
    parse: list(network),
    doc: 'CIDR blocks or addresses of proxies whose `X-Forwarded-For` is believed, comma-separated.',
  }),
  CORS_ORIGINS: entry({
    fallback: '',
    parse: list(origin),
    doc: 'Exact origins of web pages that may call the API, comma-separated.',
  }),
  TLS_CERT: entry({
    fallback: '',
    parse: optional(nonEmpty),
    doc: 'Certificate chain (PEM file) to serve https and wss without a proxy; with `TLS_KEY`.',
  }),
  TLS_KEY: entry({
    fallback: '',
    parse: optional(nonEmpty),
    doc: 'Private key (PEM file) of `TLS_CERT`.',
  }),
  METRICS_TOKEN: entry({
    fallback: '',
    parse: optional(nonEmpty),
    doc: 'Bearer token of `/metrics`; without it only this machine itself may read.',
  }),
  RATE_LIMIT_LOGIN: entry({
    fallback: '5/15m',
    parse: rateLimit,
    doc: 'Logins per address: `N/window` (s, m, h) or `off`.',
  }),
  RATE_LIMIT_REGISTER: entry({
    fallback: '3/1h',
    parse: rateLimit,
    doc: 'Registrations per address.',
  }),
  RATE_LIMIT_USER: entry({
    fallback: '100/1m',
    parse: rateLimit,
    doc: 'Requests per user.',
  }),
  RATE_LIMIT_ANONYMOUS: entry({
    fallback: '30/1m',
    parse: rateLimit,
    doc: 'Requests without a valid token per address.',
  }),
  RATE_LIMIT_SERVICE: entry({
    fallback: '6000/1m',
    parse: rateLimit,
    doc: 'Requests per service key.',
  }),
  RATE_LIMIT_FRAMES: entry({
    fallback: '10/1s',
    parse: rateLimit,
    doc: 'Frames of one socket; three times as many at once.',
  }),
  CHAT_REQUIRE_ACTIVE_CALL: entry({
    fallback: 'false',
    parse: trueOrFalse,
    doc: 'Whether two people may chat only during a call; broadcasts and admins are exempt.',
  }),
  FCM_SERVICE_ACCOUNT: entry({
    fallback: '',
    parse: optional(serviceAccount),
    doc: 'Push to apps: the JSON key file of a Firebase service account, or its path.',
  }),
  FCM_URL: entry({
    fallback: '',
    shown: 'https://fcm.googleapis.com',
    parse: optional(baseUrl),
    doc: 'Base address of FCM, before `/v1/projects/…`.',
  }),
  WEB_PUSH_HOSTS: entry({
    fallback: '',
    shown: publicPushServices.join(','),
    parse: list(hostSuffix),
    doc: 'Hosts of browsers’ push services, each with every host below it, comma-separated.',
  }),
  SUPPORT_REOPEN_DAYS: entry({
    fallback: '14',
    parse: wholeNumber(0, 3_650),
    doc: 'Days in which an answer of its owner opens a closed ticket again; 0 is never.',
  }),
  SUPPORT_AUTOCLOSE_DAYS: entry({
    fallback: '7',
    parse: wholeNumber(0, 3_650),
    doc: 'Days of silence after which a resolved ticket closes by itself; 0 is never.',
  }),
  SUPPORT_INBOX: entry({
    fallback: '',
    parse: optional(emailAddress),
    doc: 'E-mail address that is told of every new ticket.',
  }),
  LOG_LEVEL: entry<LogLevel>({
    fallback: 'info',
    parse: oneOf(logLevels),
    doc: 'Least level that is logged: debug, info, warn, error.',
  }),
  LOG_FORMAT: entry<LogFormat | undefined>({
    fallback: '',
    shown: '`pretty` on a terminal, else `json`',
    parse: optional(oneOf(['pretty', 'json'] as const)),
    doc: 'Form of the log: pretty or json.',
  }),
}

type Values = { [K in keyof typeof entries]: ReturnType<(typeof entries)[K]['parse']> }

export type Config = Readonly<{
  port: number
  host: string
  /** Without a trailing slash. */
  publicUrl: string
  /** Host name of the public URL, without port: the issuer of access tokens. */
  issuer: string
  dataDir: string
  smtpUrl: string | undefined
  mailFrom: string
  trustedProxies: readonly Network[]
  corsOrigins: readonly string[]
  metricsToken: string | undefined
  tls: Readonly<{ cert: string; key: string }> | undefined
  limits: Readonly<RateLimits & { frames: RateLimit }>
  chatRequiresActiveCall: boolean
  fcm: Readonly<{ account: ServiceAccount; url: string | undefined }> | undefined
  webPushHosts: readonly string[]
  support: Readonly<{ reopenDays: number; autocloseDays: number; inbox: string | undefined }>
  logLevel: LogLevel
  logFormat: LogFormat
}>

type Environment = Record<string, string | undefined>

/** Reads the configuration; an empty value counts as absent.
 *  @throws StartError with one line for each mistake */
export function readConfig(environment: Environment, isTerminal: boolean): Config {
  const mistakes: string[] = []
  const values: Record<string, unknown> = {}
  for (const [name, { fallback, parse }] of Object.entries(entries)) {
    try {
      values[name] = parse(environment[name] || fallback)
    } catch (error) {
      mistakes.push(`${name} must ${(error as Error).message}`)
    }
  }
  if (Boolean(environment['TLS_CERT']) !== Boolean(environment['TLS_KEY'])) {
    mistakes.push('TLS_CERT and TLS_KEY must be set together')
  }
  if (mistakes.length > 0) throw new StartError(mistakes.join('\n'))
  return configOf(values as Values, isTerminal) // each value came from the parser of its name
}

function configOf(values: Values, isTerminal: boolean): Config {
  const { TLS_CERT: cert, TLS_KEY: key } = values
  const publicUrl = values.PUBLIC_URL ?? `http://localhost:${values.PORT}`
  return Object.freeze({
    port: values.PORT,
    host: values.HOST,
    publicUrl,
    issuer: new URL(publicUrl).hostname,
    dataDir: values.DATA_DIR,
    smtpUrl: values.SMTP_URL,
    mailFrom: values.MAIL_FROM ?? `Hostline <hostline@${new URL(publicUrl).hostname}>`,
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
    chatRequiresActiveCall: values.CHAT_REQUIRE_ACTIVE_CALL,
    fcm: values.FCM_SERVICE_ACCOUNT && {
      account: values.FCM_SERVICE_ACCOUNT,
      url: values.FCM_URL,
    },
    webPushHosts: values.WEB_PUSH_HOSTS.length > 0 ? values.WEB_PUSH_HOSTS : publicPushServices,
    support: Object.freeze({
      reopenDays: values.SUPPORT_REOPEN_DAYS,
      autocloseDays: values.SUPPORT_AUTOCLOSE_DAYS,
      inbox: values.SUPPORT_INBOX,
    }),
    logLevel: values.LOG_LEVEL,
    logFormat: values.LOG_FORMAT ?? (isTerminal ? 'pretty' : 'json'),
  })
}

/** The table of the README. */
export function configTable(): string {
  const rows = Object.entries(entries).map(([name, { fallback, doc, ...rest }]) => {
    const shown = 'shown' in rest && rest.shown ? rest.shown : fallback
    return `| \`${name}\` | ${shown || '–'} | ${doc} |`
  })
  return ['| name | default | meaning |', '|---|---|---|', ...rows].join('\n')
}
