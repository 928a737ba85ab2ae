import type { Core } from '../../../core.ts'
import type { By } from '../../../db/audit-trail.ts'
import { AppError, invalidField, throttled } from '../../../lib/errors.ts'
import { findById } from '../../../lib/ids.ts'
import { type Listing, type ListRange, listByPosition } from '../../../lib/list-range.ts'
import { storedEmail } from '../../../lib/text.ts'
import type { Role } from '../../../lib/vocabulary.ts'
import type { AccountParts } from '../account-parts.ts'
import { localPart } from '../model.ts'
import type { UserChanges, UserRow } from '../store.ts'
import { createUserSearchStore, type UserFilter } from './user-search-store.ts'

type ProfileChanges = Pick<UserChanges, 'displayName' | 'avatarUrl' | 'externalId'>
export type ManagedChanges = Pick<UserChanges, 'role' | 'emailVerified'> &
  ProfileChanges & { disabled?: boolean | undefined }

type NewAccount = { email: string; role: Role; password: string }

export type UserAdmin = ReturnType<typeof createUserAdmin>

/** Administration of accounts by operators and the platform. Each change is recorded in the audit log. */
export function createUserAdmin(core: Core, parts: AccountParts) {
  const { write, audit, outbox, newId, clock } = core
  const { store, sessionStore, oneTimeTokens, passwords, hashAddress, sentMails } = parts
  const users = createUserSearchStore(core.orm)

  const byId = (idText: string) => () => findById(idText, store.find)

  // Adoption locks out the current holder, who must not be the last admin.
  function adoptIfProved(user: UserRow, { emailVerified, externalId }: ManagedChanges, by: By) {
    if (!user.isProvisional || !(emailVerified || externalId)) return
    parts.mustNotBeLastAdmin(user)
    parts.adopt(user, by)
  }

  function changeRole(user: UserRow, wanted: Role, by: By) {
    const role = roleOf(wanted, user.emailVerified)
    if (role === 'admin' && by.actor.type === 'service_key') throw new AppError('role_required')
    if (user.role === role) return
    if (role === 'verified_user' && !user.emailVerified) throw invalidField('role', 'not_verified')
    if (role !== 'admin') parts.mustNotBeLastAdmin(user)
    // Choice: a new admin must log in again, because the platform may have created the old sessions without a password.
    if (role === 'admin') sessionStore.revokeAll(user.id, clock.now())
    parts.changeAccess(user.id, { role })
    const details = { from: user.role, to: role }
    audit.record({ action: 'role_changed', ...by, target: { type: 'user', id: user.id }, details })
  }

  function changeVerified(user: UserRow, isVerified: boolean, by: By) {
    if (user.emailVerified === isVerified) return
    store.update(user.id, { emailVerified: isVerified })
    const action = isVerified ? 'email_verified' : 'email_unverified'
    audit.record({ action, ...by, target: { type: 'user', id: user.id } })
    // The other roles do not depend on it.
    if (user.role !== 'user' && user.role !== 'verified_user') return
    changeRole({ ...user, emailVerified: isVerified }, 'user', by)
  }

  function changeDisabled(user: UserRow, isDisabled: boolean, by: By) {
    if ((user.disabledAt !== null) === isDisabled) return
    if (isDisabled) parts.mustNotBeLastAdmin(user)
    parts.changeAccess(user.id, { disabledAt: isDisabled ? clock.now() : null })
    if (isDisabled) {
      // Enabling the account again must not revive its old sessions and links.
      sessionStore.revokeAll(user.id, clock.now())
      oneTimeTokens.revoke('reset_password', user.id)
      oneTimeTokens.revoke('change_email', user.id)
    }
    const action = isDisabled ? 'user_disabled' : 'user_enabled'
    audit.record({ action, ...by, target: { type: 'user', id: user.id } })
  }

  function changeProfile({ id }: UserRow, changes: ProfileChanges, by: By) {
    const { externalId } = changes
    const holder = externalId ? store.findByExternalId(externalId) : undefined
    if (holder && holder.id !== id) throw new AppError('external_id_taken')
    if (Object.values(changes).every((change) => change === undefined)) return
    store.update(id, changes)
    audit.record({ action: 'profile_changed', ...by, target: { type: 'user', id } })
  }

  return {
    /** Creates an account with a verified address.
     *  @throws email_taken */
    async create({ role, password, ...given }: NewAccount, by: By): Promise<UserRow> {
      const email = storedEmail(given.email)
      const passwordHash = await passwords.hash(password)
      return write(() => {
        const user = parts.insert({
          id: newId(),
          email,
          displayName: localPart(email),
          locale: 'en',
          role: roleOf(role, true),
          emailVerified: true,
          passwordHash,
          createdAt: clock.now(),
        })
        const target = { type: 'user', id: user.id } as const
        audit.record({ action: 'user_created', ...by, target, details: { role } })
        return user
      })
    },

    /** Changes the role, the profile, and whether the account is disabled or verified. Disabling ends every session. An
     *  account that was never verified is adopted when it becomes verified or gets an external id.
     *  @throws not_found · last_admin · role_required (admin, by a service) · external_id_taken · validation_error
     *  (`role`: verified_user without a verified address) */
    update: (find: () => UserRow | undefined, changes: ManagedChanges, by: By): Promise<UserRow> =>
      write(() => {
        const user = existing(find())
        const { role, disabled, emailVerified, ...profile } = changes
        adoptIfProved(user, changes, by)
        if (emailVerified !== undefined) changeVerified(user, emailVerified, by)
        if (role !== undefined) changeRole(existing(store.find(user.id)), role, by)
        if (disabled !== undefined) changeDisabled(user, disabled, by)
        changeProfile(user, profile, by)
        parts.publishChange(user)
        return existing(store.find(user.id))
      }),

    /** Deletes an account. Its messages stay, shown as from a deleted user.
     *  @throws not_found · last_admin */
    remove: (find: () => UserRow | undefined, by: By): Promise<void> =>
      write(() => parts.remove(existing(find()), by)),

    /** Mails a link for setting a new password.
     *  @throws not_found · mail_throttled */
    mailReset: (find: () => UserRow | undefined, by: By): Promise<void> =>
      write(() => {
        const { id, email } = existing(find())
        const wait = sentMails.take('reset_password', email)
        if (wait > 0) throw throttled('mail_throttled', wait)
        outbox.add('password_reset_mail', { user_id: id, address_hash: hashAddress(email) })
        const target = { type: 'user', id } as const
        audit.record({ action: 'password_reset_requested', ...by, target })
      }),

    /** Records in the audit log that an admin viewed a user's sessions.
     *  @throws not_found */
    viewSessions: (find: () => UserRow | undefined, by: By): Promise<UserRow> =>
      write(() => {
        const user = existing(find())
        const target = { type: 'user', id: user.id } as const
        audit.record({ action: 'sessions_viewed', ...by, target })
        return user
      }),

    /** Removes the second factor of a user who has lost both authenticator and recovery codes.
     *  @returns false when there is none
     *  @throws not_found */
    removeFactor: (find: () => UserRow | undefined, by: By): Promise<boolean> =>
      write(() => {
        const user = existing(find())
        const isOn = parts.factors.isOn(user.id)
        if (isOn) parts.removeFactor(user, by)
        return isOn
      }),

    existing,
    byId,
    byEmail: (email: string) => () => store.findByEmail(email),
    /** @throws not_found */
    get: (idText: string): UserRow => existing(byId(idText)()),
    /** @throws not_found */
    getByEmail: (email: string): UserRow => existing(store.findByEmail(email)),
    /** Finds users, oldest account first. */
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

/** The role `user` with a verified address is `verified_user`. */
export function roleOf(role: Role, isVerified: boolean): Role {
  return role === 'user' && isVerified ? 'verified_user' : role
}
