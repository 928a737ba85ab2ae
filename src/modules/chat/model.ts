import { type Static, Type } from '@sinclair/typebox'
import { isoTime } from '../../lib/clock.ts'
import { type FieldProblems, problem } from '../../lib/errors.ts'
import { ClientId, HttpUrl, Id, Maybe, MediaType, Refined, Text } from '../../lib/fields.ts'
import { type MessageType, messageTypes } from '../../lib/vocabulary.ts'
import type { BroadcastRow } from './broadcast-store.ts'
import type { InboxRow } from './inbox-store.ts'
import type { MessageRow } from './store.ts'

const Timestamp = Type.String({ format: 'date-time' })
const nullable = <T extends ReturnType<typeof Type.String> | ReturnType<typeof Type.Integer>>(
  schema: T,
) => Type.Union([schema, Type.Null()])
export const OneOfMessageTypes = Type.Union(messageTypes.map((type) => Type.Literal(type)))

export const NewConversation = Type.Object(
  { user_id: Id({ description: 'The other participant: a ULID, or the UUID of the same bits.' }) },
  { title: 'NewConversation', additionalProperties: true },
)

/** What a message holds, over REST and in a frame. */
export const messageFields = {
  body: Text({ max: 5_000 }),
  file_url: Maybe(HttpUrl(2_048)),
  file_name: Maybe(Text({ min: 1, max: 255 })),
  file_size: Maybe(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  file_type: Maybe(MediaType(127)),
  client_id: Maybe(ClientId),
}
const MessageFields = Type.Object(messageFields)

/** What a sender hands over; the fields of a file are absent on a text. */
export type Draft = {
  body: string
  type: MessageType
  fileUrl?: string | undefined
  fileName?: string | undefined
  fileSize?: number | undefined
  fileType?: string | undefined
  /** The sender's idempotency key. */
  clientId?: string | undefined
}

/** The draft in a body or a frame, which name its type differently. */
export function draftOf(fields: Static<typeof MessageFields>, type?: MessageType | null): Draft {
  return {
    body: fields.body,
    type: type ?? 'text',
    fileUrl: fields.file_url ?? undefined,
    fileName: fields.file_name ?? undefined,
    fileSize: fields.file_size ?? undefined,
    fileType: fields.file_type ?? undefined,
    clientId: fields.client_id ?? undefined,
  }
}

export const NewMessage = Refined(
  Type.Object(
    { ...messageFields, type: Maybe(OneOfMessageTypes) },
    { title: 'NewMessage', additionalProperties: true },
  ),
  (message) => messageProblems(message, message.type),
)
export type NewMessage = Static<typeof NewMessage>

/** What the kind of a message asks of its fields: a text needs characters, a file an address. */
export function messageProblems(
  { body, file_url }: { body?: unknown; file_url?: unknown },
  type: MessageType | null | undefined,
): FieldProblems {
  const isMissing = file_url === undefined || file_url === null
  if (type === 'file') return isMissing ? { file_url: problem('required') } : {}
  return typeof body === 'string' && body.trim() === '' ? { body: problem('blank') } : {}
}

export const NewBroadcast = Refined(
  Type.Object(
    { body: messageFields.body, client_id: messageFields.client_id },
    { title: 'NewBroadcast', additionalProperties: true },
  ),
  (broadcast) => messageProblems(broadcast, 'text'),
)

/** What a host said to all followers; `recipients_count` is how many there were, at the end how many it reached. */
export const Broadcast = Type.Object(
  {
    id: Type.String(),
    body: Type.String(),
    recipients_count: Type.Integer(),
    status: Type.Union([Type.Literal('processing'), Type.Literal('completed')]),
    created_at: Timestamp,
  },
  { title: 'Broadcast' },
)
export type Broadcast = Static<typeof Broadcast>

export const BroadcastProgress = Type.Object(
  { ...Broadcast.properties, delivered_count: Type.Integer() },
  { title: 'BroadcastProgress' },
)

/** Spec 2.4, create result. */
export const Conversation = Type.Object(
  {
    id: Type.String(),
    participant: Type.Object({ id: Type.String(), display_name: Type.String() }),
    unread_count: Type.Integer(),
    created_at: Timestamp,
  },
  { title: 'Conversation' },
)

/** Spec 2.4, list item. */
export const ConversationListItem = Type.Object(
  {
    id: Type.String(),
    participant: Type.Object({
      id: Type.String(),
      display_name: Type.String(),
      avatar_url: Type.String({ format: 'uri' }),
    }),
    last_message: Type.Union([
      Type.Object({ body: Type.String(), type: OneOfMessageTypes, sent_at: Timestamp }),
      Type.Null(),
    ]),
    unread_count: Type.Integer(),
    updated_at: Timestamp,
  },
  { title: 'ConversationListItem' },
)
export type ConversationListItem = Static<typeof ConversationListItem>

/** Spec 2.5. */
export const Message = Type.Object(
  {
    id: Type.String(),
    conversation_id: Type.String(),
    sender_id: Type.String(),
    body: Type.String(),
    type: OneOfMessageTypes,
    file_url: nullable(Type.String()),
    file_name: nullable(Type.String()),
    file_size: nullable(Type.Integer()),
    file_type: nullable(Type.String()),
    created_at: Timestamp,
  },
  { title: 'Message' },
)
export type Message = Static<typeof Message>

export function messageView(row: MessageRow): Message {
  return {
    id: row.id,
    conversation_id: row.conversationId,
    sender_id: row.senderId,
    body: row.body,
    type: row.type,
    file_url: row.fileUrl,
    file_name: row.fileName,
    file_size: row.fileSize,
    file_type: row.fileType,
    created_at: isoTime(row.createdAt),
  }
}

export function broadcastView(row: BroadcastRow): Broadcast {
  return {
    id: row.id,
    body: row.body,
    recipients_count: row.recipientsCount,
    status: row.completedAt === null ? 'processing' : 'completed',
    created_at: isoTime(row.createdAt),
  }
}

export function broadcastProgressView(row: BroadcastRow): Static<typeof BroadcastProgress> {
  return { ...broadcastView(row), delivered_count: row.deliveredCount }
}

/** Where a person's picture is: their own, or a generated one. */
export type AvatarUrl = (person: {
  id: string
  displayName: string
  avatarUrl: string | null
}) => string

export function conversationListItemView(
  row: InboxRow,
  avatarUrl: AvatarUrl,
): ConversationListItem {
  const { other, lastMessage } = row
  return {
    id: row.conversationId,
    participant: {
      id: other.id,
      display_name: other.displayName,
      avatar_url: avatarUrl(other),
    },
    last_message: lastMessage && {
      body: lastMessage.body,
      type: lastMessage.type,
      sent_at: isoTime(lastMessage.createdAt),
    },
    unread_count: row.unreadCount,
    updated_at: isoTime(row.lastActivityAt),
  }
}
