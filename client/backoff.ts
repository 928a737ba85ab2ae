const firstMilliseconds = 1_000
const longestMilliseconds = 30_000

/** Pauses between tries: exponential with full jitter, so that clients which lost a server together do not come back
 *  together. */
export function createBackoff(random: () => number) {
  let tries = 0

  return {
    /** Milliseconds to wait before the next try. */
    next(): number {
      const ceiling = Math.min(longestMilliseconds, firstMilliseconds * 2 ** tries)
      tries++
      return random() * ceiling
    },
    reset() {
      tries = 0
    },
  }
}
