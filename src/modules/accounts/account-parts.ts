import { isDeepStrictEqual } from 'node:util'
import type { Core } from '../../core.ts'
import type { By } from '../../db/audit-trail.ts'
import { loadAddressHash } from '../../db/keyed-hash.ts'
import { AppError } from '../../lib/errors.ts'
import type { EventType } from '../../lib/vocabulary.ts'
import type { Peer } from '../../realtime/hub.ts'
import type { MailJob } from './address/account-mails.ts'
import { createOneTimeTokens } from './address/one-time-token-store.ts'
import { createSentMails } from './address/sent-mail-store.ts'
import { localPart } from './model.ts'
import { createFactorStore } from './sign-in/factor-store.ts'
import { type Argon2Cost, createLoginThrottle, createPasswords } from './sign-in/passwords.ts'
import { createSessionStore } from './sign-in/session-store.ts'
import { createCodes } from './sign-in/totp.ts'
import {
  createAccountStore,
  erased,
  type NewUser,
  noPassword,
  type UserChanges,
  type UserRow,
} from './store.ts'

type UserEvent = Extract<EventType, 'user.created' | 'user.updated'>

const emptyProfile = { avatarUrl: null, locale: 'en', quietHours: null } as const

type NewAccount = Omit<NewUser, 'id' | 'createdAt' | 'displayName'> & {
  displayName?: string | null | undefined
}

export type AccountParts = ReturnType<typeof createAccountParts>

/** Called inside the `write` that disables, enables or deletes a user. */
export type OnReachChanged = (userId: string) => void

type Parts = {
  passwordCost: Argon2Cost | undefined
  forget: (userId: string) => void
  onReachChanged: OnReachChanged
}

export function createAccountParts(core: Core, parts: Parts) {
  const { passwordCost, forget, onReachChanged } = parts
  const store = createAccountStore(core.orm)
  const factors = createFactorStore(core.orm)
  const sessionStore = createSessionStore(core)
  const hashAddress = loadAddressHash(core.orm)
  const oneTimeTokens = createOneTimeTokens(core)
  // A socket opened after the change already has the new rights and stays open.
  const mayStay = ({ userId, sessionId, role, mayAdminister }: Peer): boolean => {
    const principal = sessionStore.findPrincipal({ userId, sessionId, expiresAt: 0 })
    return principal?.role === role && principal.mayAdminister === mayAdminister
  }

  /** Changes a user's rights and closes their sockets. Called inside a `write`. */
  function changeAccess(userId: string, changes: UserChanges): void {
    store.update(userId, changes)
    if (changes.disabledAt !== undefined) onReachChanged(userId)
    core.afterCommit(() => core.hub.closeUser(userId, mayStay))
  }

  function publish(type: UserEvent, id: string, avatarUrl?: string | null) {
    const picture = avatarUrl === undefined ? {} : { fileUrl: avatarUrl }
    core.events.publish({ type, ids: { user_id: id }, ...picture })
  }

  function mustNotBeLastAdmin({ id, role, disabledAt }: UserRow) {
    if (role === 'admin' && disabledAt === null && store.isOnlyAdmin(id)) {
      throw new AppError('last_admin')
    }
  }

  function publishChange(before: UserRow): void {
    const after = store.find(before.id)
    if (!after || isDeepStrictEqual(before, after)) return
    const hasNewPicture = before.avatarUrl !== after.avatarUrl
    publish('user.updated', after.id, hasNewPicture ? after.avatarUrl : undefined)
  }

  function queueMail(kind: MailJob, { id, email }: Pick<UserRow, 'id' | 'email'>): void {
    core.outbox.add(kind, { user_id: id, address_hash: hashAddress(email) })
  }

  /** Closes sockets whose rights depended on the second factor, publishes and records the change, and mails a verified
   *  address. */
  function factorChanged(user: UserRow, action: 'totp_enabled' | 'totp_disabled', by: By): void {
    const { id } = user
    changeAccess(id, {})
    publish('user.updated', id)
    core.audit.record({ action, ...by, target: { type: 'user', id } })
    if (user.emailVerified) queueMail(`${action}_mail`, user)
  }

  return {
    store,
    factors,
    codes: createCodes(core, factors),
    factorChanged,
    queueMail,
    publishChange,
    hashAddress,
    sentMails: createSentMails(core, hashAddress),
    sessionStore,
    oneTimeTokens,
    passwords: createPasswords(passwordCost),
    throttle: createLoginThrottle(core),
    changeAccess,
    mustNotBeLastAdmin,
    /** Whether another user has the address, or could get it back by undoing a change. */
    isTaken(email: string, userId: string): boolean {
      const owner = store.findByEmail(email)
      return (owner ? owner.id !== userId : false) || oneTimeTokens.isReserved(email, userId)
    },
    /** Adds an account, inside a `write`. By default its name is the local part of the address.
     *  @throws email_taken */
    insert(user: NewAccount): UserRow {
      const { email } = user
      if (oneTimeTokens.isReserved(email)) throw new AppError('email_taken')
      const displayName = user.displayName?.trim() ?? localPart(email)
      const row = store.insert({
        id: core.newId(),
        createdAt: core.clock.now(),
        ...user,
        displayName,
      })
      publish('user.created', row.id, row.avatarUrl ?? undefined)
      return row
    },
    removeFactor(user: UserRow, by: By): void {
      factors.deleteOfUser(user.id)
      factorChanged(user, 'totp_disabled', by)
    },
    /** Hands an account with an unverified address over to the owner of the address, inside a `write`: removes the
     *  password, second factor, sessions, devices, links and profile that the registrant has set. */
    adopt({ id, email, isProvisional }: UserRow, by: By): void {
      if (!isProvisional) return
      sessionStore.endDevices(id)
      oneTimeTokens.deleteOfUser(id)
      factors.deleteOfUser(id)
      const profile = { ...emptyProfile, displayName: localPart(email) }
      changeAccess(id, { ...profile, passwordHash: noPassword, isProvisional: false })
      core.audit.record({ action: 'account_adopted', ...by, target: { type: 'user', id } })
    },
    /** Deletes an account, inside a `write`. A job deletes its rows in the large tables.
     *  @param isPurge whether the job also deletes what the user has written
     *  @throws last_admin */
    remove(user: UserRow, by: By, isPurge = false): void {
      const { id } = user
      mustNotBeLastAdmin(user)
      oneTimeTokens.deleteOfUser(id)
      factors.deleteOfUser(id)
      core.outbox.add('erasure', { user_id: id, is_purge: isPurge })
      changeAccess(id, erased(id, core.clock.now()))
      // Afterwards, because the modules publish what they change, and it must not contain the name.
      forget(id)
      const external = user.externalId === null ? {} : { external_id: user.externalId }
      core.events.publish({ type: 'user.deleted', ids: { user_id: id, ...external } })
      const action = isPurge ? 'purge_requested' : 'user_deleted'
      core.audit.record({ action, ...by, target: { type: 'user', id } })
    },
  }
}
