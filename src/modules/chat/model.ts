import { type Static, Type } from '@sinclair/typebox'
import {
  Body,
  BroadcastStatus,
  ClientId,
  Count,
  described,
  Flag,
  HttpUrl,
  Id,
  Maybe,
  MediaType,
  NamedPerson,
  Nullable,
  OneOf,
  open,
  PersonId,
  PersonWithAvatar,
  type Picture,
  pictureFields,
  pictureView,
  Rarely,
  Refined,
  Sample,
  Schema,
  Text,
  Time,
  Timestamp,
} from '../../api/fields.ts'
import { samples } from '../../api/samples.ts'
import type { AvatarUrl } from '../../lib/avatar.ts'
import { isoTime } from '../../lib/clock.ts'
import { type FieldProblems, problem } from '../../lib/errors.ts'
import { timeOfId } from '../../lib/ids.ts'
import { isVisible } from '../../lib/text.ts'
import { conversationStates, messageTypes, type SentType, sentTypes } from '../../lib/vocabulary.ts'
import type { Peer } from '../../realtime/hub.ts'
import type { InboxRow } from './inbox-store.ts'
import type { BroadcastRow, MessageRow, Said } from './store.ts'

export const MessageTypeField = OneOf(messageTypes, { title: 'MessageType' })
export const GivenType = OneOf(sentTypes, {
  title: 'SentType',
  description: 'Without it `text`. A `file` message needs `file_url`.',
})

export const sendRefusals = ['recipient_gone', 'blocked', 'read_only', 'no_active_call'] as const
export type SendRefusal = (typeof sendRefusals)[number]

export const StateField = OneOf(conversationStates, {
  title: 'ConversationState',
  description: 'In a read-only conversation only the platform writes.',
})

export const NewConversation = Body('NewConversation', {
  user_id: {
    ...PersonId(samples.host.id),
    description:
      'The other participant: a ULID, or the UUID of the same 128 bits. In a session that the platform made also `ext:` and an external id.',
  },
})

const fileFieldsOfMessage = {
  file_url: HttpUrl({
    description: 'The address of an upload of yours, or one elsewhere; needed for a file message.',
    examples: [samples.file.url],
  }),
  file_name: Maybe(
    Text(
      { min: 1, max: 255, noControlCharacters: true },
      { description: 'The name to show.', examples: [samples.file.name] },
    ),
  ),
  file_size: Maybe(
    Type.Integer({
      description: 'In bytes.',
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      examples: [samples.file.size],
    }),
  ),
  file_type: Maybe(MediaType),
}

export const messageFields = {
  body: Text(
    { max: 5_000 },
    { description: 'The text. That of a file message may be empty.', examples: [samples.text] },
  ),
  ...fileFieldsOfMessage,
  file_url: Maybe(fileFieldsOfMessage.file_url),
  attachments: Maybe(
    Type.Array(Schema('NewMessageFile', fileFieldsOfMessage, { ...open }), {
      description: 'The files of a file message, instead of the four fields, which show the first.',
      minItems: 1,
      maxItems: 10,
      examples: [[{ file_url: samples.file.url, file_name: samples.file.name }]],
    }),
  ),
  client_id: Maybe(ClientId),
}
const MessageFields = Type.Object(messageFields)

export const PlatformData = Type.Record(Type.String(), Type.Unknown(), {
  title: 'PlatformData',
  description: 'An object of the platform, at most 4 KiB of JSON.',
  examples: [{ booking_id: 'b-204', starts_at: samples.later }],
})

const { file } = samples
const fileFields = {
  file_url: file.url,
  file_name: file.name,
  file_size: file.size,
  file_type: file.type,
}
const fileMessage = { body: '', type: 'file', ...fileFields }

/** The file fields of a text message are null. */
export type Draft = Omit<Said, 'picture'> & Pick<MessageRow, 'clientId'>

/** REST and frames name the message type differently, hence the parameter. */
export function draftOf(fields: Static<typeof MessageFields>, type?: SentType | null): Draft {
  const isFile = type === 'file'
  const files = fields.attachments
  const file = isFile ? (files?.[0] ?? fields) : undefined
  return {
    type: type ?? 'text',
    body: fields.body,
    fileUrl: file?.file_url ?? null,
    fileName: file?.file_name ?? null,
    fileSize: file?.file_size ?? null,
    fileType: file?.file_type ?? null,
    attachments: isFile && files?.[0] ? JSON.stringify(files.map(attachmentOf)) : null,
    clientId: fields.client_id ?? null,
    data: null,
  }
}

const attachmentOf = ({ file_url, file_name, file_size, file_type }: NewMessageFile) => ({
  file_url,
  file_name: file_name ?? null,
  file_size: file_size ?? null,
  file_type: file_type ?? null,
})
type NewMessageFile = NonNullable<Static<typeof MessageFields>['attachments']>[number]

export const NewMessage = Refined(
  Body(
    'NewMessage',
    { ...messageFields, type: Maybe(GivenType) },
    { examples: [{ body: samples.text, client_id: 'd7c0-42' }, fileMessage] },
  ),
  (message) => messageProblems(message, message.type),
)
export type NewMessage = Static<typeof NewMessage>

/** The `file_url` of a file message is that of the first attachment if there are some. */
export function messageProblems(
  { body, file_url, attachments }: { body?: unknown; file_url?: unknown; attachments?: unknown },
  type: SentType | null | undefined,
): FieldProblems {
  // Otherwise the message would be sent without some of its files.
  if (type === 'file') return fileProblems(file_url ?? null, attachments ?? null)
  return {
    ...(typeof body === 'string' && !isVisible(body) && { body: problem('blank') }),
    ...((attachments ?? null) !== null && { attachments: problem('file_message') }),
  }
}

function fileProblems(url: unknown, attachments: unknown): FieldProblems {
  if (!Array.isArray(attachments)) return url === null ? { file_url: problem('required') } : {}
  const isOther = url !== null && url !== attachments[0]?.file_url
  return isOther ? { file_url: problem('first_attachment') } : {}
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
  Body('NewBroadcast', {
    body: described(messageFields.body, 'The text.'),
    client_id: messageFields.client_id,
  }),
  (broadcast) => messageProblems(broadcast, 'text'),
)

export const Broadcast = Schema('Broadcast', {
  id: Sample(samples.broadcastId),
  body: Sample(samples.text),
  recipients_count: Count(120, 'Followers until it is completed, then the copies delivered.'),
  status: BroadcastStatus,
  created_at: Timestamp,
})
export type Broadcast = Static<typeof Broadcast>

export const BroadcastProgress = Schema('BroadcastProgress', {
  ...Broadcast.properties,
  delivered_count: Count(120),
})

const external_id = Type.Optional(
  Type.String({
    description: 'The id of the person in the rest of the platform; absent if there is none.',
  }),
)
const { id, name: display_name, avatarUrl: avatar_url } = samples.host
const participant = { id, display_name, external_id: 'host-12' }
export const Participant = Schema(
  'Participant',
  { ...NamedPerson(samples.host).properties, external_id },
  { examples: [participant] },
)

export const Conversation = Schema('Conversation', {
  id: Sample(samples.conversationId),
  participant: Participant,
  unread_count: Count(0, 'Unread messages of the other side, and unread notices.'),
  created_at: Sample(samples.conversationSince, { format: 'date-time' }),
})

export const ConversationListItem = Schema('ConversationListItem', {
  id: Sample(samples.conversationId),
  participant: Schema(
    'ParticipantWithAvatar',
    { ...PersonWithAvatar(samples.host).properties, external_id },
    { examples: [{ ...participant, avatar_url }] },
  ),
  last_message: Nullable(
    Schema('LastMessage', {
      id: Sample(samples.messageId),
      body: Sample(samples.text),
      type: MessageTypeField,
      sent_at: Timestamp,
    }),
  ),
  unread_count: Count(0, 'Unread messages of the other side, and unread notices.'),
  participant_read_up_to: Nullable(
    Sample(samples.messageId, 'The last message that the other user has read.'),
  ),
  first_seq: described(
    Type.Integer({ minimum: 1, examples: [1] }),
    'Number of the oldest message that is kept; larger than 1 when older ones were forgotten.',
  ),
  muted: Flag('Whether its messages are not pushed.'),
  archived: Flag('Whether you have archived it since its last message.'),
  may_send: Flag(
    'Whether you may send now. It can change at any time: a send may still fail.',
    true,
  ),
  may_send_reason: Rarely(
    OneOf(sendRefusals, {
      title: 'SendRefusal',
      description: 'The reason with which a send would be refused.',
    }),
  ),
  state: StateField,
  data: Nullable(PlatformData),
  updated_at: described(Timestamp, 'The time of the newest message, also after it was forgotten.'),
})
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

const sent = {
  id: Type.String(),
  conversation_id: Type.String(),
  sender_id: described(Type.String(), 'The author.'),
  body: Type.String(),
  created_at: Timestamp,
  deleted_at: Type.Optional(
    Type.String({
      format: 'date-time',
      description: 'Present only on removed messages, which are empty.',
    }),
  ),
  data: Type.Optional(PlatformData),
}

const TextMessage = Schema(
  'TextMessage',
  {
    ...sent,
    type: Type.Literal('text'),
    file_url: Type.Null(),
    file_name: Type.Null(),
    file_size: Type.Null(),
    file_type: Type.Null(),
  },
  { examples: [message] },
)

const shownFile = {
  file_url: Type.String(),
  file_name: Nullable(Type.String()),
  file_size: Nullable(Type.Integer()),
  file_type: Nullable(Type.String()),
  ...pictureFields,
}
const MessageFile = Schema('MessageFile', shownFile, { examples: [fileFields] })

const FileMessage = Schema(
  'FileMessage',
  {
    ...sent,
    type: Type.Literal('file'),
    ...shownFile,
    attachments: Type.Optional(
      Type.Array(MessageFile, {
        description: 'All files, if they were sent so. The first also stands beside it.',
      }),
    ),
  },
  { examples: [{ ...message, ...fileMessage }] },
)

const notice = {
  ...message,
  sender_id: null,
  type: 'notice',
  body: 'Moved to 15:00',
  data: { booking_id: 'b-204', starts_at: samples.later },
  unread: false,
}

const NoticeMessage = Schema(
  'NoticeMessage',
  {
    ...TextMessage.properties,
    sender_id: described(Type.Null(), 'A notice has no author.'),
    type: Type.Literal('notice'),
    unread: Flag('Whether it counts as unread until it is read.'),
  },
  { description: 'From the platform, to both participants.', examples: [notice] },
)

export const Message = Type.Union([TextMessage, FileMessage, NoticeMessage], {
  title: 'Message',
  examples: [message, { ...message, ...fileMessage }, notice],
})
export type Message = Static<typeof Message>

export const NewMessageFrame = Type.Object(
  {
    type: Type.Literal('new_message'),
    message: Message,
    client_id: Type.Optional(
      Sample(
        'd7c0-42',
        'The `client_id` of the request, on sockets of its sender that have `events=ack`. It identifies your own message.',
      ),
    ),
  },
  { description: 'A new message, sent to every socket of both users.' },
)
export type NewMessageFrame = Static<typeof NewMessageFrame>

/** Choice: one literal without spreads, because a page of messages is read most. */
export function messageView(row: MessageRow): Message {
  const { attachments, picture, data, deletedAt } = row
  const view = {
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
  } as Message // CHECKs of the table: a file alone has a URL, and a notice alone has no sender
  if (view.type === 'notice') view.unread = row.isSilent === 0
  if (attachments !== null) {
    const files = attachmentsView(attachments, picture)
    Object.assign(view, files[0], { attachments: files })
  } else if (picture !== null) Object.assign(view, pictureView(picture))
  if (data !== null) view.data = JSON.parse(data)
  if (deletedAt !== null) view.deleted_at = isoTime(deletedAt)
  return view
}

export type Attachment = Static<typeof MessageFile>

function attachmentsView(attachments: string, picture: string | null): Attachment[] {
  const files = JSON.parse(attachments) as Attachment[]
  const pictures = JSON.parse(picture ?? '[]') as (Picture | null)[]
  return files.map((file, n) => ({ ...file, ...pictures[n] }))
}

export function newMessageFrame(row: MessageRow): NewMessageFrame {
  return { type: 'new_message', message: messageView(row) }
}

export type MessageReader = Pick<Peer, 'userId' | 'wants'>

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

type Party = { id: string; displayName: string; externalId: string | null }

export const participantView = ({ id, displayName, externalId }: Party) => ({
  id,
  display_name: displayName,
  ...(externalId !== null && { external_id: externalId }),
})

type ItemParts = { avatarUrl: AvatarUrl; refusal: SendRefusal | undefined; now: number }

export function conversationListItemView(
  row: InboxRow,
  { avatarUrl, refusal, now }: ItemParts,
): ConversationListItem {
  const { other, lastMessage, mutedUntil } = row
  return {
    id: row.conversationId,
    participant: { ...participantView(other), avatar_url: avatarUrl(other) },
    last_message: lastMessage && {
      id: lastMessage.id,
      body: lastMessage.body,
      type: lastMessage.type,
      sent_at: isoTime(lastMessage.createdAt),
    },
    unread_count: row.unreadCount,
    participant_read_up_to: row.otherReadId,
    first_seq: row.firstSeq,
    muted: mutedUntil !== null && mutedUntil > now,
    archived: row.isArchived === 1,
    may_send: refusal === undefined,
    may_send_reason: refusal ?? null,
    state: row.state,
    data: row.data === null ? null : JSON.parse(row.data),
    updated_at: isoTime(lastMessage?.createdAt ?? timeOfId(row.lastActivityId)),
  }
}
