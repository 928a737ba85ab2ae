import type { Write } from '../db/writer.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Job, JobKind, Outbox, OutboxJobs } from './outbox.ts'

/** Does a job of its kind. Throwing postpones it; a `PermanentFailure` gives it up at once.
 *  A job may run again after a crash: `id` is the same then, for whoever can tell doubles apart by it.
 *  A long one does a share, sooner when `isStopping`, and answers 'again' while there is more to do. */
export type JobHandler<K extends JobKind> = (
  payload: OutboxJobs[K],
  job: { id: string; isStopping: () => boolean },
) => Promise<'again' | undefined>
export type JobHandlers = { [K in JobKind]: JobHandler<K> }

/** A failure that trying again cannot mend. */
export class PermanentFailure extends Error {}

type RunnerOptions = {
  outbox: Outbox
  handlers: JobHandlers
  write: Write
  clock: Clock
  log: Log
  /** 0 ≤ n < 1 */
  random: () => number
}

const pollMilliseconds = 500
const atOnce = 4
const leaseMilliseconds = 120_000
const maxAttempts = 12
const firstDelayMilliseconds = 5_000
const longestDelayMilliseconds = 3_600_000

/** Works the outbox off: claims what is due, does it, tries again with growing delays, gives up visibly. There is one
 *  runner on a database, so what was leased when it starts belonged to a process that died. */
export function startRunner({ outbox, handlers, write, clock, log, random }: RunnerOptions) {
  const running = new Map<string, Promise<void>>()
  let isClaiming = false
  let isAskedAgain = false
  let isStopped = false
  let isReleased = false

  const ids = () => new Set(running.keys())

  async function look() {
    isAskedAgain = isClaiming
    if (isStopped || isClaiming || running.size >= atOnce) return
    isClaiming = true
    await claim().catch((error: unknown) => log.warn('jobs could not be claimed', { error }))
    isClaiming = false
    // What fell due during the claim was not in it.
    if (isAskedAgain) void look()
  }

  async function claim() {
    if (!isReleased) await write(() => outbox.releaseAll())
    isReleased = true
    if (!outbox.hasDue()) return
    const jobs = await write(() => outbox.claim(atOnce - running.size, leaseMilliseconds, ids()))
    for (const job of jobs) start(job)
  }

  function start(job: Job) {
    const work = run(job)
      .catch((error: unknown) => log.warn('the outcome of a job could not be kept', { error }))
      .finally(() => {
        running.delete(job.id)
        void look()
      })
    running.set(job.id, work)
  }

  async function run(job: Job) {
    try {
      const handle = handlers[job.kind as JobKind] as JobHandler<JobKind>
      const payload = job.payload as OutboxJobs[JobKind] // written by `add` for this kind
      const outcome = await handle(payload, { id: job.id, isStopping: () => isStopped })
      await write(() => (outcome === 'again' ? outbox.requeue(job.id) : outbox.finish(job.id)))
    } catch (error) {
      await write(() => fail(job, error))
    }
  }

  function fail({ id, kind, attempts }: Job, error: unknown) {
    const reason = error instanceof Error ? error.message : String(error)
    if (error instanceof PermanentFailure || attempts >= maxAttempts) {
      log.error('a job was given up', { job: id, kind, attempts, reason })
      outbox.bury(id, reason)
      return
    }
    log.warn('a job failed and is tried again', { job: id, kind, attempts, reason })
    outbox.postpone(id, clock.now() + delay(attempts), reason)
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
      await Promise.all(running.values())
    },
  }
}
