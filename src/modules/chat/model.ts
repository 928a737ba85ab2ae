import { type Static, Type } from '@sinclair/typebox'
import {
  Body,
  ClientId,
  HttpUrl,
  Id,
  Maybe,
  MediaType,
  NamedPerson,
  Nullable,
  OneOf,
  Refined,
  Sample,
  Text,
  Time,
  Timestamp,
} from '../../api/fields.ts'
import { samples } from '../../api/samples.ts'
import type { AvatarUrl } from '../../lib/avatar.ts'
import { isoTime } from '../../lib/clock.ts'
import { type FieldProblems, problem } from '../../lib/errors.ts'
import { isVisible } from '../../lib/text.ts'
import { type MessageType, messageTypes } from '../../lib/vocabulary.ts'
import type { Peer } from '../../realtime/hub.ts'
import type { BroadcastRow } from './broadcast-store.ts'
import type { InboxRow } from './inbox-store.ts'
import type { MessageRow } from './store.ts'

export const MessageTypeField = OneOf(messageTypes)

export const NewConversation = Body('NewConversation', {
  user_id: Id({
    description: 'The other participant: a ULID, or the UUID of the same 128 bits.',
    examples: [samples.host.id],
  }),
})

export const messageFields = {
  body: Text({ max: 5_000 }, { examples: [samples.text] }),
  file_url: Maybe(HttpUrl(2_048, { examples: [samples.file.url] })),
  file_name: Maybe(Text({ min: 1, max: 255 }, { examples: [samples.file.name] })),
  file_size: Maybe(
    Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, examples: [samples.file.size] }),
  ),
  file_type: Maybe(MediaType(127)),
  client_id: Maybe(ClientId),
}
const MessageFields = Type.Object(messageFields)

const { file } = samples
const fileFields = {
  file_url: file.url,
  file_name: file.name,
  file_size: file.size,
  file_type: file.type,
}
const fileMessage = { body: '', type: 'file', ...fileFields }

/** The fields that a sender sets. The file fields of a text message are null. */
export type Draft = Pick<
  MessageRow,
  'type' | 'body' | 'fileUrl' | 'fileName' | 'fileSize' | 'fileType' | 'clientId'
>

/** REST and frames name the message type differently, hence the parameter. */
export function draftOf(fields: Static<typeof MessageFields>, type?: MessageType | null): Draft {
  const isFile = type === 'file'
  return {
    type: type ?? 'text',
    body: fields.body,
    fileUrl: (isFile && fields.file_url) || null,
    fileName: (isFile && fields.file_name) || null,
    fileSize: isFile ? (fields.file_size ?? null) : null,
    fileType: (isFile && fields.file_type) || null,
    clientId: fields.client_id ?? null,
  }
}

export const NewMessage = Refined(
  Body(
    'NewMessage',
    { ...messageFields, type: Maybe(MessageTypeField) },
    { examples: [{ body: samples.text, client_id: 'd7c0-42' }, fileMessage] },
  ),
  (message) => messageProblems(message, message.type),
)
export type NewMessage = Static<typeof NewMessage>

/** A text message needs a visible body; a file message needs a `file_url`. */
export function messageProblems(
  { body, file_url }: { body?: unknown; file_url?: unknown },
  type: MessageType | null | undefined,
): FieldProblems {
  const isMissing = file_url === undefined || file_url === null
  if (type === 'file') return isMissing ? { file_url: problem('required') } : {}
  return typeof body === 'string' && !isVisible(body) ? { body: problem('blank') } : {}
}

export const readUpTo = {
  message_id: Maybe(
    Id({
      description: 'The last message read. Without it the whole conversation is read.',
      examples: [samples.messageId],
    }),
  ),
}

export const ReadUpTo = Body('ReadUpTo', readUpTo)

export const Mute = Body('Mute', {
  until: Maybe(
    Time({ description: 'ISO 8601 with a time zone. Without it the conversation stays muted.' }),
  ),
})

export const NewBroadcast = Refined(
  Body('NewBroadcast', { body: messageFields.body, client_id: messageFields.client_id }),
  (broadcast) => messageProblems(broadcast, 'text'),
)

/** `recipients_count` is the number of followers until completion, then the number of delivered copies. */
export const Broadcast = Type.Object(
  {
    id: Sample(samples.broadcastId),
    body: Sample(samples.text),
    recipients_count: Type.Integer({ examples: [120] }),
    status: OneOf(['processing', 'completed'], { examples: ['completed'] }),
    created_at: Timestamp,
  },
  { title: 'Broadcast' },
)
export type Broadcast = Static<typeof Broadcast>

export const BroadcastProgress = Type.Object(
  { ...Broadcast.properties, delivered_count: Type.Integer({ examples: [120] }) },
  { title: 'BroadcastProgress' },
)

const Participant = NamedPerson(samples.host)

export const Conversation = Type.Object(
  {
    id: Sample(samples.conversationId),
    participant: Participant,
    unread_count: Type.Integer({ examples: [0] }),
    created_at: Sample(samples.conversationSince, { format: 'date-time' }),
  },
  { title: 'Conversation' },
)

export const ConversationListItem = Type.Object(
  {
    id: Sample(samples.conversationId),
    participant: Type.Object({
      ...Participant.properties,
      avatar_url: Sample(samples.host.avatarUrl, { format: 'uri' }),
    }),
    last_message: Nullable(
      Type.Object({ body: Sample(samples.text), type: MessageTypeField, sent_at: Timestamp }),
    ),
    unread_count: Type.Integer({ examples: [0] }),
    participant_read_up_to: Nullable(
      Sample(samples.messageId, {
        description: 'The last message that the other user has read.',
      }),
    ),
    muted: Type.Boolean({ description: 'Whether its messages are not pushed.' }),
    updated_at: Timestamp,
  },
  { title: 'ConversationListItem' },
)
export type ConversationListItem = Static<typeof ConversationListItem>

const message = {
  id: samples.messageId,
  conversation_id: samples.conversationId,
  sender_id: samples.guest.id,
  body: samples.text,
  type: 'text',
  file_url: null,
  file_name: null,
  file_size: null,
  file_type: null,
  created_at: samples.time,
}

export const Message = Type.Object(
  {
    id: Type.String(),
    conversation_id: Type.String(),
    sender_id: Type.String(),
    body: Type.String(),
    type: MessageTypeField,
    file_url: Nullable(Type.String()),
    file_name: Nullable(Type.String()),
    file_size: Nullable(Type.Integer()),
    file_type: Nullable(Type.String()),
    created_at: Timestamp,
    deleted_at: Type.Optional(
      Type.String({ format: 'date-time', description: 'Present only on removed messages.' }),
    ),
  },
  { title: 'Message', examples: [message, { ...message, ...fileMessage }] },
)
export type Message = Static<typeof Message>

export const NewMessageFrame = Type.Object(
  {
    type: Type.Literal('new_message'),
    message: Message,
    client_id: Type.Optional(
      Sample('d7c0-42', {
        description:
          'The `client_id` of the request, on sockets of its sender that have `events=ack`. It identifies your own message.',
      }),
    ),
  },
  { description: 'A new message, sent to every socket of both users.' },
)
export type NewMessageFrame = Static<typeof NewMessageFrame>

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
    ...(row.deletedAt !== null && { deleted_at: isoTime(row.deletedAt) }),
  }
}

export function newMessageFrame(row: MessageRow): NewMessageFrame {
  return { type: 'new_message', message: messageView(row) }
}

export type MessageReader = Pick<Peer, 'userId' | 'wants'>

/** The frame with `client_id`, for sockets of the sender that subscribed to acks. */
export function senderVariant(row: MessageRow, frame: NewMessageFrame) {
  const { senderId, clientId } = row
  if (clientId === null) return undefined
  return {
    frame: { ...frame, client_id: clientId },
    isFor: (reader: MessageReader) => reader.userId === senderId && reader.wants('ack', undefined),
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

export function conversationListItemView(
  row: InboxRow,
  avatarUrl: AvatarUrl,
  now: number,
): ConversationListItem {
  const { other, lastMessage, mutedUntil } = row
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
    participant_read_up_to: row.otherReadId,
    muted: mutedUntil !== null && mutedUntil > now,
    updated_at: isoTime(lastMessage?.createdAt ?? row.createdAt),
  }
}
