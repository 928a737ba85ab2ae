import type { Core } from '../../../core.ts'
import type { By } from '../../../db/audit-trail.ts'
import { AppError, invalidField } from '../../../lib/errors.ts'
import { findById, parseExternalId, parseId } from '../../../lib/ids.ts'
import { type Listing, type ListRange, listByPosition } from '../../../lib/list-range.ts'
import { storedEmail } from '../../../lib/text.ts'
import type { AccountParts } from '../account-parts.ts'
import { type Authenticated, localPart, type NewPerson } from '../model.ts'
import type { Client, Sessions } from '../sign-in/sessions.ts'
import { noPassword, type UserRow } from '../store.ts'
import { type ManagedChanges, roleOf, type UserAdmin } from './user-admin.ts'

export type FeedUsers = ReturnType<typeof createFeedUsers>

type Lookup = { email: string | undefined; externalId: string | undefined }
type Parts = AccountParts & { userAdmin: UserAdmin; sessions: Sessions }

/** Users of a platform with accounts of its own. `ext:` followed by an external id also identifies a user. */
export function createFeedUsers(core: Core, parts: Parts) {
  const { write, audit, newId, clock } = core
  const { store, userAdmin, sessions } = parts

  const find = (reference: string) => (): UserRow | undefined => {
    const externalId = parseExternalId(reference)
    if (externalId !== undefined) return store.findByExternalId(externalId)
    return findById(reference, store.find)
  }

  function insert(person: NewPerson, by: By): UserRow {
    const { role, email_verified: isVerified, display_name, external_id, locale } = person
    const emailVerified = isVerified ?? false
    if (role === 'admin') throw new AppError('role_required')
    if (role === 'verified_user' && !emailVerified) throw invalidField('role', 'not_verified')
    const email = storedEmail(person.email)
    const user = parts.insert({
      id: newId(),
      email,
      displayName: display_name?.trim() ?? localPart(email),
      avatarUrl: person.avatar_url ?? null,
      locale: locale ?? 'en',
      role: roleOf(role ?? 'user', emailVerified),
      emailVerified,
      passwordHash: noPassword,
      externalId: external_id ?? null,
      createdAt: clock.now(),
    })
    const target = { type: 'user', id: user.id } as const
    audit.record({ action: 'user_created', ...by, target, details: { role: user.role } })
    return user
  }

  return {
    /** Resolves a user id, or `ext:` and an external id, to a user id; undefined if no user can have it. */
    resolve: (reference: string): string | undefined =>
      parseExternalId(reference) === undefined ? parseId(reference) : find(reference)()?.id,

    /** Creates a user, or returns the one with the same external id. First deletes an account with the same address that
     *  was never verified, because anybody may have registered it.
     *  @throws role_required (no admins) · email_taken · validation_error (`role`: verified_user without a verified address) */
    create: (person: NewPerson, by: By): Promise<UserRow> =>
      write(() => {
        const { external_id: externalId } = person
        const first = externalId ? store.findByExternalId(externalId) : undefined
        if (first) return first
        const squatter = store.findByEmail(storedEmail(person.email))
        // Choice: a service deletes no admin, because it cannot create one either.
        if (squatter?.isProvisional && squatter.role !== 'admin') parts.remove(squatter, by)
        return insert(person, by)
      }),

    /** @throws validation_error when neither is given */
    lookUp({ email, externalId }: Lookup, range: ListRange): Listing<UserRow> {
      if (email === undefined && externalId === undefined) throw invalidField('email', 'required')
      const byEmail = email === undefined ? undefined : store.findByEmail(storedEmail(email))
      const user = externalId === undefined ? byEmail : store.findByExternalId(externalId)
      const matchesEmail = email === undefined || user?.id === byEmail?.id
      const found = user && matchesEmail ? [user] : []
      return listByPosition(range, {
        name: 'users',
        position: ({ id }) => id,
        list: ({ limit, offset }) => found.slice(offset, offset + limit),
        count: () => found.length,
      })
    },

    /** @throws not_found */
    get: (reference: string): UserRow => userAdmin.existing(find(reference)()),

    /** @throws as `userAdmin.update` */
    update: (reference: string, changes: ManagedChanges, by: By): Promise<UserRow> =>
      userAdmin.update(find(reference), changes, by),

    /** Begins a session for a user whom the platform has authenticated.
     *  @throws not_found · role_required (an admin) · recipient_gone (disabled) */
    async openSession(reference: string, client: Client, by: By): Promise<Authenticated> {
      const session = await write(() => {
        const user = userAdmin.existing(find(reference)())
        if (user.role === 'admin') throw new AppError('role_required')
        if (user.disabledAt !== null) throw new AppError('recipient_gone')
        audit.record({ action: 'session_opened', ...by, target: { type: 'user', id: user.id } })
        return sessions.begin(user, client)
      })
      return sessions.authenticated(session)
    },
  }
}
