import { type Signal, signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Answer, Input, Item, ListRoute, Route } from '../../../client/src/contract.ts'
import { ApiError } from '../../../client/src/errors.ts'
import { toast } from '../kit/toast.tsx'
import { client, opened, request, user } from './session.ts'

type ReadRoute = Extract<Route, `GET ${string}`>
type ListedRoute = Extract<ListRoute, ReadRoute>

const pageSize = 50
/** Pages read again at most; further ones are dropped. */
const mostPages = 5
/** Younger data are not read again when another component shows them. */
const freshMilliseconds = 250
const keptMilliseconds = 60_000
const tickMilliseconds = 1_000

type State<T> = {
  /** Stays during a reload, and after a failed one. */
  data: T | undefined
  error: unknown
  isLoading: boolean
  /** The shown data may be out of date: reading them again would move rows, or has failed. */
  isStale: boolean
}
type Watch = {
  every: number | undefined
  isOnce: boolean
  inBackground: boolean
  isHeld: () => boolean
}
type Entry<T = unknown> = {
  route: Route
  state: Signal<State<T>>
  read: (signal: AbortSignal, before: T | undefined) => Promise<T>
  merge: (before: T, fresh: T) => T
  isLive: boolean
  watches: Set<Watch>
  readAt: number
  leftAt: number
  isDue: boolean
  reading: AbortController | undefined
  /** Local changes made while a request was under way. Its response may not have them. */
  changes: ((data: T) => T)[]
}

export type Query<T> = State<T> & {
  reload: () => void
  /** Changes the data locally, until they are read again. */
  update: (change: (data: T) => T) => void
}

type QueryOptions<T = never> = {
  /** Seconds between reads while the page is visible. */
  every?: number
  /** While true, nothing is read by itself; it is made up for. */
  isHeld?: () => boolean
  /** For reads that the service records: none but the first and those asked for. */
  isOnce?: boolean
  merge?: (before: T, fresh: T) => T
  /** Frames announce each change: what was read ahead stays fresh while the channel is open. */
  isLive?: boolean
  /** Read while the page is hidden, too. */
  inBackground?: boolean
}

const entries = new Map<string, Entry<unknown>>()
const idle: State<never> = { data: undefined, error: undefined, isLoading: true, isStale: false }

/** Reads data and keeps them up to date: by interval, after a reconnect, on `refresh`. Components with the same route
 *  and input share them.
 *  @param input undefined reads nothing */
export function useQuery<R extends ReadRoute>(
  route: R,
  input: Input<R> | undefined,
  options: QueryOptions<Answer<R>> = {},
): Query<Answer<R>> {
  const entry = input && entryOf(route, input, options)
  useWatch(entry, options)
  return {
    ...(entry?.state.value ?? idle),
    reload: () => entry && read(entry),
    update: (change) => entry && update(entry, change),
  }
}

function entryOf<R extends ReadRoute>(
  route: R,
  input: Input<R>,
  { merge, isLive = false }: QueryOptions<Answer<R>>,
) {
  return openEntry<Answer<R>>(keyOf(route, input), {
    route,
    read: (signal) => request(route, { ...input, signal } as never),
    merge: merge ?? ((_, fresh) => fresh),
    isLive,
  })
}

/** Reads ahead what is probably shown next. */
export function prefetch<R extends ReadRoute>(
  route: R,
  input: Input<R>,
  options: QueryOptions<Answer<R>>,
): void {
  const entry = entryOf(route, input, options)
  if (!isFresh(entry) && !entry.reading) void read(entry)
}

const keyOf = (route: Route, input: object) => `${route} ${JSON.stringify(input)}`

type Source<T> = Pick<Entry<T>, 'route' | 'read' | 'merge' | 'isLive'>

function openEntry<T>(key: string, source: Source<T>): Entry<T> {
  const known = entries.get(key)
  if (known) return known as unknown as Entry<T> // a key has one type
  const entry: Entry<T> = {
    ...source,
    state: signal({ ...idle, isLoading: false }),
    watches: new Set(),
    readAt: Number.NEGATIVE_INFINITY,
    leftAt: Date.now(),
    isDue: false,
    reading: undefined,
    changes: [],
  }
  entries.set(key, entry as unknown as Entry) // read by its key only
  return entry
}

function isFresh<T>({ readAt, state, isDue, isLive }: Entry<T>): boolean {
  const { data, error } = state.peek()
  if (data === undefined || error !== undefined || isDue) return false
  return (isLive && client.status() === 'open') || Date.now() - readAt < freshMilliseconds
}

function useWatch<T>(entry: Entry<T> | undefined, options: Omit<QueryOptions, 'merge'>) {
  const latest = useRef(options)
  latest.current = options
  const { every, isOnce = false, inBackground = false } = options
  useEffect(() => {
    if (!entry) return
    const isHeld = () => latest.current.isHeld?.() === true
    const watch = { every, isOnce, inBackground, isHeld }
    entry.watches.add(watch)
    const isReading = entry.reading?.signal.aborted === false
    if (!isFresh(entry) && !isReading) void read(entry)
    return () => {
      entry.watches.delete(watch)
      entry.leftAt = Date.now()
      if (entry.watches.size === 0) entry.reading?.abort()
    }
  }, [entry, every, isOnce, inBackground])
}

async function read<T>(entry: Entry<T>): Promise<void> {
  entry.reading?.abort()
  const reading = new AbortController()
  const { signal } = reading
  Object.assign(entry, { reading, isDue: false, readAt: Date.now(), changes: [] })
  entry.state.value = { ...entry.state.peek(), isLoading: true }
  try {
    // Frames from then on reach the page, so that nothing falls between the response and the first of them.
    await opened()
    const fresh = await entry.read(signal, entry.state.peek().data)
    if (signal.aborted) return
    const before = entry.state.peek().data
    const merged = before === undefined ? fresh : entry.merge(before, fresh)
    const data = entry.changes.reduce((changed, change) => change(changed), merged)
    entry.state.value = { data, error: undefined, isLoading: false, isStale: false }
  } catch (error) {
    if (signal.aborted) return
    const { data } = entry.state.peek()
    entry.state.value = { data, error, isLoading: false, isStale: data !== undefined }
  } finally {
    if (entry.reading === reading) {
      entry.reading = undefined
      entry.isDue ||= signal.aborted
    }
  }
}

function update<T>(entry: Entry<T>, change: (data: T) => T) {
  if (entry.reading) entry.changes.push(change)
  const state = entry.state.peek()
  if (state.data !== undefined) entry.state.value = { ...state, data: change(state.data) }
}

/** Changes the data of a query locally, wherever they are shown. */
export function patch<R extends ReadRoute>(
  route: R,
  input: Input<R>,
  change: (data: Answer<R>) => Answer<R>,
): void {
  const entry = entries.get(keyOf(route, input))
  if (entry) update(entry as Entry<Answer<R>>, change) // a key has one type
}

/** Reads all data of these routes again; those that are not shown are forgotten. */
export function refresh(...routes: ReadRoute[]): void {
  for (const [key, entry] of entries) {
    if (!routes.some((route) => route === entry.route)) continue
    if (entry.watches.size > 0) void read(entry)
    else entries.delete(key)
  }
}

const soonMilliseconds = 100

/** Reads these data again soon, at most once a second.
 *  @param input undefined for all data of the route */
export function refreshSoon<R extends ReadRoute>(route: R, input?: Input<R>): void {
  const key = input && keyOf(route, input)
  for (const [known, entry] of entries) {
    if (key === undefined ? entry.route !== route : known !== key) continue
    entry.isDue = true
    if (entry.watches.size === 0 || Date.now() - entry.readAt < tickMilliseconds) continue
    setTimeout(() => entry.isDue && readWhenDue(entry), soonMilliseconds)
  }
}

/** Forgets the data of the route that are not shown. */
export function forget(route: ReadRoute): void {
  for (const [key, entry] of entries) {
    if (entry.route === route && entry.watches.size === 0) entries.delete(key)
  }
}

/** Replaces an item in all lists of the route. */
export function patchItem<R extends ListedRoute>(
  route: R,
  changed: Partial<Item<R>> & { id: string },
): void {
  for (const entry of entries.values()) {
    if (entry.route !== route) continue
    update(entry, (data) => {
      const { items } = data as Partial<Pages<{ id: string }>> // or one page, without items
      if (!items?.some(({ id }) => id === changed.id)) return data
      const replaced = items.map((item) =>
        item.id === changed.id ? { ...item, ...changed } : item,
      )
      return Object.assign({}, data, { items: replaced })
    })
  }
}

type Pages<T> = { items: T[]; cursor: string | null; count: number }
type Page<T> = { data: T[]; pagination: { cursor: string | null } }

export type List<T> = State<T[]> & {
  items: T[]
  hasMore: boolean
  /** More than one page: reading it again would move rows. */
  isLong: boolean
  loadMore: () => void
  reload: () => void
  retry: () => void
  update: (change: (items: T[]) => T[]) => void
}
export type ListOptions<T> = QueryOptions & { limit?: number; idOf?: (item: T) => unknown }

type ListInput<R extends ListedRoute> = Omit<Input<R>, 'query'> &
  (Input<R> extends { query?: infer Q }
    ? { query?: Omit<Exclude<Q, undefined>, 'limit' | 'cursor' | 'page' | 'per_page'> }
    : object)

/** A list that reads further pages as it is scrolled. A list of several pages is not read again by itself: it becomes
 *  stale. */
export function useList<R extends ListedRoute>(
  route: R,
  input: ListInput<R> | undefined,
  { limit = pageSize, idOf = idIn, ...options }: ListOptions<Item<R>> = {},
): List<Item<R>> {
  type T = Item<R>
  const page = (cursor: string | null, signal?: AbortSignal) => {
    const query = {
      ...(input && 'query' in input && input.query),
      limit,
      ...(cursor !== null && { cursor }),
    }
    // With `limit` the response has a cursor.
    return request(route, { ...input, query, signal } as never) as unknown as Promise<Page<T>>
  }
  // Without an input nothing watches the entry, so that nothing is read.
  const entry = openEntry<Pages<T>>(input ? keyOf(route, { ...input, limit }) : `no ${route}`, {
    route,
    merge: (_, fresh) => fresh,
    isLive: false,
    async read(signal, before) {
      let all: Pages<T> = { items: [], cursor: null, count: 0 }
      do all = joined(all, await page(all.cursor, signal), idOf)
      while (all.cursor !== null && all.count < Math.min(before?.count ?? 1, mostPages))
      return all
    },
  })
  useWatch(input && entry, options)
  const failure = useRef<{ cursor: string; error: unknown }>(undefined)
  const more = useRef<string>(undefined)
  const state = entry.state.value
  const { data } = state

  async function loadMore() {
    const cursor = entry.state.peek().data?.cursor
    if (!cursor || more.current === cursor) return
    more.current = cursor
    failure.current = undefined
    try {
      const next = await page(cursor)
      update(entry, (all) => (all.cursor === cursor ? joined(all, next, idOf) : all))
    } catch (error) {
      failure.current = { cursor, error }
      update(entry, (all) => ({ ...all }))
    } finally {
      more.current = undefined
    }
  }

  const moreError = failure.current?.cursor === data?.cursor ? failure.current?.error : undefined
  return {
    ...state,
    data: data?.items,
    items: data?.items ?? [],
    error: state.error ?? moreError,
    hasMore: data?.cursor != null,
    isLong: (data?.count ?? 0) > 1,
    loadMore,
    reload: () => read(entry),
    retry: () => (state.error === undefined ? loadMore() : read(entry)),
    update: (change) => update(entry, (all) => ({ ...all, items: change(all.items) })),
  }
}

const idIn = (item: unknown) => (item as { id?: unknown }).id // nearly all rows have an id

/** Rows that moved down since the last page was read come a second time. */
function joined<T>(all: Pages<T>, page: Page<T>, idOf: (item: T) => unknown): Pages<T> {
  const known = new Set(all.items.map(idOf))
  const items = [...all.items, ...page.data.filter((item) => !known.has(idOf(item)))]
  return { items, cursor: page.pagination.cursor, count: all.count + 1 }
}

type Mutation = {
  /** Shown at once, and taken back by the returned function when the service refuses. */
  optimistic?: () => () => void
  /** Said after success. */
  done?: string
  /** Read again afterwards. */
  refreshes?: ReadRoute[]
}

/** Sends a change. The service may ask for a proof of identity first.
 *  @throws the error of the request, after the optimistic change was taken back */
export async function mutate<R extends Route>(
  route: R,
  input: Input<R>,
  { optimistic, done, refreshes = [] }: Mutation = {},
): Promise<Answer<R>> {
  const takeBack = optimistic?.()
  try {
    const answer = await request(route, input as never)
    if (done) toast(done)
    return answer
  } finally {
    takeBack?.()
    refresh(...refreshes)
  }
}

/** Sends a request of a series: when there were too many, waits as long as the service asks.
 *  @param signal ends the wait
 *  @throws any other error of the request · the last one after an abort */
export async function oneByOne<T>(send: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await send()
    } catch (error) {
      const isLimited = error instanceof ApiError && error.code === 'rate_limited'
      if (!isLimited || signal?.aborted) throw error
      await pause(error.retryAfterSeconds ?? 1, signal)
    }
  }
}

const pause = (seconds: number, signal: AbortSignal | undefined) =>
  new Promise<void>((resolve) => {
    setTimeout(resolve, seconds * 1_000)
    signal?.addEventListener('abort', () => resolve(), { once: true })
  })

setInterval(() => {
  for (const [key, entry] of entries) {
    if (entry.watches.size > 0) readWhenDue(entry)
    else if (Date.now() - entry.leftAt > keptMilliseconds) entries.delete(key)
  }
}, tickMilliseconds)

function readWhenDue(entry: Entry) {
  const watches = [...entry.watches]
  const isSeen = !document.hidden || watches.some((watch) => watch.inBackground)
  if (!isSeen || entry.reading) return
  const every = Math.min(...watches.map((watch) => watch.every ?? Number.POSITIVE_INFINITY))
  const isDue = entry.isDue || Date.now() - entry.readAt >= every * 1_000
  if (!isDue || watches.some((watch) => watch.isHeld())) return
  if (!isLong(entry)) return void read(entry)
  if (entry.isDue) entry.state.value = { ...entry.state.peek(), isStale: true }
  entry.isDue = false
  entry.readAt = Date.now()
}

function isLong(entry: Entry): boolean {
  const data = entry.state.peek().data as Partial<Pages<unknown>> | undefined // or anything else
  return typeof data?.count === 'number' && Array.isArray(data.items) && data.count > 1
}

/** Frames may have been missed. */
function catchUp() {
  for (const entry of entries.values()) {
    const isOnce = [...entry.watches].some((watch) => watch.isOnce)
    if (!isOnce) entry.isDue = true
    if (entry.watches.size > 0 && !isOnce) readWhenDue(entry)
  }
}

let wasLost = false
client.on('status', ({ status }) => {
  if (status === 'open' && wasLost) catchUp()
  wasLost = status === 'waiting' || (status !== 'open' && wasLost)
})
client.on('resync', catchUp)
addEventListener('online', () => {
  for (const entry of entries.values()) {
    if (entry.watches.size > 0 && entry.state.peek().error !== undefined) void read(entry)
  }
})
user.subscribe((signedIn) => {
  if (signedIn) return
  for (const entry of entries.values()) entry.reading?.abort()
  entries.clear()
  wasLost = false
})
