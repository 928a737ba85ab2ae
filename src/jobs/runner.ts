import type { Core } from '../core.ts'
import { hour } from '../lib/clock.ts'
import { PermanentFailure, RetryLater } from '../lib/errors.ts'
import { withoutAddresses } from '../lib/text.ts'
import type { Delivered, DeliveryRow } from './delivery-store.ts'
import type { DueJob, Failure, JobKind, OutboxJobs, QueueName } from './outbox.ts'

/** An error postpones the job; a `PermanentFailure` gives it up. After a crash it may run again with the same `id`, so
 *  receivers can recognise duplicates. An unfinished job, because it is long or the process `isStopping`, returns the delay
 *  until it goes on. `withOutcome` adds work to the write that stores the outcome; `deliver` sends something to a user and
 *  logs it with the outcome; `signal` aborts pending requests when the process must exit. */
export type JobHandler<K extends JobKind> = (
  payload: OutboxJobs[K],
  job: {
    id: string
    /** Includes this run. */
    attempts: number
    isStopping: () => boolean
    signal: AbortSignal
    withOutcome: (work: AlsoWrite) => void
    deliver: Deliver
  },
) => Promise<{ againAfterMilliseconds: number } | undefined>
type DeliveryOf = Pick<DeliveryRow, 'userId' | 'channel'> & { kind?: string }
export type Deliver = (of: DeliveryOf, send: () => Promise<Delivered>) => Promise<Delivered>
type AlsoWrite = (isLast: boolean) => void
export type JobHandlers = { [K in JobKind]: JobHandler<K> }

export type JobOutcome = 'done' | 'again' | 'failed' | 'given_up'

type RunnerOptions = {
  handlers: JobHandlers
  /** 0 ≤ n < 1 */
  random: () => number
  onOutcome: (kind: string, outcome: JobOutcome) => void
}

const pollMilliseconds = 500
/** Running jobs per kind. A receiver may always run one more, so that hanging receivers do not block the others. */
const slotsPerKind = 64
const slotsPerReceiver = 4
/** One push service serves most devices: with four slots and 100 ms per response, a notification to 100,000 devices
 *  would take 40 minutes. */
const slotsPerPushService = 16
/** Jobs per queue in memory: a read fetches many short jobs, and while outcomes cannot be stored no more are started. */
const heldPerQueue = 32
/** Jobs for receivers are short and many, so their reads and outcomes are batched for this long. */
const batchMilliseconds = 10
/** When the event loop lags, jobs for receivers wait eight times the lag, so that requests go first. */
const lagFactor = 8
const longestPauseMilliseconds = 100
const maxAttempts = 12
const firstDelayMilliseconds = 5_000
const longestDelayMilliseconds = hour

/** `held` are in memory until their outcome is stored; of these, `ready` wait for a slot. */
type Queue = QueueName & { held: Set<string>; ready: string[]; running: number }
type JobEnd = {
  again?: number | undefined
  failure?: Failure | undefined
  alsoWrite: AlsoWrite
  /** Without a result, the failure is the result. */
  delivery?: (DeliveryOf & Partial<Delivered>) | undefined
}

/** Only this process runs jobs, so the running ones are in memory. A row changes only with the outcome: waiting costs no
 *  write and no attempt, and a crash leaves no lock behind. An idle runner reads nothing, for it knows the next due time. */
export function startRunner(core: Core, options: RunnerOptions) {
  const { outbox, deliveries, write, clock, log } = core
  const writeBatched = createBatchedWrite(write)
  const { handlers, random, onOutcome } = options
  const queues = new Map<string, Queue>()
  const works = new Set<Promise<void>>()
  const stopSignal = new AbortController()
  let nextRunAt = 0
  let isStopped = false
  let isBlocked = false
  let pollTimer: Timer | undefined
  let pause = batchMilliseconds

  outbox.subscribe(({ receiver, runAt }) => {
    if (receiver !== '' && runAt <= clock.now()) return pollSoon()
    nextRunAt = Math.min(nextRunAt, runAt)
    // One poll for all jobs of a commit.
    queueMicrotask(poll)
  })

  function poll() {
    if (!isStopped && nextRunAt <= clock.now()) readDue()
  }

  function readDue() {
    const now = clock.now()
    nextRunAt = Number.POSITIVE_INFINITY
    for (const head of outbox.heads()) {
      const isDue = head.runAt <= now
      // A due job is already held, or waits for others of its queue.
      nextRunAt = Math.min(nextRunAt, isDue ? now + pollMilliseconds : head.runAt)
      const isTurn = head.receiver === '' || pollTimer === undefined
      if (isDue && isTurn && Object.hasOwn(handlers, head.kind)) hold(queueOf(head))
    }
  }

  function queueOf({ kind, receiver }: QueueName): Queue {
    const empty = { kind, receiver, held: new Set<string>(), ready: [], running: 0 }
    return queues.getOrInsert(nameOf(empty), empty)
  }

  /** Its webhook may be removed: an empty queue is made anew with the next job. */
  function release(queue: Queue, ids: string[]) {
    for (const id of ids) queue.held.delete(id)
    if (queue.held.size === 0) queues.delete(nameOf(queue))
  }

  function hold(queue: Queue) {
    const { held, ready } = queue
    const unknown = outbox.listDue(queue, heldPerQueue).filter((id) => !held.has(id))
    const ids = unknown.slice(0, heldPerQueue - held.size)
    if (ids.length === 0) return
    for (const id of ids) held.add(id)
    // The rows may be unsynced, or another node may lead. An empty write resolves once both are settled.
    write(() => {}).then(
      () => {
        isBlocked = false
        ready.push(...ids)
        startReady(queue)
      },
      (error: unknown) => {
        if (!isBlocked) log.warn('jobs cannot be started: trying again', { error })
        isBlocked = true
        release(queue, ids)
      },
    )
  }

  function startReady(queue: Queue) {
    while (!isStopped && hasSlot(queue)) {
      const id = queue.ready.shift()
      if (id === undefined) return
      queue.running++
      const work = run(queue, id).finally(() => works.delete(work))
      works.add(work)
    }
  }

  function hasSlot({ kind, running }: Queue): boolean {
    if (running === 0) return true
    const sameKind = [...queues.values()].filter((queue) => queue.kind === kind)
    const slots = kind.endsWith('_push') ? slotsPerPushService : slotsPerReceiver
    const runningOfKind = sameKind.reduce((sum, queue) => sum + queue.running, 0)
    return running < slots && runningOfKind < slotsPerKind
  }

  async function run(queue: Queue, id: string): Promise<void> {
    const job = outbox.findDue(id)
    const end = job && (await handle(job))
    queue.running--
    startReady(queue)
    if (job && end) await storeOutcome(job, end)
    release(queue, [id])
    if (queue.receiver !== '') pollSoon()
    else pollNow()
  }

  async function handle(job: DueJob): Promise<JobEnd> {
    let alsoWrite: AlsoWrite = () => {}
    const withOutcome = (work: AlsoWrite) => {
      alsoWrite = work
    }
    let delivery: JobEnd['delivery']
    const deliver: Deliver = async (of, send) => {
      delivery = of
      const delivered = await send()
      delivery = { ...of, ...delivered }
      return delivered
    }
    const handler = handlers[job.kind as JobKind] as JobHandler<JobKind>
    const payload = job.payload as OutboxJobs[JobKind] // written by `add` for this kind
    const isStopping = () => isStopped
    const { signal } = stopSignal
    try {
      const next = await handler(payload, { ...job, isStopping, signal, withOutcome, deliver })
      return { again: next?.againAfterMilliseconds, alsoWrite, delivery }
    } catch (error) {
      return { failure: failureOf(job, error), alsoWrite, delivery }
    }
  }

  // The job stays held until its outcome is stored: otherwise it would run again and again on a full disk.
  async function storeOutcome(job: DueJob, end: JobEnd): Promise<void> {
    for (let failures = 0; !(await tryStore(job, end, failures)) && !isStopped; failures++) {
      await Bun.sleep(pollMilliseconds)
    }
  }

  async function tryStore(job: DueJob, end: JobEnd, failures: number): Promise<boolean> {
    const store = job.receiver === '' ? write : writeBatched
    try {
      const outcome = await store(() => applyOutcome(job, end))
      if (end.failure) report(job, outcome, end.failure)
      onOutcome(job.kind, outcome)
      return true
    } catch (error) {
      if (failures === 0)
        log.warn('the outcome of a job could not be stored yet', { job: job.id, error })
      return false
    }
  }

  function applyOutcome(job: DueJob, end: JobEnd): JobOutcome {
    const { id } = job
    const { again, alsoWrite } = end
    const { attempts, failure } = currentFailure(job, end.failure)
    alsoWrite(again === undefined && failure?.runAt === undefined)
    recordDelivery(job, { ...end, failure })
    if (failure) {
      outbox.fail(id, attempts, failure)
      return failure.runAt === undefined ? 'given_up' : 'failed'
    }
    if (again === undefined) outbox.delete(id)
    else outbox.requeue(id, again)
    return again === undefined ? 'done' : 'again'
  }

  /** A job that was discarded during the attempt is not tried again; one that was retried has begun a new series. */
  function currentFailure({ id, runAt, attempts }: DueJob, failure: Failure | undefined) {
    const now = failure && outbox.find(id)
    if (!failure || now?.runAt === runAt) return { attempts, failure }
    return { attempts: now?.attempts ?? attempts, failure: { ...failure, runAt: now?.runAt } }
  }

  function recordDelivery({ id, kind, attempts }: DueJob, { again, failure, delivery }: JobEnd) {
    const state = failure?.runAt === undefined ? 'failed' : 'waiting'
    const result = { state, answer: failure?.reason ?? null, kind } as const
    if (delivery) deliveries.record({ ...result, ...delivery, id, attempts })
    else if (!failure && again === undefined) deliveries.skip(id)
  }

  function failureOf({ attempts }: DueJob, error: unknown): Failure {
    const reason = withoutAddresses(error instanceof Error ? error.message : String(error))
    const isOver = error instanceof PermanentFailure || attempts >= maxAttempts
    if (isOver) return { reason, runAt: undefined }
    const requested = error instanceof RetryLater ? error.afterMilliseconds : 0
    return { reason, runAt: clock.now() + Math.max(requested, delay(attempts)) }
  }

  function report(job: DueJob, outcome: JobOutcome, { reason }: Failure) {
    const { id, kind, receiver, attempts } = job
    const fields = { job: id, kind, attempts, reason }
    if (outcome === 'given_up') return log.error('a job was given up', fields)
    // An endpoint that is down must not fill the log.
    const logFailure = receiver === '' ? log.warn : log.debug
    logFailure('a job failed and will be retried', fields)
  }

  // Doubles with each attempt, plus or minus a fifth, so that jobs that failed together are not retried together.
  function delay(attempts: number) {
    const full = Math.min(longestDelayMilliseconds, firstDelayMilliseconds * 2 ** (attempts - 1))
    return Math.round(full * (0.8 + 0.4 * random()))
  }

  function pollNow() {
    nextRunAt = 0
    poll()
  }

  function pollSoon() {
    const dueAt = performance.now() + pause
    pollTimer ??= setTimeout(() => {
      pollTimer = undefined
      const lag = performance.now() - dueAt
      pause = batchMilliseconds + Math.min(longestPauseMilliseconds, lagFactor * lag)
      pollNow()
    }, pause)
  }

  const stopPolling = clock.every(pollMilliseconds, poll)

  return {
    /** @param deadlineMilliseconds until jobs that still run are aborted: the next start repeats them */
    async stop(deadlineMilliseconds: number) {
      isStopped = true
      stopPolling()
      const timer = setTimeout(() => stopSignal.abort(), deadlineMilliseconds)
      await Promise.all(works)
      clearTimeout(timer)
    },
  }
}

const nameOf = ({ kind, receiver }: QueueName) => `${kind} ${receiver}`

/** Delays each `write` by a moment, so that several share a commit. */
function createBatchedWrite(write: Core['write']): Core['write'] {
  let batch: Promise<void> | undefined
  return async (work) => {
    batch ??= Bun.sleep(batchMilliseconds).then(() => {
      batch = undefined
    })
    await batch
    return write(work)
  }
}
