import type { Core } from '../../core.ts'
import { loadAddressHash } from '../../db/address-hash.ts'
import type { By } from '../../db/audit-trail.ts'
import { AppError, invalidField, throttled } from '../../lib/errors.ts'
import { parseId } from '../../lib/ids.ts'
import { type Listing, type ListRange, listById } from '../../lib/list-range.ts'
import { createLru } from '../../lib/lru.ts'
import type { Role } from '../../lib/vocabulary.ts'
import type { Peer } from '../../realtime/hub.ts'
import { localPart } from './model.ts'
import { createOneTimeTokens } from './one-time-token-store.ts'
import { type Argon2Cost, createPasswords } from './passwords.ts'
import { createSentMails } from './sent-mail-store.ts'
import { createSessionStore, type SessionStore } from './session-store.ts'
import {
  type AccountStore,
  createAccountStore,
  erased,
  type UserChanges,
  type UserRow,
} from './store.ts'

type ManagedChanges = Pick<UserChanges, 'role' | 'emailVerified' | 'displayName' | 'avatarUrl'> & {
  disabled?: boolean | undefined
}

export type UserAdmin = ReturnType<typeof createUserAdmin>

export type AccountParts = ReturnType<typeof createAccountParts>

/** What the services about accounts share.
 *  @param forget takes a person out of what the other modules keep, inside the write that removes the account */
export function createAccountParts(
  core: Core,
  passwordCost?: Argon2Cost,
  forget: (userId: string) => void = () => {},
) {
  const store = createAccountStore(core.orm)
  const sessionStore = createSessionStore(core.orm)
  const hashAddress = loadAddressHash(core.orm)
  const oneTimeTokens = createOneTimeTokens(core)
  const access = createAccessChanges(core, store, sessionStore)

  /** Whether nobody else could administer: such an account stays an admin. */
  function mustNotBeLastAdmin({ id, role, disabledAt }: UserRow) {
    if (role === 'admin' && disabledAt === null && store.isOnlyAdmin(id)) {
      throw new AppError('last_admin')
    }
  }

  return {
    store,
    hashAddress,
    sentMails: createSentMails(core, hashAddress),
    sessionStore,
    oneTimeTokens,
    passwords: createPasswords(passwordCost),
    access,
    mustNotBeLastAdmin,
    /** Removes an account, inside a `write`. What is much is removed by a job.
     *  @throws last_admin */
    remove(user: UserRow, by: By): void {
      const { id } = user
      mustNotBeLastAdmin(user)
      sessionStore.deleteOfUser(id)
      oneTimeTokens.deleteOfUser(id)
      forget(id)
      core.outbox.add('erasure', { user_id: id })
      access.change(id, erased(id, core.clock.now()))
      core.audit.record({ action: 'user_deleted', ...by, target: { type: 'user', id } })
    },
  }
}

/** What operators and the platform do to accounts, in a server or in a command beside it. Each act is in the audit log. */
export function createUserAdmin(core: Core, parts: AccountParts = createAccountParts(core)) {
  const { write, audit, outbox, newId, clock } = core
  const { store, sessionStore, oneTimeTokens, passwords, access, hashAddress, sentMails } = parts

  const byId = (idText: string) => (): UserRow | undefined => {
    const id = parseId(idText)
    return id === undefined ? undefined : store.find(id)
  }

  function changeRole(user: UserRow, wanted: Role, by: By) {
    const role = roleOf(wanted, user.emailVerified)
    if (user.role === role) return
    if (role === 'verified_user' && !user.emailVerified) throw invalidField('role', 'not_verified')
    if (role === 'admin' && by.actor.type === 'service_key') throw new AppError('role_required')
    if (role !== 'admin') parts.mustNotBeLastAdmin(user)
    access.change(user.id, { role })
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
    access.change(user.id, { disabledAt: isDisabled ? clock.now() : null })
    if (isDisabled) {
      // What was open before must not come back when the account is enabled again.
      sessionStore.revokeAll(user.id, clock.now())
      oneTimeTokens.revoke('reset_password', user.id)
    }
    const action = isDisabled ? 'user_disabled' : 'user_enabled'
    audit.record({ action, ...by, target: { type: 'user', id: user.id } })
  }

  function changeProfile({ id }: UserRow, changes: UserChanges, by: By) {
    if (Object.values(changes).every((change) => change === undefined)) return
    store.update(id, changes)
    audit.record({ action: 'profile_changed', ...by, target: { type: 'user', id } })
  }

  return {
    /** Makes an account that counts as verified.
     *  @throws email_taken */
    async create(email: string, role: Role, password: string, by: By): Promise<UserRow> {
      const passwordHash = await passwords.hash(password)
      return write(() => {
        const user = store.insert({
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

    /** Changes the role, disables or enables, marks the address as verified or not, changes the profile. Disabling ends
     *  every session.
     *  @throws not_found · last_admin · role_required (a service makes no admins) · validation_error (`role`: verified_user
     *  without a verified address) */
    update: (find: () => UserRow | undefined, changes: ManagedChanges, by: By): Promise<UserRow> =>
      write(() => {
        const user = existing(find())
        const { role, disabled, emailVerified, displayName, avatarUrl } = changes
        if (emailVerified !== undefined) changeVerified(user, emailVerified, by)
        if (role !== undefined) changeRole(existing(store.find(user.id)), role, by)
        if (disabled !== undefined) changeDisabled(user, disabled, by)
        changeProfile(user, { displayName, avatarUrl }, by)
        return existing(store.find(user.id))
      }),

    /** Removes an account: messages stay, shown as a deleted user's.
     *  @throws not_found · last_admin */
    remove: (find: () => UserRow | undefined, by: By): Promise<void> =>
      write(() => parts.remove(existing(find()), by)),

    /** Mails the link to a new password.
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

    byId,
    byEmail: (email: string) => () => store.findByEmail(email),
    /** @throws not_found */
    get: (idText: string): UserRow => existing(byId(idText)()),
    list: store.list,
    search: (q: string | undefined, range: ListRange): Listing<UserRow> =>
      listById(range, {
        name: 'users',
        list: (rows) => store.search(q, rows),
        count: () => store.countMatching(q),
      }),
  }
}

/** @throws not_found, also for somebody who has left */
function existing(user: UserRow | undefined): UserRow {
  if (!user || user.deletedAt !== null) throw new AppError('not_found')
  return user
}

/** A user with a verified address is a verified_user. */
function roleOf(role: Role, isVerified: boolean): Role {
  return role === 'user' && isVerified ? 'verified_user' : role
}

/** Longer than a command takes from reading the clock until this process notices its commit. */
const lookBackMilliseconds = 30_000
const rememberedChanges = 10_000

/** A user whose role changes or who is disabled or enabled loses their sockets, whichever process did it. */
function createAccessChanges(core: Core, store: AccountStore, sessionStore: SessionStore) {
  const { afterCommit, hub, clock } = core
  // When each user changed last, of the changes that have been acted upon.
  const handled = createLru<number>(rememberedChanges)
  const listRecent = () => store.listAccessChangedSince(clock.now() - lookBackMilliseconds)
  for (const { id, at } of listRecent()) handled.set(id, at)

  // A change that a command made is noticed later: whoever has come back with the new role meanwhile stays.
  function mayStay({ userId, sessionId, role }: Peer): boolean {
    return sessionStore.findPrincipal({ userId, sessionId, expiresAt: 0 })?.role === role
  }

  function handle(userId: string, at: number) {
    handled.set(userId, at)
    hub.closeUser(userId, mayStay)
  }

  return {
    /** Changes what a user may do, inside a `write`. */
    change(userId: string, changes: UserChanges): void {
      const at = clock.now()
      store.update(userId, { ...changes, accessChangedAt: at })
      afterCommit(() => handle(userId, at))
    },
    /** Closes the sockets of those whom a command beside this process has changed. */
    handleForeign(): void {
      for (const { id, at } of listRecent()) if (handled.get(id) !== at) handle(id, at)
    },
  }
}
