import { type Static, Type } from '@sinclair/typebox'
import { isoTime } from '../../lib/clock.ts'
import { type FieldProblems, problem } from '../../lib/errors.ts'
import { ClientId, Id, Maybe, Refined, Text } from '../../lib/fields.ts'
import { audienceKinds, notificationTypes, pushPlatforms, roles } from '../../lib/vocabulary.ts'
import type { AnnouncementRow } from './announcement-store.ts'
import { dataProblems } from './data-rules.ts'
import type { Ways } from './preferences.ts'
import type { PushTokenRow } from './push-token-store.ts'
import type { NotificationRow } from './store.ts'

const Timestamp = Type.String({ format: 'date-time' })
const open = { additionalProperties: true } as const
const oneOf = <const T extends readonly string[]>(values: T) =>
  Type.Union(values.map((literal) => Type.Literal(literal as T[number])))

export const OneOfTypes = oneOf(notificationTypes)
const Data = Type.Record(Type.String(), Type.String(), {
  description: 'Flat, texts alone, at most 2 KB.',
})
const texts = {
  title: Text({ min: 1, max: 200, trimmed: true, notBlank: true }),
  body: Text({ min: 1, max: 2_000, trimmed: true, notBlank: true }),
}

/** Spec 2.7. */
export const Notification = Type.Object(
  {
    id: Type.String(),
    type: OneOfTypes,
    title: Type.String(),
    body: Type.String(),
    data: Type.Record(Type.String(), Type.String()),
    read: Type.Boolean(),
    created_at: Timestamp,
  },
  { title: 'Notification' },
)
export type Notification = Static<typeof Notification>

export const UnreadCount = Type.Object({ count: Type.Integer() }, { title: 'UnreadCount' })

/** What the rest of the platform reports. */
export const NewNotification = Refined(
  Type.Object(
    {
      user_id: Maybe(Id()),
      user_ids: Maybe(Type.Array(Id(), { minItems: 1, maxItems: 100 })),
      type: OneOfTypes,
      title: Maybe(texts.title),
      body: Maybe(texts.body),
      data: Maybe(Data),
      dedupe_key: Maybe(
        Text(
          { min: 1, max: 200 },
          { description: 'The same key again gives the same notification.' },
        ),
      ),
    },
    { title: 'NewNotification', ...open },
  ),
  ({ user_id, user_ids, data }) => ({
    ...((user_id ?? user_ids) ? {} : { user_id: problem('required') }),
    ...dataProblems(data),
  }),
)
export type NewNotification = Static<typeof NewNotification>

export const NotifyResult = Type.Object(
  { data: Type.Array(Notification), duplicates: Type.Integer(), muted: Type.Integer() },
  { title: 'NotifyResult' },
)

const OneOfPlatforms = oneOf(pushPlatforms)

export const NewPushToken = Type.Object(
  {
    token: Text(
      { min: 1, max: 4_096 },
      { description: 'From FCM, or for `web` also a PushSubscription as JSON.' },
    ),
    platform: OneOfPlatforms,
  },
  { title: 'NewPushToken', ...open },
)

/** Spec 2.8. */
export const PushToken = Type.Object(
  {
    id: Type.String(),
    token: Type.String(),
    platform: OneOfPlatforms,
    created_at: Timestamp,
  },
  { title: 'PushToken' },
)

export const WebPushKey = Type.Object({ public_key: Type.String() }, { title: 'WebPushKey' })

const ways = { in_app: Type.Boolean(), push: Type.Boolean(), email: Type.Boolean() }
const perType = <T>(make: () => T) =>
  Object.fromEntries(notificationTypes.map((type) => [type, make()])) as Record<
    (typeof notificationTypes)[number],
    T
  >

export const Preferences = Type.Object(
  perType(() => Type.Object(ways)),
  { title: 'NotificationPreferences' },
)
export const PreferencesUpdate = Type.Object(
  perType(() => Type.Optional(Type.Partial(Type.Object(ways), open))),
  { title: 'NotificationPreferencesUpdate', ...open },
)
export type PreferencesUpdate = Static<typeof PreferencesUpdate>

const OneOfAudiences = oneOf(audienceKinds)

/** What an admin tells many. */
export const NewAnnouncement = Refined(
  Type.Object(
    {
      audience: OneOfAudiences,
      role: Maybe(oneOf(roles)),
      user_ids: Maybe(Type.Array(Id(), { minItems: 1, maxItems: 1_000 })),
      ...texts,
      data: Maybe(Data),
      client_id: Maybe(ClientId),
    },
    { title: 'NewAnnouncement', ...open },
  ),
  ({ audience, role, user_ids, data }): FieldProblems => ({
    ...(audience === 'role' && !role && { role: problem('required') }),
    ...(audience === 'users' && !user_ids && { user_ids: problem('required') }),
    ...dataProblems(data),
  }),
)

export const Announcement = Type.Object(
  {
    broadcast_id: Type.String(),
    recipients_count: Type.Integer(),
    status: oneOf(['processing', 'completed']),
  },
  { title: 'Announcement' },
)
export const AnnouncementProgress = Type.Object(
  {
    ...Announcement.properties,
    delivered_count: Type.Integer(),
    audience: OneOfAudiences,
    title: Type.String(),
    body: Type.String(),
    created_at: Timestamp,
  },
  { title: 'AnnouncementProgress' },
)

export function notificationView(row: NotificationRow): Notification {
  return {
    id: row.id,
    type: row.type,
    title: row.title,
    body: row.body,
    data: row.data,
    read: row.readAt !== null,
    created_at: isoTime(row.createdAt),
  }
}

export function pushTokenView(row: PushTokenRow): Static<typeof PushToken> {
  const { id, token, platform, createdAt } = row
  return { id, token, platform, created_at: isoTime(createdAt) }
}

export function preferencesView(list: readonly (readonly [string, Ways])[]) {
  return Object.fromEntries(
    list.map(([type, { inApp, push, email }]) => [type, { in_app: inApp, push, email }]),
  )
}

export function announcementView(row: AnnouncementRow): Static<typeof Announcement> {
  return {
    broadcast_id: row.id,
    recipients_count: row.recipientsCount,
    status: row.completedAt === null ? 'processing' : 'completed',
  }
}

export function announcementProgressView(
  row: AnnouncementRow,
): Static<typeof AnnouncementProgress> {
  const { audience, title, body, deliveredCount } = row
  return {
    ...announcementView(row),
    delivered_count: deliveredCount,
    audience,
    title,
    body,
    created_at: isoTime(row.createdAt),
  }
}
