import type { Write } from '../db/writer.ts'
import type { Clock } from '../lib/clock.ts'

/** How something reaches many: whom it visits, in the order of their ids, and what it does there. */
type Walk<Row, Told> = {
  /** Undefined when it is over. */
  find(id: string): Row | undefined
  /** The next people; nobody when the rest are not to be visited. */
  next(row: Row, limit: number): string[]
  /** For inside a `write`. */
  deliver(row: Row, userId: string): Told
  updateProgress(row: Row, told: readonly Told[], lastUserId: string): Row
  updateCompleted(row: Row): Row
  /** For after the commit. */
  tell(told: Told): void
}

type AudienceWalkOptions<Row, Told> = { walk: Walk<Row, Told>; write: Write; clock: Clock }

/** People in one commit: the first share is served before the answer, the others by a job. Each may have many devices,
 *  of which each makes a row. */
const firstPart = 20
const part = 10
/** Between two parts others have the loop to themselves, about as long as a part takes. */
const pauseMilliseconds = 1
/** How long a job goes on before it lets others run. */
const shareMilliseconds = 1_000

/** Visits an audience. How far it has come is kept in the commit that visits: each is visited once, whenever the process
 *  dies. */
export function createAudienceWalk<Row, Told>(options: AudienceWalkOptions<Row, Told>) {
  const { walk, write, clock } = options

  function visit(row: Row, size: number) {
    const ids = walk.next(row, size)
    const told = ids.map((id) => walk.deliver(row, id))
    const last = ids.at(-1)
    const reached = last === undefined ? row : walk.updateProgress(row, told, last)
    const isComplete = ids.length < size
    return { row: isComplete ? walk.updateCompleted(reached) : reached, told, isComplete }
  }

  function visitNext(id: string): { told: Told[]; isComplete: boolean } {
    const row = walk.find(id)
    return row ? visit(row, part) : { told: [], isComplete: true }
  }

  return {
    /** The first share, for inside a `write`. */
    begin: (row: Row) => visit(row, firstPart),
    tell: (told: readonly Told[]) => told.forEach(walk.tell),
    /** The others, for a job. */
    async goOn(id: string, isStopping: () => boolean) {
      const until = clock.now() + shareMilliseconds
      while (clock.now() < until && !isStopping()) {
        const { told, isComplete } = await write(() => visitNext(id))
        told.forEach(walk.tell)
        if (isComplete) return undefined
        await Bun.sleep(pauseMilliseconds)
      }
      return { againAfterMilliseconds: 0 }
    },
  }
}
