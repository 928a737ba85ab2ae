import { Elysia } from 'elysia'
import { operations } from '../../../api/operation.ts'
import { recentlyConfirmed } from '../../../http/confirmation.ts'
import { ListOf, listAnswer, listQuery, listRange } from '../../../http/pagination.ts'
import { routeBase } from '../../../http/request-context.ts'
import { Export, type SendExport } from '../exports.ts'
import {
  PasswordBody,
  Profile,
  type ProfileParts,
  ProfileUpdate,
  profileView,
  Session,
  sessionView,
} from '../model.ts'
import type { AccountService } from '../service.ts'
import type { Sessions } from '../sign-in/sessions.ts'
import type { UserRow } from '../store.ts'

const pageSize = 20

const user = operations('Accounts', { access: 'user' })
const owner = operations('Accounts', {
  access: 'user',
  confirm: { ...recentlyConfirmed, unless: 'password' },
})

type Parts = {
  accounts: AccountService
  sessions: Sessions
  profileParts: ProfileParts
  sendExport: SendExport
}

/** The user's own account and its sessions. */
export function userRoutes({ accounts, sessions, profileParts, sendExport }: Parts) {
  const ownView = (row: UserRow) => profileView(row, profileParts)

  return new Elysia({ name: 'users' })
    .use(routeBase)
    .get(
      '/v1/users/me',
      ({ context }) => ownView(accounts.get(context.user.userId)),
      user('getProfile', 'Shows your own profile.', { 200: Profile }),
    )
    .patch(
      '/v1/users/me',
      async ({ body, context }) => {
        const changes = {
          displayName: body.display_name?.trim(),
          avatarUrl: body.avatar_url,
          locale: body.locale ?? undefined,
        }
        return ownView(await accounts.update(context.user.userId, changes))
      },
      {
        body: ProfileUpdate,
        ...user(
          'updateProfile',
          'Changes your own profile. Absent fields keep their value; `avatar_url: null` restores the generated picture.',
          { 200: Profile },
        ),
      },
    )
    .delete(
      '/v1/users/me',
      ({ body, context }) => accounts.remove(context.user, body.password, context.ip),
      {
        body: PasswordBody,
        ...owner(
          'deleteAccount',
          'Removes your own account. Messages stay, shown as from a deleted user.',
          { 204: null },
          { errors: ['invalid_credentials', 'login_throttled', 'quota_exceeded', 'last_admin'] },
        ),
      },
    )
    .get(
      '/v1/users/me/export',
      ({ context, set }) =>
        sendExport(accounts.get(context.user.userId), context.byUser, set.headers),
      user(
        'exportAccount',
        'Exports all data stored about you. One export at a time and 5 an hour.',
        {
          200: Export,
        },
        { errors: ['quota_exceeded'] },
      ),
    )
    .get(
      '/v1/auth/sessions',
      ({ query, context }) => {
        const { userId, sessionId } = context.user
        const range = listRange(query, pageSize)
        return listAnswer(range, sessions.list(userId, range), (row) => sessionView(row, sessionId))
      },
      user(
        'listSessions',
        'Lists your sessions, one for each logged-in device.',
        { 200: ListOf(Session) },
        { query: listQuery(pageSize) },
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
