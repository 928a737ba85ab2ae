import { Elysia } from 'elysia'
import { Email } from '../../../api/fields.ts'
import { operations } from '../../../api/operation.ts'
import { ListOf, listQuery, pageOf } from '../../../http/pagination.ts'
import { routeBase } from '../../../http/request-context.ts'
import {
  Authenticated,
  ExternalId,
  ManagedUser,
  type ManagedView,
  NewPerson,
  PersonUpdate,
} from '../model.ts'
import { clientOf } from '../sign-in/sessions.ts'
import type { UserAdmin } from './user-admin.ts'

const service = operations('Feed', { access: 'service', scope: 'users' })
const sessionFeed = operations('Feed', { access: 'service', scope: 'sessions' })
type Query = Record<string, string | undefined>
// A lookup finds at most one user, so there is no cursor form.
const { page, per_page } = listQuery()
const lookup = { email: Email(), external_id: ExternalId }

type Parts = { userAdmin: UserAdmin; managedView: ManagedView }

export function feedUserRoutes({ userAdmin, managedView: view }: Parts) {
  return new Elysia({ name: 'feed-users' })
    .use(routeBase)
    .get(
      '/v1/service/users',
      ({ query }) => {
        const { page, per_page, email, external_id: externalId }: Query = query
        const numbered = { ...(page && { page }), ...(per_page && { per_page }) }
        return pageOf(numbered, (range) => userAdmin.lookUp({ email, externalId }, range), view)
      },
      service(
        'serviceListUsers',
        'Finds a person by e-mail address, external id, or both; one of them is required.',
        { 200: ListOf(ManagedUser) },
        { query: { page, per_page, ...lookup } },
      ),
    )
    .post(
      '/v1/service/users',
      async ({ body, context, set }) => {
        const { user, isNew } = await userAdmin.upsert(body, context.by)
        set.status = isNew ? 201 : 200
        return view(user)
      },
      service(
        'serviceCreateUser',
        'Creates a person, or brings the one with the same `external_id` up to date (200): absent fields keep their value, and an address without `email_verified: true` becomes unverified when it changes and gets a verification mail. An account registered with the same address but never verified is removed, because its owner has not proved the address. The new account has no password until its owner sets one by a reset link. Services cannot create admins.',
        { 200: ManagedUser, 201: ManagedUser },
        { body: NewPerson, errors: ['email_taken', 'admin_protected'], example: { role: 'host' } },
      ),
    )
    .get(
      '/v1/service/users/:id',
      ({ params, context }) => view(userAdmin.get(params.id, context.by)),
      service('serviceGetUser', 'Shows a person.', { 200: ManagedUser }),
    )
    .patch(
      '/v1/service/users/:id',
      async ({ params, body, context }) =>
        view(await userAdmin.update(params.id, body, context.by)),
      service(
        'serviceUpdateUser',
        'Changes a person’s role, status, address or profile. Absent fields keep their value. A new `email` holds at once. Without `email_verified: true` it is unverified and gets a verification mail; sessions stay. Links mailed before stop working. Setting `external_id` or `email_verified: true` on an account that was registered but never verified removes everything the registrant has set: password, sessions, second factor, devices, links, name and picture. Services cannot make anybody an admin, nor change the role or the address of one, nor disable one.',
        { 200: ManagedUser },
        {
          body: PersonUpdate,
          errors: ['last_admin', 'admin_protected', 'email_taken', 'external_id_taken'],
          example: { role: 'host' },
        },
      ),
    )
    .delete(
      '/v1/service/users/:id',
      ({ params, context }) => userAdmin.remove(params.id, context.by),
      service(
        'serviceDeleteUser',
        'Removes a person, as they could themselves. Messages stay, shown as from a deleted user. Services cannot remove admins.',
        { 204: null },
        { errors: ['admin_protected'] },
      ),
    )
    .delete(
      '/v1/service/users/:id/sessions',
      ({ params, context }) => userAdmin.endSessions(params.id, context.by),
      service(
        'serviceDeleteSessions',
        'Logs a person out on every device; no admin.',
        { 204: null },
        { errors: ['admin_protected'] },
      ),
    )
    .post(
      '/v1/service/users/:id/sessions',
      ({ params, context, request }) =>
        userAdmin.openSession(params.id, clientOf(request, context.ip), context.by),
      sessionFeed(
        'serviceCreateSession',
        'Creates a session for a person whom the platform has authenticated. Works for everybody except admins, and requires no second factor. The scope `all` does not include `sessions`.',
        { 201: Authenticated },
        { errors: ['admin_protected', 'recipient_gone', 'banned'] },
      ),
    )
}
