import { Type } from '@sinclair/typebox'
import { ClientId, fieldProblems } from '../api/fields.ts'
import { throwProblems } from '../lib/errors.ts'

const header = 'X-Idempotency-Key'
const IdempotencyHeaders = Type.Object({ [header]: Type.Optional(ClientId) })

export const idempotent = {
  headers: { [header]: ClientId },
  successHeaders: {
    'Idempotent-Replayed': {
      description: '`true` if this repeats the response to an earlier request.',
      schema: { type: 'string' as const },
    },
  },
}

export function markReplayed(headers: Record<string, string | number>, replayed: boolean): void {
  if (replayed) headers['idempotent-replayed'] = 'true'
}

/** The key in the header, for routes without a body field for it.
 *  @throws validation_error */
export function idempotencyKey(headers: Headers): string | undefined {
  const key = headers.get(header)
  if (key === null) return undefined
  throwProblems(fieldProblems(IdempotencyHeaders, { [header]: key }))
  return key
}
