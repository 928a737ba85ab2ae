import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { Count, createGuard, isObject, Sample } from '../api/fields.ts'
import { samples } from '../api/samples.ts'
import { ErrorBody, errorBody } from '../lib/error-body.ts'
import { AppError, invalidField } from '../lib/errors.ts'
import type { Locale } from '../lib/i18n.ts'
import type { Connection } from './connection.ts'

export type Frame = { type: string; [field: string]: unknown }

/** Server frames by type. A frame with a `group` goes only to sockets that subscribed to the group by `?events=`. */
export type ServerFrames = Record<string, { schema: TSchema; group?: string }>

export type ClientFrame = {
  schema: TSchema
  handle: (frame: never, connection: Connection) => void | Promise<void>
}
export type ClientFrames = Record<string, ClientFrame>

export function clientFrame<Schema extends TSchema>(
  schema: Schema,
  handle: (frame: Static<Schema>, connection: Connection) => void | Promise<void>,
): ClientFrame {
  return { schema, handle }
}

const PongFrame = Type.Object(
  { type: Type.Literal('pong') },
  { description: 'The answer to a ping.' },
)

const position = {
  newest_message_id: Sample(
    samples.messageId,
    'The `since` of the next connection, until a `new_message` arrives.',
  ),
}

const ReadyFrame = Type.Object(
  {
    type: Type.Literal('ready'),
    ...position,
    unread: Type.Object({
      messages: Count(2, 'The number of unread messages.'),
      notifications: Count(1),
    }),
  },
  { description: 'With `events=ready`: the first frame, with what the user has not read.' },
)
export type ReadyFrame = Static<typeof ReadyFrame>

const ResyncFrame = Type.Object(
  { type: Type.Literal('resync'), ...position },
  {
    description:
      'The client missed more messages than a replay sends, or the message `since` is gone: undone by a restore, forgotten or purged. Load the conversations and messages again.',
  },
)

const ErrorFrame = Type.Object(
  {
    type: Type.Literal('error'),
    ...ErrorBody.properties,
    reason: Type.Optional(
      Type.String({ description: 'Distinguishes errors that have the same code.' }),
    ),
    retry_after: Type.Optional(Type.Integer({ description: 'Seconds.' })),
    request: Type.Object(
      {
        type: Type.Optional(Type.String()),
        conversation_id: Type.Optional(Type.String()),
        client_id: Type.Optional(Type.String()),
      },
      { description: 'The fields that identify the refused frame.' },
    ),
  },
  {
    description: 'A frame was refused; the socket stays open.',
    examples: [
      {
        type: 'error',
        ...errorBody(new AppError('not_participant'), 'en'),
        reason: 'not_participant',
        request: { type: 'message', conversation_id: samples.conversationId, client_id: 'd7c0-42' },
      },
    ],
  },
)
export type ErrorFrame = Static<typeof ErrorFrame>

export const channelFrames: ServerFrames = {
  ready: { schema: ReadyFrame, group: 'ready' },
  pong: { schema: PongFrame },
  error: { schema: ErrorFrame },
  resync: { schema: ResyncFrame },
}

export type Decoded = ReturnType<ReturnType<typeof createDecoder>>

export function createDecoder(frames: ClientFrames) {
  const knownTypes = Object.keys(frames).join(', ')
  const guards = new Map(
    Object.entries(frames).map(([type, { schema }]) => [type, createGuard(schema)]),
  )

  function typeOf(value: unknown): string {
    // `undefined` means a binary frame or invalid JSON.
    if (value === undefined) throw invalidField('body', 'malformed_json')
    if (!isObject(value)) throw invalidField('body', 'not_an_object')
    const { type } = value
    if (type === undefined) throw invalidField('type', 'required')
    if (typeof type === 'string' && Object.hasOwn(frames, type)) return type
    throw invalidField('type', 'one_of', knownTypes)
  }

  /** @throws validation_error: not a JSON object, an unknown type, or an invalid field */
  return (value: unknown) => {
    const type = typeOf(value)
    const { handle } = frames[type] as ClientFrame // `typeOf` returns only known types
    guards.get(type)?.(value)
    return { type, frame: value as never, handle } // checked against the schema of its type
  }
}

/** Repeats only the fields that identify the refused frame. */
export function errorFrame(refusal: AppError, locale: Locale, refused: unknown): ErrorFrame {
  const { reason, retryAfterSeconds } = refusal
  const fields = ['type', 'conversation_id', 'client_id'].flatMap((name) => {
    const value = isObject(refused) ? refused[name] : undefined
    return typeof value === 'string' ? [[name, value]] : []
  })
  return {
    type: 'error',
    ...errorBody(refusal, locale),
    ...(reason !== undefined && { reason }),
    ...(retryAfterSeconds !== undefined && { retry_after: retryAfterSeconds }),
    request: Object.fromEntries(fields),
  }
}
