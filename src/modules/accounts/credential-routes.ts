import { Elysia } from 'elysia'
import { recentlyConfirmed } from '../../http/confirmation.ts'
import { operations } from '../../http/operation.ts'
import { routeBase } from '../../http/request-context.ts'
import {
  CodeBody,
  EmailBody,
  EmailChangeBody,
  FactorRemoval,
  FactorSetUp,
  OneTimeTokenBody,
  OwnerProof,
  PasswordChange,
  PasswordReset,
  RecoveryCodes,
  TotpSecret,
} from './credential-model.ts'
import type { EmailChange } from './email-change.ts'
import { UserBody, userView } from './model.ts'
import type { Recovery } from './recovery.ts'
import type { Totp } from './totp.ts'

const visitor = operations('Accounts', { access: 'public' })
const user = operations('Accounts', { access: 'user' })
/** Asks for the password, in the body or confirmed before. */
const owner = (unless: string, minutes = recentlyConfirmed.minutes) =>
  operations('Accounts', { access: 'user', confirm: { minutes, unless } })
const changingPassword = owner('current_password')
const changingAddress = owner('password')
const changingFactor = owner('password', 5)

type Parts = { recovery: Recovery; emailChange: EmailChange; totp: Totp }

export function credentialRoutes({ recovery, emailChange, totp }: Parts) {
  return new Elysia({ name: 'credentials' })
    .use(routeBase)
    .post(
      '/v1/auth/verify-email',
      async ({ body, context }) => ({
        user: userView(await recovery.verifyEmail(body.token, context.ip)),
      }),
      {
        body: OneTimeTokenBody,
        ...visitor(
          'verifyEmail',
          'Verifies an e-mail address with the token of the mailed link. The role `user` becomes `verified_user`.',
          {
            200: UserBody,
          },
        ),
      },
    )
    .post(
      '/v1/auth/verify-email/resend',
      ({ context }) => recovery.resendVerification(context.user.userId, context.ip),
      user(
        'resendVerificationEmail',
        'Sends the verification mail again. At most once a minute and 5 times a day.',
        { 204: null },
        { errors: ['mail_throttled'] },
      ),
    )
    .post(
      '/v1/auth/password/forgot',
      ({ body, context }) => recovery.forgotPassword(body.email, context.ip),
      {
        body: EmailBody,
        ...visitor(
          'requestPasswordReset',
          'Mails a link for setting a new password. The answer does not tell whether the address is known.',
          {
            204: null,
          },
        ),
      },
    )
    .post(
      '/v1/auth/password/reset',
      ({ body, context }) => recovery.resetPassword(body, context.ip),
      {
        body: PasswordReset,
        ...visitor(
          'resetPassword',
          'Sets a new password with the token of the mailed link. Ends every session and verifies the address. Of an account that was never verified the second factor, devices, name and picture go, too.',
          {
            204: null,
          },
        ),
      },
    )
    .post(
      '/v1/auth/password/change',
      ({ body, context }) => recovery.changePassword(context.user, body, context.ip),
      {
        body: PasswordChange,
        ...changingPassword(
          'changePassword',
          'Changes the password. Ends the other sessions. At most 5 times an hour.',
          { 204: null },
          { errors: ['invalid_credentials', 'login_throttled', 'quota_exceeded'] },
        ),
      },
    )
    .post(
      '/v1/auth/email/change',
      ({ body, context }) => emailChange.request(context.user, body, context.ip),
      {
        body: EmailChangeBody,
        ...changingAddress(
          'requestEmailChange',
          'Starts a change of the e-mail address: mails a link to the new one. The address changes when the link is followed, within 24 hours. At most once a minute and 5 times an hour.',
          { 204: null },
          {
            errors: ['invalid_credentials', 'login_throttled', 'mail_throttled', 'quota_exceeded'],
          },
        ),
      },
    )
    .post(
      '/v1/auth/email/confirm',
      async ({ body, context }) => ({
        user: userView(await emailChange.confirm(body.token, context.ip)),
      }),
      {
        body: OneTimeTokenBody,
        ...visitor(
          'confirmEmailChange',
          'Confirms a new e-mail address with the token of the mailed link. A former address that was verified stays reserved for 7 days; a link mailed there undoes the change.',
          { 200: UserBody },
          { errors: ['email_taken'] },
        ),
      },
    )
    .post('/v1/auth/email/undo', ({ body, context }) => emailChange.undo(body.token, context.ip), {
      body: OneTimeTokenBody,
      ...visitor(
        'undoEmailChange',
        'Changes back to the former address. Takes the token of the link that was mailed there. Ends every session, the password, and a second factor that is younger than the change; a link to a new password is mailed.',
        { 204: null },
      ),
    })
    .post(
      '/v1/auth/totp',
      ({ body, context }) => totp.begin(context.user, body?.password, context.ip),
      {
        body: FactorSetUp,
        ...changingFactor(
          'createTotpSecret',
          'Creates a secret for an authenticator. Confirm it with a first code to switch the second factor on.',
          { 200: TotpSecret },
          { errors: ['invalid_credentials', 'login_throttled', 'quota_exceeded', 'totp_exists'] },
        ),
      },
    )
    .post(
      '/v1/auth/totp/confirm',
      async ({ body, context }) => ({
        recovery_codes: await totp.confirm(context.user, body.code, context.ip),
      }),
      {
        body: CodeBody,
        ...user(
          'confirmTotp',
          'Switches the second factor on with a first code. The recovery codes are shown this once, and the owner is told by mail.',
          { 200: RecoveryCodes },
          {
            errors: [
              'totp_exists',
              'totp_invalid',
              'login_throttled',
              'quota_exceeded',
              'not_found',
            ],
          },
        ),
      },
    )
    .delete('/v1/auth/totp', ({ body, context }) => totp.remove(context.user, body, context.ip), {
      body: FactorRemoval,
      ...changingFactor(
        'deleteTotp',
        'Switches the second factor off. The owner is told by mail.',
        { 204: null },
        {
          errors: [
            'invalid_credentials',
            'totp_invalid',
            'login_throttled',
            'quota_exceeded',
            'not_found',
          ],
        },
      ),
    })
    .post(
      '/v1/auth/confirm',
      ({ body, context }) => totp.proveOwner(context.user, body, context.ip),
      {
        body: OwnerProof,
        ...user(
          'confirmOwner',
          'Confirms that the owner of the session is the one who asks. Takes either the password or a code of the authenticator, which works once; no recovery code. For some minutes the session then may do what asks for a confirmation. At most 10 times a minute.',
          { 204: null },
          {
            errors: ['invalid_credentials', 'totp_invalid', 'login_throttled', 'quota_exceeded'],
          },
        ),
      },
    )
}
