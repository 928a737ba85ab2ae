import type { Core } from '../core.ts'

type Progress = { completedAt: number | null }

type FanOut<Row extends Progress> = {
  find(id: string): Row | undefined
  /** The next recipients; empty at the end, or when the delivery must stop. */
  listNext(row: Row, limit: number): string[]
  /** Called inside a `write`.
   *  @returns whether it counts as delivered */
  deliver(row: Row, userId: string): boolean
  updateProgress(row: Row, delivered: number, lastUserId: string): Row
  updateCompleted(row: Row): Row
}

/** Users per commit: few, because a user may have many devices and each device adds a row. The first chunk is delivered
 *  before the response, the others by a job. */
const firstChunk = 20
const chunk = 10
/** Pause between two chunks, for other work on the event loop; a chunk takes about as long. */
const pauseMilliseconds = 1
/** A job ends after this time, to let other jobs run, and continues later. */
const runMilliseconds = 1_000

/** Delivers to an audience in chunks. The progress is stored in the commit of each delivery, so after a crash nobody is
 *  skipped or reached twice. */
export function createFanOut<Row extends Progress>(core: Core, fanOut: FanOut<Row>) {
  const { write, clock, outbox } = core

  function deliverNext(row: Row, size: number) {
    const ids = fanOut.listNext(row, size)
    const delivered = ids.filter((id) => fanOut.deliver(row, id)).length
    const last = ids.at(-1)
    const updated = last === undefined ? row : fanOut.updateProgress(row, delivered, last)
    const isComplete = ids.length < size
    return { row: isComplete ? fanOut.updateCompleted(updated) : updated, isComplete }
  }

  function resume(id: string): boolean {
    const row = fanOut.find(id)
    return row?.completedAt !== null || deliverNext(row, chunk).isComplete
  }

  return {
    begin: (row: Row) => deliverNext(row, firstChunk),
    async run(id: string, job: { id: string; isStopping: () => boolean }) {
      const until = clock.now() + runMilliseconds
      while (clock.now() < until && !job.isStopping()) {
        if (await write(() => !outbox.find(job.id) || resume(id))) return undefined
        await Bun.sleep(pauseMilliseconds)
      }
      return { againAfterMilliseconds: 0 }
    },
  }
}
