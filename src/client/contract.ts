import type { Static, TSchema } from '@sinclair/typebox'
import type { ListOf } from '../http/pagination.ts'
import type { ErrorBody } from '../lib/error-body.ts'
import type {
  Authenticated as AuthenticatedSchema,
  Profile as ProfileSchema,
  TokenSet,
  User,
} from '../modules/accounts/model.ts'
import type {
  AckFrame,
  ConversationReadFrame,
  MessageFrame,
  ReadClientFrame,
  ReadReceiptFrame,
  TypingClientFrame,
  TypingFrame,
} from '../modules/chat/frames.ts'
import type {
  Broadcast,
  BroadcastProgress as BroadcastProgressSchema,
  ConversationListItem,
  Conversation as ConversationSchema,
  Message,
  NewMessage,
  NewMessageFrame,
} from '../modules/chat/model.ts'
import type { NotificationFrame, NotificationsReadFrame } from '../modules/notifications/frames.ts'
import type { Notification } from '../modules/notifications/model.ts'
import type {
  OwnTicketUpdatedFrame,
  TicketCreatedFrame,
  TicketUpdatedFrame,
} from '../modules/support/frames.ts'
import type { ErrorFrame } from '../realtime/frames.ts'

/** What goes over the wire, as the service's own schemas say it. Types alone: nothing of the service is in the client. */

export type {
  AckFrame,
  Broadcast,
  ConversationListItem,
  ConversationReadFrame,
  ErrorBody,
  ErrorFrame,
  Message,
  NewMessage,
  NewMessageFrame,
  Notification,
  NotificationFrame,
  NotificationsReadFrame,
  OwnTicketUpdatedFrame,
  ReadReceiptFrame,
  TicketCreatedFrame,
  TicketUpdatedFrame,
  TokenSet,
  TypingFrame,
  User,
}
export type BroadcastProgress = Static<typeof BroadcastProgressSchema>
export type Conversation = Static<typeof ConversationSchema>
export type Authenticated = Static<typeof AuthenticatedSchema>
export type Profile = Static<typeof ProfileSchema>
export type ErrorCode = ErrorBody['error']['code']

type List = Static<ReturnType<typeof ListOf<TSchema>>>
export type Page<T> = Omit<Extract<List, { success: true }>, 'data'> & { data: T[] }
export type CursorPage<T> = Omit<Exclude<List, { success: true }>, 'data'> & { data: T[] }

/** A message without its idempotency key, which the outbox gives. */
export type Draft = Omit<NewMessage, 'client_id'>

export type ServerFrame =
  | NewMessageFrame
  | TypingFrame
  | ReadReceiptFrame
  | ErrorFrame
  | AckFrame
  | ConversationReadFrame
  | NotificationFrame
  | NotificationsReadFrame
  | OwnTicketUpdatedFrame
  | TicketCreatedFrame
  | TicketUpdatedFrame

/** What a client sends. */
export type ClientFrame =
  | Static<typeof MessageFrame>
  | Static<typeof TypingClientFrame>
  | Static<typeof ReadClientFrame>
  | { type: 'auth'; token: string }
  | { type: 'ping' }

/** What a client can ask for beyond messages, typing and read receipts. */
export type EventGroup = 'ack' | 'read' | 'notification' | 'support'
