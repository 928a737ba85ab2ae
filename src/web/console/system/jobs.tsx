import { CircleCheck } from 'lucide-preact'
import { useRef } from 'preact/hooks'
import type { Job } from '../../../../client/src/contract.ts'
import { ApiError } from '../../../../client/src/errors.ts'
import { ActionButton } from '../../kit/button.tsx'
import { count, plural } from '../../kit/format.ts'
import { RowList, Segments } from '../../kit/list.tsx'
import { query } from '../../kit/router.ts'
import { Empty } from '../../kit/states.tsx'
import { Filled, fill, named, texts } from '../../kit/texts.tsx'
import { Time } from '../../kit/time.tsx'
import { toast } from '../../kit/toast.tsx'
import { mutate, oneByOne, refresh, useList } from '../data.ts'

const words = texts.console.system.jobs
const { attempts: attemptForms, retry: retryText } = texts.console.system
const route = 'GET /v1/admin/jobs'
type Work = (id: string) => Promise<unknown>
const retry: Work = (id) => mutate('POST /v1/admin/jobs/{id}/retry', { params: { id } })
const discard: Work = (id) => mutate('DELETE /v1/admin/jobs/{id}', { params: { id } })

export function Jobs() {
  const state = query.value.get('state') === 'waiting' ? 'waiting' : 'dead'
  const frame = useRef<HTMLDivElement>(null)
  // Rows under the pointer must stay.
  const isHeld = () => frame.current?.matches(':hover') === true
  const list = useList(route, { query: { state } }, { every: 15, isHeld })
  return (
    <>
      <div class="row between wrap">
        <Segments
          label={words.byState}
          name="state"
          value={state}
          options={Object.entries(words.states)}
        />
        {list.items.length > 0 && <AllShown items={list.items} />}
      </div>
      <div ref={frame}>
        <RowList
          label={words.lists[state]}
          list={list}
          empty={<Empty icon={CircleCheck} {...words.none[state]} />}
          render={(job) => <JobRow job={job} />}
        />
      </div>
    </>
  )
}

/** Works on one job after the other; waits when there were too many requests.
 *  @param done has a place for the jobs */
async function act(work: Work, ids: string[], done: string) {
  let number = 0
  try {
    for (const id of ids) {
      await oneByOne(() => work(id).catch(passWhenGone))
      number++
    }
  } finally {
    const all = plural(words.count, ids.length)
    const jobs =
      number < ids.length ? fill(words.someOf, { number: count(number), jobs: all }) : all
    if (number > 0) toast(fill(done, { jobs }))
    refresh(route, 'GET /v1/admin/system')
  }
}

// Another admin or the job runner was quicker.
function passWhenGone(error: unknown) {
  if (!(error instanceof ApiError && error.code === 'not_found')) throw error
}

function AllShown({ items }: { items: Job[] }) {
  const ids = items.map(({ id }) => id)
  return (
    <div class="row wrap">
      <ActionButton
        texts={{ button: words.retryAll }}
        work={() => act(retry, ids, words.retried)}
      />
      <ActionButton
        tone="danger"
        texts={{
          ...words.discard,
          button: words.discardAll,
          label: words.discardAll,
          action: words.discard.button,
        }}
        values={{ what: plural(words.count, ids.length) }}
        work={() => act(discard, ids, words.discarded)}
      />
    </div>
  )
}

function JobRow({ job }: { job: Job }) {
  const { id, kind, state, attempts, subject, last_error: error, run_at: runAt } = job
  const name = named(words.kinds, kind)
  return (
    <>
      <div class="main">
        <h2>{name}</h2>
        {subject && (
          <p class="small">
            <Filled text={words.for} values={{ name: <Subject subject={subject} /> }} />
          </p>
        )}
        {error && <p class="small prose">{error}</p>}
        <p class="soft small">
          <Filled
            text={state === 'dead' ? words.deadAfter : words.due}
            values={{ attempts: plural(attemptForms, attempts), time: <Time at={runAt} /> }}
          />
        </p>
      </div>
      <div class="row">
        <ActionButton
          texts={{ button: retryText, label: words.retryOne }}
          values={{ name }}
          work={() => act(retry, [id], words.retried)}
        />
        <ActionButton
          tone="ghost danger"
          texts={words.discard}
          values={{ name, what: fill(words.quoted, { name }) }}
          work={() => act(discard, [id], words.discarded)}
        />
      </div>
    </>
  )
}

function Subject({ subject: { type, id, name } }: { subject: NonNullable<Job['subject']> }) {
  const pages = { user: 'people', ticket: 'desk', webhook: 'system/webhooks' }
  const unnamed = () => fill(words.subjects[type], { id: id.slice(-6) })
  return <a href={`/console/${pages[type]}/${id}`}>{name ?? unnamed()}</a>
}
