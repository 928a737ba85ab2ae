import type { ComponentChildren } from 'preact'
import { useForm } from './form.ts'

type FormDialogProps = {
  title: string
  action: string
  submit: (given: FormData) => Promise<unknown>
  close: () => void
  /** @param problems what is wrong with single fields, by their names */
  children: (problems: Record<string, string>) => ComponentChildren
}

/** A form over the page. It stays, with what was typed, until the service has taken it. */
export function FormDialog({ title, action, submit, close, children }: FormDialogProps) {
  const { onSubmit, isBusy, problems, problem } = useForm(submit)
  return (
    <form onSubmit={onSubmit}>
      <h2>{title}</h2>
      {children(problems)}
      {problem && (
        <p class="error" role="alert">
          {problem}
        </p>
      )}
      <div class="actions">
        <button type="button" class="button" onClick={close}>
          Cancel
        </button>
        <button type="submit" class="button primary" disabled={isBusy}>
          {action}
        </button>
      </div>
    </form>
  )
}
