import type { Core } from '../core.ts'
import { minute } from '../lib/clock.ts'
import type { Answered } from './observe-requests.ts'

export const requestLogModes = ['errors', 'all', 'off'] as const

type Refused = { bearer: object | undefined; counts: Record<string, number> }

/** The bound for wrong passwords, and the one for failures. */
const linesAMinute = 60

/** Logs a line for each request, in mode `errors` only for refused and failed ones. Refused anonymous requests and 429s
 *  could fill the disk, so they are only counted and logged once a minute. */
export function createRequestLog({ log, clock, config }: Core) {
  const { mode, hasAddresses } = config.requestLog
  const refused = new Map<string, Refused>()
  let [wrongPasswords, failures] = [0, 0]

  function isCounted({ status, context }: Answered): boolean {
    if (status === 429) return true
    if (context?.bearer) return false
    if (status >= 500) return ++failures > linesAMinute
    return context?.failure?.kind !== 'invalid_credentials' || ++wrongPasswords > linesAMinute
  }

  function count({ request, status, context }: Answered) {
    const bearer = context?.bearer
    const key = JSON.stringify(bearer) ?? ''
    const { counts } = refused.getOrInsert(key, { bearer, counts: {} })
    const name = `${status} ${context?.route ? `${request.method} ${context.route.path}` : 'unknown'}`
    counts[name] = (counts[name] ?? 0) + 1
  }

  function logCounts() {
    for (const { bearer, counts } of refused.values()) {
      log.info('requests refused', { ...bearer, counts })
    }
    refused.clear()
    wrongPasswords = failures = 0
  }

  function logRequest({ request, status, milliseconds, context }: Answered) {
    log.info('request', {
      request_id: context?.requestId,
      ...context?.bearer,
      ip: hasAddresses ? context?.ip : undefined,
      route: `${request.method} ${context?.route?.path ?? 'unknown'}`,
      status,
      code: context?.failure?.code,
      reason: context?.failure?.reason,
      milliseconds: Math.round(milliseconds * 10) / 10,
    })
  }

  const stopCounting = clock.every(minute, logCounts)

  return {
    answered(answered: Answered): void {
      if (mode === 'all') logRequest(answered)
      if (mode !== 'errors' || answered.status < 400) return
      if (isCounted(answered)) count(answered)
      else logRequest(answered)
    },
    stop(): void {
      stopCounting()
      logCounts()
    },
  }
}
