import type { ComponentChildren, ComponentType, Ref } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { confirmAction } from './dialog.tsx'
import { fill } from './texts.tsx'
import { toast, toastError } from './toast.tsx'

type Common = {
  tone?: 'primary' | 'danger' | 'ghost' | 'ghost danger' | undefined
  icon?: ComponentType | undefined
  /** The accessible name where the text alone does not say which one. */
  label?: string | undefined
  title?: string | undefined
  class?: string | undefined
  disabled?: boolean | undefined
  /** Looks disabled and keeps the focus. */
  isBusy?: boolean | undefined
  expanded?: boolean | undefined
  pressed?: boolean | undefined
  of?: Ref<HTMLButtonElement> | undefined
  children?: ComponentChildren
}
type ButtonProps = Common & { onClick?: (() => unknown) | undefined; submits?: boolean }

export function Button(props: ButtonProps) {
  const { tone = '', icon: Icon, isBusy } = props
  return (
    <button
      type={props.submits ? 'submit' : 'button'}
      class={['button', tone, props.class].filter(Boolean).join(' ')}
      aria-label={props.label}
      title={props.title}
      disabled={props.disabled}
      aria-disabled={isBusy}
      aria-expanded={props.expanded}
      aria-pressed={props.pressed}
      ref={props.of ?? null}
      onClick={() => {
        if (!isBusy) props.onClick?.()
      }}
    >
      {Icon && <Icon />}
      {props.children}
    </button>
  )
}

type IconButtonProps = Omit<ButtonProps, 'children' | 'icon'> & {
  icon: ComponentType
  label: string
  /** The shortcut, for the tooltip. */
  keys?: string
  children?: ComponentChildren
}

export function IconButton({ keys, tone = 'ghost', ...props }: IconButtonProps) {
  const title = props.title ?? (keys ? `${props.label} (${keys})` : props.label)
  return (
    <Button {...props} tone={tone} title={title} class={['icon', props.class].join(' ').trim()} />
  )
}

type ActionTexts = {
  button: string
  /** The accessible name where the button's text alone does not say which one. */
  label?: string
  /** With it, the action is asked about first: `title`, `text`, and `action` for the button that confirms. */
  title?: string
  text?: string
  action?: string
  /** Said after success. */
  done?: string
}
type Values = Record<string, string | number>
type ActionButtonProps = Omit<Common, 'label' | 'children'> & {
  texts: ActionTexts
  /** The values of the places in the texts. */
  values?: Values
  /** Further values, read when it is pressed. */
  load?: () => Promise<Values>
  /** Has to be typed before. */
  typed?: string
  work: () => Promise<unknown>
}

/** Asks, works, and says what happened; one at a time. */
export function ActionButton(props: ActionButtonProps) {
  const { texts, values = {}, load, typed, work, ...look } = props
  const { button, label, title, text = '', action = button, done } = texts
  const isShown = useIsShown()
  const { run, isBusy } = useAction(async () => {
    const all = { ...values, ...(await load?.()) }
    if (!isShown.current) return
    const question = { title: fill(title ?? '', all), text: fill(text, all), action, typed }
    const isDangerous = props.tone?.includes('danger')
    if (title !== undefined && !(await confirmAction({ ...question, isDangerous }))) return
    await work()
    if (done !== undefined) toast(fill(done, values))
  })
  return (
    <Button {...look} label={label && fill(label, values)} isBusy={isBusy} onClick={run}>
      {button}
    </Button>
  )
}

/** Whether the component is still there, for what is answered late. */
export function useIsShown() {
  const isShown = useRef(true)
  useEffect(
    () => () => {
      isShown.current = false
    },
    [],
  )
  return isShown
}

/** Runs an action on click, one at a time, and shows its error.
 *  @returns a promise of whether it worked */
export function useAction<Arguments extends unknown[]>(
  work: (...given: Arguments) => Promise<unknown>,
) {
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  async function run(...given: Arguments): Promise<boolean> {
    if (isBusy) return false
    setBusy(true)
    setError(undefined)
    try {
      await work(...given)
      return true
    } catch (caught) {
      setError(caught)
      toastError(caught)
      return false
    } finally {
      setBusy(false)
    }
  }
  return { run, isBusy, error }
}
