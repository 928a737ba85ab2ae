import { useState } from 'preact/hooks'
import { openDialog } from '../ui/dialog.tsx'
import { errorText } from '../ui/errors.ts'
import { Field } from '../ui/field.tsx'
import { request, user } from './session.ts'

const validMilliseconds = 5 * 60_000
let confirmed: { userId: string | undefined; at: number } | undefined

/** Asks for the password or a code before something that an unattended screen must not allow. Whoever has just
 *  answered is not asked again for five minutes.
 *  @returns false when the question was left */
export async function confirmIdentity(): Promise<boolean> {
  const userId = user.value?.id
  const isRecent = confirmed && Date.now() - confirmed.at < validMilliseconds
  if (isRecent && confirmed?.userId === userId) return true
  const answer = await openDialog<true>((close) => <Question close={close} />)
  if (answer) confirmed = { userId, at: Date.now() }
  return answer === true
}

function Question({ close }: { close: (confirmed?: true) => void }) {
  const [problem, setProblem] = useState<string>()
  const [isBusy, setBusy] = useState(false)

  async function submit(event: SubmitEvent) {
    event.preventDefault()
    const secret = String(new FormData(event.currentTarget as HTMLFormElement).get('secret'))
    // No password is as short as a code.
    const body = /^\d{6}$/.test(secret) ? { code: secret } : { password: secret }
    setBusy(true)
    try {
      await request('POST /v1/auth/confirm', { body })
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
        {(tied) => (
          <input
            name="secret"
            type="password"
            autocomplete="current-password"
            required
            ref={(input) => input?.focus()}
            {...tied}
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
