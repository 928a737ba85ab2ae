export type Limit = { count: number; windowMilliseconds: number }

/** The moments of the counted events in the last window: never more than `limit.count` in any window of that length. */
export class SlidingWindow {
  #times: number[] = []
  #first = 0

  /** Counts an event at `now` unless the window is full; a refused event does not count. */
  take(limit: Limit, now: number): boolean {
    if (this.isFull(limit, now)) return false
    this.#times.push(now)
    return true
  }

  isFull(limit: Limit, now: number): boolean {
    this.#forget(now - limit.windowMilliseconds)
    return this.size >= limit.count
  }

  get size(): number {
    return this.#times.length - this.#first
  }

  /** When the oldest counted event leaves the window; `now` when there is none. */
  freeAt(limit: Limit, now: number): number {
    const oldest = this.#times[this.#first]
    return oldest === undefined ? now : oldest + limit.windowMilliseconds
  }

  #forget(until: number) {
    let oldest = this.#times[this.#first]
    while (oldest !== undefined && oldest <= until) {
      this.#first++
      oldest = this.#times[this.#first]
    }
    // Cutting the array off rarely keeps the cost of an event constant.
    if (this.#first > this.#times.length / 2) {
      this.#times = this.#times.slice(this.#first)
      this.#first = 0
    }
  }
}
