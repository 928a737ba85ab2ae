import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

/** Attributes that connect an input with its label, hint and error. */
type InputAttributes = {
  id: string
  'aria-describedby': string | undefined
  'aria-invalid': boolean | undefined
}

type FieldProps = {
  label: string
  hint?: ComponentChildren
  problem?: string | undefined
  children: (attributes: InputAttributes) => ComponentChildren
}

/** A labelled input: `<Field label="Name">{(attributes) => <input name="name" {...attributes} />}</Field>`. */
export function Field({ label, hint, problem, children }: FieldProps) {
  const id = useId()
  const described = [hint && `${id}-hint`, problem && `${id}-problem`].filter(Boolean).join(' ')
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({
        id,
        'aria-describedby': described || undefined,
        'aria-invalid': problem ? true : undefined,
      })}
      {hint && (
        <span class="hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
      {problem && (
        <span class="problem" id={`${id}-problem`}>
          {problem}
        </span>
      )}
    </div>
  )
}
