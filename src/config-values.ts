import { readFileSync } from 'node:fs'
import type { RateLimit } from './http/rate-limit.ts'
import { hour, minute } from './lib/clock.ts'
import { isLoopback, type Network, parseNetwork } from './lib/ip-network.ts'
import { normalizeEmail } from './lib/text.ts'
import type { Bucket } from './outside/bucket.ts'
import { parseServiceAccount, type ServiceAccount } from './outside/push/service-account.ts'

/** Parsers for environment variables. Each throws a reason that completes "NAME must …", without the value, which may be a
 *  secret. */

const checked = (rule: string, isValid: (text: string) => boolean) => (text: string) => {
  if (isValid(text)) return text
  throw new Error(rule)
}

export function nonEmpty(text: string): string {
  if (text.trim() === '') throw new Error('not be empty')
  return text
}

export function wholeNumber(min: number, max: number) {
  return (text: string): number => {
    const number = /^\d+$/.test(text) ? Number(text) : Number.NaN
    if (number >= min && number <= max) return number
    throw new Error(`be a whole number from ${min} to ${max}`)
  }
}

export function oneOf<const T extends string>(choices: readonly T[]) {
  return (text: string): T => {
    const choice = choices.find((known) => known === text)
    if (choice !== undefined) return choice
    throw new Error(`be one of ${choices.join(', ')}`)
  }
}

export const trueOrFalse = (text: string): boolean => oneOf(['true', 'false'])(text) === 'true'

export function list<T>(parse: (text: string) => T) {
  return (text: string): readonly T[] => {
    const parts = text.split(',').map((part) => part.trim())
    return Object.freeze(parts.filter((part) => part !== '').map(parse))
  }
}

export function network(text: string): Network {
  try {
    return parseNetwork(text)
  } catch {
    throw new Error('list CIDR blocks or addresses')
  }
}

export const smtpUrl = checked(
  'be an address such as smtp://user:password@mail.example.com:587, with %40 for @, %2F for / and %25 for % in user and password',
  (text) => {
    const url = URL.parse(text)
    const isSmtp = url?.protocol === 'smtp:' || url?.protocol === 'smtps:'
    return isSmtp && url.hostname !== '' && isEscaped(text)
  },
)

export const pemFile = checked('be the path of a PEM file', (text) => !text.includes('-----BEGIN'))

/** Requires TLS of the mail server unless it is on this machine. The mail driver reads the option from the query. */
export function requiringTls(smtpUrl: string): string {
  const url = new URL(smtpUrl)
  if (!isLoopback(url.hostname)) url.searchParams.set('requireTLS', 'true')
  return url.href
}

export const emailAddress = checked(
  'be an e-mail address',
  (text) => normalizeEmail(text) !== undefined,
)

export const sender = checked('be an address such as noreply@example.com', (text) => {
  const [, address = text] = /^[^<>]*<([^<>]+)>$/.exec(text) ?? []
  return normalizeEmail(address) !== undefined
})

export function serviceAccount(text: string): ServiceAccount {
  const json = [text, Buffer.from(text, 'base64').toString()].find((it) => /^\s*\{\s*["}]/.test(it))
  return parseServiceAccount(json ?? readFile(text))
}

function readFile(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    throw new Error('be JSON, JSON in base64, or the path of a readable file')
  }
}

function httpUrl(text: string): URL | undefined {
  const url = URL.parse(text)
  return url?.protocol === 'http:' || url?.protocol === 'https:' ? url : undefined
}

export const baseUrl = checked('be an http or https address', (text) => {
  const url = httpUrl(text)
  return url !== undefined && !url.search && !url.hash
})

export const hostSuffix = checked(
  'list host names in lower case such as push.example.com',
  (text) => /^[a-z0-9-]+(\.[a-z0-9-]+)+$/.test(text),
)

export const origin = checked(
  'list origins such as https://app.example.com, without a path or a slash at the end',
  (text) => httpUrl(text)?.origin === text,
)

export function publicUrl(text: string): string {
  const url = httpUrl(text)
  if (url && url.pathname === '/' && !url.search && !url.hash && !url.username) return url.origin
  throw new Error('be an http or https address without a path')
}

const unitMilliseconds: Record<string, number> = { s: 1_000, m: minute, h: hour }

export function rateLimit(text: string): RateLimit {
  if (text === 'off') return 'off'
  const [, count, length, unit = ''] = /^([1-9]\d{0,8})\/([1-9]\d{0,3})([smh])$/.exec(text) ?? []
  const milliseconds = unitMilliseconds[unit]
  if (milliseconds === undefined)
    throw new Error('be N/window such as 100/1m, with N above 0, or off')
  return { count: Number(count), windowMilliseconds: Number(length) * milliseconds }
}

const bucketForm =
  's3://KEY:SECRET@HOST[:PORT]/BUCKET[/PREFIX][?region=…&tls=off], with %2F for / and %2B for + in key and secret'

export function bucket(text: string): Bucket {
  const url = URL.parse(text)
  const [, name, prefix = ''] = /^\/([^/]+)(?:\/(.*?))?\/?$/.exec(url?.pathname ?? '') ?? []
  const isS3 = url?.protocol === 's3:' && url.username !== '' && url.password !== ''
  if (!isS3 || name === undefined || url.hash !== '' || !isEscaped(text)) {
    throw new Error(`be an address such as ${bucketForm}`)
  }
  const { region = 'us-east-1', tls = 'on', ...others } = Object.fromEntries(url.searchParams)
  if (Object.keys(others).length > 0 || (tls !== 'on' && tls !== 'off')) {
    throw new Error('have no other options than region and tls (on or off)')
  }
  return {
    endpoint: `${tls === 'on' ? 'https' : 'http'}://${url.host}`,
    name: decodeURIComponent(name),
    prefix: decodeURIComponent(prefix),
    region,
    accessKeyId: decodeURIComponent(url.username),
    secretAccessKey: decodeURIComponent(url.password),
  }
}

const isEscaped = (text: string) => !/%(?![0-9a-f]{2})/i.test(text) && text.split('@').length <= 2
