import type { Write } from '../db/writer.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Job, JobKind, Outbox, OutboxJobs } from './outbox.ts'

/** Does a job of its kind. Throwing postpones it; a `PermanentFailure` gives it up at once.
 *  A job may run again after a crash: `id` is the same then, for whoever can tell doubles apart by it.
 *  One that is not done, a long one after a share of its work or as soon as it `isStopping`, answers after how long to
 *  go on; that is no failure. What still waits for somebody when the process has waited long enough is told by `signal`. */
export type JobHandler<K extends JobKind> = (
  payload: OutboxJobs[K],
  job: { id: string; isStopping: () => boolean; signal: AbortSignal },
) => Promise<{ againAfterMilliseconds: number } | undefined>
export type JobHandlers = { [K in JobKind]: JobHandler<K> }

/** What became of a run of a job: again is a share of its work, failed is tried again later. */
export type JobOutcome = 'done' | 'again' | 'failed' | 'given_up'

/** A failure that trying again cannot mend. */
export class PermanentFailure extends Error {}

/** A failure of somebody who has said how long to leave them alone. */
export class RetryLater extends Error {
  readonly afterMilliseconds: number

  constructor(message: string, afterMilliseconds: number, options?: ErrorOptions) {
    super(message, options)
    this.afterMilliseconds = afterMilliseconds
  }
}

type RunnerOptions = {
  outbox: Outbox
  handlers: JobHandlers
  write: Write
  clock: Clock
  log: Log
  /** 0 ≤ n < 1 */
  random: () => number
  /** Told of every run, once its outcome is kept. */
  onOutcome?: (kind: string, outcome: JobOutcome) => void
}

const pollMilliseconds = 500
/** Jobs of one kind that run at the same time: no kind waits for another. */
const atOnce: Partial<Record<JobKind, number>> = {
  urgent_push: 32,
  notification_push: 32,
  message_push: 32,
}
const usuallyAtOnce = 4
const leaseMilliseconds = 120_000
const maxAttempts = 12
const firstDelayMilliseconds = 5_000
const longestDelayMilliseconds = 3_600_000
const stopPatienceMilliseconds = 4_000

/** Works the outbox off: claims what is due, does it, tries again with growing delays, gives up visibly. There is one
 *  runner on a database, so what was leased when it starts belonged to a process that died. */
export function startRunner(options: RunnerOptions) {
  const { outbox, handlers, write, clock, log, random } = options
  const running = new Map<string, { kind: string; work: Promise<void> }>()
  const kinds = Object.keys(handlers) as JobKind[]
  let isClaiming = false
  let isAskedAgain = false
  let isStopped = false
  let isReleased = false
  const impatience = new AbortController()

  async function look() {
    isAskedAgain = isClaiming
    if (isStopped || isClaiming) return
    isClaiming = true
    await claim().catch((error: unknown) => log.warn('jobs could not be claimed', { error }))
    isClaiming = false
    // What fell due during the claim was not in it.
    if (isAskedAgain) void look()
  }

  async function claim() {
    if (!isReleased) await write(() => outbox.releaseAll())
    isReleased = true
    if (kinds.every((kind) => next(kind).length === 0)) return
    const jobs = await write(() => outbox.claim(kinds.flatMap(next), leaseMilliseconds))
    for (const job of jobs) start(job)
  }

  /** Due jobs of a kind that do not run yet, as many as may. */
  function next(kind: JobKind): string[] {
    const others = [...running.values()].filter((job) => job.kind === kind).length
    const free = (atOnce[kind] ?? usuallyAtOnce) - others
    if (free <= 0) return []
    return outbox
      .listDue(kind, free + others)
      .filter((id) => !running.has(id))
      .slice(0, free)
  }

  function start(job: Job) {
    const work = run(job)
      .catch((error: unknown) => log.warn('the outcome of a job could not be kept', { error }))
      .finally(() => {
        running.delete(job.id)
        void look()
      })
    running.set(job.id, { kind: job.kind, work })
  }

  async function run(job: Job) {
    options.onOutcome?.(job.kind, await settle(job))
  }

  async function settle(job: Job): Promise<JobOutcome> {
    let outcome: Awaited<ReturnType<JobHandler<JobKind>>>
    try {
      const handle = handlers[job.kind as JobKind] as JobHandler<JobKind>
      const payload = job.payload as OutboxJobs[JobKind] // written by `add` for this kind
      outcome = await handle(payload, {
        id: job.id,
        isStopping: () => isStopped,
        signal: impatience.signal,
      })
    } catch (error) {
      return write(() => fail(job, error))
    }
    const again = outcome?.againAfterMilliseconds
    await write(() => (again === undefined ? outbox.finish(job.id) : outbox.requeue(job.id, again)))
    return again === undefined ? 'done' : 'again'
  }

  function fail({ id, kind, attempts }: Job, error: unknown): JobOutcome {
    const reason = error instanceof Error ? error.message : String(error)
    if (error instanceof PermanentFailure || attempts >= maxAttempts) {
      log.error('a job was given up', { job: id, kind, attempts, reason })
      outbox.bury(id, reason)
      return 'given_up'
    }
    log.warn('a job failed and is tried again', { job: id, kind, attempts, reason })
    const asked = error instanceof RetryLater ? error.afterMilliseconds : 0
    outbox.postpone(id, clock.now() + Math.max(asked, delay(attempts)), reason)
    return 'failed'
  }

  // Doubling, with a spread of a fifth either way so that what failed together does not come back together.
  function delay(attempts: number) {
    const full = Math.min(longestDelayMilliseconds, firstDelayMilliseconds * 2 ** (attempts - 1))
    return Math.round(full * (0.8 + 0.4 * random()))
  }

  const stopPolling = clock.every(pollMilliseconds, () => void look())

  return {
    /** Claims nothing more and waits for what runs. */
    async stop() {
      isStopped = true
      stopPolling()
      const timer = setTimeout(() => impatience.abort(), stopPatienceMilliseconds)
      await Promise.all([...running.values()].map(({ work }) => work))
      clearTimeout(timer)
    },
  }
}
