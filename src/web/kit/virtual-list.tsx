import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { closest } from './closest.ts'

type VirtualListProps<T> = {
  label: string
  items: T[]
  keyOf: (item: T) => string
  /** In pixels, the same for every row. */
  rowHeight: number
  /** The key of a row that is scrolled into view when it becomes this one. */
  openKey: string | undefined
  /** Renders a row with one link or button that takes the focus. */
  render: (item: T) => ComponentChildren
  /** Called when the end is scrolled into view. */
  onEnd?: () => void
}

const spareRows = 8

/** A virtual list: only the visible rows are rendered. The arrow keys, j and k, Home and End move between rows. Rows
 *  added or removed above the visible ones do not move them. */
export function VirtualList<T>(props: VirtualListProps<T>) {
  const { label, items, keyOf, rowHeight, openKey, render, onEnd } = props
  const frame = useRef<HTMLDivElement>(null)
  const [view, setView] = useState({ top: 0, height: 800 })
  const [focused, setFocused] = useState<string>()
  const focusIndex = useRef<number>(undefined)

  const first = Math.max(0, Math.floor(view.top / rowHeight) - spareRows)
  const last = Math.min(items.length, Math.ceil((view.top + view.height) / rowHeight) + spareRows)
  useAnchor(frame, items, keyOf, rowHeight)

  useLayoutEffect(() => {
    const element = frame.current
    if (!element) return
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight })
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    element.addEventListener('scroll', measure, { passive: true })
    return () => {
      observer.disconnect()
      element.removeEventListener('scroll', measure)
    }
  }, [])

  useLayoutEffect(() => {
    const index = items.findIndex((item) => keyOf(item) === openKey)
    if (index >= 0) scrollTo(frame.current, index * rowHeight, rowHeight)
  }, [openKey])

  useLayoutEffect(() => {
    if (last >= items.length && items.length > 0) onEnd?.()
  }, [last, items.length, onEnd])

  useLayoutEffect(() => {
    const row = frame.current?.querySelector(`[data-index="${focusIndex.current}"]`)
    const target = row?.querySelector<HTMLElement>('a, button')
    if (!target) return
    focusIndex.current = undefined
    target.focus({ preventScroll: true })
  })

  function move(event: KeyboardEvent) {
    const row = closest(event, '[data-index]')
    const step = stepOf(event.key, Math.floor(view.height / rowHeight))
    const isChord = event.ctrlKey || event.metaKey || event.altKey
    if (!row || step === undefined || isChord) return
    event.preventDefault()
    const from = Number(row.dataset['index'])
    const to = Math.max(0, Math.min(items.length - 1, from + step))
    focusIndex.current = to
    scrollTo(frame.current, to * rowHeight, rowHeight)
    setFocused(items[to] && keyOf(items[to]))
  }

  const rows = items.slice(first, last).map((item, offset) => ({ item, index: first + offset }))
  // The focused row stays rendered when it is scrolled out of view.
  const kept = focused === undefined ? -1 : items.findIndex((item) => keyOf(item) === focused)
  const keptItem = items[kept]
  if (keptItem && (kept < first || kept >= last)) rows.push({ item: keptItem, index: kept })

  return (
    <div class="virtual" ref={frame} tabIndex={-1}>
      <ul
        aria-label={label}
        style={{ height: `${items.length * rowHeight}px` }}
        onKeyDown={move}
        onFocusIn={(event) => {
          const row = closest(event, '[data-index]')
          const item = items[Number(row?.dataset['index'])]
          if (item) setFocused(keyOf(item))
        }}
        onFocusOut={() => focusIndex.current === undefined && setFocused(undefined)}
      >
        {rows.map(({ item, index }) => (
          <li
            key={keyOf(item)}
            data-index={index}
            aria-setsize={items.length}
            aria-posinset={index + 1}
            style={{ height: `${rowHeight}px`, transform: `translateY(${index * rowHeight}px)` }}
          >
            {render(item)}
          </li>
        ))}
      </ul>
    </div>
  )
}

function stepOf(key: string, page: number): number | undefined {
  const steps: Record<string, number> = {
    ArrowDown: 1,
    ArrowUp: -1,
    j: 1,
    k: -1,
    PageDown: page,
    PageUp: -page,
    Home: Number.NEGATIVE_INFINITY,
    End: Number.POSITIVE_INFINITY,
  }
  return steps[key]
}

function scrollTo(element: HTMLElement | null, top: number, height: number) {
  if (!element) return
  if (top < element.scrollTop) element.scrollTop = top
  else if (top + height > element.scrollTop + element.clientHeight)
    element.scrollTop = top + height - element.clientHeight
}

/** Keeps the first visible row in place when rows above it change. At the very top new rows are shown. */
function useAnchor<T>(
  frame: { current: HTMLElement | null },
  items: T[],
  keyOf: (item: T) => string,
  rowHeight: number,
) {
  const before = useRef<T[]>([])
  useLayoutEffect(() => {
    const element = frame.current
    const old = before.current
    before.current = items
    if (!element || element.scrollTop === 0 || old === items) return
    const index = Math.floor(element.scrollTop / rowHeight)
    const anchor = old[index]
    const now = anchor ? items.findIndex((item) => keyOf(item) === keyOf(anchor)) : -1
    if (now >= 0) element.scrollTop += (now - index) * rowHeight
  })
}
