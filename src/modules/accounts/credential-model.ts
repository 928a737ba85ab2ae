import { type Static, Type } from '@sinclair/typebox'
import { Body, described, Email, Maybe, Refined, Sample } from '../../api/fields.ts'
import { samples } from '../../api/samples.ts'
import { problem } from '../../lib/errors.ts'
import { OwnPassword, Password } from './model.ts'

const OneTimeToken = Sample(samples.oneTimeToken, { description: 'The token of the mailed link.' })
export const OneTimeTokenBody = Body('OneTimeTokenBody', { token: OneTimeToken })
export const EmailBody = Body('EmailBody', {
  email: Sample(samples.guest.email, { description: 'The e-mail address of the account.' }),
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

export const TotpSecret = Type.Object(
  {
    secret: Sample('JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP', {
      description: 'The secret in Base32, for manual entry in an authenticator.',
    }),
    otpauth_url: Sample(
      'otpauth://totp/api.example.com:ben%40example.com?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=api.example.com',
      { description: 'The secret as a URL, for a QR code.' },
    ),
  },
  { title: 'TotpSecret' },
)
export const CodeBody = Body('CodeBody', {
  code: Sample(samples.code, { description: 'A code from the authenticator.' }),
})
export const RecoveryCodes = Type.Object(
  {
    recovery_codes: Type.Array(Sample('9fkq-27xm-b4tz'), {
      description: 'Ten recovery codes, shown only this once.',
    }),
  },
  { title: 'RecoveryCodes' },
)
export const FactorSetUp = Type.Optional(Body('FactorSetUp', { password: OwnPassword }))
export const FactorRemoval = Body('FactorRemoval', {
  password: OwnPassword,
  code: Sample(samples.code, { description: 'A code from the authenticator, or a recovery code.' }),
})
export type FactorRemoval = Static<typeof FactorRemoval>

const isGiven = (value: unknown) => value !== undefined && value !== null

export const OwnerProof = Refined(
  Type.Object(
    {
      password: Maybe(Sample(samples.password, { description: 'Your password.' })),
      code: Maybe(
        Sample(samples.code, {
          description: 'A code from the authenticator or a mail. Recovery codes are not accepted.',
        }),
      ),
    },
    {
      title: 'OwnerProof',
      description: 'Either the password or a code.',
      examples: [{ password: samples.password }],
      additionalProperties: true,
    },
  ),
  ({ password, code }) =>
    isGiven(password) === isGiven(code) ? { body: problem('one_proof') } : {},
)
export type OwnerProof = Static<typeof OwnerProof>
