import { Search } from 'lucide-preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { navigate, path } from '../ui/router.ts'
import { useShortcut } from '../ui/shortcuts.tsx'
import { type Entry, type Group, search } from './contents.ts'
import { Inline } from './markdown.tsx'
import { addressOf, current, scrollToSection } from './reading.ts'

type NavigationProps = { groups: Group[]; onChosen: () => void }

/** The titles of the current group, or the search results. */
export function Navigation({ groups, onChosen }: NavigationProps) {
  const [text, setText] = useState('')
  const input = useRef<HTMLInputElement>(null)
  const frame = useRef<HTMLElement>(null)
  const isSearching = text.trim() !== ''
  const found = search(groups, text)
  useShortcut('/', 'Search', () => input.current?.focus())

  useEffect(() => {
    frame.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' })
  }, [current.value])

  function chooseFirst(event: SubmitEvent) {
    event.preventDefault()
    const first = found[0]?.entries[0]
    if (!isSearching || !first) return
    navigate(addressOf(first.id))
    onChosen()
  }

  return (
    <>
      <search>
        <form class="search" onSubmit={chooseFirst}>
          <Search />
          <input
            ref={input}
            type="search"
            aria-label="Search the reference"
            placeholder="Search"
            autocomplete="off"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
            onKeyDown={(event) => event.key === 'ArrowDown' && moveFocus(event, frame.current, 1)}
          />
          <kbd>/</kbd>
        </form>
      </search>
      <p class="visually-hidden" role="status">
        {isSearching && `${found.flatMap(({ entries }) => entries).length} found`}
      </p>
      <nav
        ref={frame}
        aria-label="Reference"
        onKeyDown={(event) => moveByArrow(event, frame.current)}
      >
        {found.map((group) => (
          <GroupLinks
            key={group.id}
            group={group}
            isOpen={isSearching || isIn(group)}
            onChosen={onChosen}
          />
        ))}
        {found.length === 0 && <p class="small soft nothing">Nothing is called “{text}”.</p>}
      </nav>
    </>
  )
}

const isIn = ({ id, entries }: Group) =>
  current.value === id || entries.some((entry) => entry.id === current.value)

type GroupLinksProps = { group: Group; isOpen: boolean; onChosen: () => void }

function GroupLinks({ group, isOpen, onChosen }: GroupLinksProps) {
  return (
    <div class="nav-group">
      <EntryLink entry={group} onChosen={onChosen} />
      {isOpen && (
        <ul>
          {group.entries.map((entry) => (
            <li key={entry.id}>
              <EntryLink entry={entry} onChosen={onChosen} />
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}

function EntryLink({ entry, onChosen }: { entry: Entry | Group; onChosen: () => void }) {
  const { id, title } = entry
  const mark = 'mark' in entry ? entry.mark : ''
  return (
    <a
      href={addressOf(id)}
      title={title}
      aria-current={current.value === id ? 'location' : undefined}
      onClick={() => {
        onChosen()
        // The URL is unchanged, so no navigation would scroll there.
        if (path.peek() === addressOf(id)) scrollToSection(id)
      }}
    >
      <span class="nav-title">
        <Inline text={title} />
      </span>
      {mark && <span class={`nav-mark ${mark.toLowerCase()}`}>{mark}</span>}
    </a>
  )
}

const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 }

function moveByArrow(event: KeyboardEvent, frame: HTMLElement | null) {
  const step = steps[event.key]
  if (step !== undefined) moveFocus(event, frame, step)
}

function moveFocus(event: KeyboardEvent, frame: HTMLElement | null, step: number) {
  const links = [...(frame?.querySelectorAll('a') ?? [])]
  const at = links.indexOf(document.activeElement as HTMLAnchorElement)
  event.preventDefault()
  links[Math.max(0, Math.min(links.length - 1, at + step))]?.focus()
}
