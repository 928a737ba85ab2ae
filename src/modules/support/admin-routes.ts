import { Elysia } from 'elysia'
import { idempotencyKey, idempotent, markReplayed } from '../../http/idempotency.ts'
import { operation } from '../../http/operation.ts'
import { envelope, ListOf, listQuery, listRange } from '../../http/pagination.ts'
import { routeBase } from '../../http/request-context.ts'
import { parseId } from '../../lib/ids.ts'
import type { CannedReplies } from './canned-replies.ts'
import type { DeskList } from './desk-list.ts'
import { deskQuery, deskQuerySchema } from './desk-query.ts'
import type { DeskService } from './desk-service.ts'
import {
  CannedReply,
  CannedReplyUpdate,
  cannedReplyView,
  DeskTicket,
  DeskTicketListItem,
  deskTicketListItemView,
  deskTicketView,
  NewCannedReply,
  NewTicketNote,
  NewTicketReply,
  TicketMessage,
  TicketNote,
  TicketUpdate,
  ticketMessageView,
  ticketNoteView,
} from './model.ts'

const tag = 'Support'
const pageSize = 20
const admin = { access: 'admin', limit: 'default' } as const

type DeskRoutesOptions = { desk: DeskService; deskList: DeskList; cannedReplies: CannedReplies }

/** The support desk (spec 4.4, decisions 7). */
export function deskRoutes({ desk, deskList, cannedReplies }: DeskRoutesOptions) {
  return new Elysia({ name: 'support-desk' })
    .use(routeBase)
    .use(cannedReplyRoutes(cannedReplies))
    .get(
      '/v1/admin/support/tickets',
      ({ query, context }) => {
        const range = listRange(query, pageSize)
        const { filter, q } = deskQuery(query, context.user.userId)
        return envelope(range, deskList.list(filter, q, range), deskTicketListItemView)
      },
      {
        ...admin,
        detail: operation({
          tag,
          query: { ...listQuery(pageSize), ...deskQuerySchema },
          summary: 'List all tickets: who waits longest for an answer, then what changed last',
          success: { 200: ListOf(DeskTicketListItem) },
        }),
      },
    )
    .get('/v1/admin/support/tickets/:id', ({ params }) => deskTicketView(desk.get(params.id)), {
      ...admin,
      detail: operation({
        tag,
        summary: 'Show a ticket with its messages, internal notes and history',
        success: { 200: DeskTicket },
      }),
    })
    .patch(
      '/v1/admin/support/tickets/:id',
      async ({ params, body, context }) => {
        const { userId } = context.user
        return deskTicketView(await desk.update(userId, params.id, ...wantedIn(body)))
      },
      {
        ...admin,
        body: TicketUpdate,
        detail: operation({
          tag,
          summary: 'Change status, priority or who works on it',
          success: { 200: DeskTicket },
        }),
      },
    )
    .post(
      '/v1/admin/support/tickets/:id/messages',
      async ({ params, body, context, request, set }) => {
        const sent = await desk.reply(context.user.userId, params.id, {
          body: body.body.trim(),
          clientId: body.client_id ?? idempotencyKey(request.headers) ?? null,
          status: body.status ?? undefined,
          lastMessageId: body.last_message_id ?? undefined,
        })
        markReplayed(set.headers, sent.replayed)
        return ticketMessageView(sent.value)
      },
      {
        ...admin,
        body: NewTicketReply,
        detail: operation({
          tag,
          summary: 'Answer a ticket; its owner is notified',
          success: { 201: TicketMessage },
          errors: ['conflict'],
          ...idempotent,
        }),
      },
    )
    .post(
      '/v1/admin/support/tickets/:id/notes',
      async ({ params, body, context }) => {
        const note = await desk.addNote(context.user.userId, params.id, body.body.trim())
        return ticketNoteView(note)
      },
      {
        ...admin,
        body: NewTicketNote,
        detail: operation({
          tag,
          summary: 'Leave a note that only admins see',
          success: { 201: TicketNote },
        }),
      },
    )
}

function cannedReplyRoutes(cannedReplies: CannedReplies) {
  return new Elysia({ name: 'canned-replies' })
    .use(routeBase)
    .get(
      '/v1/admin/support/canned-replies',
      ({ query }) => {
        const range = listRange(query, pageSize)
        return envelope(range, cannedReplies.list(range), cannedReplyView)
      },
      {
        ...admin,
        detail: operation({
          tag,
          query: listQuery(pageSize),
          summary: 'List canned replies, oldest first',
          success: { 200: ListOf(CannedReply) },
        }),
      },
    )
    .post(
      '/v1/admin/support/canned-replies',
      async ({ body }) => {
        const created = await cannedReplies.create(body)
        return cannedReplyView(created)
      },
      {
        ...admin,
        body: NewCannedReply,
        detail: operation({
          tag,
          summary: 'Keep an answer ready',
          success: { 201: CannedReply },
        }),
      },
    )
    .patch(
      '/v1/admin/support/canned-replies/:id',
      async ({ params, body }) => cannedReplyView(await cannedReplies.update(params.id, body)),
      {
        ...admin,
        body: CannedReplyUpdate,
        detail: operation({
          tag,
          summary: 'Change a canned reply',
          success: { 200: CannedReply },
        }),
      },
    )
    .delete(
      '/v1/admin/support/canned-replies/:id',
      async ({ params }) => {
        await cannedReplies.delete(params.id)
      },
      {
        ...admin,
        detail: operation({ tag, summary: 'Remove a canned reply', success: { 204: null } }),
      },
    )
}

/** What a body wants, and its field that names the assignee. */
function wantedIn({ status, priority, assignee_id, assigned_to }: TicketUpdate) {
  const blamed = assignee_id === undefined ? 'assigned_to' : 'assignee_id'
  const assignee = assignee_id === undefined ? assigned_to : assignee_id
  const assigneeId = typeof assignee === 'string' ? (parseId(assignee) ?? assignee) : assignee
  const wanted = { status: status ?? undefined, priority: priority ?? undefined, assigneeId }
  return [wanted, blamed] as const
}
