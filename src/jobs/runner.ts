import type { Core } from '../core.ts'
import { PermanentFailure, RetryLater } from '../lib/errors.ts'
import { withoutAddresses } from '../lib/text.ts'
import type { ClaimedJob, JobKind, Lane, OutboxJobs } from './outbox.ts'

/** Does a job of its kind. Throwing postpones it; a `PermanentFailure` gives it up at once.
 *  A job may run again after a crash, with the same `id`: receivers can recognise a double by it.
 *  A job that has more to do, because it is long or because the process `isStopping`, returns when to run again; that is
 *  no failure. `attempts` counts this one; `withOutcome` adds work to the write that keeps how it ended; `signal` ends what
 *  still waits for an answer when the process cannot wait any longer. */
export type JobHandler<K extends JobKind> = (
  payload: OutboxJobs[K],
  job: {
    id: string
    attempts: number
    isStopping: () => boolean
    signal: AbortSignal
    withOutcome: (work: () => void) => void
  },
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
/** Jobs of one kind that run at the same time, in each lane: no kind and no lane waits for another. Deliveries of webhooks
 *  are taken ahead: how many requests an endpoint gets at once is settled where they are made. */
const concurrency: Partial<Record<JobKind, number>> = {
  urgent_push: 32,
  notification_push: 32,
  message_push: 32,
  webhook_delivery: 32,
}
const defaultConcurrency = 4
/** Lanes have many short jobs: what is taken, and how they end, is gathered for so long and written together. Else each would
 *  cost a commit of its own. */
const gatherMilliseconds = 10
/** Whoever sends comes first: by as many times as the event loop came late, lanes wait longer, up to a bound. */
const restFactor = 8
const longestRestMilliseconds = 100
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
  const writeGathered = createGate(write)
  const { handlers, random, onOutcome } = options
  const running = new Map<string, Lane & { work: Promise<void> }>()
  const impatience = new AbortController()
  let nextRunAt = 0
  let lastSeenAt = options.lastSeenAt ?? 0
  let setBackBy = 0
  let isClaiming = false
  let isReleased = false
  let isStopped = false
  let soon: Timer | undefined
  let rest = 0

  outbox.subscribe(({ lane, runAt }) => {
    if (lane !== '' && runAt <= clock.now()) return pollSoon()
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
    const isTurn = ({ lane }: Lane) => lane === '' || soon === undefined
    const due = heads.filter((head) => head.runAt <= now && isTurn(head)).flatMap(listStartable)
    if (due.length > 0) for (const job of await claimed(due)) start(job)
    // What is due already runs, or waits for a place.
    for (const { runAt } of heads) {
      nextRunAt = Math.min(nextRunAt, runAt > now ? runAt : now + pollMilliseconds)
    }
  }

  const claimed = (ids: string[]) => write(() => outbox.claim(ids, leaseMilliseconds))

  /** Due jobs of a lane that do not run yet, as many as may. */
  function listStartable({ kind, lane }: Lane): string[] {
    if (!Object.hasOwn(handlers, kind)) return []
    const others = [...running.values()].filter((job) => job.kind === kind && job.lane === lane)
    const free = (concurrency[kind as JobKind] ?? defaultConcurrency) - others.length
    if (free <= 0) return []
    return outbox
      .listDue({ kind, lane }, free + others.length)
      .filter((id) => !running.has(id))
      .slice(0, free)
  }

  function start(job: ClaimedJob) {
    const work = run(job)
      .then((outcome) => onOutcome(job.kind, outcome))
      .catch((error: unknown) => log.warn('the outcome of a job could not be kept', { error }))
      .finally(() => {
        running.delete(job.id)
        if (job.lane === '') pollNow()
        else pollSoon()
      })
    running.set(job.id, { kind: job.kind, lane: job.lane, work })
  }

  async function run(job: ClaimedJob): Promise<JobOutcome> {
    const keep = job.lane === '' ? write : writeGathered
    let besides = () => {}
    const withOutcome = (work: () => void) => {
      besides = work
    }
    let outcome: Awaited<ReturnType<JobHandler<JobKind>>>
    try {
      const handle = handlers[job.kind as JobKind] as JobHandler<JobKind>
      const payload = job.payload as OutboxJobs[JobKind] // written by `add` for this kind
      const { id, attempts } = job
      const signal = impatience.signal
      const isStopping = () => isStopped
      outcome = await handle(payload, { id, attempts, isStopping, signal, withOutcome })
    } catch (error) {
      return keep(() => {
        besides()
        return fail(job, error)
      })
    }
    return keep(() => {
      besides()
      return succeed(job, outcome?.againAfterMilliseconds)
    })
  }

  function succeed({ id }: ClaimedJob, again: number | undefined): JobOutcome {
    if (again === undefined) outbox.delete(id)
    else outbox.requeue(id, again)
    return again === undefined ? 'done' : 'again'
  }

  function fail({ id, kind, lane, attempts }: ClaimedJob, error: unknown): JobOutcome {
    const reason = withoutAddresses(error instanceof Error ? error.message : String(error))
    if (error instanceof PermanentFailure || attempts >= maxAttempts) {
      log.error('a job was given up', { job: id, kind, attempts, reason })
      outbox.markDead(id, reason)
      return 'given_up'
    }
    // A receiver of somebody else's that is down must not fill the log.
    const logFailure = lane === '' ? log.warn : log.debug
    logFailure('a job failed and is tried again', { job: id, kind, attempts, reason })
    const asked = error instanceof RetryLater ? error.afterMilliseconds : 0
    outbox.postpone(id, clock.now() + Math.max(asked, delay(attempts)), reason)
    return 'failed'
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

  function pollSoon() {
    const pause = gatherMilliseconds + rest
    const dueAt = performance.now() + pause
    soon ??= setTimeout(() => {
      soon = undefined
      rest = Math.min(longestRestMilliseconds, restFactor * (performance.now() - dueAt))
      pollNow()
    }, pause)
  }

  const stopPolling = clock.every(pollMilliseconds, poll)

  return {
    /** Looks at the queue now: another process may have added a job. */
    pollNow,
    /** Claims nothing more and waits for what runs. */
    async stop() {
      isStopped = true
      stopPolling()
      clearTimeout(soon)
      const timer = setTimeout(() => impatience.abort(), stopMilliseconds)
      await Promise.all([...running.values()].map(({ work }) => work))
      clearTimeout(timer)
    },
  }
}

/** Makes `write` wait a moment, for others to share the commit. */
function createGate(write: Core['write']): Core['write'] {
  let waiting: (() => void)[] = []

  function release() {
    const ready = waiting
    waiting = []
    for (const resolve of ready) resolve()
  }

  return async (work) => {
    if (waiting.length === 0) setTimeout(release, gatherMilliseconds)
    await new Promise<void>((resolve) => waiting.push(resolve))
    return write(work)
  }
}
