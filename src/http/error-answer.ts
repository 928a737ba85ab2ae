import type { Core } from '../core.ts'
import { asAppError, errorBody } from '../lib/error-body.ts'
import { AppError } from '../lib/errors.ts'
import { texts } from '../lib/i18n.ts'
import type { RequestContext } from './request-context.ts'

export const reasonHeader = 'x-error-reason'

export type MissingPage = (set: Hook['set'], context: RequestContext) => Promise<string>

type Hook = {
  code: string | number
  error: unknown
  request: Request
  context: RequestContext
  set: { status?: number | string; headers: Record<string, string | number> }
}

export function createErrorAnswer({ log, clock }: Core, missingPage: MissingPage) {
  return ({ code, error, request, context, set }: Hook) => {
    const answer = code === 'NOT_FOUND' ? new AppError('not_found') : asAppError(error)
    context.failure = answer
    if (answer.kind === 'internal_error') {
      log.error('a request failed', { request_id: context.requestId, error: answer.cause })
    }
    set.status = answer.status
    Object.assign(set.headers, errorHeaders(answer))
    if (answer.status === 429 && answer.kind !== 'rate_limited') {
      // A limit of a module replaces that of all requests.
      const { retryAfterSeconds = 1 } = answer
      set.headers['x-ratelimit-remaining'] = 0
      set.headers['x-ratelimit-reset'] = Math.ceil(clock.now() / 1_000) + retryAfterSeconds
    }
    if (answer.kind === 'not_found' && asksForPage(request)) return missingPage(set, context)
    return errorBody(answer, context.locale)
  }
}

export function errorHeaders(answer: AppError): Record<string, string> {
  const { code, reason, retryAfterSeconds } = answer
  return {
    ...(reason !== undefined && { [reasonHeader]: reason }),
    ...(code === 'unauthorized' && { 'www-authenticate': challengeOf(answer) }),
    ...(retryAfterSeconds !== undefined && { 'retry-after': String(retryAfterSeconds) }),
  }
}

function asksForPage({ method, headers, url }: Request): boolean {
  const isHtml = headers.get('accept')?.includes('text/html') === true
  return method === 'GET' && isHtml && !/^\/v1(\/|$)/.test(new URL(url).pathname)
}

/** RFC 6750, 3. The description is in English: headers are ASCII. */
function challengeOf({ kind }: AppError): string {
  if (kind === 'token_missing') return 'Bearer'
  return `Bearer error="invalid_token", error_description="${texts.en.errors[kind]}"`
}
