import type { Core } from '../core.ts'

/** How one row reaches many people, each once, in the order of their ids. */
type FanOut<Row> = {
  /** Undefined once it is complete. */
  find(id: string): Row | undefined
  /** The next people; nobody when the rest are not to be reached. */
  listNext(row: Row, limit: number): string[]
  /** Delivers to one person, inside a `write`.
   *  @returns whether it counts as delivered */
  deliver(row: Row, userId: string): boolean
  updateProgress(row: Row, delivered: number, lastUserId: string): Row
  updateCompleted(row: Row): Row
}

/** People in one commit: the first chunk is served before the answer, the others by a job. Each may have many devices,
 *  and each device makes a row. */
const firstChunk = 20
const chunk = 10
/** Between two chunks others have the loop for about as long as a chunk takes. */
const pauseMilliseconds = 1
/** How long a job works before it lets others run. */
const runMilliseconds = 1_000

/** Delivers to an audience in chunks. The progress is kept in the commit that delivers, so each person is reached once
 *  whenever the process dies. */
export function createFanOut<Row>({ write, clock }: Core, fanOut: FanOut<Row>) {
  function deliverNext(row: Row, size: number) {
    const ids = fanOut.listNext(row, size)
    const delivered = ids.filter((id) => fanOut.deliver(row, id)).length
    const last = ids.at(-1)
    const reached = last === undefined ? row : fanOut.updateProgress(row, delivered, last)
    const isComplete = ids.length < size
    return { row: isComplete ? fanOut.updateCompleted(reached) : reached, isComplete }
  }

  function resume(id: string): boolean {
    const row = fanOut.find(id)
    return row === undefined || deliverNext(row, chunk).isComplete
  }

  return {
    /** Delivers the first chunk, inside a `write`. */
    begin: (row: Row) => deliverNext(row, firstChunk),
    /** Delivers to the others, as a job. */
    async run(id: string, isStopping: () => boolean) {
      const until = clock.now() + runMilliseconds
      while (clock.now() < until && !isStopping()) {
        if (await write(() => resume(id))) return undefined
        await Bun.sleep(pauseMilliseconds)
      }
      return { againAfterMilliseconds: 0 }
    },
  }
}
