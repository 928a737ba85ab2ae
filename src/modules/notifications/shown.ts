import { type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { Id, Maybe, PersonId } from '../../lib/fields.ts'
import { exactlyOneOf, unionByType } from '../../lib/shown-as.ts'
import { type NotificationType, notificationTypes } from '../../lib/vocabulary.ts'

// What descriptions show of notifications beyond what is checked: which keys `data` has by type.

const call = {
  call_session_id: Type.String({ description: 'The call.' }),
  host_id: PersonId(),
  host_name: Type.String(),
  guest_id: PersonId(),
  guest_name: Type.String(),
}
const money = {
  amount: Type.String({ description: 'A decimal number.' }),
  currency: Type.String({ description: 'Three letters (ISO 4217).' }),
}

const dataKeys: Record<NotificationType, TProperties> = {
  call_incoming: call,
  call_missed: call,
  payment_captured: { ...money, call_session_id: call.call_session_id },
  payout_completed: money,
  payout_failed: money,
  follow_new: { follower_id: PersonId(), follower_name: Type.String() },
  support_reply: { ticket_id: Id(), message_id: Id() },
  broadcast: { broadcast_id: Id() },
}

const dataOf = (type: NotificationType) =>
  Type.Partial(Type.Object(dataKeys[type]), {
    title: `${titleOf(type)}Data`,
    description: 'Texts alone. Each key may be absent, and others may be there.',
    additionalProperties: Type.String(),
  })

function titleOf(type: NotificationType) {
  return type
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')
}

/** A notification with the data of its type. */
export const shownNotification = (fields: TProperties) =>
  unionByType(
    'Notification',
    branches('', (type) => ({ ...fields, data: dataOf(type) })),
  )

type Recipients = { user_id: TSchema; user_ids: TSchema }

/** The body that notifies one person or several, with the data of its type. */
export const shownNewNotification = ({ user_id, user_ids }: Recipients, fields: TProperties) => ({
  title: 'NewNotification',
  allOf: [
    exactlyOneOf('NotificationRecipients', {
      user_id: { title: 'OneRecipient', schema: user_id },
      user_ids: { title: 'ManyRecipients', schema: user_ids },
    }),
    unionByType(
      'NotificationContent',
      branches('New', (type) => ({ ...fields, data: Maybe(dataOf(type)) })),
    ),
  ],
})

function branches(prefix: string, fieldsOf: (type: NotificationType) => TProperties) {
  return Object.fromEntries(
    notificationTypes.map((type) => [
      type,
      Type.Object(
        { ...fieldsOf(type), type: Type.Literal(type) },
        { title: `${prefix}${titleOf(type)}Notification` },
      ),
    ]),
  )
}
