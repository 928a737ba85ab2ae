import { signal } from '@preact/signals'
import { X } from 'lucide-preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { errorText } from './errors.ts'
import { uiTexts } from './texts.ts'

type Toast = { id: number; text: string; undo?: { label: string; work: () => void } | undefined }

const shownMilliseconds = 6_000
const toasts = signal<Toast[]>([])
let lastId = 0

/** Shows a message for a few seconds and announces it to screen readers. */
export function toast(text: string, undo?: Toast['undo']): void {
  const id = ++lastId
  toasts.value = [...toasts.value.slice(-2), { id, text, undo }]
  setTimeout(() => dismiss(id), shownMilliseconds)
}

/** Shows an error as a toast. */
export function toastError(error: unknown): void {
  toast(errorText(error).text)
}

function dismiss(id: number) {
  toasts.value = toasts.value.filter((other) => other.id !== id)
}

/** The container of toasts, once in each page. It lies above everything, dialogs included. */
export function Toasts() {
  const frame = useRef<HTMLDivElement>(null)
  const shown = toasts.value
  useLayoutEffect(() => {
    if (frame.current?.matches(':popover-open')) frame.current.hidePopover()
    if (shown.length > 0) frame.current?.showPopover()
  }, [shown])
  return (
    <div class="toasts" role="status" popover="manual" ref={frame}>
      {shown.map(({ id, text, undo }) => (
        <div class="toast" key={id}>
          <span>{text}</span>
          {undo && (
            <button
              type="button"
              class="button ghost"
              onClick={() => {
                dismiss(id)
                undo.work()
              }}
            >
              {undo.label}
            </button>
          )}
          <button
            type="button"
            class="button ghost icon"
            aria-label={uiTexts.value.close}
            onClick={() => dismiss(id)}
          >
            <X />
          </button>
        </div>
      ))}
    </div>
  )
}
