import { ChevronLeft } from 'lucide-preact'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { navigate, path, withQuery } from '../ui/router.ts'
import { useShortcut } from '../ui/shortcuts.tsx'
import './panes.css'

type PanesProps = {
  /** First path segment, such as `people`. */
  area: string
  title: string
  list: ComponentChildren
  detail: ComponentChildren
}

/** The id in the URL. */
export function selectedId(): string | undefined {
  return path.value.split('/')[3] || undefined
}

export function Panes({ area, title, list, detail }: PanesProps) {
  const frame = useRef<HTMLDivElement>(null)
  const selected = selectedId()
  useFocusOnChange(frame, selected)
  useShortcut('u', `Back to the list`, () => navigate(withQuery({}, `/console/${area}`)))
  return (
    <div class="panes" ref={frame}>
      <h1 tabIndex={-1}>{title}</h1>
      <section class="pane-list" aria-label={`List of ${title.toLowerCase()}`}>
        {list}
      </section>
      <section class="pane-detail" aria-label="Details" tabIndex={-1}>
        {detail}
      </section>
    </div>
  )
}

export function BackLink({ area, title }: { area: string; title: string }) {
  return (
    <a class="button ghost back" href={withQuery({}, `/console/${area}`)}>
      <ChevronLeft />
      {title}
    </a>
  )
}

// On a phone the focused pane may have been hidden.
function useFocusOnChange(frame: { current: HTMLElement | null }, selected: string | undefined) {
  const before = useRef(selected)
  useEffect(() => {
    const left = before.current
    before.current = selected
    const list = frame.current?.querySelector<HTMLElement>('.pane-list')
    if (!list || left === selected) return
    if (selected === undefined) {
      const row = list.querySelector<HTMLElement>(`[data-id="${CSS.escape(left ?? '')}"]`)
      return (row ?? frame.current?.querySelector('h1'))?.focus()
    }
    if (getComputedStyle(list).visibility !== 'hidden') return
    frame.current?.querySelector<HTMLElement>('.pane-detail')?.focus()
  }, [selected])
}
