// Made by scripts/client-types.ts from the descriptions of the service.

export type ErrorReason =
  | 'blocked'
  | 'confirm_required'
  | 'email_not_verified'
  | 'email_taken'
  | 'external_id_taken'
  | 'idempotency_mismatch'
  | 'last_admin'
  | 'login_throttled'
  | 'mail_throttled'
  | 'no_active_call'
  | 'not_a_host'
  | 'not_participant'
  | 'origin_not_allowed'
  | 'quota_exceeded'
  | 'recipient_gone'
  | 'registration_closed'
  | 'report_open'
  | 'resync'
  | 'role_required'
  | 'scope_required'
  | 'stale_ticket'
  | 'ticket_closed'
  | 'ticket_full'
  | 'totp_exists'
  | 'totp_invalid'
  | 'totp_required'

export interface Message {
  id: string
  conversation_id: string
  sender_id: string
  body: string
  type: 'text' | 'file'
  file_url: string | null
  file_name: string | null
  file_size: number | null
  file_type: string | null
  created_at: string
  /**
   * Present only on removed messages.
   */
  deleted_at?: string
}
export interface Report {
  id: string
  reporter: {
    id: string
    display_name: string
  }
  reported: {
    id: string
    display_name: string
  }
  message_id: string | null
  reason: 'spam' | 'harassment' | 'fraud' | 'sexual' | 'other'
  body: string | null
  status: 'open' | 'resolved'
  note: string | null
  resolved_by_id: string | null
  resolved_at: string | null
  created_at: string
}
export interface DeskTicketListItem {
  id: string
  subject: string
  status: 'open' | 'in_progress' | 'resolved' | 'closed'
  priority: 'low' | 'normal' | 'high' | 'urgent'
  category: 'billing' | 'technical' | 'account' | 'other'
  created_at: string
  updated_at: string
  user: {
    id: string
    display_name: string
    /**
     * Absent if the account was removed.
     */
    email?: string
  }
  assignee: {
    id: string
    display_name: string
  } | null
  message_count: number
  waiting_since: string | null
  first_response_at: string | null
}
export interface TicketListItem {
  id: string
  subject: string
  status: 'open' | 'in_progress' | 'resolved' | 'closed'
  priority: 'low' | 'normal' | 'high' | 'urgent'
  category: 'billing' | 'technical' | 'account' | 'other'
  created_at: string
  updated_at: string
}
/**
 * A flat object of texts. Each key may be absent, and there may be others.
 */
export interface NotificationData {
  /**
   * In calls and `payment_captured`.
   */
  call_session_id?: string
  /**
   * In `call_incoming` and `call_missed`.
   */
  host_id?: string
  /**
   * In `call_incoming` and `call_missed`.
   */
  host_name?: string
  /**
   * In `call_incoming` and `call_missed`.
   */
  guest_id?: string
  /**
   * In `call_incoming` and `call_missed`.
   */
  guest_name?: string
  /**
   * In `payment_captured`, `payout_completed` and `payout_failed`: a decimal number.
   */
  amount?: string
  /**
   * In `payment_captured`, `payout_completed` and `payout_failed`: three letters (ISO 4217).
   */
  currency?: string
  /**
   * In `follow_new`.
   */
  follower_id?: string
  /**
   * In `follow_new`.
   */
  follower_name?: string
  /**
   * In `support_reply`.
   */
  ticket_id?: string
  /**
   * In `support_reply`.
   */
  message_id?: string
  /**
   * In `broadcast`.
   */
  broadcast_id?: string
  [k: string]: string | undefined
}
export interface Notification {
  id: string
  type:
    | 'call_incoming'
    | 'call_missed'
    | 'payment_captured'
    | 'payout_completed'
    | 'payout_failed'
    | 'follow_new'
    | 'support_reply'
    | 'broadcast'
  title: string
  body: string
  data: NotificationData
  read: boolean
  created_at: string
}
export interface Health {
  status: string
  version: string
}
export interface Readiness {
  status: string
}
export interface Registration {
  email: string
  /**
   * Must not be a common password, or the address or name of the account.
   */
  password: string
  display_name?: string | null
}
export interface User {
  id: string
  email: string
  display_name: string
  role: 'guest' | 'user' | 'verified_user' | 'host' | 'admin'
  email_verified: boolean
  created_at: string
}
export interface Authenticated {
  user: User
  /**
   * A JWT signed with RS256.
   */
  access_token: string
  /**
   * Opaque, for one use.
   */
  refresh_token: string
  /**
   * Seconds until the access token expires.
   */
  expires_in: number
}
export interface SetUp {
  email: string
  /**
   * Must not be a common password, or the address or name of the account.
   */
  password: string
  display_name?: string | null
  token: string
}
export interface Credentials {
  email: string
  password: string
  code?: string | null
}
export interface RefreshTokenBody {
  refresh_token: string
}
export interface TokenSet {
  /**
   * A JWT signed with RS256.
   */
  access_token: string
  /**
   * Opaque, for one use.
   */
  refresh_token: string
  /**
   * Seconds until the access token expires.
   */
  expires_in: number
}
export interface Jwks {
  keys: {
    kty: string
    /**
     * The modulus, in base64url.
     */
    n: string
    e: string
    kid: string
    alg: string
    use: string
  }[]
}
export interface OneTimeTokenBody {
  token: string
}
export interface UserBody {
  user: User
}
export interface EmailBody {
  email: string
}
export interface PasswordReset {
  token: string
  /**
   * Must not be a common password, or the address or name of the account.
   */
  password: string
}
export interface PasswordChange {
  current_password?: string | null
  /**
   * Must not be a common password, or the address or name of the account.
   */
  new_password: string
}
export interface EmailChangeBody {
  new_email: string
  password?: string | null
}
export interface FactorSetUp {
  password?: string | null
}
export interface TotpSecret {
  /**
   * The secret in Base32, for manual entry in an authenticator.
   */
  secret: string
  /**
   * The secret as a URL, for a QR code.
   */
  otpauth_url: string
}
export interface FactorRemoval {
  password?: string | null
  /**
   * A code from the authenticator, or a recovery code.
   */
  code: string
}
export interface CodeBody {
  code: string
}
export interface RecoveryCodes {
  /**
   * Ten recovery codes, shown only this once.
   */
  recovery_codes: string[]
}
/**
 * Either the password or a code.
 */
export interface OwnerProof {
  password?: string | null
  code?: string | null
}
export interface Profile {
  id: string
  email: string
  display_name: string
  role: 'guest' | 'user' | 'verified_user' | 'host' | 'admin'
  email_verified: boolean
  created_at: string
  avatar_url: string
  locale: 'en' | 'de' | 'es' | 'fr' | 'pt'
  /**
   * Whether a login requires a code from an authenticator.
   */
  totp: boolean
  email_bounced_at: string | null
}
export interface ProfileUpdate {
  display_name?: string | null
  avatar_url?: string | null
  locale?: ('en' | 'de' | 'es' | 'fr' | 'pt') | null
}
export interface PasswordBody {
  password?: string | null
}
export interface ManagedUser {
  id: string
  email: string
  display_name: string
  role: 'guest' | 'user' | 'verified_user' | 'host' | 'admin'
  email_verified: boolean
  created_at: string
  avatar_url: string
  locale: 'en' | 'de' | 'es' | 'fr' | 'pt'
  /**
   * Whether a login requires a code from an authenticator.
   */
  totp: boolean
  email_bounced_at: string | null
  disabled: boolean
  external_id: string | null
}
export interface Session {
  id: string
  created_at: string
  last_used_at: string
  user_agent: string | null
  ip: string | null
  current: boolean
}
export interface Export {
  user: ManagedUser
  sessions: Session[]
  [k: string]: unknown
}
export interface Pagination {
  page: number
  per_page: number
  total: number
  total_pages: number
}
export interface CursorPagination {
  cursor: string | null
  has_more: boolean
  limit: number
}
export interface AccessUpdate {
  role?: ('guest' | 'user' | 'verified_user' | 'host' | 'admin') | null
  disabled?: boolean | null
  email_verified?: boolean | null
}
export interface NewPerson {
  email: string
  display_name?: string | null
  avatar_url?: string | null
  role?: ('guest' | 'user' | 'verified_user' | 'host' | 'admin') | null
  email_verified?: boolean | null
  external_id?: string | null
  locale?: ('en' | 'de' | 'es' | 'fr' | 'pt') | null
}
export interface PersonUpdate {
  role?: ('guest' | 'user' | 'verified_user' | 'host' | 'admin') | null
  disabled?: boolean | null
  email_verified?: boolean | null
  display_name?: string | null
  avatar_url?: string | null
  external_id?: string | null
}
export interface ServiceKey {
  id: string
  name: string
  scopes: ('notifications' | 'follows' | 'calls' | 'users' | 'sessions')[]
  created_at: string
  expires_at: string | null
  last_used_at: string | null
  revoked_at: string | null
}
export interface NewServiceKey {
  name: string
  /**
   * The operations allowed for the key. `all` means all scopes except `sessions`, which logs people in.
   *
   * @minItems 1
   */
  scopes: [
    'notifications' | 'follows' | 'calls' | 'users' | 'sessions' | 'all',
    ...('notifications' | 'follows' | 'calls' | 'users' | 'sessions' | 'all')[],
  ]
  expires_at?: string | null
}
export interface CreatedServiceKey {
  id: string
  name: string
  scopes: ('notifications' | 'follows' | 'calls' | 'users' | 'sessions')[]
  created_at: string
  expires_at: string | null
  last_used_at: string | null
  revoked_at: string | null
  /**
   * The key itself, shown only this once.
   */
  key: string
}
export interface FollowerImport {
  /**
   * @maxItems 1000
   */
  follower_ids: string[]
}
export interface ImportCounts {
  added: number
  already: number
  unknown: number
}
export interface CallUpdate {
  state: 'ringing' | 'active' | 'ended' | 'missed'
  /**
   * An id, or `ext:` and an external id.
   */
  host_id: string
  /**
   * An id, or `ext:` and an external id.
   */
  guest_id: string
}
export interface Call {
  call_session_id: string
  state: 'ringing' | 'active' | 'ended' | 'missed'
  host_id: string
  guest_id: string
  updated_at: string
}
export interface ConversationListItem {
  id: string
  participant: {
    id: string
    display_name: string
    avatar_url: string
  }
  last_message: {
    body: string
    type: 'text' | 'file'
    sent_at: string
  } | null
  unread_count: number
  participant_read_up_to: string | null
  /**
   * Whether its messages are not pushed.
   */
  muted: boolean
  updated_at: string
}
export interface NewConversation {
  /**
   * The other participant: a ULID, or the UUID of the same 128 bits.
   */
  user_id: string
}
export interface Conversation {
  id: string
  participant: {
    id: string
    display_name: string
  }
  unread_count: number
  created_at: string
}
export interface NewMessage {
  body: string
  file_url?: string | null
  file_name?: string | null
  file_size?: number | null
  file_type?: string | null
  client_id?: string | null
  type?: ('text' | 'file') | null
}
export interface ReadUpTo {
  message_id?: string | null
}
export interface Mute {
  until?: string | null
}
export interface UnreadCount {
  count: number
}
export interface NewBroadcast {
  body: string
  client_id?: string | null
}
export interface Broadcast {
  id: string
  body: string
  recipients_count: number
  status: 'processing' | 'completed'
  created_at: string
}
export interface BroadcastProgress {
  id: string
  body: string
  recipients_count: number
  status: 'processing' | 'completed'
  created_at: string
  delivered_count: number
}
export interface UploadedFile {
  id: string
  file_url: string
  file_name: string
  file_size: number
  file_type: string
}
export interface Block {
  user: {
    id: string
    display_name: string
    avatar_url: string
  }
  blocked_at: string
}
/**
 * About a user or a message.
 */
export interface NewReport {
  user_id?: string | null
  message_id?: string | null
  reason: 'spam' | 'harassment' | 'fraud' | 'sexual' | 'other'
  body?: string | null
}
export interface OwnReport {
  id: string
  status: 'open' | 'resolved'
  created_at: string
}
export interface ReportDetail {
  id: string
  reporter: {
    id: string
    display_name: string
  }
  reported: {
    id: string
    display_name: string
  }
  message_id: string | null
  reason: 'spam' | 'harassment' | 'fraud' | 'sexual' | 'other'
  body: string | null
  status: 'open' | 'resolved'
  note: string | null
  resolved_by_id: string | null
  resolved_at: string | null
  created_at: string
  messages: Message[] | null
}
export interface ReportUpdate {
  status?: ('open' | 'resolved') | null
  note?: string | null
}
export interface NewTicket {
  subject: string
  body: string
  category?: ('billing' | 'technical' | 'account' | 'other') | null
  priority?: ('low' | 'normal' | 'high' | 'urgent') | null
  attachments?:
    | []
    | [
        {
          file_url: string
        },
      ]
    | [
        {
          file_url: string
        },
        {
          file_url: string
        },
      ]
    | [
        {
          file_url: string
        },
        {
          file_url: string
        },
        {
          file_url: string
        },
      ]
    | [
        {
          file_url: string
        },
        {
          file_url: string
        },
        {
          file_url: string
        },
        {
          file_url: string
        },
      ]
    | [
        {
          file_url: string
        },
        {
          file_url: string
        },
        {
          file_url: string
        },
        {
          file_url: string
        },
        {
          file_url: string
        },
      ]
    | null
  client_id?: string | null
}
export interface TicketMessage {
  id: string
  body: string
  created_at: string
  is_admin: boolean
  /**
   * Present if the message has attachments.
   */
  attachments?: {
    id: string
    file_url: string
    file_name: string
    file_size: number
    file_type: string
  }[]
}
/**
 * A ticket with its newest messages, oldest first.
 */
export interface Ticket {
  id: string
  subject: string
  status: 'open' | 'in_progress' | 'resolved' | 'closed'
  priority: 'low' | 'normal' | 'high' | 'urgent'
  category: 'billing' | 'technical' | 'account' | 'other'
  created_at: string
  updated_at: string
  messages: TicketMessage[]
  /**
   * The cursor for the list of earlier messages; absent if there are none.
   */
  messages_before?: string
}
export interface NewTicketMessage {
  body: string
  attachments?:
    | []
    | [
        {
          file_url: string
        },
      ]
    | [
        {
          file_url: string
        },
        {
          file_url: string
        },
      ]
    | [
        {
          file_url: string
        },
        {
          file_url: string
        },
        {
          file_url: string
        },
      ]
    | [
        {
          file_url: string
        },
        {
          file_url: string
        },
        {
          file_url: string
        },
        {
          file_url: string
        },
      ]
    | [
        {
          file_url: string
        },
        {
          file_url: string
        },
        {
          file_url: string
        },
        {
          file_url: string
        },
        {
          file_url: string
        },
      ]
    | null
  client_id?: string | null
}
export interface TicketCounts {
  /**
   * Tickets that wait for an answer.
   */
  waiting: number
  /**
   * Tickets assigned to you, not closed.
   */
  mine: number
  /**
   * Unassigned tickets, not closed.
   */
  unassigned: number
  open: number
  in_progress: number
  resolved: number
  closed: number
  all: number
}
export interface DeskTicketMessage {
  id: string
  body: string
  created_at: string
  is_admin: boolean
  /**
   * Present if the message has attachments.
   */
  attachments?: {
    id: string
    file_url: string
    file_name: string
    file_size: number
    file_type: string
  }[]
  author: {
    id: string
    display_name: string
  }
}
export interface TicketNote {
  id: string
  body: string
  created_at: string
  author: {
    id: string
    display_name: string
  }
}
export interface TicketHistoryEntry {
  id: string
  at: string
  field: 'status' | 'priority' | 'assignee'
  from: string | null
  to: string | null
  actor:
    | {
        type: 'user'
        id: string
        display_name: string
      }
    | {
        type: 'system'
      }
}
/**
 * A ticket with its newest messages, notes and changes, oldest first.
 */
export interface DeskTicket {
  id: string
  subject: string
  status: 'open' | 'in_progress' | 'resolved' | 'closed'
  priority: 'low' | 'normal' | 'high' | 'urgent'
  category: 'billing' | 'technical' | 'account' | 'other'
  created_at: string
  updated_at: string
  user: {
    id: string
    display_name: string
    /**
     * Absent if the account was removed.
     */
    email?: string
  }
  assignee: {
    id: string
    display_name: string
  } | null
  message_count: number
  waiting_since: string | null
  first_response_at: string | null
  messages: DeskTicketMessage[]
  /**
   * The cursor for the list of earlier messages; absent if there are none.
   */
  messages_before?: string
  notes: TicketNote[]
  history: TicketHistoryEntry[]
}
/**
 * `assigned_to` is an alias of `assignee_id`, which takes precedence.
 */
export interface TicketUpdate {
  status?: ('open' | 'in_progress' | 'resolved' | 'closed') | null
  priority?: ('low' | 'normal' | 'high' | 'urgent') | null
  assignee_id?: string | null
  assigned_to?: string | null
}
export interface NewTicketReply {
  body: string
  attachments?:
    | []
    | [
        {
          file_url: string
        },
      ]
    | [
        {
          file_url: string
        },
        {
          file_url: string
        },
      ]
    | [
        {
          file_url: string
        },
        {
          file_url: string
        },
        {
          file_url: string
        },
      ]
    | [
        {
          file_url: string
        },
        {
          file_url: string
        },
        {
          file_url: string
        },
        {
          file_url: string
        },
      ]
    | [
        {
          file_url: string
        },
        {
          file_url: string
        },
        {
          file_url: string
        },
        {
          file_url: string
        },
        {
          file_url: string
        },
      ]
    | null
  client_id?: string | null
  status?: ('open' | 'in_progress' | 'resolved' | 'closed') | null
  last_message_id?: string | null
}
export interface NewTicketNote {
  body: string
}
export interface CannedReply {
  id: string
  title: string
  body: string
}
export interface NewCannedReply {
  title: string
  body: string
}
export interface CannedReplyUpdate {
  title?: string | null
  body?: string | null
}
export interface NotificationPreferences {
  call_incoming: {
    in_app: boolean
    push: boolean
    email: boolean
  }
  call_missed: {
    in_app: boolean
    push: boolean
    email: boolean
  }
  payment_captured: {
    in_app: boolean
    push: boolean
    email: boolean
  }
  payout_completed: {
    in_app: boolean
    push: boolean
    email: boolean
  }
  payout_failed: {
    in_app: boolean
    push: boolean
    email: boolean
  }
  follow_new: {
    in_app: boolean
    push: boolean
    email: boolean
  }
  support_reply: {
    in_app: boolean
    push: boolean
    email: boolean
  }
  broadcast: {
    in_app: boolean
    push: boolean
    email: boolean
  }
  chat_message: {
    push: boolean
  }
}
export interface NotificationPreferencesUpdate {
  call_incoming?: {
    in_app?: boolean | null
    push?: boolean | null
    email?: boolean | null
  } | null
  call_missed?: {
    in_app?: boolean | null
    push?: boolean | null
    email?: boolean | null
  } | null
  payment_captured?: {
    in_app?: boolean | null
    push?: boolean | null
    email?: boolean | null
  } | null
  payout_completed?: {
    in_app?: boolean | null
    push?: boolean | null
    email?: boolean | null
  } | null
  payout_failed?: {
    in_app?: boolean | null
    push?: boolean | null
    email?: boolean | null
  } | null
  follow_new?: {
    in_app?: boolean | null
    push?: boolean | null
    email?: boolean | null
  } | null
  support_reply?: {
    in_app?: boolean | null
    push?: boolean | null
    email?: boolean | null
  } | null
  broadcast?: {
    in_app?: boolean | null
    push?: boolean | null
    email?: boolean | null
  } | null
  chat_message?: {
    push?: boolean | null
  } | null
}
export interface WebPushKey {
  public_key: string
}
export interface NewPushToken {
  /**
   * A token from FCM, or for `web` also a PushSubscription as JSON.
   */
  token: string
  platform: 'ios' | 'android' | 'web'
}
export interface PushToken {
  id: string
  token: string
  platform: 'ios' | 'android' | 'web'
  created_at: string
}
/**
 * With `user_id` or `user_ids`.
 */
export interface NewNotification {
  user_id?: string | null
  user_ids?: [string, ...string[]] | null
  type:
    | 'call_incoming'
    | 'call_missed'
    | 'payment_captured'
    | 'payout_completed'
    | 'payout_failed'
    | 'follow_new'
    | 'support_reply'
    | 'broadcast'
  title?: string | null
  body?: string | null
  data?: {
    [k: string]: string
  } | null
  dedupe_key?: string | null
}
export interface NotifyResult {
  data: Notification[]
  duplicates: number
  muted: number
}
export interface NewAnnouncement {
  audience: 'all' | 'role' | 'users'
  role?: ('guest' | 'user' | 'verified_user' | 'host' | 'admin') | null
  user_ids?: [string, ...string[]] | null
  title: string
  body: string
  data?: {
    [k: string]: string
  } | null
  client_id?: string | null
}
export interface Announcement {
  broadcast_id: string
  recipients_count: number
  status: 'processing' | 'completed'
}
export interface AnnouncementProgress {
  broadcast_id: string
  recipients_count: number
  status: 'processing' | 'completed'
  delivered_count: number
  audience: 'all' | 'role' | 'users'
  /**
   * The role, if the audience is a role.
   */
  role: ('guest' | 'user' | 'verified_user' | 'host' | 'admin') | null
  title: string
  body: string
  sender: {
    id: string
    display_name: string
  }
  created_at: string
  completed_at: string | null
}
export interface Webhook {
  id: string
  url: string
  events: (
    | 'user.created'
    | 'user.updated'
    | 'user.deleted'
    | 'message.created'
    | 'message.deleted'
    | 'ticket.created'
    | 'ticket.replied'
    | 'ticket.updated'
    | 'report.created'
    | 'notification.created'
    | 'broadcast.completed'
  )[]
  description: string | null
  enabled: boolean
  failing_since: string | null
  disabled_at: string | null
  created_at: string
}
export interface NewWebhook {
  url: string
  /**
   * @minItems 1
   * @maxItems 100
   */
  events: [
    (
      | 'user.created'
      | 'user.updated'
      | 'user.deleted'
      | 'message.created'
      | 'message.deleted'
      | 'ticket.created'
      | 'ticket.replied'
      | 'ticket.updated'
      | 'report.created'
      | 'notification.created'
      | 'broadcast.completed'
    ),
    ...(
      | 'user.created'
      | 'user.updated'
      | 'user.deleted'
      | 'message.created'
      | 'message.deleted'
      | 'ticket.created'
      | 'ticket.replied'
      | 'ticket.updated'
      | 'report.created'
      | 'notification.created'
      | 'broadcast.completed'
    )[],
  ]
  description?: string | null
}
export interface WebhookWithSecret {
  id: string
  url: string
  events: (
    | 'user.created'
    | 'user.updated'
    | 'user.deleted'
    | 'message.created'
    | 'message.deleted'
    | 'ticket.created'
    | 'ticket.replied'
    | 'ticket.updated'
    | 'report.created'
    | 'notification.created'
    | 'broadcast.completed'
  )[]
  description: string | null
  enabled: boolean
  failing_since: string | null
  disabled_at: string | null
  created_at: string
  /**
   * The secret that signs deliveries, shown only this once.
   */
  secret: string
}
export interface WebhookUpdate {
  url?: string | null
  events?:
    | [
        (
          | 'user.created'
          | 'user.updated'
          | 'user.deleted'
          | 'message.created'
          | 'message.deleted'
          | 'ticket.created'
          | 'ticket.replied'
          | 'ticket.updated'
          | 'report.created'
          | 'notification.created'
          | 'broadcast.completed'
        ),
        ...(
          | 'user.created'
          | 'user.updated'
          | 'user.deleted'
          | 'message.created'
          | 'message.deleted'
          | 'ticket.created'
          | 'ticket.replied'
          | 'ticket.updated'
          | 'report.created'
          | 'notification.created'
          | 'broadcast.completed'
        )[],
      ]
    | null
  description?: string | null
  enabled?: boolean | null
}
export interface WebhookTest {
  status: 'delivered' | 'failed'
  response_status: number | null
  response: string | null
}
export interface WebhookDelivery {
  /**
   * The `webhook-id` of each attempt.
   */
  id: string
  type: string
  status: 'waiting' | 'delivered' | 'failed'
  attempts: number
  response_status: number | null
  response: string | null
  created_at: string
  attempted_at: string
}
export interface Minute {
  at: string
  requests: number
  /**
   * Responses with 5xx.
   */
  failed: number
  /**
   * Frames from clients.
   */
  frames: number
  p50_ms: number | null
  p99_ms: number | null
}
/**
 * The last success and failure since the start.
 */
export interface Deliveries {
  configured: boolean
  last_sent_at: string | null
  last_failed_at: string | null
  last_error: string | null
}
export interface Replication {
  role: 'leader' | 'standby'
  ack: 'disk' | 'bucket'
  /**
   * Whether a standby may take over.
   */
  standby_allowed: boolean
  /**
   * Increases each time a node becomes the leader.
   */
  epoch: number | null
  /**
   * The position of the newest stored log entry.
   */
  position: number | null
  /**
   * The age of the oldest change that is not in the bucket yet.
   */
  lag_seconds: number
  last_stored_at: string | null
  last_snapshot_at: string | null
  /**
   * Failed requests to the bucket since the start.
   */
  failures: number
  last_failed_at: string | null
  last_error: string | null
}
export interface System {
  version: string
  started_at: string
  uptime_seconds: number
  database_bytes: number
  wal_bytes: number
  free_disk_bytes: number
  sockets: number
  socket_users: number
  last_hour: Minute[]
  outbox: {
    kind: string
    state: 'waiting' | 'dead'
    count: number
  }[]
  mail: Deliveries
  push: Deliveries
  webhooks: {
    total: number
    disabled: number
    /**
     * Enabled webhooks to which nothing has been delivered since their last failure.
     */
    failing: number
  }
  /**
   * Null without a bucket.
   */
  replication: Replication | null
  last_backup_at: string | null
  warnings: {
    code: string
    message: string
  }[]
}
export interface AuditEntry {
  id: string
  at: string
  action: string
  actor: {
    type: string | null
    id: string | null
  }
  target: {
    type: string | null
    id: string | null
  }
  ip: string | null
  details: {
    [k: string]: string
  } | null
}
export interface Job {
  id: string
  kind: string
  state: 'waiting' | 'dead'
  attempts: number
  last_error: string | null
  run_at: string
}
export interface ErrorBody {
  error: {
    code:
      | 'validation_error'
      | 'unauthorized'
      | 'invalid_credentials'
      | 'invalid_token'
      | 'payment_provider_error'
      | 'forbidden'
      | 'not_found'
      | 'conflict'
      | 'rate_limited'
      | 'internal_error'
    /**
     * For people, in the language of Accept-Language.
     */
    message: string
    /**
     * When the code is validation_error, each wrong field by its path, such as `body`, `data.amount` or `user_ids.3`, to its message; else null.
     */
    details: {
      [k: string]: string
    } | null
  }
}
export interface Operations {
  /**
   * Reports that the process is running.
   */
  'GET /healthz': {
    answer: Health
  }
  /**
   * Reports whether the server takes requests.
   */
  'GET /readyz': {
    answer: Readiness
  }
  /**
   * Shows metrics as Prometheus text.
   */
  'GET /metrics': {
    answer: null
  }
  /**
   * Opens the chat channel (WebSocket).
   */
  'GET /v1/chat/ws': {
    query?: {
      /**
       * Groups of additional frames, comma-separated: ack, read, changes, support, notification.
       */
      events?: string
      /**
       * Id of a message. The socket first sends the messages after it.
       */
      since?: string
    }
    answer: null
  }
  /**
   * Describes this interface (OpenAPI 3.1).
   */
  'GET /v1/openapi.json': {
    answer: {
      [k: string]: unknown
    }
  }
  /**
   * Describes the WebSocket channel (AsyncAPI 3.0).
   */
  'GET /v1/asyncapi.json': {
    answer: {
      [k: string]: unknown
    }
  }
  /**
   * Registers a new account and logs it in.
   */
  'POST /v1/auth/register': {
    body: Registration
    answer: Authenticated
  }
  /**
   * Creates the first admin.
   */
  'POST /v1/auth/set-up': {
    body: SetUp
    answer: Authenticated
  }
  /**
   * Logs in.
   */
  'POST /v1/auth/login': {
    body: Credentials
    answer: Authenticated
  }
  /**
   * Exchanges a refresh token for a new token set.
   */
  'POST /v1/auth/refresh': {
    body: RefreshTokenBody
    answer: TokenSet
  }
  /**
   * Logs out.
   */
  'POST /v1/auth/logout': {
    body: RefreshTokenBody
    answer: null
  }
  /**
   * Shows the public keys of the access tokens (JWKS).
   */
  'GET /.well-known/jwks.json': {
    answer: Jwks
  }
  /**
   * Shows the public keys of the access tokens (JWKS).
   */
  'GET /v1/.well-known/jwks.json': {
    answer: Jwks
  }
  /**
   * Verifies an e-mail address with the token from the mailed link.
   */
  'POST /v1/auth/verify-email': {
    body: OneTimeTokenBody
    answer: UserBody
  }
  /**
   * Sends the verification mail again.
   */
  'POST /v1/auth/verify-email/resend': {
    answer: null
  }
  /**
   * Mails a link for setting a new password.
   */
  'POST /v1/auth/password/forgot': {
    body: EmailBody
    answer: null
  }
  /**
   * Sets a new password with the token from the mailed link.
   */
  'POST /v1/auth/password/reset': {
    body: PasswordReset
    answer: null
  }
  /**
   * Changes the password.
   */
  'POST /v1/auth/password/change': {
    body: PasswordChange
    answer: null
  }
  /**
   * Requests a change of the e-mail address: mails a link to the new address.
   */
  'POST /v1/auth/email/change': {
    body: EmailChangeBody
    answer: null
  }
  /**
   * Confirms a new e-mail address with the token from the mailed link.
   */
  'POST /v1/auth/email/confirm': {
    body: OneTimeTokenBody
    answer: UserBody
  }
  /**
   * Restores the former e-mail address with the token from the link mailed to it.
   */
  'POST /v1/auth/email/undo': {
    body: OneTimeTokenBody
    answer: null
  }
  /**
   * Creates a secret for an authenticator.
   */
  'POST /v1/auth/totp': {
    body?: FactorSetUp
    answer: TotpSecret
  }
  /**
   * Disables the second factor.
   */
  'DELETE /v1/auth/totp': {
    body: FactorRemoval
    answer: null
  }
  /**
   * Enables the second factor with a first code.
   */
  'POST /v1/auth/totp/confirm': {
    body: CodeBody
    answer: RecoveryCodes
  }
  /**
   * Confirms the session with the password or a code from the authenticator.
   */
  'POST /v1/auth/confirm': {
    body: OwnerProof
    answer: null
  }
  /**
   * Shows your own profile.
   */
  'GET /v1/users/me': {
    answer: Profile
  }
  /**
   * Changes your own profile.
   */
  'PATCH /v1/users/me': {
    body: ProfileUpdate
    answer: Profile
  }
  /**
   * Removes your own account.
   */
  'DELETE /v1/users/me': {
    body: PasswordBody
    answer: null
  }
  /**
   * Exports all data stored about you.
   */
  'GET /v1/users/me/export': {
    answer: Export
  }
  /**
   * Lists your sessions, one for each logged-in device.
   */
  'GET /v1/auth/sessions': {
    query?: {
      page?: number
      /**
       * Values above 100 count as 100.
       */
      per_page?: number
      /**
       * The page size in the cursor form; selects that form.
       */
      limit?: number
      /**
       * `pagination.cursor` of the previous page.
       */
      cursor?: string
    }
    answer:
      | {
          success: true
          data: Session[]
          pagination: Pagination
        }
      | {
          data: Session[]
          pagination: CursorPagination
        }
  }
  /**
   * Logs a device out.
   */
  'DELETE /v1/auth/sessions/{id}': {
    params: {
      id: string
    }
    answer: null
  }
  /**
   * Finds people, the oldest account first.
   */
  'GET /v1/admin/users': {
    query?: {
      page?: number
      /**
       * Values above 100 count as 100.
       */
      per_page?: number
      /**
       * The page size in the cursor form; selects that form.
       */
      limit?: number
      /**
       * `pagination.cursor` of the previous page.
       */
      cursor?: string
      /**
       * Any part of a name or an address, ignoring accents and case; one or two characters match only the beginning. An id or external id also matches. `total` and numbered pages end at 1000; the cursor form continues.
       */
      q?: string
      role?: 'guest' | 'user' | 'verified_user' | 'host' | 'admin'
      disabled?: boolean
      email_verified?: boolean
    }
    answer:
      | {
          success: true
          data: ManagedUser[]
          pagination: Pagination
        }
      | {
          data: ManagedUser[]
          pagination: CursorPagination
        }
  }
  /**
   * Shows a person.
   */
  'GET /v1/admin/users/{id}': {
    params: {
      id: string
    }
    answer: ManagedUser
  }
  /**
   * Changes the role of a person, disables or enables them, or verifies the address.
   */
  'PATCH /v1/admin/users/{id}': {
    params: {
      id: string
    }
    body: AccessUpdate
    answer: ManagedUser
  }
  /**
   * Removes a person.
   */
  'DELETE /v1/admin/users/{id}': {
    params: {
      id: string
    }
    answer: null
  }
  /**
   * Exports all data stored about a person.
   */
  'GET /v1/admin/users/{id}/export': {
    params: {
      id: string
    }
    answer: Export
  }
  /**
   * Mails a person a link for setting a new password.
   */
  'POST /v1/admin/users/{id}/password-reset': {
    params: {
      id: string
    }
    answer: null
  }
  /**
   * Lists the sessions of a person, one for each logged-in device.
   */
  'GET /v1/admin/users/{id}/sessions': {
    params: {
      id: string
    }
    query?: {
      page?: number
      /**
       * Values above 100 count as 100.
       */
      per_page?: number
      /**
       * The page size in the cursor form; selects that form.
       */
      limit?: number
      /**
       * `pagination.cursor` of the previous page.
       */
      cursor?: string
    }
    answer:
      | {
          success: true
          data: Session[]
          pagination: Pagination
        }
      | {
          data: Session[]
          pagination: CursorPagination
        }
  }
  /**
   * Logs a person out on every device.
   */
  'DELETE /v1/admin/users/{id}/sessions': {
    params: {
      id: string
    }
    answer: null
  }
  /**
   * Removes the second factor of a person, who is notified by mail.
   */
  'DELETE /v1/admin/users/{id}/totp': {
    params: {
      id: string
    }
    answer: null
  }
  /**
   * Finds a person by e-mail address, external id, or both.
   */
  'GET /v1/service/users': {
    query?: {
      page?: number
      /**
       * Values above 100 count as 100.
       */
      per_page?: number
      email?: string
      /**
       * The id of the person in the rest of the platform. The feed accepts `ext:` followed by this id.
       */
      external_id?: string
    }
    answer:
      | {
          success: true
          data: ManagedUser[]
          pagination: Pagination
        }
      | {
          data: ManagedUser[]
          pagination: CursorPagination
        }
  }
  /**
   * Creates a person.
   */
  'POST /v1/service/users': {
    body: NewPerson
    answer: ManagedUser
  }
  /**
   * Shows a person.
   */
  'GET /v1/service/users/{id}': {
    params: {
      id: string
    }
    answer: ManagedUser
  }
  /**
   * Changes a person’s role, status or profile.
   */
  'PATCH /v1/service/users/{id}': {
    params: {
      id: string
    }
    body: PersonUpdate
    answer: ManagedUser
  }
  /**
   * Creates a session for a person whom the platform has authenticated.
   */
  'POST /v1/service/users/{id}/sessions': {
    params: {
      id: string
    }
    answer: Authenticated
  }
  /**
   * Lists service keys including revoked ones, newest first.
   */
  'GET /v1/admin/service-keys': {
    query?: {
      page?: number
      /**
       * Values above 100 count as 100.
       */
      per_page?: number
      /**
       * The page size in the cursor form; selects that form.
       */
      limit?: number
      /**
       * `pagination.cursor` of the previous page.
       */
      cursor?: string
    }
    answer:
      | {
          success: true
          data: ServiceKey[]
          pagination: Pagination
        }
      | {
          data: ServiceKey[]
          pagination: CursorPagination
        }
  }
  /**
   * Creates a service key.
   */
  'POST /v1/admin/service-keys': {
    body: NewServiceKey
    answer: CreatedServiceKey
  }
  /**
   * Revokes a service key.
   */
  'DELETE /v1/admin/service-keys/{id}': {
    params: {
      id: string
    }
    answer: null
  }
  /**
   * Makes a person follow a host.
   */
  'PUT /v1/service/follows/{host_id}/{follower_id}': {
    params: {
      host_id: string
      follower_id: string
    }
    answer: null
  }
  /**
   * Removes a follower of a host.
   */
  'DELETE /v1/service/follows/{host_id}/{follower_id}': {
    params: {
      host_id: string
      follower_id: string
    }
    answer: null
  }
  /**
   * Imports followers of a host, up to 1,000 at once.
   */
  'PUT /v1/service/follows/{host_id}': {
    params: {
      host_id: string
    }
    body: FollowerImport
    answer: ImportCounts
  }
  /**
   * Reports the state of a call.
   */
  'PUT /v1/service/calls/{call_session_id}': {
    params: {
      call_session_id: string
    }
    body: CallUpdate
    answer: Call
  }
  /**
   * Lists conversations, most recent activity first.
   */
  'GET /v1/chat/conversations': {
    query?: {
      page?: number
      /**
       * Values above 100 count as 100.
       */
      per_page?: number
      /**
       * The page size in the cursor form; selects that form.
       */
      limit?: number
      /**
       * `pagination.cursor` of the previous page.
       */
      cursor?: string
    }
    answer:
      | {
          success: true
          data: ConversationListItem[]
          pagination: Pagination
        }
      | {
          data: ConversationListItem[]
          pagination: CursorPagination
        }
  }
  /**
   * Opens the conversation with another user, or returns the existing one.
   */
  'POST /v1/chat/conversations': {
    body: NewConversation
    answer: Conversation
  }
  /**
   * Lists messages sent or received after the message `since`, oldest first, so that a client can catch up.
   */
  'GET /v1/chat/messages': {
    query?: {
      /**
       * The page size in the cursor form; selects that form.
       */
      limit?: number
      /**
       * `pagination.cursor` of the previous page.
       */
      cursor?: string
      /**
       * Id of a message. Without it the list starts with the first message.
       */
      since?: string
    }
    answer: {
      data: Message[]
      pagination: CursorPagination
    }
  }
  /**
   * Lists the messages of a conversation, newest first.
   */
  'GET /v1/chat/conversations/{id}/messages': {
    params: {
      id: string
    }
    query?: {
      page?: number
      /**
       * Values above 100 count as 100.
       */
      per_page?: number
      /**
       * The page size in the cursor form; selects that form.
       */
      limit?: number
      /**
       * `pagination.cursor` of the previous page.
       */
      cursor?: string
    }
    answer:
      | {
          success: true
          data: Message[]
          pagination: Pagination
        }
      | {
          data: Message[]
          pagination: CursorPagination
        }
  }
  /**
   * Sends a message to the sockets of both users, and a push to the receiver’s devices.
   */
  'POST /v1/chat/conversations/{id}/messages': {
    params: {
      id: string
    }
    body: NewMessage
    answer: Message
  }
  /**
   * Marks a conversation as read, up to `message_id` or, without it, to the end.
   */
  'PUT /v1/chat/conversations/{id}/read': {
    params: {
      id: string
    }
    body?: ReadUpTo
    answer: null
  }
  /**
   * Mutes a conversation.
   */
  'PUT /v1/chat/conversations/{id}/mute': {
    params: {
      id: string
    }
    body?: Mute
    answer: null
  }
  /**
   * Unmutes a conversation.
   */
  'DELETE /v1/chat/conversations/{id}/mute': {
    params: {
      id: string
    }
    answer: null
  }
  /**
   * Removes a message of your own.
   */
  'DELETE /v1/chat/conversations/{id}/messages/{message_id}': {
    params: {
      id: string
      message_id: string
    }
    answer: null
  }
  /**
   * Counts the unread messages of all conversations.
   */
  'GET /v1/chat/unread-count': {
    answer: UnreadCount
  }
  /**
   * Sends a message to every follower.
   */
  'POST /v1/chat/broadcast': {
    body: NewBroadcast
    answer: Broadcast
  }
  /**
   * Shows the progress of a broadcast of your own.
   */
  'GET /v1/chat/broadcasts/{id}': {
    params: {
      id: string
    }
    answer: BroadcastProgress
  }
  /**
   * Uploads a file, either as the body with its type as Content-Type, or as the field `file` of a form.
   */
  'POST /v1/files': {
    answer: UploadedFile
  }
  /**
   * Downloads a file.
   */
  'GET /v1/files/{id}/{name}': {
    params: {
      id: string
      name: string
    }
    answer: null
  }
  /**
   * Removes a file of your own, also from messages, tickets and your profile.
   */
  'DELETE /v1/files/{id}': {
    params: {
      id: string
    }
    answer: null
  }
  /**
   * Removes any file with its bytes, also from messages, tickets, profiles and reports.
   */
  'DELETE /v1/admin/files/{id}': {
    params: {
      id: string
    }
    answer: null
  }
  /**
   * Lists the people you have blocked, newest block first.
   */
  'GET /v1/users/blocks': {
    query?: {
      page?: number
      /**
       * Values above 100 count as 100.
       */
      per_page?: number
      /**
       * The page size in the cursor form; selects that form.
       */
      limit?: number
      /**
       * `pagination.cursor` of the previous page.
       */
      cursor?: string
    }
    answer:
      | {
          success: true
          data: Block[]
          pagination: Pagination
        }
      | {
          data: Block[]
          pagination: CursorPagination
        }
  }
  /**
   * Blocks a person.
   */
  'PUT /v1/users/blocks/{user_id}': {
    params: {
      user_id: string
    }
    answer: null
  }
  /**
   * Unblocks a person.
   */
  'DELETE /v1/users/blocks/{user_id}': {
    params: {
      user_id: string
    }
    answer: null
  }
  /**
   * Reports a person or a message to the desk.
   */
  'POST /v1/reports': {
    body: NewReport
    answer: OwnReport
  }
  /**
   * Lists reports, newest first.
   */
  'GET /v1/admin/reports': {
    query?: {
      page?: number
      /**
       * Values above 100 count as 100.
       */
      per_page?: number
      /**
       * The page size in the cursor form; selects that form.
       */
      limit?: number
      /**
       * `pagination.cursor` of the previous page.
       */
      cursor?: string
      status?: 'open' | 'resolved'
    }
    answer:
      | {
          success: true
          data: Report[]
          pagination: Pagination
        }
      | {
          data: Report[]
          pagination: CursorPagination
        }
  }
  /**
   * Shows a report with the messages around the reported one.
   */
  'GET /v1/admin/reports/{id}': {
    params: {
      id: string
    }
    answer: ReportDetail
  }
  /**
   * Resolves a report or adds a note to it.
   */
  'PATCH /v1/admin/reports/{id}': {
    params: {
      id: string
    }
    body: ReportUpdate
    answer: ReportDetail
  }
  /**
   * Removes a message.
   */
  'DELETE /v1/admin/messages/{id}': {
    params: {
      id: string
    }
    answer: null
  }
  /**
   * Opens a ticket.
   */
  'POST /v1/support/tickets': {
    body: NewTicket
    answer: Ticket
  }
  /**
   * Lists your own tickets, newest first.
   */
  'GET /v1/support/tickets': {
    query?: {
      page?: number
      /**
       * Values above 100 count as 100.
       */
      per_page?: number
      /**
       * The page size in the cursor form; selects that form.
       */
      limit?: number
      /**
       * `pagination.cursor` of the previous page.
       */
      cursor?: string
    }
    answer:
      | {
          success: true
          data: TicketListItem[]
          pagination: Pagination
        }
      | {
          data: TicketListItem[]
          pagination: CursorPagination
        }
  }
  /**
   * Shows a ticket of your own with its newest messages.
   */
  'GET /v1/support/tickets/{id}': {
    params: {
      id: string
    }
    answer: Ticket
  }
  /**
   * Lists the messages of a ticket of your own, newest first.
   */
  'GET /v1/support/tickets/{id}/messages': {
    params: {
      id: string
    }
    query?: {
      page?: number
      /**
       * Values above 100 count as 100.
       */
      per_page?: number
      /**
       * The page size in the cursor form; selects that form.
       */
      limit?: number
      /**
       * `pagination.cursor` of the previous page.
       */
      cursor?: string
    }
    answer:
      | {
          success: true
          data: TicketMessage[]
          pagination: Pagination
        }
      | {
          data: TicketMessage[]
          pagination: CursorPagination
        }
  }
  /**
   * Adds a message to your own ticket.
   */
  'POST /v1/support/tickets/{id}/messages': {
    params: {
      id: string
    }
    body: NewTicketMessage
    answer: TicketMessage
  }
  /**
   * Closes a ticket of your own.
   */
  'POST /v1/support/tickets/{id}/close': {
    params: {
      id: string
    }
    answer: Ticket
  }
  /**
   * Lists all tickets.
   */
  'GET /v1/admin/support/tickets': {
    query?: {
      page?: number
      /**
       * Values above 100 count as 100.
       */
      per_page?: number
      /**
       * The page size in the cursor form; selects that form.
       */
      limit?: number
      /**
       * `pagination.cursor` of the previous page.
       */
      cursor?: string
      /**
       * One or several of `open`, `in_progress`, `resolved`, `closed`, comma-separated. Matches tickets with any of these.
       */
      status?: string
      /**
       * `true` shows only tickets that wait for an answer of the desk (`waiting_since` is not null), `false` only the others.
       */
      waiting?: boolean
      priority?: 'low' | 'normal' | 'high' | 'urgent'
      category?: 'billing' | 'technical' | 'account' | 'other'
      /**
       * The id of an admin, `me`, or `none`.
       */
      assignee_id?: string
      /**
       * The id of the person who opened the ticket.
       */
      user_id?: string
      /**
       * Up to 8 words that are all in the ticket, the last one as a beginning; accents and case do not matter. The newest ticket comes first. `total` and numbered pages end at 200; the cursor form continues.
       */
      q?: string
    }
    answer:
      | {
          success: true
          data: DeskTicketListItem[]
          pagination: Pagination
        }
      | {
          data: DeskTicketListItem[]
          pagination: CursorPagination
        }
  }
  /**
   * Counts tickets for the views of a desk.
   */
  'GET /v1/admin/support/counts': {
    answer: TicketCounts
  }
  /**
   * Shows a ticket with its newest messages, its notes and its history.
   */
  'GET /v1/admin/support/tickets/{id}': {
    params: {
      id: string
    }
    answer: DeskTicket
  }
  /**
   * Changes status, priority or assignee of a ticket.
   */
  'PATCH /v1/admin/support/tickets/{id}': {
    params: {
      id: string
    }
    body: TicketUpdate
    answer: DeskTicket
  }
  /**
   * Lists the messages of a ticket, newest first.
   */
  'GET /v1/admin/support/tickets/{id}/messages': {
    params: {
      id: string
    }
    query?: {
      page?: number
      /**
       * Values above 100 count as 100.
       */
      per_page?: number
      /**
       * The page size in the cursor form; selects that form.
       */
      limit?: number
      /**
       * `pagination.cursor` of the previous page.
       */
      cursor?: string
    }
    answer:
      | {
          success: true
          data: DeskTicketMessage[]
          pagination: Pagination
        }
      | {
          data: DeskTicketMessage[]
          pagination: CursorPagination
        }
  }
  /**
   * Answers a ticket and notifies its owner.
   */
  'POST /v1/admin/support/tickets/{id}/messages': {
    params: {
      id: string
    }
    body: NewTicketReply
    answer: DeskTicketMessage
  }
  /**
   * Adds a note that only admins see.
   */
  'POST /v1/admin/support/tickets/{id}/notes': {
    params: {
      id: string
    }
    body: NewTicketNote
    answer: TicketNote
  }
  /**
   * Lists canned replies, oldest first.
   */
  'GET /v1/admin/support/canned-replies': {
    query?: {
      page?: number
      /**
       * Values above 100 count as 100.
       */
      per_page?: number
      /**
       * The page size in the cursor form; selects that form.
       */
      limit?: number
      /**
       * `pagination.cursor` of the previous page.
       */
      cursor?: string
    }
    answer:
      | {
          success: true
          data: CannedReply[]
          pagination: Pagination
        }
      | {
          data: CannedReply[]
          pagination: CursorPagination
        }
  }
  /**
   * Creates a canned reply.
   */
  'POST /v1/admin/support/canned-replies': {
    body: NewCannedReply
    answer: CannedReply
  }
  /**
   * Changes a canned reply.
   */
  'PATCH /v1/admin/support/canned-replies/{id}': {
    params: {
      id: string
    }
    body: CannedReplyUpdate
    answer: CannedReply
  }
  /**
   * Removes a canned reply.
   */
  'DELETE /v1/admin/support/canned-replies/{id}': {
    params: {
      id: string
    }
    answer: null
  }
  /**
   * Lists notifications, newest first.
   */
  'GET /v1/notifications': {
    query?: {
      page?: number
      /**
       * Values above 100 count as 100.
       */
      per_page?: number
      /**
       * The page size in the cursor form; selects that form.
       */
      limit?: number
      /**
       * `pagination.cursor` of the previous page.
       */
      cursor?: string
      /**
       * `true` lists only unread notifications.
       */
      unread?: boolean
    }
    answer:
      | {
          success: true
          data: Notification[]
          pagination: Pagination
        }
      | {
          data: Notification[]
          pagination: CursorPagination
        }
  }
  /**
   * Counts unread notifications.
   */
  'GET /v1/notifications/unread-count': {
    answer: UnreadCount
  }
  /**
   * Marks a notification as read.
   */
  'PUT /v1/notifications/{id}/read': {
    params: {
      id: string
    }
    answer: null
  }
  /**
   * Marks every notification as read.
   */
  'PUT /v1/notifications/read-all': {
    answer: null
  }
  /**
   * Shows the enabled channels for each type of notification.
   */
  'GET /v1/notifications/preferences': {
    answer: NotificationPreferences
  }
  /**
   * Enables or disables channels for each type of notification.
   */
  'PUT /v1/notifications/preferences': {
    body: NotificationPreferencesUpdate
    answer: NotificationPreferences
  }
  /**
   * Shows the key with which browsers subscribe to Web Push.
   */
  'GET /v1/notifications/web-push-key': {
    answer: WebPushKey
  }
  /**
   * Registers a device for pushes until this session ends.
   */
  'POST /v1/notifications/push-tokens': {
    body: NewPushToken
    answer: PushToken
  }
  /**
   * Lists your devices.
   */
  'GET /v1/notifications/push-tokens': {
    query?: {
      page?: number
      /**
       * Values above 100 count as 100.
       */
      per_page?: number
      /**
       * The page size in the cursor form; selects that form.
       */
      limit?: number
      /**
       * `pagination.cursor` of the previous page.
       */
      cursor?: string
    }
    answer:
      | {
          success: true
          data: PushToken[]
          pagination: Pagination
        }
      | {
          data: PushToken[]
          pagination: CursorPagination
        }
  }
  /**
   * Removes a device.
   */
  'DELETE /v1/notifications/push-tokens/{id}': {
    params: {
      id: string
    }
    answer: null
  }
  /**
   * Notifies one person or up to a hundred.
   */
  'POST /v1/service/notifications': {
    body: NewNotification
    answer: NotifyResult
  }
  /**
   * Notifies everybody, everybody with a role, or single people.
   */
  'POST /v1/admin/notifications': {
    body: NewAnnouncement
    answer: Announcement
  }
  /**
   * Lists the announcements of all admins, newest first.
   */
  'GET /v1/admin/notifications': {
    query?: {
      page?: number
      /**
       * Values above 100 count as 100.
       */
      per_page?: number
      /**
       * The page size in the cursor form; selects that form.
       */
      limit?: number
      /**
       * `pagination.cursor` of the previous page.
       */
      cursor?: string
    }
    answer:
      | {
          success: true
          data: AnnouncementProgress[]
          pagination: Pagination
        }
      | {
          data: AnnouncementProgress[]
          pagination: CursorPagination
        }
  }
  /**
   * Shows an announcement and its progress.
   */
  'GET /v1/admin/notifications/{id}': {
    params: {
      id: string
    }
    answer: AnnouncementProgress
  }
  /**
   * Lists webhooks, newest first.
   */
  'GET /v1/admin/webhooks': {
    query?: {
      page?: number
      /**
       * Values above 100 count as 100.
       */
      per_page?: number
      /**
       * The page size in the cursor form; selects that form.
       */
      limit?: number
      /**
       * `pagination.cursor` of the previous page.
       */
      cursor?: string
    }
    answer:
      | {
          success: true
          data: Webhook[]
          pagination: Pagination
        }
      | {
          data: Webhook[]
          pagination: CursorPagination
        }
  }
  /**
   * Creates a webhook.
   */
  'POST /v1/admin/webhooks': {
    body: NewWebhook
    answer: WebhookWithSecret
  }
  /**
   * Shows a webhook.
   */
  'GET /v1/admin/webhooks/{id}': {
    params: {
      id: string
    }
    answer: Webhook
  }
  /**
   * Changes a webhook, or disables or enables it.
   */
  'PATCH /v1/admin/webhooks/{id}': {
    params: {
      id: string
    }
    body: WebhookUpdate
    answer: Webhook
  }
  /**
   * Removes a webhook.
   */
  'DELETE /v1/admin/webhooks/{id}': {
    params: {
      id: string
    }
    answer: null
  }
  /**
   * Renews the secret of a webhook.
   */
  'POST /v1/admin/webhooks/{id}/secret': {
    params: {
      id: string
    }
    answer: WebhookWithSecret
  }
  /**
   * Sends a signed `webhook.test` now and returns the result.
   */
  'POST /v1/admin/webhooks/{id}/test': {
    params: {
      id: string
    }
    answer: WebhookTest
  }
  /**
   * Lists attempted deliveries, newest first.
   */
  'GET /v1/admin/webhooks/{id}/deliveries': {
    params: {
      id: string
    }
    query?: {
      page?: number
      /**
       * Values above 100 count as 100.
       */
      per_page?: number
      /**
       * The page size in the cursor form; selects that form.
       */
      limit?: number
      /**
       * `pagination.cursor` of the previous page.
       */
      cursor?: string
    }
    answer:
      | {
          success: true
          data: WebhookDelivery[]
          pagination: Pagination
        }
      | {
          data: WebhookDelivery[]
          pagination: CursorPagination
        }
  }
  /**
   * Delivers an event again at once, with the same id and a new series of attempts.
   */
  'POST /v1/admin/webhooks/{id}/deliveries/{delivery_id}/retry': {
    params: {
      id: string
      delivery_id: string
    }
    answer: WebhookDelivery
  }
  /**
   * Shows the state of the service: sizes, traffic, deliveries, warnings.
   */
  'GET /v1/admin/system': {
    answer: System
  }
  /**
   * Lists the entries of the audit log, newest first.
   */
  'GET /v1/admin/audit-log': {
    query?: {
      page?: number
      /**
       * Values above 100 count as 100.
       */
      per_page?: number
      /**
       * The page size in the cursor form; selects that form.
       */
      limit?: number
      /**
       * `pagination.cursor` of the previous page.
       */
      cursor?: string
      /**
       * The action.
       */
      action?: string
      /**
       * The id of the actor.
       */
      actor_id?: string
      /**
       * The id of the target.
       */
      target_id?: string
      /**
       * From this time on (inclusive): ISO 8601 with a time zone.
       */
      from?: string
      /**
       * Before this time (exclusive).
       */
      to?: string
    }
    answer:
      | {
          success: true
          data: AuditEntry[]
          pagination: Pagination
        }
      | {
          data: AuditEntry[]
          pagination: CursorPagination
        }
  }
  /**
   * Lists waiting and dead jobs, such as mails and pushes, newest first.
   */
  'GET /v1/admin/jobs': {
    query?: {
      page?: number
      /**
       * Values above 100 count as 100.
       */
      per_page?: number
      /**
       * The page size in the cursor form; selects that form.
       */
      limit?: number
      /**
       * `pagination.cursor` of the previous page.
       */
      cursor?: string
      state?: 'waiting' | 'dead'
    }
    answer:
      | {
          success: true
          data: Job[]
          pagination: Pagination
        }
      | {
          data: Job[]
          pagination: CursorPagination
        }
  }
  /**
   * Retries a job now, with a new series of attempts.
   */
  'POST /v1/admin/jobs/{id}/retry': {
    params: {
      id: string
    }
    answer: Job
  }
  /**
   * Discards a job; it will not run.
   */
  'DELETE /v1/admin/jobs/{id}': {
    params: {
      id: string
    }
    answer: null
  }
}
export interface ServerFrames {
  /**
   * The answer to a ping.
   */
  pong: {
    type: 'pong'
  }
  /**
   * A frame was refused; the socket stays open.
   */
  error: {
    type: 'error'
    error: {
      code:
        | 'validation_error'
        | 'unauthorized'
        | 'invalid_credentials'
        | 'invalid_token'
        | 'payment_provider_error'
        | 'forbidden'
        | 'not_found'
        | 'conflict'
        | 'rate_limited'
        | 'internal_error'
      /**
       * For people, in the language of Accept-Language.
       */
      message: string
      /**
       * When the code is validation_error, each wrong field by its path, such as `body`, `data.amount` or `user_ids.3`, to its message; else null.
       */
      details: {
        [k: string]: string
      } | null
    }
    /**
     * Distinguishes errors that have the same code.
     */
    reason?: string
    /**
     * Seconds.
     */
    retry_after?: number
    /**
     * The fields that identify the refused frame.
     */
    request: {
      type?: string
      conversation_id?: string
      client_id?: string
    }
  }
  /**
   * The client missed more messages than a replay sends. Load the conversations and messages again.
   */
  resync: {
    type: 'resync'
  }
  /**
   * A new message, sent to every socket of both users.
   */
  new_message: {
    type: 'new_message'
    message: Message
    /**
     * The `client_id` of the request, on sockets of its sender that have `events=ack`. It identifies your own message.
     */
    client_id?: string
  }
  /**
   * The other user is typing.
   */
  typing: {
    type: 'typing'
    conversation_id: string
    user_id: string
  }
  /**
   * The other user has read the conversation.
   */
  read_receipt: {
    type: 'read_receipt'
    conversation_id: string
    user_id: string
    /**
     * The last message read; absent when all messages are read.
     */
    message_id?: string
  }
  /**
   * With `events=ack`: a message of this socket is stored, by this frame or an earlier one.
   */
  ack: {
    type: 'ack'
    client_id: string | null
    message: Message
  }
  /**
   * With `events=read`: another device of the user has read the conversation.
   */
  conversation_read: {
    type: 'conversation_read'
    conversation_id: string
    unread_count: number
  }
  /**
   * With `events=changes`: a message was removed. It stays in the list without content.
   */
  message_deleted: {
    type: 'message_deleted'
    conversation_id: string
    message_id: string
  }
  /**
   * With `events=support`, for admins: somebody has reported something.
   */
  report_created: {
    type: 'report_created'
    report: Report
  }
  /**
   * With `events=support`, for admins: somebody has opened a ticket.
   */
  ticket_created: {
    type: 'ticket_created'
    ticket: DeskTicketListItem
  }
  /**
   * With `events=support`: a ticket changed. Owners and admins get different fields.
   */
  ticket_updated:
    | {
        type: 'ticket_updated'
        ticket: TicketListItem
      }
    | {
        type: 'ticket_updated'
        ticket: DeskTicketListItem
      }
  /**
   * With `events=notification`: a new notification.
   */
  notification: {
    type: 'notification'
    notification: Notification
    unread_count: number
  }
  /**
   * With `events=notification`: one or all notifications were read.
   */
  notifications_read: {
    type: 'notifications_read'
    unread_count: number
  }
}
export interface ClientFrames {
  /**
   * Sends a message.
   */
  message: {
    type: 'message'
    conversation_id: string
    body: string
    file_url?: string | null
    file_name?: string | null
    file_size?: number | null
    file_type?: string | null
    client_id?: string | null
    message_type?: ('text' | 'file') | null
  }
  /**
   * Notifies the other user that you are typing.
   */
  typing: {
    type: 'typing'
    conversation_id: string
  }
  /**
   * Marks a conversation as read.
   */
  read: {
    type: 'read'
    conversation_id: string
    message_id?: string | null
  }
  /**
   * Continues with a newer access token of the same user.
   */
  auth: {
    type: 'auth'
    token: string
  }
  /**
   * Asks for a pong.
   */
  ping: {
    type: 'ping'
  }
}
