import type { Core, Module } from '../../core.ts'
import { inPieces } from '../../db/pieces.ts'
import type { OutboxJobs } from '../../jobs/outbox.ts'
import { createAvatarUrls } from '../../lib/avatar.ts'
import { day } from '../../lib/clock.ts'
import type { DomainEvent } from '../../lib/events.ts'
import type { Client } from '../../lib/principal.ts'
import { storedEmail } from '../../lib/text.ts'
import { purgedKinds } from '../../lib/vocabulary.ts'
import type { Mailer } from '../../outside/mail/mailer.ts'
import { createAccountParts, type OnReachChanged } from './account-parts.ts'
import { type AccountMail, createMailJobs } from './address/account-mails.ts'
import { createRecovery } from './address/recovery.ts'
import { createBans } from './bans/bans.ts'
import { createExportSchema, createExports, type SendExport } from './exports.ts'
import * as model from './model.ts'
import { createUserAdmin } from './people/user-admin.ts'
import { userAdminRoutes } from './people/user-admin-routes.ts'
import { accountRoutes } from './routes.ts'
import { createAccountService } from './service.ts'
import { openKeyring } from './sign-in/keys.ts'
import type { Argon2Cost } from './sign-in/passwords.ts'
import { createSessions } from './sign-in/sessions.ts'
import { createAccessTokens } from './sign-in/tokens.ts'
import { createTotp } from './sign-in/totp.ts'
import { accountRetention, type UserRow } from './store.ts'

declare module '../../db/audit-trail.ts' {
  interface AuditActions {
    user_registered: 'user'
    user_created: 'user'
    user_deleted: 'user'
    purge_requested: 'user'
    user_purged: 'user'
    account_adopted: 'user'
    login_succeeded: 'user'
    login_failed: 'user'
    logged_out: 'user'
    sessions_viewed: 'user'
    verification_mail_requested: 'user'
    data_exported: 'user'
    email_verified: 'user'
    email_unverified: 'user'
    email_change_requested: 'user'
    email_changed: 'user'
    email_change_undone: 'user'
    password_reset_requested: 'user'
    password_refused: 'user'
    password_reset: 'user'
    password_changed: 'user'
    totp_enabled: 'user'
    totp_disabled: 'user'
    totp_refused: 'user'
    recovery_codes_renewed: 'user'
    code_requested: 'user'
    code_refused: 'user'
    role_changed: 'user'
    user_disabled: 'user'
    user_enabled: 'user'
    profile_changed: 'user'
    refresh_token_reused: 'user'
    session_opened: 'user'
    session_ended: 'session'
    session_moved: 'session'
    keys_rotated: 'key'
    ban_added: 'ban'
    ban_removed: 'ban'
  }
}

declare module '../../jobs/outbox.ts' {
  interface OutboxJobs {
    verification_mail: AccountMail
    /** `ip` is absent when somebody else requested the mail. */
    password_reset_mail: AccountMail & { ip?: string }
    password_changed_mail: AccountMail
    confirm_mail: AccountMail & { session_id: string }
    totp_enabled_mail: AccountMail
    totp_disabled_mail: AccountMail
    /** To the new address, which `address_hash` identifies. */
    email_change_mail: AccountMail
    email_changed_mail: AccountMail
    erasure: { user_id: string; is_purge: boolean; removed?: Record<string, string> }
    guest_end: { user_id: string }
  }
}

type Neighbours = {
  mailer: Mailer
  others: readonly Module[]
  onReachChanged: OnReachChanged
  passwordCost: Argon2Cost | undefined
}

/** Each may be a message with ten files, of which others show the same. */
const purgedPerWrite = 10

export async function createAccounts(core: Core, neighbours: Neighbours) {
  const { mailer, others, passwordCost, onReachChanged } = neighbours
  const keyring = await openKeyring(core)
  const accessTokens = createAccessTokens(core, keyring)
  const forget = (userId: string) => {
    for (const module of others) module.forget?.(userId)
  }
  const base = createAccountParts(core, { passwordCost, forget, onReachChanged })
  const { sessionStore, oneTimeTokens } = base
  const bans = createBans(core, base)
  const sessions = createSessions(core, { ...base, accessTokens, bans })
  const parts = { ...base, bans, sessions }
  const accounts = createAccountService(core, parts)
  const userAdmin = createUserAdmin(core, parts)

  const avatarUrl = createAvatarUrls(core.config.publicUrl)
  const { profileView, managedView } = model.createUserViews(avatarUrl, base.factors.isOn)
  const userData = ({ user_id: id = '' }: DomainEvent['ids']) => {
    const user = base.store.find(id)
    return user?.deletedAt === null ? { user: managedView(user) } : undefined
  }
  /** Earlier ids belong to the registrant, who may be another person. */
  const adoptionOf = (userId: string) =>
    core.audit.findLatest('account_adopted', [userId])?.id ?? ''
  const ownLists: Module['exports'] = {
    sessions: {
      description: 'The logins of the person.',
      item: model.Session,
      each: (userId) =>
        sessionStore.each(userId, adoptionOf(userId)).map((row) => model.sessionView(row, '')),
    },
    pending_addresses: {
      description: 'New addresses that the person has not confirmed yet.',
      item: model.PendingAddress,
      each: (userId) => oneTimeTokens.list('change_email', userId).map(model.pendingAddressView),
    },
    former_addresses: {
      description: 'Former addresses that can still be restored.',
      item: model.FormerAddress,
      each: (userId) => oneTimeTokens.list('undo_email', userId).map(model.formerAddressView),
    },
    audit_log: {
      description: 'The actions of the person.',
      item: model.OwnAuditEntry,
      each: (userId) => core.audit.eachBy(userId, adoptionOf(userId)).map(model.ownAuditView),
    },
  }
  const exportedLists = Object.assign({}, ownLists, ...others.map((module) => module.exports))
  const exportSchema = createExportSchema(exportedLists)
  const exports = createExports(core, exportedLists)
  const sendExport: SendExport = async (user, { user: reader, byUser }, signal) => {
    const isOwn = reader.userId === user.id
    const isAllowed = () => {
      const principal = sessionStore.findPrincipal(reader)
      const mayRead = isOwn ? principal !== undefined : principal?.mayAdminister === true
      return mayRead && base.store.find(user.id)?.deletedAt === null
    }
    const reading = { by: byUser, signal, isAllowed }
    const pieces = await exports.begin(user.id, managedView(user), reading)
    return new Response(pieces, {
      headers: {
        'content-type': 'application/json',
        'content-disposition': 'attachment; filename="account.json"',
      },
    })
  }
  async function countPurged({ id }: UserRow): Promise<model.PurgeCounts> {
    const counts = { messages: 0, broadcasts: 0, files: 0, tickets: 0, reports: 0 }
    for (const { purge } of others) {
      for (const kind of purgedKinds) {
        for (const part of purge?.[kind]?.count(id) ?? []) {
          counts[kind] += part
          await Bun.sleep(0)
        }
      }
    }
    return counts
  }
  /** The job counts in the same writes, so that a kill loses nothing. A purge whose job is discarded removes no more. */
  async function purge(id: string, job: OutboxJobs['erasure'], isStopping: () => boolean) {
    const { user_id: userId, removed: details = {} } = job
    type Progress = { last: string; total: number }
    for (const [name, { some }] of others.flatMap(({ purge = {} }) => Object.entries(purge))) {
      const counted = Number(details[name] ?? 0)
      const next = (limit: number, before: Progress | undefined) => {
        const part = core.outbox.find(id) && some(userId, limit, before?.last)
        if (!part) return undefined
        const total = (before?.total ?? counted) + part.count
        core.outbox.updatePayload(id, { ...job, removed: { ...details, [name]: String(total) } })
        return { last: part.last, total }
      }
      const progress = await inPieces(core.write, next, { size: purgedPerWrite, isStopping })
      details[name] = String(progress?.total ?? counted)
      if (isStopping()) return
    }
    const target = { type: 'user', id: userId } as const
    const entry = { action: 'user_purged', actor: { type: 'system' }, target, details } as const
    await core.write(() => {
      core.audit.record(entry)
      core.outbox.updatePayload(id, { user_id: userId, is_purge: false })
    })
  }

  /** Inside a `write`.
   *  @returns whether the address belongs to a user */
  function setBounce(address: string, emailBouncedAt: number | null): boolean {
    const user = base.store.findByEmail(address)
    if (!user) return false
    base.store.update(user.id, { emailBouncedAt })
    base.publishChange(user)
    return true
  }

  const recovery = createRecovery(core, parts)
  const totp = createTotp(core, parts)
  const own = { accounts, sessions, recovery, totp }

  return {
    retention: accountRetention,
    routes(app) {
      const exports = { sendExport, exportSchema }
      accountRoutes(app, { ...own, keyring, profileView, ...exports })
      userAdminRoutes(app, { ...parts, userAdmin, countPurged, managedView, ...exports })
    },
    jobs: {
      ...createMailJobs(core, mailer, base),
      async guest_end({ user_id: userId }) {
        const by = { actor: { type: 'system' } } as const
        await core.write(() => {
          const user = base.store.find(userId)
          // An admin may have given the account to somebody.
          const isGuest = user?.deletedAt === null && user.email.endsWith('.invalid')
          // A purge, because the desk would keep the tickets.
          if (isGuest) base.remove(user, by, true)
        })
        return undefined
      },
      async erasure(job, { id, isStopping }) {
        const { user_id: userId, is_purge: isPurge } = job
        if (isPurge) await purge(id, job, isStopping)
        for (const { erase } of [
          sessionStore,
          core.audit,
          core.outbox,
          core.deliveries,
          ...others,
        ]) {
          const next = (limit: number, after?: string) => erase?.(userId, limit, after)
          await inPieces(core.write, next, { isStopping })
          if (isStopping()) return { againAfterMilliseconds: 0 }
        }
        return undefined
      },
    },
    eventData: { 'user.created': userData, 'user.updated': userData },
    offerSetUp: accounts.offerSetUp,
    noteBounce: (address: string) => core.write(() => setBounce(address, core.clock.now())),
    async endBounce(address: string): Promise<void> {
      const bouncedAt = base.store.findByEmail(address)?.emailBouncedAt ?? null
      if (bouncedAt !== null) await core.write(() => setBounce(address, null))
    },
    /** Called inside a `write`. */
    dropPicture(userId: string): void {
      const user = base.store.find(userId)
      if (!user) return
      base.store.update(userId, { avatarUrl: null })
      base.publishChange(user)
    },
    verifyToken: accessTokens.verify,
    findPrincipal: sessionStore.findPrincipal,
    isConfirmed: sessionStore.isConfirmed,
    resolveUser: userAdmin.resolve,
    upsertUser: userAdmin.upsert,
    /** Creates a user without a password for a day, and begins a session.
     *  @throws banned */
    async createGuest(person: model.NewPerson, client: Client) {
      bans.mustNotBeBanned(storedEmail(person.email), client.ip)
      // No address: a removal erases only those of entries by the removed person.
      const by = { actor: { type: 'system' } } as const
      const id = await core.write(() => {
        const user = userAdmin.insert(person, by)
        core.outbox.add('guest_end', { user_id: user.id }, { delayMilliseconds: day })
        return user.id
      })
      return userAdmin.openSession(id, by, client)
    },
    countAdminsWithoutTotp: base.factors.countAdminsWithout,
    namesOf: base.store.namesOf,
    findUser: base.store.find,
    listAdmins: base.store.listAdmins,
  } satisfies Module & Record<string, unknown>
}
