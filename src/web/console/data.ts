import { type Signal, signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type {
  Answer,
  CursorPage,
  Input,
  Item,
  ListRoute,
  Route,
} from '../../../client/src/contract.ts'
import { ApiError } from '../../../client/src/errors.ts'
import type { Attempt } from '../kit/form.tsx'
import { idOf } from '../kit/list.tsx'
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
/** The present options of a component that shows the data. */
type Watch = { current: Omit<QueryOptions, 'merge'> }
/** With methods, not functions, in it: an entry is one of `unknown`, too. */
type Source<T> = {
  read(signal: AbortSignal, before: T | undefined): Promise<T>
  merge(before: T, fresh: T): T
  /** Reading it again would move rows. */
  isLong(data: T): boolean
  isLive: boolean
}
type Entry<T = unknown> = Source<T> & {
  state: Signal<State<T>>
  watches: Set<Watch>
  readAt: number
  leftAt: number
  isDue: boolean
  reading: AbortController | undefined
  forget: () => void
  /** Local changes made while a request was under way. Its response may not have them. */
  changes: { change(data: T): T }[]
}
/** The entries of a route by their input. */
type Entries<T = unknown> = Map<string, Entry<T>>

export type Query<T> = State<T> & {
  reload: () => void
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

const queries: { [R in ReadRoute]?: Entries<Answer<R>> } = {}
const lists: { [R in ListedRoute]?: Entries<Pages<Item<R>>> } = {}
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
  }
}

function entryOf<R extends ReadRoute>(
  route: R,
  input: Input<R>,
  { merge, isLive = false }: QueryOptions<Answer<R>>,
) {
  queries[route] ??= new Map()
  return openEntry<Answer<R>>(queries[route], keyOf(input), {
    read: (signal) => request(route, { ...input, signal }),
    merge: merge ?? ((_, fresh) => fresh),
    isLong: () => false,
    isLive,
  })
}

/** The data of a query that is in use elsewhere. */
export const dataOf = <R extends ReadRoute>(route: R, input: Input<R>): Answer<R> | undefined =>
  queries[route]?.get(keyOf(input))?.state.value.data

/** Reads ahead what is probably shown next. */
export function prefetch<R extends ReadRoute>(
  route: R,
  input: Input<R>,
  options: QueryOptions<Answer<R>>,
): void {
  const entry = entryOf(route, input, options)
  if (!isFresh(entry) && !entry.reading) void read(entry)
}

const keyOf = (input: object) => JSON.stringify(input)

function openEntry<T>(entries: Entries<T>, key: string, source: Source<T>): Entry<T> {
  const known = entries.get(key)
  if (known) return known
  const entry: Entry<T> = {
    ...source,
    state: signal({ ...idle, isLoading: false }),
    watches: new Set(),
    readAt: Number.NEGATIVE_INFINITY,
    leftAt: Date.now(),
    isDue: false,
    reading: undefined,
    forget: () => entries.delete(key),
    changes: [],
  }
  entries.set(key, entry)
  return entry
}

function entriesOf(route: ReadRoute): Entry[] {
  const all: Record<string, Entries | undefined>[] = [queries, lists]
  return all.flatMap(({ [route]: entries }) => [...(entries?.values() ?? [])])
}

function allEntries(): Entry[] {
  const all: Entries[] = [...Object.values(queries), ...Object.values(lists)]
  return all.flatMap((entries) => [...entries.values()])
}

function isFresh<T>({ readAt, state, isDue, isLive }: Entry<T>): boolean {
  const { data, error } = state.peek()
  if (data === undefined || error !== undefined || isDue) return false
  return (isLive && client.status() === 'open') || Date.now() - readAt < freshMilliseconds
}

function useWatch<T>(entry: Entry<T> | undefined, options: Watch['current']) {
  const watch = useRef(options)
  watch.current = options
  useEffect(() => {
    if (!entry) return
    entry.watches.add(watch)
    const isReading = entry.reading?.signal.aborted === false
    if (!isFresh(entry) && !isReading) void read(entry)
    return () => {
      entry.watches.delete(watch)
      entry.leftAt = Date.now()
      if (entry.watches.size === 0) entry.reading?.abort()
    }
  }, [entry])
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
    const data = entry.changes.reduce((changed, { change }) => change(changed), merged)
    entry.state.value = { data, error: undefined, isLoading: false, isStale: false }
  } catch (error) {
    if (signal.aborted) return
    // Deleted data are not shown any longer.
    const isGone = error instanceof ApiError && error.code === 'not_found'
    const data = isGone ? undefined : entry.state.peek().data
    entry.state.value = { data, error, isLoading: false, isStale: data !== undefined }
  } finally {
    if (entry.reading === reading) {
      entry.reading = undefined
      entry.isDue ||= signal.aborted
    }
  }
}

function update<T>(entry: Entry<T>, change: (data: T) => T) {
  if (entry.reading) entry.changes.push({ change })
  const state = entry.state.peek()
  if (state.data !== undefined) entry.state.value = { ...state, data: change(state.data) }
}

/** Changes the data of a query locally, wherever they are shown, until they are read again. */
export function patch<R extends ReadRoute>(
  route: R,
  input: Input<R>,
  change: (data: Answer<R>) => Answer<R>,
): void {
  const entry = queries[route]?.get(keyOf(input))
  if (entry) update(entry, change)
}

/** Reads all data of these routes again; those that are not shown are forgotten. */
export function refresh(...routes: ReadRoute[]): void {
  for (const entry of routes.flatMap(entriesOf)) {
    if (entry.watches.size > 0) void read(entry)
    else entry.forget()
  }
}

const soonMilliseconds = 100

/** Reads these data again soon, at most once a second. */
export function refreshSoon<R extends ReadRoute>(route: R, input: Input<R>): void {
  const entry = queries[route]?.get(keyOf(input))
  if (!entry) return
  entry.isDue = true
  if (entry.watches.size === 0 || Date.now() - entry.readAt < tickMilliseconds) return
  setTimeout(() => entry.isDue && readWhenDue(entry), soonMilliseconds)
}

/** Lists of the route that have this item become stale: it may be gone. */
export function markStale(route: ListedRoute, id: string): void {
  for (const { state } of lists[route]?.values() ?? []) {
    const isThere = state.peek().data?.items.some((item) => idOf(item) === id)
    if (isThere) state.value = { ...state.peek(), isStale: true }
  }
}

/** Forgets the data of the route that are not shown. */
export function forget(route: ReadRoute): void {
  for (const entry of entriesOf(route)) if (entry.watches.size === 0) entry.forget()
}

/** Changes an item in all lists of the route.
 *  @param changed undefined takes it out */
export function patchItem<R extends ListedRoute>(
  route: R,
  id: string,
  changed: Partial<Item<R>> | undefined,
): void {
  for (const entry of lists[route]?.values() ?? []) {
    update(entry, (all) => {
      const at = all.items.findIndex((item) => idOf(item) === id)
      const item = all.items[at]
      if (!item) return all
      return {
        ...all,
        items: all.items.toSpliced(at, 1, ...(changed ? [{ ...item, ...changed }] : [])),
      }
    })
  }
}

/** How many there are in all, in an answer by page. */
export const totalOf = (answer: { pagination: object } | undefined) =>
  answer && 'total' in answer.pagination ? Number(answer.pagination.total) : undefined

type Pages<T> = { items: T[]; cursor: string | null; count: number }
export type List<T> = State<T[]> & {
  items: T[]
  hasMore: boolean
  loadMore: () => void
  reload: () => void
  retry: () => void
}
type ListOptions = QueryOptions & { limit?: number }

/** The list adds `limit` and `cursor` to the query. */
type ListInput<R extends ListedRoute> = Input<R> & { query?: object }

/** A list that reads further pages as it is scrolled. A list of several pages is not read again by itself: it becomes
 *  stale. */
export function useList<R extends ListedRoute>(
  route: R,
  input: ListInput<R> | undefined,
  { limit = pageSize, ...options }: ListOptions = {},
): List<Item<R>> {
  const page = (given: ListInput<R>, cursor: string | null, signal?: AbortSignal) => {
    const { query }: { query?: object } = given
    const ofPage = { limit, ...(cursor !== null && { cursor }) }
    return request(route, { ...given, query: { ...query, ...ofPage }, signal })
  }
  const open = (given: ListInput<R>) => {
    lists[route] ??= new Map()
    return openEntry<Pages<Item<R>>>(lists[route], keyOf({ ...given, limit }), {
      merge: (_, fresh) => fresh,
      isLong: ({ count }) => count > 1,
      isLive: false,
      async read(signal, before) {
        let all: Pages<Item<R>> = { items: [], cursor: null, count: 0 }
        do all = joined(all, await page(given, all.cursor, signal))
        while (all.cursor !== null && all.count < Math.min(before?.count ?? 1, mostPages))
        return all
      },
    })
  }
  const entry = input && open(input)
  useWatch(entry, options)
  const failure = useRef<{ cursor: string; error: unknown }>(undefined)
  const more = useRef<string>(undefined)
  const state = entry?.state.value ?? idle
  const { data } = state

  async function loadMore() {
    const cursor = entry?.state.peek().data?.cursor
    if (!input || !cursor || more.current === cursor) return
    more.current = cursor
    failure.current = undefined
    try {
      const next = await page(input, cursor)
      update(entry, (all) => (all.cursor === cursor ? joined(all, next) : all))
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
    loadMore,
    reload: () => entry && read(entry),
    retry: () => (state.error === undefined ? loadMore() : entry && read(entry)),
  }
}

/** Rows that moved down since the last page was read come a second time. */
function joined<T extends object>(all: Pages<T>, page: CursorPage<T>): Pages<T> {
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
  input: Input<R> & Partial<Attempt>,
  { optimistic, done, refreshes = [] }: Mutation = {},
): Promise<Answer<R>> {
  const takeBack = optimistic?.()
  try {
    const answer = await request(route, input)
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
  for (const entry of allEntries()) {
    if (entry.watches.size > 0) readWhenDue(entry)
    else if (Date.now() - entry.leftAt > keptMilliseconds) entry.forget()
  }
}, tickMilliseconds)

function readWhenDue(entry: Entry) {
  const watches = [...entry.watches].map(({ current }) => current)
  const isSeen = !document.hidden || watches.some((watch) => watch.inBackground)
  if (!isSeen || entry.reading) return
  const every = Math.min(...watches.map((watch) => watch.every ?? Number.POSITIVE_INFINITY))
  const isDue = entry.isDue || Date.now() - entry.readAt >= every * 1_000
  if (!isDue || watches.some((watch) => watch.isHeld?.())) return
  const { data } = entry.state.peek()
  if (data === undefined || !entry.isLong(data)) return void read(entry)
  if (entry.isDue) entry.state.value = { ...entry.state.peek(), isStale: true }
  entry.isDue = false
  entry.readAt = Date.now()
}

/** Frames may have been missed. */
function catchUp() {
  for (const entry of allEntries()) {
    const isOnce = [...entry.watches].some(({ current }) => current.isOnce)
    if (!isOnce) entry.isDue = true
    if (entry.watches.size > 0 && !isOnce) readWhenDue(entry)
  }
}

let wasLost = false
client.on('status', ({ status }) => {
  if (status === 'open' && wasLost) catchUp()
  const isLost = status === 'waiting' || (status === 'closed' && user.value !== undefined)
  wasLost = isLost || (status === 'connecting' && wasLost)
})
client.on('resync', catchUp)
addEventListener('online', () => {
  for (const entry of allEntries()) {
    if (entry.watches.size > 0 && entry.state.peek().error !== undefined) void read(entry)
  }
})
user.subscribe((signedIn) => {
  if (signedIn) return
  for (const entry of allEntries()) {
    entry.reading?.abort()
    entry.forget()
  }
  wasLost = false
})
