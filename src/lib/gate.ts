/** Lets at most `width` pieces of work run at once; up to `maxWaiting` others wait in line.
 *  `refused` makes the error for one that finds the line full. */
export function createGate(width: number, maxWaiting: number, refused: () => Error) {
  let running = 0
  const waiting: Array<() => void> = []

  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (running >= width) {
      if (waiting.length >= maxWaiting) throw refused()
      await new Promise<void>((resolve) => waiting.push(resolve))
    } else {
      running++
    }
    try {
      return await work()
    } finally {
      // Whoever waits longest takes the place over.
      const next = waiting.shift()
      if (next) next()
      else running--
    }
  }
}
