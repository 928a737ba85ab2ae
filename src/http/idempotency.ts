import { Type } from '@sinclair/typebox'
import { AppError } from '../lib/errors.ts'
import { fieldProblems, Text } from '../lib/fields.ts'

/** Sending twice (decisions 5): one key under two names, `client_id` in the body and this header. */

const header = 'X-Idempotency-Key'
/** Marks an answer that was given before. */
export const replayedHeader = 'idempotent-replayed'

export const ClientId = Text(
  { min: 1, max: 64 },
  { description: 'Idempotency key: sending again with the same one gives the first answer.' },
)
const Headers = Type.Object({ [header]: Type.Optional(ClientId) })

/** The idempotency key in the header, for a body that has none.
 *  @throws validation_error */
export function idempotencyKey(headers: Request['headers']): string | undefined {
  const key = headers.get(header)
  if (key === null) return undefined
  const details = fieldProblems(Headers, { [header]: key })
  if (Object.keys(details).length > 0) throw new AppError('validation_error', { details })
  return key
}

/** For the description of an operation that can be sent twice. */
export const idempotencyDoc = {
  headers: { [header]: ClientId },
  successHeaders: { 'Idempotent-Replayed': '`true` when this had been sent before.' },
}
