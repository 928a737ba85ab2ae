import type { AuditEntry, CursorPage, Webhook } from '../../../../client/src/contract.ts'
import { useResource } from '../../ui/resource.ts'
import { Time } from '../../ui/time.tsx'
import { request } from '../session.ts'

/** The service disables a webhook and writes the audit entry in one transaction; their times differ by less than
 *  this. */
const momentMilliseconds = 100

/** Since when deliveries fail, or who disabled the webhook and why. */
export function WebhookState({ webhook }: { webhook: Webhook }) {
  const { enabled, disabled_at: disabledAt, failing_since: failingSince } = webhook
  if (!enabled && disabledAt) return <SwitchedOff id={webhook.id} at={disabledAt} />
  if (!failingSince) return null
  return (
    <div class="notice danger">
      <p>
        The first failure was <Time at={failingSince} />, and nothing has been delivered since.
        After five days of failure it is switched off.
      </p>
    </div>
  )
}

function SwitchedOff({ id, at }: { id: string; at: string }) {
  const query = { target_id: id, action: 'webhook_disabled', limit: 1 }
  const log = useResource(
    `${id} ${at}`,
    (signal) =>
      request('GET /v1/admin/audit-log', { query, signal }) as Promise<CursorPage<AuditEntry>>,
  )
  const entry = log.data?.data[0]
  const isOfThis = entry && Math.abs(Date.parse(entry.at) - Date.parse(at)) < momentMilliseconds
  return (
    <div class="notice warning" role="status">
      <p>
        Switched off <Time at={at} />
        {log.data && (isOfThis ? ` by the service: ${entry.details?.['reason']}` : ' by an admin')}.
        What happens meanwhile is not delivered later.
      </p>
    </div>
  )
}
