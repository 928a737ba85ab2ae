import { type Static, Type } from '@sinclair/typebox'
import {
  Body,
  Maybe,
  Nullable,
  OneOf,
  PersonId,
  Rarely,
  Sample,
  Text,
  Time,
  Timestamp,
} from '../../api/fields.ts'
import { samples } from '../../api/samples.ts'
import { isoTime, timeOrNull } from '../../lib/clock.ts'
import { allScopes, callStates, grantableScopes, serviceScopes } from '../../lib/vocabulary.ts'
import type { CallRow, FollowRow, ServiceKeyRow } from './store.ts'

export const serviceKeyNameRule = {
  min: 1,
  max: 80,
  trimmed: true,
  notBlank: true,
  noControlCharacters: true,
}

export const NewServiceKey = Body('NewServiceKey', {
  name: Text(serviceKeyNameRule, { examples: ['payments'] }),
  scopes: Type.Array(OneOf(grantableScopes), {
    minItems: 1,
    description: `The operations allowed for the key. \`${allScopes}\` means all scopes except \`sessions\`, which logs people in.`,
  }),
  expires_at: Maybe(Time({ description: 'When the key expires: ISO 8601 with a time zone.' })),
})

export const ServiceKey = Type.Object(
  {
    id: Sample(samples.recordId),
    name: Sample('payments'),
    scopes: Type.Array(OneOf(serviceScopes)),
    created_at: Timestamp,
    expires_at: Nullable(Sample(samples.later, { format: 'date-time' })),
    last_used_at: Nullable(Timestamp),
    revoked_at: Rarely(Timestamp),
  },
  { title: 'ServiceKey' },
)

export const CreatedServiceKey = Type.Object(
  {
    ...ServiceKey.properties,
    key: Sample('sk_9QnX4v0cJm2uT7aPzLw1yBfRk8dHsE5g', {
      description: 'The key itself, shown only this once.',
    }),
  },
  { title: 'CreatedServiceKey' },
)

export const FollowerImport = Body('FollowerImport', {
  follower_ids: Type.Array(Sample(samples.guest.id), { maxItems: 1_000 }),
})

export const ImportCounts = Type.Object(
  {
    added: Type.Integer({ examples: [1] }),
    already: Type.Integer({ examples: [0] }),
    unknown: Type.Integer({ examples: [0] }),
  },
  { title: 'ImportCounts' },
)

export const CallUpdate = Body('CallUpdate', {
  state: OneOf(callStates),
  host_id: PersonId(samples.host.id),
  guest_id: PersonId(),
})

export const Call = Type.Object(
  {
    call_session_id: Sample(samples.callId),
    state: OneOf(callStates),
    host_id: Sample(samples.host.id),
    guest_id: Sample(samples.guest.id),
    updated_at: Timestamp,
  },
  { title: 'Call' },
)

export function serviceKeyView(row: ServiceKeyRow): Static<typeof ServiceKey> {
  return {
    id: row.id,
    name: row.name,
    scopes: [...row.scopes],
    created_at: isoTime(row.createdAt),
    expires_at: timeOrNull(row.expiresAt),
    last_used_at: timeOrNull(row.lastUsedAt),
    revoked_at: timeOrNull(row.revokedAt),
  }
}

export function followView({ hostId, followerId, createdAt }: FollowRow) {
  return { host_id: hostId, follower_id: followerId, created_at: isoTime(createdAt) }
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
