import { Elysia } from 'elysia'
import { Email } from '../../../api/fields.ts'
import { operations } from '../../../api/operation.ts'
import { ListOf, listAnswer, listQuery, listRange } from '../../../http/pagination.ts'
import { routeBase } from '../../../http/request-context.ts'
import {
  Authenticated,
  ExternalId,
  ManagedUser,
  managedUserView,
  NewPerson,
  PersonUpdate,
  type ProfileParts,
} from '../model.ts'
import { clientOf } from '../sign-in/sessions.ts'
import type { UserRow } from '../store.ts'
import type { FeedUsers } from './feed-users.ts'

const pageSize = 20

const service = operations('Feed', { access: 'service', scope: 'users' })
const sessionFeed = operations('Feed', { access: 'service', scope: 'sessions' })
type Query = Record<string, string | undefined>
// A lookup finds at most one user, so there is no cursor form.
const { page, per_page } = listQuery(pageSize)
const lookup = { email: Email(), external_id: ExternalId }

type Parts = { feedUsers: FeedUsers; profileParts: ProfileParts }

/** Users, managed by the platform's other services. */
export function feedUserRoutes({ feedUsers, profileParts }: Parts) {
  const view = (row: UserRow) => managedUserView(row, profileParts)

  return new Elysia({ name: 'feed-users' })
    .use(routeBase)
    .get(
      '/v1/service/users',
      ({ query }) => {
        const { page, per_page, email, external_id: externalId }: Query = query
        const range = listRange({ ...(page && { page }), ...(per_page && { per_page }) }, pageSize)
        return listAnswer(range, feedUsers.lookUp({ email, externalId }, range), view)
      },
      service(
        'serviceListUsers',
        'Finds a person by e-mail address, external id, or both.',
        { 200: ListOf(ManagedUser) },
        { query: { page, per_page, ...lookup } },
      ),
    )
    .post(
      '/v1/service/users',
      async ({ body, context }) => view(await feedUsers.create(body, context.by)),
      {
        body: NewPerson,
        ...service(
          'serviceCreateUser',
          'Creates a person. A repeated call with the same `external_id` returns the person created first. An account registered with the same address but never verified is removed, because its owner has not proved the address. The new account has no password until its owner sets one by a reset link. Services cannot create admins.',
          { 201: ManagedUser },
          {
            errors: ['email_taken', 'role_required'],
            example: { role: 'host' },
          },
        ),
      },
    )
    .get(
      '/v1/service/users/:id',
      ({ params }) => view(feedUsers.get(params.id)),
      service('serviceGetUser', 'Shows a person.', { 200: ManagedUser }),
    )
    .patch(
      '/v1/service/users/:id',
      async ({ params, body, context }) => {
        const changes = {
          role: body.role ?? undefined,
          disabled: body.disabled ?? undefined,
          emailVerified: body.email_verified ?? undefined,
          displayName: body.display_name?.trim(),
          avatarUrl: body.avatar_url,
          externalId: body.external_id ?? undefined,
        }
        return view(await feedUsers.update(params.id, changes, context.by))
      },
      {
        body: PersonUpdate,
        ...service(
          'serviceUpdateUser',
          'Changes a person’s role, status or profile. Absent fields keep their value. Setting `external_id` or `email_verified: true` on an account that was registered but never verified removes everything the registrant has set: password, sessions, second factor, devices, links, name and picture. Services cannot make anybody an admin.',
          { 200: ManagedUser },
          {
            errors: ['last_admin', 'role_required', 'external_id_taken'],
            example: { role: 'host' },
          },
        ),
      },
    )
    .post(
      '/v1/service/users/:id/sessions',
      ({ params, context, request }) =>
        feedUsers.openSession(params.id, clientOf(request, context.ip), context.by),
      sessionFeed(
        'serviceCreateSession',
        'Creates a session for a person whom the platform has authenticated. Works for everybody except admins, and requires no second factor. The scope `all` does not include `sessions`.',
        { 201: Authenticated },
        {
          errors: ['role_required', 'recipient_gone'],
        },
      ),
    )
}
