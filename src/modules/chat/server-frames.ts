import { type Static, Type } from '@sinclair/typebox'
import { ErrorBody } from '../../lib/error-body.ts'
import type { Frame } from '../../realtime/hub.ts'
import { Message, messageView } from './model.ts'
import type { MessageRow } from './store.ts'

/** What the server sends over the channel: spec 6.1 and decisions 6. */

const conversation = { conversation_id: Type.String() }

export const NewMessageFrame = Type.Object(
  { type: Type.Literal('new_message'), message: Message },
  {
    description: 'A message, to every socket of both users.',
  },
)
export type NewMessageFrame = Static<typeof NewMessageFrame>

const passedOn = { ...conversation, user_id: Type.String() }
export const TypingFrame = Type.Object(
  { type: Type.Literal('typing'), ...passedOn },
  {
    description: 'The other user is typing.',
  },
)
export type TypingFrame = Static<typeof TypingFrame>
export const ReadReceiptFrame = Type.Object(
  { type: Type.Literal('read_receipt'), ...passedOn },
  {
    description: 'The other user has read the conversation.',
  },
)
export type ReadReceiptFrame = Static<typeof ReadReceiptFrame>

export const AckFrame = Type.Object(
  {
    type: Type.Literal('ack'),
    client_id: Type.Union([Type.String(), Type.Null()]),
    message: Message,
  },
  {
    description: 'Asked for with `ack`: a message of this socket is stored, now or before.',
  },
)
export type AckFrame = Static<typeof AckFrame>

export const ConversationReadFrame = Type.Object(
  {
    type: Type.Literal('conversation_read'),
    ...conversation,
    unread_count: Type.Integer(),
  },
  {
    description: 'Asked for with `read`: another device of the user has read the conversation.',
  },
)
export type ConversationReadFrame = Static<typeof ConversationReadFrame>

export const PongFrame = Type.Object(
  { type: Type.Literal('pong') },
  {
    description: 'The answer to a ping.',
  },
)

export const ErrorFrame = Type.Object(
  {
    type: Type.Literal('error'),
    ...ErrorBody.properties,
    retry_after: Type.Optional(Type.Integer({ description: 'Seconds.' })),
    request: Type.Object(
      {
        type: Type.Optional(Type.String()),
        conversation_id: Type.Optional(Type.String()),
        client_id: Type.Optional(Type.String()),
      },
      { description: 'What of the refused frame tells it apart.' },
    ),
  },
  {
    description: 'A frame was refused; the socket stays open.',
  },
)
export type ErrorFrame = Static<typeof ErrorFrame>

/** Every frame of this chapter that the server sends, by type. */
export const serverFrames = {
  new_message: NewMessageFrame,
  typing: TypingFrame,
  read_receipt: ReadReceiptFrame,
  ack: AckFrame,
  conversation_read: ConversationReadFrame,
  pong: PongFrame,
  error: ErrorFrame,
}

/** Frames by what a client asks for them with; those that no group names come unasked. */
export const eventGroups = {
  ack: ['ack'],
  read: ['conversation_read'],
  notification: ['notification', 'notifications_read'],
  support: ['ticket_created', 'ticket_updated'],
} as const
export type EventGroup = keyof typeof eventGroups
export const eventGroupNames = Object.keys(eventGroups) as EventGroup[]

const groupByType = new Map<string, EventGroup>(
  eventGroupNames.flatMap((group) => eventGroups[group].map((type) => [type, group] as const)),
)
export const eventGroupOf = (type: string): EventGroup | undefined => groupByType.get(type)

export function isNewMessage(frame: Frame): frame is NewMessageFrame {
  return frame.type === 'new_message'
}

export function newMessageFrame(row: MessageRow): NewMessageFrame {
  return { type: 'new_message', message: messageView(row) }
}

export function typingFrame(conversationId: string, userId: string): TypingFrame {
  return { type: 'typing', conversation_id: conversationId, user_id: userId }
}

export function readReceiptFrame(conversationId: string, userId: string): ReadReceiptFrame {
  return { type: 'read_receipt', conversation_id: conversationId, user_id: userId }
}

export function ackFrame(row: MessageRow): AckFrame {
  return { type: 'ack', client_id: row.clientId, message: messageView(row) }
}

export function conversationReadFrame(conversationId: string): ConversationReadFrame {
  return { type: 'conversation_read', conversation_id: conversationId, unread_count: 0 }
}
