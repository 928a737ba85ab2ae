import { useRef, useState } from 'preact/hooks'
import type { UserDelivery } from '../../../../client/src/contract.ts'
import { Button } from '../../kit/button.tsx'
import { useFocusWhenLost } from '../../kit/form.tsx'
import { Loaded, Section } from '../../kit/list.tsx'
import { Failure } from '../../kit/states.tsx'
import { named, texts } from '../../kit/texts.tsx'
import { Time } from '../../kit/time.tsx'
import { useList } from '../data.ts'

const words = texts.console.people.deliveries
const kindNames = { ...texts.console.system.jobs.kinds, ...words.kinds }
const tones = { sent: 'good', waiting: 'warning', failed: 'danger', bounced: 'danger', skipped: '' }
const shown = 10

/** The latest mails and pushes to a person, with their outcome. */
export function Deliveries({ id }: { id: string }) {
  const list = useList('GET /v1/admin/users/{id}/deliveries', { params: { id } })
  const [isWhole, setWhole] = useState(false)
  const items = isWhole ? list.items : list.items.slice(0, shown)
  const hasMore = list.hasMore || items.length < list.items.length
  const hasFailed = list.error !== undefined && !list.isStale
  const known = useRef(0)
  const rows = useFocusWhenLost<HTMLUListElement>(hasMore, `li:nth-child(${known.current + 1})`)
  function showMore() {
    known.current = items.length
    if (isWhole) list.loadMore()
    setWhole(true)
  }
  return (
    <Section title={words.title}>
      <Loaded from={list} rows={2}>
        {() => (
          <>
            {items.length === 0 && <p class="soft">{words.none}</p>}
            <ul class="lines" ref={rows}>
              {items.map((delivery) => (
                <Line key={delivery.id} delivery={delivery} />
              ))}
            </ul>
            {hasFailed && <Failure error={list.error} retry={list.retry} />}
            {hasMore && !hasFailed && <Button onClick={showMore}>{texts.kit.showMore}</Button>}
          </>
        )}
      </Loaded>
    </Section>
  )
}

function Line({ delivery }: { delivery: UserDelivery }) {
  const { channel, kind, state, answer, at } = delivery
  return (
    <li class="entry-lines" tabIndex={-1}>
      <span class="row between">
        <span class="row wrap">
          {words.channels[channel]}: {named(kindNames, kind)}
          <span class={`badge ${tones[state]}`}>{words.states[state]}</span>
        </span>
        <span class="small soft end">
          <Time at={at} />
        </span>
      </span>
      {answer && <span class="small soft prose">{answer}</span>}
    </li>
  )
}
