/** The closed sets of words in the API and the database. A CHECK constraint enforces each stored set. */

export const roles = ['guest', 'user', 'verified_user', 'host', 'admin'] as const
export type Role = (typeof roles)[number]

export const sentTypes = ['text', 'file'] as const
export type SentType = (typeof sentTypes)[number]
/** A notice is from the platform. */
export const messageTypes = [...sentTypes, 'notice'] as const

export const conversationStates = ['open', 'read_only'] as const

export const keyStates = ['next', 'active', 'retired'] as const

export const actorTypes = ['user', 'service_key', 'command_line', 'system'] as const
export type ActorType = (typeof actorTypes)[number]

export const tokenPurposes = [
  'verify_email',
  'reset_password',
  'set_up',
  'change_email',
  'undo_email',
  'confirm',
] as const
export type TokenPurpose = (typeof tokenPurposes)[number]

export const countedMails = [
  'verify_email',
  'reset_password',
  'password_changed',
  'change_email',
  'confirm',
] as const
export type CountedMail = (typeof countedMails)[number]

/** Kinds of a purged user's content, by their names in the audit log. */
export const purgedKinds = ['messages', 'broadcasts', 'files', 'tickets', 'reports'] as const
export type PurgedKind = (typeof purgedKinds)[number]

/** Scopes with which a service acts as a user. They must be granted explicitly. */
export const actingScopes = ['sessions', 'messages_as'] as const
export const serviceScopes = [
  'notifications',
  'follows',
  'calls',
  'users',
  'messages',
  ...actingScopes,
] as const
/** Every scope except those of `actingScopes`. */
export const allScopes = 'all' as const
export const grantableScopes = [...serviceScopes, allScopes] as const
export type ServiceScope = (typeof serviceScopes)[number]

export const notificationTypes = [
  'call_incoming',
  'call_missed',
  'payment_captured',
  'payout_completed',
  'payout_failed',
  'follow_new',
  'support_reply',
  'broadcast',
] as const
export type CustomType = `custom.${string}`
export const customTypePattern = '^custom\\.[a-z0-9_]{1,40}$'
const customType = new RegExp(customTypePattern)
export const isCustomType = (type: string): type is CustomType => customType.test(type)

export type KnownType = (typeof notificationTypes)[number]
export type NotificationType = KnownType | CustomType
/** Types of the platform are treated as broadcasts. */
export const knownType = (type: NotificationType): KnownType =>
  isCustomType(type) ? 'broadcast' : (type as KnownType) // the type of every other word

/** Types with a switch in the preferences, including those without a notification. */
export const preferenceTypes = [...notificationTypes, 'chat_message'] as const
export type PreferenceType = (typeof preferenceTypes)[number] | CustomType

export const isPreferenceType = (type: string): type is PreferenceType =>
  isCustomType(type) || preferenceTypes.some((known) => known === type)

export const pushPlatforms = ['ios', 'android', 'web'] as const

export const audienceKinds = ['all', 'role', 'users'] as const

/** In the order of a call's life; the last two are final. */
export const callStates = ['ringing', 'active', 'ended', 'missed'] as const
export type CallState = (typeof callStates)[number]

export const reportReasons = ['spam', 'harassment', 'fraud', 'sexual', 'other'] as const
export type ReportReason = (typeof reportReasons)[number]

export const reportStatuses = ['open', 'resolved'] as const
export type ReportStatus = (typeof reportStatuses)[number]

export const deliveryChannels = ['email', 'push'] as const
export type DeliveryChannel = (typeof deliveryChannels)[number]

/** `waiting`: failed and will be tried again. `failed`: given up. `bounced`: the address or device is refused for good.
 *  `skipped`: no longer needed, or the channel is not configured. */
export const deliveryStates = ['sent', 'waiting', 'failed', 'bounced', 'skipped'] as const
export type DeliveryState = (typeof deliveryStates)[number]

export const banKinds = ['mail_domain', 'address', 'network'] as const
export type BanKind = (typeof banKinds)[number]

export const eventTypes = [
  'user.created',
  'user.updated',
  'user.deleted',
  'message.created',
  'message.deleted',
  'ticket.created',
  'ticket.replied',
  'ticket.updated',
  'report.created',
  'notification.created',
  'broadcast.completed',
] as const
export type EventType = (typeof eventTypes)[number]

export const ticketStatuses = ['open', 'in_progress', 'resolved', 'closed'] as const
export type TicketStatus = (typeof ticketStatuses)[number]

export const ticketPriorities = ['low', 'normal', 'high', 'urgent'] as const
export type TicketPriority = (typeof ticketPriorities)[number]

export const ticketCategories = ['billing', 'technical', 'account', 'other'] as const
export type TicketCategory = (typeof ticketCategories)[number]

export const ticketFields = ['status', 'priority', 'category', 'assignee'] as const
