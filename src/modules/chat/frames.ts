import { type Static, Type } from '@sinclair/typebox'
import { Maybe, Nullable, Refined, Sample } from '../../api/fields.ts'
import { samples } from '../../api/samples.ts'
import type { ServerFrames } from '../../realtime/frames.ts'
import {
  ConversationListItem,
  GivenType,
  Message,
  messageFields,
  messageProblems,
  NewMessageFrame,
  readUpTo,
} from './model.ts'

const conversation = { conversation_id: Sample(samples.conversationId, 'A conversation of yours.') }

export const MessageFrame = Refined(
  Type.Object(
    {
      type: Type.Literal('message'),
      ...conversation,
      ...messageFields,
      message_type: Maybe(GivenType),
    },
    {
      description: 'Sends a message.',
      examples: [
        {
          type: 'message',
          conversation_id: samples.conversationId,
          body: samples.text,
          client_id: 'd7c0-42',
        },
      ],
    },
  ),
  (frame) => messageProblems(frame, frame.message_type),
)

export const TypingClientFrame = Type.Object(
  { type: Type.Literal('typing'), ...conversation },
  { description: 'Notifies the other user that you are typing.' },
)

export const ReadClientFrame = Type.Object(
  { type: Type.Literal('read'), ...conversation, ...readUpTo },
  { description: 'Marks a conversation as read.' },
)

export const TypingFrame = Type.Object(
  { type: Type.Literal('typing'), ...conversation, user_id: Sample(samples.host.id) },
  { description: 'The other user is typing.' },
)
export type TypingFrame = Static<typeof TypingFrame>

export const ReadReceiptFrame = Type.Object(
  {
    type: Type.Literal('read_receipt'),
    ...conversation,
    user_id: Sample(samples.host.id),
    message_id: Type.Optional(
      Sample(samples.messageId, 'The last message read; absent when all messages are read.'),
    ),
  },
  { description: 'The other user has read the conversation.' },
)
export type ReadReceiptFrame = Static<typeof ReadReceiptFrame>

export const AckFrame = Type.Object(
  { type: Type.Literal('ack'), client_id: Nullable(Sample('d7c0-42')), message: Message },
  {
    description:
      'With `events=ack`: a message of this socket is stored, by this frame or an earlier one.',
  },
)
export type AckFrame = Static<typeof AckFrame>

export const ConversationReadFrame = Type.Object(
  { type: Type.Literal('conversation_read'), ...conversation, unread_count: Type.Integer() },
  { description: 'With `events=read`: another device of the user has read the conversation.' },
)
export type ConversationReadFrame = Static<typeof ConversationReadFrame>

export const MessageDeletedFrame = Type.Object(
  { type: Type.Literal('message_deleted'), ...conversation, message_id: Sample(samples.messageId) },
  {
    description:
      'With `events=changes`: a message was removed. It stays in the list without content.',
  },
)
export type MessageDeletedFrame = Static<typeof MessageDeletedFrame>

export const ConversationUpdatedFrame = Type.Object(
  { type: Type.Literal('conversation_updated'), conversation: ConversationListItem },
  {
    description:
      'With `events=changes`: the conversation is new and empty, the platform changed it, your right to send changed, or another device of yours changed it.',
  },
)
export type ConversationUpdatedFrame = Static<typeof ConversationUpdatedFrame>

export const serverFrames: ServerFrames = {
  new_message: { schema: NewMessageFrame },
  typing: { schema: TypingFrame },
  read_receipt: { schema: ReadReceiptFrame },
  ack: { schema: AckFrame, group: 'ack' },
  conversation_read: { schema: ConversationReadFrame, group: 'read' },
  conversation_updated: { schema: ConversationUpdatedFrame, group: 'changes' },
  message_deleted: { schema: MessageDeletedFrame, group: 'changes' },
}
