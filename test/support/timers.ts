import type { Timers } from '../../client/src/client.ts'

/** The client's timers, which move only by `advance`. They start at the real time, because tokens contain real issue
 *  times. */
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
    /** Advances the time and runs due callbacks in order. */
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
    /** Milliseconds until each timer is due. */
    waiting: () => [...waiting].map(({ at }) => at - now),
  } satisfies Timers & Record<string, unknown>
}
