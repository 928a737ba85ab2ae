import type { ManagedUser } from '../../../../client/src/contract.ts'
import { useResource } from '../../ui/resource.ts'
import { Failure, Loading } from '../../ui/states.tsx'
import { Time } from '../../ui/time.tsx'
import { request } from '../session.ts'

const shownTickets = 20

const statusTitles = {
  open: 'Open',
  in_progress: 'In progress',
  resolved: 'Resolved',
  closed: 'Closed',
}

export function PersonTickets({ person: { id, email } }: { person: ManagedUser }) {
  const tickets = useResource(id, async (signal) => {
    const query = { user_id: id, limit: shownTickets + 1 }
    return (await request('GET /v1/admin/support/tickets', { query, signal })).data
  })
  return (
    <section class="stack tight" aria-label="Tickets">
      <h3>Tickets</h3>
      {tickets.data?.length === 0 && <p class="soft">No tickets.</p>}
      {tickets.data && tickets.data.length > 0 && (
        <ul class="lines">
          {tickets.data.slice(0, shownTickets).map(({ id, subject, status, updated_at }) => (
            <li key={id} class="row between">
              <a class="truncate" href={`/console/desk/${id}`}>
                {subject}
              </a>
              <span class="small soft ticket-state">
                {statusTitles[status]} · <Time at={updated_at} />
              </span>
            </li>
          ))}
        </ul>
      )}
      {tickets.data && tickets.data.length > shownTickets && (
        <a href={`/console/desk?view=all&q=${encodeURIComponent(email)}`}>
          All tickets in the desk
        </a>
      )}
      {!tickets.data && tickets.error === undefined && <Loading rows={2} />}
      {tickets.error !== undefined && <Failure error={tickets.error} retry={tickets.reload} />}
    </section>
  )
}
