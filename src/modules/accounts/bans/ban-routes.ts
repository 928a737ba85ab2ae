import { Elysia } from 'elysia'
import { Text } from '../../../api/fields.ts'
import { operations } from '../../../api/operation.ts'
import { pageOf } from '../../../http/pagination.ts'
import { routeBase } from '../../../http/request-context.ts'
import { invalidField } from '../../../lib/errors.ts'
import type { BanKind } from '../../../lib/vocabulary.ts'
import { Ban, type Bans, banKind, banValue, banView, NewBan } from './bans.ts'

const admin = operations('Administration', { access: 'admin' })

export function banRoutes(bans: Bans) {
  return new Elysia({ name: 'bans' })
    .use(routeBase)
    .get(
      '/v1/admin/bans',
      ({ query }) => {
        const wanted = query['kind'] as BanKind | undefined // the pipeline has checked it
        if (query['value'] !== undefined && !wanted) throw invalidField('kind', 'required')
        return pageOf(query, (range) => bans.list(wanted, query['value'], range), banView)
      },
      admin.list('adminListBans', 'Lists the bans, newest first.', Ban, {
        query: {
          kind: banKind,
          value: Text({ max: 254 }, { ...banValue, description: 'The value, with its `kind`.' }),
        },
      }),
    )
    .post(
      '/v1/admin/bans',
      async ({ body, context }) => banView(await bans.add(body, context.by)),
      admin(
        'adminCreateBan',
        'Bans a mail domain, an address or a network: registration and login, also by the platform, are refused with the reason `banned`, and no session of theirs can be refreshed. Those of a network end at once. A repeated ban changes reason and end.',
        { 201: Ban },
        { body: NewBan },
      ),
    )
    .delete(
      '/v1/admin/bans/:id',
      ({ params, context }) => bans.remove(params.id, context.by),
      admin('adminDeleteBan', 'Removes a ban.', { 204: null }),
    )
}
