/** Runs at most `permits` pieces of work at once; up to `maxWaiting` others wait in line.
 *  `refused` makes the error for the one that finds the line full. */
export function createSemaphore(permits: number, maxWaiting: number, refused: () => Error) {
  let running = 0
  const waiting: Array<() => void> = []

  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (running >= permits) {
      if (waiting.length >= maxWaiting) throw refused()
      await new Promise<void>((resolve) => waiting.push(resolve))
    } else {
      running++
    }
    try {
      return await work()
    } finally {
      // The permit passes to whoever has waited longest.
      const next = waiting.shift()
      if (next) next()
      else running--
    }
  }
}

/** Runs work under the same key one after the other, in the order of the calls. */
export function createKeyedMutex() {
  const last = new Map<string, Promise<unknown>>()

  return async <T>(key: string, work: () => Promise<T>): Promise<T> => {
    const before = last.get(key) ?? Promise.resolve()
    const mine = before.then(work, work)
    last.set(key, mine)
    try {
      return await mine
    } finally {
      if (last.get(key) === mine) last.delete(key)
    }
  }
}
