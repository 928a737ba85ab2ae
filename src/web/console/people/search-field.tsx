import { useEffect, useRef, useState } from 'preact/hooks'

type SearchFieldProps = {
  label: string
  placeholder: string
  value: string
  onSearch: (text: string) => void
}

const pauseMilliseconds = 250

/** A search input, debounced. */
export function SearchField({ label, placeholder, value, onSearch }: SearchFieldProps) {
  const [text, setText] = useState(value)
  const searched = useRef(value)
  const latest = useRef(onSearch)
  latest.current = onSearch

  // The back button changes the URL, too.
  useEffect(() => {
    if (value === searched.current) return
    searched.current = value
    setText(value)
  }, [value])

  useEffect(() => {
    if (text.trim() === searched.current) return
    const timer = setTimeout(() => {
      searched.current = text.trim()
      latest.current(text.trim())
    }, pauseMilliseconds)
    return () => clearTimeout(timer)
  }, [text])

  return (
    <input
      type="search"
      aria-label={label}
      placeholder={placeholder}
      maxLength={200}
      autocomplete="off"
      value={text}
      onInput={(event) => setText(event.currentTarget.value)}
    />
  )
}
