import { useEffect, useRef, useState } from 'preact/hooks'
import { errorText, fieldProblems } from '../ui/errors.ts'

/** Submits a form once: clears it on success; keeps the input and shows the errors on failure. */
export function useForm(work: (given: FormData) => Promise<unknown>) {
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const sent = useRef<HTMLFormElement>(null)
  useEffect(() => {
    if (error === undefined) return
    const wrong = sent.current?.querySelector<HTMLElement>('[aria-invalid="true"], .error')
    wrong?.scrollIntoView({ block: 'nearest' })
    wrong?.focus()
  }, [error])

  async function onSubmit(event: SubmitEvent) {
    event.preventDefault()
    const form = event.currentTarget as HTMLFormElement // the handler is a form's
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
  const isOfFields = Object.keys(problems).length > 0
  const problem = error === undefined || isOfFields ? undefined : errorText(error).text
  return { onSubmit, isBusy, problems, problem }
}
