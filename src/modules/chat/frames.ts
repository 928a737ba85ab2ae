import { type Static, Type } from '@sinclair/typebox'
import { Maybe, Refined } from '../../lib/fields.ts'
import type { ServerFrames } from '../../realtime/frames.ts'
import {
  Message,
  MessageTypeField,
  messageFields,
  messageProblems,
  messageView,
  NewMessageFrame,
  readUpTo,
} from './model.ts'
import type { MessageRow } from './store.ts'

const conversation = { conversation_id: Type.String() }
const open = { additionalProperties: true } as const

export const MessageFrame = Refined(
  Type.Object(
    {
      type: Type.Literal('message'),
      ...conversation,
      ...messageFields,
      message_type: Maybe(MessageTypeField),
    },
    { ...open, description: 'Send a message.' },
  ),
  (frame) => messageProblems(frame, frame.message_type),
)

export const TypingClientFrame = Type.Object(
  { type: Type.Literal('typing'), ...conversation },
  { ...open, description: 'Tell the other user that one is typing.' },
)

export const ReadClientFrame = Type.Object(
  { type: Type.Literal('read'), ...conversation, ...readUpTo },
  { ...open, description: 'Mark a conversation as read.' },
)

export const TypingFrame = Type.Object(
  { type: Type.Literal('typing'), ...conversation, user_id: Type.String() },
  { description: 'The other user is typing.' },
)
export type TypingFrame = Static<typeof TypingFrame>

export const ReadReceiptFrame = Type.Object(
  {
    type: Type.Literal('read_receipt'),
    ...conversation,
    user_id: Type.String(),
    message_id: Type.Optional(
      Type.String({ description: 'Up to here, where newer messages are not read yet.' }),
    ),
  },
  { description: 'The other user has read the conversation.' },
)
export type ReadReceiptFrame = Static<typeof ReadReceiptFrame>

export const AckFrame = Type.Object(
  {
    type: Type.Literal('ack'),
    client_id: Type.Union([Type.String(), Type.Null()]),
    message: Message,
  },
  { description: 'Asked for with `ack`: a message of this socket is stored, now or before.' },
)
export type AckFrame = Static<typeof AckFrame>

export const ConversationReadFrame = Type.Object(
  { type: Type.Literal('conversation_read'), ...conversation, unread_count: Type.Integer() },
  { description: 'Asked for with `read`: another device of the user has read the conversation.' },
)
export type ConversationReadFrame = Static<typeof ConversationReadFrame>

export const MessageDeletedFrame = Type.Object(
  { type: Type.Literal('message_deleted'), ...conversation, message_id: Type.String() },
  { description: 'Asked for with `changes`: a message was removed; its place stays, empty.' },
)
export type MessageDeletedFrame = Static<typeof MessageDeletedFrame>

export const serverFrames: ServerFrames = {
  new_message: { schema: NewMessageFrame },
  typing: { schema: TypingFrame },
  read_receipt: { schema: ReadReceiptFrame },
  ack: { schema: AckFrame, group: 'ack' },
  conversation_read: { schema: ConversationReadFrame, group: 'read' },
  message_deleted: { schema: MessageDeletedFrame, group: 'changes' },
}

export function ackFrame(row: MessageRow): AckFrame {
  return { type: 'ack', client_id: row.clientId, message: messageView(row) }
}
