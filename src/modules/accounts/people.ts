import type { Actor, AuditTrail } from '../../db/audit-trail.ts'
import type { Write } from '../../db/writer.ts'
import type { Clock } from '../../lib/clock.ts'
import { AppError } from '../../lib/errors.ts'
import { type NewId, parseId } from '../../lib/ids.ts'
import { type Listing, type ListRange, listById } from '../../lib/list-range.ts'
import type { Role } from '../../lib/vocabulary.ts'
import type { OneTimeTokens } from './one-time-tokens.ts'
import type { Passwords } from './passwords.ts'
import { insertUnique, localPart } from './service.ts'
import type { SessionStore } from './session-store.ts'
import type { AccountStore, UserRow } from './store.ts'

type PeopleOptions = {
  store: AccountStore
  sessions: Pick<SessionStore, 'revokeOthers'>
  oneTimeTokens: Pick<OneTimeTokens, 'revoke'>
  passwords: Passwords
  audit: AuditTrail
  write: Write
  newId: NewId
  clock: Clock
  /** Closes the sockets of a user whose access has changed. */
  closeUser: (userId: string) => void
}

/** Who acts, and from where when that is over the network. */
export type By = { actor: Actor; ip?: string }

/** What is absent stays as it is. */
export type PersonChanges = {
  role?: Role | undefined
  disabled?: boolean | undefined
  emailVerified?: boolean | undefined
  displayName?: string | undefined
  avatarUrl?: string | null | undefined
}

export type People = ReturnType<typeof createPeople>

/** What an operator does to accounts (decisions 3 and 12). Each act is in the audit log. */
export function createPeople(options: PeopleOptions) {
  const { store, sessions, oneTimeTokens, passwords, audit, write } = options
  const { newId, clock, closeUser } = options

  function required(user: UserRow | undefined): UserRow {
    if (!user || user.deletedAt !== null) throw new AppError('not_found')
    return user
  }

  function keepAnAdmin(user: UserRow) {
    if (
      user.role === 'admin' &&
      user.disabledAt === null &&
      store.countOtherAdmins(user.id) === 0
    ) {
      throw new AppError('conflict')
    }
  }

  function changeRole(user: UserRow, wanted: Role, by: By) {
    const role = roleOf(wanted, user.emailVerified)
    if (user.role === role) return
    if (role !== 'admin') keepAnAdmin(user)
    store.updateRole(user.id, role, clock.now())
    const details = { from: user.role, to: role }
    audit.record({ action: 'role_changed', ...by, target: { type: 'user', id: user.id }, details })
  }

  // A user with a verified address is a verified_user (spec 3.4); other roles do not depend on it.
  function changeVerified(user: UserRow, isVerified: boolean, by: By) {
    if (user.emailVerified === isVerified) return
    store.updateVerified(user.id, isVerified)
    const action = isVerified ? 'email_verified' : 'email_unverified'
    audit.record({ action, ...by, target: { type: 'user', id: user.id } })
    if (user.role !== 'user' && user.role !== 'verified_user') return
    changeRole({ ...user, emailVerified: isVerified }, 'user', by)
  }

  function changeDisabled(user: UserRow, isDisabled: boolean, by: By) {
    if ((user.disabledAt !== null) === isDisabled) return
    if (isDisabled) keepAnAdmin(user)
    store.updateDisabled(user.id, isDisabled ? clock.now() : null, clock.now())
    if (isDisabled) {
      // What was open before must not come back when the account is enabled again.
      sessions.revokeOthers(user.id, undefined, clock.now())
      oneTimeTokens.revoke(user.id, 'reset_password')
    }
    const action = isDisabled ? 'user_disabled' : 'user_enabled'
    audit.record({ action, ...by, target: { type: 'user', id: user.id } })
  }

  /** Changes somebody in one commit and closes their sockets when their access changed. */
  async function change(find: () => UserRow | undefined, act: (user: UserRow) => void) {
    const [before, after] = await write(() => {
      const user = required(find())
      act(user)
      return [user, required(store.find(user.id))] as const
    })
    if (before.accessChangedAt !== after.accessChangedAt) closeUser(after.id)
    return after
  }

  return {
    /** Makes an account that counts as verified.
     *  @throws conflict (the address is taken) */
    async create(email: string, role: Role, password: string, by: By): Promise<UserRow> {
      const passwordHash = await passwords.hash(password)
      return write(() => {
        const user = insertUnique(store, {
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

    /** Gives a role, disables or enables, counts the address as verified or not, changes the profile. Disabling shuts
     *  out tokens, sessions and sockets.
     *  @throws not_found · conflict (the last admin) */
    update: (find: () => UserRow | undefined, changes: PersonChanges, by: By) =>
      change(find, (user) => {
        const { role, disabled, emailVerified, displayName, avatarUrl } = changes
        if (emailVerified !== undefined) changeVerified(user, emailVerified, by)
        if (role !== undefined) changeRole(required(store.find(user.id)), role, by)
        if (disabled !== undefined) changeDisabled(user, disabled, by)
        store.updateProfile(user.id, { displayName, avatarUrl })
      }),

    byEmail: (email: string) => () => store.findByEmail(email),
    byId: (id: string) => () => store.find(parseId(id) ?? ''),

    /** @throws not_found */
    get: (id: string): UserRow => required(store.find(parseId(id) ?? '')),
    list: (): UserRow[] => store.list(),
    search: (q: string | undefined, range: ListRange): Listing<UserRow> =>
      listById(
        range,
        (rows) => store.search(q, rows),
        () => store.countMatching(q),
      ),
  }
}

/** A user with a verified address is a verified_user (spec 3.4). */
function roleOf(role: Role, isVerified: boolean): Role {
  return role === 'user' && isVerified ? 'verified_user' : role
}
