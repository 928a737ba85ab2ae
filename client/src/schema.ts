// Made by scripts/client-types.ts from the descriptions of the service.

export type SentType = 'text' | 'file'
export type ErrorCode =
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
export type Message = TextMessage | FileMessage | NoticeMessage
export type MessageType = 'text' | 'file' | 'notice'
export type SendRefusal = 'recipient_gone' | 'blocked' | 'read_only' | 'no_active_call'
export type ConversationState = 'open' | 'read_only'
export type ReportReason = 'spam' | 'harassment' | 'fraud' | 'sexual' | 'other'
export type ReportStatus = 'open' | 'resolved'
export type TicketStatus = 'open' | 'in_progress' | 'resolved' | 'closed'
export type TicketPriority = 'low' | 'normal' | 'high' | 'urgent'
export type TicketCategory = 'billing' | 'technical' | 'account' | 'other'
export type Locale = 'en' | 'de' | 'es' | 'fr' | 'pt'
export type KnownNotificationType =
  | 'call_incoming'
  | 'call_missed'
  | 'payment_captured'
  | 'payout_completed'
  | 'payout_failed'
  | 'follow_new'
  | 'support_reply'
  | 'broadcast'
/**
 * A known type, or one of the platform.
 */
export type NotificationType = KnownNotificationType | `custom.${string}`
export type Role = 'guest' | 'user' | 'verified_user' | 'host' | 'admin'
export type CallState = 'ringing' | 'active' | 'ended' | 'missed'
export type BroadcastStatus = 'processing' | 'completed'
export type PushPlatform = 'ios' | 'android' | 'web'
export type SessionList = SessionPage | SessionCursorPage
export type ManagedUserList = ManagedUserPage | ManagedUserCursorPage
export type BanKind = 'mail_domain' | 'address' | 'network'
export type BanList = BanPage | BanCursorPage
export type ServiceScope =
  | 'notifications'
  | 'follows'
  | 'calls'
  | 'users'
  | 'messages'
  | 'sessions'
  | 'messages_as'
export type ServiceKeyList = ServiceKeyPage | ServiceKeyCursorPage
export type GrantableScope =
  | 'notifications'
  | 'follows'
  | 'calls'
  | 'users'
  | 'messages'
  | 'sessions'
  | 'messages_as'
  | 'all'
export type FollowList = FollowPage | FollowCursorPage
export type CallList = CallPage | CallCursorPage
export type ConversationList = ConversationPage | ConversationCursorPage
export type MessageList = MessagePage | MessageCursorPage
export type OwnFileList = OwnFilePage | OwnFileCursorPage
export type BlockList = BlockPage | BlockCursorPage
export type ReportList = ReportPage | ReportCursorPage
export type TicketList = TicketPage | TicketCursorPage
export type TicketMessageList = TicketMessagePage | TicketMessageCursorPage
export type TicketOrder = 'longest_waiting' | 'shortest_waiting'
export type DeskTicketList = DeskTicketPage | DeskTicketCursorPage
export type DeskTicketMessageList = DeskTicketMessagePage | DeskTicketMessageCursorPage
export type CannedReplyList = CannedReplyPage | CannedReplyCursorPage
export type NotificationList = NotificationPage | NotificationCursorPage
export type PushTokenList = PushTokenPage | PushTokenCursorPage
export type Audience = 'all' | 'role' | 'users'
export type AnnouncementProgressList = AnnouncementProgressPage | AnnouncementProgressCursorPage
export type UserDeliveryList = UserDeliveryPage | UserDeliveryCursorPage
export type EventType =
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
export type WebhookList = WebhookPage | WebhookCursorPage
export type WebhookDeliveryList = WebhookDeliveryPage | WebhookDeliveryCursorPage
export type JobState = 'waiting' | 'dead'
export type AuditEntryList = AuditEntryPage | AuditEntryCursorPage
export type JobList = JobPage | JobCursorPage
export type WebhookEvent =
  | UserCreatedEvent
  | UserUpdatedEvent
  | UserDeletedEvent
  | MessageCreatedEvent
  | MessageDeletedEvent
  | TicketCreatedEvent
  | TicketRepliedEvent
  | TicketUpdatedEvent
  | ReportCreatedEvent
  | NotificationCreatedEvent
  | BroadcastCompletedEvent
  | WebhookTestEvent
export type ErrorReason =
  | 'banned'
  | 'blocked'
  | 'code_invalid'
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
  | 'read_only'
  | 'recipient_gone'
  | 'registration_closed'
  | 'report_open'
  | 'resync'
  | 'role_required'
  | 'scope_required'
  | 'session_ended'
  | 'stale_ticket'
  | 'ticket_closed'
  | 'ticket_full'
  | 'token_expired'
  | 'token_invalid'
  | 'token_missing'
  | 'totp_exists'
  | 'totp_invalid'
  | 'totp_required'
  | 'wrong_kind_of_token'

export interface NewMessageFile {
  /**
   * The address of an upload of yours, or one elsewhere; needed for a file message.
   */
  file_url: string
  file_name?: string | null
  file_size?: number | null
  file_type?: string | null
}
export interface ErrorInfo {
  code: ErrorCode
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
 * An object of the platform, at most 4 KiB of JSON.
 */
export interface PlatformData {
  [k: string]: unknown
}
export interface TextMessage {
  id: string
  conversation_id: string
  /**
   * The author.
   */
  sender_id: string
  body: string
  created_at: string
  /**
   * Present only on removed messages, which are empty.
   */
  deleted_at?: string
  data?: PlatformData
  type: 'text'
  file_url: null
  file_name: null
  file_size: null
  file_type: null
}
export interface MessageFile {
  file_url: string
  file_name: string | null
  file_size: number | null
  file_type: string | null
  /**
   * Pixels of an image as it is displayed.
   */
  width?: number
  height?: number
  /**
   * A ThumbHash of the image, in base64.
   */
  placeholder?: string
}
export interface FileMessage {
  id: string
  conversation_id: string
  /**
   * The author.
   */
  sender_id: string
  body: string
  created_at: string
  /**
   * Present only on removed messages, which are empty.
   */
  deleted_at?: string
  data?: PlatformData
  type: 'file'
  file_url: string
  file_name: string | null
  file_size: number | null
  file_type: string | null
  /**
   * Pixels of an image as it is displayed.
   */
  width?: number
  height?: number
  /**
   * A ThumbHash of the image, in base64.
   */
  placeholder?: string
  /**
   * All files, if they were sent so. The first also stands beside it.
   */
  attachments?: MessageFile[]
}
/**
 * From the platform, to both participants.
 */
export interface NoticeMessage {
  id: string
  conversation_id: string
  /**
   * A notice has no author.
   */
  sender_id: null
  body: string
  created_at: string
  /**
   * Present only on removed messages, which are empty.
   */
  deleted_at?: string
  data?: PlatformData
  type: 'notice'
  file_url: null
  file_name: null
  file_size: null
  file_type: null
  /**
   * Whether it counts as unread until it is read.
   */
  unread: boolean
}
export interface ParticipantWithAvatar {
  id: string
  display_name: string
  avatar_url: string
  /**
   * The id of the person in the rest of the platform; absent if there is none.
   */
  external_id?: string
}
export interface LastMessage {
  id: string
  body: string
  type: MessageType
  sent_at: string
}
export interface ConversationListItem {
  id: string
  participant: ParticipantWithAvatar
  last_message: LastMessage | null
  /**
   * Unread messages of the other side, and unread notices.
   */
  unread_count: number
  participant_read_up_to: string | null
  /**
   * Number of the oldest message that is kept; larger than 1 when older ones were forgotten.
   */
  first_seq: number
  /**
   * Whether its messages are not pushed.
   */
  muted: boolean
  /**
   * Whether you have archived it since its last message.
   */
  archived: boolean
  /**
   * Whether you may send now. It can change at any time: a send may still fail.
   */
  may_send: boolean
  may_send_reason: SendRefusal | null
  state: ConversationState
  data: PlatformData | null
  /**
   * The time of the newest message, also after it was forgotten.
   */
  updated_at: string
}
export interface Person {
  id: string
  display_name: string
}
export interface Report {
  id: string
  reporter: Person
  reported: Person
  /**
   * The reported message; null for a report about a person.
   */
  message_id: string | null
  reason: ReportReason
  body: string | null
  status: ReportStatus
  note: string | null
  /**
   * The admin who handled it.
   */
  resolved_by_id: string | null
  resolved_at: string | null
  created_at: string
}
export interface TicketOwner {
  id: string
  display_name: string
  avatar_url: string
  /**
   * Absent if the account was removed.
   */
  email?: string
  locale: Locale
}
/**
 * The newest message of both sides; a note is none.
 */
export interface LastTicketMessage {
  id: string
  /**
   * Its first 200 characters.
   */
  body: string
  /**
   * Whether the desk wrote it.
   */
  is_admin: boolean
  sent_at: string
}
export interface DeskTicketListItem {
  id: string
  subject: string
  status: TicketStatus
  priority: TicketPriority
  category: TicketCategory
  created_at: string
  /**
   * The last message or change.
   */
  updated_at: string
  user: TicketOwner
  /**
   * The admin who looks after it.
   */
  assignee: Person | null
  /**
   * Messages of both sides, without notes.
   */
  message_count: number
  last_message: LastTicketMessage
  /**
   * Since when the owner waits for an answer; null while nothing is to be answered.
   */
  waiting_since: string | null
  /**
   * When an admin answered for the first time.
   */
  first_response_at: string | null
}
export interface TicketListItem {
  id: string
  subject: string
  status: TicketStatus
  priority: TicketPriority
  category: TicketCategory
  created_at: string
  /**
   * The last message or change.
   */
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
  type: NotificationType
  title: string
  body: string
  data: NotificationData
  /**
   * Whether it was read, on any device.
   */
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
  /**
   * The e-mail address of the account.
   */
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
  role: Role
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
  /**
   * The e-mail address of the account.
   */
  email: string
  /**
   * Must not be a common password, or the address or name of the account.
   */
  password: string
  display_name?: string | null
  /**
   * The token of the link that the server prints.
   */
  token: string
}
export interface Credentials {
  /**
   * The e-mail address of the account.
   */
  email: string
  password: string
  code?: string | null
}
export interface RefreshTokenBody {
  /**
   * The newest refresh token of the session.
   */
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
  /**
   * The token of the mailed link.
   */
  token: string
}
export interface UserBody {
  user: User
}
export interface EmailBody {
  /**
   * The e-mail address of the account.
   */
  email: string
}
export interface PasswordReset {
  /**
   * The token of the mailed link.
   */
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
  /**
   * The new address. It counts once its mailed link was opened.
   */
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
  /**
   * A code from the authenticator.
   */
  code: string
}
export interface RecoveryCodes {
  /**
   * Ten recovery codes, shown only this once.
   */
  recovery_codes: string[]
}
export interface CodesRenewal {
  password?: string | null
  /**
   * A code from the authenticator. Recovery codes are not accepted.
   */
  code: string
}
/**
 * Either the password or a code.
 */
export interface OwnerProof {
  password?: string | null
  code?: string | null
}
export interface QuietHours {
  /**
   * When they begin, `HH:MM`.
   */
  from: string
  /**
   * When they end, `HH:MM`; before `from`, on the next day.
   */
  to: string
  /**
   * An IANA time zone.
   */
  time_zone: string
}
export interface Profile {
  id: string
  email: string
  display_name: string
  role: Role
  email_verified: boolean
  created_at: string
  avatar_url: string
  locale: Locale
  /**
   * Whether a login requires a code from an authenticator.
   */
  totp: boolean
  email_bounced_at: string | null
  /**
   * While they last, pushes and mails wait, except of calls and about the account.
   */
  quiet_hours: QuietHours | null
}
export interface ProfileUpdate {
  display_name?: string | null
  avatar_url?: string | null
  locale?: Locale | null
}
export interface PasswordBody {
  password?: string | null
}
export interface NewQuietHours {
  /**
   * When they begin, `HH:MM`.
   */
  from: string
  /**
   * When they end, `HH:MM`; before `from`, on the next day.
   */
  to: string
  /**
   * An IANA time zone.
   */
  time_zone: string
}
export interface ManagedUser {
  id: string
  email: string
  display_name: string
  role: Role
  email_verified: boolean
  created_at: string
  avatar_url: string
  locale: Locale
  /**
   * Whether a login requires a code from an authenticator.
   */
  totp: boolean
  email_bounced_at: string | null
  /**
   * While they last, pushes and mails wait, except of calls and about the account.
   */
  quiet_hours: QuietHours | null
  /**
   * Whether logins are refused.
   */
  disabled: boolean
  external_id: string | null
}
export interface Session {
  id: string
  created_at: string
  /**
   * The last renewal of its tokens, or the login.
   */
  last_used_at: string
  user_agent: string | null
  /**
   * The address of the last login or renewal; null until the first renewal of a session that the platform began.
   */
  ip: string | null
  /**
   * Whether it is the session of this request.
   */
  current: boolean
}
export interface PendingAddress {
  email: string
  /**
   * Until when it can be confirmed.
   */
  expires_at: string
}
export interface FormerAddress {
  email: string
  /**
   * Until when the change can be undone.
   */
  reserved_until: string
}
export interface OwnAuditEntry {
  at: string
  /**
   * The action.
   */
  action: string
  ip: string | null
  details: {
    [k: string]: string
  } | null
}
export interface Follow {
  host_id: string
  /**
   * The id that the platform gives the person; absent if there is none.
   */
  host_external_id?: string
  follower_id: string
  /**
   * The id that the platform gives the person; absent if there is none.
   */
  follower_external_id?: string
  created_at: string
}
export interface Call {
  call_session_id: string
  state: CallState
  host_id: string
  /**
   * The id that the platform gives the person; absent if there is none.
   */
  host_external_id?: string
  guest_id: string
  /**
   * The id that the platform gives the person; absent if there is none.
   */
  guest_external_id?: string
  updated_at: string
}
export interface Broadcast {
  id: string
  body: string
  /**
   * Followers until it is completed, then the copies delivered.
   */
  recipients_count: number
  status: BroadcastStatus
  created_at: string
}
export interface ExportedFile {
  id: string
  file_url: string
  file_name: string
  file_size: number
  file_type: string
  /**
   * Pixels of an image as it is displayed.
   */
  width?: number
  height?: number
  /**
   * A ThumbHash of the image, in base64.
   */
  placeholder?: string
  created_at: string
  /**
   * Present only on removed files, which are kept for a while.
   */
  removed_at?: string
}
export interface PersonWithAvatar {
  id: string
  display_name: string
  avatar_url: string
}
export interface Block {
  user: PersonWithAvatar
  /**
   * When you blocked them.
   */
  blocked_at: string
}
export interface ExportedReport {
  id: string
  status: ReportStatus
  created_at: string
  /**
   * The reported person.
   */
  user_id: string
  /**
   * The reported message; null for a report about a person.
   */
  message_id: string | null
  reason: ReportReason
  body: string | null
}
export interface Attachment {
  id: string
  file_url: string
  file_name: string
  file_size: number
  file_type: string
  /**
   * Pixels of an image as it is displayed.
   */
  width?: number
  height?: number
  /**
   * A ThumbHash of the image, in base64.
   */
  placeholder?: string
}
export interface TicketMessage {
  id: string
  body: string
  created_at: string
  /**
   * Whether the desk wrote it.
   */
  is_admin: boolean
  /**
   * Present if there are attachments.
   */
  attachments?: Attachment[]
}
/**
 * A ticket with its newest messages, oldest first.
 */
export interface Ticket {
  id: string
  subject: string
  status: TicketStatus
  priority: TicketPriority
  category: TicketCategory
  created_at: string
  /**
   * The last message or change.
   */
  updated_at: string
  messages: TicketMessage[]
  /**
   * The cursor for the list of earlier messages; absent if there are none.
   */
  messages_before?: string
}
export interface PushToken {
  id: string
  token: string
  platform: PushPlatform
  created_at: string
}
export interface NotificationChannels {
  /**
   * Whether they are listed and shown in the app.
   */
  in_app: boolean
  /**
   * Whether they are pushed to devices.
   */
  push: boolean
  /**
   * Whether they are mailed.
   */
  email: boolean
}
export interface MessageChannels {
  /**
   * Whether they are pushed to devices.
   */
  push: boolean
  /**
   * Whether they are mailed when they stay unread.
   */
  email: boolean
}
/**
 * The channels of each type. A `custom.<name>` that you have not changed is left out: it is shown in the app and pushed, but not mailed.
 */
export interface NotificationPreferences {
  call_incoming: NotificationChannels
  call_missed: NotificationChannels
  payment_captured: NotificationChannels
  payout_completed: NotificationChannels
  payout_failed: NotificationChannels
  follow_new: NotificationChannels
  support_reply: NotificationChannels
  broadcast: NotificationChannels
  chat_message: MessageChannels
  [k: string]: NotificationChannels | MessageChannels
}
export interface UserDelivery {
  id: string
  channel: 'email' | 'push'
  /**
   * The type of the notification, or the kind of the mail.
   */
  kind: string
  /**
   * `waiting`: failed and will be tried again. `failed`: given up. `bounced`: the address or device is refused for good. `skipped`: no longer needed, or the channel is not set up.
   */
  state: 'sent' | 'waiting' | 'failed' | 'bounced' | 'skipped'
  attempts: number
  answer: string | null
  at: string
}
export interface Export {
  user: ManagedUser
  /**
   * The logins of the person.
   */
  sessions: Session[]
  /**
   * New addresses that the person has not confirmed yet.
   */
  pending_addresses: PendingAddress[]
  /**
   * Former addresses that can still be restored.
   */
  former_addresses: FormerAddress[]
  /**
   * The actions of the person.
   */
  audit_log: OwnAuditEntry[]
  /**
   * The hosts that the person follows.
   */
  follows: Follow[]
  /**
   * The followers of the person.
   */
  followers: Follow[]
  /**
   * Calls of the person, as host or guest.
   */
  calls: Call[]
  /**
   * The conversations of the person.
   */
  conversations: ConversationListItem[]
  /**
   * The messages of these conversations. Own removed ones have their text while it is kept.
   */
  messages: Message[]
  /**
   * The broadcasts that the person has sent.
   */
  broadcasts: Broadcast[]
  /**
   * The files that the person has uploaded.
   */
  files: ExportedFile[]
  /**
   * The people whom the person has blocked.
   */
  blocks: Block[]
  /**
   * The reports that the person has sent.
   */
  reports: ExportedReport[]
  /**
   * The tickets of the person, with all their messages.
   */
  tickets: Ticket[]
  /**
   * The notifications of the person.
   */
  notifications: Notification[]
  /**
   * The devices that get pushes.
   */
  push_tokens: PushToken[]
  /**
   * One entry.
   */
  notification_preferences: NotificationPreferences[]
  /**
   * The last mails and pushes to the person.
   */
  deliveries: UserDelivery[]
}
export interface Pagination {
  page: number
  /**
   * The size of a page.
   */
  per_page: number
  /**
   * All entries, on every page.
   */
  total: number
  /**
   * The number of pages.
   */
  total_pages: number
}
export interface SessionPage {
  success: true
  data: Session[]
  pagination: Pagination
}
export interface CursorPagination {
  /**
   * For the next request; null at the end.
   */
  cursor: string | null
  /**
   * Whether there is a next page.
   */
  has_more: boolean
  /**
   * The size of a page.
   */
  limit: number
}
export interface SessionCursorPage {
  data: Session[]
  pagination: CursorPagination
}
export interface ManagedUserPage {
  success: true
  data: ManagedUser[]
  pagination: Pagination
}
export interface ManagedUserCursorPage {
  data: ManagedUser[]
  pagination: CursorPagination
}
export interface AccessUpdate {
  role?: Role | null
  disabled?: boolean | null
  email_verified?: boolean | null
}
export interface PurgeCounts {
  /**
   * Messages whose text is stored, also for reports.
   */
  messages: number
  /**
   * Broadcasts, whose texts are removed.
   */
  broadcasts: number
  /**
   * Files.
   */
  files: number
  /**
   * Tickets.
   */
  tickets: number
  /**
   * Reports that the person made.
   */
  reports: number
}
export interface PurgeStarted {
  user_id: string
  status: 'processing'
}
export interface NewPerson {
  /**
   * The e-mail address of the account.
   */
  email: string
  display_name?: string | null
  avatar_url?: string | null
  role?: Role | null
  email_verified?: boolean | null
  external_id?: string | null
  locale?: Locale | null
}
export interface PersonUpdate {
  role?: Role | null
  disabled?: boolean | null
  email_verified?: boolean | null
  email?: string | null
  display_name?: string | null
  avatar_url?: string | null
  locale?: Locale | null
  external_id?: string | null
}
export interface Ban {
  id: string
  kind: BanKind
  /**
   * Null for an address, of which only a hash is kept.
   */
  value: string | null
  reason: string | null
  created_at: string
  until: string | null
}
export interface BanPage {
  success: true
  data: Ban[]
  pagination: Pagination
}
export interface BanCursorPage {
  data: Ban[]
  pagination: CursorPagination
}
export interface NewBan {
  kind: BanKind
  /**
   * A mail domain, which includes its subdomains, an address, or a network (CIDR, up to /8 or an IPv6 /16) without admins.
   */
  value: string
  reason?: string | null
  until?: string | null
}
export interface ServiceKey {
  id: string
  name: string
  scopes: ServiceScope[]
  created_at: string
  expires_at: string | null
  /**
   * The last request with it, to within a minute.
   */
  last_used_at: string | null
  /**
   * When it was revoked; null if it was not.
   */
  revoked_at: string | null
}
export interface ServiceKeyPage {
  success: true
  data: ServiceKey[]
  pagination: Pagination
}
export interface ServiceKeyCursorPage {
  data: ServiceKey[]
  pagination: CursorPagination
}
export interface NewServiceKey {
  /**
   * A name for the list of keys.
   */
  name: string
  /**
   * The operations allowed for the key. `all` means all scopes except `sessions`, which logs people in, and `messages_as`, which writes in their name.
   */
  scopes: GrantableScope[]
  expires_at?: string | null
}
export interface CreatedServiceKey {
  id: string
  name: string
  scopes: ServiceScope[]
  created_at: string
  expires_at: string | null
  /**
   * The last request with it, to within a minute.
   */
  last_used_at: string | null
  /**
   * When it was revoked; null if it was not.
   */
  revoked_at: string | null
  /**
   * The key itself, shown only this once.
   */
  key: string
}
export interface FollowPage {
  success: true
  data: Follow[]
  pagination: Pagination
}
export interface FollowCursorPage {
  data: Follow[]
  pagination: CursorPagination
}
export interface CallPage {
  success: true
  data: Call[]
  pagination: Pagination
}
export interface CallCursorPage {
  data: Call[]
  pagination: CursorPagination
}
export interface FollowerImport {
  /**
   * The followers: ids, or `ext:` and external ids; the whole body has at most 64 KiB.
   */
  follower_ids: string[]
}
export interface ImportCounts {
  /**
   * Followers who were new.
   */
  added: number
  /**
   * Followers who were known, or named before in the list.
   */
  already: number
  /**
   * The ids that name nobody, as they were given.
   */
  unknown: string[]
}
export interface CallUpdate {
  state: CallState
  /**
   * The host: an id, or `ext:` and an external id.
   */
  host_id: string
  /**
   * The guest: an id, or `ext:` and an external id.
   */
  guest_id: string
}
export interface ConversationPage {
  success: true
  data: ConversationListItem[]
  pagination: Pagination
}
export interface ConversationCursorPage {
  data: ConversationListItem[]
  pagination: CursorPagination
}
export interface NewConversation {
  /**
   * The other participant: a ULID, or the UUID of the same 128 bits. In a session that the platform made also `ext:` and an external id.
   */
  user_id: string
}
export interface Participant {
  id: string
  display_name: string
  /**
   * The id of the person in the rest of the platform; absent if there is none.
   */
  external_id?: string
}
export interface Conversation {
  id: string
  participant: Participant
  /**
   * Unread messages of the other side, and unread notices.
   */
  unread_count: number
  created_at: string
}
export interface MessageCursorPage {
  data: Message[]
  pagination: CursorPagination
}
export interface MessagePage {
  success: true
  data: Message[]
  pagination: Pagination
}
export interface NewMessage {
  /**
   * The text. That of a file message may be empty.
   */
  body: string
  file_url?: string | null
  file_name?: string | null
  file_size?: number | null
  file_type?: string | null
  attachments?: NewMessageFile[] | null
  client_id?: string | null
  type?: SentType | null
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
export interface BroadcastProgress {
  id: string
  body: string
  /**
   * Followers until it is completed, then the copies delivered.
   */
  recipients_count: number
  status: BroadcastStatus
  created_at: string
  delivered_count: number
}
/**
 * With `conversation_id` or `user_ids`.
 */
export interface NewPlatformMessage {
  conversation_id?: string | null
  user_ids?: string[] | null
  /**
   * The text. That of a file message may be empty.
   */
  body: string
  data?: PlatformData | null
  from?: string | null
  unread?: boolean | null
}
export interface NewPlatformConversation {
  /**
   * The two participants. The conversation is created if there is none.
   *
   * Items: An id, or `ext:` and an external id.
   */
  user_ids: string[]
}
export interface PlatformConversation {
  id: string
  participants: Participant[]
  state: ConversationState
  data: PlatformData | null
  created_at: string
}
export interface PlatformConversationUpdate {
  state?: ConversationState | null
  data?: PlatformData | null
}
export interface UploadedFile {
  id: string
  file_url: string
  file_name: string
  file_size: number
  file_type: string
  /**
   * Pixels of an image as it is displayed.
   */
  width?: number
  height?: number
  /**
   * A ThumbHash of the image, in base64.
   */
  placeholder?: string
}
export interface OwnFile {
  id: string
  file_url: string
  file_name: string
  file_size: number
  file_type: string
  /**
   * Pixels of an image as it is displayed.
   */
  width?: number
  height?: number
  /**
   * A ThumbHash of the image, in base64.
   */
  placeholder?: string
  created_at: string
}
export interface OwnFilePage {
  success: true
  data: OwnFile[]
  pagination: Pagination
  /**
   * Bytes that your files count; each counts at least 16 KiB.
   */
  used: number
  /**
   * Bytes that they may count.
   */
  quota: number
}
export interface OwnFileCursorPage {
  data: OwnFile[]
  pagination: CursorPagination
  /**
   * Bytes that your files count; each counts at least 16 KiB.
   */
  used: number
  /**
   * Bytes that they may count.
   */
  quota: number
}
export interface BlockPage {
  success: true
  data: Block[]
  pagination: Pagination
}
export interface BlockCursorPage {
  data: Block[]
  pagination: CursorPagination
}
/**
 * About a user or a message.
 */
export interface NewReport {
  user_id?: string | null
  message_id?: string | null
  reason: ReportReason
  body?: string | null
}
export interface OwnReport {
  id: string
  status: ReportStatus
  created_at: string
}
export interface ReportPage {
  success: true
  data: Report[]
  pagination: Pagination
}
export interface ReportCursorPage {
  data: Report[]
  pagination: CursorPagination
}
export interface ReportDetail {
  id: string
  reporter: Person
  reported: Person
  /**
   * The reported message; null for a report about a person.
   */
  message_id: string | null
  reason: ReportReason
  body: string | null
  status: ReportStatus
  note: string | null
  /**
   * The admin who handled it.
   */
  resolved_by_id: string | null
  resolved_at: string | null
  created_at: string
  messages: Message[] | null
}
export interface ReportUpdate {
  status?: ReportStatus | null
  note?: string | null
}
export interface NewAttachment {
  /**
   * The address in the response to the upload.
   */
  file_url: string
}
export interface NewTicket {
  /**
   * The topic, in a line.
   */
  subject: string
  body: string
  category?: TicketCategory | null
  priority?: TicketPriority | null
  attachments?: NewAttachment[] | null
  client_id?: string | null
}
export interface TicketPage {
  success: true
  data: TicketListItem[]
  pagination: Pagination
}
export interface TicketCursorPage {
  data: TicketListItem[]
  pagination: CursorPagination
}
export interface TicketMessagePage {
  success: true
  data: TicketMessage[]
  pagination: Pagination
}
export interface TicketMessageCursorPage {
  data: TicketMessage[]
  pagination: CursorPagination
}
export interface NewTicketMessage {
  body: string
  attachments?: NewAttachment[] | null
  client_id?: string | null
}
export interface DeskTicketPage {
  success: true
  data: DeskTicketListItem[]
  pagination: Pagination
}
export interface DeskTicketCursorPage {
  data: DeskTicketListItem[]
  pagination: CursorPagination
}
export interface NewDeskTicket {
  /**
   * The user for whom it is opened.
   */
  user_id: string
  /**
   * The topic, in a line.
   */
  subject: string
  /**
   * Your message to the user.
   */
  body: string
  category?: TicketCategory | null
  priority?: TicketPriority | null
  attachments?: NewAttachment[] | null
  client_id?: string | null
}
export interface DeskTicketMessage {
  id: string
  body: string
  created_at: string
  /**
   * Whether the desk wrote it.
   */
  is_admin: boolean
  /**
   * Present if there are attachments.
   */
  attachments?: Attachment[]
  author: Person
}
export interface TicketNote {
  id: string
  body: string
  created_at: string
  author: Person
  /**
   * Present if there are attachments.
   */
  attachments?: Attachment[]
  /**
   * When the author last changed the text; absent if never.
   */
  edited_at?: string
  /**
   * Present, and true, if the account of the author was removed.
   */
  author_removed?: boolean
}
export interface AdminActor {
  type: 'user'
  id: string
  display_name: string
}
export interface SystemActor {
  type: 'system'
}
export interface TicketHistoryEntry {
  id: string
  at: string
  /**
   * The changed field.
   */
  field: 'status' | 'priority' | 'category' | 'assignee'
  /**
   * The value before.
   */
  from: string | null
  /**
   * The value after.
   */
  to: string | null
  actor: AdminActor | SystemActor
}
/**
 * A ticket with its newest messages, notes and changes, oldest first.
 */
export interface DeskTicket {
  id: string
  subject: string
  status: TicketStatus
  priority: TicketPriority
  category: TicketCategory
  created_at: string
  /**
   * The last message or change.
   */
  updated_at: string
  user: TicketOwner
  /**
   * The admin who looks after it.
   */
  assignee: Person | null
  /**
   * Messages of both sides, without notes.
   */
  message_count: number
  last_message: LastTicketMessage
  /**
   * Since when the owner waits for an answer; null while nothing is to be answered.
   */
  waiting_since: string | null
  /**
   * When an admin answered for the first time.
   */
  first_response_at: string | null
  messages: DeskTicketMessage[]
  /**
   * The cursor for the list of earlier messages; absent if there are none.
   */
  messages_before?: string
  /**
   * Notes of admins, which the owner never sees.
   */
  notes: TicketNote[]
  /**
   * Changes, and who made them.
   */
  history: TicketHistoryEntry[]
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
/**
 * `assigned_to` is an alias of `assignee_id`, which takes precedence.
 */
export interface TicketUpdate {
  status?: TicketStatus | null
  priority?: TicketPriority | null
  category?: TicketCategory | null
  assignee_id?: string | null
  assigned_to?: string | null
}
export interface DeskTicketMessagePage {
  success: true
  data: DeskTicketMessage[]
  pagination: Pagination
}
export interface DeskTicketMessageCursorPage {
  data: DeskTicketMessage[]
  pagination: CursorPagination
}
export interface NewTicketReply {
  /**
   * The text of the reply.
   */
  body: string
  attachments?: NewAttachment[] | null
  client_id?: string | null
  status?: TicketStatus | null
  last_message_id?: string | null
}
export interface NewTicketNote {
  /**
   * The note, which admins alone see.
   */
  body: string
  attachments?: NewAttachment[] | null
}
export interface TicketNoteUpdate {
  /**
   * The note, which admins alone see.
   */
  body: string
}
export interface CannedReply {
  id: string
  title: string
  body: string
  /**
   * The language of the reply; null for any.
   */
  locale: Locale | null
}
export interface CannedReplyPage {
  success: true
  data: CannedReply[]
  pagination: Pagination
}
export interface CannedReplyCursorPage {
  data: CannedReply[]
  pagination: CursorPagination
}
export interface NewCannedReply {
  /**
   * The name in the list of replies.
   */
  title: string
  /**
   * The text of the reply.
   */
  body: string
  /**
   * The language of the reply; null for any, as without it.
   */
  locale?: Locale | null
}
export interface CannedReplyUpdate {
  title?: string | null
  body?: string | null
  /**
   * The language of the reply; null for any, as without it.
   */
  locale?: Locale | null
}
export interface NotificationPage {
  success: true
  data: Notification[]
  pagination: Pagination
}
export interface NotificationCursorPage {
  data: Notification[]
  pagination: CursorPagination
}
export interface NotificationChannelsUpdate {
  in_app?: boolean | null
  push?: boolean | null
  email?: boolean | null
}
export interface MessageChannelsUpdate {
  push?: boolean | null
  email?: boolean | null
}
export interface NotificationPreferencesUpdate {
  /**
   * The channels of `call_incoming`.
   */
  call_incoming?: NotificationChannelsUpdate | null
  /**
   * The channels of `call_missed`.
   */
  call_missed?: NotificationChannelsUpdate | null
  /**
   * The channels of `payment_captured`.
   */
  payment_captured?: NotificationChannelsUpdate | null
  /**
   * The channels of `payout_completed`.
   */
  payout_completed?: NotificationChannelsUpdate | null
  /**
   * The channels of `payout_failed`.
   */
  payout_failed?: NotificationChannelsUpdate | null
  /**
   * The channels of `follow_new`.
   */
  follow_new?: NotificationChannelsUpdate | null
  /**
   * The channels of `support_reply`.
   */
  support_reply?: NotificationChannelsUpdate | null
  /**
   * The channels of `broadcast`.
   */
  broadcast?: NotificationChannelsUpdate | null
  /**
   * Chat messages, which have no notifications.
   */
  chat_message?: MessageChannelsUpdate | null
  [k: string]: NotificationChannelsUpdate | null | MessageChannelsUpdate | undefined
}
export interface WebPushKey {
  public_key: string
}
export interface NewPushToken {
  /**
   * A token from FCM, or for `web` also a PushSubscription as JSON.
   */
  token: string
  platform: PushPlatform
}
export interface PushTokenPage {
  success: true
  data: PushToken[]
  pagination: Pagination
}
export interface PushTokenCursorPage {
  data: PushToken[]
  pagination: CursorPagination
}
/**
 * With `user_id` or `user_ids`.
 */
export interface NewNotification {
  user_id?: string | null
  user_ids?: string[] | null
  type: NotificationType
  title?: string | null
  body?: string | null
  data?: {
    [k: string]: string
  } | null
  dedupe_key?: string | null
}
export interface NotifyResult {
  data: Notification[]
  /**
   * Notifications that existed under the same `dedupe_key`.
   */
  duplicates: number
  muted: number
  /**
   * The entries of `user_ids` that name nobody, as they were given.
   */
  unknown?: string[]
}
export interface NewAnnouncement {
  audience: Audience
  role?: Role | null
  user_ids?: string[] | null
  title: string
  body: string
  data?: {
    [k: string]: string
  } | null
  client_id?: string | null
}
export interface SentAnnouncement {
  broadcast_id: string
  /**
   * People of the audience.
   */
  recipients_count: number
  status: BroadcastStatus
  /**
   * The entries of `user_ids` that name nobody, as they were given.
   */
  unknown?: string[]
}
export interface AnnouncementProgress {
  broadcast_id: string
  /**
   * People of the audience.
   */
  recipients_count: number
  status: BroadcastStatus
  /**
   * People reached so far.
   */
  delivered_count: number
  audience: Audience
  /**
   * The role, if the audience is a role.
   */
  role: Role | null
  title: string
  body: string
  sender: Person
  created_at: string
  /**
   * When the last person was reached.
   */
  completed_at: string | null
}
export interface AnnouncementProgressPage {
  success: true
  data: AnnouncementProgress[]
  pagination: Pagination
}
export interface AnnouncementProgressCursorPage {
  data: AnnouncementProgress[]
  pagination: CursorPagination
}
export interface UserDeliveryPage {
  success: true
  data: UserDelivery[]
  pagination: Pagination
}
export interface UserDeliveryCursorPage {
  data: UserDelivery[]
  pagination: CursorPagination
}
export interface Webhook {
  id: string
  url: string
  events: EventType[]
  description: string | null
  enabled: boolean
  /**
   * Since when every delivery has failed; null while they arrive.
   */
  failing_since: string | null
  /**
   * When it was switched off, by an admin or after days of failures.
   */
  disabled_at: string | null
  /**
   * Events that were dropped, the oldest first, because more than 100,000 waited.
   */
  dropped_count: number
  created_at: string
}
export interface WebhookPage {
  success: true
  data: Webhook[]
  pagination: Pagination
}
export interface WebhookCursorPage {
  data: Webhook[]
  pagination: CursorPagination
}
export interface NewWebhook {
  /**
   * Your endpoint.
   */
  url: string
  /**
   * The events to send.
   */
  events: EventType[]
  description?: string | null
}
export interface WebhookWithSecret {
  id: string
  url: string
  events: EventType[]
  description: string | null
  enabled: boolean
  /**
   * Since when every delivery has failed; null while they arrive.
   */
  failing_since: string | null
  /**
   * When it was switched off, by an admin or after days of failures.
   */
  disabled_at: string | null
  /**
   * Events that were dropped, the oldest first, because more than 100,000 waited.
   */
  dropped_count: number
  created_at: string
  /**
   * The secret that signs deliveries, shown only this once.
   */
  secret: string
}
export interface WebhookUpdate {
  url?: string | null
  events?: EventType[] | null
  description?: string | null
  enabled?: boolean | null
}
export interface WebhookTest {
  status: 'delivered' | 'failed'
  /**
   * The HTTP status; null without a response.
   */
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
  /**
   * Tries so far.
   */
  attempts: number
  /**
   * The HTTP status; null without a response.
   */
  response_status: number | null
  response: string | null
  created_at: string
  /**
   * The last try.
   */
  attempted_at: string
}
export interface WebhookDeliveryPage {
  success: true
  data: WebhookDelivery[]
  pagination: Pagination
}
export interface WebhookDeliveryCursorPage {
  data: WebhookDelivery[]
  pagination: CursorPagination
}
export interface RetrySince {
  /**
   * The time of the oldest event, ISO 8601 with a time zone.
   */
  since: string
}
export interface Retried {
  /**
   * How many are delivered again; none while the webhook is switched off.
   */
  retried: number
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
  /**
   * Whether it is set up.
   */
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
  /**
   * Open sockets.
   */
  sockets: number
  /**
   * People with an open socket.
   */
  socket_users: number
  /**
   * A point for each minute.
   */
  last_hour: Minute[]
  outbox: {
    kind: string
    state: JobState
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
    /**
     * Events that were dropped because too many waited.
     */
    dropped: number
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
/**
 * Where mails and pushes lead: `{"conversation", "ticket", "notification", "home"}`, each https or the app’s own scheme, with `{id}`.
 */
export interface Links {
  conversation?: string | null
  ticket?: string | null
  notification?: string | null
  home?: string | null
}
export interface MailText {
  subject?: string | null
  body?: string | null
}
export interface MailTextByLanguage {
  /**
   * In the language `en`.
   */
  en?: MailText | null
  /**
   * In the language `de`.
   */
  de?: MailText | null
  /**
   * In the language `es`.
   */
  es?: MailText | null
  /**
   * In the language `fr`.
   */
  fr?: MailText | null
  /**
   * In the language `pt`.
   */
  pt?: MailText | null
}
/**
 * Texts of mails instead of the default ones: `{"kind": {"language": {"subject", "body"}}}`.
 */
export interface MailTexts {
  /**
   * Texts of the mail `verify_email`.
   */
  verify_email?: MailTextByLanguage | null
  /**
   * Texts of the mail `reset_password`.
   */
  reset_password?: MailTextByLanguage | null
  /**
   * Texts of the mail `password_changed`.
   */
  password_changed?: MailTextByLanguage | null
  /**
   * Texts of the mail `totp_enabled`.
   */
  totp_enabled?: MailTextByLanguage | null
  /**
   * Texts of the mail `totp_disabled`.
   */
  totp_disabled?: MailTextByLanguage | null
  /**
   * Texts of the mail `change_email`.
   */
  change_email?: MailTextByLanguage | null
  /**
   * Texts of the mail `undo_email`.
   */
  undo_email?: MailTextByLanguage | null
  /**
   * Texts of the mail `email_taken`.
   */
  email_taken?: MailTextByLanguage | null
  /**
   * Texts of the mail `confirm`.
   */
  confirm?: MailTextByLanguage | null
  /**
   * Texts of the mail `notifications`.
   */
  notifications?: MailTextByLanguage | null
  /**
   * Texts of the mail `unread_messages`.
   */
  unread_messages?: MailTextByLanguage | null
  /**
   * Texts of the mail `ticket_answer`.
   */
  ticket_answer?: MailTextByLanguage | null
  /**
   * Texts of the mail `ticket_waiting`.
   */
  ticket_waiting?: MailTextByLanguage | null
  /**
   * Texts of the mail `bucket_failed`.
   */
  bucket_failed?: MailTextByLanguage | null
}
export interface Settings {
  /**
   * Name of the platform in mails, pushes, pages and authenticators.
   */
  platform_name: string
  /**
   * Address of the app: https, or the app’s own scheme. Account pages and mails lead back to it.
   */
  app_url: string | null
  /**
   * Address for questions, shown at the end of mails.
   */
  support_email: string | null
  /**
   * Logo in mails, account pages, tabs and the console: the address of an uploaded image.
   */
  logo_url: string | null
  /**
   * Colour of buttons in mails and account pages, and of the sign of a platform without a logo.
   */
  accent: string
  links: Links
  texts: MailTexts
  /**
   * Minutes after which unread messages are mailed, once until the person comes back; 0 is never.
   */
  unread_mail_minutes: number
  /**
   * Content of pushes: `full`, `sender` (names without texts) or `none` (only that there is something).
   */
  push_content: 'full' | 'sender' | 'none'
  /**
   * Content of mails about messages, notifications and tickets: `full`, `sender` or `none`.
   */
  mail_content: 'full' | 'sender' | 'none'
  /**
   * Days for which messages are kept; 0 is for ever.
   */
  message_retention_days: number
  /**
   * Days for which tickets are kept after they were closed; 0 is for ever.
   */
  ticket_retention_days: number
  /**
   * Whether people may register themselves: `open` or `off`.
   */
  registration: 'open' | 'off'
}
export interface SettingsUpdate {
  /**
   * Name of the platform in mails, pushes, pages and authenticators.
   */
  platform_name?: string | null
  /**
   * Address of the app: https, or the app’s own scheme. Account pages and mails lead back to it.
   */
  app_url?: (string | null) | null
  /**
   * Address for questions, shown at the end of mails.
   */
  support_email?: (string | null) | null
  /**
   * Logo in mails, account pages, tabs and the console: the address of an uploaded image.
   */
  logo_url?: (string | null) | null
  /**
   * Colour of buttons in mails and account pages, and of the sign of a platform without a logo.
   */
  accent?: string | null
  /**
   * Where mails and pushes lead: `{"conversation", "ticket", "notification", "home"}`, each https or the app’s own scheme, with `{id}`.
   */
  links?: Links | null
  /**
   * Texts of mails instead of the default ones: `{"kind": {"language": {"subject", "body"}}}`.
   */
  texts?: MailTexts | null
  /**
   * Minutes after which unread messages are mailed, once until the person comes back; 0 is never.
   */
  unread_mail_minutes?: number | null
  /**
   * Content of pushes: `full`, `sender` (names without texts) or `none` (only that there is something).
   */
  push_content?: ('full' | 'sender' | 'none') | null
  /**
   * Content of mails about messages, notifications and tickets: `full`, `sender` or `none`.
   */
  mail_content?: ('full' | 'sender' | 'none') | null
  /**
   * Days for which messages are kept; 0 is for ever.
   */
  message_retention_days?: number | null
  /**
   * Days for which tickets are kept after they were closed; 0 is for ever.
   */
  ticket_retention_days?: number | null
  /**
   * Whether people may register themselves: `open` or `off`.
   */
  registration?: ('open' | 'off') | null
}
export interface DueMessages {
  /**
   * The setting; 0 keeps everything.
   */
  days: number
  /**
   * Messages that the next run deletes.
   */
  due: number
  /**
   * Messages as old that stay as long as a report is open.
   */
  held: number
}
export interface DueTickets {
  /**
   * The setting; 0 keeps everything.
   */
  days: number
  /**
   * Tickets that the next run deletes.
   */
  due: number
  /**
   * Tickets as old that stay as long as a report is open.
   */
  held: number
}
export interface Retention {
  messages: DueMessages
  tickets: DueTickets
  last_run_at: string | null
  next_run_at: string | null
}
export interface DefaultMailText {
  subject: string
  body: string
}
/**
 * The default texts by language.
 */
export interface DefaultMailTexts {
  en: DefaultMailText
  de: DefaultMailText
  es: DefaultMailText
  fr: DefaultMailText
  pt: DefaultMailText
}
export interface MailTextKind {
  kind:
    | 'verify_email'
    | 'reset_password'
    | 'password_changed'
    | 'totp_enabled'
    | 'totp_disabled'
    | 'change_email'
    | 'undo_email'
    | 'email_taken'
    | 'confirm'
    | 'notifications'
    | 'unread_messages'
    | 'ticket_answer'
    | 'ticket_waiting'
    | 'bucket_failed'
  placeholders: string[]
  /**
   * The placeholder that a body must have.
   */
  required: string | null
  texts: DefaultMailTexts
}
export interface MailTextKinds {
  kinds: MailTextKind[]
}
export interface MailTextPreviewRequest {
  /**
   * The mail.
   */
  kind:
    | 'verify_email'
    | 'reset_password'
    | 'password_changed'
    | 'totp_enabled'
    | 'totp_disabled'
    | 'change_email'
    | 'undo_email'
    | 'email_taken'
    | 'confirm'
    | 'notifications'
    | 'unread_messages'
    | 'ticket_answer'
    | 'ticket_waiting'
    | 'bucket_failed'
  /**
   * Its language.
   */
  lang: 'en' | 'de' | 'es' | 'fr' | 'pt'
  subject?: string | null
  body?: string | null
  /**
   * Settings in place of those in use.
   */
  settings?: SettingsUpdate | null
  send?: boolean | null
}
export interface MailTextPreview {
  subject: string
  text: string
  html: string
}
/**
 * The author of the action: a person, a key, the command line or the service itself.
 */
export interface AuditParty {
  type: string | null
  id: string | null
  /**
   * The name of a user whose account exists.
   */
  name: string | null
}
export interface AuditEntry {
  id: string
  at: string
  /**
   * The action, for example `role_changed`.
   */
  action: string
  actor: AuditParty
  target: AuditParty
  ip: string | null
  details: {
    [k: string]: string
  } | null
}
export interface AuditEntryPage {
  success: true
  data: AuditEntry[]
  pagination: Pagination
}
export interface AuditEntryCursorPage {
  data: AuditEntry[]
  pagination: CursorPagination
}
export interface JobSubject {
  type: 'user' | 'ticket' | 'webhook'
  id: string
  name: string | null
}
export interface Job {
  id: string
  kind: string
  state: JobState
  /**
   * Tries so far.
   */
  attempts: number
  last_error: string | null
  /**
   * When it is tried next.
   */
  run_at: string
  /**
   * The receiver of a mail, push or delivery; `name` for users that exist.
   */
  subject: JobSubject | null
}
export interface JobPage {
  success: true
  data: Job[]
  pagination: Pagination
}
export interface JobCursorPage {
  data: Job[]
  pagination: CursorPagination
}
export interface UserCreatedEvent {
  type: 'user.created'
  /**
   * When it happened.
   */
  timestamp: string
  data: {
    user: ManagedUser
  }
}
export interface UserUpdatedEvent {
  type: 'user.updated'
  /**
   * When it happened.
   */
  timestamp: string
  data: {
    user: ManagedUser
  }
}
export interface UserDeletedEvent {
  type: 'user.deleted'
  /**
   * When it happened.
   */
  timestamp: string
  data: {
    user: {
      id: string
      /**
       * The id that the platform gives the person; absent if there is none.
       */
      external_id?: string
    }
  }
}
export interface MessageCreatedEvent {
  type: 'message.created'
  /**
   * When it happened.
   */
  timestamp: string
  data: {
    message: Message & {
      /**
       * The id that the platform gives the person; absent if there is none.
       */
      sender_external_id?: string
    }
  }
}
export interface MessageDeletedEvent {
  type: 'message.deleted'
  /**
   * When it happened.
   */
  timestamp: string
  data: {
    message: {
      id: string
    }
  }
}
export interface ExternalPerson {
  /**
   * The id that the platform gives the person; absent if there is none.
   */
  external_id?: string
}
export interface TicketPeople {
  user: ExternalPerson
  /**
   * The admin who looks after it.
   */
  assignee: ExternalPerson | null
}
export interface ExternalAuthor {
  author: ExternalPerson
}
export interface TicketCreatedEvent {
  type: 'ticket.created'
  /**
   * When it happened.
   */
  timestamp: string
  data: {
    ticket: DeskTicketListItem & TicketPeople
    message: DeskTicketMessage & ExternalAuthor
  }
}
export interface TicketRepliedEvent {
  type: 'ticket.replied'
  /**
   * When it happened.
   */
  timestamp: string
  data: {
    ticket: DeskTicketListItem & TicketPeople
    message: DeskTicketMessage & ExternalAuthor
  }
}
export interface TicketUpdatedEvent {
  type: 'ticket.updated'
  /**
   * When it happened.
   */
  timestamp: string
  data: {
    ticket: DeskTicketListItem & TicketPeople
  }
}
export interface ReportCreatedEvent {
  type: 'report.created'
  /**
   * When it happened.
   */
  timestamp: string
  data: {
    report: Report & {
      reporter: ExternalPerson
      reported: ExternalPerson
      /**
       * The id that the platform gives the person; absent if there is none.
       */
      resolved_by_external_id?: string
    }
  }
}
export interface NotificationCreatedEvent {
  type: 'notification.created'
  /**
   * When it happened.
   */
  timestamp: string
  data: {
    notification: Notification & {
      user_id: string
      /**
       * The id that the platform gives the person; absent if there is none.
       */
      user_external_id?: string
    }
  }
}
export interface BroadcastCompletedEvent {
  type: 'broadcast.completed'
  /**
   * When it happened.
   */
  timestamp: string
  data: {
    /**
     * A broadcast of a host, or an announcement of an admin.
     */
    broadcast: Broadcast | AnnouncementProgress
  }
}
export interface WebhookTestEvent {
  type: 'webhook.test'
  /**
   * When it happened.
   */
  timestamp: string
  data: {
    webhook: {
      id: string
    }
  }
}
export interface ErrorBody {
  error: ErrorInfo
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
       * Groups of additional frames, comma-separated: ready, ack, read, changes, support, notification.
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
   * Replaces the recovery codes of the second factor.
   */
  'POST /v1/auth/totp/recovery-codes': {
    body: CodesRenewal
    answer: RecoveryCodes
  }
  /**
   * Mails you a code of six digits for a confirmation, for example without a password.
   */
  'POST /v1/auth/confirm/code': {
    answer: null
  }
  /**
   * Confirms the session with the password, or a code from the authenticator or a mail (`POST /v1/auth/confirm/code`).
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
   * Sets the hours of each day in which pushes and mails wait; then they come as one.
   */
  'PUT /v1/users/me/quiet-hours': {
    body: NewQuietHours
    answer: Profile
  }
  /**
   * Clears your quiet hours.
   */
  'DELETE /v1/users/me/quiet-hours': {
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
    answer: SessionList
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
      role?: Role
      /**
       * Only people who are disabled, or who are not.
       */
      disabled?: boolean
      /**
       * Only people whose address is verified, or is not.
       */
      email_verified?: boolean
    }
    answer: ManagedUserList
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
   * Counts what a purge of a person would remove now.
   */
  'GET /v1/admin/users/{id}/purge': {
    params: {
      id: string
    }
    answer: PurgeCounts
  }
  /**
   * Removes a person with all of their messages, files and tickets, and the reports they made, also when the account is already removed.
   */
  'POST /v1/admin/users/{id}/purge': {
    params: {
      id: string
    }
    answer: PurgeStarted
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
    answer: SessionList
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
   * Finds a person by e-mail address, external id, or both; one of them is required.
   */
  'GET /v1/service/users': {
    query?: {
      page?: number
      /**
       * Values above 100 count as 100.
       */
      per_page?: number
      /**
       * The e-mail address of the account.
       */
      email?: string
      /**
       * The id of the person in the rest of the platform. The feed accepts `ext:` followed by this id.
       */
      external_id?: string
    }
    answer: ManagedUserList
  }
  /**
   * Creates a person, or brings the one with the same `external_id` up to date (200): absent fields keep their value, and an address without `email_verified: true` becomes unverified when it changes and gets a verification mail.
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
   * Changes a person’s role, status, address or profile.
   */
  'PATCH /v1/service/users/{id}': {
    params: {
      id: string
    }
    body: PersonUpdate
    answer: ManagedUser
  }
  /**
   * Removes a person, as they could themselves.
   */
  'DELETE /v1/service/users/{id}': {
    params: {
      id: string
    }
    answer: null
  }
  /**
   * Logs a person out on every device; no admin.
   */
  'DELETE /v1/service/users/{id}/sessions': {
    params: {
      id: string
    }
    answer: null
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
   * Lists the bans, newest first.
   */
  'GET /v1/admin/bans': {
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
      kind?: BanKind
      /**
       * The value, with its `kind`.
       */
      value?: string
    }
    answer: BanList
  }
  /**
   * Bans a mail domain, an address or a network: registration, a change of the address and login, also one by the platform, are refused with the reason `banned`, and no session of theirs can be refreshed.
   */
  'POST /v1/admin/bans': {
    body: NewBan
    answer: Ban
  }
  /**
   * Removes a ban.
   */
  'DELETE /v1/admin/bans/{id}': {
    params: {
      id: string
    }
    answer: null
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
    answer: ServiceKeyList
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
   * Lists the followers of a host, ordered by id, to compare them with your own.
   */
  'GET /v1/service/follows': {
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
       * An id, or `ext:` and an external id.
       */
      host_id?: string
    }
    answer: FollowList
  }
  /**
   * Lists the calls of the last 30 days, ordered by id, to compare them with your own.
   */
  'GET /v1/service/calls': {
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
       * Only calls in this state.
       */
      state?: 'ringing' | 'active' | 'ended' | 'missed'
    }
    answer: CallList
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
      /**
       * `true` lists archived conversations, which are otherwise left out.
       */
      archived?: boolean
    }
    answer: ConversationList
  }
  /**
   * Opens the conversation with another user, or returns the existing one.
   */
  'POST /v1/chat/conversations': {
    body: NewConversation
    answer: Conversation
  }
  /**
   * Shows a conversation as the list does.
   */
  'GET /v1/chat/conversations/{id}': {
    params: {
      id: string
    }
    answer: ConversationListItem
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
    answer: MessageCursorPage
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
    answer: MessageList
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
   * Archives a conversation: it leaves your list and your badge until its next message.
   */
  'PUT /v1/chat/conversations/{id}/archive': {
    params: {
      id: string
    }
    answer: null
  }
  /**
   * Takes a conversation back into your list.
   */
  'DELETE /v1/chat/conversations/{id}/archive': {
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
   * Posts a notice of the platform in the conversation of two people: `type: notice`, `sender_id: null`.
   */
  'POST /v1/service/messages': {
    body: NewPlatformMessage
    answer: Message
  }
  /**
   * Removes a notice.
   */
  'DELETE /v1/service/messages/{id}': {
    params: {
      id: string
    }
    answer: null
  }
  /**
   * Opens the conversation of two people, or returns the existing one.
   */
  'POST /v1/service/conversations': {
    body: NewPlatformConversation
    answer: PlatformConversation
  }
  /**
   * Shows a conversation.
   */
  'GET /v1/service/conversations/{id}': {
    params: {
      id: string
    }
    answer: PlatformConversation
  }
  /**
   * Changes the data of a conversation, or closes it for writing and opens it again.
   */
  'PATCH /v1/service/conversations/{id}': {
    params: {
      id: string
    }
    body: PlatformConversationUpdate
    answer: PlatformConversation
  }
  /**
   * Uploads a file, either as the body with its type as Content-Type, or as the field `file` of a form.
   */
  'POST /v1/files': {
    answer: UploadedFile
  }
  /**
   * Lists the files that you have uploaded, newest first, with the room that they take.
   */
  'GET /v1/files': {
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
    answer: OwnFileList
  }
  /**
   * Downloads a file.
   */
  'GET /v1/files/{id}/{name}': {
    params: {
      id: string
      name: string
    }
    query?: {
      /**
       * The width of a thumbnail of an image, as WebP, turned upright; of an animation its first picture. An image that cannot be decoded is sent as it is, as is any while the disk has too little room.
       */
      w?: '160' | '320' | '640' | '1280'
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
    answer: BlockList
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
      status?: ReportStatus
      /**
       * Only reports about this user or their messages.
       */
      reported_id?: string
    }
    answer: ReportList
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
    answer: TicketList
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
    answer: TicketMessageList
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
      priority?: TicketPriority
      category?: TicketCategory
      /**
       * The id of an admin, `me`, or `none`.
       */
      assignee_id?: string
      /**
       * The id of the person who opened the ticket.
       */
      user_id?: string
      order?: TicketOrder
      /**
       * Up to 8 words that are all in the ticket or its notes, the last one as a beginning; accents and case do not matter. `#` and the last six characters of an id find that ticket, so that its owner can say them. The newest ticket comes first. `total` and numbered pages end at 200; the cursor form continues.
       */
      q?: string
    }
    answer: DeskTicketList
  }
  /**
   * Opens a ticket for a user with a message of yours and notifies the user.
   */
  'POST /v1/admin/support/tickets': {
    body: NewDeskTicket
    answer: DeskTicket
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
   * Changes status, priority, category or assignee of a ticket.
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
    answer: DeskTicketMessageList
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
   * Changes the text of a note of your own.
   */
  'PATCH /v1/admin/support/tickets/{id}/notes/{note_id}': {
    params: {
      id: string
      note_id: string
    }
    body: TicketNoteUpdate
    answer: TicketNote
  }
  /**
   * Deletes a note of your own, or one whose author is no longer an enabled admin.
   */
  'DELETE /v1/admin/support/tickets/{id}/notes/{note_id}': {
    params: {
      id: string
      note_id: string
    }
    answer: null
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
    answer: CannedReplyList
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
    answer: NotificationList
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
    answer: PushTokenList
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
    answer: SentAnnouncement
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
    answer: AnnouncementProgressList
  }
  /**
   * Lists the mails and pushes of the last 30 days to a person and what became of them, newest first.
   */
  'GET /v1/admin/users/{id}/deliveries': {
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
    answer: UserDeliveryList
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
    answer: WebhookList
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
    answer: WebhookDeliveryList
  }
  /**
   * Delivers again what an endpoint has not accepted, of events since a time: all that wait, and of those that were given up the kept ones (the last 100).
   */
  'POST /v1/admin/webhooks/{id}/deliveries/retry': {
    params: {
      id: string
    }
    body: RetrySince
    answer: Retried
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
   * Shows the settings of the platform, defaults included.
   */
  'GET /v1/admin/settings': {
    answer: Settings
  }
  /**
   * Changes settings of the platform.
   */
  'PATCH /v1/admin/settings': {
    body: SettingsUpdate
    answer: Settings
  }
  /**
   * Shows the default of each setting.
   */
  'GET /v1/admin/settings/defaults': {
    answer: Settings
  }
  /**
   * Shows how many messages and tickets the settings for retention would delete now, and when it runs.
   */
  'GET /v1/admin/retention': {
    answer: Retention
  }
  /**
   * Lists the mails with their placeholders and default texts.
   */
  'GET /v1/admin/settings/texts': {
    answer: MailTextKinds
  }
  /**
   * Shows a mail with invented values, as it would be after a change of `settings`.
   */
  'POST /v1/admin/settings/texts/preview': {
    body: MailTextPreviewRequest
    answer: MailTextPreview
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
    answer: AuditEntryList
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
      state?: JobState
    }
    answer: JobList
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
   * With `events=ready`: the first frame, with what the user has not read.
   */
  ready: {
    type: 'ready'
    /**
     * The `since` of the next connection, until a `new_message` arrives.
     */
    newest_message_id: string
    unread: {
      /**
       * The number of unread messages.
       */
      messages: number
      notifications: number
    }
  }
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
    error: ErrorInfo
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
   * The client missed more messages than a replay sends, or the message `since` is gone: undone by a restore, forgotten or purged. Load the conversations and messages again.
   */
  resync: {
    type: 'resync'
    /**
     * The `since` of the next connection, until a `new_message` arrives.
     */
    newest_message_id: string
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
    /**
     * A conversation of yours.
     */
    conversation_id: string
    user_id: string
  }
  /**
   * The other user has read the conversation.
   */
  read_receipt: {
    type: 'read_receipt'
    /**
     * A conversation of yours.
     */
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
    /**
     * A conversation of yours.
     */
    conversation_id: string
    unread_count: number
  }
  /**
   * With `events=changes`: the conversation is new and empty, the platform changed it, your right to send changed, or another device of yours changed it.
   */
  conversation_updated: {
    type: 'conversation_updated'
    conversation: ConversationListItem
  }
  /**
   * With `events=changes`: a message was removed. It stays in the list without content.
   */
  message_deleted: {
    type: 'message_deleted'
    /**
     * A conversation of yours.
     */
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
   * With `events=support`: a ticket changed, or is gone when it is read again. Owners and admins get different fields.
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
   * With `events=support`, for admins: another admin has this ticket open.
   */
  ticket_viewed: {
    type: 'ticket_viewed'
    ticket_id: string
    user_id: string
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
    /**
     * A conversation of yours.
     */
    conversation_id: string
    /**
     * The text. That of a file message may be empty.
     */
    body: string
    file_url?: string | null
    file_name?: string | null
    file_size?: number | null
    file_type?: string | null
    attachments?: NewMessageFile[] | null
    client_id?: string | null
    message_type?: SentType | null
  }
  /**
   * Notifies the other user that you are typing.
   */
  typing: {
    type: 'typing'
    /**
     * A conversation of yours.
     */
    conversation_id: string
  }
  /**
   * Marks a conversation as read.
   */
  read: {
    type: 'read'
    /**
     * A conversation of yours.
     */
    conversation_id: string
    message_id?: string | null
  }
  /**
   * For admins: notifies the other admins that you have this ticket open. Repeat it every 20 seconds.
   */
  viewing: {
    type: 'viewing'
    ticket_id: string
  }
  /**
   * Continues with a newer access token of the same user.
   */
  auth: {
    type: 'auth'
    /**
     * A newer access token of the same user.
     */
    token: string
  }
  /**
   * Asks for a pong.
   */
  ping: {
    type: 'ping'
  }
}
