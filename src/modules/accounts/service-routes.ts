import { Elysia } from 'elysia'
import { operation } from '../../http/operation.ts'
import { routeBase } from '../../http/request-context.ts'
import { type AvatarUrl, ManagedUser, managedUserView, PersonUpdate } from './model.ts'
import type { People } from './people.ts'
import type { UserRow } from './store.ts'

const tag = 'Feed'

type ServiceRoutesOptions = { people: People; avatarUrl: AvatarUrl }

/** What the rest of the platform reads and changes of accounts (decisions 9). */
export function accountServiceRoutes({ people, avatarUrl }: ServiceRoutesOptions) {
  const view = (user: UserRow) => managedUserView(user, avatarUrl)

  return new Elysia({ name: 'account-service' })
    .use(routeBase)
    .get('/v1/service/users/:id', ({ params }) => view(people.get(params.id)), {
      access: 'service',
      scope: 'users',
      limit: 'default',
      detail: operation({ tag, summary: 'Show a person', success: { 200: ManagedUser } }),
    })
    .patch(
      '/v1/service/users/:id',
      async ({ params, body, context }) => {
        const changes = {
          role: body.role,
          disabled: body.disabled,
          emailVerified: body.email_verified,
          displayName: body.display_name?.trim(),
          avatarUrl: body.avatar_url,
        }
        return view(await people.update(people.byId(params.id), changes, context.by))
      },
      {
        access: 'service',
        scope: 'users',
        limit: 'default',
        body: PersonUpdate,
        detail: operation({
          tag,
          summary: 'Change what the platform decides about a person',
          success: { 200: ManagedUser },
          errors: ['conflict'],
        }),
      },
    )
}
