import { asAppError, errorBody } from '../lib/error-body.ts'
import { AppError } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import type { RequestContext } from './request-context.ts'

/** Tells apart what has one code. Of an error alone. */
export const reasonHeader = 'x-error-reason'

type Hook = {
  code: string | number
  error: unknown
  context: RequestContext
  set: { status?: number | string; headers: Record<string, string | number> }
}

/** Turns whatever was thrown into the contract's error answer, and nothing else. */
export function createErrorAnswer(log: Log) {
  return ({ code, error, context, set }: Hook) => {
    const answer = translate(code, error)
    context.failure = answer
    if (answer.kind === 'internal_error') {
      log.error('a request failed', { request_id: context.requestId, error: answer.cause })
    }
    set.status = answer.status
    if (answer.reason !== undefined) set.headers[reasonHeader] = answer.reason
    if (answer.retryAfterSeconds !== undefined) {
      set.headers['retry-after'] = answer.retryAfterSeconds
    }
    // Also when a rule of a module refused, or one without headers of its own.
    if (answer.status === 429) set.headers['x-ratelimit-remaining'] = 0
    return errorBody(answer, context.locale)
  }
}

function translate(code: string | number, error: unknown): AppError {
  if (code === 'NOT_FOUND') return new AppError('not_found')
  return asAppError(error)
}
