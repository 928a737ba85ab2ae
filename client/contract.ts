import type { Static, TSchema } from '@sinclair/typebox'
import type { ListOf } from '../src/http/pagination.ts'
import type { ErrorBody } from '../src/lib/error-body.ts'
import type {
  Authenticated as AuthenticatedSchema,
  Profile as ProfileSchema,
} from '../src/modules/accounts/model.ts'
import type * as Chat from '../src/modules/chat/frames.ts'
import type {
  BroadcastProgress as BroadcastProgressSchema,
  Conversation as ConversationSchema,
  NewMessage,
  NewMessageFrame,
} from '../src/modules/chat/model.ts'
import type { ReportCreatedFrame } from '../src/modules/moderation/model.ts'
import type * as Notifications from '../src/modules/notifications/frames.ts'
import type * as Support from '../src/modules/support/frames.ts'
import type { ErrorFrame } from '../src/realtime/frames.ts'

/** What goes over the wire, taken from the service's own schemas. Only types: the client carries no code of the service. */

export type { TokenSet, User } from '../src/modules/accounts/model.ts'
export type {
  AckFrame,
  ConversationReadFrame,
  MessageDeletedFrame,
  ReadReceiptFrame,
  TypingFrame,
} from '../src/modules/chat/frames.ts'
export type {
  Broadcast,
  ConversationListItem,
  Message,
  NewMessage,
  NewMessageFrame,
} from '../src/modules/chat/model.ts'
export type { ReportCreatedFrame } from '../src/modules/moderation/model.ts'
export type {
  NotificationFrame,
  NotificationsReadFrame,
} from '../src/modules/notifications/frames.ts'
export type { Notification } from '../src/modules/notifications/model.ts'
export type {
  OwnTicketUpdatedFrame,
  TicketCreatedFrame,
  TicketUpdatedFrame,
} from '../src/modules/support/frames.ts'
export type { ErrorBody, ErrorFrame }
export type BroadcastProgress = Static<typeof BroadcastProgressSchema>
export type Conversation = Static<typeof ConversationSchema>
export type Authenticated = Static<typeof AuthenticatedSchema>
export type Profile = Static<typeof ProfileSchema>
export type ErrorCode = ErrorBody['error']['code']

type List = Static<ReturnType<typeof ListOf<TSchema>>>
export type Page<T> = Omit<Extract<List, { success: true }>, 'data'> & { data: T[] }
export type CursorPage<T> = Omit<Exclude<List, { success: true }>, 'data'> & { data: T[] }

/** A message without its idempotency key, which the outbox adds. */
export type Draft = Omit<NewMessage, 'client_id'>

export type ServerFrame =
  | NewMessageFrame
  | Chat.TypingFrame
  | Chat.ReadReceiptFrame
  | ErrorFrame
  | Chat.AckFrame
  | Chat.ConversationReadFrame
  | Chat.MessageDeletedFrame
  | Notifications.NotificationFrame
  | Notifications.NotificationsReadFrame
  | Support.OwnTicketUpdatedFrame
  | Support.TicketCreatedFrame
  | Support.TicketUpdatedFrame
  | ReportCreatedFrame

export type ClientFrame =
  | Static<typeof Chat.MessageFrame>
  | Static<typeof Chat.TypingClientFrame>
  | Static<typeof Chat.ReadClientFrame>
  | { type: 'auth'; token: string }
  | { type: 'ping' }

/** Frames that a client can ask for beyond messages, typing and read receipts. */
export type EventGroup = 'ack' | 'read' | 'changes' | 'notification' | 'support'
