import { Bell } from 'lucide-preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { AnnouncementProgress } from '../../../../client/src/contract.ts'
import { count } from '../../kit/format.ts'
import { Loaded } from '../../kit/list.tsx'
import { navigate, useTitle } from '../../kit/router.ts'
import { useShortcut } from '../../kit/shortcuts.tsx'
import { Filled, fill, texts } from '../../kit/texts.tsx'
import { Time } from '../../kit/time.tsx'
import { useQuery } from '../data.ts'
import { BackLink } from '../panes.tsx'
import { audienceText } from './draft.ts'

const words = texts.console.announcements
const pollSeconds = 1.5
const route = 'GET /v1/admin/notifications/{id}'

export function AnnouncementDetails({ id }: { id: string }) {
  const running = useRef(true)
  // No frame reports the progress, so it is polled.
  const found = useQuery(route, { params: { id } }, running.current ? { every: pollSeconds } : {})
  const { data } = found
  running.current = data?.status !== 'completed'
  const heading = useRef<HTMLHeadingElement>(null)
  // The link that led here is gone, so the heading takes the focus.
  useLayoutEffect(() => heading.current?.focus(), [])
  useShortcut('u', words.back, () => navigate('/console/announcements'))
  useTitle(data?.title)
  return (
    <div class="page">
      <header class="row between wrap">
        <div>
          <BackLink area="announcements" />
          <h1 ref={heading} tabIndex={-1} dir="auto">
            {data?.title ?? texts.console.areas.announcements}
          </h1>
          {data && (
            <p>
              <Filled
                text={words.toByAt}
                values={{
                  audience: audienceText(data),
                  name: data.sender.display_name,
                  time: <Time at={data.created_at} />,
                }}
              />
            </p>
          )}
        </div>
      </header>
      <Loaded from={found}>
        {(item) => (
          <>
            <Progress item={item} />
            <Preview title={item.title} body={item.body} />
          </>
        )}
      </Loaded>
    </div>
  )
}

function Progress({ item }: { item: AnnouncementProgress }) {
  const { delivered_count: delivered, recipients_count: all, status } = item
  const isComplete = status === 'completed'
  return (
    <section class="card stack tight delivery" aria-label={words.progress}>
      <div class="row between wrap">
        <h2 class="number">
          {fill(words.someDelivered, { count: count(delivered), all: count(all) })}
        </h2>
        <span class={`badge ${isComplete ? 'good' : ''}`} role="status">
          {isComplete ? words.completed : words.sending}
        </span>
      </div>
      <progress
        aria-label={words.progress}
        max={Math.max(all, 1)}
        value={isComplete && all === 0 ? 1 : delivered}
      />
      {isComplete && delivered < all && <p class="small soft">{words.missing}</p>}
    </section>
  )
}

/** In the layout that most systems use for notifications. */
export function Preview({ title, body }: { title: string; body: string }) {
  return (
    <section class="preview" aria-label={words.preview}>
      <p class="small soft">{words.preview}</p>
      <div class="card preview-card">
        <span class="avatar">
          <Bell />
        </span>
        <div class="entry-lines">
          <p class="row between">
            <strong class="truncate" dir="auto">
              {title || texts.fields.title}
            </strong>
            <span class="small soft">{words.now}</span>
          </p>
          <p class={`prose ${body === '' ? 'soft' : ''}`} dir="auto">
            {body || words.previewBody}
          </p>
        </div>
      </div>
    </section>
  )
}
