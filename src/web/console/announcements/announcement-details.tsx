import { ChevronLeft } from 'lucide-preact'
import { useEffect, useRef } from 'preact/hooks'
import type { AnnouncementProgress } from '../../../../client/src/contract.ts'
import { count } from '../../ui/format.ts'
import { useResource } from '../../ui/resource.ts'
import { navigate } from '../../ui/router.ts'
import { useShortcut } from '../../ui/shortcuts.tsx'
import { Failure, Loading } from '../../ui/states.tsx'
import { Time } from '../../ui/time.tsx'
import { request } from '../session.ts'
import { audienceText } from './audience.ts'
import { Preview } from './preview.tsx'

const pollMilliseconds = 1_500
const listAddress = '/console/announcements'

export function AnnouncementDetails({ id }: { id: string }) {
  const found = useResource(id, (signal) =>
    request('GET /v1/admin/notifications/{id}', { params: { id }, signal }),
  )
  const { data, error, isLoading, reload } = found
  const heading = useRef<HTMLHeadingElement>(null)
  // The link that led here is gone, so the heading takes the focus.
  useEffect(() => heading.current?.focus(), [])
  useShortcut('u', 'Back to all broadcasts', () => navigate(listAddress))
  const isRunning = data?.status === 'processing' && !isLoading && error === undefined
  // No frame reports the progress, so it is polled.
  useEffect(() => {
    if (!isRunning) return
    const timer = setTimeout(reload, pollMilliseconds)
    return () => clearTimeout(timer)
  }, [isRunning, reload])

  return (
    <div class="page">
      <header>
        <div>
          <a class="button ghost up" href={listAddress}>
            <ChevronLeft />
            Broadcast
          </a>
          <h1 ref={heading} tabIndex={-1}>
            {data?.title ?? 'Broadcast'}
          </h1>
          {data && (
            <p>
              To {audienceText(data)}, by {data.sender.display_name}, <Time at={data.created_at} />
            </p>
          )}
        </div>
      </header>
      {data && <Progress item={data} />}
      {data && <Preview title={data.title} body={data.body} />}
      {!data && error === undefined && <Loading />}
      {error !== undefined && <Failure error={error} retry={reload} />}
    </div>
  )
}

function Progress({ item }: { item: AnnouncementProgress }) {
  const { delivered_count: delivered, recipients_count: all, status } = item
  const isComplete = status === 'completed'
  return (
    <section class="card stack tight" aria-label="Progress">
      <div class="row between wrap">
        <h2 class="number">
          {count(delivered)} of {count(all)} delivered
        </h2>
        <span class={`badge ${isComplete ? 'good' : 'accent'}`} role="status">
          {isComplete ? 'Completed' : 'Sending'}
        </span>
      </div>
      <progress
        aria-label="Delivered"
        max={Math.max(all, 1)}
        value={isComplete && all === 0 ? 1 : delivered}
      />
      {isComplete && delivered < all && (
        <p class="small soft">
          The others have switched broadcasts off, or have left or been disabled meanwhile.
        </p>
      )}
    </section>
  )
}
