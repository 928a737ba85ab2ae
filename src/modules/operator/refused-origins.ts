import type { Config } from '../../config.ts'
import type { Core } from '../../core.ts'
import type { AuditTrail } from '../../db/audit-trail.ts'
import { day } from '../../lib/clock.ts'

/** Records that a page of this origin was refused, so that `hostline check` and the console can report it. */
export function noteRefusedOrigin({ log, write, audit }: Core, origin: string): void {
  const details = { origin: origin.slice(0, 200) }
  log.warn('a page of an origin that CORS_ORIGINS does not name was refused', details)
  // Not awaited: the log has it if this fails.
  write(() => audit.record({ action: 'origin_refused', actor: { type: 'system' }, details })).catch(
    () => {},
  )
}

/** The latest origin that was refused within a day and is not allowed since. */
export function findRefusedOrigin(
  audit: Pick<AuditTrail, 'findLatest'>,
  { corsOrigins }: Pick<Config, 'corsOrigins'>,
  now: number,
): string | undefined {
  const row = audit.findLatest('origin_refused')
  if (!row?.details || now - row.at > day) return undefined
  const { origin }: { origin: string } = JSON.parse(row.details)
  return corsOrigins.includes(origin) ? undefined : origin
}
