/** What the client needs of the place where it runs. Tests bring their own. */
export type Platform = {
  timers: Timers
  random: () => number
  fetch: (url: string, init: object) => Promise<Response>
  /** Absent in Node 20: the package `ws` has one. */
  WebSocket: (new (url: string, protocols: string[]) => Socket) | undefined
  /** Lets one tab at a time work: a browser's `navigator.locks`. */
  locks: { request<T>(name: string, work: () => Promise<T>): Promise<T> } | undefined
  /** Fires `online` when there is a network again: a browser's `window`. */
  network: Network | undefined
}

export type Timers = {
  /** Milliseconds since the epoch. */
  now(): number
  /** Calls `work` once after `milliseconds`, unless the returned function is called first. */
  after(milliseconds: number, work: () => void): () => void
}

/** The part of a WebSocket that the client uses. */
export type Socket = {
  onopen: ((event: never) => void) | null
  onmessage: ((event: { data: unknown }) => void) | null
  onclose: ((event: { code: number }) => void) | null
  onerror: ((event: never) => void) | null
  send(text: string): void
  close(code?: number): void
}

type Network = Record<
  'addEventListener' | 'removeEventListener',
  (type: 'online', listener: () => void) => void
>

const systemTimers: Timers = {
  now: () => Date.now(),
  after(milliseconds, work) {
    const timer = setTimeout(work, milliseconds)
    return () => clearTimeout(timer)
  },
}

/** Fills what is not given with what the browser or runtime has. */
export function platformOf(given: Partial<Platform>): Platform {
  const { navigator, addEventListener, WebSocket }: Surroundings = globalThis as never
  return {
    timers: given.timers ?? systemTimers,
    random: given.random ?? Math.random,
    fetch: given.fetch ?? ((url, init) => globalThis.fetch(url, init)),
    WebSocket: given.WebSocket ?? WebSocket,
    locks: given.locks ?? navigator?.locks,
    network: given.network ?? (addEventListener ? (globalThis as unknown as Network) : undefined),
  }
}

/** Not everywhere there. */
type Surroundings = {
  navigator?: Partial<Platform>
  addEventListener?: unknown
  WebSocket?: Platform['WebSocket']
}

/** Unlike any other, but no secret: `crypto` is missing on insecure origins and in React Native. */
export function uniqueId(): string {
  const part = () => Math.random().toString(36).slice(2, 12)
  return Date.now().toString(36) + part() + part()
}

/** @throws the signal's reason when it is aborted meanwhile */
export function sleep(timers: Timers, milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      cancel()
      reject(reasonOf(signal))
    }
    const cancel = timers.after(milliseconds, () => {
      signal?.removeEventListener('abort', abort)
      resolve()
    })
    signal?.addEventListener('abort', abort)
    if (signal?.aborted) abort()
  })
}

/** A signal that is aborted with one of the others, or when the time is over.
 *  Choice: `AbortSignal.any` and `timeout` are too young for browsers of three years ago, and missing in React Native. */
export function linkSignals(signals: (AbortSignal | undefined)[], milliseconds?: number) {
  const controller = new AbortController()
  const abort = () => controller.abort(reasonOf(signals.find((signal) => signal?.aborted)))
  const giveUp = () => controller.abort(new Error('the service did not answer in time'))
  const timer = milliseconds === undefined ? undefined : setTimeout(giveUp, milliseconds)
  for (const signal of signals) signal?.addEventListener('abort', abort)
  if (signals.some((signal) => signal?.aborted)) abort()

  return {
    signal: controller.signal,
    release() {
      clearTimeout(timer)
      for (const signal of signals) signal?.removeEventListener('abort', abort)
    },
  }
}

/** React Native's signals keep no reason. */
export function reasonOf(signal: AbortSignal | undefined): unknown {
  return signal?.reason ?? new Error('aborted')
}

/** A promise that is settled from outside. */
export type Deferred<T> = {
  promise: Promise<T>
  resolve: (value: T) => void
  reject: (error: unknown) => void
}

export function deferred<T>(): Deferred<T> {
  const settle = {} as Deferred<T>
  const promise = new Promise<T>((resolve, reject) => Object.assign(settle, { resolve, reject }))
  return Object.assign(settle, { promise })
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
