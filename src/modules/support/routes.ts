import { Elysia } from 'elysia'
import { operations } from '../../api/operation.ts'
import { idempotencyKey, idempotent, markReplayed } from '../../http/idempotency.ts'
import { ListOf, listAnswer, listQuery, listRange } from '../../http/pagination.ts'
import { routeBase } from '../../http/request-context.ts'
import {
  attachedUrls,
  contentOf,
  NewTicket,
  NewTicketMessage,
  Ticket,
  TicketListItem,
  TicketMessage,
  ticketListItemView,
  ticketMessageView,
  ticketView,
} from './model.ts'
import type { TicketService } from './service.ts'

const pageSize = 20
const user = operations('Support', { access: 'user' })

export function supportRoutes(tickets: TicketService) {
  return new Elysia({ name: 'support' })
    .use(routeBase)
    .post(
      '/v1/support/tickets',
      async ({ body, context, request, set }) => {
        const opened = await tickets.open(context.user.userId, {
          content: contentOf(body),
          body: body.body.trim(),
          fileUrls: attachedUrls(body.attachments),
          clientId: body.client_id ?? idempotencyKey(request.headers) ?? null,
        })
        markReplayed(set.headers, opened.replayed)
        return ticketView(opened.value)
      },
      {
        body: NewTicket,
        ...user(
          'createTicket',
          'Opens a ticket. A repeated call with the same `client_id` or `X-Idempotency-Key` opens nothing and returns the first result. At most 20 a day, or 5 before the e-mail address is verified.',
          { 201: Ticket },
          {
            errors: ['quota_exceeded', 'text_quota_exceeded', 'idempotency_mismatch'],
            ...idempotent,
          },
        ),
      },
    )
    .get(
      '/v1/support/tickets',
      ({ query, context }) => {
        const range = listRange(query, pageSize)
        const { userId } = context.user
        return listAnswer(range, tickets.list(userId, range), ticketListItemView)
      },
      user(
        'listTickets',
        'Lists your own tickets, newest first.',
        { 200: ListOf(TicketListItem) },
        { query: listQuery(pageSize) },
      ),
    )
    .get(
      '/v1/support/tickets/:id',
      ({ params, context }) => ticketView(tickets.get(context.user.userId, params.id)),
      user(
        'getTicket',
        'Shows a ticket of your own with its newest messages.',
        { 200: Ticket },
        { errors: ['not_found', 'not_owner'] },
      ),
    )
    .get(
      '/v1/support/tickets/:id/messages',
      ({ params, query, context }) => {
        const range = listRange(query, pageSize)
        const { userId } = context.user
        return listAnswer(range, tickets.listMessages(userId, params.id, range), ticketMessageView)
      },
      user(
        'listTicketMessages',
        'Lists the messages of a ticket of your own, newest first.',
        { 200: ListOf(TicketMessage) },
        { query: listQuery(pageSize), errors: ['not_found', 'not_owner'] },
      ),
    )
    .post(
      '/v1/support/tickets/:id/messages',
      async ({ params, body, context, request, set }) => {
        const sent = await tickets.reply(context.user.userId, params.id, {
          body: body.body.trim(),
          fileUrls: attachedUrls(body.attachments),
          clientId: body.client_id ?? idempotencyKey(request.headers) ?? null,
        })
        markReplayed(set.headers, sent.replayed)
        return ticketMessageView(sent.value)
      },
      {
        body: NewTicketMessage,
        ...user(
          'sendTicketMessage',
          'Adds a message to your own ticket. This reopens a resolved ticket and, for some days, a closed one.',
          { 201: TicketMessage },
          {
            errors: [
              'not_found',
              'not_owner',
              'ticket_closed',
              'ticket_full',
              'text_quota_exceeded',
              'idempotency_mismatch',
            ],
            ...idempotent,
          },
        ),
      },
    )
    .post(
      '/v1/support/tickets/:id/close',
      async ({ params, context }) =>
        ticketView(await tickets.close(context.user.userId, params.id)),
      user(
        'closeTicket',
        'Closes a ticket of your own. A repeated call changes nothing.',
        { 200: Ticket },
        { errors: ['not_found', 'not_owner'], example: { status: 'closed' } },
      ),
    )
}
