import { type Static, type TProperties, Type } from '@sinclair/typebox'
import type { AuditRow } from '../../db/audit-trail.ts'
import type { AvatarUrl } from '../../lib/avatar.ts'
import { isoTime } from '../../lib/clock.ts'
import { type FieldProblems, problem } from '../../lib/errors.ts'
import {
  Email,
  HttpUrl,
  Maybe,
  Nullable,
  OneOf,
  Refined,
  Text,
  Timestamp,
} from '../../lib/fields.ts'
import { locales } from '../../lib/i18n.ts'
import { externalIdRule } from '../../lib/ids.ts'
import { roles } from '../../lib/vocabulary.ts'
import { isGuessable } from './passwords.ts'
import type { SessionRow } from './session-store.ts'
import type { UserRow } from './store.ts'

export const passwordRule = { min: 8, max: 256 }

const nameRule = { min: 1, max: 80, trimmed: true, notBlank: true, noControlCharacters: true }
export const Password = Text(passwordRule, {
  description: "None of the commonest, nor the account's own address or name.",
})
const RoleField = OneOf(roles)
const LocaleField = OneOf(locales)

/** What a client sends; fields that we do not know are ignored. */
export const Body = <T extends TProperties>(title: string, properties: T) =>
  Type.Object(properties, { title, additionalProperties: true })

const registration = {
  email: Email(),
  password: Password,
  display_name: Maybe(
    Text(nameRule, {
      description: 'The public name; when absent, the local part of the e-mail address.',
    }),
  ),
}

/** The name of somebody who gave none. */
export function localPart(email: string): string {
  return email.slice(0, email.indexOf('@'))
}

export const Registration = Refined(Body('Registration', registration), newcomerProblems)
export type Registration = Static<typeof Registration>

export const SetUp = Refined(
  Body('SetUp', { ...registration, token: Type.String() }),
  newcomerProblems,
)
export type SetUp = Static<typeof SetUp>

type Newcomer = { email?: unknown; password?: unknown; display_name?: unknown }

function newcomerProblems({ email, password, display_name: name }: Newcomer): FieldProblems {
  if (typeof password !== 'string') return {}
  const owner = {
    email: typeof email === 'string' ? email : '',
    ...(typeof name === 'string' && { displayName: name.trim() }),
  }
  return isGuessable(password, owner) ? { password: problem('guessable_password') } : {}
}

// Nothing but the type: whatever else is wrong must look the same to a stranger.
export const Credentials = Body('Credentials', {
  email: Type.String(),
  password: Type.String(),
  code: Maybe(
    Type.String({
      description: 'From the authenticator, or a recovery code, where one is set up.',
    }),
  ),
})
export type Credentials = Static<typeof Credentials>

export const RefreshTokenBody = Body('RefreshTokenBody', { refresh_token: Type.String() })
export const PasswordBody = Body('PasswordBody', { password: Type.String() })

const profile = { display_name: Maybe(Text(nameRule)), avatar_url: Maybe(HttpUrl(2_048)) }
const access = {
  role: Maybe(RoleField),
  disabled: Maybe(Type.Boolean()),
  email_verified: Maybe(Type.Boolean()),
}

export const ProfileUpdate = Body('ProfileUpdate', {
  ...profile,
  locale: Maybe(LocaleField),
})
export const AccessUpdate = Body('AccessUpdate', access)
export const ExternalId = Text(externalIdRule, {
  description: 'What the platform calls the person: `ext:` and this id names them in the feed.',
})
/** What the rest of the platform may change of a person. */
export const PersonUpdate = Body('PersonUpdate', {
  ...access,
  ...profile,
  external_id: Maybe(ExternalId),
})
/** Somebody whom the platform brings along. */
export const NewPerson = Body('NewPerson', {
  email: Email(),
  ...profile,
  role: Maybe(RoleField),
  email_verified: Maybe(Type.Boolean()),
  external_id: Maybe(ExternalId),
  locale: Maybe(LocaleField),
})
export type NewPerson = Static<typeof NewPerson>

export const User = Type.Object(
  {
    id: Type.String(),
    email: Type.String(),
    display_name: Type.String(),
    role: RoleField,
    email_verified: Type.Boolean(),
    created_at: Timestamp,
  },
  { title: 'User' },
)
export type User = Static<typeof User>

export const UserBody = Type.Object({ user: User }, { title: 'UserBody' })

const tokenSet = {
  access_token: Type.String({ description: 'A JWT signed with RS256.' }),
  refresh_token: Type.String({ description: 'Opaque, for one use.' }),
  expires_in: Type.Integer({ description: 'Seconds until the access token expires.' }),
}

export const TokenSet = Type.Object(tokenSet, { title: 'TokenSet' })
export type TokenSet = Static<typeof TokenSet>

export const Authenticated = Type.Object({ user: User, ...tokenSet }, { title: 'Authenticated' })
export type Authenticated = Static<typeof Authenticated>

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

export const Session = Type.Object(
  {
    id: Type.String(),
    created_at: Timestamp,
    last_used_at: Timestamp,
    user_agent: Nullable(Type.String()),
    ip: Nullable(Type.String()),
    current: Type.Boolean(),
  },
  { title: 'Session' },
)

export const Profile = Type.Object(
  {
    ...User.properties,
    avatar_url: Type.String({ format: 'uri' }),
    locale: LocaleField,
    totp: Type.Boolean({ description: 'Whether logging in takes a code of an authenticator.' }),
    email_bounced_at: Nullable(
      Type.String({
        format: 'date-time',
        description: 'Since when mails to the address are refused for good.',
      }),
    ),
  },
  { title: 'Profile' },
)

/** A person as admins see them. */
export const ManagedUser = Type.Object(
  {
    ...Profile.properties,
    disabled: Type.Boolean(),
    external_id: Nullable(
      Type.String({ description: 'What the rest of the platform calls the person.' }),
    ),
  },
  { title: 'ManagedUser' },
)

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

/** What a profile shows that is not in the row of the person. */
export type ProfileParts = { avatarUrl: AvatarUrl; hasTotp: (userId: string) => boolean }

export function profileView(row: UserRow, parts: ProfileParts): Static<typeof Profile> {
  const { locale, emailBouncedAt } = row
  return {
    ...userView(row),
    avatar_url: parts.avatarUrl(row),
    locale,
    totp: parts.hasTotp(row.id),
    email_bounced_at: emailBouncedAt === null ? null : isoTime(emailBouncedAt),
  }
}

export function managedUserView(row: UserRow, parts: ProfileParts): Static<typeof ManagedUser> {
  const { disabledAt, externalId } = row
  return {
    ...profileView(row, parts),
    disabled: disabledAt !== null,
    external_id: externalId,
  }
}

/** An address that the person had, which waits for them. */
/** An address that somebody has asked for and not confirmed yet. */
export function pendingAddressView({ email, expiresAt }: { email: string; expiresAt: number }) {
  return { email, expires_at: isoTime(expiresAt) }
}

export function formerAddressView({ email, expiresAt }: { email: string; expiresAt: number }) {
  return { email, reserved_until: isoTime(expiresAt) }
}

/** A row of the audit log as it is exported to whoever acted. */
export function ownAuditView({ at, action, ip, details }: AuditRow) {
  return { at: isoTime(at), action, ip, details: details === null ? null : JSON.parse(details) }
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
