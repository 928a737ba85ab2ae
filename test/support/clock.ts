import type { Clock } from '../../src/lib/clock.ts'

/** A clock that moves only when told to. It starts at the real time, as tokens carry real issue times. */
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
    /** Moves the time and runs, once, what fell due on the way. */
    advance(milliseconds: number) {
      now += milliseconds
      for (const entry of repeated) {
        if (entry.next > now) continue
        entry.next = now + entry.every
        entry.work()
      }
    },
    /** Sets the time back, as an operator does: what is repeated goes on at its pace. */
    setBack(milliseconds: number) {
      now -= milliseconds
      for (const entry of repeated) entry.next -= milliseconds
    },
  } satisfies Clock & Record<'advance' | 'setBack', (milliseconds: number) => void>
}
