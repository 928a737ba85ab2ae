import type { Config } from '../../config.ts'
import type { Core } from '../../core.ts'
import type { AuditTrail } from '../../db/audit-trail.ts'

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
export function findRefusedOrigin(audit: AuditTrail, { corsOrigins }: Pick<Config, 'corsOrigins'>) {
  const origin = audit.findRecentDetails('origin_refused')?.['origin']
  return origin !== undefined && corsOrigins.includes(origin) ? undefined : origin
}
