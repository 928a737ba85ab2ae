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

/** At most `each` pieces of work at once for a key and `most` for all keys together, in the order of the calls; only the
 *  first of each key starts whatever the others do. */
export function createSharedSemaphore({ each, most }: { each: number; most: number }) {
  const running = new Map<string, number>()
  const waiting = new Map<string, (() => void)[]>()
  let total = 0

  function mayStart(key: string): boolean {
    const own = running.get(key) ?? 0
    return own === 0 || (own < each && total < most)
  }

  function count(key: string, change: 1 | -1) {
    const own = (running.get(key) ?? 0) + change
    total += change
    if (own > 0) running.set(key, own)
    else running.delete(key)
  }

  function startWaiting(key: string, line: (() => void)[]) {
    while (line.length > 0 && mayStart(key)) {
      count(key, 1)
      line.shift()?.()
    }
    if (line.length === 0) waiting.delete(key)
  }

  function join(key: string): Promise<void> {
    const line = waiting.get(key) ?? []
    waiting.set(key, line)
    return new Promise((resolve) => {
      line.push(resolve)
      startWaiting(key, line)
    })
  }

  return async <T>(key: string, work: () => Promise<T>): Promise<T> => {
    await join(key)
    try {
      return await work()
    } finally {
      count(key, -1)
      for (const [other, line] of waiting) startWaiting(other, line)
    }
  }
}
