/** Runs works of the same name one after the other, in the order of the calls. */
export function createTurns() {
  const last = new Map<string, Promise<unknown>>()

  return async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    const before = last.get(name) ?? Promise.resolve()
    const mine = before.then(work, work)
    last.set(name, mine)
    try {
      return await mine
    } finally {
      if (last.get(name) === mine) last.delete(name)
    }
  }
}
