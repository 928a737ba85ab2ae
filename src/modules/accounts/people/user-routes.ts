import { Elysia } from 'elysia'
import { operations } from '../../../api/operation.ts'
import { recentlyConfirmed } from '../../../http/confirmation.ts'
import { pageOf } from '../../../http/pagination.ts'
import { routeBase } from '../../../http/request-context.ts'
import { Export, type SendExport } from '../exports.ts'
import {
  NewQuietHours,
  PasswordBody,
  Profile,
  ProfileUpdate,
  type ProfileView,
  Session,
  sessionView,
} from '../model.ts'
import type { AccountService } from '../service.ts'
import type { SessionRow } from '../sign-in/session-store.ts'
import type { Sessions } from '../sign-in/sessions.ts'

const user = operations('Accounts', { access: 'user' })
const owner = operations('Accounts', {
  access: 'user',
  confirm: { ...recentlyConfirmed, unless: 'password' },
})

type Parts = {
  accounts: AccountService
  sessions: Sessions
  profileView: ProfileView
  sendExport: SendExport
}

export function userRoutes({ accounts, sessions, profileView, sendExport }: Parts) {
  return new Elysia({ name: 'users' })
    .use(routeBase)
    .get(
      '/v1/users/me',
      ({ context }) => profileView(accounts.get(context.user.userId)),
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
        return profileView(await accounts.update(context.user, changes))
      },
      user(
        'updateProfile',
        'Changes your own profile. Absent fields keep their value; `avatar_url: null` restores the generated picture.',
        { 200: Profile },
        { body: ProfileUpdate },
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
        { 200: Profile },
        { body: NewQuietHours },
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
      owner(
        'deleteAccount',
        'Removes your own account. Messages stay, shown as from a deleted user.',
        { 204: null },
        { body: PasswordBody, errors: ['last_admin'] },
      ),
    )
    .get(
      '/v1/users/me/export',
      ({ context }) => sendExport(accounts.get(context.user.userId), context),
      user(
        'exportAccount',
        'Exports all data stored about you. One export at a time and 5 an hour.',
        { 200: Export },
        { errors: ['quota_exceeded'] },
      ),
    )
    .get(
      '/v1/auth/sessions',
      ({ query, context }) => {
        const { userId, sessionId } = context.user
        const view = (row: SessionRow) => sessionView(row, sessionId)
        return pageOf(query, (range) => sessions.list(userId, range), view)
      },
      user.list('listSessions', 'Lists your sessions, one for each logged-in device.', Session),
    )
    .delete(
      '/v1/auth/sessions/:id',
      ({ params, context }) => sessions.end(context.user.userId, params.id, context.by),
      user('deleteSession', 'Logs a device out. Its access tokens and sockets end with it.', {
        204: null,
      }),
    )
}
