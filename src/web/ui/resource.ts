import { useCallback, useEffect, useRef, useState } from 'preact/hooks'

export type Resource<T> = {
  /** Stays during a reload. */
  data: T | undefined
  error: unknown
  isLoading: boolean
  reload: () => void
  /** Changes the data locally; the next response replaces it. */
  update: (change: (data: T) => T) => void
}

type Loaded<T> = { key: string; data?: T | undefined; error?: unknown; isLoading: boolean }

/** Loads data and reloads it when the key changes, on `reload`, and when the network is back after a failure.
 *  @param key identifies the data; undefined loads nothing */
export function useResource<T>(
  key: string | undefined,
  load: (signal: AbortSignal) => Promise<T>,
): Resource<T> {
  const [loaded, setLoaded] = useState<Loaded<T>>({ key: '', isLoading: true })
  const [turn, setTurn] = useState(0)
  const latest = useRef(load)
  latest.current = load
  const isCurrent = loaded.key === key

  useEffect(() => {
    if (key === undefined) return
    const { signal, abort } = abortable()
    setLoaded((before) => ({
      key,
      data: before.key === key ? before.data : undefined,
      isLoading: true,
    }))
    latest.current(signal).then(
      (data) => signal.aborted || setLoaded({ key, data, isLoading: false }),
      (error) =>
        signal.aborted || setLoaded((before) => ({ ...before, key, error, isLoading: false })),
    )
    return abort
  }, [key, turn])

  const reload = useCallback(() => setTurn((before) => before + 1), [])
  useWhenOnline(isCurrent && loaded.error !== undefined, reload)
  // A late response must not overwrite newer data.
  const update = useCallback(
    (change: (data: T) => T) =>
      setLoaded((before) =>
        before.key !== key || before.data === undefined
          ? before
          : { ...before, data: change(before.data) },
      ),
    [key],
  )
  return {
    data: isCurrent ? loaded.data : undefined,
    error: isCurrent ? loaded.error : undefined,
    isLoading: !isCurrent || loaded.isLoading,
    reload,
    update,
  }
}

function abortable() {
  const controller = new AbortController()
  return { signal: controller.signal, abort: () => controller.abort() }
}

function useWhenOnline(hasFailed: boolean, work: () => void) {
  useEffect(() => {
    if (!hasFailed) return
    addEventListener('online', work)
    return () => removeEventListener('online', work)
  }, [hasFailed, work])
}

/** Rows that moved down since the last page was loaded come a second time. */
function joined<T>(items: T[], more: T[], idOf: (item: T) => unknown): T[] {
  const known = new Set(items.map(idOf))
  return [...items, ...more.filter((item) => !known.has(idOf(item)))]
}

type Part<T> = { data: T[]; pagination: { cursor: string | null } }

export type List<T> = {
  items: T[]
  error: unknown
  isLoading: boolean
  hasMore: boolean
  loadMore: () => void
  reload: () => void
  retry: () => void
  update: (change: (items: T[]) => T[]) => void
}

/** A list that loads cursor pages as it is scrolled.
 *  @param key identifies the list, such as its filters */
export function useList<T>(
  key: string,
  loadPage: (cursor: string | undefined, signal: AbortSignal) => Promise<Part<T>>,
  idOf: (item: T) => unknown = (item) => (item as { id?: unknown }).id, // nearly all rows have an id
): List<T> {
  const first = useResource(key, async (signal) => {
    const { data, pagination } = await loadPage(undefined, signal)
    return { items: data, cursor: pagination.cursor }
  })
  const { data, update: updateData } = first
  const [failure, setFailure] = useState<{ cursor: string; error: unknown }>()
  const loading = useRef<string>(undefined)

  async function loadMore() {
    const cursor = data?.cursor
    if (!cursor || loading.current === cursor) return
    loading.current = cursor
    setFailure(undefined)
    try {
      const part = await loadPage(cursor, new AbortController().signal)
      updateData((before) =>
        before.cursor === cursor
          ? { items: joined(before.items, part.data, idOf), cursor: part.pagination.cursor }
          : before,
      )
    } catch (error) {
      setFailure({ cursor, error })
    } finally {
      loading.current = undefined
    }
  }

  const moreError = failure && failure.cursor === data?.cursor ? failure.error : undefined
  return {
    items: data?.items ?? [],
    error: first.error ?? moreError,
    isLoading: first.isLoading,
    hasMore: data?.cursor != null,
    loadMore,
    reload: first.reload,
    retry: first.error === undefined ? loadMore : first.reload,
    update: (change) => updateData(({ items, cursor }) => ({ items: change(items), cursor })),
  }
}
