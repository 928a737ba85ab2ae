import { type Static, type TSchema, Type } from '@sinclair/typebox'
import {
  Body,
  BroadcastStatus,
  ClientId,
  Count,
  described,
  Flag,
  fieldProblems,
  Id,
  isObject,
  Maybe,
  NamedPerson,
  Nullable,
  OneOf,
  open,
  PersonId,
  Refined,
  Sample,
  Schema,
  Text,
  Timestamp,
  TrimmedText,
} from '../../api/fields.ts'
import { samples } from '../../api/samples.ts'
import type { DeliveryRow } from '../../jobs/delivery-store.ts'
import { isoTime, timeOrNull } from '../../lib/clock.ts'
import { type FieldProblem, type FieldProblems, problem } from '../../lib/errors.ts'
import { parseExternalId, parseId } from '../../lib/ids.ts'
import { isMalformed } from '../../lib/text.ts'
import {
  audienceKinds,
  type CustomType,
  customTypePattern,
  deliveryChannels,
  deliveryStates,
  isCustomType,
  isPreferenceType,
  type KnownType,
  notificationTypes,
  type PreferenceType,
  preferenceTypes,
  pushPlatforms,
  roles,
} from '../../lib/vocabulary.ts'
import type { ServerFrames } from '../../realtime/frames.ts'
import type { AnnouncementItem, AnnouncementRow } from './announcement-store.ts'
import type { Channels, PreferenceChanges } from './preferences.ts'
import type { PushTokenRow } from './push-token-store.ts'
import type { NotificationRow } from './store.ts'

export type NotificationData = Record<string, string>
const Data = Type.Record(Type.String(), Type.String(), {
  description:
    'A flat object of texts, at most 2 KB. `NotificationData` lists the known keys; other keys are allowed.',
  examples: [{ link: 'https://example.com/hours' }],
})
const call = 'In `call_incoming` and `call_missed`.'
const money = 'In `payment_captured`, `payout_completed` and `payout_failed`'
const KnownData = Type.Partial(
  Type.Object({
    call_session_id: Sample(samples.callId, 'In calls and `payment_captured`.'),
    host_id: Sample(samples.host.id, call),
    host_name: Sample(samples.host.name, call),
    guest_id: Sample(samples.guest.id, call),
    guest_name: Sample(samples.guest.name, call),
    amount: Sample('49.90', `${money}: a decimal number.`),
    currency: Sample('EUR', `${money}: three letters (ISO 4217).`),
    follower_id: Sample(samples.guest.id, 'In `follow_new`.'),
    follower_name: Sample(samples.guest.name, 'In `follow_new`.'),
    ticket_id: Sample(samples.ticketId, 'In `support_reply`.'),
    message_id: Sample(samples.ticketMessageId, 'In `support_reply`.'),
    broadcast_id: Sample(samples.broadcastId, 'In `broadcast`.'),
  }),
  {
    title: 'NotificationData',
    description: 'A flat object of texts. Each key may be absent, and there may be others.',
    examples: [{ call_session_id: samples.callId, guest_id: samples.guest.id }],
    additionalProperties: Type.String(),
  },
)
const exampleTitle = 'New opening hours'
const exampleBody = 'From May on we answer from 8 to 20 o’clock.'
const Title = (description: string) => TrimmedText(200, description, exampleTitle)
const BodyText = (description: string) => TrimmedText(2_000, description, exampleBody)

const custom = Type.Unsafe<CustomType>(Type.String({ pattern: customTypePattern }))
const KnownTypeField = OneOf(notificationTypes, { title: 'KnownNotificationType' })
const TypeField = Type.Union([KnownTypeField, custom], {
  title: 'NotificationType',
  description: 'A known type, or one of the platform.',
  examples: ['call_incoming'],
})

export const Notification = Schema('Notification', {
  id: Sample(samples.notificationId),
  type: TypeField,
  title: Sample('Incoming call'),
  body: Sample('A guest is waiting for you.'),
  data: KnownData,
  read: Flag('Whether it was read, on any device.'),
  created_at: Timestamp,
})
export type Notification = Static<typeof Notification>

export const NotificationFrame = Type.Object(
  { type: Type.Literal('notification'), notification: Notification, unread_count: Count(0) },
  { description: 'With `events=notification`: a new notification.' },
)
export type NotificationFrame = Static<typeof NotificationFrame>

export const NotificationsReadFrame = Type.Object(
  { type: Type.Literal('notifications_read'), unread_count: Count(0) },
  { description: 'With `events=notification`: one or all notifications were read.' },
)
export type NotificationsReadFrame = Static<typeof NotificationsReadFrame>

export const serverFrames: ServerFrames = {
  notification: { schema: NotificationFrame, group: 'notification' },
  notifications_read: { schema: NotificationsReadFrame, group: 'notification' },
}

export const NewNotification = Refined(
  Schema(
    'NewNotification',
    {
      user_id: Maybe(PersonId()),
      user_ids: Maybe(
        Type.Array(Sample(samples.guest.id), {
          description: 'Several people, instead of `user_id`: ids, or `ext:` and external ids.',
          minItems: 1,
          maxItems: 100,
        }),
      ),
      type: described(
        TypeField,
        'The kind of event: a known one, or `custom.` and a name of yours, which needs a title and a body.',
      ),
      title: Maybe(Title('Without it the title of the type, in the language of the person.')),
      body: Maybe(BodyText('Without it the text of the type.')),
      data: Maybe(Data),
      dedupe_key: Maybe(
        Text(
          { min: 1, max: 200 },
          {
            description: 'A repeated call with the same key returns the first notification.',
            examples: ['call-2048-ringing'],
          },
        ),
      ),
    },
    {
      description: 'With `user_id` or `user_ids`.',
      examples: [
        {
          user_id: samples.host.id,
          type: 'call_incoming',
          data: { call_session_id: samples.callId, guest_id: samples.guest.id },
          dedupe_key: 'call-2048-ringing',
        },
      ],
      ...open,
    },
  ),
  ({ user_id, user_ids, type, title, body, data }) => ({
    ...((user_id ?? user_ids) ? {} : { user_id: problem('required') }),
    ...(typeof type === 'string' &&
      isCustomType(type) && {
        ...((title ?? null) === null && { title: problem('required') }),
        ...((body ?? null) === null && { body: problem('required') }),
      }),
    ...dataProblems(data, person),
  }),
)

const UnknownPeople = Type.Optional(
  Type.Array(Type.String(), {
    description: 'The entries of `user_ids` that name nobody, as they were given.',
    examples: [['ext:customer-4712']],
  }),
)

export const NotifyResult = Schema('NotifyResult', {
  data: Type.Array(Notification),
  duplicates: Count(0, 'Notifications that existed under the same `dedupe_key`.'),
  muted: Count(0),
  unknown: UnknownPeople,
})

const PlatformField = OneOf(pushPlatforms, { title: 'PushPlatform' })
const deviceToken = 'fGc3kZ1wQ0eLxV9:APA91bHun4MxP5egoKMwt2KZFBaFUH-1RYqx'

export const NewPushToken = Body('NewPushToken', {
  token: Text(
    { min: 1, max: 4_096, notBlank: true },
    {
      description: 'A token from FCM, or for `web` also a PushSubscription as JSON.',
      examples: [deviceToken],
    },
  ),
  platform: described(PlatformField, 'The kind of device.'),
})

export const PushToken = Schema('PushToken', {
  id: Sample(samples.recordId),
  token: Sample(deviceToken),
  platform: PlatformField,
  created_at: Timestamp,
})

export const Delivery = Schema('UserDelivery', {
  id: Sample(samples.recordId),
  channel: OneOf(deliveryChannels),
  kind: Sample('verification_mail', 'The type of the notification, or the kind of the mail.'),
  state: OneOf(deliveryStates, {
    description:
      '`waiting`: failed and will be tried again. `failed`: given up. `bounced`: the address or device is refused for good. `skipped`: no longer needed, or the channel is not set up.',
  }),
  attempts: Count(1),
  answer: Nullable(
    Sample(
      '250 2.0.0 Ok: queued as 4bXk2',
      'The answer of the mail server or push service, with e-mail addresses masked.',
    ),
  ),
  at: Timestamp,
})

export const WebPushKey = Schema('WebPushKey', {
  public_key: Sample(
    'BNcRdreALRFXTkOOUHK1EtK2wtaz5Ry4YfYCA_0QTpQtUbVlUls0VJXg7A8u-Ts1XbjhazAkj7I99e8QcYP7DkM',
  ),
})

const channel = Type.Boolean({ examples: [true] })
const channels = {
  in_app: described(channel, 'Whether they are listed and shown in the app.'),
  push: described(channel, 'Whether they are pushed to devices.'),
  email: described(channel, 'Whether they are mailed.'),
}
const unreadMail = described(channel, 'Whether they are mailed when they stay unread.')
const channelChanges = Schema(
  'NotificationChannelsUpdate',
  { in_app: Maybe(channels.in_app), push: Maybe(channels.push), email: Maybe(channels.email) },
  { ...open },
)
type ChannelChanges = Partial<Static<typeof channelChanges>> | null | undefined
const perType = <T>(make: (type: KnownType) => T) =>
  Object.fromEntries(notificationTypes.map((type) => [type, make(type)])) as Record<KnownType, T>
const perCustomType = (channels: TSchema) => ({
  ...open,
  patternProperties: { [customTypePattern]: channels },
})
const ChannelsField = Schema('NotificationChannels', channels)

const messageChannelChanges = Schema(
  'MessageChannelsUpdate',
  { push: channelChanges.properties.push, email: Maybe(unreadMail) },
  { ...open },
)
// Chat messages have no notifications, so they cannot be hidden in the app.
export const Preferences = Schema(
  'NotificationPreferences',
  {
    ...perType(() => ChannelsField),
    chat_message: Schema('MessageChannels', { push: channels.push, email: unreadMail }),
  },
  {
    description:
      'The channels of each type. A `custom.<name>` that you have not changed is left out: it is shown in the app and pushed, but not mailed.',
    ...perCustomType(ChannelsField),
  },
)
const namesChannel = ([type, value]: [string, unknown]) => {
  if (!isPreferenceType(type)) return false
  const { properties } = type === 'chat_message' ? messageChannelChanges : channelChanges
  return (
    typeof value !== 'object' ||
    Object.keys(value ?? {}).some((name) => Object.hasOwn(properties, name))
  )
}

export const PreferencesUpdate = Refined(
  Body(
    'NotificationPreferencesUpdate',
    {
      ...perType((type) => described(Maybe(channelChanges), `The channels of \`${type}\`.`)),
      chat_message: described(
        Maybe(messageChannelChanges),
        'Chat messages, which have no notifications.',
      ),
    },
    {
      examples: [{ follow_new: { push: false }, 'custom.booking_moved': { email: true } }],
      ...perCustomType(channelChanges),
    },
  ),
  (given) => {
    const wrong = Object.entries(given).flatMap(([type, value]) =>
      isCustomType(type) && value !== null
        ? Object.entries(fieldProblems(channelChanges, value)).map(
            ([field, found]) => [field === 'body' ? type : `${type}.${field}`, found] as const,
          )
        : [],
    )
    if (!Object.entries(given).some(namesChannel)) return { body: problem('nothing_to_change') }
    return Object.fromEntries(wrong)
  },
)

export const NewAnnouncement = Refined(
  Body(
    'NewAnnouncement',
    {
      audience: OneOf(audienceKinds, {
        title: 'Audience',
        description: 'Everybody, a role, or certain people.',
      }),
      role: Maybe(
        OneOf(roles, { title: 'Role', description: 'The role, for the audience `role`.' }),
      ),
      user_ids: Maybe(
        Type.Array(Id({ examples: [samples.guest.id] }), {
          description: 'The people, for the audience `users`.',
          minItems: 1,
          maxItems: 1_000,
        }),
      ),
      title: Title('The title.'),
      body: BodyText('The text.'),
      data: Maybe(Data),
      client_id: Maybe(ClientId),
    },
    {
      examples: [
        {
          audience: 'role',
          role: 'host',
          title: exampleTitle,
          body: exampleBody,
          client_id: 'd7c0-42',
        },
      ],
    },
  ),
  ({ audience, role, user_ids, data }): FieldProblems => ({
    ...(audience === 'role' && !role && { role: problem('required') }),
    ...(audience === 'users' && !user_ids && { user_ids: problem('required') }),
    ...dataProblems(data),
  }),
)

const Announcement = Schema('Announcement', {
  broadcast_id: Sample(samples.broadcastId),
  recipients_count: Count(120, 'People of the audience.'),
  status: BroadcastStatus,
})
export const SentAnnouncement = Schema('SentAnnouncement', {
  ...Announcement.properties,
  unknown: UnknownPeople,
})
export const AnnouncementProgress = Schema('AnnouncementProgress', {
  ...Announcement.properties,
  delivered_count: Count(120, 'People reached so far.'),
  audience: OneOf(audienceKinds, { title: 'Audience', examples: ['role'] }),
  role: Nullable(OneOf(roles, { title: 'Role' }), {
    description: 'The role, if the audience is a role.',
    examples: ['host'],
  }),
  title: Title('The title.'),
  body: BodyText('The text.'),
  sender: NamedPerson(samples.admin),
  created_at: Timestamp,
  completed_at: described(Nullable(Timestamp), 'When the last person was reached.'),
})

const maxDataBytes = 2_048
const keyPattern = /^[A-Za-z_][\w.-]{0,63}$/

type TextRule = (text: string) => FieldProblem | undefined
const matching =
  (pattern: RegExp): TextRule =>
  (text) =>
    pattern.test(text) ? undefined : problem('invalid')
const id: TextRule = (text) => (parseId(text) ? undefined : problem('id'))
const person: TextRule = (text) => (parseExternalId(text) ? undefined : id(text))

export const personKeys = ['host_id', 'guest_id', 'follower_id'] as const

const dataRules: Record<string, TextRule> = {
  amount: matching(/^-?\d{1,15}(\.\d{1,8})?$/),
  currency: matching(/^[A-Z]{3}$/),
  call_session_id: matching(/^.{1,128}$/s),
  ticket_id: id,
  message_id: id,
  broadcast_id: id,
}

const isIdKey = (key: string) =>
  dataRules[key] === id || personKeys.some((personKey) => personKey === key)

/** `data` with its ids in the stored form, by which removals find it. */
export function withStoredIds(data: NotificationData): NotificationData {
  const stored = Object.entries(data).map(([key, text]) => [
    key,
    (isIdKey(key) && parseId(text)) || text,
  ])
  return Object.fromEntries(stored)
}

/** @param ofPerson the rule for user ids */
function dataProblems(data: unknown, ofPerson = id): FieldProblems {
  if (!isObject(data)) return {}
  const bytes = Buffer.byteLength(JSON.stringify(data))
  if (bytes > maxDataBytes) return { data: problem('too_many_bytes', maxDataBytes) }
  const people = Object.fromEntries(personKeys.map((key) => [key, ofPerson]))
  const rules = new Map(Object.entries({ ...dataRules, ...people }))
  const wrong = Object.entries(data).flatMap(([key, value]) => {
    const found = entryProblem(key, value, rules.get(key))
    return found ? [[`data.${key}`, found] as const] : []
  })
  return Object.fromEntries(wrong)
}

function entryProblem(key: string, value: unknown, rule: TextRule | undefined) {
  if (!keyPattern.test(key)) return problem('invalid')
  if (typeof value !== 'string') return problem('not_a_string')
  if (isMalformed(value)) return problem('malformed_text')
  return rule?.(value)
}

export function notificationView(row: NotificationRow): Notification {
  const { id, type, title, body, data, readAt, createdAt } = row
  return { id, type, title, body, data, read: readAt !== null, created_at: isoTime(createdAt) }
}

export function pushTokenView(row: PushTokenRow): Static<typeof PushToken> {
  const { id, token, platform, createdAt } = row
  return { id, token, platform, created_at: isoTime(createdAt) }
}

export function deliveryView(row: DeliveryRow): Static<typeof Delivery> {
  const { id, channel, kind, state, attempts, answer, at } = row
  return { id, channel, kind, state, attempts, answer, at: isoTime(at) }
}

export function preferencesView(list: readonly (readonly [PreferenceType, Channels])[]) {
  return Object.fromEntries(
    list.map(([type, { inApp, push, email }]) => [
      type,
      type === 'chat_message' ? { push, email } : { in_app: inApp, push, email },
    ]),
  )
}

export function changesOf(body: Partial<Record<PreferenceType, ChannelChanges>>) {
  const types = [...preferenceTypes, ...Object.keys(body).filter(isCustomType)]
  return types.flatMap((type): PreferenceChanges => {
    const { in_app, push, email } = body[type] ?? {}
    const change = { ...(type !== 'chat_message' && { inApp: in_app }), push, email }
    return Object.values(change).some((on) => typeof on === 'boolean') ? [[type, change]] : []
  })
}

export function announcementView(
  row: Pick<AnnouncementRow, 'id' | 'recipientsCount' | 'completedAt'>,
): Static<typeof Announcement> {
  return {
    broadcast_id: row.id,
    recipients_count: row.recipientsCount,
    status: row.completedAt === null ? 'processing' : 'completed',
  }
}

type Progress = Static<typeof AnnouncementProgress>
export function announcementProgressView(item: AnnouncementItem): Progress {
  const { audience, role, title, body, deliveredCount, sender, createdAt, completedAt } = item
  return {
    ...announcementView(item),
    delivered_count: deliveredCount,
    audience,
    role,
    title,
    body,
    sender: { id: sender.id, display_name: sender.displayName },
    created_at: isoTime(createdAt),
    completed_at: timeOrNull(completedAt),
  }
}
