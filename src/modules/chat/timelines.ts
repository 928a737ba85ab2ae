import type { Write } from '../../db/writer.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { TimelineStore } from './timeline-store.ts'

type TimelinesOptions = { timelines: TimelineStore; write: Write; clock: Clock; log: Log }

const everyMilliseconds = 250
/** Messages in one transaction: a few milliseconds of the loop. */
const part = 300

/** Keeps the timelines close behind the messages.
 *  @returns how to stop */
export function keepTimelines({ timelines, write, clock, log }: TimelinesOptions): () => void {
  let isStopped = false
  let isRunning = false

  async function run() {
    if (isRunning || !timelines.isBehind()) return
    isRunning = true
    try {
      while (!isStopped && (await write(() => timelines.update(part))) === part);
    } catch (error) {
      log.warn('the timelines could not be written, which is tried again', { error })
    } finally {
      isRunning = false
    }
  }

  const stop = clock.every(everyMilliseconds, () => void run())
  return () => {
    isStopped = true
    stop()
  }
}
