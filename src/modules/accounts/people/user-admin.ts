import { isDeepStrictEqual } from 'node:util'
import type { Core } from '../../../core.ts'
import type { AuditAction, By } from '../../../db/audit-trail.ts'
import { AppError, invalidField } from '../../../lib/errors.ts'
import { findById, getById } from '../../../lib/ids.ts'
import { type Listing, type ListRange, listByPosition } from '../../../lib/list-range.ts'
import { storedEmail } from '../../../lib/text.ts'
import type { Role } from '../../../lib/vocabulary.ts'
import type { AccountParts } from '../account-parts.ts'
import type { UserChanges, UserRow } from '../store.ts'
import { createUserSearchStore, type UserFilter } from './user-search-store.ts'

type ProfileChanges = Pick<UserChanges, 'displayName' | 'avatarUrl' | 'externalId' | 'locale'>
export type ManagedChanges = Pick<UserChanges, 'role' | 'email' | 'emailVerified'> &
  ProfileChanges & { disabled?: boolean | undefined }

type NewAccount = { email: string; role: Role; password: string }

export type UserAdmin = ReturnType<typeof createUserAdmin>

/** Administration of accounts by operators and the platform. Each change is recorded in the audit log. */
export function createUserAdmin(core: Core, parts: AccountParts) {
  const { write, audit, outbox, clock } = core
  const { store, sessionStore, oneTimeTokens, passwords, queueMail, sentMails } = parts
  const users = createUserSearchStore(core.orm)

  type Details = Record<string, string>
  const record = (action: AuditAction, id: string, by: By, details?: Details) =>
    audit.record({ action, ...by, target: { type: 'user', id }, ...(details && { details }) })

  /** @throws not_found (unknown or deleted) */
  const get = (idText: string): UserRow => existing(findById(idText, store.find))

  /** Finds a deleted user, too.
   *  @throws not_found */
  const getAny = (idText: string): UserRow => getById(idText, store.find)

  // Adoption locks out the current holder, who must not be the last admin.
  function adoptIfProved(user: UserRow, { emailVerified, externalId }: ManagedChanges, by: By) {
    if (!user.isProvisional || !(emailVerified || externalId)) return
    parts.mustNotBeLastAdmin(user)
    parts.adopt(user, by)
  }

  /** Sets another address, which is unverified at first, and voids the links mailed to former ones. */
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
    if (role === 'admin') sessionStore.revokeAll(user.id, clock.now())
    parts.changeAccess(user.id, { role })
    record('role_changed', user.id, by, { from: user.role, to: role })
  }

  function changeVerified(user: UserRow, isVerified: boolean, by: By) {
    if (user.emailVerified === isVerified) return
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
      sessionStore.revokeAll(user.id, clock.now())
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

  return {
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

    change,

    /** @throws not_found, and as `change` */
    update: (idText: string, changes: ManagedChanges, by: By): Promise<UserRow> =>
      write(() => change(get(idText), changes, by)),

    /** Deletes an account. Its messages stay, shown as from a deleted user.
     *  @throws not_found · last_admin */
    remove: (idText: string, by: By): Promise<void> => write(() => parts.remove(get(idText), by)),

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

    /** Mails a link for setting a new password.
     *  @throws not_found · mail_throttled */
    mailReset: (idText: string, by: By): Promise<void> =>
      write(() => {
        const user = get(idText)
        sentMails.mustTake('reset_password', user.email)
        queueMail('password_reset_mail', user)
        record('password_reset_requested', user.id, by)
      }),

    /** Records in the audit log that an admin viewed a user's sessions.
     *  @throws not_found */
    viewSessions: (idText: string, by: By): Promise<UserRow> =>
      write(() => {
        const user = get(idText)
        record('sessions_viewed', user.id, by)
        return user
      }),

    /** Removes the second factor of a user who has lost both authenticator and recovery codes.
     *  @throws not_found */
    removeFactor: (idText: string, by: By): Promise<void> =>
      write(() => {
        const user = get(idText)
        if (parts.factors.isOn(user.id)) parts.removeFactor(user, by)
      }),

    getAny,
    removeSquatter,
    mustNotBeProtected,
    get,
    getByEmail: (email: string): UserRow => existing(store.findByEmail(email)),
    search: (filter: UserFilter, range: ListRange): Listing<UserRow> =>
      listByPosition(range, {
        name: 'users',
        position: ({ id }) => id,
        list: (rows) => users.list(filter, rows),
        count: () => users.count(filter),
      }),
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
export function roleOf(role: Role, isVerified: boolean): Role {
  return role === 'user' && isVerified ? 'verified_user' : role
}
