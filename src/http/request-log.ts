import type { Log } from '../lib/log.ts'
import type { Answered } from './observe-requests.ts'

export const requestLogModes = ['errors', 'all', 'off'] as const
type RequestLogMode = (typeof requestLogModes)[number]

/** Logs requests, a line each: with `errors` those that were refused or failed. */
export function createRequestLog(log: Log, mode: RequestLogMode) {
  return (answered: Answered): void => {
    if (mode === 'off' || (mode === 'errors' && !isWorthALine(answered))) return
    const { request, status, milliseconds, context } = answered
    log.info('request', {
      request_id: context?.requestId,
      ...context?.bearer,
      route: `${request.method} ${context?.route?.path ?? 'unknown'}`,
      status,
      code: context?.failure?.code,
      reason: context?.failure?.reason,
      milliseconds: Math.round(milliseconds * 10) / 10,
    })
  }
}

// Strangers who look for doors would fill the disk.
function isWorthALine({ status, context }: Answered): boolean {
  if (status < 400) return false
  const isStrangers = context?.bearer === undefined && (status === 401 || status === 404)
  return !isStrangers || context?.failure?.kind === 'invalid_credentials'
}
