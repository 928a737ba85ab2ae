import { type Static, Type } from '@sinclair/typebox'
import {
  Body,
  Change,
  ClientId,
  Count,
  described,
  Flag,
  HttpUrl,
  Id,
  LocaleField,
  Maybe,
  NamedPerson,
  Nullable,
  OneOf,
  open,
  pictureFields,
  Rarely,
  Sample,
  Schema,
  Timestamp,
  TrimmedText,
} from '../../api/fields.ts'
import { samples } from '../../api/samples.ts'
import type { AvatarUrl } from '../../lib/avatar.ts'
import { isoTime, timeOrNull } from '../../lib/clock.ts'
import {
  ticketCategories,
  ticketFields,
  ticketPriorities,
  ticketStatuses,
} from '../../lib/vocabulary.ts'
import type { ServerFrames } from '../../realtime/frames.ts'
import type { DeskItem, HistoryItem, NoteItem } from './desk-store.ts'
import type { AuthoredMessage, TicketMessageRow, TicketRow } from './store.ts'

export const StatusField = OneOf(ticketStatuses, { title: 'TicketStatus' })
export const PriorityField = OneOf(ticketPriorities, {
  title: 'TicketPriority',
  examples: ['normal'],
})
export const CategoryField = OneOf(ticketCategories, { title: 'TicketCategory' })

const { subject, text, answer } = samples.ticket
const maxBody = 10_000
const TicketText = TrimmedText(maxBody, 'The message.', text)
export const ReplyText = TrimmedText(maxBody, 'The text of the reply.', answer)

/** Only `file_url` is read; the other fields come from the database. */
const attachments = Maybe(
  Type.Array(
    Schema(
      'NewAttachment',
      {
        file_url: HttpUrl({
          description: 'The address in the response to the upload.',
          examples: [samples.file.url],
        }),
      },
      { ...open },
    ),
    // An example would need an upload of the reader.
    { maxItems: 5, description: 'Responses to your own uploads.', examples: [] },
  ),
)

export const NewTicket = Body('NewTicket', {
  subject: TrimmedText(200, 'The topic, in a line.', subject),
  body: TicketText,
  category: Maybe(described(CategoryField, 'Without it `other`.')),
  priority: Maybe(described(PriorityField, 'Without it `normal`.')),
  attachments,
  client_id: Maybe(ClientId),
})

export const NewDeskTicket = Body('NewDeskTicket', {
  user_id: Id({ description: 'The user for whom it is opened.', examples: [samples.guest.id] }),
  ...NewTicket.properties,
  body: TrimmedText(maxBody, 'Your message to the user.', answer),
})

/** The fields that the desk can filter by value. The indexes of the desk's order contain them. */
export const filterFields = {
  priority: described(PriorityField, 'Only tickets of this priority.'),
  category: described(CategoryField, 'Only tickets of this category.'),
}

export const ticketOrders = ['longest_waiting', 'shortest_waiting'] as const
export type TicketOrder = (typeof ticketOrders)[number]
export const OrderField = OneOf(ticketOrders, {
  title: 'TicketOrder',
  description:
    'Without it `longest_waiting`; `shortest_waiting` begins with the ticket that began to wait last. Those that do not wait follow in both orders, the most recently changed first. A search has its own order.',
})

export const contentOf = ({ subject, category, priority }: Static<typeof NewTicket>) => ({
  subject: subject.trim(),
  category: category ?? ('other' as const),
  priority: priority ?? ('normal' as const),
})
export type TicketContent = ReturnType<typeof contentOf>

export const NewTicketMessage = Body('NewTicketMessage', {
  body: TicketText,
  attachments,
  client_id: Maybe(ClientId),
})

export const messageIn = (
  { body, attachments, client_id }: Static<typeof NewTicketMessage>,
  key: string | undefined,
) => ({
  body: body.trim(),
  fileUrls: fileUrlsIn(attachments),
  clientId: client_id ?? key ?? null,
})
export const fileUrlsIn = (attachments: Static<typeof NewTicketMessage>['attachments']) =>
  (attachments ?? []).map((it) => it.file_url)
export type MessageRequest = ReturnType<typeof messageIn>

export const NewTicketReply = Body('NewTicketReply', {
  ...NewTicketMessage.properties,
  body: ReplyText,
  status: Maybe({
    ...StatusField,
    description: 'The state after the reply.',
    examples: ['resolved'],
  }),
  last_message_id: Maybe(
    Id({
      description: 'The newest message you have seen. With a newer one the response is 409.',
      examples: [samples.ticketMessageId],
    }),
  ),
})

const Assignment = Type.Optional(
  Nullable(Id({ description: 'An admin; null for nobody.', examples: [samples.admin.id] })),
)

export const TicketUpdate = Change(
  Body(
    'TicketUpdate',
    {
      status: Maybe(described(StatusField, 'The new state.')),
      priority: Maybe(described(PriorityField, 'The new priority.')),
      category: Maybe(described(CategoryField, 'The new category.')),
      assignee_id: Assignment,
      assigned_to: Assignment,
    },
    {
      description: '`assigned_to` is an alias of `assignee_id`, which takes precedence.',
      examples: [{ status: 'in_progress', assignee_id: samples.admin.id }],
    },
  ),
  ['assignee_id', 'assigned_to'],
)
export type TicketUpdate = Static<typeof TicketUpdate>

export const TicketCounts = Schema('TicketCounts', {
  waiting: Count(4, 'Tickets that wait for an answer.'),
  mine: Count(2, 'Tickets assigned to you, not closed.'),
  unassigned: Count(3, 'Unassigned tickets, not closed.'),
  open: Count(4),
  in_progress: Count(3),
  resolved: Count(2),
  closed: Count(120),
  all: Count(129),
})
export type TicketCounts = Static<typeof TicketCounts>

const noteText = 'The bank has confirmed the transfer.'
const NoteText = TrimmedText(maxBody, 'The note, which admins alone see.', noteText)
export const NewTicketNote = Body('NewTicketNote', { body: NoteText, attachments })
export const TicketNoteUpdate = Body('TicketNoteUpdate', { body: NoteText })

const ticket = {
  id: Sample(samples.ticketId),
  subject: Sample(subject),
  status: StatusField,
  priority: PriorityField,
  category: CategoryField,
  created_at: Timestamp,
  updated_at: described(Timestamp, 'The last message or change.'),
}

const entry = { id: Sample(samples.ticketMessageId), body: Sample(text), created_at: Timestamp }

export const TicketMessage = Schema('TicketMessage', {
  ...entry,
  is_admin: Flag('Whether the desk wrote it.'),
  attachments: Type.Optional(
    Type.Array(
      Schema('Attachment', {
        id: Sample(samples.file.id),
        file_url: Sample(samples.file.url),
        file_name: Sample(samples.file.name),
        file_size: Count(samples.file.size),
        file_type: Sample(samples.file.type),
        ...pictureFields,
      }),
      { description: 'Present if there are attachments.' },
    ),
  ),
})

export const TicketListItem = Schema('TicketListItem', ticket)

const messages_before = Type.Optional(
  Type.String({
    description: 'The cursor for the list of earlier messages; absent if there are none.',
    examples: [],
  }),
)

export const Ticket = Schema(
  'Ticket',
  { ...ticket, messages: Type.Array(TicketMessage), messages_before },
  { description: 'A ticket with its newest messages, oldest first.' },
)

const Admin = NamedPerson(samples.admin)

const TicketOwner = Schema('TicketOwner', {
  id: Sample(samples.guest.id),
  display_name: Sample(samples.guest.name),
  avatar_url: Sample(samples.guest.avatarUrl, { format: 'uri' }),
  email: Type.Optional(Sample(samples.guest.email, 'Absent if the account was removed.')),
  locale: LocaleField,
})

export const DeskTicketMessage = Schema('DeskTicketMessage', {
  ...TicketMessage.properties,
  author: NamedPerson(samples.guest),
})

/** The desk shows a line of it, and each change of a ticket is sent to every admin. */
export const lastMessageCharacters = 200

export const DeskTicketListItem = Schema('DeskTicketListItem', {
  ...ticket,
  user: TicketOwner,
  assignee: described(Nullable(Admin), 'The admin who looks after it.'),
  message_count: Count(1, 'Messages of both sides, without notes.'),
  last_message: described(
    Schema('LastTicketMessage', {
      id: Sample(samples.ticketMessageId),
      body: Sample(text, `Its first ${lastMessageCharacters} characters.`),
      is_admin: Flag('Whether the desk wrote it.'),
      sent_at: Timestamp,
    }),
    'The newest message of both sides; a note is none.',
  ),
  waiting_since: described(
    Nullable(Timestamp),
    'Since when the owner waits for an answer; null while nothing is to be answered.',
  ),
  first_response_at: described(Rarely(Timestamp), 'When an admin answered for the first time.'),
})

export const TicketNote = Schema('TicketNote', {
  ...entry,
  body: Sample(noteText),
  author: Admin,
  attachments: TicketMessage.properties.attachments,
  edited_at: Type.Optional(
    described(Timestamp, 'When the author last changed the text; absent if never.'),
  ),
  author_removed: Type.Optional(
    Flag('Present, and true, if the account of the author was removed.', true),
  ),
})

const TicketHistoryEntry = Schema('TicketHistoryEntry', {
  id: Sample(samples.recordId),
  at: Timestamp,
  field: described(OneOf(ticketFields), 'The changed field.'),
  from: described(Nullable(Sample('open')), 'The value before.'),
  to: described(Nullable(Sample('in_progress')), 'The value after.'),
  actor: Type.Union([
    Schema('AdminActor', {
      type: Type.Literal('user'),
      id: Sample(samples.admin.id),
      display_name: Sample(samples.admin.name),
    }),
    Schema('SystemActor', { type: Type.Literal('system') }),
  ]),
})

export const DeskTicket = Schema(
  'DeskTicket',
  {
    ...DeskTicketListItem.properties,
    messages: Type.Array(DeskTicketMessage),
    messages_before,
    notes: described(Type.Array(TicketNote), 'Notes of admins, which the owner never sees.'),
    history: described(Type.Array(TicketHistoryEntry), 'Changes, and who made them.'),
  },
  { description: 'A ticket with its newest messages, notes and changes, oldest first.' },
)

export const OwnTicketUpdatedFrame = Type.Object({
  type: Type.Literal('ticket_updated'),
  ticket: TicketListItem,
})

export const TicketCreatedFrame = Type.Object(
  { type: Type.Literal('ticket_created'), ticket: DeskTicketListItem },
  { description: 'With `events=support`, for admins: somebody has opened a ticket.' },
)

export const TicketUpdatedFrame = Type.Object({
  type: Type.Literal('ticket_updated'),
  ticket: DeskTicketListItem,
})
type DeskFrame = Static<typeof TicketCreatedFrame> | Static<typeof TicketUpdatedFrame>

export const ViewingClientFrame = Type.Object(
  { type: Type.Literal('viewing'), ticket_id: Sample(samples.ticketId) },
  {
    description:
      'For admins: notifies the other admins that you have this ticket open. Repeat it every 20 seconds.',
  },
)

export const TicketViewedFrame = Type.Object(
  {
    type: Type.Literal('ticket_viewed'),
    ticket_id: Sample(samples.ticketId),
    user_id: Sample(samples.host.id),
  },
  { description: 'With `events=support`, for admins: another admin has this ticket open.' },
)
export type TicketViewedFrame = Static<typeof TicketViewedFrame>

const EitherUpdatedFrame = Type.Union([OwnTicketUpdatedFrame, TicketUpdatedFrame], {
  description:
    'With `events=support`: a ticket changed, or is gone when it is read again. Owners and admins get different fields.',
})

export const serverFrames: ServerFrames = {
  ticket_created: { schema: TicketCreatedFrame, group: 'support' },
  ticket_updated: { schema: EitherUpdatedFrame, group: 'support' },
  ticket_viewed: { schema: TicketViewedFrame, group: 'support' },
}

export function ticketMessageView(row: TicketMessageRow): Static<typeof TicketMessage> {
  const { id, body, isAdmin, attachments, createdAt } = row
  const files = attachments && { attachments: [...attachments] }
  return { id, body, is_admin: isAdmin, created_at: isoTime(createdAt), ...files }
}

export function ticketListItemView(row: TicketRow): Static<typeof TicketListItem> {
  const { id, subject, status, priority, category } = row
  const times = { created_at: isoTime(row.createdAt), updated_at: isoTime(row.updatedAt) }
  return { id, subject, status, priority, category, ...times }
}

export const ownTicketFrame = (row: TicketRow): Static<typeof OwnTicketUpdatedFrame> => ({
  type: 'ticket_updated',
  ticket: ticketListItemView(row),
})

export type MessagesShown = { messages: AuthoredMessage[]; before: string | null }
export type TicketDetail = { ticket: TicketRow; shown: MessagesShown }

export function ticketView({ ticket: row, shown }: TicketDetail): Static<typeof Ticket> {
  return {
    ...ticketListItemView(row),
    messages: shown.messages.map(ticketMessageView),
    ...(shown.before !== null && { messages_before: shown.before }),
  }
}

export function deskTicketMessageView(row: AuthoredMessage): Static<typeof DeskTicketMessage> {
  const author = { id: row.authorId, display_name: row.authorName }
  return { ...ticketMessageView(row), author }
}

export type DeskDetail = {
  item: DeskItem
  shown: MessagesShown
  notes: NoteItem[]
  history: HistoryItem[]
}

export type DeskViews = ReturnType<typeof createDeskViews>

export function createDeskViews(avatarUrl: AvatarUrl) {
  function deskTicketListItemView(row: DeskItem): Static<typeof DeskTicketListItem> {
    const { user, assignee, lastMessage } = row
    return {
      ...ticketListItemView(row),
      user: {
        ...personView(user),
        avatar_url: avatarUrl(user),
        ...(user.deletedAt === null && { email: user.email }),
        locale: user.locale,
      },
      assignee: assignee && personView(assignee),
      message_count: row.messageCount,
      last_message: {
        id: lastMessage.id,
        body: lastMessage.body,
        is_admin: lastMessage.isAdmin,
        sent_at: isoTime(lastMessage.createdAt),
      },
      waiting_since: timeOrNull(row.waitingSince),
      first_response_at: timeOrNull(row.firstResponseAt),
    }
  }

  function deskTicketView(detail: DeskDetail): Static<typeof DeskTicket> {
    const { messages, before } = detail.shown
    return {
      ...deskTicketListItemView(detail.item),
      messages: messages.map(deskTicketMessageView),
      ...(before !== null && { messages_before: before }),
      notes: detail.notes.map(ticketNoteView),
      history: detail.history.map(historyEntryView),
    }
  }

  const deskFrame = (type: DeskFrame['type'], item: DeskItem): DeskFrame => ({
    type,
    ticket: deskTicketListItemView(item),
  })

  return { deskTicketListItemView, deskTicketView, deskFrame }
}

export function ticketNoteView(note: NoteItem): Static<typeof TicketNote> {
  const { id, body, author, createdAt, editedAt, attachments } = note
  return {
    id,
    body,
    author: personView(author),
    created_at: isoTime(createdAt),
    ...(attachments && { attachments: [...attachments] }),
    ...(editedAt !== null && { edited_at: isoTime(editedAt) }),
    ...(author.deletedAt !== null && { author_removed: true }),
  }
}

function historyEntryView({ id, at, field, from, to, actor }: HistoryItem) {
  const by = actor ? { type: 'user' as const, ...personView(actor) } : { type: 'system' as const }
  return { id, at: isoTime(at), field, from, to, actor: by }
}

function personView({ id, displayName }: { id: string; displayName: string }) {
  return { id, display_name: displayName }
}
