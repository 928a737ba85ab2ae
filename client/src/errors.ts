import type { ErrorBody, ErrorCode, ErrorReason } from './contract.ts'

type ResponseInfo = {
  reason?: string | undefined
  /** The HTTP status; absent when the refusal came over the socket. */
  status?: number | undefined
  retryAfterSeconds?: number | undefined
  requestId?: string | undefined
}

/** The service refused a request. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly code: ErrorCode
  /** Distinguishes errors with the same code, such as `ticket_closed`. New reasons may be added: fall back to the code. */
  readonly reason: ErrorReason | undefined
  /** For `validation_error`: the message of each invalid field by its path, such as `body` or `data.amount`. */
  readonly details: Record<string, string> | null
  readonly status: number | undefined
  readonly retryAfterSeconds: number | undefined
  /** Identifies the request in the service's log. */
  readonly requestId: string | undefined

  constructor({ error }: ErrorBody, info: ResponseInfo = {}) {
    super(error.message)
    this.code = error.code
    this.reason = info.reason as ErrorReason | undefined // the contract's word for it
    this.details = error.details
    this.status = info.status
    this.retryAfterSeconds = info.retryAfterSeconds
    this.requestId = info.requestId
  }
}

/** No response of the service arrived: there is no network, or something in between answered. */
export class NetworkError extends Error {
  override readonly name = 'NetworkError'
  /** The HTTP status, if a proxy answered in place of the service. */
  readonly status: number | undefined

  constructor(message: string, options: { cause?: unknown; status?: number } = {}) {
    super(message, options)
    this.status = options.status
  }
}

/** The service did not answer in time. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError'

  constructor() {
    super('the service did not answer in time')
  }
}

/** The signal of the request was aborted; `cause` is its reason. */
export class AbortError extends Error {
  override readonly name = 'AbortError'

  constructor(cause: unknown) {
    super('aborted', { cause })
  }
}

/** The session is over, or no user has logged in. */
export class SessionEndedError extends Error {
  override readonly name = 'SessionEndedError'

  constructor() {
    super('nobody is logged in')
  }
}

/** The client was closed, or the service permanently closed the channel. */
export class ClosedError extends Error {
  override readonly name = 'ClosedError'
  /** The close code of the channel (docs/protocol.md). */
  readonly closeCode: number | undefined

  constructor(closeCode?: number) {
    super(closeCode === undefined ? 'the client is closed' : `the channel is closed: ${closeCode}`)
    this.closeCode = closeCode
  }
}

/** The time that the service asks to wait before a retry. */
export function retryAfterMilliseconds(error: unknown): number | undefined {
  if (!(error instanceof ApiError) || error.retryAfterSeconds === undefined) return undefined
  return error.retryAfterSeconds * 1_000
}

/** @returns an `ApiError`, or a `NetworkError` when the response came from something in between */
export async function errorOf(answer: Response): Promise<Error> {
  const { status } = answer
  const body = errorBodyOf(await answer.text())
  if (!body) return new NetworkError(`HTTP ${status}, not from the service`, { status })
  return new ApiError(body, {
    status,
    reason: answer.headers.get('x-error-reason') ?? undefined,
    retryAfterSeconds: Number(answer.headers.get('retry-after')) || undefined,
    requestId: answer.headers.get('x-request-id') ?? undefined,
  })
}

function errorBodyOf(text: string): ErrorBody | undefined {
  try {
    const body = JSON.parse(text)
    return typeof body?.error?.code === 'string' ? body : undefined
  } catch {
    return undefined
  }
}
