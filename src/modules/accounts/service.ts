import type { Write } from '../../db/writer.ts'
import type { Outbox } from '../../jobs/outbox.ts'
import type { Clock } from '../../lib/clock.ts'
import { AppError } from '../../lib/errors.ts'
import type { NewId } from '../../lib/ids.ts'
import type { Locale } from '../../lib/messages.ts'
import { normalizeEmail } from '../../lib/text.ts'
import type { Credentials, Registration, TokenSet } from './model.ts'
import type { Passwords } from './passwords.ts'
import type { Client, Sessions } from './sessions.ts'
import type { AccountStore, UserRow } from './store.ts'
import { type AccessTokens, accessTokenSeconds, type VerifiedToken } from './tokens.ts'

export type { Client } from './sessions.ts'
export type { VerifiedToken } from './tokens.ts'

/** A person with a live session, as the database knows them now. */
export type Account = VerifiedToken & { role: UserRow['role'] }

export type AccountService = ReturnType<typeof createAccountService>

type AccountServiceOptions = {
  store: AccountStore
  sessions: Sessions
  passwords: Passwords
  tokens: AccessTokens
  outbox: Outbox
  write: Write
  newId: NewId
  clock: Clock
  /** Closes the sockets of a session that has ended. */
  closeSession: (userId: string, sessionId: string) => void
}

export function createAccountService(options: AccountServiceOptions) {
  const { store, sessions, passwords, tokens, outbox, write, newId, clock, closeSession } = options

  async function tokenSet(user: UserRow, sessionId: string, refresh: string): Promise<TokenSet> {
    const access = await tokens.mint(user, sessionId)
    return { access_token: access, refresh_token: refresh, expires_in: accessTokenSeconds }
  }

  /** The person behind verified claims, unless gone or disabled or logged out. */
  function findAccount(claims: VerifiedToken): Account | undefined {
    const access = store.findAccess(claims.userId, claims.sessionId)
    return access && { ...claims, role: access.role }
  }

  return {
    /** Makes an account and logs it in. The verification mail is due from the same transaction on.
     *  @throws conflict (the address is taken, in any case). Spec 4.1. */
    async register(form: Registration, locale: Locale, client: Client) {
      const passwordHash = await passwords.hash(form.password)
      const email = form.email.toLowerCase()
      const { user, session } = await write(() => {
        const user = insertUnique(store, {
          id: newId(),
          email,
          displayName: form.display_name?.trim() ?? email.slice(0, email.indexOf('@')),
          locale,
          role: 'user',
          emailVerified: false,
          passwordHash,
          createdAt: clock.now(),
        })
        outbox.add('verification_mail', { user_id: user.id, email })
        return { user, session: sessions.begin(user.id, client) }
      })
      return { user, tokens: await tokenSet(user, session.sessionId, session.refreshToken) }
    },

    /** Begins a session. Whatever is wrong, the answer and the work are the same.
     *  @throws invalid_credentials. Spec 4.1, decisions 3. */
    async login({ email, password }: Credentials, client: Client) {
      const address = normalizeEmail(email)
      const found = address === undefined ? undefined : store.findByEmail(address)
      const matches = await passwords.matches(password, found?.passwordHash)
      if (!found || !matches) throw new AppError('invalid_credentials')
      const renewed = passwords.isOutdated(found.passwordHash)
        ? await passwords.hash(password)
        : undefined
      const { user, session } = await write(() => {
        // Read again: the account may have been disabled while the password was being compared.
        const user = store.find(found.id)
        if (!user || user.disabledAt !== null || user.passwordHash !== found.passwordHash) {
          throw new AppError('invalid_credentials')
        }
        if (renewed !== undefined) store.updatePasswordHash(user.id, renewed)
        return { user, session: sessions.begin(user.id, client) }
      })
      return { user, tokens: await tokenSet(user, session.sessionId, session.refreshToken) }
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
    async logout(userId: string, token: string): Promise<void> {
      const ended = await write(() => sessions.endByToken(token, userId))
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

/** @throws conflict when the address is taken */
export function insertUnique(store: AccountStore, user: Parameters<AccountStore['insert']>[0]) {
  try {
    return store.insert(user)
  } catch (cause) {
    const { code } = cause as { code?: string }
    throw code === 'SQLITE_CONSTRAINT_UNIQUE' ? new AppError('conflict', { cause }) : cause
  }
}
