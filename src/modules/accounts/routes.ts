import { type Static, Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { Body } from '../../api/fields.ts'
import { forCommands, hidden, operations } from '../../api/operation.ts'
import { idempotencyHeader, idempotencyKey } from '../../http/idempotency.ts'
import { routeBase } from '../../http/request-context.ts'
import { avatarSvg } from '../../lib/avatar.ts'
import { isoTime, timeOrNull } from '../../lib/clock.ts'
import { AppError } from '../../lib/errors.ts'
import {
  Authenticated,
  Credentials,
  Jwks,
  RefreshTokenBody,
  Registration,
  type Rotation,
  SetUp,
  type SigningKey,
  TokenSet,
} from './model.ts'
import type { AccountService } from './service.ts'
import type { Keyring } from './sign-in/keys.ts'
import { clientOf, type Sessions } from './sign-in/sessions.ts'

const jwksMaxAgeSeconds = 600
const yearSeconds = 31_536_000

const visitor = operations('Accounts', { access: 'public' })
const newcomer = operations('Accounts', { access: 'public', limit: 'register' })
const returning = operations('Accounts', { access: 'public', limit: 'login' })
const user = operations('Accounts', { access: 'user' })
const keys = (id: string) =>
  visitor(id, 'Shows the public keys of the access tokens (JWKS).', { 200: Jwks })

type Parts = { accounts: AccountService; sessions: Sessions; keyring: Keyring }

export function accountRoutes({ accounts, sessions, keyring }: Parts) {
  const showKeys = ({ set }: { set: { headers: Record<string, string | number> } }) => {
    set.headers['cache-control'] = `public, max-age=${jwksMaxAgeSeconds}`
    return keyring.jwks()
  }

  return new Elysia({ name: 'accounts' })
    .use(routeBase)
    .post(
      '/v1/auth/register',
      ({ body, context, request }) =>
        accounts.register(body, context.locale, clientOf(request, context.ip)),
      newcomer(
        'register',
        'Registers a new account and logs it in. Sends a verification mail to the address. Refused while the setting `registration` is `off`.',
        { 201: Authenticated },
        {
          body: Registration,
          errors: ['registration_closed', 'banned', 'email_taken'],
          example: { user: { role: 'user', email_verified: false } },
        },
      ),
    )
    .post(
      '/v1/auth/set-up',
      ({ body, context, request }) =>
        accounts.setUp(body, context.locale, clientOf(request, context.ip)),
      newcomer(
        'createFirstAdmin',
        'Creates the first admin. Requires the token from the link that the first start prints, which is valid for 30 minutes.',
        { 201: Authenticated },
        { body: SetUp, errors: ['email_taken'], example: { user: { role: 'admin' } } },
      ),
    )
    .post(
      '/v1/auth/login',
      ({ body, context, request }) => accounts.login(body, clientOf(request, context.ip)),
      returning(
        'login',
        'Logs in. An unknown address, a wrong password and a disabled account get the same response. If a second factor is enabled, a request without `code` is refused with the reason `totp_required`.',
        { 200: Authenticated },
        {
          body: Credentials,
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
        return sessions.refresh(body.refresh_token, key, clientOf(request, context.ip))
      },
      visitor(
        'refreshTokens',
        'Exchanges a refresh token for a new token set. Each refresh token works once. Reusing it ends its session, unless it was exchanged within the last 10 seconds and its successor is unused. A client that lost the response repeats the request with the same token and `X-Idempotency-Key`: for 24 hours, while the successor is unused and the user agent is the same, it gets a new successor.',
        { 200: TokenSet },
        { body: RefreshTokenBody, errors: ['invalid_token'], headers: idempotencyHeader },
      ),
    )
    .post(
      '/v1/auth/logout',
      ({ body, context }) => sessions.logout(context.user.userId, body.refresh_token, context.ip),
      user(
        'logout',
        'Logs out. Ends the session of the refresh token with its access tokens and sockets. Other devices stay logged in. A token of another user changes nothing.',
        { 204: null },
        { body: RefreshTokenBody },
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
      (): Static<typeof SigningKey>[] =>
        keyring
          .list()
          .map(({ kid, state, createdAt }) => ({ kid, state, created_at: isoTime(createdAt) })),
      forCommands(),
    )
    .post(
      '/v1/operator/keys/rotate',
      async ({ body, context }): Promise<Static<typeof Rotation>> => ({
        ready_at: timeOrNull(await keyring.rotate({ isUrgent: body.now, ...context.by })),
      }),
      { body: Body('KeyRotation', { now: Type.Boolean() }), ...forCommands() },
    )
    .get('/.well-known/jwks.json', showKeys, keys('getWellKnownJwks'))
    .get('/v1/.well-known/jwks.json', showKeys, keys('getJwks'))
}
