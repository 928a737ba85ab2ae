import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { Body, ClientId, described } from '../../api/fields.ts'
import { forCommands, hidden, operations } from '../../api/operation.ts'
import { recentlyConfirmed } from '../../http/confirmation.ts'
import { idempotencyKey } from '../../http/idempotency.ts'
import { pageOf } from '../../http/pagination.ts'
import type { RouteApp } from '../../http/request-context.ts'
import { avatarSvg } from '../../lib/avatar.ts'
import { isoTime, timeOrNull } from '../../lib/clock.ts'
import { AppError } from '../../lib/errors.ts'
import type { Recovery } from './address/recovery.ts'
import type { SendExport } from './exports.ts'
import * as model from './model.ts'
import type { AccountService } from './service.ts'
import type { Keyring } from './sign-in/keys.ts'
import type { SessionRow } from './sign-in/session-store.ts'
import type { Sessions } from './sign-in/sessions.ts'
import type { Totp } from './sign-in/totp.ts'

const jwksMaxAgeSeconds = 600
const yearSeconds = 31_536_000

const visitor = operations('Accounts', { access: 'public' })
const newcomer = operations('Accounts', { access: 'public', limit: 'register' })
const returning = operations('Accounts', { access: 'public', limit: 'login' })
const user = operations('Accounts', { access: 'user' })
const owner = (unless: string, minutes = recentlyConfirmed.minutes) =>
  operations('Accounts', { access: 'user', confirm: { minutes, unless } })
const changingPassword = owner('current_password')
const confirmed = owner('password')
const changingFactor = owner('password', 5)
const keys = (id: string) =>
  visitor(id, 'Shows the public keys of the access tokens (JWKS).', { 200: model.Jwks })

type Parts = {
  accounts: AccountService
  sessions: Sessions
  keyring: Keyring
  recovery: Recovery
  totp: Totp
  profileView: model.ProfileView
  sendExport: SendExport
  exportSchema: TSchema
}

export function accountRoutes(app: RouteApp, parts: Parts) {
  const { accounts, sessions, keyring, recovery, totp, profileView, sendExport, exportSchema } =
    parts
  const showKeys = ({ set }: { set: { headers: Record<string, string | number> } }) => {
    set.headers['cache-control'] = `public, max-age=${jwksMaxAgeSeconds}`
    return keyring.jwks()
  }

  app
    .post(
      '/v1/auth/register',
      ({ body, context }) => accounts.register(body, context.locale, context.client),
      newcomer(
        'register',
        'Registers a new account and logs it in. Sends a verification mail to the address. Refused while the setting `registration` is `off`.',
        {
          201: model.Authenticated,
          body: model.Registration,
          errors: ['registration_closed', 'banned', 'email_taken'],
          example: { user: { role: 'user', email_verified: false } },
        },
      ),
    )
    .post(
      '/v1/auth/set-up',
      ({ body, context }) => accounts.setUp(body, context.locale, context.client),
      newcomer(
        'createFirstAdmin',
        'Creates the first admin. Requires the token from the link that the first start prints, which is valid for 30 minutes.',
        {
          201: model.Authenticated,
          body: model.SetUp,
          errors: ['email_taken'],
          example: { user: { role: 'admin' } },
        },
      ),
    )
    .post(
      '/v1/auth/login',
      ({ body, context }) => accounts.login(body, context.client),
      returning(
        'login',
        'Logs in. An unknown address, a wrong password and a disabled account get the same response. If a second factor is enabled, a request without `code` is refused with the reason `totp_required`.',
        {
          200: model.Authenticated,
          body: model.Credentials,
          errors: [
            'banned',
            'invalid_credentials',
            'totp_required',
            'totp_invalid',
            'login_throttled',
          ],
        },
      ),
    )
    .post(
      '/v1/auth/refresh',
      ({ body, context, request }) => {
        const key = idempotencyKey(request.headers)
        return sessions.refresh(body.refresh_token, key, context.client)
      },
      visitor(
        'refreshTokens',
        'Exchanges a refresh token for a new token set. Each refresh token works once. Reusing it ends its session, unless it was exchanged within the last 10 seconds and its successor is unused. A client that lost the response repeats the request with the same token and `X-Idempotency-Key`: for 24 hours, while the successor is unused and the user agent is the same, it gets a new successor.',
        {
          200: model.TokenSet,
          body: model.RefreshTokenBody,
          errors: ['invalid_token'],
          headers: {
            'X-Idempotency-Key': described(
              ClientId,
              'After a lost response the same token and key get another token set.',
            ),
          },
        },
      ),
    )
    .post(
      '/v1/auth/logout',
      ({ body, context }) => sessions.logout(context.user.userId, body.refresh_token, context.ip),
      user(
        'logout',
        'Logs out. Ends the session of the refresh token with its access tokens and sockets. Other devices stay logged in. A token of another user changes nothing.',
        { 204: null, body: model.RefreshTokenBody },
      ),
    )
    .get(
      '/v1/avatars/:hue/:file',
      ({ params, set }) => {
        const svg = avatarSvg(params.hue, params.file)
        if (svg === undefined) throw new AppError('not_found')
        set.headers['content-type'] = 'image/svg+xml'
        set.headers['cache-control'] = `public, max-age=${yearSeconds}, immutable`
        return svg
      },
      hidden,
    )
    .get(
      '/v1/operator/keys',
      (): Static<typeof model.SigningKey>[] =>
        keyring
          .list()
          .map(({ kid, state, createdAt }) => ({ kid, state, created_at: isoTime(createdAt) })),
      forCommands(),
    )
    .post(
      '/v1/operator/keys/rotate',
      async ({ body, context }): Promise<Static<typeof model.Rotation>> => ({
        ready_at: timeOrNull(await keyring.rotate({ isUrgent: body.now, ...context.by })),
      }),
      { body: Body('KeyRotation', { now: Type.Boolean() }), ...forCommands() },
    )
    .get('/.well-known/jwks.json', showKeys, keys('getWellKnownJwks'))
    .get('/v1/.well-known/jwks.json', showKeys, keys('getJwks'))
    .post(
      '/v1/auth/verify-email',
      async ({ body, context }) => ({
        user: model.userView(await recovery.verifyEmail(body.token, context.ip)),
      }),
      visitor(
        'verifyEmail',
        'Verifies an e-mail address with the token from the mailed link. The role `user` becomes `verified_user`.',
        { 200: model.UserBody, body: model.OneTimeTokenBody },
      ),
    )
    .post(
      '/v1/auth/verify-email/resend',
      ({ context }) => recovery.resendVerification(context.user.userId, context.ip),
      user(
        'resendVerificationEmail',
        'Sends the verification mail again. At most once a minute and 5 times a day.',
        { 204: null, errors: ['mail_throttled'] },
      ),
    )
    .post(
      '/v1/auth/password/forgot',
      ({ body, context }) => recovery.forgotPassword(body.email, context.ip),
      visitor(
        'requestPasswordReset',
        'Mails a link for setting a new password. The response is the same whether or not the address is known.',
        { 204: null, body: model.EmailBody },
      ),
    )
    .post(
      '/v1/auth/password/reset',
      ({ body, context }) => recovery.resetPassword(body, context.ip),
      visitor(
        'resetPassword',
        'Sets a new password with the token from the mailed link. Ends every session and verifies the address. If the address was never verified before, also removes the second factor, devices, name and picture.',
        { 204: null, body: model.PasswordReset },
      ),
    )
    .post(
      '/v1/auth/password/change',
      ({ body, context }) => recovery.changePassword(context.user, body, context.ip),
      changingPassword(
        'changePassword',
        'Changes the password. Ends the other sessions. At most 5 times an hour.',
        { 204: null, body: model.PasswordChange },
      ),
    )
    .post(
      '/v1/auth/email/change',
      ({ body, context }) => recovery.requestEmailChange(context.user, body, context.ip),
      confirmed(
        'requestEmailChange',
        'Requests a change of the e-mail address: mails a link to the new address. The address changes when its owner follows the link within 24 hours. At most once a minute and 5 times an hour.',
        { 204: null, body: model.EmailChangeBody, errors: ['banned', 'mail_throttled'] },
      ),
    )
    .post(
      '/v1/auth/email/confirm',
      async ({ body, context }) => ({
        user: model.userView(await recovery.confirmEmail(body.token, context.ip)),
      }),
      visitor(
        'confirmEmailChange',
        'Confirms a new e-mail address with the token from the mailed link. If the former address was verified, it stays reserved for 7 days, and a link mailed to it undoes the change.',
        { 200: model.UserBody, body: model.OneTimeTokenBody, errors: ['banned', 'email_taken'] },
      ),
    )
    .post(
      '/v1/auth/email/undo',
      ({ body, context }) => recovery.undoEmailChange(body.token, context.ip),
      visitor(
        'undoEmailChange',
        'Restores the former e-mail address with the token from the link mailed to it. Ends every session, removes the password, and removes a second factor set up after the change. Mails a link for setting a new password.',
        { 204: null, body: model.OneTimeTokenBody },
      ),
    )
    .post(
      '/v1/auth/totp',
      ({ body, context }) => totp.begin(context.user, body?.password, context.ip),
      changingFactor(
        'createTotpSecret',
        'Creates a secret for an authenticator. Confirm it with a first code to enable the second factor.',
        { 200: model.TotpSecret, body: model.FactorSetUp, errors: ['totp_exists'] },
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
        {
          200: model.RecoveryCodes,
          body: model.CodeBody,
          errors: ['totp_exists', 'totp_invalid', 'login_throttled', 'quota_exceeded', 'not_found'],
        },
      ),
    )
    .post(
      '/v1/auth/totp/recovery-codes',
      async ({ body, context }) => ({
        recovery_codes: await totp.renewCodes(context.user, body, context.ip),
      }),
      changingFactor(
        'renewRecoveryCodes',
        'Replaces the recovery codes of the second factor. The old ones no longer work, and the new ones are shown only this once.',
        {
          200: model.RecoveryCodes,
          body: model.CodesRenewal,
          errors: ['totp_invalid', 'not_found'],
        },
      ),
    )
    .delete(
      '/v1/auth/totp',
      ({ body, context }) => totp.remove(context.user, body, context.ip),
      changingFactor('deleteTotp', 'Disables the second factor. The owner is notified by mail.', {
        204: null,
        body: model.FactorRemoval,
        errors: ['totp_invalid', 'not_found'],
      }),
    )
    .post(
      '/v1/auth/confirm/code',
      ({ context }) => totp.mailCode(context.user, context.ip),
      user(
        'mailConfirmationCode',
        'Mails you a code of six digits for a confirmation, for example without a password. It works for 10 minutes and 5 attempts, and a new one replaces it. At most once a minute and 5 times a day.',
        { 204: null, errors: ['email_not_verified', 'mail_throttled'] },
      ),
    )
    .post(
      '/v1/auth/confirm',
      ({ body, context }) => totp.proveOwner(context.user, body, context.ip),
      user(
        'confirmOwner',
        'Confirms the session with the password, or a code from the authenticator or a mail (`POST /v1/auth/confirm/code`). A code works once; recovery codes are not accepted. For some minutes the session may then call operations that require a confirmation. At most 10 times a minute.',
        {
          204: null,
          body: model.OwnerProof,
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
    .get(
      '/v1/users/me',
      ({ context }) => profileView(accounts.get(context.user.userId)),
      user('getProfile', 'Shows your own profile.', { 200: model.Profile }),
    )
    .patch(
      '/v1/users/me',
      async ({ body, context }) => {
        const changes = {
          displayName: body.display_name?.trim(),
          avatarUrl: body.avatar_url,
          locale: body.locale ?? undefined,
        }
        return profileView(await accounts.update(context.user, changes))
      },
      user(
        'updateProfile',
        'Changes your own profile. Absent fields keep their value; `avatar_url: null` restores the generated picture.',
        { 200: model.Profile, body: model.ProfileUpdate },
      ),
    )
    .put(
      '/v1/users/me/quiet-hours',
      async ({ body, context }) => {
        const { from, to, time_zone } = body
        const quietHours = { from, to, time_zone }
        return profileView(await accounts.update(context.user, { quietHours }))
      },
      user(
        'setQuietHours',
        'Sets the hours of each day in which pushes and mails wait; then they come as one. Calls and mails about the account do not wait.',
        { 200: model.Profile, body: model.NewQuietHours },
      ),
    )
    .delete(
      '/v1/users/me/quiet-hours',
      async ({ context }) => {
        await accounts.update(context.user, { quietHours: null })
      },
      user('deleteQuietHours', 'Clears your quiet hours.', { 204: null }),
    )
    .delete(
      '/v1/users/me',
      ({ body, context }) => accounts.remove(context.user, body.password, context.ip),
      confirmed(
        'deleteAccount',
        'Removes your own account. Messages stay, shown as from a deleted user.',
        { 204: null, body: model.PasswordBody, errors: ['last_admin'] },
      ),
    )
    .get(
      '/v1/users/me/export',
      ({ context, request }) =>
        sendExport(accounts.get(context.user.userId), context, request.signal),
      user(
        'exportAccount',
        'Exports all data stored about you. One export at a time and 5 an hour.',
        { 200: exportSchema, errors: ['quota_exceeded'] },
      ),
    )
    .get(
      '/v1/auth/sessions',
      ({ query, context }) => {
        const { userId, sessionId } = context.user
        const view = (row: SessionRow) => model.sessionView(row, sessionId)
        return pageOf(query, (range) => sessions.list(userId, range), view)
      },
      user.list(
        'listSessions',
        'Lists your sessions, one for each logged-in device.',
        model.Session,
      ),
    )
    .delete(
      '/v1/auth/sessions/:id',
      ({ params, context }) => sessions.end(context.user.userId, params.id, context.by),
      user('deleteSession', 'Logs a device out. Its access tokens and sockets end with it.', {
        204: null,
      }),
    )
}
