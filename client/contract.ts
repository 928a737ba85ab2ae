import type { Static, TSchema } from '@sinclair/typebox'
import type { ListOf } from '../src/http/pagination.ts'
import type { ErrorBody } from '../src/lib/error-body.ts'
import type {
  Authenticated as AuthenticatedSchema,
  Profile as ProfileSchema,
  TokenSet,
  User,
} from '../src/modules/accounts/model.ts'
import type { ClientFrame } from '../src/modules/chat/frames.ts'
import type {
  Broadcast,
  BroadcastProgress as BroadcastProgressSchema,
  ConversationListItem,
  Conversation as ConversationSchema,
  Message,
  NewMessage,
} from '../src/modules/chat/model.ts'
import type {
  AckFrame,
  ConversationReadFrame,
  ErrorFrame,
  EventGroup,
  NewMessageFrame,
  ReadReceiptFrame,
  TypingFrame,
} from '../src/modules/chat/server-frames.ts'
import type {
  NotificationFrame,
  NotificationsReadFrame,
} from '../src/modules/notifications/frames.ts'
import type { Notification } from '../src/modules/notifications/model.ts'
import type {
  OwnTicketUpdatedFrame,
  TicketCreatedFrame,
  TicketUpdatedFrame,
} from '../src/modules/support/frames.ts'

/** What goes over the wire, as the service's own schemas say it. Types alone: nothing of the service is in the client. */

export type {
  AckFrame,
  Broadcast,
  ClientFrame,
  ConversationListItem,
  ConversationReadFrame,
  ErrorBody,
  ErrorFrame,
  EventGroup,
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
