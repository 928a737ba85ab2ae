import type { Core } from '../../../core.ts'
import { onOneself } from '../../../db/audit-trail.ts'
import { AppError } from '../../../lib/errors.ts'
import { sha256 } from '../../../lib/hash.ts'
import { lazy } from '../../../lib/lazy.ts'
import type { UserPrincipal } from '../../../lib/principal.ts'
import type { AccountParts } from '../account-parts.ts'
import type { CodesRenewal, FactorRemoval, OwnerProof } from '../model.ts'
import type { FactorRow, FactorStore } from './factor-store.ts'
import type { GivenPassword, Sessions } from './sessions.ts'

/** A start does not need it. */
const otpauth = lazy(() => require('otpauth') as typeof import('otpauth'))
/** As RFC 4226 recommends and every authenticator supports. */
const secretBytes = 20
const recoveryCodeCount = 10
/** 120 random bits cannot be guessed, so a plain hash protects them. */
const recoveryCodeBytes = 15
/** Steps of 30 seconds by which the clock of an authenticator may differ. */
const tolerance = 1
/** Each open tab begins a set-up, and the secret of any may have been scanned. */
const maxUnconfirmed = 20

export type Totp = ReturnType<typeof createTotp>

/** Call inside a `write`. Each returns false for a wrong or used code. */
export function createCodes({ clock }: Core, factors: FactorStore) {
  function useStep(userId: string, code: string): boolean {
    const used = matchOf(factors.find(userId), code, clock.now())
    return used !== undefined && factors.useStep(userId, used)
  }

  return {
    use(userId: string, text: string): boolean {
      const code = text.replace(/[\s-]/g, '').toLowerCase()
      return isStepCode(code) ? useStep(userId, code) : factors.useCode(userId, sha256(code))
    },
    /** Only for an enabled factor. Recovery codes are for a lost device. */
    useAuthenticator(userId: string, text: string): boolean {
      const code = text.replace(/[\s-]/g, '')
      return factors.isOn(userId) && useStep(userId, code)
    },
  }
}

const isStepCode = (code: string) => /^\d{6}$/.test(code)

function matchOf(factor: FactorRow | undefined, code: string, timestamp: number) {
  const { Secret, TOTP } = otpauth()
  for (const secret of secretsOf(factor)) {
    const totp = new TOTP({ secret: Secret.fromBase32(secret) })
    const delta = totp.validate({ token: code, timestamp, window: tolerance })
    if (delta !== null) return { secret, step: totp.counter({ timestamp }) + delta }
  }
  return undefined
}

const secretsOf = (factor: FactorRow | undefined) => factor?.secret.split(' ') ?? []

type Parts = AccountParts & { sessions: Sessions }

type CodeUse<T> = {
  ip: string
  act: () => T
  isRight?: (userId: string, code: string) => boolean
  refusal?: 'totp_invalid' | 'code_invalid'
}

export function createTotp(core: Core, parts: Parts) {
  const { write, audit, clock, outbox, settings } = core
  const { store, sessionStore, factors, codes, oneTimeTokens, sessions, throttle } = parts
  const { sentMails, hashAddress } = parts

  /** Consumes a code in a session. The limit counts all sessions of the user together.
   *  @param by.act runs in the same write if the code is right
   *  @throws session_ended · totp_invalid · code_invalid · login_throttled */
  async function withCode<T>(principal: UserPrincipal, code: string, by: CodeUse<T>) {
    const { userId } = principal
    const { ip, act, isRight = codes.use, refusal = 'totp_invalid' } = by
    const name = `totp:${userId}`
    throttle.admitConfirmation(name, ip)
    const done = await write(() => {
      if (!sessionStore.findPrincipal(principal)) throw new AppError('session_ended')
      if (isRight(userId, code)) return { result: act() }
      const action = refusal === 'totp_invalid' ? 'totp_refused' : 'code_refused'
      audit.record({ action, ...onOneself(userId, ip) })
      return undefined
    })
    if (!done) throw new AppError(refusal)
    throttle.succeeded(name, ip)
    return done.result
  }

  function switchOn(userId: string, ip: string): string[] {
    const user = store.own(userId)
    factors.updateConfirmed(userId, clock.now(), user.isProvisional)
    parts.factorChanged(user, 'totp_enabled', onOneself(userId, ip))
    return issueCodes(userId)
  }

  /** Voids the earlier ones. */
  function issueCodes(userId: string): string[] {
    const { Secret } = otpauth()
    const recoveryCodes = Array.from({ length: recoveryCodeCount }, () =>
      new Secret({ size: recoveryCodeBytes }).base32.toLowerCase(),
    )
    factors.replaceCodes(userId, recoveryCodes.map(sha256))
    return recoveryCodes.map((code) => code.replace(/(.{4})(?=.)/g, '$1-'))
  }

  return {
    /** Creates a secret for an authenticator. It has no effect until a code confirms it, which voids the secrets of other
     *  calls.
     *  @throws totp_exists · invalid_credentials (wrong password) · login_throttled · quota_exceeded */
    async begin(principal: UserPrincipal, password: GivenPassword, ip: string) {
      const { userId } = principal
      const confirmed = await sessions.confirm(principal, password, ip)
      return write(() => {
        const user = sessions.mustStillBeConfirmed(confirmed, principal)
        if (factors.isOn(userId)) throw new AppError('totp_exists')
        const { Secret, TOTP } = otpauth()
        const secret = new Secret({ size: secretBytes })
        const secrets = [secret.base32, ...secretsOf(factors.find(userId))]
        factors.upsert(userId, secrets.slice(0, maxUnconfirmed).join(' '), clock.now())
        // A colon ends the issuer.
        const issuer = settings.get('platform_name').replaceAll(':', '')
        const totp = new TOTP({ issuer, label: user.email, secret })
        return { secret: secret.base32, otpauth_url: totp.toString() }
      })
    },

    /** Enables the factor.
     *  @throws session_ended · not_found (no secret) · totp_exists · totp_invalid · login_throttled */
    async confirm(principal: UserPrincipal, code: string, ip: string): Promise<string[]> {
      const { userId } = principal
      const factor = factors.find(userId)
      if (!factor) throw new AppError('not_found')
      if (factor.confirmedAt !== null) throw new AppError('totp_exists')
      return withCode(principal, code, {
        ip,
        act() {
          if (factors.isOn(userId)) throw new AppError('totp_exists')
          return switchOn(userId, ip)
        },
      })
    },

    /** @throws not_found (no factor) · invalid_credentials (wrong password) · totp_invalid · login_throttled */
    async remove(principal: UserPrincipal, { password, code }: FactorRemoval, ip: string) {
      const { userId } = principal
      if (!factors.isOn(userId)) throw new AppError('not_found')
      const confirmed = await sessions.confirm(principal, password, ip)
      await withCode(principal, code, {
        ip,
        act() {
          const user = sessions.mustStillBeConfirmed(confirmed, principal)
          parts.removeFactor(user, onOneself(userId, ip))
        },
      })
    },

    /** Replaces the recovery codes. It takes no recovery code: when the answer is lost, none of them works any more, and
     *  only an authenticator can renew them again.
     *  @throws not_found (no factor) · invalid_credentials (wrong password) · totp_invalid · login_throttled */
    async renewCodes(principal: UserPrincipal, { password, code }: CodesRenewal, ip: string) {
      const { userId } = principal
      if (!factors.isOn(userId)) throw new AppError('not_found')
      const user = await sessions.confirm(principal, password, ip)
      return withCode(principal, code, {
        ip,
        isRight: codes.useAuthenticator,
        act() {
          sessions.mustStillBeConfirmed(user, principal)
          audit.record({ action: 'recovery_codes_renewed', ...onOneself(userId, ip) })
          return issueCodes(userId)
        },
      })
    },

    /** Mails a code with which the owner can confirm a session. It replaces an earlier one.
     *  @throws email_not_verified · mail_throttled (1 a minute and 5 a day) */
    mailCode: ({ userId, sessionId }: UserPrincipal, ip: string): Promise<void> =>
      write(() => {
        const user = store.find(userId)
        if (!user?.emailVerified) throw new AppError('email_not_verified')
        sentMails.mustTake('confirm', user.email)
        const address_hash = hashAddress(user.email)
        outbox.add('confirm_mail', { user_id: userId, address_hash, session_id: sessionId })
        audit.record({ action: 'code_requested', ...onOneself(userId, ip) })
      }),

    /** Marks the session as confirmed by its owner, who proves it with the password, or a code from the authenticator or a
     *  mail.
     *  @throws invalid_credentials (wrong password) · totp_invalid · code_invalid (without a factor) · login_throttled */
    async proveOwner(principal: UserPrincipal, { password, code }: OwnerProof, ip: string) {
      const { userId, sessionId } = principal
      const markConfirmed = () => sessionStore.update(sessionId, { confirmedAt: clock.now() })
      if (typeof code === 'string') {
        await withCode(principal, code, {
          ip,
          act: markConfirmed,
          isRight: (id, text) =>
            codes.useAuthenticator(id, text) || oneTimeTokens.redeemCode(principal, text),
          refusal: factors.isOn(userId) ? 'totp_invalid' : 'code_invalid',
        })
        return
      }
      const user = await sessions.confirm(principal, password, ip)
      await write(() => {
        sessions.mustStillBeConfirmed(user, principal)
        markConfirmed()
      })
    },
  }
}
