import { createHistogram } from 'node:perf_hooks'
import { type Clock, minute } from '../../lib/clock.ts'

const keptMinutes = 60

export type RequestHistory = ReturnType<typeof createRequestHistory>

/** One point per minute. `at` is its start in ms since the epoch; quantiles are in ms, accurate to a hundredth. */
export function createRequestHistory(clock: Clock) {
  let minutes: ReturnType<typeof measured>[] = []
  let current = empty(clock.now())
  const microseconds = createHistogram({ figures: 2 })

  function empty(now: number) {
    return { at: Math.floor(now / minute) * minute, requests: 0, failed: 0, frames: 0 }
  }

  const quantile = (percent: number) =>
    current.requests === 0 ? null : microseconds.percentile(percent) / 1_000

  const measured = () => ({ ...current, p50: quantile(50), p99: quantile(99) })

  function advance() {
    const now = clock.now()
    if (now - current.at < minute && now >= current.at) return current
    minutes.push(measured())
    microseconds.reset()
    current = empty(now)
    minutes = minutes.filter(({ at }) => at >= current.at - keptMinutes * minute)
    return current
  }

  return {
    countRequest(status: number, milliseconds: number): void {
      const now = advance()
      now.requests++
      if (status >= 500) now.failed++
      microseconds.record(Math.max(Math.round(milliseconds * 1_000), 1))
    },
    countFrame(): void {
      advance().frames++
    },
    /** Oldest first; minutes without traffic are omitted. */
    list() {
      advance()
      return minutes
    },
  }
}
