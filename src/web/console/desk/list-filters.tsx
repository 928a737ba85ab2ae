import { ListFilter, Search } from 'lucide-preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { navigate, withQuery } from '../../ui/router.ts'
import { useShortcut } from '../../ui/shortcuts.tsx'
import { user } from '../session.ts'
import { admins } from './admins.ts'
import { asksForAssignee, filter, hasFilters } from './views.ts'
import { categories, categoryNames, priorities, priorityNames } from './words.ts'

const pauseMilliseconds = 300
const cleared = { q: undefined, priority: undefined, category: undefined, assignee: undefined }
const change = (values: Record<string, string | undefined>) =>
  navigate(withQuery(values), 'replace')

export function ListFilters() {
  const { priority, category, assignee } = filter.value
  const chosen = [priority, category, asksForAssignee(filter.value) && assignee].filter(Boolean)
  const [isOpen, setOpen] = useState(chosen.length > 0)
  return (
    <div class="ticket-filters">
      <div class="row">
        <SearchField />
        <button
          type="button"
          class="button ghost icon"
          aria-label={chosen.length > 0 ? `Filters, ${chosen.length} set` : 'Filters'}
          title="Filters"
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          <ListFilter />
          {chosen.length > 0 && <span class="dot accent" />}
        </button>
      </div>
      {isOpen && <FilterSelects />}
      {hasFilters(filter.value) && (
        <button type="button" class="button ghost clear" onClick={() => change(cleared)}>
          Clear search and filters
        </button>
      )}
    </div>
  )
}

function SearchField() {
  const { q } = filter.value
  const [text, setText] = useState(q)
  const input = useRef<HTMLInputElement>(null)
  useShortcut('/', 'Search', () => input.current?.focus())
  const searched = useRef(q)
  // The back button and the views change the URL, too.
  useEffect(() => {
    if (q !== searched.current) setText(q)
    searched.current = q
  }, [q])
  function search() {
    searched.current = text.trim()
    change({ q: text.trim() })
  }
  useEffect(() => {
    if (text.trim() === searched.current) return
    const timer = setTimeout(search, pauseMilliseconds)
    return () => clearTimeout(timer)
  }, [text])
  return (
    <div class="ticket-search">
      <Search />
      <input
        ref={input}
        type="search"
        aria-label="Search tickets"
        placeholder="Search"
        maxLength={200}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') event.currentTarget.blur()
          if (event.key === 'Enter') search()
        }}
      />
    </div>
  )
}

function FilterSelects() {
  const { priority, category, assignee } = filter.value
  const others = admins.value.filter(({ id }) => id !== user.value?.id)
  return (
    <div class="selects">
      <FilterSelect
        name="priority"
        label="Priority"
        value={priority}
        options={priorities.map((value) => [value, priorityNames[value]])}
      />
      <FilterSelect
        name="category"
        label="Category"
        value={category}
        options={categories.map((value) => [value, categoryNames[value]])}
      />
      {asksForAssignee(filter.value) && (
        <FilterSelect
          name="assignee"
          label="Assignee"
          value={assignee}
          options={[
            ['me', 'Me'],
            ['none', 'Nobody'],
            ...others.map(({ id, display_name }): [string, string] => [id, display_name]),
          ]}
        />
      )}
    </div>
  )
}

type FilterSelectProps = {
  name: string
  label: string
  value: string | undefined
  options: [value: string, name: string][]
}

function FilterSelect({ name, label, value = '', options }: FilterSelectProps) {
  return (
    <select
      aria-label={label}
      value={value}
      onChange={(event) => change({ [name]: event.currentTarget.value })}
    >
      <option value="">{label}: any</option>
      {options.map(([option, text]) => (
        <option key={option} value={option}>
          {text}
        </option>
      ))}
    </select>
  )
}
