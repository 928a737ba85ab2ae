import { Elysia } from 'elysia'
import { operations } from '../../api/operation.ts'
import { recentlyConfirmed } from '../../http/confirmation.ts'
import { routeBase } from '../../http/request-context.ts'
import type { EmailChange } from './address/email-change.ts'
import type { Recovery } from './address/recovery.ts'
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
import { UserBody, userView } from './model.ts'
import type { Totp } from './sign-in/totp.ts'

const visitor = operations('Accounts', { access: 'public' })
const user = operations('Accounts', { access: 'user' })
/** Routes that require the password, in the body or by an earlier confirmation. */
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
      visitor(
        'verifyEmail',
        'Verifies an e-mail address with the token from the mailed link. The role `user` becomes `verified_user`.',
        { 200: UserBody },
        { body: OneTimeTokenBody },
      ),
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
      visitor(
        'requestPasswordReset',
        'Mails a link for setting a new password. The response is the same whether or not the address is known.',
        { 204: null },
        { body: EmailBody },
      ),
    )
    .post(
      '/v1/auth/password/reset',
      ({ body, context }) => recovery.resetPassword(body, context.ip),
      visitor(
        'resetPassword',
        'Sets a new password with the token from the mailed link. Ends every session and verifies the address. If the address was never verified before, also removes the second factor, devices, name and picture.',
        { 204: null },
        { body: PasswordReset },
      ),
    )
    .post(
      '/v1/auth/password/change',
      ({ body, context }) => recovery.changePassword(context.user, body, context.ip),
      changingPassword(
        'changePassword',
        'Changes the password. Ends the other sessions. At most 5 times an hour.',
        { 204: null },
        { body: PasswordChange },
      ),
    )
    .post(
      '/v1/auth/email/change',
      ({ body, context }) => emailChange.request(context.user, body, context.ip),
      changingAddress(
        'requestEmailChange',
        'Requests a change of the e-mail address: mails a link to the new address. The address changes when its owner follows the link within 24 hours. At most once a minute and 5 times an hour.',
        { 204: null },
        { body: EmailChangeBody, errors: ['banned', 'mail_throttled'] },
      ),
    )
    .post(
      '/v1/auth/email/confirm',
      async ({ body, context }) => ({
        user: userView(await emailChange.confirm(body.token, context.ip)),
      }),
      visitor(
        'confirmEmailChange',
        'Confirms a new e-mail address with the token from the mailed link. If the former address was verified, it stays reserved for 7 days, and a link mailed to it undoes the change.',
        { 200: UserBody },
        { body: OneTimeTokenBody, errors: ['banned', 'email_taken'] },
      ),
    )
    .post(
      '/v1/auth/email/undo',
      ({ body, context }) => emailChange.undo(body.token, context.ip),
      visitor(
        'undoEmailChange',
        'Restores the former e-mail address with the token from the link mailed to it. Ends every session, removes the password, and removes a second factor set up after the change. Mails a link for setting a new password.',
        { 204: null },
        { body: OneTimeTokenBody },
      ),
    )
    .post(
      '/v1/auth/totp',
      ({ body, context }) => totp.begin(context.user, body?.password, context.ip),
      changingFactor(
        'createTotpSecret',
        'Creates a secret for an authenticator. Confirm it with a first code to enable the second factor.',
        { 200: TotpSecret },
        { body: FactorSetUp, errors: ['totp_exists'] },
      ),
    )
    .post(
      '/v1/auth/totp/confirm',
      async ({ body, context }) => ({
        recovery_codes: await totp.confirm(context.user, body.code, context.ip),
      }),
      user(
        'confirmTotp',
        'Enables the second factor with a first code. The recovery codes are shown only this once, and the owner is notified by mail.',
        { 200: RecoveryCodes },
        {
          body: CodeBody,
          errors: ['totp_exists', 'totp_invalid', 'login_throttled', 'quota_exceeded', 'not_found'],
        },
      ),
    )
    .delete(
      '/v1/auth/totp',
      ({ body, context }) => totp.remove(context.user, body, context.ip),
      changingFactor(
        'deleteTotp',
        'Disables the second factor. The owner is notified by mail.',
        { 204: null },
        { body: FactorRemoval, errors: ['totp_invalid', 'not_found'] },
      ),
    )
    .post(
      '/v1/auth/confirm/code',
      ({ context }) => totp.mailCode(context.user, context.ip),
      user(
        'mailConfirmationCode',
        'Mails you a code of six digits for a confirmation, for example without a password. It works for 10 minutes and 5 attempts, and a new one replaces it. At most once a minute and 5 times a day.',
        { 204: null },
        { errors: ['email_not_verified', 'mail_throttled'] },
      ),
    )
    .post(
      '/v1/auth/confirm',
      ({ body, context }) => totp.proveOwner(context.user, body, context.ip),
      user(
        'confirmOwner',
        'Confirms the session with the password, or a code from the authenticator or a mail (`POST /v1/auth/confirm/code`). A code works once; recovery codes are not accepted. For some minutes the session may then call operations that require a confirmation. At most 10 times a minute.',
        { 204: null },
        {
          body: OwnerProof,
          errors: [
            'invalid_credentials',
            'totp_invalid',
            'code_invalid',
            'login_throttled',
            'quota_exceeded',
          ],
        },
      ),
    )
}
