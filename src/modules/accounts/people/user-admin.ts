import { isDeepStrictEqual } from 'node:util'
import type { Static } from '@sinclair/typebox'
import type { Core } from '../../../core.ts'
import type { AuditAction, By } from '../../../db/audit-trail.ts'
import { AppError, invalidField } from '../../../lib/errors.ts'
import { getById, parseExternalId, parseId } from '../../../lib/ids.ts'
import type { Listing, ListRange } from '../../../lib/list-range.ts'
import type { Client } from '../../../lib/principal.ts'
import { storedEmail } from '../../../lib/text.ts'
import type { Role } from '../../../lib/vocabulary.ts'
import type { AccountParts } from '../account-parts.ts'
import type { Bans } from '../bans/bans.ts'
import type { Authenticated, NewPerson, PersonUpdate } from '../model.ts'
import type { Sessions } from '../sign-in/sessions.ts'
import { noPassword, type UserChanges, type UserRow } from '../store.ts'
import { searchUsers, type UserFilter } from './user-search-store.ts'

type ProfileChanges = Pick<UserChanges, 'displayName' | 'avatarUrl' | 'externalId' | 'locale'>
type ManagedChanges = Pick<UserChanges, 'role' | 'email' | 'emailVerified'> &
  ProfileChanges & { disabled?: boolean | undefined }

type Update = Static<typeof PersonUpdate>
/** Absent and undefined fields keep their value. */
type PersonChanges = { [K in keyof Update]: Update[K] | undefined }
type NewAccount = { email: string; role: Role; password: string }
type Lookup = { email: string | undefined; externalId: string | undefined }
type Parts = AccountParts & { sessions: Sessions; bans: Bans }

export type UserAdmin = ReturnType<typeof createUserAdmin>

/** Resolve references inside the `write`, because an earlier write of a burst may have created the user. */
export function createUserAdmin(core: Core, parts: Parts) {
  const { write, audit, outbox, clock } = core
  const { store, sessionStore, oneTimeTokens, passwords, queueMail, sentMails } = parts
  const { sessions, bans } = parts

  type Details = Record<string, string>
  const record = (action: AuditAction, id: string, by: By, details?: Details) =>
    audit.record({ action, ...by, target: { type: 'user', id }, ...(details && { details }) })

  function resolve(reference: string): string | undefined {
    const externalId = parseExternalId(reference)
    return externalId === undefined ? parseId(reference) : store.findByExternalId(externalId)?.id
  }

  /** For a service, `ext:` followed by an external id also identifies a user.
   *  @throws not_found (unknown or deleted) */
  function get(reference: string, { actor }: By): UserRow {
    const id = actor.type === 'service_key' ? resolve(reference) : parseId(reference)
    return existing(store.find(id ?? null))
  }

  /** Finds a deleted user, too.
   *  @throws not_found */
  const getAny = (idText: string): UserRow => getById(idText, store.find)

  // Adoption locks out the current holder, who must not be the last admin.
  function adoptIfProved(user: UserRow, { emailVerified, externalId }: ManagedChanges, by: By) {
    if (!user.isProvisional || !(emailVerified || externalId)) return
    parts.mustNotBeLastAdmin(user)
    mustNotBeProtected(user, by)
    parts.adopt(user, by)
  }

  function changeEmail(user: UserRow, text: string, isVerified: boolean, by: By) {
    const email = storedEmail(text)
    if (email === user.email) return
    // The mails to an admin's address must stay out of reach of a service.
    mustNotBeProtected(user, by)
    removeSquatter(email, by)
    if (parts.isTaken(email, user.id)) throw new AppError('email_taken')
    oneTimeTokens.deleteOfUser(user.id)
    store.update(user.id, { email, emailBouncedAt: null })
    record('email_changed', user.id, by)
    if (isVerified) return
    changeVerified(user, false, by)
    if (sentMails.take('verify_email', email)) queueMail('verification_mail', { ...user, email })
  }

  /** Deletes an account with this address that was never verified, because anybody may have registered it. */
  function removeSquatter(email: string, by: By) {
    const squatter = store.findByEmail(email)
    // Choice: a service deletes no admin, because it cannot create one either.
    if (squatter?.isProvisional && squatter.role !== 'admin') parts.remove(squatter, by)
  }

  function changeRole(user: UserRow, wanted: Role, by: By) {
    const role = roleOf(wanted, user.emailVerified)
    if (role === 'admin') mustNotBeService(by)
    if (user.role === role) return
    mustNotBeProtected(user, by)
    if (role === 'verified_user' && !user.emailVerified) throw invalidField('role', 'not_verified')
    if (role !== 'admin') parts.mustNotBeLastAdmin(user)
    // Choice: a new admin must log in again, because the platform may have created the old sessions without a password.
    if (role === 'admin') sessionStore.revokeAll(user.id)
    parts.changeAccess(user.id, { role })
    record('role_changed', user.id, by, { from: user.role, to: role })
  }

  function changeVerified(user: UserRow, isVerified: boolean, by: By) {
    if (user.emailVerified === isVerified) return
    // Only a verified address gets mails about the safety of the account.
    mustNotBeProtected(user, by)
    store.update(user.id, { emailVerified: isVerified })
    if (isVerified) oneTimeTokens.revoke('verify_email', user.id)
    record(isVerified ? 'email_verified' : 'email_unverified', user.id, by)
    // The other roles do not depend on it.
    if (user.role !== 'user' && user.role !== 'verified_user') return
    changeRole({ ...user, emailVerified: isVerified }, 'user', by)
  }

  function changeDisabled(user: UserRow, isDisabled: boolean, by: By) {
    if ((user.disabledAt !== null) === isDisabled) return
    mustNotBeProtected(user, by)
    if (isDisabled) parts.mustNotBeLastAdmin(user)
    parts.changeAccess(user.id, { disabledAt: isDisabled ? clock.now() : null })
    if (isDisabled) {
      // Enabling the account again must not revive its old sessions and links.
      sessionStore.revokeAll(user.id)
      oneTimeTokens.revoke('reset_password', user.id)
      oneTimeTokens.revoke('change_email', user.id)
    }
    record(isDisabled ? 'user_disabled' : 'user_enabled', user.id, by)
  }

  function changeProfile({ id }: UserRow, changes: ProfileChanges, by: By) {
    const { externalId } = changes
    const holder = externalId ? store.findByExternalId(externalId) : undefined
    if (holder && holder.id !== id) throw new AppError('external_id_taken')
    const before = store.find(id)
    store.update(id, changes)
    if (isDeepStrictEqual(before, store.find(id))) return
    record('profile_changed', id, by)
  }

  /** Changes the role, the address, the profile, and whether the account is disabled or verified, inside a `write`. Disabling
   *  ends every session. An account that was never verified is adopted when it becomes verified or gets an external id.
   *  @throws last_admin · admin_protected (admin, by a service) · email_taken · external_id_taken · validation_error (`role`:
   *  verified_user without a verified address) */
  function change(user: UserRow, changes: ManagedChanges, by: By): UserRow {
    const { role, disabled, email, emailVerified, ...profile } = changes
    const current = () => existing(store.find(user.id))
    adoptIfProved(user, changes, by)
    if (email !== undefined) changeEmail(user, email, emailVerified ?? false, by)
    if (emailVerified !== undefined) changeVerified(current(), emailVerified, by)
    if (role !== undefined) changeRole(current(), role, by)
    if (disabled !== undefined) changeDisabled(user, disabled, by)
    changeProfile(user, profile, by)
    parts.publishChange(user)
    return current()
  }

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
    record('user_created', user.id, by, { role: user.role })
    return user
  }

  return {
    insert,

    /** Creates an account with a verified address.
     *  @throws email_taken */
    async create({ role, password, ...given }: NewAccount, by: By): Promise<UserRow> {
      const email = storedEmail(given.email)
      const passwordHash = await passwords.hash(password)
      return write(() => {
        const user = parts.insert({
          email,
          locale: 'en',
          role: roleOf(role, true),
          emailVerified: true,
          passwordHash,
        })
        record('user_created', user.id, by, { role })
        return user
      })
    },

    /** Creates a user without a password, or updates the one with the same external id. First deletes an account with the
     *  same address that was never verified.
     *  @throws admin_protected (no admins) · email_taken · validation_error (`role`: verified_user without a verified address) */
    upsert: (person: NewPerson, by: By): Promise<{ user: UserRow; isNew: boolean }> =>
      write(() => {
        const { external_id: externalId } = person
        const known = externalId ? store.findByExternalId(externalId) : undefined
        if (known) {
          // Only a PATCH takes `null` for the generated picture.
          const changes = { ...changesOf(person), avatarUrl: person.avatar_url ?? undefined }
          return { user: change(known, changes, by), isNew: false }
        }
        removeSquatter(storedEmail(person.email), by)
        return { user: insert(person, by), isNew: true }
      }),

    /** @throws not_found, and as `change` */
    update: (reference: string, body: PersonChanges, by: By): Promise<UserRow> =>
      write(() => {
        const changes = { ...changesOf(body), disabled: body.disabled ?? undefined }
        return change(get(reference, by), changes, by)
      }),

    /** Deletes an account. Its messages stay, shown as from a deleted user.
     *  @throws not_found · last_admin · admin_protected (an admin, by a service) */
    remove: (reference: string, by: By): Promise<void> =>
      write(() => {
        const user = get(reference, by)
        mustNotBeProtected(user, by)
        parts.remove(user, by)
      }),

    /** @throws not_found · admin_protected (an admin, by a service) */
    async endSessions(reference: string, by: By): Promise<void> {
      const user = get(reference, by)
      mustNotBeProtected(user, by)
      await sessions.endAll(user.id, by)
    },

    /** Begins a session for a user whom the platform has authenticated.
     *  @param client unknown to the platform's server, which opens the session for another machine
     *  @throws not_found · admin_protected (an admin) · recipient_gone (disabled) · banned */
    async openSession(reference: string, by: By, client?: Client): Promise<Authenticated> {
      const session = await write(() => {
        const user = get(reference, by)
        if (user.role === 'admin') throw new AppError('admin_protected')
        if (user.disabledAt !== null) throw new AppError('recipient_gone')
        bans.mustNotBeBanned(user.email, client?.ip)
        audit.record({ action: 'session_opened', ...by, target: { type: 'user', id: user.id } })
        return sessions.begin(user, client ?? { ip: null, userAgent: null }, true)
      })
      return sessions.authenticated(session)
    },

    /** Deletes an account and what it has written; also what a deleted account has left.
     *  @throws not_found · last_admin */
    purge: (idText: string, by: By): Promise<UserRow> =>
      write(() => {
        const user = getAny(idText)
        if (user.deletedAt === null) parts.remove(user, by, true)
        else {
          outbox.add('erasure', { user_id: user.id, is_purge: true })
          record('purge_requested', user.id, by)
        }
        return user
      }),

    /** @throws not_found · mail_throttled */
    mailReset: (idText: string, by: By): Promise<void> =>
      write(() => {
        const user = get(idText, by)
        sentMails.mustTake('reset_password', user.email)
        queueMail('password_reset_mail', user)
        record('password_reset_requested', user.id, by)
      }),

    /** Records in the audit log that an admin viewed a user's sessions.
     *  @throws not_found */
    viewSessions: (idText: string, by: By): Promise<void> =>
      write(() => record('sessions_viewed', get(idText, by).id, by)),

    /** @throws not_found */
    removeFactor: (idText: string, by: By): Promise<void> =>
      write(() => {
        const user = get(idText, by)
        if (parts.factors.isOn(user.id)) parts.removeFactor(user, by)
      }),

    resolve,
    get,
    getAny,
    getByEmail: (email: string): UserRow => existing(store.findByEmail(email)),
    search: (filter: UserFilter, range: ListRange) => searchUsers(core.orm, filter, range),

    /** @throws validation_error when neither is given */
    lookUp({ email, externalId }: Lookup, range: ListRange): Listing<UserRow> {
      if ((email ?? externalId) === undefined) throw invalidField('email', 'or_external_id')
      const address = email && storedEmail(email)
      const byExternalId = externalId !== undefined
      const user = byExternalId ? store.findByExternalId(externalId) : store.findByEmail(address)
      const found = user && user.email === (address ?? user.email) ? [user] : []
      return { form: 'page', rows: hasStart(range) ? found : [], total: found.length }
    },
  }
}

const hasStart = (range: ListRange) => range.form === 'page' && range.offset === 0

function changesOf(body: PersonChanges | NewPerson): ManagedChanges {
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

/** @throws not_found (unknown or deleted) */
function existing(user: UserRow | undefined): UserRow {
  if (!user || user.deletedAt !== null) throw new AppError('not_found')
  return user
}

function mustNotBeService({ actor }: By): void {
  if (actor.type === 'service_key') throw new AppError('admin_protected')
}

/** A service has no power over admins.
 *  @throws admin_protected */
function mustNotBeProtected({ role }: UserRow, by: By): void {
  if (role === 'admin') mustNotBeService(by)
}

/** The role `user` with a verified address is `verified_user`. */
function roleOf(role: Role, isVerified: boolean): Role {
  return role === 'user' && isVerified ? 'verified_user' : role
}
