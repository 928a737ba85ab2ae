import { ApiError } from '../../../client/src/errors.ts'
import { PasswordField } from '../kit/field.tsx'
import { askForm } from '../kit/form.tsx'
import { texts } from '../kit/texts.tsx'

type Prove = (proof: { password: string } | { code: string }) => Promise<unknown>

let asking: Promise<boolean> | undefined

/** Asks for the password or a code, once for all requests that need it at the same time.
 *  @param prove sends the proof to the service
 *  @returns false when the dialog was cancelled */
export function confirmIdentity(prove: Prove): Promise<boolean> {
  asking ??= ask(prove).finally(() => {
    asking = undefined
  })
  return asking
}

async function ask(prove: Prove): Promise<boolean> {
  const words = texts.console.shell
  const isConfirmed = await askForm({
    title: words.confirmTitle,
    action: words.confirm,
    fields: <PasswordField label={words.secret} hint={words.secretHint} name="secret" />,
    async submit(given) {
      const secret = String(given.get('secret'))
      await prove(isCode(secret) ? { code: secret } : { password: secret }).catch(atField)
      return true
    },
  })
  return isConfirmed === true
}

/** Six digits, perhaps in two groups, as authenticators show them. A password is always longer. */
const isCode = (secret: string) => /^\d{3}[\s-]?\d{3}$/.test(secret)

/** The service's sentence is about the login, with its address. */
function atField(error: unknown): never {
  if (!(error instanceof ApiError) || error.code !== 'invalid_credentials') throw error
  const { code, message } = error
  const details = { secret: texts.console.shell.wrongSecret }
  throw new ApiError({ error: { code, message, details } })
}
