import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { List } from '../ui/resource.ts'
import { Failure, Loading } from '../ui/states.tsx'

type RowListProps<T> = {
  label: string
  list: List<T>
  /** Shown when the list is empty. */
  empty: ComponentChildren
  render: (item: T) => ComponentChildren
}

/** A list with rows of any height and a button that loads more. */
export function RowList<T extends { id: string }>({ label, list, empty, render }: RowListProps<T>) {
  const { items, error, isLoading, hasMore, loadMore, retry } = list
  const { frame, onFocusIn } = useFocusAfterRemoval(items)
  return (
    <div class="stack" ref={frame} tabIndex={-1}>
      {items.length > 0 ? (
        <ul class="entries" aria-label={label} onFocusIn={onFocusIn}>
          {items.map((item) => (
            <li key={item.id} data-id={item.id}>
              {render(item)}
            </li>
          ))}
        </ul>
      ) : (
        error === undefined && <div class="entries">{isLoading ? <Loading rows={5} /> : empty}</div>
      )}
      {error !== undefined && <Failure error={error} retry={retry} />}
      {error === undefined && hasMore && (
        <button type="button" class="button" onClick={loadMore}>
          Show more
        </button>
      )}
    </div>
  )
}

/** When the focused row is removed, the row in its place gets the focus. */
function useFocusAfterRemoval(items: { id: string }[]) {
  const frame = useRef<HTMLDivElement>(null)
  const focused = useRef<{ id: string; index: number }>(undefined)
  useLayoutEffect(() => {
    const last = focused.current
    if (!last || items.some(({ id }) => id === last.id)) return
    focused.current = undefined
    if (document.activeElement !== document.body) return
    const rows = frame.current?.querySelectorAll<HTMLElement>('[data-id]') ?? []
    const row = rows[Math.min(last.index, rows.length - 1)]
    const target = row?.querySelector<HTMLElement>('a, button') ?? frame.current
    target?.focus()
  }, [items])
  function onFocusIn(event: FocusEvent) {
    const id = (event.target as Element).closest<HTMLElement>('[data-id]')?.dataset['id']
    const index = items.findIndex((item) => item.id === id)
    focused.current = id === undefined ? undefined : { id, index }
  }
  return { frame, onFocusIn }
}
