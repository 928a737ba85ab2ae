import type { RefObject } from 'preact'
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { useResource } from '../../ui/resource.ts'
import { request } from '../session.ts'
import { type CannedReply, cannedAt, matching, type Slash } from './canned.ts'

type TextProps = {
  area: RefObject<HTMLTextAreaElement | null>
  label: string
  placeholder: string
  text: string
  edit: (text: string) => void
  isReadOnly: boolean
  send: () => void
  leave: () => void
}

/** A growing textarea. A slash at the beginning of a word opens the canned replies. */
export function CannedText(props: TextProps) {
  const { area, label, placeholder, text, edit, isReadOnly, send, leave } = props
  const id = useId()
  const canned = useCanned(area, text, edit)
  const { slash, found, active } = canned

  useLayoutEffect(() => {
    const element = area.current
    if (!element) return
    element.style.height = 'auto'
    element.style.height = `${element.scrollHeight + 2}px`
  }, [text, area])

  function press(event: KeyboardEvent) {
    if (event.isComposing || canned.press(event)) return
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault()
      send()
    }
    if (event.key === 'Escape') leave()
  }

  return (
    <div class="text">
      {slash && (
        <CannedList
          id={id}
          found={found}
          active={active}
          emptyText={canned.emptyText}
          choose={canned.insert}
        />
      )}
      <textarea
        ref={area}
        rows={1}
        dir="auto"
        aria-label={label}
        aria-autocomplete="list"
        aria-haspopup="listbox"
        aria-controls={slash && id}
        aria-activedescendant={slash && found[active] && `${id}-${active}`}
        placeholder={placeholder}
        maxLength={10_000}
        readOnly={isReadOnly}
        value={text}
        onInput={(event) => {
          edit(event.currentTarget.value)
          canned.look()
        }}
        onKeyDown={press}
        onKeyUp={canned.look}
        onClick={canned.look}
        onBlur={canned.dismiss}
      />
    </div>
  )
}

function useCanned(
  area: RefObject<HTMLTextAreaElement | null>,
  text: string,
  edit: (text: string) => void,
) {
  const [caret, setCaret] = useState(0)
  const [dismissed, setDismissed] = useState<number>()
  const [active, setActive] = useState(0)
  const wantedCaret = useRef<number>(undefined)
  const at = cannedAt(text, caret)
  const slash: Slash | undefined = at && at.start !== dismissed ? at : undefined
  const { data, error } = useResource(slash && 'canned', loadCanned)
  const found = slash && data ? matching(data, slash.word) : []
  const isShown = slash !== undefined && (found.length > 0 || slash.word === '')

  useLayoutEffect(() => {
    if (wantedCaret.current === undefined) return
    area.current?.setSelectionRange(wantedCaret.current, wantedCaret.current)
    wantedCaret.current = undefined
  })

  function look() {
    const place = area.current?.selectionEnd ?? 0
    if (place === caret) return
    setCaret(place)
    setActive(0)
    if (!cannedAt(area.current?.value ?? '', place)) setDismissed(undefined)
  }

  function insert({ body }: CannedReply) {
    if (!slash) return
    wantedCaret.current = slash.start + body.length
    edit(text.slice(0, slash.start) + body + text.slice(caret))
    setCaret(wantedCaret.current)
    area.current?.focus()
  }

  const dismiss = () => setDismissed(slash?.start)

  /** @returns whether the list of replies has handled the key */
  function press(event: KeyboardEvent): boolean {
    const isForList = isShown && !(event.ctrlKey || event.metaKey)
    const work = isForList ? workOf(event.key) : undefined
    if (!work) return false
    event.preventDefault()
    work()
    return true
  }

  function workOf(key: string): (() => void) | undefined {
    if (key === 'Escape') return dismiss
    const chosen = found[active]
    if (!chosen) return undefined
    const works: Record<string, () => void> = {
      ArrowDown: () => setActive((active + 1) % found.length),
      ArrowUp: () => setActive((active + found.length - 1) % found.length),
      Enter: () => insert(chosen),
      Tab: () => insert(chosen),
    }
    return works[key]
  }

  return {
    slash: isShown ? slash : undefined,
    found,
    active,
    emptyText: emptyText(data !== undefined, error !== undefined),
    look,
    insert,
    dismiss,
    press,
  }
}

function emptyText(isKnown: boolean, hasFailed: boolean): string {
  if (hasFailed) return 'The canned replies could not be loaded.'
  return isKnown ? 'There are no canned replies yet. System has a place for them.' : 'Loading…'
}

async function loadCanned(signal: AbortSignal): Promise<CannedReply[]> {
  const query = { per_page: 100 }
  const { data } = await request('GET /v1/admin/support/canned-replies', { query, signal })
  return data
}

type ListProps = {
  id: string
  found: CannedReply[]
  active: number
  emptyText: string
  choose: (reply: CannedReply) => void
}

function CannedList({ id, found, active, emptyText, choose }: ListProps) {
  const list = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    list.current?.children[active]?.scrollIntoView({ block: 'nearest' })
  }, [active])
  if (found.length === 0) {
    return (
      <p class="canned small soft" id={id}>
        {emptyText}
      </p>
    )
  }
  return (
    <div class="canned" role="listbox" id={id} aria-label="Canned replies" ref={list}>
      {found.map((reply, index) => (
        // The textarea keeps the focus and handles the keys of the list.
        // biome-ignore lint/a11y/useKeyWithClickEvents: see above
        // biome-ignore lint/a11y/useFocusableInteractive: see above
        <div
          key={reply.id}
          id={`${id}-${index}`}
          role="option"
          aria-selected={index === active}
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => choose(reply)}
        >
          <strong class="truncate">{reply.title}</strong>
          <span class="soft truncate">{reply.body}</span>
        </div>
      ))}
    </div>
  )
}
