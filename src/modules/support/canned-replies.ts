import { isDeepStrictEqual } from 'node:util'
import { Type } from '@sinclair/typebox'
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
import { listById, rowsOf } from '../../db/statements.ts'
import { idempotencyKey, idempotent, markReplayed } from '../../http/idempotency.ts'
import { pageOf } from '../../http/pagination.ts'
import type { RouteApp } from '../../http/request-context.ts'
import { getById } from '../../lib/ids.ts'
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
export function cannedReplyRoutes(app: RouteApp, core: Core) {
  const { orm, write, newId, audit } = core
  const rows = rowsOf(orm, cannedReplies)
  type Row = typeof cannedReplies.$inferSelect

  type Action = Extract<AuditAction, `canned_reply_${string}`>
  function recorded(row: Row, action: Action, by: By): Row {
    audit.record({ action, ...by, target: { type: 'canned_reply', id: row.id } })
    return row
  }

  const list = (range: ListRange) =>
    listById<Row>(orm, range, { id: cannedReplies.id, order: 'oldest' })

  app
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
        const make = () =>
          recorded(rows.insert({ id: newId(), ...content }), 'canned_reply_created', by)
        const { row, replayed } = await write(() =>
          once(core, { by, kind: 'canned_reply', key, content }, { find: rows.find, make }),
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
          const before = getById(params.id, rows.find)
          const changed = rows.update(before.id, {
            title: body.title?.trim(),
            body: body.body?.trim(),
            locale: body.locale,
          })
          if (isDeepStrictEqual(before, changed)) return changed
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
          recorded(getById(params.id, rows.delete), 'canned_reply_deleted', by)
        })
      },
      admin('adminDeleteCannedReply', 'Removes a canned reply.', { 204: null }),
    )
}
