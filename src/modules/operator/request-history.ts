import { type Clock, minute } from '../../lib/clock.ts'

const keptMinutes = 60
/** The upper bound of a histogram bucket is a fifth above that of the previous one. */
const bucketFactor = 1.2
const firstBoundMilliseconds = 0.1
const buckets = 80

/** One minute of traffic; `at` is its start in ms since the epoch, latencies are in milliseconds. */
export type Minute = {
  at: number
  requests: number
  failed: number
  frames: number
  p50: number | null
  p99: number | null
}

export type RequestHistory = ReturnType<typeof createRequestHistory>

/** Rates and latencies of the last hour, one point per minute; quantiles are accurate to a fifth. */
export function createRequestHistory(clock: Clock) {
  let minutes: Minute[] = []
  let current = empty()

  function empty() {
    const at = Math.floor(clock.now() / minute) * minute
    return { at, requests: 0, failed: 0, frames: 0, counts: new Uint32Array(buckets) }
  }

  function advance() {
    if (clock.now() - current.at < minute && clock.now() >= current.at) return current
    const { counts, ...totals } = current
    const { requests } = totals
    minutes.push({
      ...totals,
      p50: quantile(counts, requests, 0.5),
      p99: quantile(counts, requests, 0.99),
    })
    current = empty()
    minutes = minutes.filter(({ at }) => at >= current.at - keptMinutes * minute)
    return current
  }

  return {
    countRequest(status: number, milliseconds: number): void {
      const now = advance()
      now.requests++
      if (status >= 500) now.failed++
      const ratio = milliseconds / firstBoundMilliseconds
      const bucket = Math.ceil(Math.log(ratio) / Math.log(bucketFactor))
      const index = Math.min(Math.max(bucket, 0), buckets - 1)
      now.counts[index] = (now.counts[index] ?? 0) + 1
    },
    countFrame(): void {
      advance().frames++
    },
    /** Oldest first; minutes without traffic are omitted. */
    list(): Minute[] {
      advance()
      return minutes
    },
  }
}

function quantile(counts: Uint32Array, total: number, share: number): number | null {
  let seen = 0
  const bucket = counts.findIndex((count) => {
    seen += count
    return seen >= total * share
  })
  const bound = firstBoundMilliseconds * bucketFactor ** bucket
  return total === 0 ? null : Math.round(bound * 100) / 100
}
