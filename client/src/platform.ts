/** The environment of the client. Tests pass their own. */
export type Platform = {
  timers: Timers
  random: () => number
  fetch: (url: string, init: object) => Promise<Response>
  /** False for a given `fetch`, which then sends uploads, too. */
  isOwnFetch: boolean
  /** Absent in Node 20: pass the one of the package `ws`. */
  WebSocket: (new (url: string, protocols?: string[]) => Socket) | undefined
  /** Lets one tab at a time work: the browser's `navigator.locks`. */
  locks: Locks | undefined
  /** Fires `online` and `offline`, `pageshow` and `visibilitychange` when the page is looked at again, and `storage` when
   *  another tab has changed the session: the browser's `window`. */
  network: Network | undefined
  /** Whether nobody sees the page. A dead network is then noticed later, to save power. */
  isHidden: () => boolean
}

export type Timers = {
  /** Milliseconds since the epoch. */
  now(): number
  /** Calls `work` once after `milliseconds`, unless the returned function is called first. */
  after(milliseconds: number, work: () => void): () => void
}

export type Socket = {
  onopen: ((event: never) => void) | null
  onmessage: ((event: never) => void) | null
  onclose: ((event: never) => void) | null
  onerror: ((event: never) => void) | null
  send(text: string): void
  close(code?: number): void
  /** Only in Node's `ws`, where waiting for a dead peer would keep the program alive. */
  terminate?(): void
}

type Locks = {
  request<T>(name: string, options: { signal: AbortSignal }, work: () => Promise<T>): Promise<T>
}

type NetworkEvent = 'online' | 'offline' | 'pageshow' | 'visibilitychange' | 'storage'
type Network = Record<
  'addEventListener' | 'removeEventListener',
  (type: NetworkEvent, listener: () => void) => void
>

const systemTimers: Timers = {
  now: () => Date.now(),
  after(milliseconds, work) {
    const timer = setTimeout(work, milliseconds)
    return () => clearTimeout(timer)
  },
}

export type GivenPlatform = {
  [Part in Exclude<keyof Platform, 'isOwnFetch'>]?: Platform[Part] | undefined
}

/** Completes the given parts with those of the browser or runtime. */
export function platformOf(given: GivenPlatform): Platform {
  const { navigator, document, addEventListener, WebSocket }: Surroundings = globalThis as never
  return {
    timers: given.timers ?? systemTimers,
    random: given.random ?? Math.random,
    fetch: given.fetch ?? ((url, init) => globalThis.fetch(url, init)),
    isOwnFetch: !given.fetch,
    WebSocket: given.WebSocket ?? WebSocket,
    locks: given.locks ?? navigator?.locks,
    network: given.network ?? (addEventListener ? (globalThis as unknown as Network) : undefined),
    isHidden: given.isHidden ?? (() => document?.visibilityState === 'hidden'),
  }
}

type Surroundings = {
  navigator?: Partial<Platform>
  document?: { visibilityState?: string }
  addEventListener?: unknown
  WebSocket?: Platform['WebSocket']
}

/** Unique but not secret: `crypto` is missing on insecure origins and in React Native. */
export function uniqueId(): string {
  const part = () => Math.random().toString(36).slice(2, 12)
  return Date.now().toString(36) + part() + part()
}
