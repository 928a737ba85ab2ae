import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useLayoutEffect, useRef } from 'preact/hooks'
import { uiTexts } from './texts.ts'

type Opened = { id: number; render: () => ComponentChildren; close: () => void }

const opened = signal<Opened[]>([])
let lastId = 0

/** Opens a modal dialog.
 *  @returns the value it was closed with; undefined when it was cancelled */
export function openDialog<T>(
  render: (close: (value?: T) => void) => ComponentChildren,
): Promise<T | undefined> {
  return new Promise((resolve) => {
    const id = ++lastId
    const close = (value?: T) => {
      opened.value = opened.value.filter((other) => other.id !== id)
      resolve(value)
    }
    opened.value = [...opened.value, { id, render: () => render(close), close: () => close() }]
  })
}

/** Closes all dialogs, such as at the end of the session. */
export function closeDialogs(): void {
  for (const { close } of opened.value) close()
}

/** The container of dialogs, once in each page. */
export function Dialogs() {
  return (
    <>
      {opened.value.map(({ id, render, close }) => (
        <Frame key={id} close={close}>
          {render()}
        </Frame>
      ))}
    </>
  )
}

// The browser traps the focus in a modal dialog and restores it afterwards.
function Frame({ close, children }: { close: () => void; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null)
  const id = useId()
  useLayoutEffect(() => {
    const dialog = element.current
    dialog?.showModal()
    return () => dialog?.close()
  }, [])
  useEffect(() => {
    const heading = element.current?.querySelector('h2')
    if (heading) heading.id ||= id
  })
  return (
    <dialog ref={element} aria-labelledby={id} onCancel={close} onClose={close}>
      {children}
    </dialog>
  )
}

type Question = { title: string; text: ComponentChildren; action: string; isDangerous?: boolean }

/** Asks for confirmation.
 *  @returns whether the user confirmed */
export async function confirmAction({ title, text, action, isDangerous }: Question) {
  const isConfirmed = await openDialog<true>((close) => (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        close(true)
      }}
    >
      <h2>{title}</h2>
      <p class="soft">{text}</p>
      <div class="actions">
        <button type="button" class="button" onClick={() => close()}>
          {uiTexts.value.cancel}
        </button>
        <button type="submit" class={`button ${isDangerous ? 'danger' : 'primary'}`}>
          {action}
        </button>
      </div>
    </form>
  ))
  return isConfirmed === true
}
