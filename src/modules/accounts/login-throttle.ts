import { LRUCache } from 'lru-cache'
import type { Clock } from '../../lib/clock.ts'
import { AppError } from '../../lib/errors.ts'
import { type Limit, SlidingWindow } from '../../lib/sliding-window.ts'

const failures: Limit = { count: 20, windowMilliseconds: 15 * 60_000 }
const pauseMilliseconds = 60_000
const remembered = 50_000

export type LoginThrottle = ReturnType<typeof createLoginThrottle>

type Record = { window: SlidingWindow; lastFailureAt: number }

/** Slows guessing at one address, known or not, down to one try a minute; nobody is locked out (decisions 3). */
export function createLoginThrottle(clock: Clock, isOn: boolean) {
  const records = new LRUCache<string, Record>({ max: remembered })

  return {
    /** @throws rate_limited, for at most 60 s, after 20 failures in 15 minutes */
    admit(address: string): void {
      const record = records.get(address)
      const now = clock.now()
      if (!isOn || !record?.window.isFull(failures, now)) return
      const wait = record.lastFailureAt + pauseMilliseconds - now
      if (wait > 0) {
        throw new AppError('rate_limited', { retryAfterSeconds: Math.ceil(wait / 1_000) })
      }
    },
    failed(address: string): void {
      const record = records.get(address) ?? { window: new SlidingWindow(), lastFailureAt: 0 }
      record.window.take(failures, clock.now())
      record.lastFailureAt = clock.now()
      records.set(address, record)
    },
    succeeded(address: string): void {
      records.delete(address)
    },
  }
}
