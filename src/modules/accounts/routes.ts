import { Elysia } from 'elysia'
import { operation } from '../../http/operation.ts'
import { routeBase } from '../../http/request-context.ts'
import { avatarSvg } from '../../lib/avatar.ts'
import { AppError } from '../../lib/errors.ts'
import type { Keyring } from './keys.ts'
import {
  Authenticated,
  Credentials,
  Jwks,
  RefreshTokenBody,
  Registration,
  SetUp,
  TokenSet,
  userView,
} from './model.ts'
import type { AccountService, Client } from './service.ts'

const tag = 'Accounts'
const jwksMaxAgeSeconds = 600
const yearSeconds = 31_536_000

type AccountRoutesOptions = { accounts: AccountService; keyring: Keyring }

export function accountRoutes({ accounts, keyring }: AccountRoutesOptions) {
  return new Elysia({ name: 'accounts' })
    .use(routeBase)
    .post(
      '/v1/auth/register',
      async ({ body, context, request }) => {
        const client = clientOf(request, context.ip)
        const { user, tokens } = await accounts.register(body, context.locale, client)
        return { user: userView(user), ...tokens }
      },
      {
        access: 'public',
        limit: 'register',
        body: Registration,
        detail: operation({
          tag,
          summary: 'Register',
          success: { 201: Authenticated },
          errors: ['conflict'],
        }),
      },
    )
    .post(
      '/v1/auth/set-up',
      async ({ body, context, request }) => {
        const client = clientOf(request, context.ip)
        const { user, tokens } = await accounts.setUp(body, context.locale, client)
        return { user: userView(user), ...tokens }
      },
      {
        access: 'public',
        limit: 'register',
        body: SetUp,
        detail: operation({
          tag,
          summary: 'Make the first admin with the token that the first start printed',
          success: { 201: Authenticated },
          errors: ['conflict'],
        }),
      },
    )
    .post(
      '/v1/auth/login',
      async ({ body, context, request }) => {
        const { user, tokens } = await accounts.login(body, clientOf(request, context.ip))
        return { user: userView(user), ...tokens }
      },
      {
        access: 'public',
        limit: 'login',
        body: Credentials,
        detail: operation({
          tag,
          summary: 'Log in',
          success: { 200: Authenticated },
          errors: ['invalid_credentials'],
        }),
      },
    )
    .post(
      '/v1/auth/refresh',
      ({ body, context, request }) =>
        accounts.refresh(body.refresh_token, clientOf(request, context.ip)),
      {
        access: 'public',
        limit: 'default',
        body: RefreshTokenBody,
        detail: operation({
          tag,
          summary: 'Trade a refresh token for a new token set',
          success: { 200: TokenSet },
          errors: ['invalid_token'],
        }),
      },
    )
    .post(
      '/v1/auth/logout',
      async ({ body, context }) => {
        await accounts.logout(context.user.userId, body.refresh_token, context.ip)
      },
      {
        access: 'user',
        limit: 'default',
        body: RefreshTokenBody,
        detail: operation({ tag, summary: 'Log out', success: { 204: null } }),
      },
    )
    .get(
      '/v1/avatars/:hue/:file',
      ({ params, set }) => {
        const svg = avatarSvg(params.hue, params.file)
        if (svg === undefined) throw new AppError('not_found')
        set.headers['content-type'] = 'image/svg+xml'
        set.headers['content-security-policy'] = "default-src 'none'"
        set.headers['cache-control'] = `public, max-age=${yearSeconds}, immutable`
        return svg
      },
      {
        access: 'public',
        limit: 'none',
        detail: operation({
          tag,
          summary: 'The picture of a person who has none: initials on a colour (SVG)',
          success: { 200: null },
        }),
      },
    )
    .use(jwksRoute('/.well-known/jwks.json', keyring))
    .use(jwksRoute('/v1/.well-known/jwks.json', keyring))
}

function jwksRoute(path: string, keyring: Keyring) {
  return new Elysia().use(routeBase).get(
    path,
    ({ set }) => {
      set.headers['cache-control'] = `public, max-age=${jwksMaxAgeSeconds}`
      return keyring.jwks()
    },
    {
      access: 'public',
      limit: 'default',
      detail: operation({
        tag,
        summary: 'Public keys of the access tokens (JWKS)',
        success: { 200: Jwks },
      }),
    },
  )
}

function clientOf(request: Request, ip: string): Client {
  return { ip, userAgent: request.headers.get('user-agent') ?? undefined }
}
