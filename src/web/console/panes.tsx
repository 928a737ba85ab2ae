import { ChevronLeft } from 'lucide-preact'
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Avatar } from '../kit/avatar.tsx'
import { count } from '../kit/format.ts'
import { Stale } from '../kit/list.tsx'
import { navigate, path, query, setQuery, withQuery } from '../kit/router.ts'
import { type Options, Select } from '../kit/select.tsx'
import { useShortcut } from '../kit/shortcuts.tsx'
import { Failure, Loading } from '../kit/states.tsx'
import { fill, texts } from '../kit/texts.tsx'
import { VirtualList } from '../kit/virtual-list.tsx'
import type { List } from './data.ts'

type Area = keyof typeof texts.console.areas

type PanesProps = {
  area: Area
  list: ComponentChildren
  detail: ComponentChildren
}

/** The id in the URL. */
export function selectedId(): string | undefined {
  return path.value.split('/')[3] || undefined
}

/** The id in the URL with which the page was loaded. */
export const loadedId = selectedId()

export function Panes({ area, list, detail }: PanesProps) {
  const title = texts.console.areas[area]
  const frame = useRef<HTMLDivElement>(null)
  const selected = selectedId()
  useFocusOnChange(frame, selected)
  useShortcut('u', texts.console.desk.back, () => navigate(withQuery({}, `/console/${area}`)))
  return (
    <div class="panes" ref={frame}>
      <h1 tabIndex={-1}>{title}</h1>
      <section class="pane-list" aria-label={title}>
        {list}
      </section>
      <section
        class="pane-detail"
        aria-label={texts.console.desk.details}
        tabIndex={-1}
        key={selected}
      >
        {detail}
      </section>
    </div>
  )
}

export function BackLink({ area }: { area: Area }) {
  return (
    <a class="button ghost back" href={withQuery({}, `/console/${area}`)}>
      <ChevronLeft />
      {texts.console.areas[area]}
    </a>
  )
}

// On a phone the focused pane may have been hidden. At once, because the next key may lead elsewhere.
function useFocusOnChange(frame: { current: HTMLElement | null }, selected: string | undefined) {
  const before = useRef(selected)
  useLayoutEffect(() => {
    const left = before.current
    before.current = selected
    const list = frame.current?.querySelector<HTMLElement>('.pane-list')
    if (!list || left === selected) return
    if (selected === undefined) {
      const row = list.querySelector<HTMLElement>(`[data-id="${CSS.escape(left ?? '')}"] a`)
      return (row ?? frame.current?.querySelector('h1'))?.focus()
    }
    if (getComputedStyle(list).visibility !== 'hidden') return
    frame.current?.querySelector<HTMLElement>('.pane-detail')?.focus()
  }, [selected])
}

type FilterProps = { name: string; label: string; options: Options<string> }

/** A filter of the list, kept in the URL. */
export function FilterSelect({ name, label, options }: FilterProps) {
  const [value] = options.find(([option]) => option === query.value.get(name)) ?? ['']
  return (
    <Select
      label={label}
      value={value}
      options={[['', texts.kit.any], ...options]}
      choose={(chosen) => setQuery({ [name]: chosen })}
      {...(value === '' && { text: label })}
    />
  )
}

/** The height of a row with two lines. */
const twoLinesRems = 3.75
const pixelsOf = (rems: number) =>
  rems * Number.parseFloat(getComputedStyle(document.documentElement).fontSize)

type PaneRowsProps<T> = {
  label: string
  list: List<T>
  /** The filters: another list begins at its top. */
  listKey: string
  rowRems?: number
  /** Shown when the list is empty. */
  empty: ComponentChildren
  render: (item: T) => ComponentChildren
}

export function PaneRows<T extends { id: string }>(props: PaneRowsProps<T>) {
  return (
    <>
      <Found list={props.list} listKey={props.listKey} />
      <Rows {...props} />
    </>
  )
}

/** Tells screen readers how many rows another filter or search has found. */
function Found<T>({ list, listKey }: Pick<PaneRowsProps<T>, 'list' | 'listKey'>) {
  const known = useRef(listKey)
  const [text, setText] = useState('')
  useEffect(() => {
    if (!list.data || known.current === listKey) return
    known.current = listKey
    setText(fill(texts.kit.found, { count: count(list.items.length) + (list.hasMore ? '+' : '') }))
  }, [list.data, listKey])
  return (
    <p class="visually-hidden" role="status">
      {text}
    </p>
  )
}

/** While another filter loads, the old rows stay. */
function Rows<T extends { id: string }>(props: PaneRowsProps<T>) {
  const { label, list, listKey, rowRems = twoLinesRems, empty, render } = props
  const { error, hasMore } = list
  const before = useRef<{ key: string; items: T[] }>({ key: listKey, items: [] })
  if (list.data) before.current = { key: listKey, items: list.items }
  const { key, items } = before.current
  const hasFailed = error !== undefined && !list.isStale
  if (items.length === 0 && hasFailed) return <Failure error={error} retry={list.retry} />
  if (items.length === 0 && !list.data) return <Loading rows={8} />
  if (items.length === 0) return <>{empty}</>
  return (
    <>
      <Stale from={list} />
      <div class="pane-rows" aria-busy={!list.data}>
        <VirtualList
          key={key}
          label={label}
          items={items}
          keyOf={({ id }) => id}
          rowHeight={pixelsOf(rowRems)}
          openKey={selectedId()}
          render={render}
          {...(hasMore && !hasFailed && { onEnd: list.loadMore })}
        />
      </div>
      {hasFailed && <Failure error={error} retry={list.retry} />}
    </>
  )
}

type ItemRowProps = {
  id: string
  address: string
  name: string
  picture?: string | undefined
  /** Beside the name. */
  end?: ComponentChildren
  children: ComponentChildren
}

/** The row of a person or a report: a picture and two lines. */
export function ItemRow({ id, address, name, picture, end, children }: ItemRowProps) {
  const isOpen = id === selectedId()
  return (
    <div class={`item ${isOpen ? 'open' : ''}`} data-id={id}>
      <Avatar name={name} picture={picture} />
      <a href={withQuery({}, address)} aria-current={isOpen ? 'true' : undefined}>
        <span class="row between">
          <strong class="truncate" dir="auto">
            {name}
          </strong>
          {end}
        </span>
        <span class="truncate">{children}</span>
      </a>
    </div>
  )
}
