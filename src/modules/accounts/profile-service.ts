import { type AuditTrail, onOneself } from '../../db/audit-trail.ts'
import type { Write } from '../../db/writer.ts'
import type { Clock } from '../../lib/clock.ts'
import { AppError } from '../../lib/errors.ts'
import { parseId } from '../../lib/ids.ts'
import { type Listing, type ListRange, listById } from '../../lib/list-range.ts'
import type { RecoveryService } from './recovery-service.ts'
import type { SessionRow, SessionStore } from './session-store.ts'
import { type Caller, refreshTokenMilliseconds } from './sessions.ts'
import type { AccountStore, ProfileChanges, UserRow } from './store.ts'

export type ProfileService = ReturnType<typeof createProfileService>

type ProfileServiceOptions = {
  store: AccountStore
  sessions: SessionStore
  recovery: Pick<RecoveryService, 'confirm' | 'stillConfirmed'>
  audit: AuditTrail
  write: Write
  clock: Clock
  /** Takes them out of what the other chapters know, inside the removal's write. */
  forget: (userId: string) => void
  closeUser: (userId: string) => void
  closeSession: (userId: string, sessionId: string) => void
}

/** A person's own account: profile, devices, and leaving (decisions 3). */
export function createProfileService(options: ProfileServiceOptions) {
  const { store, sessions, recovery, audit, write, clock } = options

  const usedAfter = () => clock.now() - refreshTokenMilliseconds

  function own(userId: string): UserRow {
    const user = store.find(userId)
    if (!user) throw new AppError('unauthorized')
    return user
  }

  return {
    get: own,

    update: (userId: string, changes: ProfileChanges) =>
      write(() => {
        store.updateProfile(userId, changes)
        return own(userId)
      }),

    /** Removes the account: messages stay, shown as a deleted user's.
     *  @throws invalid_credentials (the password is wrong) · conflict (the last admin) */
    async remove(caller: Caller, password: string): Promise<void> {
      const { userId, ip } = caller
      const confirmed = await recovery.confirm(caller, password)
      await write(() => {
        recovery.stillConfirmed(confirmed, caller)
        const user = own(userId)
        if (user.role === 'admin' && store.countOtherAdmins(userId) === 0) {
          throw new AppError('conflict')
        }
        sessions.deleteOfUser(userId)
        options.forget(userId)
        store.erase(userId, clock.now())
        audit.record({ action: 'user_deleted', ...onOneself(userId, ip) })
      })
      options.closeUser(userId)
    },

    /** The devices that are logged in, the newest login first. */
    listSessions: (userId: string, range: ListRange): Listing<SessionRow> =>
      listById(
        range,
        (rows) => sessions.list(userId, usedAfter(), rows),
        () => sessions.count(userId, usedAfter()),
      ),

    /** Logs one device out.
     *  @throws not_found (unknown, ended, or somebody else's) */
    async endSession({ userId, ip }: Caller, idText: string): Promise<void> {
      const id = parseId(idText) ?? ''
      await write(() => {
        if (!sessions.revokeOwn(id, userId, clock.now())) throw new AppError('not_found')
        const target = { type: 'session', id } as const
        audit.record({ action: 'session_ended', actor: { type: 'user', id: userId }, target, ip })
      })
      options.closeSession(userId, id)
    },

    /** Logs every device of somebody out, for an admin. */
    async endAllSessions(userId: string, admin: Caller): Promise<void> {
      await write(() => {
        sessions.revokeOthers(userId, undefined, clock.now())
        const actor = { type: 'user', id: admin.userId } as const
        const target = { type: 'user', id: userId } as const
        audit.record({ action: 'session_ended', actor, target, ip: admin.ip })
      })
      options.closeUser(userId)
    },
  }
}
