import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { isoTime } from '../../lib/clock.ts'
import { problem } from '../../lib/errors.ts'
import { HttpUrl, Maybe, Nullable, OneOf, Refined, Text, Timestamp } from '../../lib/fields.ts'
import { type EventType, eventTypes } from '../../lib/vocabulary.ts'
import { isSuccess, type Outcome } from './deliveries.ts'
import type { DeliveryRow, WebhookRow } from './store.ts'

const open = { additionalProperties: true } as const

export const webhookDescriptionRule = { max: 200, trimmed: true }

const fields = {
  url: HttpUrl(2_048),
  events: Type.Array(OneOf(eventTypes), { minItems: 1, maxItems: 100 }),
  description: Text(webhookDescriptionRule),
}

export const NewWebhook = Type.Object(
  { ...fields, description: Maybe(fields.description) },
  { title: 'NewWebhook', ...open },
)
export type NewWebhook = Static<typeof NewWebhook>

export const WebhookUpdate = Refined(
  Type.Object(
    {
      url: Maybe(fields.url),
      events: Maybe(fields.events),
      description: Maybe(fields.description),
      enabled: Maybe(Type.Boolean()),
    },
    { title: 'WebhookUpdate', ...open },
  ),
  ({ url, events, description, enabled }) => {
    const isNothing = [url, events, description, enabled].every((given) => (given ?? null) === null)
    return isNothing ? { body: problem('nothing_to_change') } : {}
  },
)
export type WebhookUpdate = Static<typeof WebhookUpdate>

export const Webhook = Type.Object(
  {
    id: Type.String(),
    url: Type.String(),
    events: Type.Array(OneOf(eventTypes)),
    description: Nullable(Type.String()),
    enabled: Type.Boolean(),
    failing_since: Nullable(Timestamp),
    disabled_at: Nullable(Timestamp),
    created_at: Timestamp,
  },
  { title: 'Webhook' },
)

export const WebhookWithSecret = Type.Object(
  {
    ...Webhook.properties,
    secret: Type.String({ description: 'What deliveries are signed with, shown this once.' }),
  },
  { title: 'WebhookWithSecret' },
)

const answer = {
  response_status: Nullable(Type.Integer()),
  response: Nullable(
    Type.String({ description: 'The beginning of the answer, or why there was none.' }),
  ),
}

export const WebhookTest = Type.Object(
  { status: OneOf(['delivered', 'failed']), ...answer },
  { title: 'WebhookTest' },
)

export const WebhookDelivery = Type.Object(
  {
    id: Type.String({ description: 'The `webhook-id` of each attempt.' }),
    type: Type.String(),
    status: OneOf(['waiting', 'delivered', 'failed']),
    attempts: Type.Integer(),
    ...answer,
    created_at: Timestamp,
    attempted_at: Timestamp,
  },
  { title: 'WebhookDelivery' },
)

export function webhookView(row: WebhookRow): Static<typeof Webhook> {
  const { id, url, events, description, failingSince, disabledAt, createdAt } = row
  return {
    id,
    url,
    events: [...events],
    description,
    enabled: disabledAt === null,
    failing_since: timeOrNull(failingSince),
    disabled_at: timeOrNull(disabledAt),
    created_at: isoTime(createdAt),
  }
}

export const webhookWithSecretView = (row: WebhookRow): Static<typeof WebhookWithSecret> => ({
  ...webhookView(row),
  secret: row.secret,
})

export const testView = (outcome: Outcome): Static<typeof WebhookTest> => ({
  status: isSuccess(outcome) ? 'delivered' : 'failed',
  response_status: outcome.status,
  response: outcome.text,
})

export function deliveryView(row: DeliveryRow): Static<typeof WebhookDelivery> {
  const { id, event, status, attempts, responseStatus, response, createdAt, attemptedAt } = row
  return {
    id,
    type: event['type'] ?? '',
    status,
    attempts,
    response_status: responseStatus,
    response,
    created_at: isoTime(createdAt),
    attempted_at: isoTime(attemptedAt),
  }
}

const timeOrNull = (time: number | null) => (time === null ? null : isoTime(time))

/** A schema that REST answers have, by its name in the API description. */
const shown = (name: string): TSchema => Type.Unsafe({ $ref: `#/components/schemas/${name}` })
const goneThing = Type.Object({ id: Type.String() })

const eventData: Record<EventType, Record<string, TSchema>> = {
  'user.created': { user: shown('ManagedUser') },
  'user.updated': { user: shown('ManagedUser') },
  'user.deleted': { user: goneThing },
  'message.created': { message: shown('Message') },
  'message.deleted': { message: goneThing },
  'ticket.created': { ticket: shown('DeskTicketListItem'), message: shown('DeskTicketMessage') },
  'ticket.replied': { ticket: shown('DeskTicketListItem'), message: shown('DeskTicketMessage') },
  'ticket.updated': { ticket: shown('DeskTicketListItem') },
  'report.created': { report: shown('Report') },
  'notification.created': {
    notification: Type.Intersect([shown('Notification'), Type.Object({ user_id: Type.String() })]),
  },
  'broadcast.completed': {
    broadcast: Type.Union([shown('Broadcast'), shown('AnnouncementProgress')]),
  },
}

/** The body of each event, for the API description. Where a person's id stands, the platform's own id of them stands
 *  beside it, when there is one. */
export const webhookBodies = Object.fromEntries(
  eventTypes.map((type) => [
    type,
    Type.Object({
      type: Type.Literal(type),
      timestamp: Type.String({ format: 'date-time', description: 'When it happened.' }),
      data: Type.Object(eventData[type]),
    }),
  ]),
)
