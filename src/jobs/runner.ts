import type { Core } from '../core.ts'
import { PermanentFailure, RetryLater } from '../lib/errors.ts'
import { withoutAddresses } from '../lib/text.ts'
import type { ClaimedJob, JobKind, Lane, OutboxJobs } from './outbox.ts'

/** Does a job of its kind. Throwing postpones it; a `PermanentFailure` gives it up at once.
 *  A job may run again after a crash, with the same `id`: receivers can recognise a double by it.
 *  A job that has more to do, because it is long or because the process `isStopping`, returns when to run again; that is
 *  no failure. `attempts` counts this one; `signal` ends what still waits for an answer when the process cannot wait any
 *  longer. */
export type JobHandler<K extends JobKind> = (
  payload: OutboxJobs[K],
  job: { id: string; attempts: number; isStopping: () => boolean; signal: AbortSignal },
) => Promise<{ againAfterMilliseconds: number } | undefined>
export type JobHandlers = { [K in JobKind]: JobHandler<K> }

/** How a run of a job ended: `again` did a part of its work, `failed` is tried again later. */
export type JobOutcome = 'done' | 'again' | 'failed' | 'given_up'

type RunnerOptions = {
  /** When the process before this one was last seen to run: later than now when the clock was set back since. */
  lastSeenAt?: number | undefined
  handlers: JobHandlers
  /** 0 ≤ n < 1 */
  random: () => number
  /** Told of every run, once its outcome is kept. */
  onOutcome: (kind: string, outcome: JobOutcome) => void
}

const pollMilliseconds = 500
/** Jobs of one kind that run at the same time, in each lane: no kind and no lane waits for another. */
const concurrency: Partial<Record<JobKind, number>> = {
  urgent_push: 32,
  notification_push: 32,
  message_push: 32,
}
const defaultConcurrency = 4
/** In all lanes together; only the first place of each is there whatever the others do. */
const mostInLanes = 128
const leaseMilliseconds = 120_000
const maxAttempts = 12
const firstDelayMilliseconds = 5_000
const longestDelayMilliseconds = 3_600_000
const stopMilliseconds = 4_000
/** A clock is corrected by less all the time. */
const setBackMilliseconds = 1_000

/** Works off the outbox: claims what is due, does it, tries again with growing delays, gives up visibly. There is one
 *  runner on a database, so what was leased when it starts belonged to a process that died. An idle runner reads nothing:
 *  it knows when the next job is due. */
export function startRunner(core: Core, options: RunnerOptions) {
  const { outbox, write, clock, log } = core
  const { handlers, random, onOutcome } = options
  const running = new Map<string, Lane & { work: Promise<void> }>()
  const impatience = new AbortController()
  let nextRunAt = 0
  let lastSeenAt = options.lastSeenAt ?? 0
  let setBackBy = 0
  let isClaiming = false
  let isReleased = false
  let isStopped = false

  outbox.subscribe((runAt) => {
    nextRunAt = Math.min(nextRunAt, runAt)
    poll()
  })

  function poll() {
    watchClock()
    if (isStopped || isClaiming || nextRunAt > clock.now()) return
    isClaiming = true
    claim()
      .catch((error: unknown) => {
        log.warn('jobs could not be claimed', { error })
        nextRunAt = clock.now() + pollMilliseconds
      })
      .finally(() => {
        isClaiming = false
        poll()
      })
  }

  // With a clock that is set back, what waits would wait for as long.
  function watchClock() {
    const now = clock.now()
    if (now < lastSeenAt - setBackMilliseconds) {
      setBackBy += lastSeenAt - now
      nextRunAt = 0
    }
    lastSeenAt = now
  }

  async function moveBack() {
    const by = setBackBy
    if (by > 0) await write(() => outbox.moveBack(by))
    setBackBy -= by
  }

  async function claim() {
    nextRunAt = Number.POSITIVE_INFINITY
    await moveBack()
    if (!isReleased) await write(() => outbox.releaseAll())
    isReleased = true
    const now = clock.now()
    const heads = [...outbox.heads()]
    const due = listStartable(heads.filter(({ runAt }) => runAt <= now))
    if (due.length > 0) for (const job of await claimed(due)) start(job)
    // What is due already runs, or waits for a place.
    for (const { runAt } of heads) {
      nextRunAt = Math.min(nextRunAt, runAt > now ? runAt : now + pollMilliseconds)
    }
  }

  const claimed = (ids: string[]) => write(() => outbox.claim(ids, leaseMilliseconds))

  /** Due jobs that do not run yet, as many of each lane as may. */
  function listStartable(lanes: Lane[]): string[] {
    const jobs = [...running.values()]
    let inLanes = jobs.filter(({ lane }) => lane !== '').length
    return lanes.flatMap((lane) => {
      const own = jobs.filter((job) => job.kind === lane.kind && job.lane === lane.lane).length
      const free = freePlaces(lane, own, inLanes)
      if (free <= 0) return []
      const due = outbox.listDue(lane, free + own).filter((id) => !running.has(id))
      const startable = due.slice(0, free)
      if (lane.lane !== '') inLanes += startable.length
      return startable
    })
  }

  function start(job: ClaimedJob) {
    const work = run(job)
      .then((outcome) => onOutcome(job.kind, outcome))
      .catch((error: unknown) => log.warn('the outcome of a job could not be kept', { error }))
      .finally(() => {
        running.delete(job.id)
        pollNow()
      })
    running.set(job.id, { kind: job.kind, lane: job.lane, work })
  }

  async function run(job: ClaimedJob): Promise<JobOutcome> {
    let outcome: Awaited<ReturnType<JobHandler<JobKind>>>
    try {
      const handle = handlers[job.kind as JobKind] as JobHandler<JobKind>
      const payload = job.payload as OutboxJobs[JobKind] // written by `add` for this kind
      const isStopping = () => isStopped
      const { id, attempts } = job
      outcome = await handle(payload, { id, attempts, isStopping, signal: impatience.signal })
    } catch (error) {
      return write(() => fail(job, error))
    }
    const again = outcome?.againAfterMilliseconds
    await write(() => (again === undefined ? outbox.delete(job.id) : outbox.requeue(job.id, again)))
    return again === undefined ? 'done' : 'again'
  }

  function fail({ id, kind, attempts }: ClaimedJob, error: unknown): JobOutcome {
    const reason = withoutAddresses(error instanceof Error ? error.message : String(error))
    if (error instanceof PermanentFailure || attempts >= maxAttempts) {
      log.error('a job was given up', { job: id, kind, attempts, reason })
      outbox.markDead(id, reason)
      return 'given_up'
    }
    log.warn('a job failed and is tried again', { job: id, kind, attempts, reason })
    const asked = error instanceof RetryLater ? error.afterMilliseconds : 0
    outbox.postpone(id, clock.now() + Math.max(asked, delay(attempts)), reason)
    return 'failed'
  }

  function freePlaces({ kind, lane }: Lane, own: number, inLanes: number): number {
    if (!Object.hasOwn(handlers, kind)) return 0
    const free = (concurrency[kind as JobKind] ?? defaultConcurrency) - own
    if (lane === '') return free
    return Math.min(free, Math.max(own === 0 ? 1 : 0, mostInLanes - inLanes))
  }

  // Doubling, with a spread of a fifth either way so that what failed together does not come back together.
  function delay(attempts: number) {
    const full = Math.min(longestDelayMilliseconds, firstDelayMilliseconds * 2 ** (attempts - 1))
    return Math.round(full * (0.8 + 0.4 * random()))
  }

  function pollNow() {
    nextRunAt = 0
    poll()
  }

  const stopPolling = clock.every(pollMilliseconds, poll)

  return {
    /** Looks at the queue now: another process may have added a job. */
    pollNow,
    /** Claims nothing more and waits for what runs. */
    async stop() {
      isStopped = true
      stopPolling()
      const timer = setTimeout(() => impatience.abort(), stopMilliseconds)
      await Promise.all([...running.values()].map(({ work }) => work))
      clearTimeout(timer)
    },
  }
}
