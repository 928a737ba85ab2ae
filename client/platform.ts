/** What the client needs of the place where it runs. Tests bring their own. */
export type Platform = {
  timers: Timers
  random: () => number
  fetch: (url: string, init: RequestInit) => Promise<Response>
  WebSocket: typeof WebSocket
  /** Lets one tab at a time work: a browser's `navigator.locks`. */
  locks: { request<T>(name: string, work: () => Promise<T>): Promise<T> } | undefined
  /** Fires `online` when there is a network again: a browser's `window`. */
  network: Pick<EventTarget, 'addEventListener' | 'removeEventListener'> | undefined
}

export type Timers = {
  /** Milliseconds since the epoch. */
  now(): number
  /** Calls `work` once after `milliseconds`, unless the returned function is called first. */
  after(milliseconds: number, work: () => void): () => void
}

const systemTimers: Timers = {
  now: () => Date.now(),
  after(milliseconds, work) {
    const timer = setTimeout(work, milliseconds)
    return () => clearTimeout(timer)
  },
}

/** Fills what is not given with what the browser or runtime has. */
export function platformOf(given: Partial<Platform>): Platform {
  const { navigator, addEventListener }: Browser = globalThis
  return {
    timers: given.timers ?? systemTimers,
    random: given.random ?? Math.random,
    fetch: given.fetch ?? ((url, init) => globalThis.fetch(url, init)),
    WebSocket: given.WebSocket ?? globalThis.WebSocket,
    locks: given.locks ?? navigator?.locks,
    network: given.network ?? (addEventListener ? globalThis : undefined),
  }
}

/** Not everywhere there. */
type Browser = { navigator?: Partial<Platform>; addEventListener?: unknown }

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

const firstPause = 1_000
const longestPause = 30_000

/** Milliseconds between tries: exponential with full jitter, so that clients that lost a server together do not return
 *  together. */
export function createBackoff(random: () => number) {
  let tries = 0

  return {
    next: (): number => random() * Math.min(longestPause, firstPause * 2 ** tries++),
    reset() {
      tries = 0
    },
  }
}
