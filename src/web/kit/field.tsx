import { type ComponentChildren, createContext, type TargetedEvent } from 'preact'
import { useContext, useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { texts } from './texts.tsx'

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
function Field({ label, hint, name, children, ...given }: FieldProps) {
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

/** An error of a whole form or group. It takes the focus. */
export const Problem = ({ text }: { text: string | undefined }) =>
  text ? (
    <p class="error" role="alert" tabIndex={-1}>
      {text}
    </p>
  ) : null

type Labelled = { label: string; hint?: string | undefined; problem?: string | undefined }

type Attributes<T extends HTMLElement> = {
  name?: string
  value?: string
  defaultValue?: string
  placeholder?: string
  required?: boolean
  maxLength?: number
  dir?: 'auto'
  autocomplete?: string
  spellcheck?: boolean
  onInput?: (event: TargetedEvent<T>) => void
  onChange?: (event: TargetedEvent<T>) => void
}
type TextFieldProps = Labelled &
  Attributes<HTMLInputElement> & {
    /** Takes the focus when it appears. The first field of a dialog does without. */
    takesFocus?: boolean
    type?: 'text' | 'email' | 'url' | 'color' | 'date' | 'datetime-local' | 'password'
    min?: string
    minLength?: number
    inputMode?: 'numeric'
  }

export function TextField({ label, hint, problem, takesFocus, ...own }: TextFieldProps) {
  const input: object = own // an input of each type has its own attributes
  const element = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (takesFocus) element.current?.focus()
  }, [])
  return (
    <Field label={label} hint={hint} name={own.name} problem={problem}>
      {(attributes) => <input {...input} ref={element} {...attributes} />}
    </Field>
  )
}

/** The address of a login. */
export const EmailField = (field: Partial<Labelled>) => (
  <TextField
    label={texts.kit.email}
    {...field}
    name="email"
    type="email"
    autocomplete="username"
    required
  />
)

type PasswordFieldProps = Partial<Labelled> & {
  name: string
  isNew?: boolean
}

export function PasswordField({ isNew = false, ...field }: PasswordFieldProps) {
  return (
    <TextField
      label={texts.kit.password}
      {...field}
      type="password"
      required
      autocomplete={isNew ? 'new-password' : 'current-password'}
      {...(isNew && { minLength: 8, hint: texts.kit.passwordHint })}
    />
  )
}

type CodeFieldProps = Omit<Labelled, 'label'> & { takesFocus?: boolean; required?: boolean }

/** The code of a second factor. */
export const CodeField = ({ hint = texts.kit.codeHint, ...field }: CodeFieldProps) => (
  <TextField
    required
    {...field}
    label={texts.kit.code}
    hint={hint}
    name="code"
    autocomplete="one-time-code"
  />
)

type TextAreaProps = Labelled & Attributes<HTMLTextAreaElement> & { rows: number }

export function TextArea({ label, hint, problem, ...area }: TextAreaProps) {
  return (
    <Field label={label} hint={hint} name={area.name} problem={problem}>
      {(attributes) => <textarea dir="auto" {...area} {...attributes} />}
    </Field>
  )
}

type ChoicesProps<T extends string> = {
  label: string
  name: string
  value: T
  options: readonly (readonly [value: T, text: ComponentChildren])[]
  /** Without it, the form has the choice. */
  choose?: (value: T) => void
  isAcross?: boolean
}

/** Radio buttons. */
export function Choices<T extends string>(props: ChoicesProps<T>) {
  const { label, name, value, options, choose, isAcross } = props
  const problem = useContext(Problems)[name]
  return (
    <fieldset class={`stack tight choices ${isAcross ? 'across' : ''}`}>
      <legend>{label}</legend>
      <Problem text={problem} />
      {options.map(([option, text]) => (
        <label key={option} class="choice">
          <input
            type="radio"
            name={name}
            value={option}
            {...(choose ? { checked: option === value } : { defaultChecked: option === value })}
            onChange={() => choose?.(option)}
          />
          {text}
        </label>
      ))}
    </fieldset>
  )
}

type BoxesProps = {
  label: string
  name: string
  options: readonly (readonly [value: string, text: ComponentChildren])[]
  chosen?: readonly string[]
}

/** Check boxes of which at least one is needed. The service rejects an empty list. */
export function Boxes({ label, name, options, chosen = [] }: BoxesProps) {
  const problem = useContext(Problems)[name]
  return (
    <fieldset class="stack tight boxes">
      <legend>{label}</legend>
      <Problem text={problem && texts.kit.chooseOne} />
      {options.map(([value, text]) => (
        <label key={value}>
          <input
            type="checkbox"
            name={name}
            value={value}
            defaultChecked={chosen.includes(value)}
          />
          <span>{text}</span>
        </label>
      ))}
    </fieldset>
  )
}

type CheckBoxProps = { label: string; isOn: boolean; change: (isOn: boolean) => void }

export const CheckBox = ({ label, isOn, change }: CheckBoxProps) => (
  <label class="row">
    <input
      type="checkbox"
      checked={isOn}
      onChange={(event) => change(event.currentTarget.checked)}
    />
    {label}
  </label>
)

const pauseMilliseconds = 250

type SearchFieldProps = {
  label: string
  placeholder: string
  value: string
  search: (text: string) => void
  of?: { current: HTMLInputElement | null }
  /** Called with the text at Enter, which searches at once. */
  onEnter?: (text: string) => void
}

/** Whether the key is an input method's: its Enter accepts a character. Safari sends that one after the composition, with the
 *  code 229. */
export const isComposing = (event: KeyboardEvent): boolean =>
  event.isComposing || event.keyCode === 229

/** A search input, debounced. */
export function SearchField({ label, placeholder, value, search, of, onEnter }: SearchFieldProps) {
  const [text, setText] = useState(value)
  const searched = useRef(value)
  const latest = useRef(search)
  latest.current = search
  // The back button changes the value, too. At once: a passive effect would undo what is typed next.
  useLayoutEffect(() => {
    if (value !== searched.current) setText(value)
    searched.current = value
  }, [value])
  function searchNow() {
    if (text.trim() === searched.current) return
    searched.current = text.trim()
    latest.current(text.trim())
  }
  useEffect(() => {
    const timer = setTimeout(searchNow, pauseMilliseconds)
    return () => clearTimeout(timer)
  }, [text])

  function press(event: TargetedEvent<HTMLInputElement, KeyboardEvent>) {
    if (isComposing(event)) return
    if (event.key === 'Escape') event.currentTarget.blur()
    if (event.key !== 'Enter') return
    event.preventDefault()
    searchNow()
    onEnter?.(text.trim())
  }

  return (
    <input
      ref={of ?? null}
      type="search"
      aria-label={label}
      placeholder={placeholder}
      maxLength={200}
      autocomplete="off"
      value={text}
      onInput={(event) => setText(event.currentTarget.value)}
      onKeyDown={press}
    />
  )
}
