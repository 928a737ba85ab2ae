/** The closed sets of words in the API and the database. A CHECK constraint enforces each stored set. */

export const roles = ['guest', 'user', 'verified_user', 'host', 'admin'] as const
export type Role = (typeof roles)[number]

export const messageTypes = ['text', 'file'] as const
export type MessageType = (typeof messageTypes)[number]

export const keyStates = ['next', 'active', 'retired'] as const

export const actorTypes = ['user', 'service_key', 'command_line', 'system'] as const
export type ActorType = (typeof actorTypes)[number]

export const tokenPurposes = [
  'verify_email',
  'reset_password',
  'set_up',
  'change_email',
  'undo_email',
] as const
export type TokenPurpose = (typeof tokenPurposes)[number]

export const countedMails = [
  'verify_email',
  'reset_password',
  'password_changed',
  'change_email',
] as const
export type CountedMail = (typeof countedMails)[number]

export const serviceScopes = ['notifications', 'follows', 'calls', 'users', 'sessions'] as const
/** Every scope except `sessions`, which lets a service log users in and must be granted explicitly. */
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
export type NotificationType = (typeof notificationTypes)[number]

/** Types with a switch in the preferences, including those without a notification. */
export const preferenceTypes = [...notificationTypes, 'chat_message'] as const
export type PreferenceType = (typeof preferenceTypes)[number]

export const pushPlatforms = ['ios', 'android', 'web'] as const

export const audienceKinds = ['all', 'role', 'users'] as const

/** In the order of a call's life; the last two are final. */
export const callStates = ['ringing', 'active', 'ended', 'missed'] as const
export type CallState = (typeof callStates)[number]

export const reportReasons = ['spam', 'harassment', 'fraud', 'sexual', 'other'] as const
export type ReportReason = (typeof reportReasons)[number]

export const reportStatuses = ['open', 'resolved'] as const
export type ReportStatus = (typeof reportStatuses)[number]

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

export const ticketFields = ['status', 'priority', 'assignee'] as const
