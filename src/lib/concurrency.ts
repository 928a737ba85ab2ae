type WaitLimit = { maxWaiting: number; refused: () => Error }

/** Work of `low` urgency waits for all other work. */
export type Urgency = 'high' | 'low'

/** Waiting work runs by urgency, then in call order; `limit` bounds it per urgency. */
export function createSemaphore(permits: number, limit?: WaitLimit) {
  let running = 0
  const waiting: Record<Urgency, Array<() => void>> = { high: [], low: [] }

  return async <T>(work: () => Promise<T>, urgency: Urgency = 'high'): Promise<T> => {
    if (running >= permits) {
      if (limit && waiting[urgency].length >= limit.maxWaiting) throw limit.refused()
      await new Promise<void>((resolve) => waiting[urgency].push(resolve))
    } else {
      running++
    }
    try {
      return await work()
    } finally {
      // The next task takes over the permit.
      const next = waiting.high.shift() ?? waiting.low.shift()
      if (next) next()
      else running--
    }
  }
}

/** Runs one task at a time, then rests for as long as the task took: others have the disk or the core half of the time. */
export function createPacedQueue() {
  const oneAtOnce = createSemaphore(1)
  let rest: Promise<void> | undefined

  return <T>(work: () => Promise<T>): Promise<T> =>
    oneAtOnce(async () => {
      await rest
      const startedAt = performance.now()
      return await work().finally(() => {
        rest = Bun.sleep(performance.now() - startedAt)
      })
    })
}

export function createKeyedSemaphore(permits: number, limit?: WaitLimit) {
  const byKey = new Map<string, { run: ReturnType<typeof createSemaphore>; users: number }>()

  return async <T>(key: string, work: () => Promise<T>): Promise<T> => {
    const create = () => ({ run: createSemaphore(permits, limit), users: 0 })
    const semaphore = byKey.getOrInsertComputed(key, create)
    semaphore.users++
    try {
      return await semaphore.run(work)
    } finally {
      if (--semaphore.users === 0) byKey.delete(key)
    }
  }
}
