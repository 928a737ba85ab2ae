import { LRUCache } from 'lru-cache'
import type { Clock } from '../../lib/clock.ts'
import { AppError } from '../../lib/errors.ts'
import { type Limit, SlidingWindow } from '../../lib/limits.ts'

const failures: Limit = { count: 20, windowMilliseconds: 15 * 60_000 }
const pauseMilliseconds = 60_000
const remembered = 50_000

export type LoginThrottle = ReturnType<typeof createLoginThrottle>

type Tries = { window: SlidingWindow; lastTryAt: number }

/** Slows guessing at one address, known or not, down to one try a minute; nobody is locked out (decisions 3). */
export function createLoginThrottle(clock: Clock, isOn: boolean) {
  const records = new LRUCache<string, Tries>({ max: remembered })

  return {
    /** Counts a try, before it is known how it ends: many at once must not slip through.
     *  @throws rate_limited, for at most 60 s, after 20 failures in 15 minutes */
    admit(address: string): void {
      if (!isOn) return
      const now = clock.now()
      const tries = records.get(address) ?? { window: new SlidingWindow(), lastTryAt: 0 }
      const wait = tries.lastTryAt + pauseMilliseconds - now
      if (tries.window.isFull(failures, now) && wait > 0) {
        throw new AppError('rate_limited', { retryAfterSeconds: Math.ceil(wait / 1_000) })
      }
      tries.window.take(failures, now)
      tries.lastTryAt = now
      records.set(address, tries)
    },
    /** Forgets the tries at an address: the last one was right. */
    succeeded(address: string): void {
      records.delete(address)
    },
  }
}
