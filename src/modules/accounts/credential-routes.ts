import { Elysia } from 'elysia'
import { operations } from '../../http/operation.ts'
import { routeBase } from '../../http/request-context.ts'
import {
  CodeBody,
  EmailBody,
  EmailChangeBody,
  FactorRemoval,
  OneTimeTokenBody,
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

type Parts = { recovery: Recovery; emailChange: EmailChange; totp: Totp }

/** What people log in with: addresses, passwords and second factors. */
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
        ...visitor('verifyEmail', 'Verify an e-mail address with the token of the mailed link', {
          200: UserBody,
        }),
      },
    )
    .post(
      '/v1/auth/verify-email/resend',
      ({ context }) => recovery.resendVerification(context.user.userId, context.ip),
      user(
        'resendVerificationEmail',
        'Send the verification mail again: at most once a minute and 5 times a day',
        {
          204: null,
        },
      ),
    )
    .post(
      '/v1/auth/password/forgot',
      ({ body, context }) => recovery.forgotPassword(body.email, context.ip),
      {
        body: EmailBody,
        ...visitor('requestPasswordReset', 'Mail a reset link, if the address is known', {
          204: null,
        }),
      },
    )
    .post(
      '/v1/auth/password/reset',
      ({ body, context }) => recovery.resetPassword(body, context.ip),
      {
        body: PasswordReset,
        ...visitor(
          'resetPassword',
          'Set a new password with the token of the mailed link; ends every session',
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
        ...user(
          'changePassword',
          'Change the password; ends the other sessions',
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
        ...user(
          'requestEmailChange',
          'Mail a link to a new address: at most once a minute and 5 times an hour',
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
          'Change to the address that the link was mailed to; the former one stays reserved for 7 days',
          { 200: UserBody },
          { errors: ['email_taken'] },
        ),
      },
    )
    .post('/v1/auth/email/undo', ({ body, context }) => emailChange.undo(body.token, context.ip), {
      body: OneTimeTokenBody,
      ...visitor(
        'undoEmailChange',
        'Change back to the address that the link was mailed to; ends every session',
        {
          204: null,
        },
      ),
    })
    .post(
      '/v1/auth/totp',
      ({ context }) => totp.begin(context.user.userId),
      user(
        'createTotpSecret',
        'Make a secret for an authenticator, which a code then confirms',
        { 200: TotpSecret },
        { errors: ['totp_exists'] },
      ),
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
          'Switch the second factor on with a first code',
          { 200: RecoveryCodes },
          { errors: ['totp_exists', 'totp_invalid', 'login_throttled', 'not_found'] },
        ),
      },
    )
    .delete('/v1/auth/totp', ({ body, context }) => totp.remove(context.user, body, context.ip), {
      body: FactorRemoval,
      ...user(
        'deleteTotp',
        'Switch the second factor off',
        { 204: null },
        { errors: ['invalid_credentials', 'totp_invalid', 'login_throttled', 'not_found'] },
      ),
    })
}
