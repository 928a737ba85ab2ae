import { type Static, Type } from '@sinclair/typebox'
import {
  Body,
  Count,
  described,
  Maybe,
  Nullable,
  nameRule,
  OneOf,
  OptionalExternalId,
  PersonId,
  Rarely,
  Sample,
  Schema,
  Text,
  Time,
  Timestamp,
} from '../../api/fields.ts'
import { samples } from '../../api/samples.ts'
import { isoTime, timeOrNull } from '../../lib/clock.ts'
import { allScopes, callStates, grantableScopes, serviceScopes } from '../../lib/vocabulary.ts'
import type { CallRow, FollowRow, ServiceKeyRow } from './store.ts'

export const NewServiceKey = Body('NewServiceKey', {
  name: Text(nameRule, {
    description: 'A name for the list of keys.',
    examples: ['payments'],
  }),
  scopes: Type.Array(OneOf(grantableScopes, { title: 'GrantableScope' }), {
    minItems: 1,
    description: `The operations allowed for the key. \`${allScopes}\` means all scopes except \`sessions\`, which logs people in, and \`messages_as\`, which writes in their name.`,
  }),
  expires_at: Maybe(
    Time({ description: 'When the key expires, in the future: ISO 8601 with a time zone.' }),
  ),
})
export type NewServiceKey = Static<typeof NewServiceKey>

export const ServiceKey = Schema('ServiceKey', {
  id: Sample(samples.recordId),
  name: Sample('payments'),
  scopes: Type.Array(OneOf(serviceScopes, { title: 'ServiceScope' })),
  created_at: Timestamp,
  expires_at: Nullable(Sample(samples.later, { format: 'date-time' })),
  last_used_at: described(Nullable(Timestamp), 'The last request with it, to within a minute.'),
  revoked_at: described(Rarely(Timestamp), 'When it was revoked; null if it was not.'),
})

export const CreatedServiceKey = Schema('CreatedServiceKey', {
  ...ServiceKey.properties,
  key: Sample('sk_9QnX4v0cJm2uT7aPzLw1yBfRk8dHsE5g', 'The key itself, shown only this once.'),
})

export const FollowerImport = Body('FollowerImport', {
  follower_ids: Type.Array(Sample(samples.guest.id), {
    description:
      'The followers: ids, or `ext:` and external ids; the whole body has at most 64 KiB.',
    maxItems: 1_000,
  }),
})

export const ImportCounts = Schema('ImportCounts', {
  added: Count(1, 'Followers who were new.'),
  already: Count(0, 'Followers who were known, or named before in the list.'),
  unknown: Type.Array(Type.String(), {
    description: 'The ids that name nobody, as they were given.',
    examples: [[]],
  }),
})

export const CallUpdate = Body('CallUpdate', {
  state: OneOf(callStates, {
    title: 'CallState',
    description: 'The state now. A call only moves on.',
  }),
  host_id: described(PersonId(samples.host.id), 'The host: an id, or `ext:` and an external id.'),
  guest_id: described(PersonId(), 'The guest: an id, or `ext:` and an external id.'),
})

const hostExternalId = OptionalExternalId('host-12')
const guestExternalId = OptionalExternalId(samples.guest.externalId)

export const Call = Schema('Call', {
  call_session_id: Sample(samples.callId),
  state: OneOf(callStates, { title: 'CallState' }),
  host_id: Sample(samples.host.id),
  host_external_id: hostExternalId,
  guest_id: Sample(samples.guest.id),
  guest_external_id: guestExternalId,
  updated_at: Timestamp,
})

export const Follow = Schema('Follow', {
  host_id: Sample(samples.host.id),
  host_external_id: hostExternalId,
  follower_id: Sample(samples.guest.id),
  follower_external_id: guestExternalId,
  created_at: Timestamp,
})

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

export type ExternalIdOf = (userId: string) => string | undefined

export const followView =
  (externalIdOf: ExternalIdOf) =>
  ({ hostId, followerId, createdAt }: FollowRow): Static<typeof Follow> => ({
    host_id: hostId,
    ...external('host', externalIdOf(hostId)),
    follower_id: followerId,
    ...external('follower', externalIdOf(followerId)),
    created_at: isoTime(createdAt),
  })

export const callView =
  (externalIdOf: ExternalIdOf) =>
  (row: CallRow): Static<typeof Call> => ({
    call_session_id: row.id,
    state: row.state,
    host_id: row.hostId,
    ...external('host', externalIdOf(row.hostId)),
    guest_id: row.guestId,
    ...external('guest', externalIdOf(row.guestId)),
    updated_at: isoTime(row.updatedAt),
  })

const external = (part: 'host' | 'guest' | 'follower', id: string | undefined) =>
  id === undefined ? {} : { [`${part}_external_id`]: id }
