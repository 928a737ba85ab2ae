import type { ComponentChildren, TargetedSubmitEvent } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { uniqueId } from '../../../client/src/platform.ts'
import { Button } from './button.tsx'
import { openDialog, useStayOpen } from './dialog.tsx'
import { errorText, fieldProblems } from './errors.ts'
import { Problem, Problems } from './field.tsx'
import { isFocusLost } from './kept-focus.ts'
import { texts } from './texts.tsx'

/** Submits a form once: clears it on success; keeps the input and shows the errors on failure. */
export function useForm(work: (given: FormData) => Promise<unknown>) {
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const sent = useRef<HTMLFormElement>(null)
  useFocusOnProblem(sent, error)

  async function onSubmit(event: TargetedSubmitEvent<HTMLFormElement>) {
    event.preventDefault()
    const form = event.currentTarget
    if (isBusy) return
    sent.current = form
    setBusy(true)
    setError(undefined)
    try {
      await work(new FormData(form))
      form.reset()
    } catch (caught) {
      setError(caught)
    } finally {
      setBusy(false)
    }
  }

  const problems = fieldProblems(error)
  const names = Object.keys(problems)
  // A field that the form does not have shows nothing.
  const isOfFields =
    names.length > 0 && names.every((name) => sent.current?.elements.namedItem(name))
  const problem = error === undefined || isOfFields ? undefined : errorText(error).text
  const forget = () => setError(undefined)
  return { onSubmit, isBusy, error, problems, problem, forget }
}

/** Leads to the first field that an error is about, else to its text. */
export function useFocusOnProblem(form: { current: HTMLFormElement | null }, error: unknown) {
  useEffect(() => {
    if (error === undefined) return
    const wrong = form.current?.querySelector<HTMLElement>('[aria-invalid="true"], .error')
    // With the text below the field.
    ;(wrong?.closest('.field') ?? wrong)?.scrollIntoView({ block: 'nearest' })
    wrong?.focus()
  }, [error])
}

type FormQuestion<T> = {
  title: string
  text?: ComponentChildren
  /** The button, if its text is not the title. */
  action?: string
  tone?: 'primary' | 'danger'
  /** They show their own problems. */
  fields: ComponentChildren
  submit: (given: FormData, attempt: Attempt) => Promise<T>
}

/** Headers of a request. The response to the first attempt may be lost: unchanged input keeps its key, so that the service
 *  creates one thing. */
export type Attempt = { headers: { 'x-idempotency-key': string } }

/** Asks with a form in a dialog. It stays open, with its input, until `submit` has succeeded.
 *  @returns the result of `submit`; undefined when the form was cancelled */
export function askForm<T>(question: FormQuestion<T>): Promise<T | undefined> {
  return openDialog<T>((close) => <FormDialog {...question} close={close} />)
}

function FormDialog<T>(props: FormQuestion<T> & { close: (result?: T) => void }) {
  const { title, text, action = title, tone = 'primary', fields, submit, close } = props
  const attempt = useRef({ input: '', key: '' })
  const form = useForm(async (given) => {
    const input = JSON.stringify([...given])
    if (attempt.current.input !== input) attempt.current = { input, key: uniqueId() }
    close(await submit(given, { headers: { 'x-idempotency-key': attempt.current.key } }))
  })
  const element = useRef<HTMLFormElement>(null)
  const [hasInput, setInput] = useState(false)
  useStayOpen(element, form.isBusy || hasInput)
  return (
    <form class="stack" onSubmit={form.onSubmit} onInput={() => setInput(true)} ref={element}>
      <h2>{title}</h2>
      {text && <p class="soft">{text}</p>}
      <Problems.Provider value={form.problems}>{fields}</Problems.Provider>
      <Problem text={form.problem} />
      <div class="actions">
        <Button disabled={form.isBusy} onClick={() => close()}>
          {texts.kit.cancel}
        </Button>
        <Button submits tone={tone} disabled={form.isBusy}>
          {action}
        </Button>
      </div>
    </form>
  )
}

/** Saves what differs from before: what somebody else has changed meanwhile stays.
 *  @returns undefined when nothing differs */
export async function saveChanges<T extends object, R>(
  given: T,
  before: T,
  save: (changes: Partial<T>) => Promise<R>,
): Promise<R | undefined> {
  const changes: Partial<T> = {}
  for (const name in given) {
    const isSame = JSON.stringify(given[name]) === JSON.stringify(before[name])
    if (!isSame) changes[name] = given[name]
  }
  return Object.keys(changes).length > 0 ? save(changes) : undefined
}

/** Moves the focus to an element from a part of the page, or from nowhere: an answer that comes late must not take it from
 *  where somebody types. */
export function moveFocus(part: Element | null | undefined, to: HTMLElement | null | undefined) {
  if (isFocusLost() || part?.contains(document.activeElement)) to?.focus()
}

/** The focused element may be gone after a change of `state`: the focus then moves to the first `wanted` element, or else to
 *  the frame. */
export function useFocusWhenLost<T extends HTMLElement>(state: unknown, wanted: string) {
  const frame = useRef<T>(null)
  const before = useRef(state)
  useEffect(() => {
    const hasChanged = before.current !== state
    before.current = state
    if (!hasChanged || !isFocusLost()) return
    const target = frame.current?.querySelector<HTMLElement>(wanted) ?? frame.current
    target?.focus()
  }, [state])
  return frame
}
