import type { Client, ClientEvents } from './client.ts'
import { createEmitter } from './emitter.ts'

/** A value that changes, for `useSyncExternalStore` of React and the like. Each change makes a new snapshot. */
export type Store<T> = {
  /** Calls the listener after changes, once for those that come together.
   *  @returns a function that removes it */
  subscribe: (listener: () => void) => () => void
  getSnapshot: () => T
}

/** A store that follows the channel until it is closed. */
export type Opened<T> = Store<T> & { close: () => void }

/** The state and the actions of a store, as `useStore` of the bindings returns them: `Used<typeof openThread>`. */
export type Used<Open extends (...given: never[]) => Opened<object>> = ReturnType<Open> &
  ReturnType<ReturnType<Open>['getSnapshot']>

export type ListState<T> = {
  items: readonly T[]
  /** The state of the newest items, which stay when a later load fails. */
  status: 'loading' | 'ready' | 'failed'
  /** Why the last load failed. */
  error: unknown
  hasMore: boolean
  isLoadingMore: boolean
}

const pageSize = 30
const largestPage = 100

export function createStore<T>(initial: T) {
  let value = initial
  const { on, emit } = createEmitter<{ change: undefined }>()
  let isDue = false
  function notify() {
    isDue = false
    emit('change', undefined)
  }
  return {
    getSnapshot: () => value,
    subscribe: (listener: () => void) => on('change', listener),
    set(next: T) {
      value = next
      // A catch-up brings each message in a task of its own: those that are there already are shown together.
      if (!isDue) setTimeout(notify)
      isDue = true
    },
  }
}

type Handlers = { [Name in keyof ClientEvents]?: (event: ClientEvents[Name]) => void }

/** @returns a function that removes the handlers */
export function listen(client: Client, handlers: Handlers) {
  const names = Object.keys(handlers) as (keyof ClientEvents)[]
  // Each handler has the type of its name.
  const removers = names.map((name) => client.on(name, handlers[name] as (event: unknown) => void))
  return () => {
    for (const remove of removers) remove()
  }
}

type Row = { id: string }
type CursorPart<T> = { data: readonly T[]; pagination: { cursor: string | null } }
type Read = { query: { limit: number; cursor?: string }; signal: AbortSignal }
type ListOptions<T, More> = {
  more: More
  /** Reads the newest rows, or those after the cursor. */
  read: (options: Read) => Promise<CursorPart<T> & { more?: Partial<More> | undefined }>
  /** The order in which the pages come. */
  order: (one: T, other: T) => number
  isOldestFirst?: boolean
}

export const newestFirst = (one: Row, other: Row) =>
  one.id === other.id ? 0 : one.id < other.id ? 1 : -1

/** A list that is loaded by pages and changed by frames. Its state has the fields of `more`, too. */
export function openList<T extends Row, More extends object>(
  client: Client,
  { more, read, order, isOldestFirst }: ListOptions<T, More>,
) {
  const store = createStore<ListState<T> & More>({
    items: [],
    status: 'loading',
    error: undefined,
    hasMore: false,
    isLoadingMore: false,
    ...more,
  })
  let cursor: string | null = null
  let running = Promise.resolve()
  let loading = new AbortController()
  /** The changes during a load: the page may be older, and so gets them as well. */
  let edits: (() => void)[] | undefined
  /** The rows from before a gap, by their ids, as they were then. */
  let beforeGap: Map<string, T> | undefined
  let forget = () => {}

  const set = (part: Partial<ListState<T>> | Partial<More>) =>
    store.set({ ...store.getSnapshot(), ...part })
  const items = () => store.getSnapshot().items

  /** The first of two rows with one id counts. */
  function show(rows: readonly T[], part: Partial<ListState<T>> = {}) {
    const shown = new Set<string>()
    const unique = rows.filter(({ id }) => !shown.has(id) && shown.add(id)).sort(order)
    set({ ...part, items: isOldestFirst ? unique.reverse() : unique })
  }

  /** Whether a row belongs to a page that is not loaded yet. */
  function isBelow(row: T): boolean {
    const last = isOldestFirst ? items()[0] : items().at(-1)
    const isUnknown = items().every(({ id }) => id !== row.id)
    return store.getSnapshot().hasMore && isUnknown && last !== undefined && order(row, last) > 0
  }

  function edit(change: () => void) {
    edits?.push(change)
    change()
  }

  function load(from: string | null): Promise<void> {
    loading.abort()
    loading = new AbortController()
    edits = []
    running = loadInto(from, loading.signal)
    return running
  }

  async function loadInto(from: string | null, signal: AbortSignal) {
    try {
      const page = await read({ query: queryOf(from), signal })
      if (signal.aborted) return
      if (from === null) showNewest(page)
      else showMore(page)
      set({ ...page.more, status: 'ready', error: undefined, isLoadingMore: false })
      for (const change of edits ?? []) change()
    } catch (error) {
      if (signal.aborted) return
      set({ status: 'failed', error, isLoadingMore: false })
    }
    edits = undefined
  }

  /** The newest page is as long as what is shown: no frame tells later what was changed there during an outage. */
  function queryOf(from: string | null) {
    if (from !== null) return { limit: pageSize, cursor: from }
    return { limit: Math.min(Math.max(pageSize, items().length), largestPage) }
  }

  /** Rows further down stay, unless there is a gap between them and the page. */
  function showNewest({ data, pagination }: CursorPart<T>) {
    const last = data.at(-1)
    const known = items().filter(({ id }) => beforeGap?.has(id) ?? true)
    // A row that has moved says nothing about those below it.
    const isUnmoved = (row: T) =>
      known.some((it) => it.id === row.id && order(beforeGap?.get(it.id) ?? it, row) === 0)
    const adjoins = data.some(isUnmoved)
    const hasMore = adjoins && pagination.cursor !== null
    const newest = new Set(data.map(({ id }) => id))
    const further = known.filter(
      (row) => hasMore && last && !newest.has(row.id) && order(row, last) >= 0,
    )
    // Another device may have taken a conversation out of the archive, to a place among them.
    if (further.length === 0 || !isOldestFirst) cursor = pagination.cursor
    beforeGap = undefined
    show([...data, ...further], { hasMore: cursor !== null })
  }

  function showMore({ data, pagination }: CursorPart<T>) {
    cursor = pagination.cursor
    for (const row of data) beforeGap?.set(row.id, row) // they follow the rows from before it
    show([...items(), ...data], { hasMore: cursor !== null })
  }

  const reload = () => load(null)
  function lose() {
    beforeGap ??= new Map(items().map((row) => [row.id, row]))
  }

  const replace = (id: string, by: (row: T) => T) =>
    edit(() => show(items().map((row) => (row.id === id ? by(row) : row))))

  return {
    set,
    /** Changes the state now, and again after a load that is under way. */
    edit,
    find: (id: string) => items().find((row) => row.id === id),
    /** Leaves out a row that comes with a later page: before it would be a gap. */
    put: (row: T) => edit(() => (isBelow(row) ? undefined : show([row, ...items()]))),
    replace,
    change: (id: string, part: (row: T) => Partial<T>) =>
      replace(id, (row) => ({ ...row, ...part(row) })),
    remove: (id: string) => edit(() => show(items().filter((row) => row.id !== id))),
    /** Loads the first page, and again after each opening of the channel. */
    follow(handlers: Handlers) {
      forget = listen(client, {
        resync() {
          lose()
          void reload()
        },
        status({ status }) {
          if (status === 'open') void reload()
          else lose()
        },
        ...handlers,
      })
      void reload()
    },
    actions: {
      subscribe: store.subscribe,
      getSnapshot: store.getSnapshot,
      reload,
      async loadMore() {
        // Another load may replace the one that it waits for.
        let awaited: Promise<void> | undefined
        while (awaited !== running) {
          if (store.getSnapshot().isLoadingMore) return
          awaited = running
          await awaited
        }
        if (cursor === null || loading.signal.aborted) return
        set({ isLoadingMore: true })
        await load(cursor)
      },
      close() {
        forget()
        loading.abort()
      },
    },
  }
}
