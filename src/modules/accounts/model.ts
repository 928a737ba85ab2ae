import { type Static, Type } from '@sinclair/typebox'
import {
  Body,
  Change,
  Email,
  HttpUrl,
  Maybe,
  Nullable,
  OneOf,
  Rarely,
  Refined,
  Sample,
  Text,
  Timestamp,
} from '../../api/fields.ts'
import { samples } from '../../api/samples.ts'
import type { AuditRow } from '../../db/audit-trail.ts'
import type { AvatarUrl } from '../../lib/avatar.ts'
import { isoTime } from '../../lib/clock.ts'
import { type FieldProblems, problem } from '../../lib/errors.ts'
import { locales } from '../../lib/i18n.ts'
import { externalIdRule } from '../../lib/ids.ts'
import { roles } from '../../lib/vocabulary.ts'
import { isGuessable } from './sign-in/passwords.ts'
import type { SessionRow } from './sign-in/session-store.ts'
import type { UserRow } from './store.ts'

export const passwordRule = { min: 8, max: 256 }

const nameRule = { min: 1, max: 80, trimmed: true, notBlank: true, noControlCharacters: true }
export const Password = Text(passwordRule, {
  description: 'Must not be a common password, or the address or name of the account.',
  examples: [samples.password],
})
const RoleField = OneOf(roles, { examples: ['verified_user'] })
const GivenRole = OneOf(roles, { examples: ['host'] })
const Name = Text(nameRule, { examples: [samples.guest.name] })
const LocaleField = OneOf(locales)

export const registration = {
  email: Email(),
  password: Password,
  display_name: Maybe(
    Text(nameRule, {
      description: 'The public name; when absent, the local part of the e-mail address.',
      examples: [samples.guest.name],
    }),
  ),
}

/** The display name of a user who gave none: the local part of the address. */
export function localPart(email: string): string {
  return email.slice(0, email.indexOf('@'))
}

export const Registration = Refined(Body('Registration', registration), newcomerProblems)
export type Registration = Static<typeof Registration>

export const SetUp = Refined(
  Body('SetUp', { ...registration, token: Sample(samples.oneTimeToken) }),
  newcomerProblems,
)
export type SetUp = Static<typeof SetUp>

type Newcomer = { email?: unknown; password?: unknown; display_name?: unknown }

export function newcomerProblems({ email, password, display_name: name }: Newcomer): FieldProblems {
  if (typeof password !== 'string') return {}
  const owner = {
    email: typeof email === 'string' ? email : '',
    ...(typeof name === 'string' && { displayName: name.trim() }),
  }
  return isGuessable(password, owner) ? { password: problem('guessable_password') } : {}
}

// Validates only types: any other problem must look like wrong credentials.
export const Credentials = Body(
  'Credentials',
  {
    email: Type.String(),
    password: Type.String(),
    code: Maybe(
      Sample(samples.code, {
        description:
          'A code from the authenticator, or a recovery code. Required if a second factor is enabled.',
      }),
    ),
  },
  { examples: [{ email: samples.guest.email, password: samples.password }] },
)
export type Credentials = Static<typeof Credentials>

export const RefreshTokenBody = Body('RefreshTokenBody', {
  refresh_token: Sample(samples.usedRefreshToken),
})
/** The user's own password; optional after a confirmation of the session. */
export const OwnPassword = Maybe(Sample(samples.password))
export const PasswordBody = Body('PasswordBody', { password: OwnPassword })

const profile = {
  display_name: Maybe(Name),
  avatar_url: Maybe(HttpUrl(2_048, { examples: ['https://cdn.example.com/ben.jpg'] })),
}
const access = {
  role: Maybe(GivenRole),
  disabled: Maybe(Type.Boolean()),
  email_verified: Maybe(Type.Boolean({ examples: [true] })),
}

export const ProfileUpdate = Change(
  Body('ProfileUpdate', { ...profile, locale: Maybe(LocaleField) }),
  ['avatar_url'],
)
export const AccessUpdate = Change(Body('AccessUpdate', access))
export const ExternalId = Text(externalIdRule, {
  description:
    'The id of the person in the rest of the platform. The feed accepts `ext:` followed by this id.',
  examples: [samples.guest.externalId],
})
export const PersonUpdate = Change(
  Body('PersonUpdate', { ...access, ...profile, external_id: Maybe(ExternalId) }),
  ['avatar_url'],
)
export const NewPerson = Body('NewPerson', {
  email: Email(),
  ...profile,
  role: Maybe(GivenRole),
  email_verified: Maybe(Type.Boolean({ examples: [true] })),
  external_id: Maybe(ExternalId),
  locale: Maybe(LocaleField),
})
export type NewPerson = Static<typeof NewPerson>

export const User = Type.Object(
  {
    id: Sample(samples.guest.id),
    email: Sample(samples.guest.email),
    display_name: Sample(samples.guest.name),
    role: RoleField,
    email_verified: Type.Boolean({ examples: [true] }),
    created_at: Sample(samples.guest.since, { format: 'date-time' }),
  },
  { title: 'User' },
)
export type User = Static<typeof User>

export const UserBody = Type.Object({ user: User }, { title: 'UserBody' })

const tokenSet = {
  access_token: Sample(samples.accessToken, { description: 'A JWT signed with RS256.' }),
  refresh_token: Sample(samples.refreshToken, { description: 'Opaque, for one use.' }),
  expires_in: Type.Integer({
    description: 'Seconds until the access token expires.',
    examples: [900],
  }),
}

export const TokenSet = Type.Object(tokenSet, { title: 'TokenSet' })
export type TokenSet = Static<typeof TokenSet>

export const Authenticated = Type.Object({ user: User, ...tokenSet }, { title: 'Authenticated' })
export type Authenticated = Static<typeof Authenticated>

export const Jwks = Type.Object(
  {
    keys: Type.Array(
      Type.Object({
        kty: Sample('RSA'),
        n: Sample('sXchJfYtW9Fh0pDk2mQv', { description: 'The modulus, in base64url.' }),
        e: Sample('AQAB'),
        kid: Sample(samples.recordId),
        alg: Sample('RS256'),
        use: Sample('sig'),
      }),
    ),
  },
  { title: 'Jwks' },
)
export type Jwks = Static<typeof Jwks>

const keyStates = ['active', 'next', 'retired'] as const
export const SigningKey = Type.Object({
  kid: Type.String(),
  state: OneOf(keyStates),
  created_at: Timestamp,
})

/** `ready_at`: the earliest time for the rotation; null when the keys were rotated. */
export const Rotation = Type.Object({ ready_at: Nullable(Timestamp) })

export const Session = Type.Object(
  {
    id: Sample(samples.recordId),
    created_at: Timestamp,
    last_used_at: Timestamp,
    user_agent: Nullable(Sample('Mozilla/5.0 (X11; Linux x86_64)')),
    ip: Nullable(Sample('203.0.113.7')),
    current: Type.Boolean({ examples: [true] }),
  },
  { title: 'Session' },
)

export const Profile = Type.Object(
  {
    ...User.properties,
    avatar_url: Sample(samples.guest.avatarUrl, { format: 'uri' }),
    locale: LocaleField,
    totp: Type.Boolean({ description: 'Whether a login requires a code from an authenticator.' }),
    email_bounced_at: Rarely(
      Sample(samples.time, {
        format: 'date-time',
        description: 'When the mail server permanently refused the address; null if it did not.',
      }),
    ),
  },
  { title: 'Profile' },
)

/** A user as admins see them. */
export const ManagedUser = Type.Object(
  {
    ...Profile.properties,
    disabled: Type.Boolean(),
    external_id: Nullable(
      Sample(samples.guest.externalId, {
        description: 'The id of the person in the rest of the platform.',
      }),
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

/** Profile fields from outside the user's row. */
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

/** A requested address that is not confirmed yet. */
export function pendingAddressView({ email, expiresAt }: { email: string; expiresAt: number }) {
  return { email, expires_at: isoTime(expiresAt) }
}

/** A former address that is reserved for its owner. */
export function formerAddressView({ email, expiresAt }: { email: string; expiresAt: number }) {
  return { email, reserved_until: isoTime(expiresAt) }
}

/** A row of the audit log in the export of its actor. */
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
