import { computed, signal } from '@preact/signals'
import type { Client, CursorPage, Item, ListRoute } from '../../../client/src/client.ts'

const partSize = 30

/** Reads a list part by part, each after the cursor of the one before. Rows that arrive meanwhile do not disturb that. */
export const partsOf =
  <R extends ListRoute>(client: Client, route: R, params: Record<string, string> = {}) =>
  (cursor?: string, signal?: AbortSignal): Promise<CursorPage<Item<R>>> => {
    const options = { params, query: { limit: partSize, cursor }, signal }
    // `limit` asks for this form.
    return client.request(route, options as never) as Promise<unknown> as Promise<
      CursorPage<Item<R>>
    >
  }

type Row = { id: string }
type Rules<T> = {
  /** Whether `a` stands before `b`. */
  isBefore: (a: T, b: T) => boolean
  /** Whether what is known of a row is newer than what has just come: answers and frames overtake each other. */
  isNewer: (known: T, item: T) => boolean
}

export type LiveList = Pick<
  ReturnType<typeof openList<Row>>,
  'isLoaded' | 'error' | 'hasMore' | 'loadMore' | 'retry'
>

/** A list that grows by parts, and by what frames tell. By their id, no row stands here twice. */
export function openList<T extends Row>(
  loadPart: (cursor?: string) => Promise<CursorPage<T>>,
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

  // The newest part again says nothing about how far the list was read, unless rows between it and the known ones are missing.
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
      const part = await loadPart(after)
      if (after === undefined) putNewest(part)
      else {
        put(part.data)
        cursor.value = part.pagination.cursor
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
    /** Changes rows in place, whatever came before. */
    change(changeOf: (item: T) => T) {
      items.value = items.value.map(changeOf)
    },
    load: () => load(),
    loadMore: () => load(cursor.value ?? undefined),
    /** Tries again what has failed. */
    retry: () => load(failedAfter),
  }
}
