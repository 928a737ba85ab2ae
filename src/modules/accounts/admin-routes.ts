import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { operation } from '../../http/operation.ts'
import { envelope, ListOf, listQuery, listRange } from '../../http/pagination.ts'
import { routeBase } from '../../http/request-context.ts'
import { AccessUpdate, type AvatarUrl, ManagedUser, managedUserView } from './model.ts'
import type { People } from './people.ts'
import type { ProfileService } from './profile-service.ts'
import type { UserRow } from './store.ts'

const tag = 'Administration'
const pageSize = 20

type AdminRoutesOptions = { people: People; profiles: ProfileService; avatarUrl: AvatarUrl }

/** What admins do to accounts (decisions 9). */
export function accountAdminRoutes({ people, profiles, avatarUrl }: AdminRoutesOptions) {
  const view = (user: UserRow) => managedUserView(user, avatarUrl)

  return new Elysia({ name: 'account-admin' })
    .use(routeBase)
    .get(
      '/v1/admin/users',
      ({ query }) => {
        const range = listRange(query, pageSize)
        const { q }: Record<string, unknown> = query
        return envelope(range, people.search(typeof q === 'string' ? q : undefined, range), view)
      },
      {
        access: 'admin',
        limit: 'default',
        detail: operation({
          tag,
          query: {
            ...listQuery(pageSize),
            q: Type.String({ description: 'An id, or how an e-mail address or a name begins.' }),
          },
          summary: 'Find people',
          success: { 200: ListOf(ManagedUser) },
        }),
      },
    )
    .get('/v1/admin/users/:id', ({ params }) => view(people.get(params.id)), {
      access: 'admin',
      limit: 'default',
      detail: operation({ tag, summary: 'Show a person', success: { 200: ManagedUser } }),
    })
    .patch(
      '/v1/admin/users/:id',
      async ({ params, body, context }) => {
        const { role, disabled } = body
        const find = people.byId(params.id)
        return view(await people.update(find, { role, disabled }, context.by))
      },
      {
        access: 'admin',
        limit: 'default',
        body: AccessUpdate,
        detail: operation({
          tag,
          summary: 'Give a role, disable or enable; the last admin stays one',
          success: { 200: ManagedUser },
          errors: ['conflict'],
        }),
      },
    )
    .delete(
      '/v1/admin/users/:id/sessions',
      async ({ params, context }) => {
        const { userId, sessionId } = context.user
        const target = people.get(params.id)
        await profiles.endAllSessions(target.id, { userId, sessionId, ip: context.ip })
      },
      {
        access: 'admin',
        limit: 'default',
        detail: operation({
          tag,
          summary: 'Log a person out on every device',
          success: { 204: null },
        }),
      },
    )
}
