import { asAppError, errorBody } from '../lib/error-body.ts'
import { AppError } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import type { RequestContext } from './request-context.ts'

/** In error responses: the reason, if several reasons share one code. */
export const reasonHeader = 'x-error-reason'

type Hook = {
  code: string | number
  error: unknown
  context: RequestContext
  set: { status?: number | string; headers: Record<string, string | number> }
}

/** Turns every thrown value into the API's error answer. */
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
    // The modules' own limits set no rate limit headers.
    if (answer.status === 429) set.headers['x-ratelimit-remaining'] = 0
    return errorBody(answer, context.locale)
  }
}

function translate(code: string | number, error: unknown): AppError {
  if (code === 'NOT_FOUND') return new AppError('not_found')
  return asAppError(error)
}
