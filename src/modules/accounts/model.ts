import { type Static, Type } from '@sinclair/typebox'
import {
  Body,
  Change,
  CheckedText,
  Count,
  described,
  Email,
  Flag,
  HttpUrl,
  LocaleField,
  Maybe,
  Nullable,
  nameRule,
  OneOf,
  Rarely,
  Refined,
  Sample,
  Schema,
  Text,
  Timestamp,
} from '../../api/fields.ts'
import { samples } from '../../api/samples.ts'
import type { AuditRow } from '../../db/audit-trail.ts'
import type { AvatarUrl } from '../../lib/avatar.ts'
import { isoTime, timeOrNull } from '../../lib/clock.ts'
import { type FieldProblems, problem } from '../../lib/errors.ts'
import { externalIdRule } from '../../lib/ids.ts'
import { isTimeZone } from '../../lib/quiet-hours.ts'
import { keyStates, roles } from '../../lib/vocabulary.ts'
import { isGuessable } from './sign-in/passwords.ts'
import type { SessionRow } from './sign-in/session-store.ts'
import type { UserRow } from './store.ts'

export const passwordRule = { min: 8, max: 256 }

const Password = Text(passwordRule, {
  description: 'Must not be a common password, or the address or name of the account.',
  examples: [samples.password],
})
const RoleField = OneOf(roles, { title: 'Role', examples: ['verified_user'] })
const GivenRole = OneOf(roles, {
  title: 'Role',
  description: 'The role, which decides what the person may do.',
  examples: ['host'],
})
const Name = Text(nameRule, { examples: [samples.guest.name] })
const GivenLocale = described(LocaleField, 'The language of mails and notifications.')

export const registration = {
  email: Email(),
  password: Password,
  display_name: Maybe(
    described(Name, 'The public name; when absent, the local part of the e-mail address.'),
  ),
}

export function localPart(email: string): string {
  return email.slice(0, email.indexOf('@'))
}

export const Registration = Refined(Body('Registration', registration), newcomerProblems)
export type Registration = Static<typeof Registration>

export const SetUp = Refined(
  Body('SetUp', {
    ...registration,
    token: Sample(samples.oneTimeToken, 'The token of the link that the server prints.'),
  }),
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
    email: Type.String({ description: 'The e-mail address of the account.' }),
    password: Type.String({ description: 'The password.' }),
    code: Maybe(
      Sample(
        samples.code,
        'A code from the authenticator, or a recovery code. Required if a second factor is enabled.',
      ),
    ),
  },
  { examples: [{ email: samples.guest.email, password: samples.password }] },
)
export type Credentials = Static<typeof Credentials>

export const RefreshTokenBody = Body('RefreshTokenBody', {
  refresh_token: Sample(samples.usedRefreshToken, 'The newest refresh token of the session.'),
})
const OwnPassword = Maybe(
  Sample(samples.password, 'Your password; unnecessary for a while after `POST /v1/auth/confirm`.'),
)
export const PasswordBody = Body('PasswordBody', { password: OwnPassword })

const profile = {
  display_name: Maybe(described(Name, 'The public name.')),
  avatar_url: Maybe(
    HttpUrl({
      description: 'The address of a picture: an upload of your own, or one elsewhere.',
      examples: ['https://cdn.example.com/ben.jpg'],
    }),
  ),
}
const access = {
  role: Maybe(GivenRole),
  disabled: Maybe(Flag('`true` ends all sessions and refuses logins; `false` allows them.')),
  email_verified: Maybe(Flag('Whether the address is known to be theirs.', true)),
}

export const ProfileUpdate = Change(
  Body('ProfileUpdate', { ...profile, locale: Maybe(GivenLocale) }),
  ['avatar_url'],
)
const TimeOfDay = (example: string, description: string) =>
  CheckedText(
    (text) => (/^([01]\d|2[0-3]):[0-5]\d$/.test(text) ? undefined : problem('time_of_day')),
    { description, examples: [example] },
  )
const quietHours = {
  from: TimeOfDay('22:00', 'When they begin, `HH:MM`.'),
  to: TimeOfDay('07:30', 'When they end, `HH:MM`; before `from`, on the next day.'),
  time_zone: CheckedText((text) => (isTimeZone(text) ? undefined : problem('time_zone')), {
    description: 'An IANA time zone.',
    examples: ['Europe/Berlin'],
  }),
}
export const NewQuietHours = Refined(Body('NewQuietHours', quietHours), ({ from, to }) =>
  from === to ? { to: problem('same_time') } : {},
)
const ShownQuietHours = Schema('QuietHours', quietHours)

export const AccessUpdate = Change(Body('AccessUpdate', access))
export const ExternalId = Text(externalIdRule, {
  description:
    'The id of the person in the rest of the platform. The feed accepts `ext:` followed by this id.',
  examples: [samples.guest.externalId],
})
export const PersonUpdate = Change(
  Body('PersonUpdate', {
    ...access,
    email: Maybe(Email()),
    ...profile,
    locale: Maybe(GivenLocale),
    external_id: Maybe(ExternalId),
  }),
  ['avatar_url'],
)
export const NewPerson = Body('NewPerson', {
  email: Email(),
  ...profile,
  role: Maybe(GivenRole),
  email_verified: access.email_verified,
  external_id: Maybe(ExternalId),
  locale: Maybe(GivenLocale),
})
export type NewPerson = Static<typeof NewPerson>

const OneTimeToken = Sample(samples.oneTimeToken, 'The token of the mailed link.')
export const OneTimeTokenBody = Body('OneTimeTokenBody', { token: OneTimeToken })
export const EmailBody = Body('EmailBody', {
  email: Sample(samples.guest.email, 'The e-mail address of the account.'),
})

export const PasswordReset = Body('PasswordReset', { token: OneTimeToken, password: Password })
export type PasswordReset = Static<typeof PasswordReset>

export const PasswordChange = Body('PasswordChange', {
  current_password: Maybe(
    described(
      Sample('six red bicycles'),
      'The password until now; unnecessary for a while after `POST /v1/auth/confirm`.',
    ),
  ),
  new_password: Password,
})
export type PasswordChange = Static<typeof PasswordChange>

export const EmailChangeBody = Body('EmailChangeBody', {
  new_email: Email('The new address. It counts once its mailed link was opened.'),
  password: OwnPassword,
})
export type EmailChangeBody = Static<typeof EmailChangeBody>

export const TotpSecret = Schema('TotpSecret', {
  secret: Sample(
    'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP',
    'The secret in Base32, for manual entry in an authenticator.',
  ),
  otpauth_url: Sample(
    'otpauth://totp/api.example.com:ben%40example.com?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=api.example.com',
    'The secret as a URL, for a QR code.',
  ),
})
export const CodeBody = Body('CodeBody', {
  code: Sample(samples.code, 'A code from the authenticator.'),
})
export const RecoveryCodes = Schema('RecoveryCodes', {
  recovery_codes: Type.Array(Sample('9fkq-27xm-b4tz'), {
    description: 'Ten recovery codes, shown only this once.',
  }),
})
export const FactorSetUp = Type.Optional(Body('FactorSetUp', { password: OwnPassword }))
export const FactorRemoval = Body('FactorRemoval', {
  password: OwnPassword,
  code: Sample(samples.code, 'A code from the authenticator, or a recovery code.'),
})
export type FactorRemoval = Static<typeof FactorRemoval>
export const CodesRenewal = Body('CodesRenewal', {
  password: OwnPassword,
  code: Sample(samples.code, 'A code from the authenticator. Recovery codes are not accepted.'),
})
export type CodesRenewal = Static<typeof CodesRenewal>

const isGiven = (value: unknown) => value !== undefined && value !== null

export const OwnerProof = Refined(
  Body(
    'OwnerProof',
    {
      password: Maybe(Sample(samples.password, 'Your password.')),
      code: Maybe(
        Sample(
          samples.code,
          'A code from the authenticator or a mail. Recovery codes are not accepted.',
        ),
      ),
    },
    {
      description: 'Either the password or a code.',
      examples: [{ password: samples.password }],
    },
  ),
  ({ password, code }) =>
    isGiven(password) === isGiven(code) ? { body: problem('one_proof') } : {},
)
export type OwnerProof = Static<typeof OwnerProof>

export const User = Schema('User', {
  id: Sample(samples.guest.id),
  email: Sample(samples.guest.email),
  display_name: Sample(samples.guest.name),
  role: RoleField,
  email_verified: Type.Boolean({ examples: [true] }),
  created_at: Sample(samples.guest.since, { format: 'date-time' }),
})
export type User = Static<typeof User>

export const UserBody = Schema('UserBody', { user: User })

const tokenSet = {
  access_token: Sample(samples.accessToken, 'A JWT signed with RS256.'),
  refresh_token: Sample(samples.refreshToken, 'Opaque, for one use.'),
  expires_in: Count(900, 'Seconds until the access token expires.'),
}

export const TokenSet = Schema('TokenSet', tokenSet)
export type TokenSet = Static<typeof TokenSet>

export const Authenticated = Schema('Authenticated', { user: User, ...tokenSet })
export type Authenticated = Static<typeof Authenticated>

export const Jwks = Schema('Jwks', {
  keys: Type.Array(
    Type.Object({
      kty: Sample('RSA'),
      n: Sample('sXchJfYtW9Fh0pDk2mQv', 'The modulus, in base64url.'),
      e: Sample('AQAB'),
      kid: Sample(samples.recordId),
      alg: Sample('RS256'),
      use: Sample('sig'),
    }),
  ),
})
export type Jwks = Static<typeof Jwks>

export const SigningKey = Type.Object({
  kid: Type.String(),
  state: OneOf(keyStates),
  created_at: Timestamp,
})

/** `ready_at`: the earliest time for the rotation; null when the keys were rotated. */
export const Rotation = Type.Object({ ready_at: Nullable(Timestamp) })

export const Session = Schema('Session', {
  id: Sample(samples.recordId),
  created_at: Timestamp,
  last_used_at: described(Timestamp, 'The last renewal of its tokens, or the login.'),
  user_agent: Nullable(Sample('Mozilla/5.0 (X11; Linux x86_64)')),
  ip: described(
    Nullable(Sample('203.0.113.7')),
    'The address of the last login or renewal; null until the first renewal of a session that the platform began.',
  ),
  current: Flag('Whether it is the session of this request.', true),
})

export const Profile = Schema('Profile', {
  ...User.properties,
  avatar_url: Sample(samples.guest.avatarUrl, { format: 'uri' }),
  locale: LocaleField,
  totp: Flag('Whether a login requires a code from an authenticator.'),
  email_bounced_at: Rarely(
    Sample(samples.time, {
      format: 'date-time',
      description: 'When the mail server permanently refused the address; null if it did not.',
    }),
  ),
  quiet_hours: described(
    Nullable(ShownQuietHours),
    'While they last, pushes and mails wait, except of calls and about the account.',
  ),
})

export const ManagedUser = Schema('ManagedUser', {
  ...Profile.properties,
  disabled: Flag('Whether logins are refused.'),
  external_id: Nullable(
    Sample(samples.guest.externalId, 'The id of the person in the rest of the platform.'),
  ),
})

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

export type ProfileView = ReturnType<typeof createUserViews>['profileView']
export type ManagedView = ReturnType<typeof createUserViews>['managedView']

export function createUserViews(avatarUrl: AvatarUrl, hasTotp: (userId: string) => boolean) {
  const profileView = (row: UserRow): Static<typeof Profile> => ({
    ...userView(row),
    avatar_url: avatarUrl(row),
    locale: row.locale,
    totp: hasTotp(row.id),
    email_bounced_at: timeOrNull(row.emailBouncedAt),
    quiet_hours: row.quietHours,
  })
  const managedView = (row: UserRow): Static<typeof ManagedUser> => ({
    ...profileView(row),
    disabled: row.disabledAt !== null,
    external_id: row.externalId,
  })
  return { profileView, managedView }
}

export const PendingAddress = Schema('PendingAddress', {
  email: Sample(samples.guest.email),
  expires_at: described(Timestamp, 'Until when it can be confirmed.'),
})

export const FormerAddress = Schema('FormerAddress', {
  email: Sample(samples.guest.email),
  reserved_until: described(Timestamp, 'Until when the change can be undone.'),
})

export const OwnAuditEntry = Schema('OwnAuditEntry', {
  at: Timestamp,
  action: Sample('password_changed', 'The action.'),
  ip: Nullable(Sample('203.0.113.7')),
  details: Nullable(
    Type.Record(Type.String(), Type.String(), { examples: [{ from: 'user', to: 'host' }] }),
  ),
})

type Address = { email: string; expiresAt: number }

export function pendingAddressView({ email, expiresAt }: Address): Static<typeof PendingAddress> {
  return { email, expires_at: isoTime(expiresAt) }
}

export function formerAddressView({ email, expiresAt }: Address): Static<typeof FormerAddress> {
  return { email, reserved_until: isoTime(expiresAt) }
}

export function ownAuditView(row: AuditRow): Static<typeof OwnAuditEntry> {
  const { at, action, ip, details } = row
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

export const PurgeCounts = Schema('PurgeCounts', {
  messages: Count(240, 'Messages whose text is stored, also for reports.'),
  broadcasts: Count(1, 'Broadcasts, whose texts are removed.'),
  files: Count(12, 'Files.'),
  tickets: Count(2, 'Tickets.'),
  reports: Count(0, 'Reports that the person made.'),
})
export type PurgeCounts = Static<typeof PurgeCounts>
