import type { Static } from '@sinclair/typebox'
import {
  Body,
  Maybe,
  Nullable,
  OneOf,
  Sample,
  Schema,
  Text,
  Time,
  Timestamp,
} from '../../../api/fields.ts'
import { samples } from '../../../api/samples.ts'
import { isoTime, timeOrNull } from '../../../lib/clock.ts'
import { banKinds } from '../../../lib/vocabulary.ts'
import type { BanRow } from './ban-store.ts'

export const banKind = OneOf(banKinds, {
  title: 'BanKind',
  description: 'The kind of thing that is banned.',
})
export const banValue = {
  description:
    'A mail domain, which includes its subdomains, an address, or a network (CIDR, up to /8 or an IPv6 /16) without admins.',
  examples: ['spam.example'],
}
export const NewBan = Body('NewBan', {
  kind: banKind,
  value: Text({ min: 1, max: 254, trimmed: true }, banValue),
  reason: Maybe(Text({ max: 200 }, { description: 'For admins.', examples: ['spam wave'] })),
  until: Maybe(Time({ description: 'When it ends; without it, never.' })),
})

export const Ban = Schema('Ban', {
  id: Sample(samples.recordId),
  kind: banKind,
  value: Nullable(Sample('spam.example'), {
    description: 'Null for an address, of which only a hash is kept.',
  }),
  reason: Nullable(Sample('spam wave')),
  created_at: Timestamp,
  until: Nullable(Timestamp),
})

export function banView({ id, kind, value, reason, createdAt, until }: BanRow): Static<typeof Ban> {
  const shown = kind === 'address' ? null : value
  return {
    id,
    kind,
    value: shown,
    reason,
    created_at: isoTime(createdAt),
    until: timeOrNull(until),
  }
}
