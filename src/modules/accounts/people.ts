import type { AuditTrail } from '../../db/audit-trail.ts'
import type { Write } from '../../db/writer.ts'
import type { Clock } from '../../lib/clock.ts'
import { AppError } from '../../lib/errors.ts'
import type { NewId } from '../../lib/ids.ts'
import type { Role } from '../../lib/vocabulary.ts'
import type { Passwords } from './passwords.ts'
import { insertUnique } from './service.ts'
import type { AccountStore, UserRow } from './store.ts'

type PeopleOptions = {
  store: AccountStore
  passwords: Passwords
  audit: AuditTrail
  write: Write
  newId: NewId
  clock: Clock
}

export type People = ReturnType<typeof createPeople>

/** What an operator does to accounts (decisions 3 and 12). Each act is in the audit log. */
export function createPeople(options: PeopleOptions) {
  const { store, passwords, audit, write, newId, clock } = options
  const actor = { type: 'command_line' } as const

  function required(email: string): UserRow {
    const user = store.findByEmail(email.toLowerCase())
    if (!user) throw new AppError('not_found')
    return user
  }

  function keepAnAdmin(user: UserRow) {
    if (user.role === 'admin' && store.countOtherAdmins(user.id) === 0) {
      throw new AppError('conflict')
    }
  }

  function changeRole(user: UserRow, role: Role) {
    if (user.role === role) return
    if (role !== 'admin') keepAnAdmin(user)
    store.updateRole(user.id, role, clock.now())
    const details = { from: user.role, to: role }
    audit.record({ action: 'role_changed', actor, target: { type: 'user', id: user.id }, details })
  }

  return {
    /** Makes an account that counts as verified.
     *  @throws conflict (the address is taken) */
    async create(email: string, role: Role, password: string): Promise<UserRow> {
      const passwordHash = await passwords.hash(password)
      return write(() => {
        const user = insertUnique(store, {
          id: newId(),
          email,
          displayName: email.slice(0, email.indexOf('@')),
          locale: 'en',
          role,
          emailVerified: true,
          passwordHash,
          createdAt: clock.now(),
        })
        const target = { type: 'user', id: user.id } as const
        audit.record({ action: 'user_created', actor, target, details: { role } })
        return user
      })
    },

    /** @throws not_found · conflict (the last admin) */
    setRole: (email: string, role: Role) => write(() => changeRole(required(email), role)),

    /** Counts the address as verified, as the mailed link would.
     *  @throws not_found */
    verify: (email: string) =>
      write(() => {
        const user = required(email)
        if (user.emailVerified) return
        store.updateVerified(user.id)
        audit.record({ action: 'email_verified', actor, target: { type: 'user', id: user.id } })
        if (user.role === 'user') changeRole(user, 'verified_user')
      }),

    /** Shuts the account out at once: tokens, sessions, sockets.
     *  @throws not_found · conflict (the last admin) */
    disable: (email: string) =>
      write(() => {
        const user = required(email)
        if (user.disabledAt !== null) return
        keepAnAdmin(user)
        store.updateDisabled(user.id, clock.now())
        audit.record({ action: 'user_disabled', actor, target: { type: 'user', id: user.id } })
      }),

    list: () => store.list(),
  }
}
