/** The time, injected so that tests can move it. */
export type Clock = {
  /** Milliseconds since the epoch. */
  now(): number
  /** Calls `work` every `milliseconds` until the returned function is called. */
  every(milliseconds: number, work: () => void): () => void
}

export const systemClock: Clock = {
  now: () => Date.now(),
  every(milliseconds, work) {
    const timer = setInterval(work, milliseconds)
    return () => clearInterval(timer)
  },
}

/** ISO 8601 UTC with milliseconds, as the contract writes every timestamp. */
export function isoTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString()
}
