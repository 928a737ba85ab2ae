import { type Static, Type } from '@sinclair/typebox'
import { isoTime } from '../../lib/clock.ts'
import { Email, HttpUrl, Maybe, Text } from '../../lib/fields.ts'
import { locales } from '../../lib/i18n.ts'
import { roles } from '../../lib/vocabulary.ts'
import type { SessionRow } from './session-store.ts'
import type { UserRow } from './store.ts'

export const passwordRule = { min: 8, max: 256 }

const nameRule = { min: 1, max: 80, trimmed: true, notBlank: true, noControlCharacters: true }

const registration = {
  email: Email(),
  password: Text(passwordRule),
  display_name: Maybe(
    Text(nameRule, {
      description: 'The public name; when absent, the local part of the e-mail address.',
    }),
  ),
}

export const Registration = Type.Object(registration, {
  title: 'Registration',
  additionalProperties: true,
})
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

export const OneOfRoles = Type.Union(roles.map((role) => Type.Literal(role)))

/** Spec 2.1. */
export const User = Type.Object(
  {
    id: Type.String(),
    email: Type.String(),
    display_name: Type.String(),
    role: OneOfRoles,
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

const open = { additionalProperties: true } as const
const OneOfLocales = Type.Union(locales.map((locale) => Type.Literal(locale)))
const Timestamp = Type.String({ format: 'date-time' })
const nullableText = Type.Union([Type.String(), Type.Null()])

export const SetUp = Type.Object(
  { ...registration, token: Type.String() },
  { title: 'SetUp', ...open },
)
export type SetUp = Static<typeof SetUp>

export const OneTimeTokenBody = Type.Object(
  { token: Type.String() },
  { title: 'OneTimeTokenBody', ...open },
)
export const EmailBody = Type.Object({ email: Type.String() }, { title: 'EmailBody', ...open })
export const PasswordReset = Type.Object(
  { token: Type.String(), password: Text(passwordRule) },
  { title: 'PasswordReset', ...open },
)
export const PasswordChange = Type.Object(
  { current_password: Type.String(), new_password: Text(passwordRule) },
  { title: 'PasswordChange', ...open },
)
export const PasswordBody = Type.Object(
  { password: Type.String() },
  { title: 'PasswordBody', ...open },
)
export const UserBody = Type.Object({ user: User }, { title: 'UserBody' })

export const Session = Type.Object(
  {
    id: Type.String(),
    created_at: Timestamp,
    last_used_at: Timestamp,
    user_agent: nullableText,
    ip: nullableText,
    current: Type.Boolean(),
  },
  { title: 'Session' },
)

export const Profile = Type.Object(
  {
    ...User.properties,
    avatar_url: Type.String({ format: 'uri' }),
    locale: OneOfLocales,
  },
  { title: 'Profile' },
)

export const ProfileUpdate = Type.Object(
  {
    display_name: Type.Optional(Text(nameRule)),
    avatar_url: Maybe(HttpUrl(2_048)),
    locale: Type.Optional(OneOfLocales),
  },
  { title: 'ProfileUpdate', ...open },
)
export type ProfileUpdate = Static<typeof ProfileUpdate>

/** A person as admins see them. */
export const ManagedUser = Type.Object(
  { ...Profile.properties, disabled: Type.Boolean() },
  { title: 'ManagedUser' },
)

export const AccessUpdate = Type.Object(
  { role: Type.Optional(OneOfRoles), disabled: Type.Optional(Type.Boolean()) },
  { title: 'AccessUpdate', ...open },
)

/** What the rest of the platform may change of a person. */
export const PersonUpdate = Type.Object(
  {
    ...AccessUpdate.properties,
    email_verified: Type.Optional(Type.Boolean()),
    display_name: ProfileUpdate.properties.display_name,
    avatar_url: ProfileUpdate.properties.avatar_url,
  },
  { title: 'PersonUpdate', ...open },
)

/** Where a person's picture is: their own, or a generated one. */
export type AvatarUrl = (user: Pick<UserRow, 'id' | 'displayName' | 'avatarUrl'>) => string

export function profileView(row: UserRow, avatarUrl: AvatarUrl): Static<typeof Profile> {
  return { ...userView(row), avatar_url: avatarUrl(row), locale: row.locale }
}

export function managedUserView(row: UserRow, avatarUrl: AvatarUrl): Static<typeof ManagedUser> {
  return { ...profileView(row, avatarUrl), disabled: row.disabledAt !== null }
}

export function sessionView(row: SessionRow, currentId: string): Static<typeof Session> {
  return {
    id: row.id,
    created_at: isoTime(row.createdAt),
    last_used_at: isoTime(row.lastUsedAt),
    user_agent: row.userAgent,
    ip: row.ip,
    current: row.id === currentId,
  }
}
