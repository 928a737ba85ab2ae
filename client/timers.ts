/** The time and its timers, injected so that tests can move them. */
export type Timers = {
  /** Milliseconds since the epoch. */
  now(): number
  /** Calls `work` once after `milliseconds`, unless the returned function is called before. */
  after(milliseconds: number, work: () => void): () => void
}

export const systemTimers: Timers = {
  now: () => Date.now(),
  after(milliseconds, work) {
    const timer = setTimeout(work, milliseconds)
    return () => clearTimeout(timer)
  },
}

/** @throws the signal's reason when it is aborted meanwhile */
export function sleep(timers: Timers, milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      cancel()
      reject(signal?.reason)
    }
    const cancel = timers.after(milliseconds, () => {
      signal?.removeEventListener('abort', abort)
      resolve()
    })
    signal?.addEventListener('abort', abort, { once: true })
    if (signal?.aborted) abort()
  })
}
