import type { Static, TSchema } from '@sinclair/typebox'
import type { ListOf } from '../http/pagination.ts'
import type { ErrorBody } from '../lib/error-body.ts'
import type {
  Authenticated as AuthenticatedSchema,
  Profile as ProfileSchema,
  TokenSet,
  User,
} from '../modules/accounts/model.ts'
import type { ClientFrame } from '../modules/chat/frames.ts'
import type {
  Broadcast,
  BroadcastProgress as BroadcastProgressSchema,
  ConversationListItem,
  Conversation as ConversationSchema,
  Message,
  NewMessage,
} from '../modules/chat/model.ts'
import type {
  AckFrame,
  ConversationReadFrame,
  ErrorFrame,
  EventGroup,
  NewMessageFrame,
  ReadReceiptFrame,
  TypingFrame,
} from '../modules/chat/server-frames.ts'

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
  ReadReceiptFrame,
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

/** Spec 2.7. */
export type Notification = {
  id: string
  type: string
  title: string
  body: string
  data: Record<string, unknown>
  read: boolean
  created_at: string
}

/** Spec 2.6, without the messages. */
export type Ticket = {
  id: string
  subject: string
  status: 'open' | 'in_progress' | 'resolved' | 'closed'
  priority: 'low' | 'normal' | 'high' | 'urgent'
  category: 'billing' | 'technical' | 'account' | 'other' | null
  created_at: string
  updated_at: string
}

export type ServerFrame =
  | NewMessageFrame
  | TypingFrame
  | ReadReceiptFrame
  | ErrorFrame
  | AckFrame
  | ConversationReadFrame
  | { type: 'notification'; notification: Notification; unread_count: number }
  | { type: 'notifications_read'; unread_count: number }
  | { type: 'ticket_created'; ticket: Ticket }
  | { type: 'ticket_updated'; ticket: Ticket }
