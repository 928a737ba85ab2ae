import { isDeepStrictEqual } from 'node:util'
import { Type } from '@sinclair/typebox'
import { eq } from 'drizzle-orm'
import { Elysia } from 'elysia'
import {
  Body,
  Change,
  described,
  LocaleField,
  Maybe,
  Nullable,
  Sample,
  Schema,
  TrimmedText,
} from '../../api/fields.ts'
import { operations } from '../../api/operation.ts'
import { samples } from '../../api/samples.ts'
import type { Core } from '../../core.ts'
import type { AuditAction, By } from '../../db/audit-trail.ts'
import { once } from '../../db/once.ts'
import { cannedReplies } from '../../db/schema.ts'
import { listById } from '../../db/statements.ts'
import { idempotencyKey, idempotent, markReplayed } from '../../http/idempotency.ts'
import { pageOf } from '../../http/pagination.ts'
import { routeBase } from '../../http/request-context.ts'
import { AppError } from '../../lib/errors.ts'
import { parseId } from '../../lib/ids.ts'
import type { ListRange } from '../../lib/list-range.ts'
import { ReplyText } from './model.ts'

const admin = operations('Support', { access: 'admin' })

const fields = {
  title: TrimmedText(200, 'The name in the list of replies.', 'Payout sent'),
  body: ReplyText,
  locale: Type.Optional(
    described(Nullable(LocaleField), 'The language of the reply; null for any, as without it.'),
  ),
}
const NewCannedReply = Body('NewCannedReply', fields)
const CannedReplyUpdate = Change(
  Body('CannedReplyUpdate', {
    ...fields,
    title: Maybe(fields.title),
    body: Maybe(fields.body),
  }),
  ['locale'],
)
const CannedReply = Schema('CannedReply', {
  id: Sample(samples.recordId),
  title: Sample('Payout sent'),
  body: Sample(samples.ticket.answer),
  locale: described(Nullable(LocaleField), 'The language of the reply; null for any.'),
})

/** Prepared replies of the desk. They have no rules, so the routes read and write the rows without a service. */
export function cannedReplyRoutes(core: Core) {
  const { orm, write, newId, audit } = core
  const { id } = cannedReplies
  const isNamed = (text: string) => eq(id, parseId(text) ?? '')

  type Action = Extract<AuditAction, `canned_reply_${string}`>
  /** Records the action in the audit log.
   *  @throws not_found when there is no row */
  function recorded<Row extends { id: string }>(row: Row | undefined, action: Action, by: By): Row {
    if (!row) throw new AppError('not_found')
    audit.record({ action, ...by, target: { type: 'canned_reply', id: row.id } })
    return row
  }

  const find = (idText: string) => orm.select().from(cannedReplies).where(isNamed(idText)).get()

  const list = (range: ListRange) =>
    listById<typeof cannedReplies.$inferSelect>(orm, range, { id, order: 'oldest' })

  return new Elysia({ name: 'canned-replies' })
    .use(routeBase)
    .get(
      '/v1/admin/support/canned-replies',
      ({ query }) => pageOf(query, list, (row) => row),
      admin.list('adminListCannedReplies', 'Lists canned replies, oldest first.', CannedReply),
    )
    .post(
      '/v1/admin/support/canned-replies',
      async ({ body, request, set, context: { by } }) => {
        const { title, locale = null } = body
        const content = { title: title.trim(), body: body.body.trim(), locale }
        const key = idempotencyKey(request.headers)
        const make = () => {
          const made = orm.insert(cannedReplies).values({ id: newId(), ...content })
          return recorded(made.returning().get(), 'canned_reply_created', by)
        }
        const { row, replayed } = await write(() =>
          once(core, { by, kind: 'canned_reply', key, content }, { find, make }),
        )
        markReplayed(set.headers, replayed)
        return row
      },
      admin(
        'adminCreateCannedReply',
        'Creates a canned reply. A repeated call with the same `X-Idempotency-Key` within a day creates nothing and returns the first one.',
        {
          201: CannedReply,
          body: NewCannedReply,
          errors: ['idempotency_mismatch'],
          ...idempotent,
        },
      ),
    )
    .patch(
      '/v1/admin/support/canned-replies/:id',
      ({ params, body, context: { by } }) =>
        write(() => {
          const named = isNamed(params.id)
          const before = find(params.id)
          const changed = orm
            .update(cannedReplies)
            .set({ title: body.title?.trim(), body: body.body?.trim(), locale: body.locale })
            .where(named)
            .returning()
            .get()
          if (changed && isDeepStrictEqual(before, changed)) return changed
          return recorded(changed, 'canned_reply_changed', by)
        }),
      admin('adminUpdateCannedReply', 'Changes a canned reply.', {
        200: CannedReply,
        body: CannedReplyUpdate,
      }),
    )
    .delete(
      '/v1/admin/support/canned-replies/:id',
      async ({ params, context: { by } }) => {
        await write(() => {
          const deleted = orm.delete(cannedReplies).where(isNamed(params.id)).returning().get()
          recorded(deleted, 'canned_reply_deleted', by)
        })
      },
      admin('adminDeleteCannedReply', 'Removes a canned reply.', { 204: null }),
    )
}
