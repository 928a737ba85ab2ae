import { Megaphone } from 'lucide-preact'
import type { AnnouncementProgress, CursorPage } from '../../../../client/src/contract.ts'
import { count } from '../../ui/format.ts'
import { useList } from '../../ui/resource.ts'
import { Empty, Failure, Loading } from '../../ui/states.tsx'
import { Time } from '../../ui/time.tsx'
import { request } from '../session.ts'
import { useReconnect } from '../use-reconnect.ts'
import { audienceText } from './audience.ts'

export function History() {
  const list = useList<AnnouncementProgress>(
    'all',
    async (cursor, signal) => {
      const query = { limit: 20, ...(cursor !== undefined && { cursor }) }
      const response = await request('GET /v1/admin/notifications', { query, signal })
      return response as CursorPage<AnnouncementProgress> // with `limit` the response has a cursor
    },
    ({ broadcast_id }) => broadcast_id,
  )
  useReconnect(list.reload)
  const { items, error, isLoading } = list
  return (
    <section class="stack tight" aria-label="Sent before">
      <h2>Sent before</h2>
      {items.length > 0 && (
        <ul class="history">
          {items.map((item) => (
            <Sent key={item.broadcast_id} item={item} />
          ))}
        </ul>
      )}
      {items.length === 0 && isLoading && <Loading />}
      {items.length === 0 && !isLoading && error === undefined && (
        <Empty icon={Megaphone} title="Nothing was sent yet">
          <p>Every broadcast of all admins is listed here.</p>
        </Empty>
      )}
      {error !== undefined && <Failure error={error} retry={list.retry} />}
      {list.hasMore && error === undefined && (
        <button type="button" class="button" onClick={list.loadMore}>
          Show earlier ones
        </button>
      )}
    </section>
  )
}

function Sent({ item }: { item: AnnouncementProgress }) {
  const { broadcast_id, title, sender, status, delivered_count, recipients_count } = item
  return (
    <li>
      <a href={`/console/announcements/${broadcast_id}`}>
        <span class="row between">
          <strong class="truncate">{title}</strong>
          <Time at={item.created_at} />
        </span>
        <span class="row between">
          <span class="truncate">
            To {audienceText(item)}, by {sender.display_name}
          </span>
          <span class="number">
            {status === 'processing'
              ? `${count(delivered_count)} of ${count(recipients_count)}`
              : `${count(delivered_count)} delivered`}
          </span>
        </span>
      </a>
    </li>
  )
}
