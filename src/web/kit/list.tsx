import type { ComponentChildren, Ref } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { Button } from './button.tsx'
import { closest } from './closest.ts'
import { errorText } from './errors.ts'
import { isFocusLost } from './kept-focus.ts'
import { withQuery } from './router.ts'
import { useShortcut } from './shortcuts.tsx'
import { Failure, Loading } from './states.tsx'
import { fill, texts } from './texts.tsx'

type Read<T> = {
  data: T | undefined
  error: unknown
  isLoading: boolean
  isStale: boolean
  reload: () => void
}

type LoadedProps<T> = {
  from: Read<T>
  rows?: number
  /** In place of the placeholder rows. */
  loading?: ComponentChildren
  children: (data: T) => ComponentChildren
}

/** The data, or why they are not there. Data that could not be read again stay, and say so. */
export function Loaded<T>({ from, rows = 4, loading, children }: LoadedProps<T>) {
  const { data, error, reload } = from
  if (data !== undefined) {
    return (
      <>
        <Stale from={from} />
        {children(data)}
      </>
    )
  }
  if (error !== undefined) return <Failure error={error} retry={reload} />
  return <>{loading ?? <Loading rows={rows} />}</>
}

type SectionProps = {
  title: string
  level?: 2 | 3
  class?: string
  /** Takes the focus. */
  heading?: Ref<HTMLHeadingElement>
  /** Beside the heading. */
  end?: ComponentChildren
  children: ComponentChildren
}

/** A part of a page under a heading. */
export function Section({ title, level = 3, heading, end, children, ...props }: SectionProps) {
  const Heading = `h${level}` as const
  return (
    <section class={['stack tight', props.class].join(' ').trim()} aria-label={title}>
      <div class="row between">
        <Heading ref={heading ?? null} tabIndex={heading ? -1 : undefined}>
          {title}
        </Heading>
        {end}
      </div>
      {children}
    </section>
  )
}

/** Facts by name; those without a value are left out. */
export const Facts = ({ of }: { of: [name: string, value: ComponentChildren][] }) => (
  <dl class="facts">
    {of
      .filter(([, value]) => value !== null)
      .map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
  </dl>
)

type SegmentsProps = {
  label: string
  /** The value of the parameter in the URL; the first option has none. */
  name: string
  value: string
  options: readonly (readonly [value: string, text: string])[]
}

/** Links to views of one list. */
export const Segments = ({ label, name, value, options }: SegmentsProps) => (
  <nav class="segments" aria-label={label}>
    {options.map(([option, text], index) => (
      <a
        key={option}
        href={withQuery({ [name]: index === 0 ? undefined : option })}
        aria-current={option === value ? 'page' : undefined}
      >
        {text}
      </a>
    ))}
  </nav>
)

const retryMilliseconds = 5_000

/** Says that shown data could not be read again. */
export function Stale({ from }: { from: Omit<Read<unknown>, 'data'> }) {
  const { error, isStale, isLoading, reload } = from
  const latest = useRef(reload)
  latest.current = reload
  useEffect(() => {
    if (!isStale || isLoading || error === undefined) return
    const timer = setTimeout(() => latest.current(), retryMilliseconds)
    return () => clearTimeout(timer)
  }, [isStale, isLoading, error])
  if (!isStale) return null
  return (
    <div class="notice warning row between" role="status">
      <span>
        {error === undefined
          ? texts.kit.newer
          : fill(texts.kit.notCurrent, { problem: errorText(error).text })}
      </span>
      <Button tone="ghost" onClick={reload}>
        {error === undefined ? texts.kit.showNewer : texts.kit.retry}
      </Button>
    </div>
  )
}

type Rows<T> = Read<T[]> & { items: T[]; hasMore: boolean; loadMore: () => void; retry: () => void }
type RowListProps<T> = {
  label: string
  list: Rows<T>
  /** Shown when the list is empty. */
  empty: ComponentChildren
  render: (item: T) => ComponentChildren
}

/** Only broadcasts have no `id`. */
export function idOf(item: object): string {
  if ('id' in item) return String(item.id)
  return 'broadcast_id' in item ? String(item.broadcast_id) : ''
}

/** A list with rows of any height and a button that loads more. */
export function RowList<T extends object>(props: RowListProps<T>) {
  const { label, list, empty, render } = props
  const { items, error, hasMore, loadMore, retry } = list
  const { frame, onFocusIn, expectMore } = useFocusAfterRemoval(items.map(idOf))
  function showMore() {
    expectMore()
    loadMore()
  }
  const hasFailed = error !== undefined && !list.isStale
  return (
    <div class="stack" ref={frame} tabIndex={-1}>
      <Stale from={list} />
      {items.length > 0 ? (
        <ul class="entries" aria-label={label} onFocusIn={onFocusIn}>
          {items.map((item) => (
            <li key={idOf(item)} data-id={idOf(item)}>
              {render(item)}
            </li>
          ))}
        </ul>
      ) : (
        !hasFailed && (
          <div class="entries">{list.data === undefined ? <Loading rows={5} /> : empty}</div>
        )
      )}
      {hasFailed && <Failure error={error} retry={retry} />}
      {error === undefined && hasMore && <Button onClick={showMore}>{texts.kit.showMore}</Button>}
    </div>
  )
}

/** When the focused row or button is removed, the row in its place gets the focus. So does the first further row when the button
 *  for more goes. */
function useFocusAfterRemoval(ids: string[]) {
  const frame = useRef<HTMLDivElement>(null)
  const focused = useRef<{ id: string; index: number; element: Element | null }>(undefined)
  useLayoutEffect(() => {
    const last = focused.current
    if (!last?.element || last.element.isConnected) return
    focused.current = undefined
    if (!isFocusLost()) return
    const rows = frame.current?.querySelectorAll<HTMLElement>('[data-id]') ?? []
    const at = ids.includes(last.id) ? ids.indexOf(last.id) : last.index
    const row = rows[Math.min(at, rows.length - 1)]
    const target = row?.querySelector('button') ?? row?.querySelector('a') ?? frame.current
    target?.focus()
  })
  function onFocusIn(event: FocusEvent) {
    const id = closest(event, '[data-id]')?.dataset['id']
    const element = document.activeElement
    focused.current = id === undefined ? undefined : { id, index: ids.indexOf(id), element }
  }
  const expectMore = () => {
    focused.current = { id: '', index: ids.length, element: document.activeElement }
  }
  return { frame, onFocusIn, expectMore }
}

type ListPageProps<T> = RowListProps<T> & {
  text: string
  /** The button that adds a row. */
  action: string
  add: () => unknown
}

/** A list with a sentence about it and a button that adds a row. */
export function ListPage<T extends object>({ text, action, add, ...list }: ListPageProps<T>) {
  useShortcut('n', action, add)
  return (
    <>
      <div class="row between wrap">
        <p class="soft">{text}</p>
        <Button tone="primary" onClick={add}>
          {action}
        </Button>
      </div>
      <RowList {...list} />
    </>
  )
}
