import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { useForm } from './form.ts'

type FormDialogProps = {
  title: string
  action: string
  submit: (given: FormData) => Promise<unknown>
  close: () => void
  /** @param problems error messages by field name */
  children: (problems: Record<string, string>) => ComponentChildren
}

/** A form in a dialog. It stays open, with its input, until the service has accepted it. */
export function FormDialog({ title, action, submit, close, children }: FormDialogProps) {
  const { onSubmit, isBusy, problems, problem } = useForm(submit)
  const form = useRef<HTMLFormElement>(null)
  useStayOpen(form, isBusy)
  return (
    <form onSubmit={onSubmit} ref={form}>
      <h2>{title}</h2>
      {children(problems)}
      {problem && (
        <p class="error" role="alert">
          {problem}
        </p>
      )}
      <div class="actions">
        <button type="button" class="button" disabled={isBusy} onClick={close}>
          Cancel
        </button>
        <button type="submit" class="button primary" disabled={isBusy}>
          {action}
        </button>
      </div>
    </form>
  )
}

/** Keeps the dialog open while the request runs: the response may hold a secret that is shown only once. */
function useStayOpen(form: { current: HTMLFormElement | null }, isBusy: boolean) {
  useLayoutEffect(() => {
    const dialog = form.current?.closest('dialog')
    if (!isBusy || !dialog) return
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
  }, [isBusy])
}

function refuse(event: Event) {
  event.preventDefault()
  event.stopImmediatePropagation()
}
