import { test } from 'bun:test'
import { size } from './support/faults.ts'
import { playSeeds } from './support/model.ts'
import { beginWorld, startStage } from './support/model-account.ts'
import { accountModel } from './support/model-account-actions.ts'
import { describeMutations, type Mutation } from './support/model-mutations.ts'

const steps = 14
const seedsAtOnce = size(100, 100, 8)
const starts = Array.from({ length: size(30, 3, 1) }, (_, index) => index * seedsAtOnce)

test.each(starts)(
  'only its owner can use an account, after any sequence of actions (seeds from %i on)',
  async (start) => {
    await using stage = await startStage()
    const seeds = Array.from({ length: seedsAtOnce }, (_, index) => start + index)
    await playSeeds({ ...accountModel, begin: () => beginWorld(stage) }, seeds, steps)
  },
)

const accounts = 'src/modules/accounts'

const mutations: Mutation[] = [
  {
    name: 'adoption keeps sessions and push tokens',
    file: `${accounts}/account-parts.ts`,
    from: 'sessionStore.endDevices(id)',
    to: '',
  },
  {
    name: 'adoption keeps the password',
    file: `${accounts}/account-parts.ts`,
    from: '{ ...profile, passwordHash: noPassword, isProvisional: false }',
    to: '{ ...profile, isProvisional: false }',
  },
  {
    name: 'adoption keeps the profile',
    file: `${accounts}/account-parts.ts`,
    from: '{ ...profile, passwordHash: noPassword, isProvisional: false }',
    to: '{ passwordHash: noPassword, isProvisional: false }',
  },
  {
    name: 'adoption keeps the second factor',
    file: `${accounts}/account-parts.ts`,
    from: `oneTimeTokens.deleteOfUser(id)
      factors.deleteOfUser(id)
      const profile`,
    to: `oneTimeTokens.deleteOfUser(id)
      const profile`,
  },
  {
    name: 'adoption keeps links',
    file: `${accounts}/account-parts.ts`,
    from: `oneTimeTokens.deleteOfUser(id)
      factors.deleteOfUser(id)
      const profile`,
    to: `factors.deleteOfUser(id)
      const profile`,
  },
  {
    name: 'the platform cannot take an address from a user who never proved it',
    file: `${accounts}/people/user-admin.ts`,
    from: 'if (squatter?.isProvisional &&',
    to: 'if (false && squatter?.isProvisional &&',
  },
  {
    name: 'links to a former address survive a change by the platform',
    file: `${accounts}/people/user-admin.ts`,
    from: `oneTimeTokens.deleteOfUser(user.id)
    store.update(user.id, { email,`,
    to: 'store.update(user.id, { email,',
  },
  {
    name: 'the platform moves an address without a doubt about it',
    file: `${accounts}/people/user-admin.ts`,
    from: 'changeVerified(user, false, by)',
    to: '',
  },
  {
    name: 'the platform removes verified accounts',
    file: `${accounts}/people/user-admin.ts`,
    from: 'if (squatter?.isProvisional &&',
    to: 'if (squatter &&',
  },
  {
    name: 'a reset does not take over the account',
    file: `${accounts}/address/recovery.ts`,
    from: 'parts.adopt(user, onOneself(user.id, ip))',
    to: '',
  },
  {
    name: 'a reset keeps sessions',
    file: `${accounts}/address/recovery.ts`,
    from: 'sessionStore.revokeAll(id, keptSession)',
    to: 'if (keptSession !== undefined) sessionStore.revokeAll(id, keptSession)',
  },
  {
    name: 'a reset leaves sockets',
    file: `${accounts}/address/recovery.ts`,
    from: `throttle.succeeded(user.email, ip)
          hub.closeUser(user.id)`,
    to: 'throttle.succeeded(user.email, ip)',
  },
  {
    name: 'a new password keeps former links',
    file: `${accounts}/address/recovery.ts`,
    from: "oneTimeTokens.revoke('reset_password', id)",
    to: '',
  },
  {
    name: 'a new password keeps a pending change of address',
    file: `${accounts}/address/recovery.ts`,
    from: "oneTimeTokens.revoke('change_email', id)",
    to: '',
  },
  {
    name: 'a change of the password keeps the other sessions',
    file: `${accounts}/address/recovery.ts`,
    from: '        setPassword(user, passwordHash, sessionId)',
    to: '        store.update(userId, { passwordHash })',
  },
  {
    name: 'a reset keeps a second factor that is older than the first proof',
    file: `${accounts}/address/recovery.ts`,
    from: 'if (factors.find(user.id)?.isProvisional) {',
    to: 'if (factors.find(user.id)?.confirmedAt === 0) {',
  },
  {
    name: 'undo keeps the password',
    file: `${accounts}/address/recovery.ts`,
    from: 'store.update(user.id, { passwordHash: noPassword })',
    to: '',
  },
  {
    name: 'undo keeps a second factor that is younger than the change',
    file: `${accounts}/address/recovery.ts`,
    from: 'if (factorSince >= changedAt)',
    to: 'if (factorSince < changedAt)',
  },
  {
    name: 'a change back leaves the address in between an undo',
    file: `${accounts}/address/recovery.ts`,
    from: 'if (user.emailVerified && !undone) {',
    to: 'if (user.emailVerified) {',
  },
  {
    name: 'an unproved address is reserved',
    file: `${accounts}/address/recovery.ts`,
    from: 'if (user.emailVerified && !undone) {',
    to: 'if (!undone) {',
  },
  {
    name: 'undo keeps sessions',
    file: `${accounts}/address/recovery.ts`,
    from: 'sessionStore.revokeAll(user.id)',
    to: '',
  },
  {
    name: 'a former address is not reserved',
    file: `${accounts}/address/one-time-token-store.ts`,
    from: 'return hasRow(orm, oneTimeTokens, and(reserved, byOther))',
    to: 'return false',
  },
  {
    name: 'reuse is not detected',
    file: `${accounts}/sign-in/sessions.ts`,
    from: 'if (!token?.consumedAt || token.revokedAt !== null) return',
    to: 'if (hash !== "") return',
  },
  {
    name: 'reuse is not audited',
    file: `${accounts}/sign-in/sessions.ts`,
    from: "action: 'refresh_token_reused',",
    to: "action: 'session_moved',",
  },
  {
    name: 'a race of two tabs ends their session',
    file: `${accounts}/sign-in/sessions.ts`,
    from: 'const raceMilliseconds = 10_000',
    to: 'const raceMilliseconds = -1',
  },
  {
    name: 'a repeated refresh needs no key',
    file: `${accounts}/sign-in/session-store.ts`,
    from: 'p.key_hash = ?3 AND',
    to: '(p.key_hash = ?3 OR 1) AND',
  },
  {
    name: 'a grandparent counts as a race of two tabs',
    file: `${accounts}/sign-in/sessions.ts`,
    from: 'if (liveParentHash === hash && clock',
    to: 'if (clock',
  },
  {
    name: 'refresh tokens of an ended session work',
    file: `${accounts}/sign-in/session-store.ts`,
    from: 'WHERE s.id = refresh_tokens.session_id AND s.revoked_at IS NULL AND u.disabled_at IS NULL)',
    to: 'WHERE s.id = refresh_tokens.session_id AND u.disabled_at IS NULL)',
  },
  {
    name: 'access tokens outlive their session',
    file: `${accounts}/sign-in/session-store.ts`,
    from: 'WHERE s.id = ? AND s.user_id = ? AND s.revoked_at IS NULL AND u.disabled_at IS NULL`',
    to: 'WHERE s.id = ? AND s.user_id = ? AND u.disabled_at IS NULL`',
  },
  {
    name: 'devices outlive their session',
    file: 'src/modules/notifications/push-token-store.ts',
    from: 'SELECT revoked_at IS NULL AND',
    to: 'SELECT',
  },
  {
    name: 'disabling and roles leave sockets',
    file: `${accounts}/account-parts.ts`,
    from: 'hub.closeUser(userId, mayStay)',
    to: 'mayStay',
  },
  {
    name: 'a logout leaves sockets',
    file: `${accounts}/sign-in/sessions.ts`,
    from: 'afterCommit(() => hub.closeSession(userId, sessionId))',
    to: '',
  },
  {
    name: 'enabling revives sessions',
    file: `${accounts}/people/user-admin.ts`,
    from: `      sessionStore.revokeAll(user.id)
      oneTimeTokens.revoke('reset_password', user.id)`,
    to: "      oneTimeTokens.revoke('reset_password', user.id)",
  },
  {
    name: 'a new admin keeps sessions that a platform opened',
    file: `${accounts}/people/user-admin.ts`,
    from: "if (role === 'admin') sessionStore.revokeAll(user.id)",
    to: '',
  },
  {
    name: 'a platform has power over admins',
    file: `${accounts}/people/user-admin.ts`,
    from: "if (role === 'admin') mustNotBeService(by)\n}",
    to: '}',
  },
  {
    name: 'a platform logs admins in',
    file: `${accounts}/people/user-admin.ts`,
    from: "if (user.role === 'admin') throw new AppError('admin_protected')",
    to: '',
  },
  {
    name: 'disabled people are logged in',
    file: `${accounts}/service.ts`,
    from: "if (user?.disabledAt !== null) return 'invalid_credentials' as const",
    to: "if (!user) return 'invalid_credentials' as const",
  },
  {
    name: 'a recovery code works twice',
    file: `${accounts}/sign-in/factor-store.ts`,
    from: 'orm.delete(recoveryCodes).where(code).returning().all().length > 0',
    to: 'orm.select().from(recoveryCodes).where(code).all().length > 0',
  },
  {
    name: 'former recovery codes outlive a renewal',
    file: `${accounts}/sign-in/factor-store.ts`,
    from: 'orm.delete(recoveryCodes).where(eq(recoveryCodes.userId, userId)).run()\n      orm',
    to: 'orm',
  },
  {
    name: 'a code works twice',
    file: `${accounts}/sign-in/factor-store.ts`,
    from: 'lt(totpFactors.lastStep, lastStep)',
    to: 'lt(totpFactors.createdAt, Infinity)',
  },
  {
    name: 'a wrong second factor is accepted',
    file: `${accounts}/service.ts`,
    from: "return codes.use(user.id, code) ? user : ('totp_invalid' as const)",
    to: 'return user',
  },
  {
    name: 'admin routes are open to all',
    file: 'src/http/pipeline.ts',
    from: "if (access === 'admin') {",
    to: "if (access === 'admin' && role === 'guest') {",
  },
  {
    name: 'no confirmation is required',
    file: 'src/http/pipeline.ts',
    from: 'if (!confirm || context.operator !== undefined || !isRequired(confirm, body)) return',
    to: 'if (body || !body) return',
  },
  {
    name: 'any password confirms',
    file: `${accounts}/sign-in/sessions.ts`,
    from: 'if (!(await passwords.matches(password, user.passwordHash',
    to: 'if (false && !(await passwords.matches(password, user.passwordHash',
  },
  {
    name: 'a disabled account is not audited',
    file: `${accounts}/people/user-admin.ts`,
    from: "record(isDisabled ? 'user_disabled' : 'user_enabled', user.id, by)",
    to: '',
  },
  {
    name: 'sessions ended by an admin are not audited',
    file: `${accounts}/sign-in/sessions.ts`,
    from: "audit.record({ action: 'session_ended', ...by, target: { type: 'user', id: userId } })",
    to: '',
  },
  {
    name: 'a session opened by the platform is not audited',
    file: `${accounts}/people/user-admin.ts`,
    from: "audit.record({ action: 'session_opened', ...by, target: { type: 'user', id: user.id } })",
    to: '',
  },
]

describeMutations(mutations, 'test/account-model.test.ts', 'only its owner can use an account')
