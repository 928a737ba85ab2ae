import { type Limit, SlidingWindow } from '../lib/limits.ts'
import { createLru } from '../lib/lru.ts'

export type RateLimit = Limit | 'off'
export type RateLimits = Record<'login' | 'register' | 'user' | 'anonymous' | 'service', RateLimit>

export type RateVerdict = ReturnType<typeof verdictOf>

const maxKeys = 100_000

export function createRateLimiter(now: () => number, max = maxKeys) {
  const windows = createLru<SlidingWindow>(max)

  function take(key: string, limit: RateLimit, time = now()): RateVerdict | undefined {
    if (limit === 'off') return undefined
    let window = windows.get(key)
    if (!window) {
      window = new SlidingWindow()
      windows.set(key, window)
    }
    return verdictOf(window, limit, time, window.take(limit, time))
  }

  function peek(key: string, limit: RateLimit): RateVerdict | undefined {
    if (limit === 'off') return undefined
    const window = windows.peek(key) ?? new SlidingWindow()
    return verdictOf(window, limit, now(), !window.isFull(limit, now()))
  }

  return { take, peek, giveBack: (key: string, at: number) => windows.peek(key)?.giveBack(at) }
}

function verdictOf(window: SlidingWindow, limit: Limit, time: number, allowed: boolean) {
  const freeAt = window.freeAt(limit, time)
  return {
    allowed,
    limit: limit.count,
    remaining: limit.count - window.size,
    resetAtSeconds: Math.ceil(freeAt / 1_000),
    retryAfterSeconds: Math.max(1, Math.ceil((freeAt - time) / 1_000)),
  }
}
