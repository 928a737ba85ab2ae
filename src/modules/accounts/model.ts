import { type Static, Type } from '@sinclair/typebox'
import { isoTime } from '../../lib/clock.ts'
import { Email, Text } from '../../lib/fields.ts'
import { roles } from '../../lib/vocabulary.ts'
import type { UserRow } from './store.ts'

export const passwordRule = { min: 8, max: 256 }

export const Registration = Type.Object(
  {
    email: Email(),
    password: Text(passwordRule),
    display_name: Type.Optional(
      Text(
        { min: 1, max: 80, trimmed: true, notBlank: true, noControlCharacters: true },
        { description: 'The public name; when absent, the local part of the e-mail address.' },
      ),
    ),
  },
  { title: 'Registration', additionalProperties: true },
)
export type Registration = Static<typeof Registration>

// Nothing but the type: whatever else is wrong must look the same to a stranger.
export const Credentials = Type.Object(
  { email: Type.String(), password: Type.String() },
  { title: 'Credentials', additionalProperties: true },
)
export type Credentials = Static<typeof Credentials>

export const RefreshTokenBody = Type.Object(
  { refresh_token: Type.String() },
  { title: 'RefreshTokenBody', additionalProperties: true },
)

/** Spec 2.1. */
export const User = Type.Object(
  {
    id: Type.String(),
    email: Type.String(),
    display_name: Type.String(),
    role: Type.Union(roles.map((role) => Type.Literal(role))),
    email_verified: Type.Boolean(),
    created_at: Type.String({ format: 'date-time' }),
  },
  { title: 'User' },
)
export type User = Static<typeof User>

const tokenSet = {
  access_token: Type.String({ description: 'A JWT signed with RS256.' }),
  refresh_token: Type.String({ description: 'Opaque, for one use.' }),
  expires_in: Type.Integer({ description: 'Seconds until the access token expires.' }),
}

/** Spec 2.2. */
export const TokenSet = Type.Object(tokenSet, { title: 'TokenSet' })
export type TokenSet = Static<typeof TokenSet>

export const Authenticated = Type.Object({ user: User, ...tokenSet }, { title: 'Authenticated' })

export const Jwks = Type.Object(
  {
    keys: Type.Array(
      Type.Object({
        kty: Type.String(),
        n: Type.String(),
        e: Type.String(),
        kid: Type.String(),
        alg: Type.String(),
        use: Type.String(),
      }),
    ),
  },
  { title: 'Jwks' },
)
export type Jwks = Static<typeof Jwks>

export function userView(row: UserRow): User {
  return {
    id: row.id,
    email: row.email,
    display_name: row.displayName,
    role: row.role,
    email_verified: row.emailVerified,
    created_at: isoTime(row.createdAt),
  }
}
