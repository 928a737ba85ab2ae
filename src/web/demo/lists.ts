import { computed, signal } from '@preact/signals'
import type { Client, CursorPage, Item, ListRoute } from '../../../client/src/client.ts'

const pageSize = 30

/** Requests a list page by page with cursors, so that new rows do not shift the pages. */
export const cursorPages =
  <R extends ListRoute>(client: Client, route: R, params: Record<string, string> = {}) =>
  (cursor?: string, signal?: AbortSignal): Promise<CursorPage<Item<R>>> => {
    const options = { params, query: { limit: pageSize, cursor }, signal }
    // With `limit` the response has a cursor.
    return client.request(route, options as never) as Promise<unknown> as Promise<
      CursorPage<Item<R>>
    >
  }

type Row = { id: string }
type Rules<T> = {
  isBefore: (a: T, b: T) => boolean
  /** True if the known row is newer than the received one: responses and frames can arrive out of order. */
  isNewer: (known: T, item: T) => boolean
}

export type LiveList = Pick<
  ReturnType<typeof openList<Row>>,
  'isLoaded' | 'error' | 'hasMore' | 'loadMore' | 'retry'
>

/** A paginated list that frames update. Each id appears once. */
export function openList<T extends Row>(
  loadPage: (cursor?: string) => Promise<CursorPage<T>>,
  { isBefore, isNewer }: Rules<T>,
) {
  const items = signal<T[]>([])
  const cursor = signal<string | null>(null)
  const isLoaded = signal(false)
  const error = signal<unknown>(undefined)
  let failedAfter: string | undefined

  function put(some: T[]) {
    const byId = new Map(items.value.map((known) => [known.id, known]))
    for (const item of some) {
      const known = byId.get(item.id)
      if (!known || !isNewer(known, item)) byId.set(item.id, item)
    }
    items.value = [...byId.values()].sort((a, b) => (isBefore(a, b) ? -1 : 1))
  }

  // A reload of the first page does not move the cursor, unless there is a gap between that page and the known rows.
  function putNewest({ data, pagination }: CursorPage<T>) {
    const last = data.at(-1)
    const adjoins = data.some(({ id }) => items.value.some((known) => known.id === id))
    const hasGap = pagination.cursor !== null && !adjoins
    if (last && hasGap) items.value = items.value.filter((known) => isBefore(known, last))
    if (hasGap || !isLoaded.value) cursor.value = pagination.cursor
    put(data)
  }

  async function load(after?: string) {
    error.value = undefined
    try {
      const page = await loadPage(after)
      if (after === undefined) putNewest(page)
      else {
        put(page.data)
        cursor.value = page.pagination.cursor
      }
      isLoaded.value = true
    } catch (caught) {
      failedAfter = after
      error.value = caught
    }
  }

  return {
    items,
    isLoaded,
    error,
    hasMore: computed(() => cursor.value !== null),
    put,
    /** Changes rows in place. */
    change(changeOf: (item: T) => T) {
      items.value = items.value.map(changeOf)
    },
    load: () => load(),
    loadMore: () => load(cursor.value ?? undefined),
    retry: () => load(failedAfter),
  }
}
