import { type Static, Type } from '@sinclair/typebox'
import { asc, count, eq, gt } from 'drizzle-orm'
import { Elysia } from 'elysia'
import type { Core } from '../../core.ts'
import { cannedReplies } from '../../db/schema.ts'
import { operations } from '../../http/operation.ts'
import { envelope, ListOf, listQuery, listRange } from '../../http/pagination.ts'
import { routeBase } from '../../http/request-context.ts'
import { AppError, problem } from '../../lib/errors.ts'
import { Maybe, Refined } from '../../lib/fields.ts'
import { parseId } from '../../lib/ids.ts'
import { listById, type RowRange } from '../../lib/list-range.ts'
import { TicketText, trimmedText } from './model.ts'

const pageSize = 20
const admin = operations('Support', { access: 'admin' })

const fields = { title: trimmedText(200), body: TicketText }
const NewCannedReply = Type.Object(fields, { title: 'NewCannedReply', additionalProperties: true })
const CannedReplyUpdate = Refined(
  Type.Object(
    { title: Maybe(fields.title), body: Maybe(fields.body) },
    { title: 'CannedReplyUpdate', additionalProperties: true },
  ),
  ({ title, body }) =>
    (title ?? body ?? undefined) === undefined ? { body: problem('nothing_to_change') } : {},
)
type CannedReplyUpdate = Static<typeof CannedReplyUpdate>
const CannedReply = Type.Object(
  { id: Type.String(), title: Type.String(), body: Type.String() },
  { title: 'CannedReply' },
)

/** Replies that admins keep ready: rows without rules, which are answered as they are stored. */
export function cannedReplyRoutes({ orm, write, newId }: Core) {
  const { id } = cannedReplies

  const list = ({ limit, offset, before: after }: RowRange) =>
    orm
      .select()
      .from(cannedReplies)
      .where(after === undefined ? undefined : gt(id, after))
      .orderBy(asc(id))
      .limit(limit)
      .offset(offset)
      .all()
  const countAll = () => orm.select({ n: count() }).from(cannedReplies).get()?.n ?? 0

  return new Elysia({ name: 'canned-replies' })
    .use(routeBase)
    .get(
      '/v1/admin/support/canned-replies',
      ({ query }) => {
        const range = listRange(query, pageSize)
        const listing = listById(range, { name: 'canned_replies', list, count: countAll })
        return envelope(range, listing, (row) => row)
      },
      admin(
        'List canned replies, oldest first',
        { 200: ListOf(CannedReply) },
        { query: listQuery(pageSize) },
      ),
    )
    .post(
      '/v1/admin/support/canned-replies',
      ({ body }) => {
        const row = { id: newId(), title: body.title.trim(), body: body.body.trim() }
        return write(() => orm.insert(cannedReplies).values(row).returning().get())
      },
      { body: NewCannedReply, ...admin('Keep a reply ready', { 201: CannedReply }) },
    )
    .patch(
      '/v1/admin/support/canned-replies/:id',
      ({ params, body }) =>
        write(() => {
          const changed = orm
            .update(cannedReplies)
            .set(trimmed(body))
            .where(eq(id, knownId(params.id)))
            .returning()
            .get()
          if (!changed) throw new AppError('not_found')
          return changed
        }),
      { body: CannedReplyUpdate, ...admin('Change a canned reply', { 200: CannedReply }) },
    )
    .delete(
      '/v1/admin/support/canned-replies/:id',
      async ({ params }) => {
        const one = eq(id, knownId(params.id))
        const deleted = await write(() => orm.delete(cannedReplies).where(one).returning().get())
        if (!deleted) throw new AppError('not_found')
      },
      admin('Remove a canned reply', { 204: null }),
    )
}

/** What is absent stays. */
function trimmed({ title, body }: CannedReplyUpdate) {
  return {
    ...(typeof title === 'string' && { title: title.trim() }),
    ...(typeof body === 'string' && { body: body.trim() }),
  }
}

function knownId(text: string): string {
  const id = parseId(text)
  if (id === undefined) throw new AppError('not_found')
  return id
}
