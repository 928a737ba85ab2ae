import { Elysia } from 'elysia'
import { callerOf, routeBase } from '../../http/exchange.ts'
import { operation } from '../../http/operation.ts'
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
      async ({ body, exchange }) => ({
        user: userView(await recovery.verifyEmail(body.token, exchange.ip())),
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
      async ({ exchange, set }) => {
        await recovery.resendVerification(callerOf(exchange).userId, exchange.ip())
        set.status = 204
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
      async ({ body, exchange, set }) => {
        await recovery.forgotPassword(body.email, exchange.ip())
        set.status = 204
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
      async ({ body, exchange, set }) => {
        await recovery.resetPassword(body.token, body.password, exchange.ip())
        set.status = 204
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
      async ({ body, exchange, set }) => {
        const { userId, sessionId } = callerOf(exchange)
        const caller = { userId, sessionId, ip: exchange.ip() }
        await recovery.changePassword(caller, body.current_password, body.new_password)
        set.status = 204
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
