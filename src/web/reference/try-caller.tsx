import { useState } from 'preact/hooks'
import { ApiError } from '../../../client/src/errors.ts'
import { openDialog } from '../ui/dialog.tsx'
import { errorText } from '../ui/errors.ts'
import { Field } from '../ui/field.tsx'
import { caller, isBusy as isAnyBusy, logIn, logOut, takeToken } from './try-session.ts'

export function CallerLine() {
  const { value } = caller
  return (
    <div class="row between small">
      <span class="soft truncate">{callerText()}</span>
      {value.kind === 'nobody' ? (
        <button type="button" class="button" disabled={isAnyBusy.value} onClick={openLogin}>
          Log in
        </button>
      ) : (
        <button
          type="button"
          class="button"
          disabled={isAnyBusy.value}
          onClick={() => logOut().catch(() => {})}
        >
          {value.kind === 'person' ? 'Log out' : 'Forget the token'}
        </button>
      )}
    </div>
  )
}

function callerText(): string {
  const { value } = caller
  if (value.kind === 'person') return `As ${value.name}`
  return value.kind === 'token' ? 'With the token that you gave' : 'Without a token'
}

function openLogin() {
  void openDialog((close) => (
    <div class="body">
      <h2>Who sends the requests?</h2>
      <LoginForm done={() => close()} />
      <TokenForm done={() => close()} />
      <div class="actions">
        <button type="button" class="button ghost" onClick={() => close()}>
          Cancel
        </button>
      </div>
    </div>
  ))
}

function LoginForm({ done }: { done: () => void }) {
  const [needsCode, setNeedsCode] = useState(false)
  const [problem, setProblem] = useState<string>()
  const [isBusy, setBusy] = useState(false)

  async function submit(event: SubmitEvent) {
    event.preventDefault()
    const given = Object.fromEntries(new FormData(event.currentTarget as HTMLFormElement))
    setBusy(true)
    setProblem(undefined)
    try {
      await logIn(given as Parameters<typeof logIn>[0]) // the names of the inputs below
      done()
    } catch (error) {
      const asksForCode = error instanceof ApiError && error.reason === 'totp_required'
      setNeedsCode(needsCode || asksForCode)
      setProblem(asksForCode ? 'Enter a code of your authenticator.' : errorText(error).text)
    }
    setBusy(false)
  }

  return (
    <form onSubmit={submit}>
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
        <Field label="Code">
          {(attributes) => (
            <input name="code" autocomplete="one-time-code" required {...attributes} />
          )}
        </Field>
      )}
      <p class="error" role="alert">
        {problem}
      </p>
      <button type="submit" class="button primary" disabled={isBusy}>
        Log in
      </button>
    </form>
  )
}

function TokenForm({ done }: { done: () => void }) {
  function submit(event: SubmitEvent) {
    event.preventDefault()
    const data = new FormData(event.currentTarget as HTMLFormElement)
    takeToken(String(data.get('token')).trim())
    done()
  }
  return (
    <form class="token" onSubmit={submit}>
      <Field
        label="Or an access token or service key"
        hint="It is forgotten when you leave this page."
      >
        {(attributes) => (
          <input name="token" type="password" autocomplete="off" required {...attributes} />
        )}
      </Field>
      <button type="submit" class="button">
        Use this token
      </button>
    </form>
  )
}
