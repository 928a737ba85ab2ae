import { Check, ChevronDown } from 'lucide-preact'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'

export type Options<T extends string> = readonly (readonly [value: T, text: string])[]

type SelectProps<T extends string> = {
  label: string
  /** Without one, nothing is chosen. */
  value: T | undefined
  options: Options<T>
  choose: (value: T) => void
  /** In place of the chosen option's text. */
  text?: ComponentChildren
  class?: string
  /** Looks disabled and keeps the focus. */
  isBusy?: boolean
  /** The label is visible, beside or above. */
  isField?: boolean
}

const gap = 4

/** A button that opens a list of options. The arrow keys, Home, End and first letters move in the list. */
export function Select<T extends string>(props: SelectProps<T>) {
  const { label, value, options, choose, isBusy, isField } = props
  const button = useRef<HTMLButtonElement>(null)
  const list = useRef<HTMLDivElement>(null)
  const [isOpen, setOpen] = useState(false)
  const chosen = options.find(([option]) => option === value)?.[1] ?? ''

  useLayoutEffect(() => {
    const [opener, popover] = [button.current, list.current]
    if (!isOpen || !opener || !popover) return
    popover.showPopover()
    place(popover, opener)
    const selected = popover.querySelector<HTMLElement>('[aria-selected=true]')
    ;(selected ?? popover.querySelector('button'))?.focus()
  }, [isOpen])

  function pick(option: T) {
    list.current?.hidePopover()
    button.current?.focus()
    choose(option)
  }

  const opener = (
    <button
      type="button"
      ref={button}
      class={['button select', props.class].filter(Boolean).join(' ')}
      aria-haspopup="listbox"
      aria-expanded={isOpen}
      aria-label={chosen === '' ? label : `${label}: ${chosen}`}
      aria-disabled={isBusy}
      onClick={() => setOpen(!isOpen && !isBusy)}
      onKeyDown={(event) => {
        if (isBusy || (event.key !== 'ArrowDown' && event.key !== 'ArrowUp')) return
        event.preventDefault()
        setOpen(true)
      }}
    >
      {props.text ?? <span class="truncate">{chosen}</span>}
      <ChevronDown />
    </button>
  )
  const menu = (
    <div
      ref={list}
      popover="auto"
      role="listbox"
      aria-label={label}
      class="menu"
      tabIndex={-1}
      onKeyDown={(event) => move(event, list.current)}
      onToggle={(event) => {
        if (event.newState === 'closed') setOpen(false)
      }}
    >
      {isOpen &&
        options.map(([option, text]) => (
          <button
            key={option}
            type="button"
            role="option"
            tabIndex={-1}
            aria-selected={option === value}
            onClick={() => pick(option)}
          >
            <span>{text}</span>
            {option === value && <Check />}
          </button>
        ))}
    </div>
  )
  if (!isField) {
    return (
      <>
        {opener}
        {menu}
      </>
    )
  }
  return (
    <div class="field">
      <span class="label">{label}</span>
      {opener}
      {menu}
    </div>
  )
}

/** Below the button, or above it when there is more room. */
function place(popover: HTMLElement, opener: HTMLElement) {
  const { top, bottom, left, width } = opener.getBoundingClientRect()
  const { style } = popover
  style.minWidth = `${width}px`
  style.maxHeight = `${Math.max(top, innerHeight - bottom) - 2 * gap}px`
  const { height, width: menuWidth } = popover.getBoundingClientRect()
  const isAbove = height > innerHeight - bottom - 2 * gap && top > innerHeight - bottom
  style.top = `${isAbove ? top - height - gap : bottom + gap}px`
  style.left = `${Math.max(gap, Math.min(left, innerWidth - menuWidth - gap))}px`
}

function move(event: KeyboardEvent, list: HTMLElement | null) {
  const all = [...(list?.querySelectorAll('button') ?? [])]
  const at = all.findIndex((option) => option.matches(':focus'))
  const to = targetOf(event.key, at, all)
  if (event.key === 'Tab') list?.hidePopover()
  if (to === undefined) return
  event.preventDefault()
  all[Math.max(0, Math.min(all.length - 1, to))]?.focus()
}

function targetOf(key: string, at: number, all: HTMLElement[]): number | undefined {
  const steps: Record<string, number> = {
    ArrowDown: at + 1,
    ArrowUp: at - 1,
    Home: 0,
    End: all.length - 1,
  }
  if (key in steps) return steps[key]
  if (key.length !== 1 || key === ' ') return undefined
  const starts = (option: HTMLElement) =>
    option.textContent?.toLowerCase().startsWith(key.toLowerCase()) === true
  const next = all.findIndex((option, index) => index > at && starts(option))
  return next >= 0 ? next : Math.max(at, all.findIndex(starts))
}
