/** What the client needs of the place where it runs. Tests bring their own. */
export type Platform = {
  timers: Timers
  random: () => number
  fetch: (url: string, init: object) => Promise<Response>
  /** Absent in Node 20: the package `ws` has one. */
  WebSocket: (new (url: string, protocols?: string[]) => Socket) | undefined
  /** Lets one tab at a time work: a browser's `navigator.locks`. */
  locks: Locks | undefined
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
  onmessage: ((event: never) => void) | null
  onclose: ((event: never) => void) | null
  onerror: ((event: never) => void) | null
  send(text: string): void
  close(code?: number): void
  /** Node's `ws` has it: what waits for a peer that is gone keeps a program alive. */
  terminate?(): void
}

type Locks = {
  request<T>(name: string, options: { signal: AbortSignal }, work: () => Promise<T>): Promise<T>
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

/** A platform of which parts may be missing. */
export type GivenPlatform = { [Part in keyof Platform]?: Platform[Part] | undefined }

/** Fills what is not given with what the browser or runtime has. */
export function platformOf(given: GivenPlatform): Platform {
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
