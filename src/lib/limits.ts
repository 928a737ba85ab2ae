import { throttled } from './errors.ts'

/** At most `count` events in any window of this length. */
export type Limit = { count: number; windowMilliseconds: number }

export class SlidingWindow {
  #times: number[] = []

  /** Counts an event at `now` unless the window is full; a refused event does not count. */
  take(limit: Limit, now: number): boolean {
    if (this.isFull(limit, now)) return false
    this.#times.push(now)
    return true
  }

  mustTake(limit: Limit, now: number): void {
    if (this.take(limit, now)) return
    throw throttled('rate_limited', this.freeAt(limit, now) - now)
  }

  isFull(limit: Limit, now: number): boolean {
    const until = now - limit.windowMilliseconds
    while ((this.#times[0] ?? Number.POSITIVE_INFINITY) <= until) this.#times.shift()
    // If the clock was set back, later times count as now.
    if ((this.#times.at(-1) ?? now) > now)
      this.#times = this.#times.map((time) => Math.min(time, now))
    return this.size >= limit.count
  }

  giveBack(at: number): void {
    const index = this.#times.lastIndexOf(at)
    if (index >= 0) this.#times.splice(index, 1)
  }

  get size(): number {
    return this.#times.length
  }

  /** When the oldest counted event leaves the window; `now` when there is none. */
  freeAt(limit: Limit, now: number): number {
    const [oldest] = this.#times
    return oldest === undefined ? now : oldest + limit.windowMilliseconds
  }
}

/** `burst` events at once, then one every `millisecondsPerToken`. */
type BucketRule = { burst: number; millisecondsPerToken: number }

export class TokenBucket {
  readonly #rule: BucketRule
  #tokens: number
  #updatedAt: number

  constructor(rule: BucketRule, now: number) {
    this.#rule = rule
    this.#tokens = rule.burst
    this.#updatedAt = now
  }

  take(now: number): boolean {
    const gained = (now - this.#updatedAt) / this.#rule.millisecondsPerToken
    this.#tokens = Math.min(this.#rule.burst, this.#tokens + Math.max(0, gained))
    this.#updatedAt = now
    if (this.#tokens < 1) return false
    this.#tokens--
    return true
  }

  /** After a refusal. */
  get waitMilliseconds(): number {
    return (1 - this.#tokens) * this.#rule.millisecondsPerToken
  }
}
