import { type Static, Type } from '@sinclair/typebox'
import { isoTime } from '../../lib/clock.ts'
import { Id, Text } from '../../lib/fields.ts'
import { callStates, serviceScopes } from '../../lib/vocabulary.ts'
import type { CallRow } from './call-store.ts'
import type { ServiceKeyRow } from './service-key-store.ts'

const Timestamp = Type.String({ format: 'date-time' })
const NullableTimestamp = Type.Union([Timestamp, Type.Null()])
const open = { additionalProperties: true } as const

export const serviceKeyNameRule = {
  min: 1,
  max: 80,
  trimmed: true,
  notBlank: true,
  noControlCharacters: true,
}
const OneOfScopes = Type.Union(serviceScopes.map((scope) => Type.Literal(scope)))

export const NewServiceKey = Type.Object(
  {
    name: Text(serviceKeyNameRule),
    scopes: Type.Optional(
      Type.Array(OneOfScopes, {
        minItems: 1,
        description: 'What it may do; when it is absent everything.',
      }),
    ),
  },
  { title: 'NewServiceKey', ...open },
)

export const ServiceKey = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    scopes: Type.Array(OneOfScopes),
    created_at: Timestamp,
    last_used_at: NullableTimestamp,
    revoked_at: NullableTimestamp,
  },
  { title: 'ServiceKey' },
)

export const CreatedServiceKey = Type.Object(
  {
    ...ServiceKey.properties,
    key: Type.String({ description: 'The key itself: shown once and nowhere else.' }),
  },
  { title: 'CreatedServiceKey' },
)

export const FollowerImport = Type.Object(
  { follower_ids: Type.Array(Type.String(), { maxItems: 1_000 }) },
  { title: 'FollowerImport', ...open },
)

export const ImportCounts = Type.Object(
  { added: Type.Integer(), already: Type.Integer(), unknown: Type.Integer() },
  { title: 'ImportCounts' },
)

const OneOfCallStates = Type.Union(callStates.map((state) => Type.Literal(state)))

export const CallUpdate = Type.Object(
  { state: OneOfCallStates, host_id: Id(), guest_id: Id() },
  { title: 'CallUpdate', ...open },
)

export const Call = Type.Object(
  {
    call_session_id: Type.String(),
    state: OneOfCallStates,
    host_id: Type.String(),
    guest_id: Type.String(),
    updated_at: Timestamp,
  },
  { title: 'Call' },
)

export function serviceKeyView(row: ServiceKeyRow): Static<typeof ServiceKey> {
  const nullableTime = (time: number | null) => (time === null ? null : isoTime(time))
  return {
    id: row.id,
    name: row.name,
    scopes: [...row.scopes],
    created_at: isoTime(row.createdAt),
    last_used_at: nullableTime(row.lastUsedAt),
    revoked_at: nullableTime(row.revokedAt),
  }
}

export function callView(row: CallRow): Static<typeof Call> {
  return {
    call_session_id: row.id,
    state: row.state,
    host_id: row.hostId,
    guest_id: row.guestId,
    updated_at: isoTime(row.updatedAt),
  }
}
