import { useState } from 'preact/hooks'
import { toastError } from './toast.tsx'

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
