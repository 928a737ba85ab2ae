import { useState } from 'preact/hooks'
import type { UserDelivery } from '../../../../client/src/contract.ts'
import { Button } from '../../kit/button.tsx'
import { Loaded, Section } from '../../kit/list.tsx'
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
  return (
    <Section title={words.title}>
      <Loaded from={list} rows={2}>
        {(items) => (
          <>
            {items.length === 0 && <p class="soft">{words.none}</p>}
            <ul class="lines">
              {items.slice(0, isWhole ? items.length : shown).map((delivery) => (
                <Line key={delivery.id} delivery={delivery} />
              ))}
            </ul>
            {!isWhole && items.length > shown && (
              <Button onClick={() => setWhole(true)}>{texts.kit.showMore}</Button>
            )}
            {isWhole && list.hasMore && (
              <Button onClick={list.loadMore}>{texts.kit.showMore}</Button>
            )}
          </>
        )}
      </Loaded>
    </Section>
  )
}

function Line({ delivery }: { delivery: UserDelivery }) {
  const { channel, kind, state, answer, at } = delivery
  return (
    <li class="entry-lines">
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
