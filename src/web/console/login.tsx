import { useEffect, useState } from 'preact/hooks'
import { ApiError } from '../../../client/src/errors.ts'
import { Button } from '../kit/button.tsx'
import { errorText } from '../kit/errors.ts'
import { CodeField, EmailField, PasswordField, Problem } from '../kit/field.tsx'
import { askForm, useForm } from '../kit/form.tsx'
import { Filled, fill, texts } from '../kit/texts.tsx'
import { toast } from '../kit/toast.tsx'
import { client, ending, login, platform } from './session.ts'

const words = texts.console.login

export function LoginPage() {
  /** The first refusal for want of a code: the field appears in place of its text. */
  const [question, setQuestion] = useState<unknown>()
  const { onSubmit, isBusy, error } = useForm(async (given) => {
    const code = given.get('code')
    const credentials = {
      email: String(given.get('email')),
      password: String(given.get('password')),
      ...(code !== null && { code: String(code) }),
    }
    await login(credentials).catch((refusal) => {
      if (asksForCode(refusal)) setQuestion(question ?? refusal)
      throw refusal
    })
  })
  useEffect(() => {
    document.title = `${texts.kit.login} · ${platform}`
  }, [])
  return (
    <main class="login" tabIndex={-1}>
      <form class="stack" onSubmit={onSubmit}>
        <h1>{platform}</h1>
        <p class="soft">{ending.value ?? words.lead}</p>
        <EmailField />
        <PasswordField name="password" />
        {/* The operator may have removed the factor meanwhile. */}
        {question !== undefined && <CodeField takesFocus required={false} />}
        <Problem text={error === question ? undefined : problemText(error)} />
        <Button submits tone="primary" disabled={isBusy}>
          {texts.kit.login}
        </Button>
        <Button tone="ghost" onClick={askForLink}>
          {words.forgot}
        </Button>
        <p class="soft small">
          <Filled text={words.firstAdmin} values={{ page: <a href="/">{words.startPage}</a> }} />
        </p>
      </form>
    </main>
  )
}

const asksForCode = (error: unknown) =>
  error instanceof ApiError && error.reason === 'totp_required'

function problemText(error: unknown): string | undefined {
  if (error === undefined) return undefined
  if (error instanceof Error && error.message === 'not_admin') return words.notAdmin
  return errorText(error).text
}

async function askForLink() {
  const email = await askForm({
    title: words.forgot,
    text: words.forgotText,
    action: texts.console.account.address.action,
    fields: <EmailField label={words.ownEmail} />,
    async submit(given) {
      const body = { email: String(given.get('email')) }
      await client.request('POST /v1/auth/password/forgot', { body })
      return body.email
    },
  })
  if (email !== undefined) toast(fill(words.mailed, { email }))
}
