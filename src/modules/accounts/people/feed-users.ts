import type { Static } from '@sinclair/typebox'
import type { Core } from '../../../core.ts'
import type { By } from '../../../db/audit-trail.ts'
import { AppError, invalidField } from '../../../lib/errors.ts'
import { parseExternalId, parseId } from '../../../lib/ids.ts'
import type { Listing, ListRange } from '../../../lib/list-range.ts'
import { storedEmail } from '../../../lib/text.ts'
import type { AccountParts } from '../account-parts.ts'
import type { Bans } from '../bans/bans.ts'
import type { Authenticated, NewPerson, PersonUpdate } from '../model.ts'
import type { Client, Sessions } from '../sign-in/sessions.ts'
import { noPassword, type UserRow } from '../store.ts'
import { type ManagedChanges, roleOf, type UserAdmin } from './user-admin.ts'

export type FeedUsers = ReturnType<typeof createFeedUsers>

type Lookup = { email: string | undefined; externalId: string | undefined }
type Parts = AccountParts & { userAdmin: UserAdmin; sessions: Sessions; bans: Bans }

/** Users of a platform with accounts of its own. `ext:` followed by an external id also identifies a user. */
export function createFeedUsers(core: Core, parts: Parts) {
  const { write, audit } = core
  const { store, userAdmin, sessions, bans } = parts

  function resolve(reference: string): string | undefined {
    const externalId = parseExternalId(reference)
    return externalId === undefined ? parseId(reference) : store.findByExternalId(externalId)?.id
  }

  /** @throws not_found (unknown or deleted) */
  const get = (reference: string): UserRow => userAdmin.get(resolve(reference) ?? '')

  function insert(person: NewPerson, by: By): UserRow {
    const { role, email_verified: isVerified, display_name, external_id, locale } = person
    const emailVerified = isVerified ?? false
    if (role === 'admin') throw new AppError('admin_protected')
    if (role === 'verified_user' && !emailVerified) throw invalidField('role', 'not_verified')
    const user = parts.insert({
      email: storedEmail(person.email),
      displayName: display_name,
      avatarUrl: person.avatar_url ?? null,
      locale: locale ?? 'en',
      role: roleOf(role ?? 'user', emailVerified),
      emailVerified,
      passwordHash: noPassword,
      externalId: external_id ?? null,
    })
    const target = { type: 'user', id: user.id } as const
    audit.record({ action: 'user_created', ...by, target, details: { role: user.role } })
    return user
  }

  return {
    /** Resolves a user id, or `ext:` and an external id, to a user id; undefined if no user can have it. */
    resolve,
    get,

    /** Creates a user, or updates the one with the same external id. First deletes an account with the same address that
     *  was never verified.
     *  @throws admin_protected (no admins) · email_taken · validation_error (`role`: verified_user without a verified address) */
    upsert: (person: NewPerson, by: By): Promise<{ user: UserRow; isNew: boolean }> =>
      write(() => {
        const { external_id: externalId } = person
        const known = externalId ? store.findByExternalId(externalId) : undefined
        if (known) {
          // Only a PATCH takes `null` for the generated picture.
          const changes = { ...changesOf(person), avatarUrl: person.avatar_url ?? undefined }
          return { user: userAdmin.change(known, changes, by), isNew: false }
        }
        userAdmin.removeSquatter(storedEmail(person.email), by)
        return { user: insert(person, by), isNew: true }
      }),

    /** @throws validation_error when neither is given */
    lookUp({ email, externalId }: Lookup, range: ListRange): Listing<UserRow> {
      if ((email ?? externalId) === undefined) throw invalidField('email', 'required')
      const address = email && storedEmail(email)
      const byExternalId = externalId !== undefined
      const user = byExternalId ? store.findByExternalId(externalId) : store.findByEmail(address)
      const found = user && user.email === (address ?? user.email) ? [user] : []
      return { form: 'page', rows: hasStart(range) ? found : [], total: found.length }
    },

    /** Resolves the reference inside the `write`, because an earlier write of a burst may have created the user.
     *  @throws not_found, and as `userAdmin.change` */
    update: (reference: string, changes: ManagedChanges, by: By): Promise<UserRow> =>
      write(() => userAdmin.change(get(reference), changes, by)),

    /** Deletes a user. Their messages stay, shown as from a deleted user.
     *  @throws not_found · admin_protected (an admin) */
    remove: (reference: string, by: By): Promise<void> =>
      write(() => {
        const user = get(reference)
        userAdmin.mustNotBeProtected(user, by)
        parts.remove(user, by)
      }),

    /** Ends every session of a user.
     *  @throws not_found · admin_protected (an admin) */
    async endSessions(reference: string, by: By): Promise<void> {
      const user = get(reference)
      userAdmin.mustNotBeProtected(user, by)
      await sessions.endAll(user.id, by)
    },

    /** Begins a session for a user whom the platform has authenticated.
     *  @throws not_found · admin_protected (an admin) · recipient_gone (disabled) · banned */
    async openSession(reference: string, client: Client, by: By): Promise<Authenticated> {
      const session = await write(() => {
        const user = get(reference)
        if (user.role === 'admin') throw new AppError('admin_protected')
        if (user.disabledAt !== null) throw new AppError('recipient_gone')
        bans.mustNotBeBanned(user.email, client.ip)
        audit.record({ action: 'session_opened', ...by, target: { type: 'user', id: user.id } })
        return sessions.begin(user, client, true)
      })
      return sessions.authenticated(session)
    },
  }
}

const hasStart = (range: ListRange) => range.form === 'page' && range.offset === 0

/** Absent fields keep their value. */
export function changesOf(body: Static<typeof PersonUpdate> | NewPerson): ManagedChanges {
  return {
    role: body.role ?? undefined,
    email: body.email ?? undefined,
    emailVerified: body.email_verified ?? undefined,
    displayName: body.display_name?.trim(),
    avatarUrl: body.avatar_url,
    locale: body.locale ?? undefined,
    externalId: body.external_id ?? undefined,
  }
}
