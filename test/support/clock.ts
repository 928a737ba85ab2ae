import type { Clock } from '../../src/lib/clock.ts'

/** A clock that moves only by its methods. It starts at the real time, because tokens contain real issue times. */
export function createTestClock(start = Date.now()) {
  let now = start
  const repeated = new Set<{ every: number; next: number; work: () => void }>()

  return {
    now: () => now,
    every(milliseconds: number, work: () => void) {
      const entry = { every: milliseconds, next: now + milliseconds, work }
      repeated.add(entry)
      return () => repeated.delete(entry)
    },
    /** The number of intervals that nobody has stopped. */
    intervals: () => repeated.size,
    /** Advances the time and runs each due callback once. */
    advance(milliseconds: number) {
      now += milliseconds
      for (const entry of repeated) {
        if (entry.next > now) continue
        entry.next = now + entry.every
        entry.work()
      }
    },
    /** Sets the time back, as an operator would; intervals continue as before. */
    setBack(milliseconds: number) {
      now -= milliseconds
      for (const entry of repeated) entry.next -= milliseconds
    },
  } satisfies Clock & { intervals: () => number } & Record<
      'advance' | 'setBack',
      (milliseconds: number) => void
    >
}
