import { useState } from 'preact/hooks'
import { ApiError } from '../../../client/src/errors.ts'
import { errorText } from '../ui/errors.ts'
import { Field } from '../ui/field.tsx'
import { ending, login } from './session.ts'

export function LoginPage() {
  const [needsCode, setNeedsCode] = useState(false)
  const [problem, setProblem] = useState<string>()
  const [isBusy, setBusy] = useState(false)

  async function submit(event: SubmitEvent) {
    event.preventDefault()
    const given = Object.fromEntries(new FormData(event.currentTarget as HTMLFormElement))
    setBusy(true)
    setProblem(undefined)
    try {
      await login(given as Parameters<typeof login>[0]) // the names of the inputs below
    } catch (error) {
      const asksForCode = error instanceof ApiError && error.reason === 'totp_required'
      setNeedsCode(needsCode || asksForCode)
      setProblem(asksForCode ? undefined : problemText(error))
    }
    setBusy(false)
  }

  return (
    <main class="login">
      <form onSubmit={submit}>
        <h1>Hostline</h1>
        <p class="soft">{ending.value ?? 'Log in as an admin.'}</p>
        <Field label="E-mail address">
          {(attributes) => (
            <input name="email" type="email" autocomplete="username" required {...attributes} />
          )}
        </Field>
        <Field label="Password">
          {(attributes) => (
            <input
              name="password"
              type="password"
              autocomplete="current-password"
              required
              {...attributes}
            />
          )}
        </Field>
        {needsCode && (
          <Field label="Code" hint="From your authenticator, or a recovery code.">
            {(attributes) => (
              <input
                name="code"
                autocomplete="one-time-code"
                required
                ref={(input) => input?.focus()}
                {...attributes}
              />
            )}
          </Field>
        )}
        <p class="error" role="alert">
          {problem}
        </p>
        <button type="submit" class="button primary" disabled={isBusy}>
          Log in
        </button>
        <p class="soft small">
          No admin yet? The <a href="/">start page</a> says how to become the first.
        </p>
      </form>
    </main>
  )
}

function problemText(error: unknown): string {
  if (error instanceof Error && error.message === 'not_admin')
    return 'This account is not an admin.'
  return errorText(error).text
}
