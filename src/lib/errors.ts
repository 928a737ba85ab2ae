import type en from './texts/en.json'

type ErrorRow = { code: string; status: number; reason?: string }
const row =
  <const Code extends string>(code: Code, status: number) =>
  (reason: string) => ({ code, status, reason })
const unauthorized = row('unauthorized', 401)
const refusal = row('forbidden', 403)
const conflict = row('conflict', 409)
const throttle = row('rate_limited', 429)

/** Every error that a client can see. The reason distinguishes the causes of one code. */
export const errors = {
  validation_error: { code: 'validation_error', status: 400 },
  body_too_large: { code: 'validation_error', status: 413 },
  range_not_satisfiable: { code: 'validation_error', status: 416 },
  token_missing: unauthorized('token_missing'),
  token_expired: unauthorized('token_expired'),
  token_invalid: unauthorized('token_invalid'),
  wrong_kind_of_token: unauthorized('wrong_kind_of_token'),
  session_ended: unauthorized('session_ended'),
  invalid_credentials: { code: 'invalid_credentials', status: 401 },
  totp_required: { code: 'invalid_credentials', status: 401, reason: 'totp_required' },
  totp_invalid: { code: 'invalid_credentials', status: 401, reason: 'totp_invalid' },
  code_invalid: { code: 'invalid_credentials', status: 401, reason: 'code_invalid' },
  invalid_token: { code: 'invalid_token', status: 401 },
  payment_provider_error: { code: 'payment_provider_error', status: 402 },
  role_required: refusal('role_required'),
  admin_protected: refusal('role_required'),
  email_not_verified: refusal('email_not_verified'),
  registration_closed: refusal('registration_closed'),
  banned: refusal('banned'),
  scope_required: refusal('scope_required'),
  origin_not_allowed: refusal('origin_not_allowed'),
  not_participant: refusal('not_participant'),
  not_owner: refusal('not_participant'),
  no_active_call: refusal('no_active_call'),
  recipient_gone: refusal('recipient_gone'),
  blocked: refusal('blocked'),
  read_only: refusal('read_only'),
  admin_totp_required: refusal('totp_required'),
  confirm_required: refusal('confirm_required'),
  storage_full: refusal('quota_exceeded'),
  text_quota_exceeded: refusal('quota_exceeded'),
  not_found: { code: 'not_found', status: 404 },
  method_not_allowed: { code: 'not_found', status: 404, reason: 'method_not_allowed' },
  email_taken: conflict('email_taken'),
  last_admin: conflict('last_admin'),
  totp_exists: conflict('totp_exists'),
  external_id_taken: conflict('external_id_taken'),
  not_a_host: conflict('not_a_host'),
  idempotency_mismatch: conflict('idempotency_mismatch'),
  stale_ticket: conflict('stale_ticket'),
  ticket_closed: conflict('ticket_closed'),
  ticket_full: conflict('ticket_full'),
  too_many_webhooks: conflict('quota_exceeded'),
  report_open: conflict('report_open'),
  resync: conflict('resync'),
  rate_limited: { code: 'rate_limited', status: 429 },
  login_throttled: throttle('login_throttled'),
  mail_throttled: throttle('mail_throttled'),
  quota_exceeded: throttle('quota_exceeded'),
  internal_error: { code: 'internal_error', status: 500 },
  unavailable: { code: 'internal_error', status: 503 },
} as const satisfies Record<string, ErrorRow>

export type ErrorKind = keyof typeof errors
export type ErrorCode = (typeof errors)[ErrorKind]['code']
export const errorCodes = [...new Set(Object.values(errors).map(({ code }) => code))]

/** The problem of one field. `value` is inserted into the message: a bound or the allowed values. */
export type FieldProblem = { key: FieldProblemKey; value?: number | string }
export type FieldProblems = Record<string, FieldProblem>

export type FieldProblemKey = keyof (typeof en)['fields']

type ErrorOptions = {
  details?: FieldProblems
  value?: string | undefined
  retryAfterSeconds?: number
  cause?: unknown
}

/** Its message is translated when the response is created. */
export class AppError extends Error {
  readonly kind: ErrorKind
  readonly code: ErrorCode
  readonly status: number
  readonly reason: string | undefined
  readonly details: FieldProblems | null
  readonly value: string
  readonly retryAfterSeconds: number | undefined

  constructor(kind: ErrorKind, options: ErrorOptions = {}) {
    super(kind, { cause: options.cause })
    this.kind = kind
    const { code, status, reason }: (typeof errors)[ErrorKind] & { reason?: string } = errors[kind]
    this.code = code
    this.status = status
    this.reason = reason
    this.details = options.details ?? null
    this.value = options.value ?? ''
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}

type Throttled = 'rate_limited' | 'login_throttled' | 'mail_throttled' | 'quota_exceeded'

export function throttled(kind: Throttled, waitMilliseconds: number) {
  const retryAfterSeconds = Math.max(1, Math.ceil(waitMilliseconds / 1_000))
  return new AppError(kind, { retryAfterSeconds })
}

export function fileTooLarge(maxBytes: number) {
  const body = problem('file_too_large', maxBytes / 1_000_000)
  return new AppError('body_too_large', { details: { body } })
}

export function invalidField(field: string, key: FieldProblemKey, value?: number | string) {
  return new AppError('validation_error', { details: { [field]: problem(key, value) } })
}

export function invalidBody(cause?: unknown) {
  return new AppError('validation_error', { details: { body: problem('invalid') }, cause })
}

export function throwProblems(details: FieldProblems): void {
  if (Object.keys(details).length > 0) throw new AppError('validation_error', { details })
}

export function problem(key: FieldProblemKey, value?: number | string): FieldProblem {
  return value === undefined ? { key } : { key, value }
}

/** Stops a command with a one-line reason for the person at the terminal. Exit code 1, or 2 for wrong usage. */
export class StartError extends Error {
  readonly exitCode: 1 | 2

  constructor(message: string, options: { exitCode?: 1 | 2; cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.exitCode = options.exitCode ?? 1
  }
}

/** @returns the reason for a failure; undefined on success */
export const failureMessage = (work: Promise<unknown>): Promise<string | undefined> =>
  work.then(
    () => undefined,
    (error: Error) => error.message,
  )

/** A job failure that a retry cannot fix. */
export class PermanentFailure extends Error {}

export class RetryLater extends Error {
  readonly afterMilliseconds: number

  constructor(message: string, afterMilliseconds: number, options?: { cause?: unknown }) {
    super(message, options)
    this.afterMilliseconds = afterMilliseconds
  }
}
