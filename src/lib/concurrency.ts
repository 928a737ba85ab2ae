type Line = { maxWaiting: number; refused: () => Error }

/** Runs at most `permits` pieces of work at once, the others in the order of the calls. With a `line` at most so many of
 *  them wait; `refused` makes the error for the one that finds it full. */
export function createSemaphore(permits: number, line?: Line) {
  let running = 0
  const waiting: Array<() => void> = []

  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (running >= permits) {
      if (line && waiting.length >= line.maxWaiting) throw line.refused()
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

/** A semaphore for each key. */
export function createKeyedSemaphore(permits: number) {
  const byKey = new Map<string, { run: ReturnType<typeof createSemaphore>; users: number }>()

  return async <T>(key: string, work: () => Promise<T>): Promise<T> => {
    const semaphore = byKey.get(key) ?? { run: createSemaphore(permits), users: 0 }
    byKey.set(key, semaphore)
    semaphore.users++
    try {
      return await semaphore.run(work)
    } finally {
      if (--semaphore.users === 0) byKey.delete(key)
    }
  }
}
