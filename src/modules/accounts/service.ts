import type { Core } from '../../core.ts'
import { onOneself } from '../../db/audit-trail.ts'
import { day } from '../../lib/clock.ts'
import { AppError, invalidField } from '../../lib/errors.ts'
import type { Locale } from '../../lib/i18n.ts'
import { ipGroup } from '../../lib/ip-network.ts'
import type { Client, UserPrincipal } from '../../lib/principal.ts'
import { normalizeEmail, storedEmail } from '../../lib/text.ts'
import type { AccountParts } from './account-parts.ts'
import type { Bans } from './bans/bans.ts'
import type { Authenticated, Credentials, Registration, SetUp } from './model.ts'
import type { GivenPassword, Sessions } from './sign-in/sessions.ts'
import type { UserChanges, UserRow } from './store.ts'

const knownBy = ['login_succeeded', 'user_registered', 'password_reset'] as const
const knownFor = 30 * day

export type AccountService = ReturnType<typeof createAccountService>

type Attempt = Omit<Credentials, 'email'>

type Parts = AccountParts & { sessions: Sessions; bans: Bans }

export function createAccountService(core: Core, parts: Parts) {
  const { write, audit } = core
  const { store, sessionStore, factors, codes, oneTimeTokens, passwords } = parts
  const { throttle, sessions, bans, sentMails, queueMail, hashAddress } = parts

  function newUser({ email, display_name: displayName }: Registration, locale: Locale) {
    return { email: storedEmail(email), displayName, locale }
  }

  async function tryLogin(address: string | undefined, attempt: Attempt, client: Client) {
    const { password, code } = attempt
    const found = store.findByEmail(address)
    const isMatch = await passwords.matches(password, found?.passwordHash)
    const owner = isMatch ? found : undefined
    const isOutdated = owner && passwords.isOutdated(owner.passwordHash)
    const renewedHash = isOutdated ? await passwords.hash(password) : undefined
    // Read the row and the bans again: both may have changed during the comparison.
    return write(() => {
      bans.mustNotBeBanned(address, client.ip)
      const user = owner && store.find(owner.id)
      if (user?.passwordHash !== owner?.passwordHash) return 'changed' as const
      const admitted = admit(user, code)
      if (typeof admitted === 'string') {
        if (admitted !== 'totp_required') recordFailure(address, client)
        return admitted
      }
      store.update(admitted.id, { passwordHash: renewedHash })
      audit.record({ action: 'login_succeeded', ...onOneself(admitted.id, client.ip) })
      return sessions.begin(admitted, client)
    })
  }

  function admit(user: UserRow | undefined, code: string | null | undefined) {
    if (user?.disabledAt !== null) return 'invalid_credentials' as const
    if (!factors.isOn(user.id)) return user
    if (!code) return 'totp_required' as const
    return codes.use(user.id, code) ? user : ('totp_invalid' as const)
  }

  function isKnownThere(address: string | undefined, ip: string): boolean {
    const user = store.findByEmail(address)
    if (!user) return false
    const known = audit.listAddresses(user.id, knownBy, knownFor)
    return known.some((other) => ipGroup(other) === ipGroup(ip))
  }

  function recordFailure(address: string | undefined, { ip }: Client) {
    const action = 'login_failed'
    const found = store.findByEmail(address)
    if (found) return audit.record({ action, ...onOneself(found.id, ip) })
    // An invalid address may be a password in the wrong field, so it is not stored.
    const details = address === undefined ? {} : { details: { address_hash: hashAddress(address) } }
    audit.record({ action, actor: { type: 'user' }, ip, ...details })
  }

  return {
    /** Creates an account, queues the verification mail in the same transaction, and begins a session.
     *  @throws registration_closed · banned · email_taken */
    async register(form: Registration, locale: Locale, client: Client): Promise<Authenticated> {
      const mustBeAdmitted = () => {
        if (core.settings.get('registration') === 'off') throw new AppError('registration_closed')
        bans.mustNotBeBanned(storedEmail(form.email), client.ip)
      }
      mustBeAdmitted()
      const passwordHash = await passwords.hash(form.password)
      const session = await write(() => {
        mustBeAdmitted()
        const newcomer = { role: 'user', isProvisional: true, passwordHash } as const
        const user = parts.insert({ ...newUser(form, locale), ...newcomer })
        audit.record({ action: 'user_registered', ...onOneself(user.id, client.ip) })
        if (sentMails.take('verify_email', user.email)) queueMail('verification_mail', user)
        return sessions.begin(user, client)
      })
      return sessions.authenticated(session)
    },

    /** Revokes earlier ones; undefined if there is an admin. */
    offerSetUp: (): Promise<string | undefined> =>
      write(() => {
        oneTimeTokens.revoke('set_up', null)
        return store.hasAdmin() ? undefined : oneTimeTokens.issue('set_up')
      }),

    /** Creates the first admin, with a verified address, and begins a session.
     *  @throws validation_error (`token`: wrong, used, expired, or an admin exists) · email_taken */
    async setUp(form: SetUp, locale: Locale, client: Client) {
      const passwordHash = await passwords.hash(form.password)
      const session = await write(() => {
        oneTimeTokens.redeem('set_up', form.token)
        if (store.hasAdmin()) throw invalidField('token', 'token')
        const admin = { role: 'admin', emailVerified: true, passwordHash } as const
        const user = parts.insert({ ...newUser(form, locale), ...admin })
        audit.record({ action: 'user_created', ...onOneself(user.id, client.ip) })
        return sessions.begin(user, client)
      })
      return sessions.authenticated(session)
    },

    /** Begins a session. All wrong credentials get the same response after the same time; only the right password reveals
     *  a second factor. A wrong code counts as a failure like a wrong password.
     *  @throws banned · invalid_credentials · totp_required · totp_invalid · login_throttled (too many failures for this address) */
    async login({ email, ...attempt }: Credentials, client: Client) {
      const address = normalizeEmail(email)
      const name = address ?? email.slice(0, 254)
      bans.mustNotBeBanned(address, client.ip)
      throttle.admit(name, client.ip, () => isKnownThere(address, client.ip))
      let session = await tryLogin(address, attempt, client)
      // The hash changed during the comparison, for example by a concurrent login of the same user.
      if (session === 'changed') session = await tryLogin(address, attempt, client)
      if (session === 'changed') throw new AppError('unavailable', { retryAfterSeconds: 1 })
      if (typeof session === 'string') throw new AppError(session)
      throttle.succeeded(name, client.ip)
      return sessions.authenticated(session)
    },

    get: store.own,

    /** @throws session_ended (also since the request began: the account may have been adopted) */
    update: (principal: UserPrincipal, changes: UserChanges): Promise<UserRow> =>
      write(() => {
        const { userId } = principal
        if (!sessionStore.findPrincipal(principal)) throw new AppError('session_ended')
        const before = store.own(userId)
        store.update(userId, changes)
        parts.publishChange(before)
        return store.own(userId)
      }),

    /** Deletes the account. Its messages stay, shown as from a deleted user.
     *  @throws invalid_credentials (wrong password) · last_admin */
    async remove(principal: UserPrincipal, password: GivenPassword, ip: string): Promise<void> {
      const { userId } = principal
      const confirmed = await sessions.confirm(principal, password, ip)
      await write(() => {
        const user = sessions.mustStillBeConfirmed(confirmed, principal)
        parts.remove(user, { actor: { type: 'user', id: userId }, ip })
      })
    },
  }
}
