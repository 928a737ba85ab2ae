import { type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { Id, Maybe, PersonId, Sample } from '../../lib/fields.ts'
import { texts } from '../../lib/i18n.ts'
import { samples } from '../../lib/samples.ts'
import { exactlyOneOf, pascalCase, unionByType } from '../../lib/shown-as.ts'
import { type NotificationType, notificationTypes } from '../../lib/vocabulary.ts'

// For the API description only, not checked: the keys of `data` by type.

const call = {
  call_session_id: Sample(samples.callId),
  host_id: PersonId(samples.host.id),
  host_name: Sample(samples.host.name),
  guest_id: PersonId(),
  guest_name: Sample(samples.guest.name),
}
const money = {
  amount: Sample('49.90', { description: 'A decimal number.' }),
  currency: Sample('EUR', { description: 'Three letters (ISO 4217).' }),
}

const dataKeys: Record<NotificationType, TProperties> = {
  call_incoming: call,
  call_missed: call,
  payment_captured: { ...money, call_session_id: call.call_session_id },
  payout_completed: money,
  payout_failed: money,
  follow_new: { follower_id: PersonId(), follower_name: Sample(samples.guest.name) },
  support_reply: {
    ticket_id: Id({ examples: [samples.ticketId] }),
    message_id: Id({ examples: [samples.ticketMessageId] }),
  },
  broadcast: { broadcast_id: Id({ examples: [samples.broadcastId] }) },
}

const dataOf = (type: NotificationType) =>
  Type.Partial(Type.Object(dataKeys[type]), {
    title: `${pascalCase(type)}Data`,
    description: 'Texts alone. Each key may be absent, and others may be there.',
    additionalProperties: Type.String(),
  })

/** A notification with the data of its type. */
export const shownNotification = (fields: TProperties) =>
  unionByType(
    'Notification',
    branches('', (type) => ({ ...fields, ...textsOf(type), data: dataOf(type) })),
  )

function textsOf(type: NotificationType) {
  const { title, body } = texts.en.notifications[type]
  const filled = body.replace(/\{(\w+)\}/g, (_, key) => dataKeys[type][key]?.['examples'][0] ?? '')
  return { title: Sample(title), body: Sample(filled) }
}

type Recipients = { user_id: TSchema; user_ids: TSchema }

/** The body that notifies one person or several, with the data of its type. */
export const shownNewNotification = ({ user_id, user_ids }: Recipients, fields: TProperties) => ({
  title: 'NewNotification',
  examples: [
    {
      user_id: samples.host.id,
      type: 'call_incoming',
      data: { call_session_id: samples.callId, guest_id: samples.guest.id },
      dedupe_key: 'call-2048-ringing',
    },
  ],
  allOf: [
    exactlyOneOf('NotificationRecipients', {
      user_id: { title: 'OneRecipient', schema: user_id },
      user_ids: { title: 'ManyRecipients', schema: user_ids },
    }),
    // Without a discriminator: within `allOf` generators take one for the mark of a base class.
    {
      title: 'NotificationContent',
      oneOf: Object.values(branches('New', (type) => ({ ...fields, data: Maybe(dataOf(type)) }))),
    },
  ],
})

function branches(prefix: string, fieldsOf: (type: NotificationType) => TProperties) {
  return Object.fromEntries(
    notificationTypes.map((type) => [
      type,
      Type.Object(
        { ...fieldsOf(type), type: Type.Literal(type) },
        { title: `${prefix}${pascalCase(type)}Notification` },
      ),
    ]),
  )
}
