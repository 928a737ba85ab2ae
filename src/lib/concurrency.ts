type Line = { maxWaiting: number; refused: () => Error }

/** Work of `low` urgency waits for all other work. */
export type Urgency = 'high' | 'low'

/** Runs at most `permits` pieces of work at once, the others by their urgency and then in the order of the calls. With a
 *  `line` at most so many of each urgency wait; `refused` makes the error for the one that finds it full. */
export function createSemaphore(permits: number, line?: Line) {
  let running = 0
  const waiting: Record<Urgency, Array<() => void>> = { high: [], low: [] }

  return async <T>(work: () => Promise<T>, urgency: Urgency = 'high'): Promise<T> => {
    if (running >= permits) {
      if (line && waiting[urgency].length >= line.maxWaiting) throw line.refused()
      await new Promise<void>((resolve) => waiting[urgency].push(resolve))
    } else {
      running++
    }
    try {
      return await work()
    } finally {
      // The permit passes on.
      const next = waiting.high.shift() ?? waiting.low.shift()
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
