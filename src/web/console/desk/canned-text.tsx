import type { RefObject } from 'preact'
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { CannedReply, DeskTicket } from '../../../../client/src/client.ts'
import { isComposing } from '../../kit/field.tsx'
import { type Language, languages, texts } from '../../kit/texts.tsx'
import { useList } from '../data.ts'

const words = texts.console.desk.composer

type TextProps = {
  area: RefObject<HTMLTextAreaElement | null>
  label: string
  placeholder: string
  /** The owner, for the canned replies. */
  owner: DeskTicket['user']
  text: string
  edit: (text: string) => void
  isReadOnly: boolean
  send: () => void
  leave: () => void
}

/** A growing textarea. A slash at the beginning of a word opens the canned replies. */
export function CannedText(props: TextProps) {
  const { area, label, placeholder, owner, text, edit, isReadOnly, send, leave } = props
  const id = useId()
  const canned = useCanned({ area, owner, text, edit })
  const { slash, found, active } = canned

  useLayoutEffect(() => {
    const element = area.current
    if (!element) return
    element.style.height = 'auto'
    element.style.height = `${element.scrollHeight + 2}px`
  }, [text, area])

  function press(event: KeyboardEvent) {
    if (isComposing(event) || canned.press(event)) return
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
          language={owner.locale}
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

function useCanned({
  area,
  owner,
  text,
  edit,
}: Pick<TextProps, 'area' | 'owner' | 'text' | 'edit'>) {
  const [caret, setCaret] = useState(0)
  const [dismissed, setDismissed] = useState<number>()
  const [active, setActive] = useState(0)
  const wantedCaret = useRef<number>(undefined)
  const at = cannedAt(text, caret)
  const slash: Slash | undefined = at && at.start !== dismissed ? at : undefined
  const [isAsked, setAsked] = useState(false)
  if (slash && !isAsked) setAsked(true)
  const { replies, error } = useReplies(isAsked)
  const found = slash && replies ? matching(replies, slash.word, owner.locale) : []
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

  function insert(reply: CannedReply) {
    if (!slash) return
    const body = reply.body.replaceAll('{name}', owner.display_name)
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
    emptyText: emptyText(replies !== undefined, error !== undefined),
    look,
    insert,
    dismiss,
    press,
  }
}

function emptyText(isKnown: boolean, hasFailed: boolean): string {
  if (hasFailed) return words.cannedFailed
  return isKnown ? words.noCanned : texts.kit.loading
}

/** All canned replies, once they are asked for. */
function useReplies(isAsked: boolean) {
  const list = useList('GET /v1/admin/support/canned-replies', isAsked ? {} : undefined, {
    limit: 100,
  })
  useEffect(() => {
    if (list.hasMore) list.loadMore()
  }, [list.items.length, list.hasMore])
  return { replies: list.data, error: list.error }
}

type ListProps = {
  id: string
  found: CannedReply[]
  active: number
  language: Language
  emptyText: string
  choose: (reply: CannedReply) => void
}

function CannedList({ id, found, active, language, emptyText, choose }: ListProps) {
  const list = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    list.current?.children[active]?.scrollIntoView({ block: 'nearest' })
  }, [active])
  if (found.length === 0) {
    return (
      <p class="menu canned small soft" id={id}>
        {emptyText}
      </p>
    )
  }
  return (
    <div
      class="menu canned"
      role="listbox"
      id={id}
      aria-label={texts.console.system.tabs.replies}
      ref={list}
    >
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
          <strong class="truncate">
            {reply.title}
            {!fits(reply, language) && ` · ${nameOf(reply)}`}
          </strong>
          <span class="soft truncate">{reply.body}</span>
        </div>
      ))}
    </div>
  )
}

/** The position of the slash, and the search word after it. */
type Slash = { start: number; word: string }

/** @returns the slash of the word at the caret, if that word begins with one */
function cannedAt(text: string, caret: number): Slash | undefined {
  const word = /(?:^|\s)\/([^\n/]{0,40})$/.exec(text.slice(0, caret))?.[1]
  if (word === undefined) return undefined
  return { start: caret - word.length - 1, word }
}

const fits = ({ locale }: CannedReply, language: Language) => locale === null || locale === language

const nameOf = ({ locale }: CannedReply) => languages.find(([one]) => one === locale)?.[1]

/** Replies in the language of the owner come first; among them, matches in the title. */
function matching(replies: CannedReply[], word: string, language: Language): CannedReply[] {
  const wanted = word.trim().toLowerCase()
  const has = (text: string) => text.toLowerCase().includes(wanted)
  const named = replies.filter(({ title }) => has(title))
  const found = [...named, ...replies.filter(({ title, body }) => !has(title) && has(body))]
  const isForeign = (reply: CannedReply) => Number(!fits(reply, language))
  return found.sort((a, b) => isForeign(a) - isForeign(b))
}
