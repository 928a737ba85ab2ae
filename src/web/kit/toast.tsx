import { signal } from '@preact/signals'
import { X } from 'lucide-preact'
import { useEffect, useRef } from 'preact/hooks'
import { errorText } from './errors.ts'
import { texts } from './texts.tsx'

type Undo = { label: string; work: () => void }
type ToastOptions = {
  undo?: Undo | undefined
  /** Called when the message goes without an undo. */
  onEnd?: (() => void) | undefined
}
type Toast = ToastOptions & { id: number; text: string }

const shownMilliseconds = 6_000
/** The longest time of a timer: 24 days. */
const longest = 2 ** 31 - 1
const mostShown = 3
const toasts = signal<Toast[]>([])
/** The topmost dialog: everything outside a modal dialog is inert. */
export const topDialog = signal<number | undefined>(undefined)
const timers = new Map<number, ReturnType<typeof setTimeout>>()
let lastId = 0
let isHeld = false

/** Shows a message for a few seconds, longer while it is pointed at or focused, and announces it to screen readers.
 *  @returns a function that ends it */
export function toast(text: string, options: ToastOptions = {}): () => void {
  const id = ++lastId
  for (const old of toasts.value.slice(0, 1 - mostShown)) end(old)
  const added = { ...options, id, text }
  toasts.value = [...toasts.value, added]
  start(added)
  return () => end(added)
}

export function toastError(error: unknown): void {
  if (!(error instanceof Error && error.name === 'AbortError')) toast(errorText(error).text)
}

function start(shown: Toast) {
  const timer = setTimeout(() => end(shown), isHeld ? longest : shownMilliseconds)
  timers.set(shown.id, timer)
}

function end(shown: Toast, how: 'undone' | 'over' = 'over') {
  clearTimeout(timers.get(shown.id))
  if (!timers.delete(shown.id)) return
  toasts.value = toasts.value.filter((other) => other !== shown)
  if (toasts.value.length === 0) isHeld = false
  if (how === 'over') shown.onEnd?.()
}

/** @param isPointedAt or focused: then they stay */
function restart(isPointedAt: boolean) {
  isHeld = isPointedAt
  for (const timer of timers.values()) clearTimeout(timer)
  toasts.value.forEach(start)
}

/** The container of toasts, once in each page and in each dialog. The topmost shows them. */
export function Toasts({ dialog }: { dialog?: number }) {
  return topDialog.value === dialog ? <Frame /> : null
}

function Frame() {
  const frame = useRef<HTMLDivElement>(null)
  const before = useRef<EventTarget>(null)
  // A live region that appears with its text is not announced, so it is always there. Its dialog has opened before: what
  // is shown later lies above.
  useEffect(() => frame.current?.showPopover(), [])

  // A button that goes with its toast loses the focus without an event.
  function dismiss(shown: Toast, how?: 'undone') {
    if (before.current instanceof HTMLElement) before.current.focus({ preventScroll: true })
    end(shown, how)
    restart(false)
  }

  function takeFocus({ relatedTarget: left }: FocusEvent) {
    if (!(left instanceof Node && frame.current?.contains(left))) before.current = left
    restart(true)
  }

  return (
    <div
      class="toasts"
      role="status"
      popover="manual"
      ref={frame}
      onMouseEnter={() => restart(true)}
      onMouseLeave={() => restart(false)}
      onFocusIn={takeFocus}
      onFocusOut={() => restart(false)}
    >
      {toasts.value.map((shown) => (
        <div class="toast row" key={shown.id}>
          {/* A change that can be undone names its ticket, whose subject may be long. */}
          <span class={shown.undo && 'clamped'}>{shown.text}</span>
          {shown.undo && (
            <button
              type="button"
              class="button ghost"
              onClick={() => {
                dismiss(shown, 'undone')
                shown.undo?.work()
              }}
            >
              {shown.undo.label}
            </button>
          )}
          <button
            type="button"
            class="button ghost icon"
            aria-label={texts.kit.close}
            onClick={() => dismiss(shown)}
          >
            <X />
          </button>
        </div>
      ))}
    </div>
  )
}
