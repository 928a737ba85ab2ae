import { type Static, Type } from '@sinclair/typebox'
import { CheckedText, Flag, Id, Text } from '../../api/fields.ts'
import { operations } from '../../api/operation.ts'
import { samples } from '../../api/samples.ts'
import { idempotencyKey, idempotent, markReplayed } from '../../http/idempotency.ts'
import { pageOf } from '../../http/pagination.ts'
import type { RouteApp } from '../../http/request-context.ts'
import { problem } from '../../lib/errors.ts'
import { parseId } from '../../lib/ids.ts'
import { ticketStatuses } from '../../lib/vocabulary.ts'
import type { DeskListing, DeskService, DeskUpdate } from './desk-service.ts'
import type { TicketFilter } from './desk-store.ts'
import * as model from './model.ts'
import { maxWords } from './search-store.ts'

const admin = operations('Support', { access: 'admin' })

const isStatus = (text: string) => ticketStatuses.some((status) => status === text)

const DeskQuery = Type.Partial(
  Type.Object({
    status: CheckedText(
      (text) =>
        text.split(',').every(isStatus) ? undefined : problem('one_of', ticketStatuses.join(', ')),
      {
        description: `One or several of ${ticketStatuses.map((status) => `\`${status}\``).join(', ')}, comma-separated. Matches tickets with any of these.`,
        examples: ['open', 'open,in_progress,resolved'],
      },
    ),
    waiting: Flag(
      '`true` shows only tickets that wait for an answer of the desk (`waiting_since` is not null), `false` only the others.',
    ),
    ...model.filterFields,
    assignee_id: CheckedText(
      (text) => (text === 'me' || text === 'none' || parseId(text) ? undefined : problem('id')),
      { description: 'The id of an admin, `me`, or `none`.', examples: ['me'] },
    ),
    user_id: Id({
      description: 'The id of the person who opened the ticket.',
      examples: [samples.guest.id],
    }),
    order: model.OrderField,
    q: Text(
      { max: 200 },
      {
        examples: ['payout late'],
        description:
          `Up to ${maxWords} words that are all in the ticket or its notes, the last one as a beginning; accents and case do not matter. \`#\` and the last six characters of an id find that ticket, so that its owner can say them. ` +
          'The newest ticket comes first. `total` and numbered pages end at 200; the cursor form continues.',
      },
    ),
  }),
)

type DeskFilters = Omit<Static<typeof DeskQuery>, 'waiting'> & { waiting?: string }

const { admin: author, ticket } = samples
const answerExample = {
  body: ticket.answer,
  is_admin: true,
  author: { id: author.id, display_name: author.name },
}

export function deskRoutes(app: RouteApp, desk: DeskService, views: model.DeskViews) {
  const { deskTicketListItemView, deskTicketView } = views
  app
    .get(
      '/v1/admin/support/tickets',
      ({ query, context }) => {
        const wanted = deskQuery(query as DeskFilters, context.user.userId) // the pipeline has checked it
        return pageOf(query, (range) => desk.list(wanted, range), deskTicketListItemView)
      },
      admin.list(
        'adminListTickets',
        'Lists all tickets. Tickets that wait longest for an answer come first, then the most recently changed.',
        model.DeskTicketListItem,
        { query: DeskQuery.properties },
      ),
    )
    .post(
      '/v1/admin/support/tickets',
      async ({ body, context, request, set }) => {
        const opened = await desk.open(context.byUser, body.user_id, {
          content: model.contentOf(body),
          ...model.messageIn(body, idempotencyKey(request.headers)),
        })
        markReplayed(set.headers, opened.replayed)
        return deskTicketView(opened.value)
      },
      admin(
        'adminCreateTicket',
        'Opens a ticket for a user with a message of yours and notifies the user. It is in progress and assigned to you.',
        {
          201: model.DeskTicket,
          body: model.NewDeskTicket,
          errors: ['idempotency_mismatch'],
          ...idempotent,
        },
      ),
    )
    .get(
      '/v1/admin/support/counts',
      ({ context }) => desk.counts(context.user.userId),
      admin(
        'adminCountTickets',
        'Counts tickets for the views of a desk. The list shows the same tickets: waiting for an answer (`waiting=true`), assigned to you or to nobody (`assignee_id=me` or `none`, with `status=open,in_progress,resolved`), by status, and all.',
        { 200: model.TicketCounts },
      ),
    )
    .get(
      '/v1/admin/support/tickets/:id',
      ({ params }) => deskTicketView(desk.get(params.id)),
      admin(
        'adminGetTicket',
        'Shows a ticket with its newest messages, its notes and its history.',
        { 200: model.DeskTicket },
      ),
    )
    .patch(
      '/v1/admin/support/tickets/:id',
      async ({ params, body, context }) =>
        deskTicketView(await desk.update(context.byUser, params.id, updateIn(body))),
      admin(
        'adminUpdateTicket',
        'Changes status, priority, category or assignee of a ticket. Absent fields keep their value.',
        { 200: model.DeskTicket, body: model.TicketUpdate, example: { status: 'in_progress' } },
      ),
    )
    .get(
      '/v1/admin/support/tickets/:id/messages',
      ({ params, query }) =>
        pageOf(query, (range) => desk.listMessages(params.id, range), model.deskTicketMessageView),
      admin.list(
        'adminListTicketMessages',
        'Lists the messages of a ticket, newest first.',
        model.DeskTicketMessage,
      ),
    )
    .post(
      '/v1/admin/support/tickets/:id/messages',
      async ({ params, body, context, request, set }) => {
        const sent = await desk.reply(context.byUser, params.id, {
          ...model.messageIn(body, idempotencyKey(request.headers)),
          status: body.status ?? undefined,
          lastMessageId: body.last_message_id ?? undefined,
        })
        markReplayed(set.headers, sent.replayed)
        return model.deskTicketMessageView(sent.value)
      },
      admin(
        'adminSendTicketMessage',
        'Answers a ticket and notifies its owner. With `last_message_id` the answer is refused if the ticket has a newer message.',
        {
          201: model.DeskTicketMessage,
          body: model.NewTicketReply,
          errors: ['stale_ticket', 'ticket_full', 'idempotency_mismatch'],
          ...idempotent,
          example: answerExample,
        },
      ),
    )
    .post(
      '/v1/admin/support/tickets/:id/notes',
      async ({ params, body, context }) =>
        model.ticketNoteView(await desk.addNote(context.byUser, params.id, noteIn(body))),
      admin('adminCreateTicketNote', 'Adds a note that only admins see.', {
        201: model.TicketNote,
        body: model.NewTicketNote,
      }),
    )
    .patch(
      '/v1/admin/support/tickets/:id/notes/:note_id',
      async ({ params, body, context }) =>
        model.ticketNoteView(
          await desk.editNote(context.byUser, params.id, params.note_id, body.body.trim()),
        ),
      admin('adminUpdateTicketNote', 'Changes the text of a note of your own.', {
        200: model.TicketNote,
        body: model.TicketNoteUpdate,
        errors: ['not_owner'],
      }),
    )
    .delete(
      '/v1/admin/support/tickets/:id/notes/:note_id',
      ({ params, context }) => desk.deleteNote(context.byUser, params.id, params.note_id),
      admin(
        'adminDeleteTicketNote',
        'Deletes a note of your own, or one whose author is no longer an enabled admin.',
        { 204: null, errors: ['not_owner'] },
      ),
    )
}

const noteIn = ({ body, attachments }: Static<typeof model.NewTicketNote>) => ({
  body: body.trim(),
  fileUrls: model.fileUrlsIn(attachments),
})

function updateIn(body: model.TicketUpdate): DeskUpdate {
  const { status, priority, category, assignee_id, assigned_to } = body
  const isFirst = assignee_id !== undefined
  const assignee = isFirst ? assignee_id : assigned_to
  return {
    status: status ?? undefined,
    priority: priority ?? undefined,
    category: category ?? undefined,
    assigneeId: typeof assignee === 'string' ? (parseId(assignee) ?? assignee) : assignee,
    assigneeField: isFirst ? 'assignee_id' : 'assigned_to',
  }
}

function deskQuery(
  { status, waiting, assignee_id, user_id, q, order = 'longest_waiting', ...exact }: DeskFilters,
  adminId: string,
): DeskListing {
  const assignee = assignee_id === 'me' ? adminId : assignee_id
  const named = status?.split(',')
  const filter: TicketFilter = {
    ...exact,
    statuses: named && ticketStatuses.filter((one) => named.includes(one)),
    isWaiting: waiting === undefined ? undefined : waiting === 'true',
    assigneeId: assignee === 'none' ? null : assignee && parseId(assignee),
    userId: user_id && parseId(user_id),
  }
  return { filter, q, order }
}
