import { type Static, type TSchema, Type } from '@sinclair/typebox'
import {
  Body,
  Change,
  Count,
  described,
  Flag,
  HttpUrl,
  Maybe,
  Nullable,
  named,
  OneOf,
  OptionalExternalId,
  Rarely,
  Sample,
  Schema,
  Text,
  Time,
  Timestamp,
} from '../../api/fields.ts'
import { samples } from '../../api/samples.ts'
import { isoTime, timeOrNull } from '../../lib/clock.ts'
import { type EventType, eventTypes } from '../../lib/vocabulary.ts'
import { isSuccess, type Outcome } from './deliveries.ts'
import type { DeliveryRow, WebhookRow } from './store.ts'

const hookUrl = 'https://hooks.example.com/hostline'
const Events = OneOf(eventTypes, { title: 'EventType', examples: ['message.created'] })

const fields = {
  url: HttpUrl({ description: 'Your endpoint.', examples: [hookUrl] }),
  events: Type.Array(Events, { description: 'The events to send.', minItems: 1, maxItems: 100 }),
  description: Text(
    { max: 200, trimmed: true },
    { description: 'Words for the list of webhooks.', examples: ['The shop'] },
  ),
}

export const NewWebhook = Body('NewWebhook', { ...fields, description: Maybe(fields.description) })
export type NewWebhook = Static<typeof NewWebhook>

export const WebhookUpdate = Change(
  Body('WebhookUpdate', {
    url: Maybe(fields.url),
    events: Maybe(fields.events),
    description: Maybe(fields.description),
    enabled: Maybe(Flag('Whether events are sent.', true)),
  }),
)
export type WebhookUpdate = Static<typeof WebhookUpdate>

export const Webhook = Schema('Webhook', {
  id: Sample(samples.recordId),
  url: Sample(hookUrl),
  events: Type.Array(Events),
  description: Nullable(Sample('The shop')),
  enabled: Type.Boolean({ examples: [true] }),
  failing_since: described(
    Rarely(Timestamp),
    'Since when every delivery has failed; null while they arrive.',
  ),
  disabled_at: described(
    Rarely(Timestamp),
    'When it was switched off, by an admin or after days of failures.',
  ),
  dropped_count: Count(
    0,
    'Events that were dropped, the oldest first, because more than 100,000 waited.',
  ),
  created_at: Timestamp,
})

export const WebhookWithSecret = Schema('WebhookWithSecret', {
  ...Webhook.properties,
  secret: Sample(
    'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    'The secret that signs deliveries, shown only this once.',
  ),
})

const answer = {
  response_status: described(Nullable(Count(200)), 'The HTTP status; null without a response.'),
  response: Nullable(
    Sample('ok', 'The beginning of the response, or the reason why there was none.'),
  ),
}

export const WebhookTest = Schema('WebhookTest', {
  status: OneOf(['delivered', 'failed']),
  ...answer,
})

export const WebhookDelivery = Schema('WebhookDelivery', {
  id: Sample(samples.recordId, 'The `webhook-id` of each attempt.'),
  type: Sample('message.created'),
  status: OneOf(['waiting', 'delivered', 'failed'], { examples: ['delivered'] }),
  attempts: Count(1, 'Tries so far.'),
  ...answer,
  created_at: Timestamp,
  attempted_at: described(Timestamp, 'The last try.'),
})

export const RetrySince = Body('RetrySince', {
  since: Time({
    description: 'The time of the oldest event, ISO 8601 with a time zone.',
    examples: [samples.time],
  }),
})

export const Retried = Schema('Retried', {
  retried: Count(3, 'How many are delivered again; none while the webhook is switched off.'),
})

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
    dropped_count: row.droppedCount,
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

const gone = (id: string) => Type.Object({ id: Sample(id) })

export const testEvent = 'webhook.test' as const

const externalId = OptionalExternalId(samples.guest.externalId)

const person = Schema('ExternalPerson', { external_id: externalId })
const assignee = described(Nullable(person), 'The admin who looks after it.')
const people = Schema('TicketPeople', { user: person, assignee })
const author = Schema('ExternalAuthor', { author: person })
const ticket = Type.Intersect([named('DeskTicketListItem'), people])
const ticketMessage = Type.Intersect([named('DeskTicketMessage'), author])

const eventData: Record<EventType | typeof testEvent, Record<string, TSchema>> = {
  'user.created': { user: named('ManagedUser') },
  'user.updated': { user: named('ManagedUser') },
  'user.deleted': { user: Type.Object({ id: Sample(samples.guest.id), external_id: externalId }) },
  'message.created': {
    message: Type.Intersect([named('Message'), Type.Object({ sender_external_id: externalId })]),
  },
  'message.deleted': { message: gone(samples.messageId) },
  'ticket.created': { ticket, message: ticketMessage },
  'ticket.replied': { ticket, message: ticketMessage },
  'ticket.updated': { ticket },
  'report.created': {
    report: Type.Intersect([
      named('Report'),
      Type.Object({ reporter: person, reported: person, resolved_by_external_id: externalId }),
    ]),
  },
  'notification.created': {
    notification: Type.Intersect([
      named('Notification'),
      Type.Object({ user_id: Sample(samples.host.id), user_external_id: externalId }),
    ]),
  },
  'broadcast.completed': {
    broadcast: Type.Union([named('Broadcast'), named('AnnouncementProgress')], {
      description: 'A broadcast of a host, or an announcement of an admin.',
    }),
  },
  [testEvent]: { webhook: gone(samples.recordId) },
}

/** The external id of a user, if set, follows each user id. */
export const webhookBodies = Object.fromEntries(
  ([...eventTypes, testEvent] as const).map((type) => [
    type,
    Type.Object({
      type: Type.Literal(type),
      timestamp: Sample(samples.time, { format: 'date-time', description: 'When it happened.' }),
      data: Type.Object(eventData[type]),
    }),
  ]),
)
