import { sql } from 'drizzle-orm'
import {
  type AnySQLiteColumn,
  check,
  foreignKey,
  index,
  integer,
  primaryKey,
  sqliteTable,
  text,
  uniqueIndex,
} from 'drizzle-orm/sqlite-core'
import { locales } from '../lib/i18n.ts'
import type { QuietHours } from '../lib/quiet-hours.ts'
import * as words from '../lib/vocabulary.ts'

/** Every table of the database. Ids are ULIDs in upper case, times are milliseconds since the epoch, flags 0 or 1. */

/** A file attached to a text, in the form of the upload's response. */
export type Attachment = {
  id: string
  file_url: string
  file_name: string
  file_size: number
  file_type: string
  width?: number
  height?: number
  placeholder?: string
}

/** The subject of a push: a notification, or a conversation up to `seq`. */
export type PushSubject = { notification_id: string } | { conversation_id: string; seq: number }
/** A push that waits for the end of the quiet hours. `job_id` names the job that sends it. */
export type HeldPush = PushSubject & { job_id: string }

const time = (name: string) => integer(name)
const isSet = (column: string) => sql.raw(`${column} IS NOT NULL`)
const oneOf = (column: string, values: readonly string[]) =>
  sql.raw(`${column} IN (${values.map((value) => `'${value}'`).join(', ')})`)

/** `oneOf` for the table of messages: for more than two values in `IN`, SQLite builds a temporary index in each insert. */
const equalsOneOf = (column: string, values: readonly string[]) =>
  sql.raw(values.map((value) => `${column} = '${value}'`).join(' OR '))

// Accounts. The migration adds two things that drizzle cannot express: `user_search`, a full-text index of names, addresses
// and the generated column `facets`, and the triggers that maintain it.

export const users = sqliteTable(
  'users',
  {
    /** The rowid in the full-text index. Without an explicit column SQLite may renumber rows. */
    n: integer('n').primaryKey(),
    id: text('id').notNull().unique(),
    email: text('email').notNull().unique(),
    displayName: text('display_name').notNull(),
    avatarUrl: text('avatar_url'),
    locale: text('locale', { enum: locales }).notNull(),
    role: text('role', { enum: words.roles }).notNull(),
    emailVerified: integer('email_verified', { mode: 'boolean' }).notNull().default(false),
    /** Registered with an address that was never verified. A trigger clears the flag when it is. */
    isProvisional: integer('is_provisional', { mode: 'boolean' }).notNull().default(false),
    passwordHash: text('password_hash').notNull(),
    createdAt: time('created_at').notNull(),
    disabledAt: time('disabled_at'),
    externalId: text('external_id'),
    emailBouncedAt: time('email_bounced_at'),
    quietHours: text('quiet_hours', { mode: 'json' }).$type<QuietHours>(),
    /** The row stays without personal data, because messages refer to it. */
    deletedAt: time('deleted_at'),
  },
  ({ id, externalId, role, disabledAt, emailVerified }) => [
    check('users_role', oneOf('role', words.roles)),
    check('users_locale', oneOf('locale', locales)),
    check('users_email_verified', sql.raw('email_verified IN (0, 1)')),
    uniqueIndex('users_external_id').on(externalId).where(isSet('external_id')),
    // The recipients of an announcement, in delivery order, and the people whom admins list. The last columns are included
    // so that filters and counts read no row.
    index('users_present').on(id, disabledAt, emailVerified).where(sql.raw('deleted_at IS NULL')),
    index('users_present_role')
      .on(role, id, disabledAt, emailVerified)
      .where(sql.raw('deleted_at IS NULL')),
  ],
)

const reference = (name: string, to: () => AnySQLiteColumn, onDelete?: 'cascade') =>
  text(name)
    .notNull()
    .references(to, onDelete && { onDelete })
const personId = (name: string) => reference(name, () => users.id)
const ownerId = (name: string) => reference(name, () => users.id, 'cascade')
const key = (name: string, to: () => AnySQLiteColumn, onDelete?: 'cascade') =>
  text(name)
    .primaryKey()
    .references(to, onDelete && { onDelete })
const personKey = (name: string) => key(name, () => users.id)

/** One login on one device: the family of refresh tokens that descend from it. */
export const sessions = sqliteTable(
  'sessions',
  {
    id: text('id').primaryKey(),
    userId: ownerId('user_id'),
    userAgent: text('user_agent'),
    ip: text('ip'),
    createdAt: time('created_at').notNull(),
    lastUsedAt: time('last_used_at').notNull(),
    revokedAt: time('revoked_at'),
    /** When the user last re-authenticated in this session; the login itself does not count. */
    confirmedAt: time('confirmed_at'),
    /** Begun by the platform, whose external ids the session may use. */
    isByPlatform: integer('is_by_platform', { mode: 'boolean' }).notNull().default(false),
  },
  (table) => [
    index('sessions_user').on(table.userId, table.id),
    index('sessions_last_used').on(table.lastUsedAt),
  ],
)

/** Consumed tokens are kept until they expire, so that a reuse is detected. */
export const refreshTokens = sqliteTable(
  'refresh_tokens',
  {
    /** SHA-256 of the token in hex; the token itself is not stored. */
    hash: text('hash').primaryKey(),
    sessionId: reference('session_id', () => sessions.id, 'cascade'),
    parentHash: text('parent_hash'),
    expiresAt: time('expires_at').notNull(),
    consumedAt: time('consumed_at'),
    /** SHA-256 in hex of the idempotency key of the request that consumed the token. */
    keyHash: text('key_hash'),
  },
  (table) => [
    uniqueIndex('refresh_tokens_live').on(table.sessionId).where(sql.raw('consumed_at IS NULL')),
    index('refresh_tokens_session').on(table.sessionId),
    index('refresh_tokens_expiry').on(table.expiresAt),
  ],
)

export const signingKeys = sqliteTable(
  'signing_keys',
  {
    kid: text('kid').primaryKey(),
    state: text('state', { enum: words.keyStates }).notNull(),
    /** PKCS #8 in PEM. */
    privateKey: text('private_key').notNull(),
    publicJwk: text('public_jwk', { mode: 'json' }).notNull(),
    createdAt: time('created_at').notNull(),
    activatedAt: time('activated_at'),
    retiredAt: time('retired_at'),
  },
  (table) => [
    check('signing_keys_state', oneOf('state', words.keyStates)),
    uniqueIndex('signing_keys_one_active').on(table.state).where(sql.raw("state = 'active'")),
    uniqueIndex('signing_keys_one_next').on(table.state).where(sql.raw("state = 'next'")),
  ],
)

/** Tokens of mailed or printed links. They prove control of an address, or of this server. */
export const oneTimeTokens = sqliteTable(
  'one_time_tokens',
  {
    hash: text('hash').primaryKey(),
    purpose: text('purpose', { enum: words.tokenPurposes }).notNull(),
    userId: text('user_id').references(() => users.id, { onDelete: 'cascade' }),
    email: text('email'),
    expiresAt: time('expires_at').notNull(),
    failures: integer('failures').notNull().default(0),
  },
  (table) => [
    check('one_time_tokens_purpose', oneOf('purpose', words.tokenPurposes)),
    index('one_time_tokens_user').on(table.userId, table.purpose),
    // A former address stays reserved as long as its change can be undone.
    index('one_time_tokens_reserved').on(table.email).where(sql.raw("purpose = 'undo_email'")),
    index('one_time_tokens_expiry').on(table.expiresAt),
  ],
)

export const totpFactors = sqliteTable(
  'totp_factors',
  {
    userId: key('user_id', () => users.id, 'cascade'),
    /** Base32. An unconfirmed factor has the secrets of the last calls, separated by spaces. */
    secret: text('secret').notNull(),
    /** Null until the first code has proved that the authenticator works. */
    confirmedAt: time('confirmed_at'),
    /** The time step of the newest used code: that code and older ones are refused. */
    lastStep: integer('last_step').notNull().default(0),
    createdAt: time('created_at').notNull(),
    /** Enabled before the address was verified. A password reset by mail removes it. */
    isProvisional: integer('is_provisional', { mode: 'boolean' }).notNull().default(false),
  },
  (table) => [
    index('totp_factors_unconfirmed').on(table.createdAt).where(sql.raw('confirmed_at IS NULL')),
  ],
)

/** Recovery codes: each replaces one code of the authenticator, once. WITHOUT ROWID in the migration. */
export const recoveryCodes = sqliteTable(
  'recovery_codes',
  { userId: ownerId('user_id'), hash: text('hash').notNull() },
  (table) => [primaryKey({ columns: [table.userId, table.hash] })],
)

/** Changed settings; one with its default has no row. */
export const settings = sqliteTable('settings', {
  name: text('name').primaryKey(),
  /** JSON. */
  value: text('value').notNull(),
})

export const secrets = sqliteTable('secrets', {
  name: text('name').primaryKey(),
  value: text('value').notNull(),
})

/** Recent mails per hashed address. The limit thus survives a deleted and re-registered account. */
export const sentMails = sqliteTable(
  'sent_mails',
  {
    addressHash: text('address_hash').notNull(),
    kind: text('kind', { enum: words.countedMails }).notNull(),
    at: time('at').notNull(),
  },
  (table) => [
    index('sent_mails_address').on(table.addressHash, table.kind, table.at),
    index('sent_mails_at').on(table.at),
    check('sent_mails_kind', oneOf('kind', words.countedMails)),
  ],
)

/** Bytes of text that a user stored per day, accurate to 64 KiB. */
export const textUsage = sqliteTable(
  'text_usage',
  {
    userId: personKey('user_id'),
    /** Start of the day (UTC). */
    day: time('day').notNull(),
    bytes: integer('bytes').notNull(),
  },
  (table) => [index('text_usage_day').on(table.day)],
)

/** The audit log: append-only, without secrets. */
export const auditLog = sqliteTable(
  'audit_log',
  {
    id: text('id').primaryKey(),
    at: time('at').notNull(),
    action: text('action').notNull(),
    actorType: text('actor_type', { enum: words.actorTypes }).notNull(),
    actorId: text('actor_id'),
    targetType: text('target_type'),
    targetId: text('target_id'),
    ip: text('ip'),
    details: text('details'),
  },
  (table) => [
    check('audit_log_actor_type', oneOf('actor_type', words.actorTypes)),
    index('audit_log_target').on(table.targetId, table.action, table.at),
    index('audit_log_target_id').on(table.targetId, table.id),
    index('audit_log_actor').on(table.actorId, table.id),
    index('audit_log_action').on(table.action, table.id),
    index('audit_log_at').on(table.at),
  ],
)

/** Jobs with effects outside of this process, written in the transaction that makes them due. */
export const outbox = sqliteTable(
  'outbox',
  {
    id: text('id').primaryKey(),
    kind: text('kind').notNull(),
    /** The webhook or push service that receives it, else ''. Each receiver has slots of its own. */
    receiver: text('receiver').notNull().default(''),
    payload: text('payload', { mode: 'json' }).notNull(),
    createdAt: time('created_at').notNull(),
    runAt: time('run_at').notNull(),
    attempts: integer('attempts').notNull().default(0),
    deadAt: time('dead_at'),
    lastError: text('last_error'),
  },
  ({ id, kind, receiver, runAt, deadAt }) => [
    // Without the last column SQLite would not count jobs by the index alone.
    index('outbox_due').on(kind, receiver, runAt, id, deadAt).where(sql.raw('dead_at IS NULL')),
    index('outbox_dead').on(deadAt).where(isSet('dead_at')),
    index('outbox_dead_id').on(id).where(isSet('dead_at')),
  ],
)

/** Idempotency keys of requests that create things without a key of their own. */
export const idempotencyKeys = sqliteTable(
  'idempotency_keys',
  {
    /** SHA-256 of the client, the kind of thing and the key. */
    hash: text('hash').primaryKey(),
    contentHash: text('content_hash').notNull(),
    /** The id of what was created. */
    targetId: text('target_id').notNull(),
    createdAt: time('created_at').notNull(),
  },
  (table) => [index('idempotency_keys_created').on(table.createdAt)],
)

// Platform

export const serviceKeys = sqliteTable('service_keys', {
  id: text('id').primaryKey(),
  name: text('name').notNull(),
  hash: text('hash').notNull().unique(),
  scopes: text('scopes', { mode: 'json' }).$type<readonly words.ServiceScope[]>().notNull(),
  createdAt: time('created_at').notNull(),
  expiresAt: time('expires_at'),
  lastUsedAt: time('last_used_at'),
  revokedAt: time('revoked_at'),
})

/** WITHOUT ROWID in the migration: the followers of a host are adjacent, in the order of a broadcast's delivery. */
export const follows = sqliteTable(
  'follows',
  {
    hostId: personId('host_id'),
    followerId: personId('follower_id'),
    createdAt: time('created_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.hostId, table.followerId] }),
    index('follows_follower').on(table.followerId),
    check('follows_two_users', sql.raw('host_id <> follower_id')),
  ],
)

/** The number of reachable followers of a host, maintained by triggers in the migration. */
export const audiences = sqliteTable('audiences', {
  hostId: personKey('host_id'),
  followerCount: integer('follower_count').notNull(),
})

export const calls = sqliteTable(
  'calls',
  {
    id: text('id').primaryKey(),
    hostId: personId('host_id'),
    guestId: personId('guest_id'),
    state: text('state', { enum: words.callStates }).notNull(),
    /** When the call became active; the right to chat lapses some hours later. */
    activeAt: time('active_at'),
    updatedAt: time('updated_at').notNull(),
  },
  ({ id, hostId, guestId, state, activeAt, updatedAt }) => [
    check('calls_state', oneOf('state', words.callStates)),
    index('calls_active').on(hostId, guestId, activeAt).where(sql.raw("state = 'active'")),
    // The last column is included so that calls that have lapsed are skipped without reading their rows.
    index('calls_state').on(state, id, activeAt),
    index('calls_updated').on(updatedAt),
  ],
)

// Chat

/** One per pair of users: `userA` is the smaller id. */
export const conversations = sqliteTable(
  'conversations',
  {
    id: text('id').primaryKey(),
    userA: personId('user_a'),
    userB: personId('user_b'),
    /** `seq` of the newest message, also after it was forgotten. */
    lastSeq: integer('last_seq').notNull().default(0),
    /** `seq` of the oldest message that is kept. No number from here to `lastSeq` is missing. */
    firstSeq: integer('first_seq').notNull().default(1),
    createdAt: time('created_at').notNull(),
    /** Only the platform writes to a read-only conversation. */
    state: text('state', { enum: words.conversationStates }).notNull().default('open'),
    data: text('data'),
  },
  (table) => [
    check('conversations_state', oneOf('state', words.conversationStates)),
    uniqueIndex('conversations_pair').on(table.userA, table.userB),
    check('conversations_two_users', sql.raw('user_a < user_b')),
  ],
)

/** The state of a conversation for one of its users. WITHOUT ROWID in the migration: the rows of a user are adjacent. */
export const participants = sqliteTable(
  'participants',
  {
    userId: personId('user_id'),
    conversationId: reference('conversation_id', () => conversations.id),
    otherUserId: personId('other_user_id'),
    unreadCount: integer('unread_count').notNull().default(0),
    lastReadSeq: integer('last_read_seq').notNull().default(0),
    /** The id of the newest message, or of the conversation while it is empty. */
    lastActivityId: text('last_activity_id').notNull(),
    /** The conversation causes no pushes until this time. */
    mutedUntil: time('muted_until'),
    /** 1 while the user has archived the conversation; a new message clears it. */
    isArchived: integer('is_archived').notNull().default(0),
  },
  (table) => [
    primaryKey({ columns: [table.userId, table.conversationId] }),
    index('participants_inbox').on(table.userId, table.isArchived, table.lastActivityId),
    check('participants_is_archived', sql.raw('is_archived IN (0, 1)')),
    check('participants_unread_count', sql.raw('unread_count >= 0')),
  ],
)

/** Without them a badge would cost more the longer the list. A trigger moves archived conversations between them. */
export const inboxes = sqliteTable('inboxes', {
  userId: personKey('user_id'),
  /** Without archived conversations. */
  conversationCount: integer('conversation_count').notNull(),
  archivedCount: integer('archived_count').notNull().default(0),
  /** The sum over the user's conversations, except archived ones. */
  unreadCount: integer('unread_count').notNull().default(0),
  /** The id of the newest message that was mailed because it was unread. */
  mailedThrough: text('mailed_through'),
  /** Unread messages were mailed and the user has not come back since. */
  isMailed: integer('is_mailed', { mode: 'boolean' }).notNull().default(false),
})

/** Messages of a host to all followers, with their delivery progress. */
export const broadcasts = sqliteTable(
  'broadcasts',
  {
    id: text('id').primaryKey(),
    senderId: personId('sender_id'),
    body: text('body').notNull(),
    clientId: text('client_id'),
    recipientsCount: integer('recipients_count').notNull(),
    deliveredCount: integer('delivered_count').notNull().default(0),
    /** Delivery progress: every follower up to this id has the message. */
    lastFollowerId: text('last_follower_id').notNull().default(''),
    createdAt: time('created_at').notNull(),
    completedAt: time('completed_at'),
  },
  ({ senderId, clientId, id }) => [
    uniqueIndex('broadcasts_client_id').on(senderId, clientId).where(isSet('client_id')),
    // Exports and purges look for the broadcasts of one person, most of whom have none.
    index('broadcasts_sender').on(senderId, id),
  ],
)

/** WITHOUT ROWID in the migration: a page of a conversation is one range of adjacent rows. */
export const messages = sqliteTable(
  'messages',
  {
    conversationId: text('conversation_id').notNull(),
    /** Rises by 1 within the conversation, in commit order. Only the oldest messages are forgotten, so there are no gaps. */
    seq: integer('seq').notNull(),
    id: text('id').notNull().unique(),
    /** Null for a notice of the platform. */
    senderId: text('sender_id'),
    type: text('type', { enum: words.messageTypes }).notNull(),
    body: text('body').notNull(),
    fileUrl: text('file_url'),
    fileName: text('file_name'),
    fileSize: integer('file_size'),
    fileType: text('file_type'),
    clientId: text('client_id'),
    /** The broadcast that this message is a copy of. The sender gets no event for each copy. */
    broadcastId: text('broadcast_id').references(() => broadcasts.id),
    createdAt: time('created_at').notNull(),
    /** When the text was removed. The row stays, so that `seq` has no gap. */
    deletedAt: time('deleted_at'),
    /** 1 for a notice that neither counts as unread nor is pushed. */
    isSilent: integer('is_silent').notNull().default(0),
    data: text('data'),
    /** The size and placeholder of an uploaded image, as JSON; a list of them for several files. */
    picture: text('picture'),
    /** The files of a message with several, as a JSON list; the first is also in the columns above. */
    attachments: text('attachments'),
  },
  (table) => [
    primaryKey({ columns: [table.conversationId, table.seq] }),
    // Participants are never deleted, so one foreign key covers both columns.
    foreignKey({
      columns: [table.senderId, table.conversationId],
      foreignColumns: [participants.userId, participants.conversationId],
    }),
    uniqueIndex('messages_client_id').on(table.senderId, table.clientId).where(isSet('client_id')),
    index('messages_broadcast').on(table.broadcastId).where(isSet('broadcast_id')),
    check('messages_type', equalsOneOf('type', words.messageTypes)),
    check('messages_file', sql.raw("(type = 'file') = (file_url IS NOT NULL)")),
    check('messages_notice', sql.raw("(type = 'notice') = (sender_id IS NULL)")),
    check('messages_silent', sql.raw("is_silent = 0 OR type = 'notice'")),
  ],
)

/** The text of removed messages, kept for a while for reports only. */
export const removedMessages = sqliteTable(
  'removed_messages',
  {
    messageId: key('message_id', () => messages.id, 'cascade'),
    said: text('said', { mode: 'json' }).$type<Said>().notNull(),
    removedAt: time('removed_at').notNull(),
  },
  (table) => [index('removed_messages_removed_at').on(table.removedAt)],
)

type Said = Pick<
  typeof messages.$inferSelect,
  | 'type'
  | 'body'
  | 'fileUrl'
  | 'fileName'
  | 'fileSize'
  | 'fileType'
  | 'data'
  | 'picture'
  | 'attachments'
>

// Moderation

/** Two rows for a block, so that one look-up answers for both sides; `id` and `blockedAt` are null on the side
 *  that did not block. WITHOUT ROWID in the migration. */
export const blocks = sqliteTable(
  'blocks',
  {
    userId: personId('user_id'),
    otherUserId: personId('other_user_id'),
    id: text('id'),
    blockedAt: time('blocked_at'),
    /** The other user's name at the time of the block: later names stay hidden. */
    otherName: text('other_name').notNull().default(''),
  },
  (table) => [
    primaryKey({ columns: [table.userId, table.otherUserId] }),
    index('blocks_own').on(table.userId, table.id).where(isSet('id')),
    check('blocks_two_users', sql.raw('user_id <> other_user_id')),
  ],
)

export const reports = sqliteTable(
  'reports',
  {
    id: text('id').primaryKey(),
    reporterId: personId('reporter_id'),
    reportedId: personId('reported_id'),
    /** Null when the report is about the person. */
    messageId: text('message_id'),
    /** The id of the reported message, else of the person. */
    targetId: text('target_id').notNull(),
    reason: text('reason', { enum: words.reportReasons }).notNull(),
    body: text('body'),
    status: text('status', { enum: words.reportStatuses }).notNull(),
    note: text('note'),
    /** The message and its neighbours at the time of the report, oldest first. Deleted when the report is resolved. */
    excerpt: text('excerpt', { mode: 'json' }).$type<readonly Record<string, unknown>[]>(),
    resolvedById: text('resolved_by_id').references(() => users.id),
    resolvedAt: time('resolved_at'),
    createdAt: time('created_at').notNull(),
  },
  (table) => [
    check('reports_reason', oneOf('reason', words.reportReasons)),
    check('reports_status', oneOf('status', words.reportStatuses)),
    check('reports_target', sql.raw('target_id = coalesce(message_id, reported_id)')),
    check('reports_resolved', sql.raw("(status = 'resolved') = (resolved_at IS NOT NULL)")),
    check('reports_excerpt', sql.raw("status = 'open' OR excerpt IS NULL")),
    uniqueIndex('reports_open_target')
      .on(table.reporterId, table.targetId)
      .where(sql.raw("status = 'open'")),
    index('reports_status_id').on(table.status, table.id),
    index('reports_reporter').on(table.reporterId, table.id),
    index('reports_reported').on(table.reportedId, table.id),
    // The messages that retention keeps.
    index('reports_open_message')
      .on(table.messageId)
      .where(sql.raw("status = 'open' AND message_id IS NOT NULL")),
    index('reports_resolved_at').on(table.resolvedAt).where(isSet('resolved_at')),
  ],
)

// Files

/** Uploaded files; the bytes are in `DATA_DIR/files` or in a bucket. */
export const files = sqliteTable(
  'files',
  {
    /** 256 random bits in base64url. The id is the only permission needed to read the file. */
    id: text('id').primaryKey(),
    ownerId: personId('owner_id'),
    name: text('name').notNull(),
    /** Bytes; during the upload the number of bytes reserved for it. */
    size: integer('size').notNull(),
    type: text('type').notNull(),
    /** Whether the first bytes match a type that is safe to display in a browser. */
    isInline: integer('is_inline', { mode: 'boolean' }).notNull(),
    /** The size and placeholder of a JPEG, PNG, WebP or GIF, as JSON. */
    picture: text('picture'),
    /** The EXIF orientation of an image; 1 for other files. */
    orientation: integer('orientation').notNull().default(1),
    /** Null until the upload is complete, and while the file is erased. */
    storedAt: time('stored_at'),
    /** The time since which the file is unused, at first the start of the upload; null while it is used. */
    unusedSince: time('unused_since'),
    /** When the file was removed for users. The desk can read a file of a message for some time after that. */
    removedAt: time('removed_at'),
    createdAt: time('created_at').notNull(),
  },
  (table) => [
    // Covers the quota query.
    index('files_owner').on(table.ownerId, table.id, table.size),
    index('files_owner_created')
      .on(table.ownerId, table.createdAt, table.id)
      .where(sql.raw('stored_at IS NOT NULL AND removed_at IS NULL')),
    index('files_unused').on(table.unusedSince).where(isSet('unused_since')),
    check('files_is_inline', sql.raw('is_inline IN (0, 1)')),
  ],
)

/** The uses of a file: a message, a ticket message, a note, a report, or a user's picture. WITHOUT ROWID in the migration. */
export const fileUses = sqliteTable(
  'file_uses',
  {
    /** The id of the message, note, report or user. */
    usedBy: text('used_by').notNull(),
    fileId: reference('file_id', () => files.id, 'cascade'),
  },
  (table) => [
    primaryKey({ columns: [table.usedBy, table.fileId] }),
    index('file_uses_file').on(table.fileId),
  ],
)

// Webhooks

export const webhooks = sqliteTable('webhooks', {
  id: text('id').primaryKey(),
  url: text('url').notNull(),
  events: text('events', { mode: 'json' }).$type<readonly words.EventType[]>().notNull(),
  description: text('description'),
  /** `whsec_…`, in full, because each delivery is signed with it. */
  secret: text('secret').notNull(),
  /** The previous secrets, separated by spaces, also sign deliveries until `formerSecretUntil`. */
  formerSecret: text('former_secret'),
  formerSecretUntil: time('former_secret_until'),
  failingSince: time('failing_since'),
  /** When an admin, or five days of failures, disabled it. */
  disabledAt: time('disabled_at'),
  /** Events dropped because too many were waiting. */
  droppedCount: integer('dropped_count').notNull().default(0),
  createdAt: time('created_at').notNull(),
})

/** Results of the latest deliveries to each webhook; pending ones are in the outbox. WITHOUT ROWID in the migration. */
export const webhookDeliveries = sqliteTable(
  'webhook_deliveries',
  {
    webhookId: reference('webhook_id', () => webhooks.id, 'cascade'),
    /** The `webhook-id` header of the request, the same in each attempt. */
    id: text('id').notNull(),
    event: text('event', { mode: 'json' }).$type<Record<string, string>>().notNull(),
    status: text('status', { enum: ['waiting', 'delivered', 'failed'] }).notNull(),
    attempts: integer('attempts').notNull(),
    responseStatus: integer('response_status'),
    /** The beginning of the last response, or the reason why there was none. */
    response: text('response'),
    createdAt: time('created_at').notNull(),
    attemptedAt: time('attempted_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.webhookId, table.id] }),
    index('webhook_deliveries_attempted').on(table.attemptedAt),
  ],
)

/** Domains, addresses and networks from which nobody may register or log in. */
export const bans = sqliteTable(
  'bans',
  {
    id: text('id').primaryKey(),
    kind: text('kind', { enum: words.banKinds }).notNull(),
    /** In lower case or in CIDR notation; the keyed hash of an address. */
    value: text('value').notNull(),
    reason: text('reason'),
    createdAt: time('created_at').notNull(),
    /** Null for ever. */
    until: time('until'),
  },
  (table) => [
    uniqueIndex('bans_value').on(table.kind, table.value),
    check('bans_kind', oneOf('kind', words.banKinds)),
  ],
)

/** The mails and pushes of the last 30 days to a user, one row per job, written with its outcome. No texts. */
export const deliveries = sqliteTable(
  'deliveries',
  {
    userId: ownerId('user_id'),
    id: text('id').notNull(),
    channel: text('channel', { enum: words.deliveryChannels }).notNull(),
    /** The type of the notification, or the kind of the job. */
    kind: text('kind').notNull(),
    state: text('state', { enum: words.deliveryStates }).notNull(),
    attempts: integer('attempts').notNull(),
    /** The receiver's answer or the reason of a failure, without addresses. */
    answer: text('answer'),
    at: time('at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.userId, table.id] }),
    index('deliveries_at').on(table.at),
    index('deliveries_failing').on(table.id).where(sql.raw("state IN ('waiting', 'failed')")),
    check('deliveries_channel', oneOf('channel', words.deliveryChannels)),
    check('deliveries_state', oneOf('state', words.deliveryStates)),
  ],
)

// Support. The migration adds what drizzle cannot express: `ticket_search`, a full-text index with one row per ticket, the
// view `ticket_texts` of its rows, the trigger that indexes messages, and `tickets_code`, an index of the ends of ids.

export const tickets = sqliteTable(
  'tickets',
  {
    /** Rises in commit order. Also the rowid in the full-text index. */
    n: integer('n').primaryKey(),
    id: text('id').notNull().unique(),
    userId: personId('user_id'),
    /** Rises per owner; forgotten tickets leave gaps. */
    userSeq: integer('user_seq').notNull(),
    subject: text('subject').notNull(),
    status: text('status', { enum: words.ticketStatuses }).notNull(),
    priority: text('priority', { enum: words.ticketPriorities }).notNull(),
    category: text('category', { enum: words.ticketCategories }).notNull(),
    assigneeId: text('assignee_id').references(() => users.id),
    /** `seq` of the newest message. It is dense, so it is also the number of messages. */
    messageCount: integer('message_count').notNull(),
    /** The owner's share of the ticket: messages, and characters in code points. */
    ownerMessageCount: integer('owner_message_count').notNull().default(0),
    ownerCharacters: integer('owner_characters').notNull().default(0),
    /** The time of the oldest owner's message that must still be mailed to the desk's inbox; null if there is none. */
    inboxDueAt: time('inbox_due_at'),
    assigneeMailedAt: time('assignee_mailed_at'),
    waitingSince: time('waiting_since'),
    firstResponseAt: time('first_response_at'),
    /** When the ticket was closed or resolved, or the time of the last message since it was resolved. */
    settledAt: time('settled_at'),
    createdAt: time('created_at').notNull(),
    updatedAt: time('updated_at').notNull(),
    /** Sort key of the desk's list: longest waiting first, then last changed. Every time is below 2^51. */
    queueKey: integer('queue_key').notNull(),
  },
  (table) => {
    // The desk's order for all tickets, and for those of a status, an assignee and an owner. Each includes every other
    // filterable column: reading the rows instead takes forty times as long.
    const { n, userId, queueKey, status, priority, category, assigneeId } = table
    return [
      uniqueIndex('tickets_owner').on(userId, table.userSeq),
      index('tickets_queue').on(queueKey, n, status, priority, category, assigneeId),
      index('tickets_queue_status').on(status, queueKey, n, priority, category, assigneeId),
      index('tickets_queue_assignee').on(assigneeId, queueKey, n, status, priority, category),
      index('tickets_queue_user').on(userId, queueKey, n, status, priority, category, assigneeId),
      index('tickets_inbox_due').on(table.inboxDueAt).where(isSet('inbox_due_at')),
      index('tickets_settled_at').on(status, table.settledAt).where(isSet('settled_at')),
      check('tickets_status', oneOf('status', words.ticketStatuses)),
      check('tickets_priority', oneOf('priority', words.ticketPriorities)),
      check('tickets_category', oneOf('category', words.ticketCategories)),
      check(
        'tickets_queue_key',
        sql.raw('queue_key = coalesce(waiting_since, 4503599627370496 - updated_at)'),
      ),
      check('tickets_waiting', sql.raw('settled_at IS NULL OR waiting_since IS NULL')),
      check(
        'tickets_settled',
        sql.raw("(status IN ('resolved', 'closed')) = (settled_at IS NOT NULL)"),
      ),
    ]
  },
)

/** WITHOUT ROWID in the migration: the messages of a ticket are adjacent. */
export const ticketMessages = sqliteTable(
  'ticket_messages',
  {
    ticketId: reference('ticket_id', () => tickets.id),
    /** 1, 2, 3 … within the ticket, in commit order, without gaps. Message 1 opened the ticket. */
    seq: integer('seq').notNull(),
    id: text('id').notNull().unique(),
    authorId: personId('author_id'),
    isAdmin: integer('is_admin', { mode: 'boolean' }).notNull(),
    body: text('body').notNull(),
    clientId: text('client_id'),
    createdAt: time('created_at').notNull(),
    /** Files, in the form of the upload's response. */
    attachments: text('attachments', { mode: 'json' }).$type<readonly Attachment[]>(),
  },
  ({ ticketId, seq, authorId, clientId }) => [
    primaryKey({ columns: [ticketId, seq] }),
    uniqueIndex('ticket_messages_client_id').on(authorId, clientId).where(isSet('client_id')),
    check('ticket_messages_is_admin', sql.raw('is_admin IN (0, 1)')),
  ],
)

/** Internal notes of admins about a ticket. They have their own table so that no query for the owner can return them. */
export const ticketNotes = sqliteTable(
  'ticket_notes',
  {
    id: text('id').primaryKey(),
    ticketId: reference('ticket_id', () => tickets.id),
    authorId: personId('author_id'),
    body: text('body').notNull(),
    createdAt: time('created_at').notNull(),
    /** When the author last changed the text. */
    editedAt: time('edited_at'),
    /** Files, in the form of the upload's response. */
    attachments: text('attachments', { mode: 'json' }).$type<readonly Attachment[]>(),
  },
  (table) => [index('ticket_notes_ticket').on(table.ticketId, table.id)],
)

export const ticketHistory = sqliteTable(
  'ticket_history',
  {
    id: text('id').primaryKey(),
    ticketId: reference('ticket_id', () => tickets.id),
    at: time('at').notNull(),
    /** Null for automatic changes. */
    actorId: text('actor_id').references(() => users.id),
    field: text('field', { enum: words.ticketFields }).notNull(),
    from: text('from_value'),
    to: text('to_value'),
  },
  (table) => [
    index('ticket_history_ticket').on(table.ticketId, table.id),
    check('ticket_history_field', oneOf('field', words.ticketFields)),
  ],
)

export const cannedReplies = sqliteTable('canned_replies', {
  id: text('id').primaryKey(),
  title: text('title').notNull(),
  body: text('body').notNull(),
  /** Null for any language. */
  locale: text('locale', { enum: locales }),
})

// Notifications

/** WITHOUT ROWID in the migration: the notifications of a user are adjacent. The migration also indexes the people
 *  named in them, to erase those names with the account. */
export const notifications = sqliteTable(
  'notifications',
  {
    userId: personId('user_id'),
    id: text('id').notNull(),
    type: text('type').$type<words.NotificationType>().notNull(),
    title: text('title').notNull(),
    body: text('body').notNull(),
    data: text('data', { mode: 'json' }).$type<Record<string, string>>().notNull(),
    /** A repeated event with the same key creates no notification. */
    dedupeKey: text('dedupe_key'),
    /** False when the user gets this type only by push or mail. The row is then hidden, and kept only for deduplication. */
    inApp: integer('in_app', { mode: 'boolean' }).notNull(),
    readAt: time('read_at'),
    mailedAt: time('mailed_at'),
    createdAt: time('created_at').notNull(),
  },
  ({ userId, id, dedupeKey, createdAt }) => [
    primaryKey({ columns: [userId, id] }),
    index('notifications_unread').on(userId, id).where(sql.raw('read_at IS NULL')),
    uniqueIndex('notifications_dedupe').on(userId, dedupeKey).where(isSet('dedupe_key')),
    index('notifications_read_age').on(createdAt).where(isSet('read_at')),
    index('notifications_age').on(createdAt),
    index('notifications_silent_age').on(createdAt).where(sql.raw('in_app = 0')),
    check(
      'notifications_type',
      sql`${oneOf('type', words.notificationTypes)} OR type GLOB 'custom.*'`,
    ),
    check('notifications_in_app', sql.raw('in_app IN (0, 1)')),
  ],
)

/** Totals of the notification list, maintained by triggers in the migration. */
export const notificationCounts = sqliteTable(
  'notification_counts',
  {
    userId: personKey('user_id'),
    totalCount: integer('total_count').notNull(),
    unreadCount: integer('unread_count').notNull(),
  },
  () => [check('notification_counts_unread', sql.raw('unread_count BETWEEN 0 AND total_count'))],
)

/** Settings that differ from the defaults. WITHOUT ROWID in the migration. */
export const notificationPreferences = sqliteTable(
  'notification_preferences',
  {
    userId: personId('user_id'),
    type: text('type').$type<words.PreferenceType>().notNull(),
    inApp: integer('in_app', { mode: 'boolean' }).notNull(),
    push: integer('push', { mode: 'boolean' }).notNull(),
    email: integer('email', { mode: 'boolean' }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.userId, table.type] })],
)

/** Push tokens of devices. A token is deleted with the session in which it was registered. */
export const pushTokens = sqliteTable(
  'push_tokens',
  {
    id: text('id').primaryKey(),
    userId: personId('user_id'),
    sessionId: reference('session_id', () => sessions.id, 'cascade'),
    /** The token issued by the device's push service. Tokens are long, so uniqueness is on their hash. */
    token: text('token').notNull(),
    tokenHash: text('token_hash').notNull().unique(),
    platform: text('platform', { enum: words.pushPlatforms }).notNull(),
    service: text('service').notNull().default('fcm'),
    createdAt: time('created_at').notNull(),
    registeredAt: time('registered_at').notNull(),
    /** Set while a job waits to send them. */
    heldPush: text('held_push', { mode: 'json' }).$type<HeldPush[]>(),
  },
  (table) => [
    index('push_tokens_user').on(table.userId, table.registeredAt),
    index('push_tokens_session').on(table.sessionId),
    check('push_tokens_platform', oneOf('platform', words.pushPlatforms)),
  ],
)

/** The key pair that browsers bind their subscriptions to (VAPID). */
export const vapidKeys = sqliteTable(
  'vapid_keys',
  {
    id: integer('id').primaryKey(),
    privateKey: text('private_key').notNull(),
    publicKey: text('public_key').notNull(),
  },
  () => [check('vapid_keys_one', sql.raw('id = 1'))],
)

export const announcements = sqliteTable(
  'announcements',
  {
    id: text('id').primaryKey(),
    audience: text('audience', { enum: words.audienceKinds }).notNull(),
    role: text('role', { enum: words.roles }),
    /** For an audience of single users, sorted by id. */
    userIds: text('user_ids', { mode: 'json' }).$type<readonly string[]>(),
    title: text('title').notNull(),
    body: text('body').notNull(),
    data: text('data', { mode: 'json' }).$type<Record<string, string>>().notNull(),
    clientId: text('client_id'),
    senderId: personId('sender_id'),
    recipientsCount: integer('recipients_count').notNull(),
    deliveredCount: integer('delivered_count').notNull().default(0),
    /** Delivery progress: every user up to this id has been notified. */
    lastUserId: text('last_user_id').notNull().default(''),
    createdAt: time('created_at').notNull(),
    completedAt: time('completed_at'),
  },
  ({ senderId, clientId }) => [
    uniqueIndex('announcements_client_id').on(senderId, clientId).where(isSet('client_id')),
    check('announcements_audience', oneOf('audience', words.audienceKinds)),
  ],
)
