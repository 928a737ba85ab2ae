import { confirmationSentence } from '../http/confirmation.ts'
import type { RateLimit, RateLimits } from '../http/rate-limit.ts'
import type { Access } from '../http/request-context.ts'
import type { DescribedRoute } from '../http/route-table.ts'
import type { ErrorKind } from '../lib/errors.ts'
import { roles } from '../lib/vocabulary.ts'

const tokenRefusals = [
  'token_missing',
  'token_expired',
  'token_invalid',
  'wrong_kind_of_token',
  'session_ended',
] as const

const passwordRefusals = ['invalid_credentials', 'login_throttled', 'quota_exceeded'] as const

export function policyOf(route: DescribedRoute, limits: RateLimits, description?: string) {
  const allowed = allowedOf(route)
  const counted = countedBy(route, limits)
  const asked = route.confirm && confirmationSentence(route.confirm)
  const sentences = [description, allowed.sentence, asked, counted && sentenceOf(counted)]
  const text = sentences.filter((one) => one !== undefined).join('\n\n')
  return {
    ...(text !== '' && { description: text }),
    ...allowed.fields,
    ...(route.confirm && { 'x-confirmation': route.confirm }),
    ...(counted && { 'x-rate-limit': counted }),
    security: securityOf(route.access),
  }
}

function allowedOf({ access, scope }: DescribedRoute) {
  // Routes for commands are not described.
  if (access === 'public' || access === 'operator') return { sentence: undefined, fields: {} }
  if (access === 'service') {
    const sentence = `Needs a service key with the scope \`${scope}\`.`
    return { sentence, fields: { 'x-scope': scope } }
  }
  const { sentence, allowed } = people[access]
  return { sentence, fields: { 'x-roles': allowed } }
}

const everybody = { sentence: 'Needs an access token (any role).', allowed: roles }
const people = {
  user: everybody,
  socket: everybody,
  admin: { sentence: 'Needs the role `admin`.', allowed: ['admin'] },
  host: {
    sentence: 'Needs the role `host` with a verified e-mail address, or `admin`.',
    allowed: ['host', 'admin'],
  },
} as const

type Counted = NonNullable<ReturnType<typeof countedBy>>

function countedBy({ limit, access }: DescribedRoute, limits: RateLimits) {
  if (limit === 'none') return undefined
  const name = limit === 'default' ? limitOf(access) : limit
  const rule: RateLimit = limits[name]
  if (rule === 'off') return undefined
  return {
    name: `RATE_LIMIT_${name.toUpperCase()}`,
    requests: rule.count,
    window_seconds: rule.windowMilliseconds / 1_000,
    per: keyOf[name],
  }
}

function limitOf(access: Access) {
  if (access === 'public') return 'anonymous'
  return access === 'service' ? 'service' : 'user'
}

const keyOf = {
  login: 'ip_address',
  register: 'ip_address',
  anonymous: 'ip_address',
  user: 'user',
  service: 'service_key',
} as const

const keyNames = { user: 'user', service_key: 'service key', ip_address: 'IP address' }

function sentenceOf({ name, requests, window_seconds, per }: Counted) {
  const count = new Intl.NumberFormat('en').format(requests)
  const limit = `${count} requests ${windowText(window_seconds)} of each ${keyNames[per]} (\`${name}\`)`
  const isAnonymous = name === 'RATE_LIMIT_ANONYMOUS'
  const otherwise = isAnonymous ? ' With an access token it counts for the user.' : ''
  return `Counts towards the ${limit}.${otherwise}`
}

/** For example "a minute" or "in 15 minutes". */
function windowText(seconds: number) {
  const [unit, length] = units.find(([, length]) => seconds % length === 0) ?? units[2]
  const count = seconds / length
  if (count > 1) return `in ${count} ${unit}s`
  return unit === 'hour' ? 'an hour' : `a ${unit}`
}

const units = [
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const

export function errorKindsOf(route: DescribedRoute, declared: ErrorKind[], hasBody: boolean) {
  const { access, limit, method, confirm, path } = route
  const implied: [boolean, ...ErrorKind[]][] = [
    [hasBody, 'body_too_large'],
    [access !== 'public', ...tokenRefusals, ...(refusals[access] ?? [])],
    [confirm !== undefined, 'confirm_required'],
    [confirm?.unless !== undefined, ...passwordRefusals],
    [path.includes(':'), 'not_found'],
    [limit !== 'none' || method === 'GET', 'rate_limited'],
  ]
  const kinds = implied.flatMap(([holds, ...some]) => (holds ? some : []))
  const all = ['validation_error', ...declared, ...kinds, 'internal_error', 'unavailable'] as const
  return [...new Set(all)]
}

const refusals: Partial<Record<Access, ErrorKind[]>> = {
  admin: ['role_required', 'admin_totp_required'],
  host: ['role_required', 'email_not_verified'],
  service: ['scope_required'],
}

function securityOf(access: Access): Record<string, string[]>[] {
  if (access === 'public') return []
  if (access === 'service') return [{ serviceKey: [] }]
  return access === 'socket' ? [{ accessTokenInQuery: [] }, { bearer: [] }] : [{ bearer: [] }]
}
