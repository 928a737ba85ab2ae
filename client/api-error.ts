import type { ErrorBody, ErrorCode } from './contract.ts'

type Circumstances = {
  /** Of the HTTP answer; absent when the refusal came over the socket. */
  status?: number | undefined
  retryAfterSeconds?: number | undefined
  requestId?: string | undefined
}

/** A refusal by the service. Whatever else is thrown (a lost network, an abort) is no `ApiError`. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly code: ErrorCode
  /** Field name to message when the code is `validation_error`. */
  readonly details: Record<string, string> | null
  readonly status: number | undefined
  readonly retryAfterSeconds: number | undefined
  /** What to quote when asking the service's people about it. */
  readonly requestId: string | undefined

  constructor({ error }: ErrorBody, circumstances: Circumstances = {}) {
    super(error.message)
    this.code = error.code
    this.details = error.details
    this.status = circumstances.status
    this.retryAfterSeconds = circumstances.retryAfterSeconds
    this.requestId = circumstances.requestId
  }
}

/** Milliseconds that the service asks to wait before another try. */
export function askedPause(error: unknown): number | undefined {
  if (!(error instanceof ApiError) || error.retryAfterSeconds === undefined) return undefined
  return error.retryAfterSeconds * 1_000
}

/** The session is over, or nobody had logged in. */
export class SessionEndedError extends Error {
  override readonly name = 'SessionEndedError'

  constructor() {
    super('nobody is logged in')
  }
}

/** The refusal in an answer, even when something in front of the service wrote it. */
export async function apiErrorOf(answer: Response): Promise<ApiError> {
  const text = await answer.text()
  const seconds = Number.parseInt(answer.headers.get('retry-after') ?? '', 10)
  return new ApiError(errorBodyIn(text) ?? unreadable(answer), {
    status: answer.status,
    retryAfterSeconds: Number.isNaN(seconds) ? undefined : seconds,
    requestId: answer.headers.get('x-request-id') ?? undefined,
  })
}

function errorBodyIn(text: string): ErrorBody | undefined {
  try {
    const body = JSON.parse(text)
    return typeof body?.error?.code === 'string' ? body : undefined
  } catch {
    return undefined
  }
}

function unreadable({ status }: Response): ErrorBody {
  return { error: { code: 'internal_error', message: `HTTP ${status}`, details: null } }
}
