import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { TextField } from './field.tsx'
import { ErrorBoundary } from './states.tsx'
import { fill, texts } from './texts.tsx'
import { Toasts, topDialog } from './toast.tsx'

type Opened = { id: number; render: () => ComponentChildren; close: () => void; isLeaving: boolean }

/** Until a closed dialog has faded. */
const leaveMilliseconds = 150

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
      resolve(value)
      const own = opened.value.find((one) => one.id === id)
      if (!own || own.isLeaving) return
      show(opened.value.map((one) => (one === own ? { ...own, isLeaving: true } : one)))
      setTimeout(() => show(opened.value.filter((one) => one.id !== id)), leaveMilliseconds)
    }
    const added = { id, render: () => render(close), close: () => close(), isLeaving: false }
    show([...opened.value, added])
  })
}

function show(dialogs: Opened[]) {
  opened.value = dialogs
  topDialog.value = dialogs.findLast(({ isLeaving }) => !isLeaving)?.id
}

/** Closes all dialogs, such as at the end of the session. */
export function closeDialogs(): void {
  for (const { close } of opened.value) close()
}

/** The container of dialogs, once in each page. */
export function Dialogs() {
  return (
    <>
      {opened.value.map(({ id, render, close, isLeaving }) => (
        <Frame key={id} close={close} isLeaving={isLeaving}>
          <ErrorBoundary place={String(id)}>{render()}</ErrorBoundary>
          <Toasts dialog={id} />
        </Frame>
      ))}
    </>
  )
}

type FrameProps = { close: () => void; isLeaving: boolean; children: ComponentChildren }

// The browser traps the focus in a modal dialog and restores it afterwards.
function Frame({ close, isLeaving, children }: FrameProps) {
  const element = useRef<HTMLDialogElement>(null)
  const id = useId()
  useLayoutEffect(() => {
    const dialog = element.current
    dialog?.showModal()
    // The browser focuses the first choice, although another one is chosen.
    if (dialog?.querySelector('[type=radio]:focus'))
      dialog.querySelector<HTMLElement>(':checked')?.focus()
    return () => dialog?.close()
  }, [])
  useLayoutEffect(() => {
    if (isLeaving) element.current?.close()
  }, [isLeaving])
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

/** Keeps the dialog around `part` open on Escape: it would lose what was typed, or a secret that is shown only once. */
export function useStayOpen(part: { current: HTMLElement | null }, mustStay = true): void {
  useLayoutEffect(() => {
    const dialog = part.current?.closest('dialog')
    if (!mustStay || !dialog) return
    const refuseEscape = (event: KeyboardEvent) => {
      // The identity dialog may open above this one.
      const used = document.activeElement?.closest('dialog') ?? dialog
      if (event.key === 'Escape' && used === dialog) refuse(event)
    }
    dialog.addEventListener('cancel', refuse, true)
    // Browsers close a dialog on the second Escape in a row, whatever `cancel` says.
    addEventListener('keydown', refuseEscape, true)
    return () => {
      dialog.removeEventListener('cancel', refuse, true)
      removeEventListener('keydown', refuseEscape, true)
    }
  }, [mustStay])
}

function refuse(event: Event) {
  event.preventDefault()
  event.stopImmediatePropagation()
}

export type Question = {
  title: string
  text: ComponentChildren
  action: string
  isDangerous?: boolean | undefined
  /** Has to be typed before. */
  typed?: string | undefined
}

/** Asks for confirmation.
 *  @returns whether the user confirmed */
export async function confirmAction(question: Question): Promise<boolean> {
  return (await openDialog<true>((close) => <Confirm question={question} close={close} />)) === true
}

/** A text as it is shown: several spaces look like one. */
const seen = (text: string) => text.trim().replace(/\s+/g, ' ')

function Confirm({ question, close }: { question: Question; close: (isConfirmed?: true) => void }) {
  const { title, text, action, isDangerous, typed } = question
  const [given, setGiven] = useState('')
  const isReady = typed === undefined || seen(given) === seen(typed)
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault()
        if (isReady) close(true)
      }}
    >
      <h2>{title}</h2>
      <p class="soft">{text}</p>
      {typed !== undefined && (
        <TextField
          label={fill(texts.kit.typeToGoOn, { text: typed })}
          autocomplete="off"
          spellcheck={false}
          value={given}
          onInput={(event) => setGiven(event.currentTarget.value)}
        />
      )}
      <div class="actions">
        <button type="button" class="button" onClick={() => close()}>
          {texts.kit.cancel}
        </button>
        <button
          type="submit"
          class={`button ${isDangerous ? 'danger' : 'primary'}`}
          disabled={!isReady}
        >
          {action}
        </button>
      </div>
    </form>
  )
}
