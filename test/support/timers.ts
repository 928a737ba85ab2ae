import type { Timers } from '../../client/src/client.ts'

/** The client's time, which moves only when told to. It starts at the real time, as tokens carry real issue times. */
export function createTestTimers(start = Date.now()) {
  let now = start
  const waiting = new Set<{ at: number; work: () => void }>()

  return {
    now: () => now,
    after(milliseconds: number, work: () => void) {
      const timer = { at: now + milliseconds, work }
      waiting.add(timer)
      return () => {
        waiting.delete(timer)
      }
    },
    /** Moves the time and runs what fell due on the way, in order. */
    advance(milliseconds: number) {
      const end = now + milliseconds
      for (;;) {
        const [next] = [...waiting].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)
        if (!next) break
        waiting.delete(next)
        now = next.at
        next.work()
      }
      now = end
    },
    /** Milliseconds until each timer falls due. */
    waiting: () => [...waiting].map(({ at }) => at - now),
  } satisfies Timers & Record<string, unknown>
}
