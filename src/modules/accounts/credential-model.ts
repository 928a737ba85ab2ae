import { type Static, Type } from '@sinclair/typebox'
import { Email } from '../../lib/fields.ts'
import { Body, Password } from './model.ts'

export const OneTimeTokenBody = Body('OneTimeTokenBody', { token: Type.String() })
export const EmailBody = Body('EmailBody', { email: Type.String() })

export const PasswordReset = Body('PasswordReset', {
  token: Type.String(),
  password: Password,
})
export type PasswordReset = Static<typeof PasswordReset>

export const PasswordChange = Body('PasswordChange', {
  current_password: Type.String(),
  new_password: Password,
})
export type PasswordChange = Static<typeof PasswordChange>

export const EmailChangeBody = Body('EmailChangeBody', {
  new_email: Email(),
  password: Type.String(),
})
export type EmailChangeBody = Static<typeof EmailChangeBody>

export const TotpSecret = Type.Object(
  {
    secret: Type.String({ description: 'Base32, for an authenticator.' }),
    otpauth_url: Type.String({ description: 'The same as a URL, for a QR code.' }),
  },
  { title: 'TotpSecret' },
)
export const CodeBody = Body('CodeBody', { code: Type.String() })
export const RecoveryCodes = Type.Object(
  { recovery_codes: Type.Array(Type.String(), { description: 'Shown this once.' }) },
  { title: 'RecoveryCodes' },
)
export const FactorRemoval = Body('FactorRemoval', {
  password: Type.String(),
  code: Type.String({ description: 'From the authenticator, or a recovery code.' }),
})
export type FactorRemoval = Static<typeof FactorRemoval>
