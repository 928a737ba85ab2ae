import { type ComponentChildren, createContext } from 'preact'
import { useContext, useId } from 'preact/hooks'

/** Error messages by the name of the field. */
export const Problems = createContext<Record<string, string>>({})

/** Attributes that connect an input with its label, hint and error. */
type InputAttributes = {
  id: string
  'aria-describedby': string | undefined
  'aria-invalid': boolean | undefined
}

type FieldProps = {
  label: string
  hint?: ComponentChildren
  /** Its problem comes from the form. */
  name?: string | undefined
  problem?: string | undefined
  children: (attributes: InputAttributes) => ComponentChildren
}

/** A labelled input: `<Field label="Name">{(attributes) => <input name="name" {...attributes} />}</Field>`. */
export function Field({ label, hint, name, children, ...given }: FieldProps) {
  const id = useId()
  const problems = useContext(Problems)
  const problem = given.problem ?? (name && problems[name])
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
