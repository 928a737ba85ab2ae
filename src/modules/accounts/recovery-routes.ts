import { Elysia } from 'elysia'
import { operation } from '../../http/operation.ts'
import { routeBase } from '../../http/request-context.ts'
import {
  EmailBody,
  OneTimeTokenBody,
  PasswordChange,
  PasswordReset,
  UserBody,
  userView,
} from './model.ts'
import type { RecoveryService } from './recovery-service.ts'

const tag = 'Accounts'

/** E-mail verification and passwords. */
export function recoveryRoutes({ recovery }: { recovery: RecoveryService }) {
  return new Elysia({ name: 'recovery' })
    .use(routeBase)
    .post(
      '/v1/auth/verify-email',
      async ({ body, context }) => ({
        user: userView(await recovery.verifyEmail(body.token, context.ip)),
      }),
      {
        access: 'public',
        limit: 'default',
        body: OneTimeTokenBody,
        detail: operation({
          tag,
          summary: 'Verify an e-mail address with the token of the mailed link',
          success: { 200: UserBody },
        }),
      },
    )
    .post(
      '/v1/auth/verify-email/resend',
      async ({ context }) => {
        await recovery.resendVerification(context.user.userId, context.ip)
      },
      {
        access: 'user',
        limit: 'default',
        detail: operation({
          tag,
          summary: 'Send the verification mail again: at most once a minute and 5 times a day',
          success: { 204: null },
        }),
      },
    )
    .post(
      '/v1/auth/password/forgot',
      async ({ body, context }) => {
        await recovery.forgotPassword(body.email, context.ip)
      },
      {
        access: 'public',
        limit: 'default',
        body: EmailBody,
        detail: operation({
          tag,
          summary: 'Have a reset link mailed, if the address is known',
          success: { 204: null },
        }),
      },
    )
    .post(
      '/v1/auth/password/reset',
      async ({ body, context }) => {
        await recovery.resetPassword(body.token, body.password, context.ip)
      },
      {
        access: 'public',
        limit: 'default',
        body: PasswordReset,
        detail: operation({
          tag,
          summary: 'Set a new password with the token of the mailed link; ends every session',
          success: { 204: null },
        }),
      },
    )
    .post(
      '/v1/auth/password/change',
      async ({ body, context }) => {
        const { userId, sessionId } = context.user
        const caller = { userId, sessionId, ip: context.ip }
        await recovery.changePassword(caller, body.current_password, body.new_password)
      },
      {
        access: 'user',
        limit: 'default',
        body: PasswordChange,
        detail: operation({
          tag,
          summary: 'Change the password; ends the other sessions',
          success: { 204: null },
          errors: ['invalid_credentials'],
        }),
      },
    )
}
