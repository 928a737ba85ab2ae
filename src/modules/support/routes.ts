import { operations } from '../../api/operation.ts'
import { idempotencyKey, idempotent, markReplayed } from '../../http/idempotency.ts'
import { pageOf } from '../../http/pagination.ts'
import type { RouteApp } from '../../http/request-context.ts'
import type { ListRange } from '../../lib/list-range.ts'
import * as model from './model.ts'
import type { TicketService } from './service.ts'

const user = operations('Support', { access: 'user' })

export function supportRoutes(app: RouteApp, tickets: TicketService) {
  app
    .post(
      '/v1/support/tickets',
      async ({ body, context, request, set }) => {
        const opened = await tickets.open(context.user.userId, {
          content: model.contentOf(body),
          ...model.messageIn(body, idempotencyKey(request.headers)),
        })
        markReplayed(set.headers, opened.replayed)
        return model.ticketView(opened.value)
      },
      user(
        'createTicket',
        'Opens a ticket. A repeated call with the same `client_id` or `X-Idempotency-Key` opens nothing and returns the first result. At most 20 a day, or 5 before the e-mail address is verified.',
        {
          201: model.Ticket,
          body: model.NewTicket,
          errors: ['quota_exceeded', 'text_quota_exceeded', 'idempotency_mismatch'],
          ...idempotent,
        },
      ),
    )
    .get(
      '/v1/support/tickets',
      ({ query, context }) =>
        pageOf(
          query,
          (range) => tickets.list(context.user.userId, range),
          model.ticketListItemView,
        ),
      user.list('listTickets', 'Lists your own tickets, newest first.', model.TicketListItem),
    )
    .get(
      '/v1/support/tickets/:id',
      ({ params, context }) => model.ticketView(tickets.get(context.user.userId, params.id)),
      user('getTicket', 'Shows a ticket of your own with its newest messages.', {
        200: model.Ticket,
        errors: ['not_found', 'not_owner'],
      }),
    )
    .get(
      '/v1/support/tickets/:id/messages',
      ({ params, query, context }) => {
        const { userId } = context.user
        const list = (range: ListRange) => tickets.listMessages(userId, params.id, range)
        return pageOf(query, list, model.ticketMessageView)
      },
      user.list(
        'listTicketMessages',
        'Lists the messages of a ticket of your own, newest first.',
        model.TicketMessage,
        { errors: ['not_found', 'not_owner'] },
      ),
    )
    .post(
      '/v1/support/tickets/:id/messages',
      async ({ params, body, context, request, set }) => {
        const message = model.messageIn(body, idempotencyKey(request.headers))
        const sent = await tickets.reply(context.user.userId, params.id, message)
        markReplayed(set.headers, sent.replayed)
        return model.ticketMessageView(sent.value)
      },
      user(
        'sendTicketMessage',
        'Adds a message to your own ticket. This reopens a resolved ticket and, for some days, a closed one.',
        {
          201: model.TicketMessage,
          body: model.NewTicketMessage,
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
    )
    .post(
      '/v1/support/tickets/:id/close',
      async ({ params, context }) =>
        model.ticketView(await tickets.close(context.user.userId, params.id)),
      user('closeTicket', 'Closes a ticket of your own. A repeated call changes nothing.', {
        200: model.Ticket,
        errors: ['not_found', 'not_owner'],
        example: { status: 'closed' },
      }),
    )
}
