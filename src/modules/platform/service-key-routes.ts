import { Elysia } from 'elysia'
import { operation } from '../../http/operation.ts'
import { envelope, ListOf, listQuery, listRange } from '../../http/pagination.ts'
import { routeBase } from '../../http/request-context.ts'
import { CreatedServiceKey, NewServiceKey, ServiceKey, serviceKeyView } from './model.ts'
import type { ServiceKeys } from './service-keys.ts'

const tag = 'Administration'
const pageSize = 20

/** How admins manage the keys of the platform's other parts (decisions 9). */
export function serviceKeyRoutes({ serviceKeys }: { serviceKeys: ServiceKeys }) {
  return new Elysia({ name: 'service-keys' })
    .use(routeBase)
    .get(
      '/v1/admin/service-keys',
      ({ query }) => {
        const range = listRange(query, pageSize)
        return envelope(range, serviceKeys.list(range), serviceKeyView)
      },
      {
        access: 'admin',
        limit: 'default',
        detail: operation({
          tag,
          query: listQuery(pageSize),
          summary: 'List service keys, revoked ones too, newest first',
          success: { 200: ListOf(ServiceKey) },
        }),
      },
    )
    .post(
      '/v1/admin/service-keys',
      async ({ body, context }) => {
        const name = body.name.trim()
        const made = await serviceKeys.create({ ...body, name }, context.by)
        return { ...serviceKeyView(made.row), key: made.key }
      },
      {
        access: 'admin',
        limit: 'default',
        body: NewServiceKey,
        detail: operation({
          tag,
          summary: 'Make a service key, which is shown this once',
          success: { 201: CreatedServiceKey },
        }),
      },
    )
    .delete(
      '/v1/admin/service-keys/:id',
      async ({ params, context }) => {
        await serviceKeys.revoke(params.id, context.by)
      },
      {
        access: 'admin',
        limit: 'default',
        detail: operation({ tag, summary: 'Revoke a service key', success: { 204: null } }),
      },
    )
}
