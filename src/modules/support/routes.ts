import { Elysia } from 'elysia'
import { idempotencyKey, idempotent, markReplayed } from '../../http/idempotency.ts'
import { operation } from '../../http/operation.ts'
import { envelope, ListOf, listQuery, listRange } from '../../http/pagination.ts'
import { routeBase } from '../../http/request-context.ts'
import {
  NewTicket,
  NewTicketMessage,
  Ticket,
  TicketListItem,
  TicketMessage,
  ticketListItemView,
  ticketMessageView,
  ticketView,
} from './model.ts'
import type { OwnerService } from './owner-service.ts'

const tag = 'Support'
const pageSize = 20

/** A person's own tickets (spec 4.3). */
export function supportRoutes({ tickets }: { tickets: OwnerService }) {
  return new Elysia({ name: 'support' })
    .use(routeBase)
    .post(
      '/v1/support/tickets',
      async ({ body, context, request, set }) => {
        const opened = await tickets.open(context.user.userId, {
          subject: body.subject.trim(),
          body: body.body.trim(),
          category: body.category ?? 'other',
          priority: body.priority ?? 'normal',
          clientId: body.client_id ?? idempotencyKey(request.headers) ?? null,
        })
        markReplayed(set.headers, opened.replayed)
        return ticketView(opened.value)
      },
      {
        access: 'user',
        limit: 'default',
        body: NewTicket,
        detail: operation({
          tag,
          summary: 'Open a ticket',
          success: { 201: Ticket },
          errors: ['conflict'],
          ...idempotent,
        }),
      },
    )
    .get(
      '/v1/support/tickets',
      ({ query, context }) => {
        const range = listRange(query, pageSize)
        const listing = tickets.list(context.user.userId, range)
        return envelope(range, listing, ticketListItemView)
      },
      {
        access: 'user',
        limit: 'default',
        detail: operation({
          tag,
          query: listQuery(pageSize),
          summary: 'List the own tickets, newest first',
          success: { 200: ListOf(TicketListItem) },
        }),
      },
    )
    .get(
      '/v1/support/tickets/:id',
      ({ params, context }) => ticketView(tickets.get(context.user.userId, params.id)),
      {
        access: 'user',
        limit: 'default',
        detail: operation({
          tag,
          summary: 'Show an own ticket with its messages',
          success: { 200: Ticket },
          errors: ['forbidden', 'not_found'],
        }),
      },
    )
    .post(
      '/v1/support/tickets/:id/messages',
      async ({ params, body, context, request, set }) => {
        const sent = await tickets.reply(context.user.userId, params.id, {
          body: body.body.trim(),
          clientId: body.client_id ?? idempotencyKey(request.headers) ?? null,
        })
        markReplayed(set.headers, sent.replayed)
        return ticketMessageView(sent.value)
      },
      {
        access: 'user',
        limit: 'default',
        body: NewTicketMessage,
        detail: operation({
          tag,
          summary: 'Write into an own ticket, which opens it again when it was settled',
          success: { 201: TicketMessage },
          errors: ['forbidden', 'not_found', 'conflict'],
          ...idempotent,
        }),
      },
    )
    .post(
      '/v1/support/tickets/:id/close',
      async ({ params, context }) =>
        ticketView(await tickets.close(context.user.userId, params.id)),
      {
        access: 'user',
        limit: 'default',
        detail: operation({
          tag,
          summary: 'Close an own ticket',
          success: { 200: Ticket },
          errors: ['forbidden', 'not_found'],
        }),
      },
    )
}
