import { type AuditTrail, onOneself } from '../../db/audit-trail.ts'
import type { Write } from '../../db/writer.ts'
import type { Outbox } from '../../jobs/outbox.ts'
import type { Clock } from '../../lib/clock.ts'
import { AppError } from '../../lib/errors.ts'
import type { Locale } from '../../lib/i18n.ts'
import type { NewId } from '../../lib/ids.ts'
import { normalizeEmail } from '../../lib/text.ts'
import type { LoginThrottle } from './login-throttle.ts'
import type { Credentials, Registration, SetUp, TokenSet } from './model.ts'
import type { OneTimeTokens } from './one-time-tokens.ts'
import type { Passwords } from './passwords.ts'
import type { Client, Sessions } from './sessions.ts'
import type { AccountStore, UserRow } from './store.ts'
import { type AccessTokens, accessTokenSeconds, type VerifiedToken } from './tokens.ts'

export type { Client } from './sessions.ts'
export type { VerifiedToken } from './tokens.ts'

/** A person with a live session, as the database knows them now. */
export type Account = VerifiedToken & { role: UserRow['role']; isVerified: boolean }

export type AccountService = ReturnType<typeof createAccountService>

type AccountServiceOptions = {
  store: AccountStore
  sessions: Sessions
  oneTimeTokens: OneTimeTokens
  passwords: Passwords
  throttle: LoginThrottle
  audit: AuditTrail
  tokens: AccessTokens
  outbox: Outbox
  write: Write
  newId: NewId
  clock: Clock
  /** Closes the sockets of a session that has ended. */
  closeSession: (userId: string, sessionId: string) => void
}

export function createAccountService(options: AccountServiceOptions) {
  const { store, sessions, passwords, throttle, audit, tokens, outbox, write } = options
  const { oneTimeTokens, newId, clock, closeSession } = options

  async function tokenSet(user: UserRow, sessionId: string, refresh: string): Promise<TokenSet> {
    const access = await tokens.mint(user, sessionId)
    return { access_token: access, refresh_token: refresh, expires_in: accessTokenSeconds }
  }

  function newUser(
    { email, display_name }: Registration,
    locale: Locale,
    passwordHash: string,
    role: 'user' | 'admin',
  ) {
    return {
      id: newId(),
      email: email.toLowerCase(),
      displayName: display_name?.trim() ?? localPart(email.toLowerCase()),
      locale,
      role,
      emailVerified: role === 'admin',
      passwordHash,
      createdAt: clock.now(),
    }
  }

  async function tryLogin(address: string | undefined, password: string, client: Client) {
    const found = address === undefined ? undefined : store.findByEmail(address)
    const isRight = await passwords.matches(password, found?.passwordHash)
    const renewed =
      found && isRight && passwords.isOutdated(found.passwordHash)
        ? await passwords.hash(password)
        : undefined
    // Read again: the account may have changed while the password was being compared.
    return write(() => {
      const user = found && isRight ? store.find(found.id) : undefined
      if (user && user.passwordHash !== found?.passwordHash) return 'changed' as const
      if (user?.disabledAt === null) return begin(user, renewed, client)
      recordFailure(address, found, client)
      return undefined
    })
  }

  // What was typed where no address was expected may be a password: it is not kept.
  function recordFailure(address: string | undefined, found: UserRow | undefined, { ip }: Client) {
    const details = address !== undefined && !found ? { details: { email: address } } : {}
    audit.record({ action: 'login_failed', ...onOneself(found?.id, ip), ...details })
  }

  function begin(user: UserRow, renewedHash: string | undefined, client: Client) {
    if (renewedHash !== undefined) store.updatePasswordHash(user.id, renewedHash)
    audit.record({ action: 'login_succeeded', ...onOneself(user.id, client.ip) })
    return { user, session: sessions.begin(user.id, client) }
  }

  async function enter(user: UserRow, session: ReturnType<Sessions['begin']>) {
    return { user, tokens: await tokenSet(user, session.sessionId, session.refreshToken) }
  }

  /** The person behind verified claims, unless gone or disabled or logged out. */
  function findAccount(claims: VerifiedToken): Account | undefined {
    const access = store.findAccess(claims.userId, claims.sessionId)
    return access && { ...claims, ...access }
  }

  return {
    /** Makes an account and logs it in. The verification mail is due from the same transaction on.
     *  @throws conflict (the address is taken, in any case). Spec 4.1. */
    async register(form: Registration, locale: Locale, client: Client) {
      const passwordHash = await passwords.hash(form.password)
      const { user, session } = await write(() => {
        const user = insertUnique(store, newUser(form, locale, passwordHash, 'user'))
        outbox.add('verification_mail', { user_id: user.id, email: user.email })
        audit.record({ action: 'user_registered', ...onOneself(user.id, client.ip) })
        audit.record({ action: 'verification_mail_requested', ...onOneself(user.id, client.ip) })
        return { user, session: sessions.begin(user.id, client) }
      })
      return enter(user, session)
    },

    /** A token for the page that makes the first admin; undefined when there is one. Older ones stop working. */
    offerSetUp: (): Promise<string | undefined> =>
      write(() => {
        oneTimeTokens.revokeAll('set_up')
        return store.hasAdmin() ? undefined : oneTimeTokens.issue('set_up')
      }),

    /** Makes the first admin, whose address counts as verified, and logs them in.
     *  @throws validation_error (`token`: wrong, used or expired) · conflict (there is an admin, the address is taken) */
    async setUp(form: SetUp, locale: Locale, client: Client) {
      oneTimeTokens.check('set_up', form.token)
      const passwordHash = await passwords.hash(form.password)
      const { user, session } = await write(() => {
        oneTimeTokens.redeem('set_up', form.token)
        if (store.hasAdmin()) throw new AppError('conflict')
        const user = insertUnique(store, newUser(form, locale, passwordHash, 'admin'))
        audit.record({ action: 'user_created', ...onOneself(user.id, client.ip) })
        return { user, session: sessions.begin(user.id, client) }
      })
      return enter(user, session)
    },

    /** Begins a session. Whatever is wrong, the answer and the work are the same.
     *  @throws invalid_credentials · rate_limited (too many failures at this address). Spec 4.1, decisions 3. */
    async login({ email, password }: Credentials, client: Client) {
      const address = normalizeEmail(email)
      const name = address ?? email.slice(0, 254)
      throttle.admit(name)
      let entered = await tryLogin(address, password, client)
      // Somebody changed the hash while it was being compared, such as a login of the same person beside this one.
      if (entered === 'changed') entered = await tryLogin(address, password, client)
      if (entered === 'changed') throw new AppError('unavailable', { retryAfterSeconds: 1 })
      if (!entered) throw new AppError('invalid_credentials')
      throttle.succeeded(name)
      return enter(entered.user, entered.session)
    },

    /** Trades a refresh token for a new token set.
     *  @throws invalid_token (unknown, expired, used, session ended, user disabled). Spec 5, rule 5. */
    async refresh(token: string, client: Client): Promise<TokenSet> {
      const rotation = await write(() => sessions.rotate(token, client))
      if (rotation.outcome === 'reused') closeSession(rotation.userId, rotation.sessionId)
      if (rotation.outcome !== 'rotated') throw new AppError('invalid_token')
      const user = store.find(rotation.userId)
      if (!user) throw new AppError('invalid_token')
      return tokenSet(user, rotation.sessionId, rotation.refreshToken)
    },

    /** Ends the session that a refresh token of the caller's belongs to; a token that is not theirs does nothing. */
    async logout(userId: string, token: string, ip: string): Promise<void> {
      const ended = await write(() => {
        const id = sessions.endByToken(token, userId)
        if (id !== undefined) audit.record({ action: 'logged_out', ...onOneself(userId, ip) })
        return id
      })
      if (ended !== undefined) closeSession(userId, ended)
    },

    /** The claims of a valid access token, by its signature alone. */
    verifyToken: (token: string) => tokens.verify(token),

    findAccount,

    /** The person behind an access token, unless it is invalid or they are shut out. */
    async authenticate(token: string): Promise<Account | undefined> {
      const claims = await tokens.verify(token)
      return claims && findAccount(claims)
    },
  }
}

/** The name of somebody who gave none. */
export function localPart(email: string): string {
  return email.slice(0, email.indexOf('@'))
}

/** @throws conflict when the address is taken */
export function insertUnique(store: AccountStore, user: Parameters<AccountStore['insert']>[0]) {
  try {
    return store.insert(user)
  } catch (cause) {
    const { code } = cause as { code?: string }
    throw code === 'SQLITE_CONSTRAINT_UNIQUE' ? new AppError('conflict', { cause }) : cause
  }
}
