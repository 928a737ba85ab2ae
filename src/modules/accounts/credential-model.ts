import { type Static, Type } from '@sinclair/typebox'
import { Body, described, Email, Maybe, Refined, Sample, Schema } from '../../api/fields.ts'
import { samples } from '../../api/samples.ts'
import { problem } from '../../lib/errors.ts'
import { OwnPassword, Password } from './model.ts'

const OneTimeToken = Sample(samples.oneTimeToken, 'The token of the mailed link.')
export const OneTimeTokenBody = Body('OneTimeTokenBody', { token: OneTimeToken })
export const EmailBody = Body('EmailBody', {
  email: Sample(samples.guest.email, 'The e-mail address of the account.'),
})

export const PasswordReset = Body('PasswordReset', { token: OneTimeToken, password: Password })
export type PasswordReset = Static<typeof PasswordReset>

export const PasswordChange = Body('PasswordChange', {
  current_password: Maybe(
    described(
      Sample('six red bicycles'),
      'The password until now; unnecessary for a while after `POST /v1/auth/confirm`.',
    ),
  ),
  new_password: Password,
})
export type PasswordChange = Static<typeof PasswordChange>

export const EmailChangeBody = Body('EmailChangeBody', {
  new_email: Email('The new address. It counts once its mailed link was opened.'),
  password: OwnPassword,
})
export type EmailChangeBody = Static<typeof EmailChangeBody>

export const TotpSecret = Schema('TotpSecret', {
  secret: Sample(
    'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP',
    'The secret in Base32, for manual entry in an authenticator.',
  ),
  otpauth_url: Sample(
    'otpauth://totp/api.example.com:ben%40example.com?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=api.example.com',
    'The secret as a URL, for a QR code.',
  ),
})
export const CodeBody = Body('CodeBody', {
  code: Sample(samples.code, 'A code from the authenticator.'),
})
export const RecoveryCodes = Schema('RecoveryCodes', {
  recovery_codes: Type.Array(Sample('9fkq-27xm-b4tz'), {
    description: 'Ten recovery codes, shown only this once.',
  }),
})
export const FactorSetUp = Type.Optional(Body('FactorSetUp', { password: OwnPassword }))
export const FactorRemoval = Body('FactorRemoval', {
  password: OwnPassword,
  code: Sample(samples.code, 'A code from the authenticator, or a recovery code.'),
})
export type FactorRemoval = Static<typeof FactorRemoval>

const isGiven = (value: unknown) => value !== undefined && value !== null

export const OwnerProof = Refined(
  Body(
    'OwnerProof',
    {
      password: Maybe(Sample(samples.password, 'Your password.')),
      code: Maybe(
        Sample(
          samples.code,
          'A code from the authenticator or a mail. Recovery codes are not accepted.',
        ),
      ),
    },
    {
      description: 'Either the password or a code.',
      examples: [{ password: samples.password }],
    },
  ),
  ({ password, code }) =>
    isGiven(password) === isGiven(code) ? { body: problem('one_proof') } : {},
)
export type OwnerProof = Static<typeof OwnerProof>
