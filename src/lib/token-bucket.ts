/** `burst` events at once, then one every `millisecondsPerToken`. */
export type BucketRule = { burst: number; millisecondsPerToken: number }

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

  /** Milliseconds until the next event is taken. */
  get waitMilliseconds(): number {
    return Math.max(0, (1 - this.#tokens) * this.#rule.millisecondsPerToken)
  }
}
