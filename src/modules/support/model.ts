import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { isoTime } from '../../lib/clock.ts'
import { problem } from '../../lib/errors.ts'
import { ClientId, Id, Maybe, Refined, Text } from '../../lib/fields.ts'
import {
  ticketCategories,
  ticketFields,
  ticketPriorities,
  ticketStatuses,
} from '../../lib/vocabulary.ts'
import type { CannedReplyRow } from './canned-reply-store.ts'
import type { DeskItem } from './desk-store.ts'
import type { HistoryItem, NoteItem } from './notes-store.ts'
import type { TicketMessageRow, TicketRow } from './store.ts'

const open = { additionalProperties: true } as const
const Timestamp = Type.String({ format: 'date-time' })
const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])
const oneOf = <T extends string>(values: readonly T[]) =>
  Type.Union(values.map((value) => Type.Literal(value)))

export const OneOfStatuses = oneOf(ticketStatuses)
export const OneOfPriorities = oneOf(ticketPriorities)
export const OneOfCategories = oneOf(ticketCategories)

const trimmed = (max: number) => Text({ min: 1, max, trimmed: true, notBlank: true })
const Subject = trimmed(200)
const Body = trimmed(10_000)

export const NewTicket = Type.Object(
  {
    subject: Subject,
    body: Body,
    category: Maybe(OneOfCategories),
    priority: Maybe(OneOfPriorities),
    client_id: Maybe(ClientId),
  },
  { title: 'NewTicket', ...open },
)
export type NewTicket = Static<typeof NewTicket>

export const NewTicketMessage = Type.Object(
  { body: Body, client_id: Maybe(ClientId) },
  { title: 'NewTicketMessage', ...open },
)

export const NewTicketReply = Type.Object(
  {
    body: Body,
    client_id: Maybe(ClientId),
    status: Maybe(OneOfStatuses),
    last_message_id: Maybe(
      Id({ description: 'The newest message that was seen: with a newer one there it is a 409.' }),
    ),
  },
  { title: 'NewTicketReply', ...open },
)
export type NewTicketReply = Static<typeof NewTicketReply>

const Assignment = Type.Optional(
  Type.Union([Id({ description: 'An admin; null for nobody.' }), Type.Null()]),
)

export const TicketUpdate = Refined(
  Type.Object(
    {
      status: Maybe(OneOfStatuses),
      priority: Maybe(OneOfPriorities),
      assignee_id: Assignment,
      assigned_to: Assignment,
    },
    {
      title: 'TicketUpdate',
      description: '`assigned_to` is another name of `assignee_id`, which wins.',
      ...open,
    },
  ),
  ({ status = null, priority = null, assignee_id, assigned_to }) => {
    const given = [status ?? undefined, priority ?? undefined, assignee_id, assigned_to]
    const isNothing = given.every((value) => value === undefined)
    return isNothing ? { body: problem('nothing_to_change') } : {}
  },
)
export type TicketUpdate = Static<typeof TicketUpdate>

export const NewTicketNote = Type.Object({ body: Body }, { title: 'NewTicketNote', ...open })

const ticket = {
  id: Type.String(),
  subject: Type.String(),
  status: OneOfStatuses,
  priority: OneOfPriorities,
  category: OneOfCategories,
  created_at: Timestamp,
  updated_at: Timestamp,
}

/** Spec 2.6, ticket message. */
export const TicketMessage = Type.Object(
  {
    id: Type.String(),
    body: Type.String(),
    is_admin: Type.Boolean(),
    created_at: Timestamp,
  },
  { title: 'TicketMessage' },
)
export type TicketMessage = Static<typeof TicketMessage>

/** Spec 2.6, in a list. */
export const TicketListItem = Type.Object(ticket, { title: 'TicketListItem' })
export type TicketListItem = Static<typeof TicketListItem>

/** Spec 2.6. */
export const Ticket = Type.Object(
  { ...ticket, messages: Type.Array(TicketMessage) },
  { title: 'Ticket' },
)
export type Ticket = Static<typeof Ticket>

const person = { id: Type.String(), display_name: Type.String() }

/** A ticket as the desk sees it in its list. */
export const DeskTicketListItem = Type.Object(
  {
    ...ticket,
    user: Type.Object({
      ...person,
      email: Type.Optional(Type.String({ description: 'Absent when the account is removed.' })),
    }),
    assignee: nullable(Type.Object(person)),
    message_count: Type.Integer(),
    waiting_since: nullable(Timestamp),
    first_response_at: nullable(Timestamp),
  },
  { title: 'DeskTicketListItem' },
)
export type DeskTicketListItem = Static<typeof DeskTicketListItem>

export const TicketNote = Type.Object(
  {
    id: Type.String(),
    body: Type.String(),
    author: Type.Object(person),
    created_at: Timestamp,
  },
  { title: 'TicketNote' },
)
export type TicketNote = Static<typeof TicketNote>

const TicketHistoryEntry = Type.Object(
  {
    id: Type.String(),
    at: Timestamp,
    field: oneOf(ticketFields),
    from: nullable(Type.String()),
    to: nullable(Type.String()),
    actor: Type.Union([
      Type.Object({ type: Type.Literal('user'), ...person }),
      Type.Object({ type: Type.Literal('system') }),
    ]),
  },
  { title: 'TicketHistoryEntry' },
)

/** A ticket with everything that the desk knows of it. */
export const DeskTicket = Type.Object(
  {
    ...DeskTicketListItem.properties,
    messages: Type.Array(TicketMessage),
    notes: Type.Array(TicketNote),
    history: Type.Array(TicketHistoryEntry),
  },
  { title: 'DeskTicket' },
)

const cannedReply = { title: trimmed(200), body: Body }
export const NewCannedReply = Type.Object(cannedReply, { title: 'NewCannedReply', ...open })
export type NewCannedReply = Static<typeof NewCannedReply>
export const CannedReplyUpdate = Refined(
  Type.Object(
    { title: Maybe(cannedReply.title), body: Maybe(cannedReply.body) },
    { title: 'CannedReplyUpdate', ...open },
  ),
  ({ title, body }) =>
    (title ?? body ?? undefined) === undefined ? { body: problem('nothing_to_change') } : {},
)
export type CannedReplyUpdate = Static<typeof CannedReplyUpdate>
export const CannedReply = Type.Object(
  { id: Type.String(), title: Type.String(), body: Type.String() },
  { title: 'CannedReply' },
)

export function ticketMessageView(row: TicketMessageRow): TicketMessage {
  return {
    id: row.id,
    body: row.body,
    is_admin: row.isAdmin,
    created_at: isoTime(row.createdAt),
  }
}

export function ticketListItemView(row: TicketRow): TicketListItem {
  return {
    id: row.id,
    subject: row.subject,
    status: row.status,
    priority: row.priority,
    category: row.category,
    created_at: isoTime(row.createdAt),
    updated_at: isoTime(row.updatedAt),
  }
}

/** A ticket with its messages. */
export type TicketDetail = { ticket: TicketRow; messages: TicketMessageRow[] }

export function ticketView({ ticket: row, messages }: TicketDetail): Ticket {
  return { ...ticketListItemView(row), messages: messages.map(ticketMessageView) }
}

export function deskTicketListItemView(row: DeskItem): DeskTicketListItem {
  const { user, assignee } = row
  return {
    ...ticketListItemView(row),
    user: {
      id: user.id,
      display_name: user.displayName,
      ...(user.deletedAt === null && { email: user.email }),
    },
    assignee: assignee && { id: assignee.id, display_name: assignee.displayName },
    message_count: row.messageCount,
    waiting_since: timeOrNull(row.waitingSince),
    first_response_at: timeOrNull(row.firstResponseAt),
  }
}

/** A ticket with everything that the desk knows of it. */
export type DeskDetail = {
  item: DeskItem
  messages: TicketMessageRow[]
  notes: NoteItem[]
  history: HistoryItem[]
}

export function deskTicketView({
  item,
  messages,
  notes,
  history,
}: DeskDetail): Static<typeof DeskTicket> {
  return {
    ...deskTicketListItemView(item),
    messages: messages.map(ticketMessageView),
    notes: notes.map(ticketNoteView),
    history: history.map(historyEntryView),
  }
}

export function ticketNoteView({ id, body, author, createdAt }: NoteItem): TicketNote {
  return {
    id,
    body,
    author: { id: author.id, display_name: author.displayName },
    created_at: isoTime(createdAt),
  }
}

function historyEntryView({ id, at, field, from, to, actor }: HistoryItem) {
  return {
    id,
    at: isoTime(at),
    field,
    from,
    to,
    actor: actor
      ? { type: 'user' as const, id: actor.id, display_name: actor.displayName }
      : { type: 'system' as const },
  }
}

export function cannedReplyView({ id, title, body }: CannedReplyRow) {
  return { id, title, body }
}

function timeOrNull(milliseconds: number | null) {
  return milliseconds === null ? null : isoTime(milliseconds)
}
