import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import { errorBody } from '../../lib/error-body.ts'
import { AppError, invalidField } from '../../lib/errors.ts'
import { fieldProblems, Maybe, Refined } from '../../lib/fields.ts'
import type { Locale } from '../../lib/i18n.ts'
import { messageFields, messageProblems, OneOfMessageTypes } from './model.ts'
import type { ErrorFrame } from './server-frames.ts'

/** What clients send over the channel: spec 6.1 and decisions 6. */

const conversation = { conversation_id: Type.String() }
const open = { additionalProperties: true } as const

export const clientFrames = {
  message: Refined(
    Type.Object(
      {
        type: Type.Literal('message'),
        ...conversation,
        ...messageFields,
        message_type: Maybe(OneOfMessageTypes),
      },
      { ...open, description: 'Send a message.' },
    ),
    (frame) => messageProblems(frame, frame.message_type),
  ),
  typing: Type.Object(
    { type: Type.Literal('typing'), ...conversation },
    { ...open, description: 'Tell the other user that one is typing.' },
  ),
  read: Type.Object(
    { type: Type.Literal('read'), ...conversation },
    { ...open, description: 'Mark a conversation as read.' },
  ),
  auth: Type.Object(
    { type: Type.Literal('auth'), token: Type.String() },
    { ...open, description: 'Go on with a newer access token of the same user.' },
  ),
  ping: Type.Object({ type: Type.Literal('ping') }, { ...open, description: 'Ask for a pong.' }),
}

type ClientFrames = typeof clientFrames
export type MessageFrame = Static<ClientFrames['message']>
export type ClientFrame = { [K in keyof ClientFrames]: Static<ClientFrames[K]> }[keyof ClientFrames]

const compiled = new Map(
  Object.entries(clientFrames).map(([type, schema]: [string, TSchema]) => [
    type,
    { schema, check: TypeCompiler.Compile(schema) },
  ]),
)
const knownTypes = [...compiled.keys()].join(', ')

/** Reads a frame as a client sent it.
 *  @throws validation_error: no JSON object, an unknown type, or a field that is not as it must be */
export function decodeFrame(value: unknown): ClientFrame {
  const type = frameField(value, 'type')
  const known = type === undefined ? undefined : compiled.get(type)
  if (!known) throw isObject(value) ? invalidType(value) : noObject(value)
  if (!known.check.Check(value)) {
    throw new AppError('validation_error', { details: fieldProblems(known.schema, value) })
  }
  return value as ClientFrame // checked against the schema of its type
}

// Undefined is what was no JSON, or no text.
function noObject(value: unknown) {
  return invalidField('body', value === undefined ? 'malformed_json' : 'not_an_object')
}

function invalidType(value: object) {
  return 'type' in value
    ? invalidField('type', 'one_of', knownTypes)
    : invalidField('type', 'required')
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A text field of something that may be a frame. */
function frameField(value: unknown, name: string): string | undefined {
  const field = isObject(value) ? value[name] : undefined
  return typeof field === 'string' ? field : undefined
}

/** Tells what was refused and why; of the refused frame only what tells it apart comes back. */
export function errorFrame(refusal: AppError, locale: Locale, refused: unknown): ErrorFrame {
  const { retryAfterSeconds } = refusal
  const names = ['type', 'conversation_id', 'client_id']
  const known = names.flatMap((name) => {
    const value = frameField(refused, name)
    return value === undefined ? [] : [[name, value]]
  })
  return {
    type: 'error',
    ...errorBody(refusal, locale),
    ...(retryAfterSeconds !== undefined && { retry_after: retryAfterSeconds }),
    request: Object.fromEntries(known),
  }
}
