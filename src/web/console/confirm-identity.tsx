import { useState } from 'preact/hooks'
import { openDialog } from '../ui/dialog.tsx'
import { errorText } from '../ui/errors.ts'
import { Field } from '../ui/field.tsx'

type Prove = (proof: { password: string } | { code: string }) => Promise<unknown>

let asking: Promise<boolean> | undefined

/** Asks for the password or a code, once for all requests that need it at the same time.
 *  @param prove sends the proof to the service
 *  @returns false when the dialog was cancelled */
export function confirmIdentity(prove: Prove): Promise<boolean> {
  asking ??= openDialog<true>((close) => <Question prove={prove} close={close} />).then(
    (answer) => {
      asking = undefined
      return answer === true
    },
  )
  return asking
}

type QuestionProps = { prove: Prove; close: (confirmed?: true) => void }

function Question({ prove, close }: QuestionProps) {
  const [problem, setProblem] = useState<string>()
  const [isBusy, setBusy] = useState(false)

  async function submit(event: SubmitEvent) {
    event.preventDefault()
    const secret = String(new FormData(event.currentTarget as HTMLFormElement).get('secret'))
    // A password is always longer than a code.
    const proof = /^\d{6}$/.test(secret) ? { code: secret } : { password: secret }
    setBusy(true)
    try {
      await prove(proof)
      close(true)
    } catch (error) {
      setProblem(errorText(error).text)
      setBusy(false)
    }
  }

  return (
    <form onSubmit={submit}>
      <h2>Confirm that it is you</h2>
      <Field
        label="Password or code"
        hint="Your password, or a code of your authenticator."
        problem={problem}
      >
        {(attributes) => (
          <input
            name="secret"
            type="password"
            autocomplete="current-password"
            required
            ref={(input) => input?.focus()}
            {...attributes}
          />
        )}
      </Field>
      <div class="actions">
        <button type="button" class="button" onClick={() => close()}>
          Cancel
        </button>
        <button type="submit" class="button primary" disabled={isBusy}>
          Confirm
        </button>
      </div>
    </form>
  )
}
