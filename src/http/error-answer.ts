import { asAppError, errorBody } from '../lib/error-body.ts'
import { AppError } from '../lib/errors.ts'
import { texts } from '../lib/i18n.ts'
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

export function createErrorAnswer(log: Log) {
  return ({ code, error, context, set }: Hook) => {
    const answer = translate(code, error)
    context.failure = answer
    if (answer.kind === 'internal_error') {
      log.error('a request failed', { request_id: context.requestId, error: answer.cause })
    }
    set.status = answer.status
    if (answer.reason !== undefined) set.headers[reasonHeader] = answer.reason
    if (answer.code === 'unauthorized') set.headers['www-authenticate'] = challengeOf(answer)
    if (answer.retryAfterSeconds !== undefined) {
      set.headers['retry-after'] = answer.retryAfterSeconds
    }
    // The modules' own limits set no rate limit headers.
    if (answer.status === 429) set.headers['x-ratelimit-remaining'] = 0
    return errorBody(answer, context.locale)
  }
}

/** RFC 6750, 3. The description is in English: headers are ASCII. */
function challengeOf({ kind }: AppError): string {
  if (kind === 'token_missing') return 'Bearer'
  return `Bearer error="invalid_token", error_description="${texts.en.errors[kind]}"`
}

function translate(code: string | number, error: unknown): AppError {
  if (code === 'NOT_FOUND') return new AppError('not_found')
  return asAppError(error)
}
