import { CircleCheck } from 'lucide-preact'
import { useRef } from 'preact/hooks'
import type { CursorPage, Job } from '../../../../client/src/contract.ts'
import { ApiError } from '../../../../client/src/errors.ts'
import { useAction } from '../../ui/action.ts'
import { confirmAction } from '../../ui/dialog.tsx'
import { count } from '../../ui/format.ts'
import { useList } from '../../ui/resource.ts'
import { query, withQuery } from '../../ui/router.ts'
import { Empty } from '../../ui/states.tsx'
import { Time } from '../../ui/time.tsx'
import { toast } from '../../ui/toast.tsx'
import { inWords } from '../names.ts'
import { pageQuery, pageSize } from '../page-query.ts'
import { useRefresh } from '../refresh.ts'
import { RowList } from '../row-list.tsx'
import { request } from '../session.ts'

type Work = (id: string) => Promise<unknown>

const retry: Work = (id) => request('POST /v1/admin/jobs/{id}/retry', { params: { id } })
const discard: Work = (id) => request('DELETE /v1/admin/jobs/{id}', { params: { id } })

/** Failed and waiting jobs. */
export function Jobs() {
  const state = query.value.get('state') === 'waiting' ? 'waiting' : 'dead'
  const list = useList(
    state,
    (cursor, signal) =>
      request('GET /v1/admin/jobs', {
        query: { ...pageQuery(cursor), state },
        signal,
      }) as Promise<CursorPage<Job>>, // with `limit` the response has a cursor
  )
  const frame = useRef<HTMLDivElement>(null)
  // Rows under the pointer, and further pages that were loaded, must stay.
  const isPaused = () => list.items.length > pageSize || frame.current?.matches(':hover') === true
  useRefresh(list.reload, { seconds: 15, isPaused })
  const act = useAction(async (work: Work, ids: string[], done: string) => {
    let number = 0
    try {
      for (const id of ids) {
        await work(id).catch(passWhenGone)
        number++
      }
    } finally {
      const some = number < ids.length ? `${count(number)} of ${jobs(ids.length)}` : jobs(number)
      if (number > 0) toast(`${some} ${done}.`)
      list.reload()
    }
  })
  return (
    <>
      <div class="row between wrap">
        <nav class="segments" aria-label="Jobs by state">
          <a href={withQuery({ state: undefined })} aria-current={state === 'dead' && 'page'}>
            Given up
          </a>
          <a href={withQuery({ state: 'waiting' })} aria-current={state === 'waiting' && 'page'}>
            Waiting
          </a>
        </nav>
        {list.items.length > 0 && <AllShown items={list.items} act={act.run} />}
      </div>
      <div ref={frame}>
        <RowList
          label={state === 'dead' ? 'Jobs that were given up' : 'Jobs that wait'}
          list={list}
          empty={<NoJobs state={state} />}
          render={(job) => <JobRow job={job} act={act.run} />}
        />
      </div>
    </>
  )
}

type Act = (work: Work, ids: string[], done: string) => Promise<boolean>

function AllShown({ items, act }: { items: Job[]; act: Act }) {
  const ids = items.map(({ id }) => id)
  async function discardAll() {
    const title = `Discard ${jobs(ids.length)}?`
    const text = 'What they were to do is not done. This cannot be undone.'
    if (!(await confirmAction({ title, text, action: 'Discard', isDangerous: true }))) return
    await act(discard, ids, 'discarded')
  }
  return (
    <div class="row">
      <button type="button" class="button" onClick={() => act(retry, ids, 'will run again')}>
        Retry all shown
      </button>
      <button type="button" class="button danger" onClick={discardAll}>
        Discard all shown
      </button>
    </div>
  )
}

function JobRow({ job, act }: { job: Job; act: Act }) {
  const { id, kind, state, attempts, last_error: error, run_at: runAt } = job
  const name = inWords(kind)
  async function discardOne() {
    const title = `Discard “${name}”?`
    const text = 'What it was to do is not done. This cannot be undone.'
    const mayDiscard = await confirmAction({ title, text, action: 'Discard', isDangerous: true })
    if (mayDiscard) await act(discard, [id], 'discarded')
  }
  return (
    <>
      <div class="main">
        <h2>{name}</h2>
        {error && <p class="small prose">{error}</p>}
        <p class="soft small">
          {state === 'dead' ? 'Given up after ' : ''}
          {attempts === 1 ? '1 attempt' : `${count(attempts)} attempts`},{' '}
          {state === 'dead' ? 'last due' : 'due'} <Time at={runAt} />
        </p>
      </div>
      <div class="row">
        <button
          type="button"
          class="button"
          aria-label={`Retry ${name}`}
          onClick={() => act(retry, [id], 'will run again')}
        >
          Retry
        </button>
        <button
          type="button"
          class="button ghost danger"
          aria-label={`Discard ${name}`}
          onClick={discardOne}
        >
          Discard
        </button>
      </div>
    </>
  )
}

function NoJobs({ state }: { state: Job['state'] }) {
  const title = state === 'dead' ? 'Nothing was given up' : 'Nothing waits'
  return (
    <Empty icon={CircleCheck} title={title}>
      <p>
        {state === 'dead'
          ? 'Mails, pushes and deliveries that fail again and again would be here.'
          : 'Mails, pushes and deliveries on their way would be here.'}
      </p>
    </Empty>
  )
}

const jobs = (number: number) => (number === 1 ? '1 job' : `${count(number)} jobs`)

// Another admin or the job runner was quicker.
function passWhenGone(error: unknown) {
  if (!(error instanceof ApiError && error.code === 'not_found')) throw error
}
