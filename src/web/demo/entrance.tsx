import { useState } from 'preact/hooks'
import { ApiError } from '../../../client/src/client.ts'
import { errorText } from '../kit/errors.ts'
import { EmailField, PasswordField, Problem, Problems, TextField } from '../kit/field.tsx'
import { useForm } from '../kit/form.tsx'
import { locale } from '../kit/format.ts'
import { fill, texts } from '../kit/texts.tsx'
import type { Session } from './session.ts'

type Mode = 'register' | 'login'

export function Entrance({ session }: { session: Session }) {
  const text = texts.demo.entrance
  const [mode, setMode] = useState<Mode>('register')
  const isNew = mode === 'register'
  const { onSubmit, isBusy, error, problems, forget } = useForm((given) => {
    const [email, password] = [String(given.get('email')), String(given.get('password'))]
    if (!isNew) return session.login({ email, password })
    return session.register({ display_name: String(given.get('display_name')), email, password })
  })
  return (
    <form class="entrance stack" onSubmit={onSubmit}>
      <h2>{texts.demo.sides[session.side]}</h2>
      <p class="soft">{session.hasEnded.value ? text.ended : text.text}</p>
      <ModeSwitch
        mode={mode}
        choose={(next) => {
          setMode(next)
          forget()
        }}
      />
      <Problems.Provider value={problems}>
        {isNew && (
          <TextField
            label={texts.fields.name}
            name="display_name"
            autocomplete="nickname"
            maxLength={80}
            required
          />
        )}
        <EmailField />
        <PasswordField name="password" isNew={isNew} />
      </Problems.Provider>
      <Problem text={problemText(error, mode)} />
      <button type="submit" class="button primary" disabled={isBusy}>
        {isNew ? text.register : texts.kit.login}
      </button>
    </form>
  )
}

function ModeSwitch({ mode, choose }: { mode: Mode; choose: (mode: Mode) => void }) {
  const text = texts.demo.entrance
  return (
    <fieldset class="segments" aria-label={text.mode}>
      {(['register', 'login'] as const).map((name) => (
        <button key={name} type="button" aria-pressed={mode === name} onClick={() => choose(name)}>
          {text.modes[name]}
        </button>
      ))}
    </fieldset>
  )
}

/** The service's message, except where the page can say more. */
function problemText(error: unknown, mode: Mode): string | undefined {
  if (error === undefined) return undefined
  const text = texts.demo.entrance
  if (!(error instanceof ApiError)) return errorText(error).text
  if (error.details) return undefined // the fields say it
  if (error.code !== 'rate_limited' || error.reason !== undefined) return error.message
  const limit = mode === 'register' ? text.registerLimit : text.loginLimit
  return fill(limit, { when: fromNow(error.retryAfterSeconds ?? 60) })
}

/** `in 42 minutes`, in the language of the page. */
function fromNow(seconds: number): string {
  const format = new Intl.RelativeTimeFormat(locale.value, { numeric: 'always' })
  return seconds < 90
    ? format.format(seconds, 'second')
    : format.format(Math.ceil(seconds / 60), 'minute')
}
